"""What hlorewrite costs in addition to jaxlib's own parse and print: time and peak memory, as ratios in one run.

``python bench/overhead.py [--sizes 1000,11000,100000] [--json]`` generates train steps, and for each runs in fresh
processes (a) jaxlib alone: parse and print; (b) ``hlorewrite opt --pass=comm-shift``, whole process and stage by stage.
A size is ops, with one collective in 250 (4 at least, 400 at most). ``--sizes 1000000`` takes a minute and 3 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from generate_step import step_text

REPEATS = 3


@dataclass(frozen=True)
class OverheadMeasurement:
    """One size: seconds, megabytes and the ratios that matter."""

    ops: int
    collectives: int
    parse_s: float
    print_s: float
    load_s: float
    comm_shift_s: float
    verify_s: float
    save_s: float
    reference_process_s: float
    opt_process_s: float
    reference_peak_mb: float
    opt_peak_mb: float

    @property
    def passes_ratio(self) -> float:
        """The pass against jaxlib's parse and print; at most 1 is wanted."""
        return self.comm_shift_s / (self.parse_s + self.print_s)

    @property
    def process_ratio(self) -> float:
        """Whole ``opt`` process against the process that only parses and prints; at most 1.5 is wanted."""
        return self.opt_process_s / self.reference_process_s

    @property
    def memory_ratio(self) -> float:
        """Peak memory of the same two processes; at most 1.5 is wanted."""
        return self.opt_peak_mb / self.reference_peak_mb


def reference(path: str, out: str) -> dict[str, float]:
    """jaxlib alone: parse and print, in this process."""
    from hlorewrite.ir.binding import ir
    from hlorewrite.ir.context import new_context
    context = new_context()
    text = Path(path).read_text()
    started = time.perf_counter()
    module = ir.Module.parse(text, context)
    parsed = time.perf_counter()
    printed = str(module)
    ended = time.perf_counter()
    Path(out).write_text(printed)
    return {"parse_s": parsed - started, "print_s": ended - parsed}


def stages(path: str, out: str) -> dict[str, float]:
    """hlorewrite stage by stage, in this process."""
    from hlorewrite.ir.load import load
    from hlorewrite.ir.save import emit
    from hlorewrite.passes.comm_shift import CommShift
    from hlorewrite.passmanager.base import PassContext
    marks = [time.perf_counter()]
    module = load(path)
    marks.append(time.perf_counter())
    if not CommShift().run(module, PassContext()):
        raise SystemExit("comm-shift changed nothing; the generated step must hold something to move")
    marks.append(time.perf_counter())
    module.verify()
    marks.append(time.perf_counter())
    Path(out).write_bytes(emit(module))
    marks.append(time.perf_counter())
    names = ("load_s", "comm_shift_s", "verify_s", "save_s")
    return {name: after - before for name, before, after in zip(names, marks, marks[1:], strict=False)}


def run(*command: str) -> tuple[float, float, str]:
    """Wall-clock seconds, peak megabytes and output of one process."""
    measured = subprocess.run([sys.executable, __file__, "--run", *command], check=True, capture_output=True, text=True)
    seconds, peak, output = json.loads(measured.stdout)
    return seconds, peak, output


def run_here(command: list[str]) -> int:
    """Runs a command as the only child of this process, so that its peak memory can be measured."""
    started = time.perf_counter()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as installed
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.stderr.write(done.stderr)
        return done.returncode
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(json.dumps([seconds, peak, done.stdout]))
    return 0


def measure(ops: int) -> OverheadMeasurement:
    """One row, each number the least of three runs."""
    collectives = min(400, max(4, ops // 250))
    with tempfile.TemporaryDirectory() as folder:
        path, out = f"{folder}/step.mlir", f"{folder}/out.mlir"
        Path(path).write_text(step_text(ops, collectives))
        measured: dict[str, float] = {}

        def keep(values: dict[str, float]) -> None:
            for name, value in values.items():
                measured[name] = min(value, measured.get(name, value))

        for _ in range(REPEATS if ops < 500_000 else 1):
            seconds, peak, output = run(sys.executable, __file__, "--reference", path, out)
            keep({**json.loads(output), "reference_process_s": seconds, "reference_peak_mb": peak})
            seconds, peak, _ = run(sys.executable, "-m", "hlorewrite", "opt", "--pass=comm-shift", path, "-o", out)
            keep({"opt_process_s": seconds, "opt_peak_mb": peak})
            keep(json.loads(run(sys.executable, __file__, "--stages", path, out)[2]))
    return OverheadMeasurement(ops, collectives, **measured)


def main() -> int:
    """Measures every size; prints a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,11000,100000", help="ops of the steps to generate")
    parser.add_argument("--json", action="store_true", help="one JSON object for each size")
    for mode in ("--reference", "--stages"):
        parser.add_argument(mode, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return run_here(args.run)
    if args.reference or args.stages:
        print(json.dumps(reference(*args.reference) if args.reference else stages(*args.stages)))
        return 0
    from hlorewrite.util.progress import mapped
    if not args.json:
        print(f"{'ops':>8} {'parse+print':>11} {'load':>7} {'pass':>7} {'verify':>7} {'save':>7} | "
              f"{'pass ÷ p+p':>10} {'process':>8} {'memory':>7}")
    sizes = [int(text) for text in args.sizes.split(",")]
    for row in mapped("measuring", sizes, measure, name=lambda size: f"{size} ops"):
        ratios = {"passes_ratio": row.passes_ratio, "process_ratio": row.process_ratio,
                  "memory_ratio": row.memory_ratio}
        if args.json:
            print(json.dumps({**asdict(row), **ratios}), flush=True)
        else:
            print(f"{row.ops:8} {row.parse_s + row.print_s:10.3f}s {row.load_s:6.3f}s {row.comm_shift_s:6.3f}s "
                  f"{row.verify_s:6.3f}s {row.save_s:6.3f}s | {row.passes_ratio:9.2f}x {row.process_ratio:7.2f}x "
                  f"{row.memory_ratio:6.2f}x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
