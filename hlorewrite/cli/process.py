"""The process of a subcommand: a parent that reports in one line what ended it, and limits of time and memory.

MLIR aborts on internal errors, its bytecode reader crashes on some damaged files, and the system kills a process that
takes too much memory. The work is done in a child, forked before anything heavy is loaded, at a cost of about a
millisecond; its parent keeps the limits of the command line, forwards signals, and ends the child when it does not
answer them.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import mmap
import os
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.util.parent_process import end_with_parent
from hlorewrite.util.read import READ_GUARD
from hlorewrite.util.sizes import format_bytes, format_seconds, parse_bytes, parse_seconds

GRACE_S = 5.0
"""How long the work has to answer a signal before it is killed."""
_MEMORY_LOOK_S = 0.05
_SIZE = 1024
_FLAGS, _LIMITS, _NOTE = 0, 8, 32
_FINISHED, _SILENT, _READING = 1, 2, 4
_READ_BASE_BYTES, _READ_FACTOR = 2 << 30, 256
_READ_S, _READ_S_OF_A_BYTE = 10.0, 1e-6
_READ = "while it was read"
_CRASHES = {getattr(signal, name) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP")}
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else ()
_shared: list[_Shared] = []  # what parent and child share; empty if the work is not supervised


class Terminated(KeyboardInterrupt):
    """A signal asks the work to stop.

    Args:
      number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@dataclass
class _Shared:
    """A page of memory and a pipe. The child writes its current stage and its limits to the page, and a byte to the
    pipe to have them read.
    """

    page: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, _SIZE))
    looks: int = -1
    begin: float = field(default_factory=time.monotonic)

    def flag(self, value: int) -> bool:
        """Whether a flag is set."""
        return bool(self.page[_FLAGS] & value)

    def set(self, value: int) -> None:
        """Sets a flag."""
        self.page[_FLAGS] |= value

    @property
    def note(self) -> str:
        """The present activity of the child."""
        return self._noted[1]

    @property
    def author(self) -> str:
        """Whose code does it."""
        return self._noted[0]

    @property
    def _noted(self) -> tuple[str, str]:
        note = self.page[_NOTE:].rstrip(b"\0").decode("utf-8", "backslashreplace")
        author, mark, text = note.partition("|")
        return (author, text) if mark else ("MLIR", "")

    @property
    def limits(self) -> tuple[float, int]:
        """Seconds and bytes; 0 for no limit."""
        return struct.unpack("dq", self.page[_LIMITS:_LIMITS + 16])


def stage(text: str, *, of: str = "MLIR") -> None:
    """Notes what the process is doing now, for the message its parent prints if it dies.

    Args:
      text: the file, and what is done to it.
      of: whose code runs, so whose crash it would be.
    """
    if _shared:
        note = f"{of}|{text}".encode("utf-8", "surrogateescape")[:_SIZE - _NOTE - 1]
        _shared[0].page[_NOTE:] = note.ljust(_SIZE - _NOTE, b"\0")


def set_limits(seconds: float | None, memory_bytes: int | None) -> None:
    """Asks the parent to stop this process after a time, or when it and its children hold too much memory.

    Args:
      seconds: counted from the start of the command; None for no limit.
      memory_bytes: resident memory; None for no limit.
    """
    if _shared and (seconds or memory_bytes):
        _shared[0].page[_LIMITS:_LIMITS + 16] = struct.pack("dq", seconds or 0.0, memory_bytes or 0)
        os.write(_shared[0].looks, b"l")


@contextlib.contextmanager
def bounded_reading(name: str, size: int) -> Iterator[None]:
    """Lets the parent stop this process when reading a binary file takes far more than its size explains.

    Args:
      name: the file.
      size: its bytes.
    """
    page, before = _shared[0].page, _shared[0].page[_LIMITS:]
    seconds, memory = _shared[0].limits
    stage(f"{name}: {_READ}")
    _shared[0].set(_READING)
    until = time.monotonic() - _shared[0].begin + _READ_S + size * _READ_S_OF_A_BYTE
    set_limits(min(seconds or until, until), min(memory or sys.maxsize, _READ_BASE_BYTES + _READ_FACTOR * size))
    try:
        yield
    finally:
        page[_LIMITS:] = before
        page[_FLAGS] &= ~_READING


def silenced() -> bool:
    """Whether the parent says why the process stops, so that the child need not."""
    return bool(_shared) and _shared[0].flag(_SILENT)


def supervised(work: Callable[[], int], reproduce: Callable[[], str] = lambda: "",
               words: str = "starting", short: bool = True) -> int:
    """Runs work in a child process and returns its exit code.

    Args:
      work: what to do; its return value is the exit code.
      reproduce: called after a crash; says how to run it again, or nothing.
      words: what the message names when the child has not said what it was doing.
      short: whether the work is too short for the collector of cycles.

    Returns:
      The child's exit code; 1 with a line on stderr when it crashed, was killed or reached a limit.
    """
    if not hasattr(os, "fork"):
        return work()
    looks, child_looks = os.pipe()
    shared = _Shared(looks=child_looks)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)  # until both have their handlers
    child = os.fork()
    if child == 0:
        os.close(looks)
        _shared[:] = [shared]
        if sys.platform == "linux":
            READ_GUARD.around = bounded_reading
        _work_and_exit(work, shared, parent, short)
    os.close(child_looks)
    watch = _Watch(child, looks, shared)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    status = watch.wait()
    code, sentence = watch.verdict(status, shared.note or words, reproduce)
    if sentence:
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\r\x1b[K")  # the child may have been showing progress, without a cursor
        print(f"hlorewrite: error: {sentence}", file=sys.stderr)
    return code


class _Watch:
    """The parent's side: waits for the child, and stops it when a limit is reached or a signal comes."""

    def __init__(self, child: int, looks: int, shared: _Shared) -> None:
        self.child, self.looks, self.shared = child, looks, shared
        self.begin = shared.begin
        self.reason = self.doing = ""
        self.stopped_by, self.damaged = 0, False
        self.kill_at = float("inf")
        self.woken, wake = os.pipe()
        # Python runs handlers between two of its instructions: a signal just before select() begins would wait for
        # its end. C code writes to this pipe at once, so that select() answers.
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in _STOPS:
            signal.signal(number, self._stop)

    def wait(self) -> int:
        """Waits for the end of the child; returns its status."""
        # Ends: the child ends, and with it the last end of the pipe that it writes to; or it is killed.
        while True:
            ready, _, _ = select.select([self.looks, self.woken], [], [], self._timeout())
            if self.woken in ready:
                os.read(self.woken, 64)
            if self.looks in ready and not os.read(self.looks, 64):
                break
            if time.monotonic() >= self.kill_at:
                os.kill(self.child, signal.SIGKILL)
                self.kill_at = float("inf")
            self._keep_limits()
        return os.waitpid(self.child, 0)[1]

    def _timeout(self) -> float | None:
        now, (seconds, memory) = time.monotonic(), self.shared.limits
        until = [self.kill_at - now]
        if not self.reason:
            until += [self.begin + seconds - now] if seconds else []
            until += [_MEMORY_LOOK_S] if memory else []
        soonest = min(until)
        return None if soonest == float("inf") else max(0.0, soonest)

    def _keep_limits(self) -> None:
        seconds, memory = self.shared.limits
        if self.reason or self.stopped_by:
            return
        if seconds and time.monotonic() - self.begin >= seconds:
            self.reason = f"reached the time limit of {format_seconds(seconds)}"
        elif memory and resident_bytes(self.child) > memory:
            self.reason = f"reached the memory limit of {format_bytes(memory)}"
        if self.reason and self.shared.flag(_READING):
            self.damaged = True
            self.reason = "took far more time or memory than its size justifies; the file seems damaged, write it again"
        elif self.reason:
            self.reason += "; raise it, or give it less to do"
        if self.reason:
            self.doing = self.shared.note  # before the work cleans up
            self.shared.set(_SILENT)
            self._send(signal.SIGTERM)

    def _stop(self, number: int, frame: object) -> None:
        """Forwards a signal to the child; a second signal kills it."""
        self._send(signal.SIGKILL if self.stopped_by else number)
        self.stopped_by = self.stopped_by or number

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.child, number)
        self.kill_at = min(self.kill_at, time.monotonic() + GRACE_S)

    def verdict(self, status: int, doing: str, reproduce: Callable[[], str]) -> tuple[int, str]:
        """The exit code of the command, and what to say about it; nothing if the child has said it."""
        if self.reason:
            return 2 if self.damaged else 1, f"{self.doing or doing}: {self.reason}"
        if os.WIFEXITED(status):
            code = os.WEXITSTATUS(status)
            if self.shared.flag(_FINISHED):
                return code, ""
            return code or 1, (f"{doing}: the process ended without a result (exit code {code}); see the passes and "
                               "natives that were loaded")
        number = os.WTERMSIG(status)
        if self.stopped_by:
            return 128 + self.stopped_by, "interrupted" if self.stopped_by == signal.SIGINT else "terminated"
        if number in _CRASHES:
            again = ""
            with contextlib.suppress(HlorewriteError):
                again = reproduce()
            crash = f"{doing}: {self.shared.author} crashed ({signal.Signals(number).name})"
            if self.shared.author == "XLA" and doing.endswith(_READ):
                return 2, f"{crash}; pass HLO as XLA prints it"
            return 2 if doing.endswith(_READ) else 1, (f"{crash}; if the file is not damaged, report it"
                       + (f"; {again}" if again else " with the file and the command"))
        hint = ("the system does that when memory runs out: use a smaller module, or see --memory-limit"
                if number == signal.SIGKILL else "run it again")
        return 1, f"{doing}: killed by {signal.Signals(number).name}; {hint}"


def _work_and_exit(work: Callable[[], int], shared: _Shared, parent: int, short: bool) -> NoReturn:
    """The child's life: no handler or buffer of the parent must run twice."""
    code = 1
    try:
        end_with_parent(parent)
        atexit._clear()  # exit hooks of the parent are the parent's
        for number in _STOPS:
            signal.signal(number, _raise)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
        if short:
            gc.disable()  # over acyclic data: looking for cycles takes 8 % of the time and finds none
        code = work()
    except Terminated as stopped:
        code = 128 + stopped.number
    except BaseException:  # asked for by the variable that shows tracebacks
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception, KeyboardInterrupt):
            atexit._run_exitfuncs()  # temporary folders are removed, and JAX leaves the other processes
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        shared.set(_FINISHED)
        os._exit(code)


def _raise(number: int, frame: object) -> None:
    """Stops the work once; a terminal and the parent may both send the signal."""
    for each in _STOPS:
        signal.signal(each, signal.SIG_IGN)
    raise Terminated(number)


# ---- ``--time-limit`` and ``--memory-limit``: what a subcommand may use before it is stopped


MOST_SECONDS = 1e9


def add_limit_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds both flags to a parser, or to those of its actions."""
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in actions:
        for each in dict.fromkeys(action.choices.values()):
            add_limit_arguments(each)
    if actions:
        return
    group = parser.add_argument_group("limits")
    if "--time-limit" not in parser._option_string_actions:  # of a subcommand that ends by itself when the time is over
        group.add_argument("--time-limit", type=seconds_of, metavar="TIME",
                           help="stop after that time, such as 90s; exit code 1")
    group.add_argument("--memory-limit", type=_bytes, metavar="SIZE",
                       help="stop if the process and its children use more memory than that; exit code 1 (Linux)")


def seconds_of(text: str) -> float:
    """The value of ``--time-limit``, in seconds.

    Raises:
      UsageError: it is not a positive duration.
    """
    seconds = parse_seconds(text)
    if not 0 < seconds <= MOST_SECONDS:
        raise UsageError(f"--time-limit {text} is not a positive duration", hint="write 90s, say")
    return seconds


def _bytes(text: str) -> int:
    if sys.platform != "linux":
        raise UsageError("--memory-limit needs Linux, where the memory of a process can be read", hint="leave it out")
    return parse_bytes(text)


def resident_bytes(process: int) -> int:
    """The memory that a process and its descendants hold, in bytes; 0 for one that is gone."""
    total, waiting, page = 0, [process], os.sysconf("SC_PAGE_SIZE")
    # Ends: a process is the child of one other process.
    while waiting:
        folder = Path("/proc") / str(waiting.pop())
        try:
            total += int((folder / "statm").read_text().split()[1]) * page
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError, IndexError):
            continue
    return total
