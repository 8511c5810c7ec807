"""``check`` in a process of its own, because the interpreter may end its process: JSON request in, JSON answer out."""

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.compare import Comparison
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import Module, new_context, parse
from hlorewrite.util.parent_process import end_with_parent

TIME_LIMIT_SECONDS = 600


def check_in_subprocess(before: Module, after: Module, *, seed: int = 0, tolerance: float | None = None,
                        functions: Sequence[str] | None = None) -> Comparison:
    """The same as ``check`` in a process of its own: if the interpreter ends the process, ours goes on.

    Raises:
      CannotExecute: something cannot be run, or the interpreter crashes or takes too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, module in (("before", before), ("after", after)):
            out = io.BytesIO()
            module.operation.write_bytecode(file=out)
            (Path(folder) / name).write_bytes(out.getvalue())
        request = {"folder": folder, "seed": seed, "tolerance": tolerance, "name": before.name,
                   "functions": functions}
        try:
            done = subprocess.run([sys.executable, "-m", __name__], input=json.dumps(request),
                                  capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise CannotExecute(f"the StableHLO interpreter takes longer than {TIME_LIMIT_SECONDS} s",
                                location=before.name, hint="use a smaller module, or --check=none") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise CannotExecute(f"the StableHLO interpreter crashed ({last})", location=before.name,
                            hint="use --check=none for this module")
    answer = json.loads(done.stdout)
    if "refusal" in answer:
        raise CannotExecute(answer["refusal"], location=answer["location"], hint=answer["hint"])
    return Comparison.from_json(done.stdout)


def main() -> int:
    """Answers one request on standard input."""
    request = json.load(sys.stdin)
    context = new_context(allow_unregistered_dialects=True)  # the interpreter names the ops that it does not know
    before, after = (parse((Path(request["folder"]) / name).read_bytes(), name=request["name"], context=context,
                           allow_unregistered=True) for name in ("before", "after"))
    try:
        print(check(before, after, seed=request["seed"], tolerance=request["tolerance"],
                    functions=request["functions"]).to_json())
    except CannotExecute as error:
        print(json.dumps({"refusal": error.what, "location": error.location, "hint": error.hint}))
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main())
