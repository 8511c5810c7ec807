"""The decisions of ``auto`` on train steps at realistic sizes, and XLA alone at its defaults and published flags.

    JAX_PLATFORMS=cpu python bench/passes/decisions.py [--only TEXT] [--flags] [--json] [MODULE:TARGET ...]

A module is any file that ``hlorewrite opt`` reads. Steps are compiled for described GPUs up to the generation of code;
no GPU is needed. The command fails where a step is kept that does not fit, or that is more than 0.2 % longer than XLA
alone at its defaults or, with ``--flags``, at any published set that fits.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

import expert_steps
import gpt
import large_model_steps
import megatron_steps
import overlap_rows
import resnet_steps
import ring_steps
import routed_expert_steps

from hlorewrite.hlo.published_flags import FLAG_SETS
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline import measured as measuring
from hlorewrite.jaxbridge.baseline.judge import STEP_NOISE, fits, too_large
from hlorewrite.jaxbridge.baseline.measured import Measured, scheduled, timed
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.step.options import OPTIMIZE, StepOptions
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.util.tables import numbers_right, table

Lower = Callable[[], Module]
_GPT = gpt.GptConfig(layers=12, width=1024, heads=16, vocab=32768, seq=1024, batch=32, micro_batches=4)
_LLAMA = functools.partial(large_model_steps.LlamaStep, layers=16, width=4096, hidden=14336, heads=32)
_MEGATRON = functools.partial(megatron_steps.MegatronModel, layers=16, width=8192, heads=64, rows=4, length=2048,
                              vocab=32768, model=8)


def steps() -> dict[str, tuple[str, Lower]]:
    """Name -> target and what lowers the step."""
    llama = {
        "llama fsdp8 acc8": ("h200:1x8", _LLAMA()), "llama fsdp8 acc1": ("h200:1x8", _LLAMA(micro_batches=1)),
        "llama fsdp32 acc4": ("h200:4x8", _LLAMA(micro_batches=4, shards=32)),
        "llama hsdp4x8 acc4": ("h200:4x8", _LLAMA(micro_batches=4, replicas=4, shards=8)),
        "llama 8B fsdp8 acc8": ("h200:1x8", large_model_steps.STEPS["8B"][0]),
    }
    megatron = {
        "megatron tp8": ("h200:1x8", _MEGATRON(data=1)), "megatron dp4 x tp8": ("h200:4x8", _MEGATRON(data=4)),
        "megatron dp4 x tp8 remat": ("h200:4x8", _MEGATRON(data=4, remat=True)),
        "megatron dp4 x tp8 acc4": ("h200:4x8", _MEGATRON(data=4, remat=True, rows=8, micro_batches=4)),
        "megatron tp8 remat": ("h200:1x8", _MEGATRON(data=1, remat=True)),
        "megatron tp8 unrolled": ("h200:1x8", _MEGATRON(data=1, remat=True, scan=False, layers=4)),
        "megatron tp8 sequence": ("h200:1x8", _MEGATRON(data=1, remat=True, sequence=True)),
        "megatron tp8 one sequence": ("h200:1x8", _MEGATRON(data=1, remat=True, sequence=True, rows=1, length=8192)),
    }
    made: dict[str, tuple[str, Lower]] = {
        name: (target, functools.partial(_parsed, large_model_steps.exported, model))
        for name, (target, model) in llama.items()}
    made |= {name: (target, functools.partial(_parsed, megatron_steps.exported, model))
             for name, (target, model) in megatron.items()}
    made["moe routed"] = ("h200:1x8", functools.partial(_parsed, routed_expert_steps.exported,
                                                        routed_expert_steps.RoutedModel()))
    made["moe ep8"] = ("h200:1x8", functools.partial(_parsed, expert_steps.exported, expert_steps.ExpertModel()))
    for name, fast in (("resnet", False), ("resnet fast variance", True)):
        made[name] = ("h200:1x8", functools.partial(_parsed, resnet_steps.exported, resnet_steps.ResNetStep(fast=fast)))
    for name in ring_steps.STEPS:
        made[f"ring {name}"] = ("h200:1x8", functools.partial(_parsed, ring_steps.exported, name))
    for name in ("A scanned", "B scanned", "A unrolled", "FSDP"):
        for target in ("h200:1x8", "h200:4x8"):
            made[f"gpt {name} {target[5:]}"] = (target, functools.partial(overlap_rows.module_of, name, target, _GPT))
    return made


def _parsed(lower: Callable[[Any], bytes], model: Any) -> Module:
    return parse(lower(model), name="step")


def decided(module: Module, target: str, *, flags: bool, passes: str = "auto") -> dict[str, Any]:
    """The decision on one step, its processor time, and XLA alone under each published set of flags."""
    place = place_of(parse_target(target), module)
    started = time.process_time()
    scheduled(module, place, {})
    alone_s = time.process_time() - started
    compiled = _Counter()
    started = time.process_time()
    with compiled:
        made, _ = rewrite_step(module.clone(), StepOptions.of(OPTIMIZE, {"passes": passes}), place)
    cpu_s, found = time.process_time() - started, made.report.comparison
    if found is None:
        return {"target": target, "chosen": "XLA alone", "step": 1.0, "cpu": cpu_s / alone_s, "rows": []}
    chosen = next(row.measured for row in found.rows if row.name == found.chosen)
    assert chosen is not None
    sets = {each.name: made.counted_s for each in FLAG_SETS
            if fits(made := timed(scheduled(module, place, each.flags)[0], place.topology)) is not False
            } if flags else {}
    return {"target": target, "chosen": found.chosen, "step": _share(chosen, found.alone), "step_s": chosen.counted_s,
            "alone_s": found.alone.counted_s, "cpu": cpu_s / alone_s, "compilations": compiled.count,
            "memory": chosen.memory, "fits": not too_large(found.alone, chosen), "flags": sets,
            "reason": found.sentence,
            "rows": [row.as_json(found.chosen) for row in found.rows]}


class _Counter:
    """Counts the compilations in its body."""

    def __init__(self) -> None:
        self.count, self._real = 0, measuring.compile_no_codegen

    def __enter__(self) -> None:
        def counting(*args: Any, **more: Any) -> Any:
            self.count += 1
            return self._real(*args, **more)
        measuring.compile_no_codegen = counting

    def __exit__(self, *_: object) -> None:
        measuring.compile_no_codegen = self._real


def _share(made: Measured, alone: Measured) -> float:
    return (made.counted_s or 0.0) / (alone.counted_s or 1.0)


def faults(name: str, row: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a decision."""
    if row["step"] > 1 + STEP_NOISE:
        yield f"{name}: {row['chosen']} takes longer than XLA alone"
    for flag_set, seconds in row.get("flags", {}).items():
        if seconds is not None and row["step_s"] > seconds * (1 + STEP_NOISE):
            yield f"{name}: {row['chosen']} takes {row['step_s'] / seconds - 1:.1%} longer than XLA, {flag_set}"
    if not row.get("fits", True):
        yield f"{name}: {row['chosen']} does not fit"


def main() -> int:
    """Prints the table; 1 if a decision is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE:TARGET", help="files, each with its described GPUs")
    parser.add_argument("--only", default="", metavar="TEXT", help="steps whose name contains this")
    parser.add_argument("--flags", action="store_true", help="also compile XLA alone with each published set of flags")
    parser.add_argument("--passes", default="auto", metavar="PIPELINE", help="what is tried (default: auto)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    rows, wrong = {}, []
    for name, (target, lower) in chosen_steps(args.modules, args.only).items():
        print(f"{name} for {target} ...", file=sys.stderr)
        rows[name] = decided(lower(), target, flags=args.flags, passes=args.passes)
        wrong += faults(name, rows[name])
    print(json.dumps(rows, indent=2) if args.json else text(rows))
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


def chosen_steps(modules: Sequence[str], only: str) -> dict[str, tuple[str, Lower]]:
    """The steps of a command line: files, each with its described GPUs, or those whose name contains a text."""
    given = [each.partition(":") for each in modules]
    return {Path(file).stem: (target, functools.partial(_read, file)) for file, _, target in given} or \
        {name: step for name, step in steps().items() if only in name}


def _read(file: str) -> Module:
    return parse(Path(file).read_bytes(), name=Path(file).name)


def text(rows: dict[str, dict[str, Any]]) -> str:
    """The table, and the means."""
    shown = [["step", "for", "chosen", "step ms", "of XLA alone", "memory GiB", "compilations", "CPU of XLA alone"]]
    shown += [[name, row["target"], row["chosen"], f"{row.get('step_s', 0.0) * 1e3:.1f}", f"{row['step']:.4f}",
               f"{row.get('memory', 0) / 2**30:.1f}", str(row.get("compilations", 1)), f"{row['cpu']:.1f}"]
              for name, row in rows.items()]
    count = max(len(rows), 1)
    means = (f"{len(rows)} steps: mean step of XLA alone {sum(row['step'] for row in rows.values()) / count:.4f}, "
             f"mean CPU {sum(row['cpu'] for row in rows.values()) / count:.1f}, "
             f"most {max((row['cpu'] for row in rows.values()), default=0.0):.1f}")
    return "\n".join([*table(shown, numbers_right(shown)), means])


if __name__ == "__main__":
    sys.exit(main())
