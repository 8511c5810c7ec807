"""All of docs/evidence.md, one command after the other.

Usage: ``python bench/evidence [--small]``. Prints what each script prints, under its command. ``--small`` takes fewer
steps, and leaves out the comparison over seeds, a test of statistics that needs all of them. Exit code 1 when a script
fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

SCRIPTS: dict[str, tuple[str, ...] | None] = {
    "resume.py": ("--steps", "6"), "same_bytes.py": ("--runs", "2"), "random_state.py": ("--steps", "10"),
    "crossing.py": ("--steps", "10"), "faults.py": ("--programs", "step"),
    "seeds.py": None}
"""Each script with what makes it short; None if it is left out then."""


def main() -> int:
    """Runs them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="fewer steps and programs, no comparison over seeds")
    parser.add_argument("--only", default="", help="scripts whose name contains this text")
    args = parser.parse_args()
    failed = []
    for script, short in SCRIPTS.items():
        if args.only not in script or (args.small and short is None):
            continue
        words = short or () if args.small else ()
        print("$", "python", f"bench/evidence/{script}", *words, flush=True)
        if subprocess.run([sys.executable, str(Path(__file__).with_name(script)), *words], check=False).returncode:
            failed.append(script)
    print("failed: " + ", ".join(failed) if failed else "all claims hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
