"""How the time and memory of passes grow with the program: exponents over families of programs, at most 1.1 wanted.

``python bench/overhead/scaling.py [--sizes 1000,...] [--only FAMILY] [--passes NAME,...] [--full] [--json]``
generates programs that grow in one direction each (``bench/overhead/scaling_programs.py``). Each pass runs on each
size in a process of its own. It measures CPU seconds of the pass, the least of two runs, and the peak of its memory
next to the peak after parsing (of both modules for the validator). ``parse`` and ``walk`` are what passes are
compared with: jaxlib reads the text, and a walk that reads the name of each op. The exponent is the slope of a line
through log seconds over log ops, by least squares over the larger two thirds of the sizes, without those under 20 ms.
``--full`` goes to a million ops, for some hours. Exit code 1 when an exponent is above ``--limit``, or a process
fails.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import math
import multiprocessing
import multiprocessing.connection
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field

from scaling_programs import FAMILIES, Family, rules_text

from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import nested_ops
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.library import load_text, shipped_facts
from hlorewrite.util.progress import mapped
from hlorewrite.util.tables import table

SIZES = (1_000, 2_000, 4_000, 8_000)
FULL_SIZES = (*SIZES, 16_000, 32_000, 64_000, 125_000, 250_000, 500_000, 1_000_000)
LEAST_S = 0.02
ENOUGH_S = 10.0
"""Larger sizes are left out once a run takes as long; a process is ended after four times as long for each run."""
PIPELINES = {name: name for name in ("comm-shift", "rules", "collective-cse", "inline", "hoist-collectives",
                                     "all-reduce-fusion", "peel-last-micro-batch")} | {
    "-O comm": "comm", "room": "comm-shift{memory-budget=1GiB}", "rotate": "rotate-collectives{topology=h200:1x8}",
    "halves": "interleave-halves{topology=h200:1x8}", "statistics": "merge-statistics{topology=h200:1x8}",
    "waits": "sink-waits{topology=h200:1x8}", "pairs": "interleave-micro-batches{topology=h200:1x8 min-gain=-1}"}
VALIDATOR = "validator"
BASELINES = ("parse", "walk")
"""What jaxlib alone takes; not part of the verdict."""
HEADS = ["family", "pass", "ops", "seconds", "exponent", "memory", ""]
WIDTHS = (24, 21, 8, 8, 8, 6)
RULE_FILE = "rule file"


@dataclass(frozen=True)
class ScalingPoint:
    """One run.

    Attributes:
      ops: how large the program is; rules for a rule file.
      seconds: CPU seconds.
      memory: peak memory of the process over its peak when its input was parsed.
      failed: what went wrong; empty when nothing did.
    """

    ops: int
    seconds: float
    memory: float = 1.0
    failed: str = ""


@dataclass(frozen=True)
class ScalingSeries:
    """One pass on one family."""

    family: str
    name: str
    points: list[ScalingPoint] = field(default_factory=list)

    def fails(self, limit: float) -> bool:
        """Whether it failed, or its exponent is above a limit."""
        return bool(self.points[-1].failed) or ((self.exponent or 0.0) > limit and self.name not in BASELINES)

    @property
    def exponent(self) -> float | None:
        """The slope over the larger sizes; None when fewer than two took long enough."""
        kept = [p for p in self.points[len(self.points) // 3:] if p.seconds >= LEAST_S]
        return slope([(p.ops, p.seconds) for p in kept])


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The exponent e of ``y = c x^e`` by least squares over logarithms; None for fewer than two points."""
    if len(points) < 2:
        return None
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


# ---- one run, in a process of its own


def _peak() -> int:
    """Peak memory of this process so far, KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _pass_run(module: Module, name: str, text: str) -> Callable[[], object]:
    if name == "parse":
        return lambda: parse(text)
    if name == "walk":
        return lambda: _walk(module)
    passes = parse_pipeline(PIPELINES[name])
    return lambda: [step.run(module, context) for context in [PassContext()] for step in passes]


def _walk(module: Module) -> None:
    def visit(op: ir.Operation) -> ir.WalkResult:
        names.add(op.name)
        return ir.WalkResult.ADVANCE

    names: set[str] = set()
    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)


def _proved(original: Module, result: Module) -> None:
    answer = validate(original, result)
    if not isinstance(answer, Proved):
        raise HlorewriteError(str(answer))


def _import_passes() -> None:
    for pipeline in PIPELINES.values():
        parse_pipeline(pipeline)


def _measure(text: str, name: str, repeats: int) -> ScalingPoint:
    seconds, memory, ops = math.inf, 0.0, 0
    shipped_facts()
    for _ in range(repeats):
        module, original = parse(text), parse(text) if name == VALIDATOR else None
        ops = len(nested_ops(module.operation))
        before = _peak()
        if original is not None:
            run_passes(module, parse_pipeline("comm-shift"), PassContext())
        run = _pass_run(module, name, text) if original is None else functools.partial(_proved, original, module)
        gc.collect()
        started = time.process_time()
        run()
        seconds = min(seconds, time.process_time() - started)
        memory = memory or _peak() / before  # later runs begin at the peak of the first
        del module, original, run
    return ScalingPoint(ops, seconds, memory)


def _measure_rules(count: int) -> ScalingPoint:
    text = rules_text(count)
    load_text(rules_text(1))
    before, started = _peak(), time.process_time()
    load_text(text)
    return ScalingPoint(count, time.process_time() - started, _peak() / before)


def _child(send: multiprocessing.connection.Connection, work: Callable[[], ScalingPoint], limit_s: float) -> None:
    if limit_s < math.inf:
        end = math.ceil(time.process_time() + limit_s)
        resource.setrlimit(resource.RLIMIT_CPU, (end, end))
    try:
        send.send(work())
    except (HlorewriteError, RecursionError) as error:
        send.send(ScalingPoint(0, 0.0, failed=f"{type(error).__name__}: {error}"))


def _apart(work: Callable[[], ScalingPoint], limit_s: float) -> ScalingPoint:
    """Does work in a child of this process, which has imported everything and made no MLIR context."""
    processes = multiprocessing.get_context("fork")
    receive, send = processes.Pipe(duplex=False)
    child = processes.Process(target=_child, args=(send, work, limit_s))
    child.start()
    send.close()
    try:
        return receive.recv()
    except EOFError:
        return ScalingPoint(0, 0.0, failed=f"died, or took more than {limit_s:.0f} s")
    finally:
        child.join()


# ---- all of them


def _series(family: Family, names: Iterable[str], sizes: Sequence[int], enough_s: float) -> list[ScalingSeries]:
    """Every pass on one family; the text of each size is made once."""
    series = [ScalingSeries(family.name, name) for name in names if not (family.unread and name == VALIDATOR)]
    for size in sizes:
        text = family.text(size)
        for each in series:
            if each.points and (each.points[-1].failed or each.points[-1].seconds > enough_s):
                continue
            each.points.append(_apart(lambda text=text, name=each.name: _measure(
                text, name, 2 if len(text) < 20_000_000 else 1), 4 * enough_s))
    return series


def _rule_series(sizes: Sequence[int]) -> ScalingSeries:
    return ScalingSeries(RULE_FILE, "load", [_apart(lambda size=size: _measure_rules(size // 10), ENOUGH_S)
                                             for size in sizes if size <= 64_000])


def _row(series: ScalingSeries, limit: float) -> list[str]:
    last = series.points[-1]
    exponent = series.exponent
    note = last.failed or ("above" if series.fails(limit) else "")
    return [series.family, series.name, f"{last.ops}", f"{last.seconds:.3f}",
            "" if exponent is None else f"{exponent:.2f}", f"{last.memory:.2f}", note[:60]]


def _show(every: Sequence[ScalingSeries], limit: float, as_json: bool) -> None:
    if as_json:
        for series in every:
            print(json.dumps({**asdict(series), "exponent": series.exponent}), flush=True)
    else:
        _print([_row(series, limit) for series in every])


def _print(rows: Sequence[Sequence[str]]) -> None:
    print("\n".join(table(rows, "<<>>>>", widths=WIDTHS)), flush=True)


def _name(family: Family) -> str:
    return family.name


def main() -> int:
    """Prints a table or JSON; 1 when something grows too fast or fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", help=f"ops, comma-separated; by default {','.join(map(str, SIZES))}")
    parser.add_argument("--full", action="store_true", help="up to a million ops, without an end to larger sizes")
    parser.add_argument("--only", default="", help="families whose names contain this text")
    parser.add_argument("--passes", default="", help=f"of {', '.join([*BASELINES, *PIPELINES, VALIDATOR])}")
    parser.add_argument("--enough", type=float, default=ENOUGH_S, help="seconds after which sizes grow no more (10)")
    parser.add_argument("--limit", type=float, default=1.1, help="largest exponent (1.1)")
    parser.add_argument("--json", action="store_true", help="one JSON object for each pass and family")
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")] if args.sizes else FULL_SIZES if args.full else SIZES
    names = args.passes.split(",") if args.passes else [*BASELINES, *PIPELINES, VALIDATOR]
    enough = math.inf if args.full else args.enough
    _import_passes()
    families = [family for family in FAMILIES if args.only in family.name]
    every: list[ScalingSeries] = []
    if not args.json:
        _print([HEADS])
    for made in mapped("scaling", families, lambda family: _series(family, names, sizes, enough), _name):
        every += made
        _show(made, args.limit, args.json)
    if args.only in RULE_FILE and not args.passes:
        every.append(_rule_series(sizes))
        _show(every[-1:], args.limit, args.json)
    return int(any(series.fails(args.limit) for series in every))


if __name__ == "__main__":
    sys.exit(main())
