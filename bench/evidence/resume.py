"""Save, kill and resume against an uninterrupted run: several processes, final states compared bit by bit.

Usage: ``python bench/evidence/resume.py [--steps 20] [--processes 4]``. Processes with a CPU device each (collectives
by gloo) train a rewritten step with a plan file. In the second training all of them end by SIGKILL in the middle, and
new ones resume from the last checkpoints and replay the plan. Exit code 1 when a final state differs in one bit.
"""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

WORKER = Path(__file__).with_name("resume_worker.py")
PATIENCE_S = 300


def train(folder: Path, steps: int, processes: int, kill_at: int | None = None) -> list[tuple[int, str]]:
    """Exit code and output of each process of one start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    end = [] if kill_at is None else [str(kill_at)]
    running = [subprocess.Popen([sys.executable, str(WORKER), port, str(process), str(processes), str(folder),
                                 str(steps), *end], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
               for process in range(processes)]
    try:
        outputs = [process.communicate(timeout=PATIENCE_S)[0] for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
    return [(process.returncode, output) for process, output in zip(running, outputs, strict=True)]


def equal_bits(a: Path, b: Path) -> bool:
    """Whether two numpy files contain the same arrays, bit by bit."""
    with np.load(a) as one, np.load(b) as other:
        return one.files == other.files and all(
            one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes()
            for name in one.files)


def finished(ended: list[tuple[int, str]], plan: str) -> bool:
    """Whether all processes ended well with a rewritten step, process 0 with a plan that was made or replayed."""
    return all(code == 0 and "PLAN True" in output and "DONE" in output for code, output in ended) and (
        f"PLAN True {plan}" in ended[0][1])


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--processes", type=int, default=4)
    args = parser.parse_args()
    steps, processes = args.steps, args.processes
    kill_at = steps // 2 + 1
    with tempfile.TemporaryDirectory() as text:
        whole, parted = Path(text) / "whole", Path(text) / "parted"
        whole.mkdir()
        parted.mkdir()
        if not finished(train(whole, steps, processes), "made"):
            print("the uninterrupted run failed")
            return 1
        ended = train(parted, steps, processes, kill_at)
        killed = sum(code == -signal.SIGKILL for code, _ in ended)
        print(f"{killed} of {processes} processes killed before step {kill_at} of {steps}", flush=True)
        if not killed or any((parted / f"final-{process}.npz").exists() for process in range(processes)):
            return 1
        if not finished(train(parted, steps, processes), "replayed"):
            print("the resumed training failed")
            return 1
        same = [equal_bits(whole / name, parted / name)
                for name in (f"final-{process}.npz" for process in range(processes))]
    print(f"resumed with the replayed plan: final states of {sum(same)} of {processes} processes are equal bit by bit")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
