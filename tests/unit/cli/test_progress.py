"""Progress: a line on a terminal that goes away again, nothing in a pipe, and nothing loaded for it there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hlorewrite.util.progress import mapped, progress

pty = pytest.importorskip("pty", reason="pseudo-terminals are not on this system")
ERASED = b"\x1b[2K"
SHOWN = b"\x1b[?25h"  # the cursor is back

MODULE = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def on_terminal(program: str, **environment: str) -> tuple[int, bytes]:
    """Runs Python in a pseudo-terminal; returns its exit code and everything it wrote."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update({"TERM": "xterm", "COLUMNS": "100"} | environment)
        os.execv(sys.executable, [sys.executable, "-c", program])
    written = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not part:
            break
        written += part
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), written


def in_pipe(program: str) -> subprocess.CompletedProcess[bytes]:
    """The same in pipes."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)


def plain(written: bytes) -> str:
    """Text without colours and cursor movements."""
    return re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", written.decode(errors="replace"))


WATCHED = """
import threading, time
import hlorewrite.util.progress as progress
appeared = threading.Event()
show = progress._Line._show
progress._Line._show = lambda line: (show(line), appeared.set())
"""
"""Lets a program wait for the line, however slow the machine is just now."""

LONG = WATCHED + """
progress.SHOWN_AFTER_S = 0.01
with progress.progress("counting"{total}) as step:
    for label in ("first", "second"):
        step(label)
        assert appeared.wait(60)
    {last}
print("done")
"""

SHORT = """
import time
import hlorewrite.util.progress as progress
progress.SHOWN_AFTER_S = {after}
with progress.progress("counting", 2{more}) as step:
    for label in ("first", "second"):
        step(label)
        time.sleep({seconds})
print("done")
"""


def test_a_terminal_sees_what_goes_on_and_is_left_clean() -> None:
    """Name, count, what is done now; erased before the result is printed."""
    code, written = on_terminal(LONG.format(total=", 2", last=""))
    assert code == 0
    text = plain(written)
    assert "counting" in text and "first" in text and "second" in text and "0/2" in text and "1/2" in text
    assert written.rindex(ERASED) < written.rindex(b"done") and SHOWN in written
    assert written.endswith(b"done\r\n")


def test_short_work_shows_nothing() -> None:
    """Nor does it load rich."""
    program = SHORT.format(after=30, seconds=0.01, more="") + "import sys; print('rich' in sys.modules)"
    assert on_terminal(program) == (0, b"done\r\nFalse\r\n")


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": ""}])
def test_terminals_that_cannot_redraw_see_nothing(environment: dict[str, str]) -> None:
    """An editor's shell, say."""
    assert on_terminal(SHORT.format(after=0, seconds=0.1, more=""), **environment) == (0, b"done\r\n")


def test_a_pipe_sees_nothing_and_nothing_is_loaded() -> None:
    """Neither rich nor threads."""
    program = "import sys; before = 'threading' in sys.modules\n" + SHORT.format(after=0, seconds=0.1, more="")
    output = in_pipe(program + "print('rich' in sys.modules, 'threading' in sys.modules and not before)")
    assert (output.stdout, output.stderr) == (b"done\nFalse False\n", b"")


def test_an_error_takes_the_line_away() -> None:
    """And goes on as it was."""
    program = LONG.format(total=", 2", last="1 / 0")
    code, written = on_terminal(program)
    assert code == 1 and SHOWN in written
    assert written.rindex(ERASED) < written.index(b"ZeroDivisionError")


def test_still_lines_are_drawn_when_a_step_begins_only() -> None:
    """Nothing runs concurrently with a measurement."""
    code, written = on_terminal(SHORT.format(after=0, seconds=1, more=", still=True"))
    assert code == 0 and plain(written).count("counting") <= 8  # eight a second would be sixteen


def test_mapped_results_are_printed_below_no_line() -> None:
    """The line is erased whenever a result is handed out."""
    program = """
from hlorewrite.util.progress import mapped
for row in mapped("squaring", [2, 3], lambda number: number * number, name=lambda number: f"item {number}"):
    print(f"row {row}")
"""
    code, written = on_terminal(program)
    text = plain(written)
    assert code == 0 and "item 2" in text and "item 3" in text
    for row in (b"row 4\r\n", b"row 9\r\n"):
        assert written[:written.index(row)].endswith((b"\x1b[2K", b"\r"))
    assert in_pipe(program).stdout == b"row 4\nrow 9\n" and in_pipe(program).stderr == b""


def test_without_a_terminal_both_forms_are_plain_python(capsys: pytest.CaptureFixture[str]) -> None:
    """As in this test."""
    with progress("anything", 3) as step:
        step("a")
        step(done=2)
    assert list(mapped("squaring", [1, 2], lambda number: number * number)) == [1, 4]
    assert capsys.readouterr() == ("", "")


def test_opt_shows_its_passes_on_a_terminal(tmp_path: Path) -> None:
    """One step for each, and reading and writing."""
    (tmp_path / "a.mlir").write_text(MODULE)
    program = WATCHED + f"""
import sys
from hlorewrite.cli.main import guarded
import hlorewrite.passes.inline as inline
progress.SHOWN_AFTER_S = 0.01 if sys.stderr.isatty() else 60
run = inline.Inline.run
inline.Inline.run = lambda self, module, context: (
    not sys.stderr.isatty() or appeared.wait(60), run(self, module, context))[1]
sys.exit(guarded(["opt", {str(tmp_path / "a.mlir")!r}, "--pass=inline,cse"]))
"""
    code, written = on_terminal(program)
    assert code == 0 and b"func.func @main" in written
    text = plain(written)
    assert "rewriting" in text and "inline" in text and "1/4" in text
    assert written.rindex(ERASED) < written.index(b"func.func @main")
    assert in_pipe(program).stderr == b""


def test_opt_in_a_pipe_loads_nothing_for_it(tmp_path: Path) -> None:
    """Start-up stays what it was."""
    (tmp_path / "a.mlir").write_text(MODULE)
    program = f"""
import sys
from hlorewrite.cli.main import guarded
code = guarded(["opt", {str(tmp_path / "a.mlir")!r}, "--pass=cse", "-o", {str(tmp_path / "b.mlir")!r}])
print(sorted(name for name in ("rich", "hlorewrite.viewer", "hlorewrite.passmanager.trace.writer",
                               "hlorewrite.cost.report.report") if name in sys.modules))
sys.exit(code)
"""
    output = in_pipe(program)
    assert (output.returncode, output.stdout, output.stderr) == (0, b"[]\n", b"")


def test_progress_says_nothing_of_what_it_does_not_know() -> None:
    """Without a total there is no bar."""
    code, written = on_terminal(LONG.format(total="", last=""))
    assert code == 0 and "0/" not in plain(written) and "counting" in plain(written)
