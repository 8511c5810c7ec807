"""``refute`` in a process of its own, because the interpreter may end its process: JSON request in, JSON answer out."""

import io
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from hlorewrite.checks.reference.refute import DRAWS, Counterexample, Refutation, refute
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import Module, new_context, parse
from hlorewrite.util.parent_process import end_with_parent


def refute_in_subprocess(before: Module, after: Module, *, seed: int = 0, draws: int = len(DRAWS),
                         seconds: float = 60.0) -> Refutation:
    """The same as ``refute`` in a process of its own: if the interpreter ends the process, ours goes on.

    Returns:
      The answer; with a reason and no draw where a module cannot be run, or the interpreter crashes or takes too long.
    """
    with tempfile.TemporaryDirectory(prefix="hlorewrite-") as folder:
        for name, module in (("before", before), ("after", after)):
            out = io.BytesIO()
            module.operation.write_bytecode(file=out)
            (Path(folder) / name).write_bytes(out.getvalue())
        request = {"folder": folder, "seed": seed, "draws": draws, "seconds": seconds, "name": before.name}
        try:
            done = subprocess.run([sys.executable, "-m", __name__], input=json.dumps(request), capture_output=True,
                                  text=True, timeout=3 * seconds + 30, check=False)
        except subprocess.TimeoutExpired:
            return Refutation(None, 0, f"the interpreter takes longer than {3 * seconds + 30:.0f} s")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        return Refutation(None, 0, f"the interpreter crashed ({last[:120]})")
    answer = json.loads(done.stdout)
    example = answer["example"]
    if example is not None:
        example = Counterexample(**{**example, "place": tuple(example["place"]), "inputs": tuple(example["inputs"])})
    return Refutation(example, answer["equal"], answer["reason"])


def main() -> int:
    """Answers one request on standard input."""
    request = json.load(sys.stdin)
    context = new_context(allow_unregistered_dialects=True)  # the interpreter names the ops that it does not know
    before, after = (parse((Path(request["folder"]) / name).read_bytes(), name=request["name"], context=context,
                           allow_unregistered=True) for name in ("before", "after"))
    try:
        found = refute(before, after, seed=request["seed"], draws=request["draws"], seconds=request["seconds"])
    except CannotExecute as error:
        found = Refutation(None, 0, error.what)
    print(json.dumps(asdict(found)))
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main())
