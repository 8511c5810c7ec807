"""When a process is aborted because process 0 is gone: one last line that says so.

The client of ``jax.distributed`` aborts its process (SIGABRT, from one of its threads) as soon as the connection to
the coordination service breaks, that is, when process 0 dies. A signal handler could not say why: one that runs Python
waits for the interpreter's lock, which the aborting thread may hold. So a small process, this file run as a program,
outlives the other: it reads from a pipe, and when the pipe ends it looks whether process 0 still answers. SIGABRT is
left alone: an abort ends the process at once, by that signal.
"""

import os
import socket
import subprocess
import sys
from contextlib import suppress

_LEAVE_S = 2.0


class LastWords:
    """Has a line printed on stderr if this process ends without ``farewell`` and process 0 is gone."""

    def __init__(self) -> None:
        self._speaker: subprocess.Popen[bytes] | None = None
        self._sentence = ""

    def begin(self, address: str | None) -> None:
        """Starts the process that prints the line; has no effect if none can be started.

        Args:
          address: ``HOST:PORT`` of the coordination service, which process 0 runs; None if it is not known.
        """
        if os.name != "posix" or not address or not sys.executable or getattr(sys, "frozen", False):
            return
        with suppress(OSError):
            self._speaker = subprocess.Popen([sys.executable, "-I", "-S", __file__, address], stdin=subprocess.PIPE,
                                             stdout=subprocess.DEVNULL, bufsize=0, start_new_session=True)
            os.register_at_fork(after_in_child=self._close)  # a fork that held the pipe open would keep it from ending

    def prepare(self, sentence: str) -> None:
        """Sets the last line; the latest call counts, and nothing is printed before the first."""
        if self._speaker is not None and self._speaker.stdin is not None and sentence != self._sentence:
            self._sentence = sentence
            with suppress(OSError, ValueError):  # it has ended, or has had its farewell
                self._speaker.stdin.write(f"{sentence}\n".encode())

    def farewell(self) -> None:
        """This process ends in order, or has said itself why not: nothing will be printed."""
        if self._speaker is not None:
            self.prepare("")
            self._close()
            with suppress(subprocess.TimeoutExpired):
                self._speaker.wait(_LEAVE_S)

    def _close(self) -> None:
        if self._speaker is not None and self._speaker.stdin is not None:
            self._speaker.stdin.close()


def answers(address: str, timeout_s: float = 1.0) -> bool:
    """Whether a process listens at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s):
            return True
    except (OSError, ValueError):
        return False


def _speak(address: str) -> None:
    """Waits for the end of the other process, and prints its last line if process 0 is gone.

    An empty line is the farewell, also where another thread has written after it.
    """
    sentences = sys.stdin.buffer.read().splitlines()
    if sentences and all(sentences) and not answers(address):
        os.write(2, b"hlorewrite: error: " + sentences[-1] + b"\n")


if __name__ == "__main__":
    _speak(sys.argv[1])
