"""The process that measures choices for ``hlorewrite tune``, so a compilation can be ended when the time is up.

Each request and each answer is a line of JSON, on standard input and output. A compilation of XLA cannot be stopped, so
the process is killed. XLA's temporary files are in a folder of the search, which removes them.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hlorewrite.errors import TRACEBACK_VARIABLE, HlorewriteError, UsageError
from hlorewrite.tune.choice import TuneChoice, TunePoint
from hlorewrite.util.parent_process import end_with_parent

_ERRORS = {kind.exit_code: kind for kind in (HlorewriteError, UsageError)}
_CHUNK = 1 << 16
_CLOSES_S = 1.0


class MeasuringEnded(HlorewriteError):
    """The process ended without an answer: XLA crashed, or memory ran out."""


@dataclass
class TuneProcess:
    """Measures choices in another process, which is started when it is first needed. Use it as a context manager.

    Args:
      content: the module as it was read.
      name: the name of its file, for messages.
      target: described GPUs, such as ``h200:4x8``.
      ends: when the time is up, by ``time.monotonic``; None for no limit.
    """

    content: bytes
    name: str
    target: str
    ends: float | None = None
    command: tuple[str, ...] = (sys.executable, "-m", __name__)
    """The program that answers requests; its arguments are the module's path, its name and the target."""
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _folder: tempfile.TemporaryDirectory[str] = field(init=False)

    def __post_init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hlorewrite-tune-")
        (Path(self._folder.name) / "module").write_bytes(self.content)

    def __enter__(self) -> TuneProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.ends is not None and time.monotonic() >= self.ends

    def check(self) -> None:
        """Starts the process, which reads the module and finds the devices.

        Raises:
          HlorewriteError: the target is not a description of GPUs, or has other devices than the step.
        """
        self._ask({"begin": True}, limited=False)

    def measured(self, choice: TuneChoice) -> TunePoint | None:
        """The figures of a choice; None when the time is up.

        Raises:
          MeasuringEnded: the process crashed.
        """
        answer = self._ask({"measure": choice.as_json()})
        return None if answer is None else TunePoint.from_json(answer["point"])

    def finished(self, point: TunePoint) -> TunePoint | None:
        """A point compiled to the end, with its compile time; None when the time is up.

        Raises:
          HlorewriteError: XLA does not generate its code.
        """
        answer = self._ask({"finish": point.as_json()})
        return None if answer is None else TunePoint.from_json(answer["point"])

    def plan(self, choice: TuneChoice, *, limited: bool = True) -> str | None:
        """The content of a plan file that replays a choice; None when the time is up.

        Raises:
          HlorewriteError: the choice cannot be kept in a plan.
        """
        answer = self._ask({"plan": choice.as_json()}, limited=limited)
        return None if answer is None else str(answer["plan"])

    def _ask(self, request: dict[str, Any], *, limited: bool = True) -> dict[str, Any] | None:
        if limited and self.over:
            return None
        process = self._started()
        line = self._said(process, request, self.ends if limited else None)
        if line is None:
            self._end()
            return None
        if not line.endswith(b"\n"):
            raise MeasuringEnded(_how_it_ended(self._end(_CLOSES_S)), location=self.name,
                                 hint="compile the step without hlorewrite to see XLA's message")
        answer = json.loads(line)
        if "refused" in answer:
            error = answer["refused"]
            raise _ERRORS[error["code"]](error["what"], location=error["location"], hint=error["hint"])
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            folder = self._folder.name
            self._process = subprocess.Popen(
                [*self.command, os.path.join(folder, "module"), self.name, self.target],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": folder},
                stderr=None if os.environ.get(TRACEBACK_VARIABLE) else subprocess.DEVNULL,
                start_new_session=True)  # Ctrl-C in the terminal is for the search, which ends this process
        return self._process

    def _said(self, process: subprocess.Popen[bytes], request: dict[str, Any], until: float | None) -> bytes | None:
        """The answer to a request; None when the time is up, and no whole line if the process ended."""
        assert process.stdin is not None and process.stdout is not None
        said = b""
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return said
        # Ends: with a whole line, with the process, or when the time is over.
        while not said.endswith(b"\n"):
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([process.stdout], [], [], left)[0]:
                return None
            more = os.read(process.stdout.fileno(), _CHUNK)
            if not more:
                break
            said += more
        return said

    def _end(self, grace_s: float = 0.0) -> int:
        """Ends the process, after a grace period to end by itself; its exit status, negative for a signal."""
        process, self._process = self._process, None
        if process is None:
            return 0
        try:
            status = process.wait(grace_s)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return status


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"XLA's process ended with exit code {status}"
    return f"XLA's process was ended by {signal.Signals(-status).name}"


def _answer(line: str, measurer: Any) -> dict[str, Any]:
    request = json.loads(line)
    try:
        if "measure" in request:
            return {"point": measurer.measure(TuneChoice.from_json(request["measure"])).as_json()}
        if "finish" in request:
            return {"point": measurer.finished(TunePoint.from_json(request["finish"])).as_json()}
        if "plan" in request:
            return {"plan": measurer.plan(TuneChoice.from_json(request["plan"]))}
        return {}
    except HlorewriteError as error:
        return _refused(error)


def _refused(error: HlorewriteError) -> dict[str, Any]:
    return {"refused": {"code": error.exit_code, "what": error.what, "location": error.location, "hint": error.hint}}


def main(path: str, name: str, target: str) -> int:
    """Answers requests on standard input until it is closed.

    Args:
      path: the module's path.
      name: the module's name, for messages.
      target: described GPUs.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what XLA prints is not an answer
    from hlorewrite.ir.load import parse
    from hlorewrite.jaxbridge.choose.tuned import TuneMeasurer
    measurer: TuneMeasurer | HlorewriteError
    try:
        measurer = TuneMeasurer(parse(Path(path).read_bytes(), name=name), target)
    except HlorewriteError as error:
        measurer = error
    for line in sys.stdin:
        answer = _refused(measurer) if isinstance(measurer, HlorewriteError) else _answer(line, measurer)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(*sys.argv[1:]))
