"""The process in which ``check_in_subprocess`` runs the interpreter: a JSON request in, a JSON answer out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hlorewrite.ir.context import new_context
from hlorewrite.ir.load import parse
from hlorewrite.oracle.check import check
from hlorewrite.oracle.errors import CannotExecute


def main() -> int:
    """Answers one request on standard input."""
    request = json.load(sys.stdin)
    context = new_context()
    before, after = (parse((Path(request["folder"]) / name).read_bytes(), name=request["name"], context=context)
                     for name in ("before", "after"))
    try:
        print(check(before, after, seed=request["seed"], tolerance=request["tolerance"]).to_json())
    except CannotExecute as error:
        print(json.dumps({"refusal": error.what, "location": error.location, "hint": error.hint}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
