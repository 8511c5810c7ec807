"""What hlorewrite costs in addition to jaxlib's own parse and print: CPU time and peak memory, as ratios in one run.

``python bench/overhead/overhead.py [--sizes 1000,11000,100000] [--unrolled 6,17,96] [--json]`` makes train steps, and
for each runs in fresh processes (a) jaxlib alone: parse and print; (b) ``hlorewrite opt --pass=comm-shift``, whole
process and stage by stage. A size is the ops of a generated step, with one collective in 250 (4 at least, 400 at
most); ``--sizes 1000000`` takes a minute and 3 GB. An unrolled step is a GPT of four layers as JAX exports it, with
so many micro-batches written one after the other, each of which averages its gradients.
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

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from generate_step import step_text

REPEATS = 3


@dataclass(frozen=True)
class OverheadMeasurement:
    """One step: seconds, megabytes and the ratios that matter."""

    step: str
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
        """Whole ``opt`` process against the process that only parses and prints; at most 2 is wanted at 21 000 ops."""
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
    started = time.process_time()
    module = ir.Module.parse(text, context)
    parsed = time.process_time()
    printed = str(module)
    ended = time.process_time()
    Path(out).write_text(printed)
    return {"parse_s": parsed - started, "print_s": ended - parsed}


def stages(path: str, out: str) -> dict[str, float]:
    """hlorewrite stage by stage, in this process."""
    from hlorewrite.ir.load import load
    from hlorewrite.ir.save import emit
    from hlorewrite.passes.comm_shift import CommShift
    from hlorewrite.passmanager.base import PassContext
    marks = [time.process_time()]
    module = load(path)
    marks.append(time.process_time())
    if not CommShift().run(module, PassContext()):
        raise SystemExit("comm-shift changed nothing; the generated step must contain something to move")
    marks.append(time.process_time())
    module.verify()
    marks.append(time.process_time())
    Path(out).write_bytes(emit(module))
    marks.append(time.process_time())
    names = ("load_s", "comm_shift_s", "verify_s", "save_s")
    return {name: after - before for name, before, after in zip(names, marks, marks[1:], strict=False)}


def run(*command: str) -> tuple[float, float, str]:
    """CPU seconds, peak megabytes and output of one process."""
    measured = subprocess.run([sys.executable, __file__, "--run", *command], check=True, capture_output=True, text=True)
    seconds, peak, output = json.loads(measured.stdout)
    return seconds, peak, output


def run_here(command: list[str]) -> int:
    """Runs a command as the only child of this process, so that its peak memory is known."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # as installed
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.stderr.write(done.stderr)
        return done.returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.stdout]))
    return 0


@dataclass(frozen=True)
class SizedStep:
    """A step to measure: a generated one of ``size`` ops, or a GPT of ``size`` unrolled micro-batches."""

    size: int
    unrolled: bool

    def __str__(self) -> str:
        return f"GPT x {self.size}" if self.unrolled else f"{self.size} ops"

    def write(self, path: str) -> None:
        """Writes it as text; JAX runs in a process of its own."""
        if self.unrolled:
            subprocess.run([sys.executable, __file__, "--write", str(self.size), path], check=True)
        else:
            Path(path).write_text(step_text(self.size, min(400, max(4, self.size // 250))))


def write_unrolled(batches: int, path: str) -> None:
    """Writes the GPT step with that many micro-batches, for eight devices."""
    from dataclasses import replace

    from timeline_steps import LARGE, GptStep, exported_step

    from hlorewrite.ir.load import parse
    small = replace(LARGE, vocab=512, layers=4, heads=4, width=64, seq=32, micro_batches=batches)
    data = exported_step(GptStep("A unrolled", every=True, scanned=False, batches_scanned=False), small, 8)
    Path(path).write_text(parse(data).text(debug_info=False))


def measure(step: SizedStep) -> OverheadMeasurement:
    """One row, each number the least of three runs."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = f"{folder}/step.mlir", f"{folder}/out.mlir"
        step.write(path)
        measured: dict[str, float] = {}

        def keep(values: dict[str, float]) -> None:
            for name, value in values.items():
                measured[name] = min(value, measured.get(name, value))

        for _ in range(REPEATS if step.unrolled or step.size < 500_000 else 1):
            seconds, peak, output = run(sys.executable, __file__, "--reference", path, out)
            keep({**json.loads(output), "reference_process_s": seconds, "reference_peak_mb": peak})
            seconds, peak, _ = run(sys.executable, "-m", "hlorewrite", "opt", "--pass=comm-shift", path, "-o", out)
            keep({"opt_process_s": seconds, "opt_peak_mb": peak})
            keep(json.loads(run(sys.executable, __file__, "--stages", path, out)[2]))
    return OverheadMeasurement(str(step), **measured)


def main() -> int:
    """Measures every size; prints a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,11000,100000", help="ops of the steps to generate")
    parser.add_argument("--unrolled", default="6,17,96", help="micro-batches of the unrolled GPT steps; 0 for none")
    parser.add_argument("--json", action="store_true", help="one JSON object for each step")
    for mode in ("--reference", "--stages", "--write"):
        parser.add_argument(mode, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return run_here(args.run)
    if args.write:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
        write_unrolled(int(args.write[0]), args.write[1])
        return 0
    if args.reference or args.stages:
        print(json.dumps(reference(*args.reference) if args.reference else stages(*args.stages)))
        return 0
    from hlorewrite.util.progress import mapped
    if not args.json:
        print(f"{'step':>12} {'parse+print':>11} {'load':>7} {'pass':>7} {'verify':>7} {'save':>7} | "
              f"{'pass ÷ p+p':>10} {'process':>8} {'memory':>7}")
    steps = [SizedStep(int(size), unrolled) for unrolled, sizes in ((False, args.sizes), (True, args.unrolled))
             for size in sizes.split(",") if int(size)]
    for row in mapped("measuring", steps, measure, name=str):
        ratios = {"passes_ratio": row.passes_ratio, "process_ratio": row.process_ratio,
                  "memory_ratio": row.memory_ratio}
        if args.json:
            print(json.dumps({**asdict(row), **ratios}), flush=True)
        else:
            print(f"{row.step:>12} {row.parse_s + row.print_s:10.3f}s {row.load_s:6.3f}s {row.comm_shift_s:6.3f}s "
                  f"{row.verify_s:6.3f}s {row.save_s:6.3f}s | {row.passes_ratio:9.2f}x {row.process_ratio:7.2f}x "
                  f"{row.memory_ratio:6.2f}x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
