"""A Python process that executes the blocks of one page, one after the other, in one namespace."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
import traceback
from pathlib import Path


class PythonSession:
    """Starts the process with the first block; use it as a context manager.

    Args:
      folder: where it runs.
      environment: its environment variables; ``python`` is what their ``PATH`` finds first.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> PythonSession:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()

    def run(self, code: str, place: str) -> tuple[str, str]:
        """Executes code.

        Args:
          code: Python.
          place: where it stands, for tracebacks.

        Returns:
          What it printed, and its traceback; the second is empty when all went well.
        """
        if self._process is None:
            python = shutil.which("python", path=self._environment["PATH"]) or sys.executable
            self._process = subprocess.Popen([python, __file__], cwd=self._folder, env=self._environment,
                                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([code, place]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        return tuple(json.loads(answer)) if answer else ("", f"the process ended with code {self._process.wait()}")


def serve() -> None:
    """Answers each line of standard input: executes the code in it, reports what it printed and how it failed."""
    names: dict[str, object] = {"__name__": "__main__"}
    answers = sys.stdout
    for line in sys.stdin:
        code, place = json.loads(line)
        printed, error = io.StringIO(), ""
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(code, place, "exec"), names)
            except BaseException:
                error = traceback.format_exc()
        answers.write(json.dumps([printed.getvalue(), error]) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
