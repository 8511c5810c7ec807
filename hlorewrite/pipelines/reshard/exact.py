"""The order and the senders of a small plan, solved to proof with CP-SAT (extra ``reshard``)."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from hlorewrite.pipelines.reshard.assign import make_items
from hlorewrite.pipelines.reshard.jobs import Jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.simulate import RoutedJob

MOST_JOBS = 80
EFFORT_OF_A_MODEL = 3.0
"""The solver's deterministic seconds for one model."""
EFFORT_OF_A_RUN = 10.0
"""The same for all models of a run: of one plan, or of all plans of a pass."""
_TICKS = 1_000_000


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Args:
      items: the jobs with the senders it chose.
      order: the order by start.
      proven: whether no other order and senders are faster, chunk and latency terms apart.
    """

    items: list[RoutedJob]
    order: list[int]
    proven: bool


@dataclass
class SolverBudget:
    """The solver's remaining limit in a run; deterministic, so that equal runs give equal plans.

    Attributes:
      left: deterministic seconds.

    Example:
      >>> budget = SolverBudget()
      >>> budget.take(4.0), budget.effort
      (None, 3.0)
    """

    left: float = EFFORT_OF_A_RUN

    @property
    def effort(self) -> float:
        """The limit of the next model; 0 when nothing is left."""
        return max(0.0, min(EFFORT_OF_A_MODEL, self.left))

    def take(self, spent: float) -> None:
        """Subtracts what a model has used."""
        self.left -= spent


def can_solve(jobs: Jobs, items: Sequence[RoutedJob]) -> bool:
    """Whether a plan is small enough for the solver, and not trivial."""
    return 2 <= len(jobs) <= MOST_JOBS and not jobs.gather.any() and sum(item.busy for item in items) > 0


def solver_installed() -> bool:
    """Whether the solver is installed."""
    return find_spec("ortools") is not None


def solve(jobs: Jobs, items: Sequence[RoutedJob], start: Sequence[float], network: Network,
          budget: SolverBudget | None = None) -> Solution | None:
    """Improves senders and order, or proves that they cannot be improved.

    Every job has an interval on the incoming port of each host it reaches, and an optional one on each port
    that could send it; intervals on a link do not overlap. One worker and a deterministic limit make the
    result repeatable.

    Args:
      jobs: the jobs; no gathers.
      items: the jobs with senders as a heuristic chose them.
      start: when the heuristic starts them, in seconds.
      network: the links.
      budget: what the run has left of the solver's deterministic time (roughly seconds); the time used is taken from
          it.

    Returns:
      The solution; None when the solver has none in time, or the plan is not for it.
    """
    budget = budget or SolverBudget()
    if not can_solve(jobs, items) or budget.effort <= 0:
        return None
    from ortools.sat.python import cp_model
    unit = sum(item.busy for item in items) / _TICKS
    length = [max(1, round(item.busy / unit)) if item.entry else 0 for item in items]
    hint = [min(sum(length), round(at / unit)) for at in start]
    model, begin, sends = _model(jobs, items, length, hint)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = budget.effort
    status = solver.solve(model)
    budget.take(solver.response_proto.deterministic_time)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    ports = [next((port for port, use in sends[j].items() if solver.value(use)), item.sender)
             for j, item in enumerate(items)]
    chosen = make_items(jobs, [(port, item.entry) for port, item in zip(ports, items, strict=True)], network)
    order = sorted(range(len(items)), key=lambda j: (solver.value(begin[j]), j))
    return Solution(chosen, order, status == cp_model.OPTIMAL)


def _model(jobs: Jobs, items: Sequence[RoutedJob], length: list[int], hint: list[int]
           ) -> tuple[Any, list[Any], list[Any]]:
    """The model, the start of each job, and per job whether each port sends it."""
    from ortools.sat.python import cp_model
    model, horizon = cp_model.CpModel(), sum(length)
    begin = [model.new_int_var(0, horizon, f"begin{j}") for j in range(len(items))]
    span = model.new_int_var(0, horizon, "span")
    on_link: dict[int, list[cp_model.IntervalVar]] = {}
    sends: list[dict[int, cp_model.IntVar]] = [{} for _ in items]
    for j, item in enumerate(items):
        model.add_hint(begin[j], hint[j])
        model.add(span >= begin[j] + length[j])
        if not item.entry:
            continue
        busy = model.new_fixed_size_interval_var(begin[j], length[j], f"busy{j}")
        for link in item.links[1:]:
            on_link.setdefault(link, []).append(busy)
        for port in jobs.senders[j]:
            use = sends[j][port] = model.new_bool_var(f"send{j}from{port}")
            model.add_hint(use, port == item.sender)
            on_link.setdefault(2 * port, []).append(
                model.new_optional_fixed_size_interval_var(begin[j], length[j], use, f"out{j}of{port}"))
        model.add_exactly_one(sends[j].values())
    for intervals in on_link.values():
        model.add_no_overlap(intervals)
    model.minimize(span)
    return model, begin, sends
