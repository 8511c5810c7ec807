"""Joining the processes of a pipeline: a roll call before ``jax.distributed.initialize``.

JAX's own call aborts the process, with a stack of C++ frames, when another process does not arrive in time. Here
process 0 first listens at the coordinator's address and calls the roll; who is missing is named on every process that
arrived.

Each process shows that it has the job's token, without sending it: the server sends a random challenge, and both sides
answer with a digest of challenge, token and what they say. A connection that says nothing or has another token is not
counted, and delays no other. Without a token, which the loopback address allows, both sides must be of one user, as far
as the system says whose a connection is (Linux does).
"""

import hashlib
import hmac
import ipaddress
import os
import queue
import socket
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import jax

from hlorewrite.errors import HlorewriteError, PlanError, UsageError
from hlorewrite.jaxbridge.processes.liveness import NAMED_S
from hlorewrite.jaxbridge.processes.notes import end_process, one_line, print_note
from hlorewrite.jaxbridge.processes.store import TIMEOUT_S

TOKEN_VARIABLE = "HLOREWRITE_TOKEN"
"""Environment variable with the token of a job; the same on all its processes, and known to no other process."""
_GO, _WAIT = "go", "wait"
_LINE = 4096
_ANSWER_S = 10.0
_SOCKETS = ("/proc/net/tcp", "/proc/net/tcp6")


def join(coordinator: str, processes: int, process: int, timeout_s: float = TIMEOUT_S, token: str = "") -> None:
    """Joins the processes of a pipeline; like ``jax.distributed.initialize``, but it names who is missing.

    On CPU collectives between processes are gloo's. Process 0 listens on the given address only.

    Args:
      coordinator: ``HOST:PORT`` of process 0, a name or an address of its own machine.
      processes: how many there are.
      process: which one this is, from 0.
      timeout_s: how long to wait for the others, seconds; who is missing is named after seven.
      token: a secret of the job, the same everywhere; by default that of the environment variable ``HLOREWRITE_TOKEN``.
        Addresses other than the loopback's need one.

    Raises:
      PlanError: a process did not arrive in time, or the address is not one of this machine; the message says which.
      UsageError: the address or a number is invalid, or the token is missing.
    """
    host, _, port = coordinator.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise UsageError(f'"{coordinator}" is not an address', hint='write HOST:PORT, as "localhost:1234"')
    if not 0 <= process < processes:
        raise UsageError(f"process {process} of {processes}", hint=f"number them from 0 to {processes - 1}")
    secret = (token or os.environ.get(TOKEN_VARIABLE, "")).encode()
    if not secret and processes > 1 and not _is_loopback(host):
        raise UsageError(f"{coordinator} can be reached from other machines, but the job has no token",
                         hint=f"set {TOKEN_VARIABLE} to the same random text on every process")
    tell_in_one_line()
    if processes > 1:
        missing = _RollCall(host, int(port), processes, timeout_s, secret).run() if process == 0 else \
            _answer(host, int(port), process, timeout_s, secret)
        if missing:
            many = "," in missing
            raise PlanError(f"process{'es' if many else ''} {missing} did not arrive within {timeout_s:g} s",
                            location=f"process {process}", hint="check that every process was started with the same "
                                                                f"token and reaches {coordinator}")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(coordinator, processes, process, coordinator_bind_address=f"{_bracketed(host)}:{port}",
                               initialization_timeout=max(1, round(timeout_s)))
    jax.devices()  # the runtime waits for all processes here; now all processes are known to be on the way


def tell_in_one_line() -> None:
    """From now on an uncaught error of the project is one line, and ends the process with exit code 1.

    At once: an ordinary exit would wait for processes that may never come.
    """
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, HlorewriteError):
            end_process(one_line(error))
        before(kind, error, trace)

    sys.excepthook = hook


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(socket.gethostbyname(host) if ":" not in host else host).is_loopback
    except (OSError, ValueError):
        return False


def _proof(secret: bytes, challenge: str, text: str) -> str:
    """What shows that the sender of a text has the token."""
    return hmac.new(secret, f"{challenge} {text}".encode(), hashlib.sha256).hexdigest()


class _RollCall:
    """Process 0's side: a thread for each connection, so that a silent one keeps no other waiting."""

    def __init__(self, host: str, port: int, processes: int, timeout_s: float, secret: bytes) -> None:
        self.host, self.port, self.processes, self.secret = host, port, processes, secret
        self.begin, self.timeout_s = time.monotonic(), timeout_s
        self.came: dict[int, tuple[socket.socket, str]] = {}
        self.over = threading.Event()
        self.arrivals: queue.Queue[tuple[int, socket.socket, str]] = queue.Queue()

    def run(self) -> str:
        """Waits for all processes and sends them the result; returns who is missing."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            server = socket.create_server((self.host, self.port), family=family, backlog=max(16, self.processes))
        except OSError as error:
            raise PlanError(f"process 0 cannot listen at {self.host}:{self.port} ({os.strerror(error.errno or 0)})",
                            hint="name an address of the machine of process 0, and a free port") from None
        with closing(server):
            server.settimeout(0.1)
            thread = threading.Thread(target=self._accept, args=(server,), daemon=True)
            thread.start()
            try:
                self._wait()
            finally:
                self.over.set()
                thread.join()  # a thread in accept would keep the port
        missing = self._missing()
        for connection, challenge in self.came.values():
            self._say(connection, challenge, missing or _GO)
            with suppress(OSError), closing(connection):
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(5.0)
                connection.recv(1)  # the other side closes first, so that the port is free for JAX at once
        return missing

    def _wait(self) -> None:
        named = self.begin + NAMED_S
        # Ends: when all have come, or at the deadline.
        while len(self.came) < self.processes - 1 and (now := time.monotonic()) < self.begin + self.timeout_s:
            with suppress(queue.Empty):
                number, connection, challenge = self.arrivals.get(timeout=min(0.5, self.begin + self.timeout_s - now))
                if number in self.came:
                    self.came.pop(number)[0].close()
                self.came[number] = connection, challenge
            if time.monotonic() > named and (missing := self._missing()):
                named = float("inf")
                print_note(f"process 0 waits for {missing}, which has not arrived yet")
                for peer, challenge in self.came.values():
                    self._say(peer, challenge, f"{_WAIT} {missing}")

    def _missing(self) -> str:
        return ", ".join(str(each) for each in range(1, self.processes) if each not in self.came)

    def _accept(self, server: socket.socket) -> None:
        # Ends: when the roll was called.
        while not self.over.is_set():
            try:
                connection, _ = server.accept()
            except OSError:  # no process connected in a tenth of a second
                continue
            threading.Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: socket.socket) -> None:
        challenge = os.urandom(16).hex()
        try:
            connection.settimeout(_ANSWER_S)
            if not self.secret and is_of_others(connection):
                raise ValueError("another user's")
            connection.sendall(f"{challenge}\n".encode())
            number, _, proof = _line(connection).partition(" ")
            right = hmac.compare_digest(proof, _proof(self.secret, challenge, number))
            if right and number.isdecimal() and 0 < int(number) < self.processes:
                self.arrivals.put((int(number), connection, challenge))
                return
        except (OSError, ValueError):
            pass
        connection.close()

    def _say(self, connection: socket.socket, challenge: str, text: str) -> None:
        with suppress(OSError):
            connection.sendall(f"{_proof(self.secret, challenge, text)} {text}\n".encode())


def is_of_others(connection: socket.socket, uid: int | None = None) -> bool:
    """Whether the other end of a connection within this machine is known to be another user's; root counts as this one.

    Args:
      connection: it is connected.
      uid: the user to compare with; by default that of this process.
    """
    here, there = connection.getsockname(), connection.getpeername()
    wanted = (_proc_address(there), _proc_address(here))
    own = os.getuid() if uid is None and hasattr(os, "getuid") else uid
    for table in _SOCKETS:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if (fields[1], fields[2]) == wanted:
                    return int(fields[7]) not in (own, 0)
    return False


def _proc_address(address: tuple[Any, ...]) -> str:
    """An address as ``/proc/net/tcp`` writes it: words in the byte order of this machine."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, address[0])
    words = [packed[at:at + 4] for at in range(0, len(packed), 4)]
    swapped = [word[::-1] if sys.byteorder == "little" else word for word in words]
    return f"{b''.join(swapped).hex().upper()}:{address[1]:04X}"


def _line(connection: socket.socket) -> str:
    """One line of a peer.

    Raises:
      OSError: it does not arrive in time, or is too long.
    """
    text = b""
    # Ends: at the line's end, or when it is too long.
    while not text.endswith(b"\n"):
        part = connection.recv(1)
        if not part or len(text) > _LINE:
            raise OSError("no whole line")
        text += part
    return text[:-1].decode()


def _answer(host: str, port: int, process: int, timeout_s: float, secret: bytes) -> str:
    """Answers the roll call; returns who is missing."""
    begin, named = time.monotonic(), False
    # Ends: at the deadline.
    while (left := begin + timeout_s - time.monotonic()) > 0:
        try:
            with closing(socket.create_connection((host, port), min(left, 5.0))) as connection:
                if not secret and is_of_others(connection):
                    raise ValueError("another user's")
                challenge = _line(connection)
                connection.sendall(f"{process} {_proof(secret, challenge, str(process))}\n".encode())
                connection.settimeout(left + 5.0)
                # Ends: with the result, or when the connection does.
                while True:
                    proof, _, said = _line(connection).partition(" ")
                    if not hmac.compare_digest(proof, _proof(secret, challenge, said)):
                        break
                    if not said.startswith(f"{_WAIT} "):
                        return "" if said == _GO else said
                    print_note(f"process {process} waits for {said[len(_WAIT) + 1:]}, which has not arrived yet")
        except (OSError, ValueError):
            pass
        if not named and time.monotonic() - begin > NAMED_S:
            named = True
            print_note(f"process {process} waits for process 0, which does not answer at {host}:{port}")
        time.sleep(0.1)
    return "0"
