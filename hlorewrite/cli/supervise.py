"""A process above the one that works, for the day C++ code ends the process instead of raising.

MLIR aborts on internal errors, and its bytecode reader crashes on some damaged files. The work is done in a child,
forked before anything heavy is loaded, at a cost of about a millisecond; when it dies of a signal, its parent still
says in one line what was going on, and exits with the code every other failure has.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from hlorewrite.errors import HlorewriteError

_SIZE = 512
_DEADLY = {getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")}
_note: list[mmap.mmap] = []  # the page parent and child share; empty when nobody supervises


def stage(text: str) -> None:
    """Notes what the process is doing now, for the message its parent prints if it dies."""
    if _note:
        _note[0].seek(0)
        _note[0].write(text.encode()[:_SIZE - 1].ljust(_SIZE, b"\0"))


def supervised(work: Callable[[], int], reproduce: Callable[[], str] = lambda: "",
               words: str = "starting") -> int:
    """Runs work in a child process and returns its exit code.

    Args:
      work: what to do; its return value is the exit code.
      reproduce: called after a crash; says how to run it again, or nothing.
      words: what the message names when the child has not said what it was doing.

    Returns:
      The child's exit code; 1 after telling the user when it crashed.
    """
    if not hasattr(os, "fork"):
        return work()
    _note[:] = [mmap.mmap(-1, _SIZE)]
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _work_and_exit(work)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, frame: os.kill(child, received))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the child too, which answers
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    if number in _DEADLY:
        doing = _note[0][:].rstrip(b"\0").decode(errors="replace") or words
        try:
            again = reproduce()
        except HlorewriteError:
            again = ""
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\r\x1b[K")  # the child may have been showing progress, without a cursor
        print(f"hlorewrite: error: {doing}: MLIR crashed ({signal.Signals(number).name}); if the file is not damaged, "
              f"report it{'; ' + again if again else ' with the file and the command'}", file=sys.stderr)
        return 1
    return 128 + number


def _work_and_exit(work: Callable[[], int]) -> NoReturn:
    """The child's life: no handler, buffer or exit hook of the parent must run twice."""
    gc.disable()  # one short run over acyclic data: looking for cycles takes 8 % of it and finds none
    code = 1
    try:
        code = work()
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            pass
        os._exit(code)
