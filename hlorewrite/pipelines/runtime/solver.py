"""Whether the processes of a program plan transfers with the solver: the first one says, as extras may differ."""

from __future__ import annotations

from hlorewrite.errors import PlanError
from hlorewrite.jaxbridge.processes.agreement import Agreement
from hlorewrite.pipelines.reshard.exact import EFFORT_OF_A_RUN, solver_installed

_WITH, _WITHOUT = "ortools", "none"


def solver_effort(agreement: Agreement | None) -> float:
    """What the solver may do in one run, the same on every process: nothing where the first process lacks it.

    Args:
      agreement: of the processes that plan; None where this one plans alone.

    Returns:
      Deterministic seconds, for ``SolverBudget``.

    Raises:
      PlanError: the first process has the solver and this one lacks it, or the first one does not come.
    """
    if agreement is None:
        return EFFORT_OF_A_RUN
    said, why = agreement.first_says("solver", _WITH if solver_installed() else _WITHOUT)
    if said == _WITH and not solver_installed():
        first = agreement.members[0]
        why = agreement.refuse(f"it lacks ortools, with which process {first} plans transfers", "planning")
    if why:
        raise PlanError(why, hint="install the same extras on every process")
    return EFFORT_OF_A_RUN if said == _WITH else 0.0
