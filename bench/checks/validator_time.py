"""What the validator costs in addition to the rewriting it checks: seconds and their ratio, in one run.

``python bench/checks/validator_time.py [--sizes 1000,10000,40000]`` generates train steps with a collective in 250
ops, and for each measures the command ``hlorewrite opt --pass=comm-shift``, what it does without the start of Python
and imports (reading, the pass, MLIR's verifier, writing), and ``validate`` on the two modules, the best of three
each. Exit code 1 when the validator does not prove one, or takes longer than the command at 10 000 ops.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from generate_step import step_text

from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.ir.load import parse
from hlorewrite.ir.save import emit
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

REPEATS = 3
LIMIT_AT = 10_000


def measured(ops: int) -> tuple[float, float, float, bool]:
    """Seconds of the command, of what it does, and of the validator on one step, and whether it was proved."""
    text = step_text(ops, max(4, ops // 250))
    of_command, of_opt, of_validator, proved = [], [], [], True
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "step.mlir").write_text(text, encoding="utf-8")
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "hlorewrite", "opt", f"{folder}/step.mlir", "--pass=comm-shift", "-o",
                            f"{folder}/out.mlir"], check=True)
            of_command.append(time.perf_counter() - start)
        start = time.perf_counter()
        module = parse(text)
        original = module.clone()
        run_passes(module, parse_pipeline("comm-shift"), PassContext())
        emit(module, module.format)
        of_opt.append(time.perf_counter() - start)
        start = time.perf_counter()
        proved &= isinstance(validate(original, module), Proved)
        of_validator.append(time.perf_counter() - start)
    return min(of_command), min(of_opt), min(of_validator), proved


def main() -> int:
    """Prints a row for each size."""
    parser = argparse.ArgumentParser(description="Times of the validator next to those of opt.")
    parser.add_argument("--sizes", default="1000,10000,40000", help="ops, comma-separated")
    failed = False
    print(f"{'ops':>8} {'opt s':>8} {'without start s':>16} {'validate s':>11} {'of opt':>7} {'without start':>14}")
    for ops in (int(size) for size in parser.parse_args().sizes.split(",")):
        command_s, opt_s, validate_s, proved = measured(ops)
        print(f"{ops:>8} {command_s:>8.3f} {opt_s:>16.3f} {validate_s:>11.3f} {validate_s / command_s:>7.2f} "
              f"{validate_s / opt_s:>14.2f}{'' if proved else '  unknown'}")
        failed |= not proved or (ops == LIMIT_AT and validate_s > command_s)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
