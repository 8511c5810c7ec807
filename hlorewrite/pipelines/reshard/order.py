"""The order in which jobs run: the open-shop problem with multicast jobs.

Without preemption it is NP-hard. Each heuristic here is deterministic, and its distance from the optimum is
measured against the lower bound of ``bounds.py``; CP-SAT closes the remaining gap on small plans.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from hlorewrite.pipelines.reshard.assign import make_items
from hlorewrite.pipelines.reshard.jobs import Jobs
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.simulate import RoutedJob, run

_DISPATCH_WORK = 6_000_000
_TRIALS = 24


def makespan(items: Sequence[RoutedJob], order: Sequence[int], ports: int) -> float:
    """When the last job ends."""
    return float(run(items, order, ports)[1].max(initial=0.0))


def by_size(items: Sequence[RoutedJob]) -> list[int]:
    """Longest jobs first, but each after the jobs that it waits for."""
    return sorted(range(len(items)), key=lambda i: (_depth(items, i), -items[i].busy, i))


def _depth(items: Sequence[RoutedJob], i: int) -> int:
    return 1 if items[i].after else 0


def dispatch(items: Sequence[RoutedJob], ports: int, noise: np.ndarray | None = None) -> list[int]:
    """List scheduling: the next job is the one that can start earliest, and among several such jobs the one with the
    busiest link.

    Args:
      items: the jobs.
      ports: number of NIC ports.
      noise: factor on each link's load in the choice, shape ``[2·ports]``.

    Returns:
      The order.
    """
    count, width = len(items), max((len(item.links) for item in items), default=0)
    links = np.full((count, max(width, 1)), 2 * ports)
    offset = np.zeros(links.shape)
    busy = np.array([item.busy for item in items])
    load = np.zeros(2 * ports + 1)
    for i, item in enumerate(items):
        links[i, :len(item.links)] = item.links
        offset[i, :len(item.links)] = np.array(item.steps) * item.hop
        load[list(item.links)] += item.busy
    free = np.zeros(2 * ports + 1)
    free[-1] = -np.inf
    scale = np.ones(2 * ports + 1) if noise is None else np.append(noise, 1.0)
    ready = np.array([np.inf if item.after else 0.0 for item in items])
    waiting = {i: set(item.after) for i, item in enumerate(items) if item.after}
    left, end, order = np.ones(count, bool), np.zeros(count), []
    for _ in range(count):
        at = np.maximum(np.maximum((free[links] - offset).max(axis=1), ready), 0.0)
        at[~left] = np.inf
        first = at.min()
        rows = np.flatnonzero(at <= first * (1 + 1e-12))
        pick = int(rows[np.argmax(((load * scale)[links[rows]]).max(axis=1))])
        left[pick] = False
        order.append(pick)
        free[links[pick]] = at[pick] + offset[pick] + busy[pick]
        free[-1] = -np.inf
        load[links[pick]] -= busy[pick]
        end[pick] = at[pick] + items[pick].done
        _release(pick, waiting, ready, end, items)
    return order


def _release(done: int, waiting: dict[int, set[int]], ready: np.ndarray, end: np.ndarray,
             items: Sequence[RoutedJob]) -> None:
    """Makes ready the jobs that waited only for it."""
    for i in [i for i, before in waiting.items() if done in before]:
        waiting[i].discard(done)
        if not waiting[i]:
            ready[i] = end[list(items[i].after)].max()
            del waiting[i]


def rotation_levels(sender: np.ndarray, receiver: np.ndarray) -> np.ndarray:
    """Levels of a round robin: in level k, sender i serves receiver i + k.

    With equal jobs between all pairs every level is a perfect matching, and no link is ever idle.

    Args:
      sender: the one port each job leaves from, shape ``[jobs]``.
      receiver: the one port it arrives at, shape ``[jobs]``.

    Returns:
      The level of each job, such that jobs of a level share no link.

    Example:
      >>> rotation_levels(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3])).tolist()
      [0, 1, 1, 0]
    """
    s, senders = _positions(sender)
    r, receivers = _positions(receiver)
    span = max(senders, receivers)
    level, pair = (r - s) % span, s * receivers + r
    if np.bincount(pair).max(initial=0) <= 1:
        return level
    order = np.argsort(pair, kind="stable")
    ordered = pair[order]
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    begin = np.maximum.accumulate(np.where(fresh, np.arange(len(pair)), 0))
    turn = np.empty(len(pair), np.int64)
    turn[order] = np.arange(len(pair)) - begin
    return level + turn * span


def matching_levels(sender: np.ndarray, receiver: np.ndarray) -> np.ndarray:
    """Levels of jobs between any ports: as many as the busiest port has jobs.

    Jobs are the edges of a bipartite graph, levels their colours. If the sender is free in level a and the receiver in
    level b, the jobs on the receiver's alternating path of levels a and b swap levels.

    Args:
      sender: the one port each job leaves from, shape ``[jobs]``.
      receiver: the one port it arrives at, shape ``[jobs]``.

    Returns:
      The level of each job, such that jobs of a level share no link.

    Source: D. Konig's theorem on the edge colouring of bipartite graphs (1916).

    Example:
      >>> matching_levels(np.array([0, 0, 1, 1, 2]), np.array([3, 4, 3, 5, 4])).tolist()
      [0, 1, 1, 0, 0]
    """
    sides = (sender.tolist(), receiver.tolist())
    at: tuple[dict[int, dict[int, int]], ...] = ({port: {} for port in sides[0]}, {port: {} for port in sides[1]})
    level: list[int] = []
    for job, ends in enumerate(zip(*sides, strict=True)):
        here, there = (next(k for k in itertools.count() if k not in at[side][end]) for side, end in enumerate(ends))
        side, port, path, wanted = 1, ends[1], list[int](), here
        # Ends: the path uses each job once, and never reaches the sender, where the first level is free.
        while wanted in at[side][port]:
            path.append(at[side][port][wanted])
            side, wanted = 1 - side, here + there - wanted
            port = sides[side][path[-1]]
        for each in path:
            for side in (0, 1):
                del at[side][sides[side][each]][level[each]]
        for each in path:
            level[each] = here + there - level[each]
        level.append(here)
        for each in (*path, job):
            for side in (0, 1):
                at[side][sides[side][each]][level[each]] = each
    return np.array(level, np.int64)


def _positions(ports: np.ndarray) -> tuple[np.ndarray, int]:
    """Ports renumbered without holes, and how many there are."""
    used = np.flatnonzero(np.bincount(ports))
    number = np.zeros(int(ports.max(initial=0)) + 1, np.int64)
    number[used] = np.arange(len(used))
    return number[ports], len(used)


def heuristic(items: Sequence[RoutedJob], ports: int, good: float) -> list[int]:
    """The best order that several heuristics find.

    Args:
      items: the jobs.
      ports: number of NIC ports.
      good: a makespan that is good enough to stop at.

    Returns:
      The order.
    """
    orders = [sorted(range(len(items)), key=lambda i: _depth(items, i)), by_size(items)]
    if all(len(item.entry) == 1 and not item.after for item in items):
        ends = (np.array([item.sender for item in items], np.int64),
                np.array([item.entry[0] for item in items], np.int64))
        orders += [np.argsort(levels(*ends), kind="stable").tolist() for levels in (rotation_levels, matching_levels)]
    scored = [(makespan(items, order, ports), order) for order in orders]
    width = max((len(item.links) for item in items), default=0)
    work = len(items) ** 2 * width
    if min(s for s, _ in scored) > good and work <= _DISPATCH_WORK:
        scored.append(_scored(items, ports, dispatch(items, ports)))
    rng = np.random.default_rng(0)
    for _ in range(_TRIALS if work * _TRIALS <= _DISPATCH_WORK else 0):
        if min(s for s, _ in scored) <= good:
            break
        scored.append(_scored(items, ports, dispatch(items, ports, rng.uniform(0.5, 1.5, 2 * ports))))
    return min(scored, key=lambda pair: pair[0])[1]


def _scored(items: Sequence[RoutedJob], ports: int, order: list[int]) -> tuple[float, list[int]]:
    return makespan(items, order, ports), order


# ---- the order and the senders of a small plan, solved to proof with CP-SAT (extra ``reshard``)


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
