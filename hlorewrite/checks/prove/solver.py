"""The one place that imports the solver: z3, an optional dependency."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hlorewrite.errors import UsageError
from hlorewrite.util.optional_dependencies import install

INSTALL = install("prove")
STEPS = 1_000_000
"""The solver's own steps for one attempt: answers do not depend on the machine. Questions of shipped rules take a tenth
of it."""
_SEEDS = 2


class NoSolver(UsageError):
    """z3 is not installed."""


def solver() -> Any:
    """The module ``z3``.

    Raises:
      NoSolver: the solver is not installed.
    """
    try:
        import z3
    except ImportError:
        raise NoSolver("no solver is installed, so nothing can be proved", hint=INSTALL) from None
    return z3


@dataclass(frozen=True)
class SolverAnswer:
    """The solver's verdict on a claim.

    Attributes:
      status: ``proved``, ``refuted`` or ``unknown``.
      model: for a refuted claim, the values that refute it, by name.
    """

    status: str
    model: dict[str, str]


def decide(claim: Any, premises: Iterable[Any] = (), steps: int = STEPS) -> SolverAnswer:
    """Whether a claim follows from premises.

    Args:
      claim: a formula of the solver.
      premises: what may be assumed.
      steps: the most steps of the solver to take in each of a few attempts.

    Returns:
      ``proved`` when no model of the premises makes the claim false, ``refuted`` with such a model, else ``unknown``.

    Example:
      >>> z3 = solver()
      >>> x, y = z3.BitVecs("x y", 8)
      >>> decide(x + y == y + x).status, decide(x < x + 1).model
      ('proved', {'x': '127'})
    """
    z3 = solver()
    formulas = [*premises, z3.Not(claim)]
    answer = _checked(z3.Solver(), formulas, steps)
    # What the solver was asked before changes the order in which it tries things: a question that is left open is asked
    # anew in contexts of its own, which know nothing of other questions.
    for seed in range(_SEEDS):
        if answer.status != "unknown":
            break
        context = z3.Context()
        attempt = z3.Solver(ctx=context)
        attempt.set("random_seed", seed)
        answer = _checked(attempt, [formula.translate(context) for formula in formulas], steps)
    return answer


def _checked(question: Any, formulas: Sequence[Any], steps: int) -> SolverAnswer:
    """One attempt at formulas of which the last is the claim's negation."""
    question.set("rlimit", steps)
    question.add(*formulas)
    answer = str(question.check())
    if answer == "unsat":
        return SolverAnswer("proved", {})
    if answer != "sat":
        return SolverAnswer("unknown", {})
    model = question.model()
    return SolverAnswer("refuted", {str(d): str(model[d]) for d in sorted(model.decls(), key=str) if d.arity() == 0})


def satisfiable(premises: Sequence[Any], steps: int = STEPS) -> bool | None:
    """Whether premises can hold together: a claim that follows from contradictions is worthless.

    Returns:
      True, False, or None when the solver does not know.
    """
    z3 = solver()
    question = z3.SimpleSolver()
    question.set("rlimit", steps)
    question.set("smt.ematching", False)  # models are found from the formulas, not by matching patterns
    question.add(*premises)
    answer = str(question.check())
    return None if answer == "unknown" else answer == "sat"
