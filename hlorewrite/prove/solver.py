"""The one place that imports the solver: z3, an optional dependency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hlorewrite.errors import UsageError

INSTALL = "pip install 'hlorewrite[prove]'"
TIMEOUT_MS = 10_000
"""Per question; every shipped one takes less than a tenth of it."""


class NoSolver(UsageError):
    """z3 is not installed."""


def solver() -> Any:
    """The module ``z3``.

    Raises:
      NoSolver: it is not installed.
    """
    try:
        import z3
    except ImportError:
        raise NoSolver("no solver is installed, so nothing can be proved", hint=INSTALL) from None
    return z3


@dataclass(frozen=True)
class SolverAnswer:
    """What the solver says about a claim.

    Attributes:
      status: ``proved``, ``refuted`` or ``unknown``.
      model: for a refuted claim, the values that refute it, by name.
    """

    status: str
    model: dict[str, str]


def decide(claim: Any, premises: Iterable[Any] = (), timeout_ms: int = TIMEOUT_MS) -> SolverAnswer:
    """Whether a claim follows from premises.

    Args:
      claim: a formula of the solver.
      premises: what may be assumed.
      timeout_ms: the most time to take.

    Returns:
      ``proved`` when no model of the premises makes the claim false, ``refuted`` with such a model, else ``unknown``.

    Example:
      >>> z3 = solver()
      >>> x, y = z3.BitVecs("x y", 8)
      >>> decide(x + y == y + x).status, decide(x < x + 1).model
      ('proved', {'x': '127'})
    """
    z3 = solver()
    question = z3.Solver()
    question.set("timeout", timeout_ms)
    question.add(*premises)
    question.add(z3.Not(claim))
    answer = str(question.check())
    if answer == "unsat":
        return SolverAnswer("proved", {})
    if answer != "sat":
        return SolverAnswer("unknown", {})
    model = question.model()
    return SolverAnswer("refuted", {str(d): str(model[d]) for d in sorted(model.decls(), key=str) if d.arity() == 0})


def satisfiable(premises: Sequence[Any], timeout_ms: int = TIMEOUT_MS) -> bool | None:
    """Whether premises can hold together: a claim that follows from contradictions says nothing.

    Returns:
      True, False, or None when the solver does not know.
    """
    z3 = solver()
    question = z3.SimpleSolver()
    question.set("timeout", timeout_ms)
    question.set("smt.ematching", False)  # models are found from the formulas, not by matching patterns
    question.add(*premises)
    answer = str(question.check())
    return None if answer == "unknown" else answer == "sat"
