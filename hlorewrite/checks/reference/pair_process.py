"""Hands two modules to another process, because the interpreter may end its process: JSON in, the answer out."""

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hlorewrite.ir import Module, new_context, parse


def run_on_pair(worker: str, before: Module, after: Module, request: Mapping[str, Any], timeout_s: float
                ) -> subprocess.CompletedProcess[str]:
    """Runs a Python module that reads the request and the pair with ``read_pair``.

    Args:
      worker: the name of the module.
      before: the original.
      after: the other module.
      request: what else the worker reads.
      timeout_s: how long it may take.

    Raises:
      subprocess.TimeoutExpired: it takes longer.
    """
    with tempfile.TemporaryDirectory(prefix="hlorewrite-") as folder:
        for name, module in (("before", before), ("after", after)):
            out = io.BytesIO()
            module.operation.write_bytecode(file=out)
            (Path(folder) / name).write_bytes(out.getvalue())
        asked = json.dumps({**request, "folder": folder, "name": before.name})
        return subprocess.run([sys.executable, "-m", worker], input=asked, capture_output=True, text=True,
                              timeout=timeout_s, check=False)


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The last line that a process wrote before it ended."""
    return (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]


def read_pair() -> tuple[dict[str, Any], Module, Module]:
    """The request on standard input, the original, and the other module."""
    request = json.load(sys.stdin)
    context = new_context(allow_unregistered_dialects=True)  # the interpreter names the ops that it does not know
    before, after = (parse((Path(request["folder"]) / name).read_bytes(), name=request["name"], context=context,
                           allow_unregistered=True) for name in ("before", "after"))
    return request, before, after
