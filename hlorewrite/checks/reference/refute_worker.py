"""``refute`` in a separate process, because the interpreter may end its process: JSON request in, JSON answer out."""

import json
import subprocess
import sys
from dataclasses import asdict

from hlorewrite.checks.reference.pair_process import last_words, read_pair, run_on_pair
from hlorewrite.checks.reference.refute import DRAWS, Counterexample, Refutation, refute
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import Module
from hlorewrite.util.parent_process import end_with_parent


def refute_in_subprocess(before: Module, after: Module, *, seed: int = 0, draws: int = len(DRAWS),
                         seconds: float = 60.0) -> Refutation:
    """The same as ``refute`` in a separate process: if the interpreter ends that process, this one continues.

    Returns:
      The answer; with a reason and no draw if a module cannot be run, or the interpreter crashes or takes too long.
    """
    request, timeout_s = {"seed": seed, "draws": draws, "seconds": seconds}, 3 * seconds + 30
    try:
        done = run_on_pair(__name__, before, after, request, timeout_s)
    except subprocess.TimeoutExpired:
        return Refutation(None, 0, f"the interpreter takes longer than {timeout_s:.0f} s")
    if done.returncode != 0:
        return Refutation(None, 0, f"the interpreter crashed ({last_words(done)[:120]})")
    answer = json.loads(done.stdout)
    example = answer["example"]
    if example is not None:
        example = Counterexample(**{**example, "place": tuple(example["place"]), "inputs": tuple(example["inputs"])})
    return Refutation(example, answer["equal"], answer["reason"])


def main() -> int:
    """Answers one request on standard input."""
    request, before, after = read_pair()
    try:
        found = refute(before, after, seed=request["seed"], draws=request["draws"], seconds=request["seconds"])
    except CannotExecute as error:
        found = Refutation(None, 0, error.what)
    print(json.dumps(asdict(found)))
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main())
