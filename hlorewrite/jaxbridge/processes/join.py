"""Joining the processes of a pipeline: a roll call in front of ``jax.distributed.initialize``.

JAX's own call aborts the process, with a stack of C++ frames, when another process does not come in time. Here process
0 first listens at the coordinator's address and calls the roll; who is missing is named on every process that came.
"""

from __future__ import annotations

import socket
import sys
import time
from contextlib import closing
from types import TracebackType

import jax

from hlorewrite.errors import HlorewriteError, PlanError, UsageError
from hlorewrite.jaxbridge.processes.watch import end_process, told

_GO = "go"


def join(coordinator: str, processes: int, process: int, timeout_s: float = 60.0) -> None:
    """Joins the processes of a pipeline; like ``jax.distributed.initialize``, but it names who is missing.

    On CPU collectives between processes are gloo's.

    Args:
      coordinator: ``HOST:PORT`` of process 0.
      processes: how many there are.
      process: which one this is, from 0.
      timeout_s: how long to wait for the others, seconds.

    Raises:
      PlanError: a process did not come in time; the message names it.
      UsageError: the address or the numbers make no sense.
    """
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f'"{coordinator}" is no address', hint='write HOST:PORT, as "localhost:1234"')
    if not 0 <= process < processes:
        raise UsageError(f"process {process} of {processes}", hint=f"number them from 0 to {processes - 1}")
    tell_in_one_line()
    if processes > 1:
        missing = _call_roll(int(port), processes, timeout_s) if process == 0 else \
            _answer(host, int(port), process, timeout_s)
        if missing:
            many = "," in missing
            raise PlanError(f"process{'es' if many else ''} {missing} did not come within {timeout_s:g} s",
                            location=f"process {process}", hint="check that every process was started and reaches "
                                                                f"{coordinator}")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(coordinator, processes, process, initialization_timeout=max(1, round(timeout_s)))
    jax.devices()  # the runtime waits for all processes here; now everybody is known to be on the way


def tell_in_one_line() -> None:
    """From now on an error of the project that nobody catches is one line, and ends the process with exit code 1.

    At once: an ordinary exit would wait for processes that may never come.
    """
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, HlorewriteError):
            end_process(told(error))
        before(kind, error, trace)

    sys.excepthook = hook


def _call_roll(port: int, processes: int, timeout_s: float) -> str:
    """Waits for everybody and tells them the result; returns who is missing."""
    deadline = time.monotonic() + timeout_s
    came: dict[int, socket.socket] = {}
    with closing(socket.create_server(("", port), backlog=processes)) as server:
        # Ends: at the deadline.
        while len(came) < processes - 1 and (left := deadline - time.monotonic()) > 0:
            server.settimeout(left)
            try:
                connection, _ = server.accept()
                connection.settimeout(max(deadline - time.monotonic(), 0.1))
                came[int(connection.recv(16).decode())] = connection
            except (OSError, ValueError):
                continue
    missing = ", ".join(str(each) for each in range(1, processes) if each not in came)
    for connection in came.values():
        with closing(connection):
            connection.settimeout(5.0)
            try:
                connection.sendall((missing or _GO).encode())
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)  # the other side closes first, so that the port is free for JAX at once
            except OSError:
                continue
    return missing


def _answer(host: str, port: int, process: int, timeout_s: float) -> str:
    """Answers the roll call; returns who is missing."""
    deadline = time.monotonic() + timeout_s
    # Ends: at the deadline.
    while (left := deadline - time.monotonic()) > 0:
        try:
            with closing(socket.create_connection((host, port), min(left, 5.0))) as connection:
                connection.sendall(str(process).encode())
                connection.settimeout(deadline - time.monotonic() + 5.0)
                said = connection.recv(65536).decode()
                if said:
                    return "" if said == _GO else said
        except OSError:
            pass
        time.sleep(0.1)
    return "0"
