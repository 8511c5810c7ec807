"""``check`` in a separate process, because the interpreter may end its process: JSON request in, JSON answer out."""

import json
import subprocess
import sys
from collections.abc import Sequence

from hlorewrite.checks.reference.check import Comparison, check
from hlorewrite.checks.reference.pair_process import last_words, read_pair, run_on_pair
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import Module
from hlorewrite.util.parent_process import end_with_parent

TIME_LIMIT_SECONDS = 600


def check_in_subprocess(before: Module, after: Module, *, seed: int = 0, tolerance: float | None = None,
                        functions: Sequence[str] | None = None) -> Comparison:
    """The same as ``check`` in a separate process: if the interpreter ends that process, this one continues.

    Raises:
      CannotExecute: something cannot be run, or the interpreter crashes or takes too long.
    """
    request = {"seed": seed, "tolerance": tolerance, "functions": functions}
    try:
        done = run_on_pair(__name__, before, after, request, TIME_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        raise CannotExecute(f"the StableHLO interpreter takes longer than {TIME_LIMIT_SECONDS} s",
                            location=before.name, hint="use a smaller module, or --check=none") from None
    if done.returncode != 0:
        raise CannotExecute(f"the StableHLO interpreter crashed ({last_words(done)})", location=before.name,
                            hint="use --check=none for this module")
    answer = json.loads(done.stdout)
    if "refusal" in answer:
        raise CannotExecute(answer["refusal"], location=answer["location"], hint=answer["hint"])
    return Comparison.from_json(done.stdout)


def main() -> int:
    """Answers one request on standard input."""
    request, before, after = read_pair()
    try:
        print(check(before, after, seed=request["seed"], tolerance=request["tolerance"],
                    functions=request["functions"]).to_json())
    except CannotExecute as error:
        print(json.dumps({"refusal": error.what, "location": error.location, "hint": error.hint}))
    return 0


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main())
