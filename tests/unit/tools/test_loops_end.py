"""Every loop that could run for ever says where it stands why it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_every_loop_says_why_it_ends() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "loops_end.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_loop_that_does_not_is_found(tmp_path: Path) -> None:
    file = tmp_path / "loops.py"
    file.write_text("def f(x, pending):\n    while x:\n        x -= 1\n    for each in pending:\n"
                    "        pending.append(each)\n    # Ends: it is short.\n    while x:\n        x -= 1\n", "utf-8")
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "loops_end.py"), str(file)], capture_output=True,
                          text=True)
    assert done.returncode == 1
    assert [line.split(":")[1] for line in done.stdout.splitlines()] == ["2", "4"]
