"""Plans a resharding: strategy, senders, order, times, and the proof of how good they are."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from hlorewrite.errors import PlanError, UsageError, did_you_mean
from hlorewrite.pipelines.reshard.assign import first_senders, least_loaded, timed
from hlorewrite.pipelines.reshard.bounds import leaving_time, lower_bound, ports_time
from hlorewrite.pipelines.reshard.jobs import Jobs, bundled_jobs, single_jobs
from hlorewrite.pipelines.reshard.layout import Layout
from hlorewrite.pipelines.reshard.messages import by_ports, messages_of_ports, places_of, rechunked
from hlorewrite.pipelines.reshard.network import Network
from hlorewrite.pipelines.reshard.order import SolverBudget, by_size, can_solve, heuristic, solve, solver_installed
from hlorewrite.pipelines.reshard.schedule import TransferSchedule, of_items, rotated, row_times, sending_devices
from hlorewrite.pipelines.reshard.tasks import UnitTasks, unit_tasks
from hlorewrite.pipelines.reshard.transfers import STRATEGIES, SliceTransfers, shared, transfers
from hlorewrite.pipelines.reshard.trees.schedule import least_trees_time, trees_schedule
from hlorewrite.util.optional_dependencies import install

ORDERS = ("naive", "size", "optimal")
SENDERS = ("first", "least-loaded")
GOOD_GAP = 0.01
_SINGLES = 512
_AUTO_ROWS = 4096
_FEW_COPIES = 768
"""Up to this number of copies, gathers among all receivers are tried too; beyond it, they take longest to plan and
never win."""
_ROUND_ROBIN = 16_000
"""From this number of jobs on, a round robin is used if jobs may choose among ports."""
_MANY_COPIES = 2_000_000
"""From this number of copies on, send-recv and all-gathers, which plan each copy, are tried only if they are asked
for."""
_LARGE_GAP = 0.1
_LAST_PART = 1 / 6
"""The last part of a slice that several devices of a host want, as a share; from 1/4 to 1/8 plans differ by 2 % at
most."""


@dataclass(frozen=True)
class ReshardPlan:
    """The slices that each device sends, their receivers and times. Rows are in the order of their start.

    Args:
      tasks: the unit tasks the plan serves.
      itemsize: bytes of an element.
      network: the links it is made for.
      strategy: the requested or chosen strategy.
      order: ``naive``, ``size`` or ``optimal``.
      rows: the transfers, sorted by start.
      job: the job each row belongs to: rows of a job share their links, shape ``[rows]``.
      sender: device (position in ``network.devices``) that sends each row, shape ``[rows]``.
      entry: per job, the port through which each receiving host receives it, in chain order, padded with -1; shape
        ``[jobs, most hosts]``.
      chunks: chunks of each row that the simulation assumed, shape ``[rows]``.
      start_s: when each row starts, shape ``[rows]``.
      end_s: when its last receiver has it, shape ``[rows]``.
      lower_bound_s: no plan of any strategy is faster.
      proven: whether the order and the senders are proven optimal for these jobs.
      unsolved: whether a solver that is not installed might find better ones.
    """

    tasks: UnitTasks
    itemsize: int
    network: Network
    strategy: str
    order: str
    rows: SliceTransfers
    job: np.ndarray
    sender: np.ndarray
    entry: np.ndarray
    chunks: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray
    lower_bound_s: float
    proven: bool
    unsolved: bool = False

    @property
    def makespan_s(self) -> float:
        """Seconds from the start until the last receiver has everything."""
        return float(self.end_s.max(initial=0.0))

    @property
    def gap(self) -> float:
        """How far the makespan may be above the optimum: makespan / lower bound - 1."""
        if self.makespan_s <= self.lower_bound_s or self.lower_bound_s == 0:
            return 0.0
        return self.makespan_s / self.lower_bound_s - 1

    @property
    def note(self) -> str:
        """One sentence if the plan may be far from the optimum, or a solver may improve it; empty otherwise."""
        if self.unsolved:
            return (f"the order is a heuristic's, at most {self.gap:.1%} above the optimum; a solver could find or "
                    f"prove a better one: {install('reshard')}")
        return self._explained if self.gap > _LARGE_GAP else ""

    @property
    def _explained(self) -> str:
        """Where the time above the lower bound goes."""
        hosts = int((self.entry >= 0).sum(axis=1).max(initial=0))
        if self.strategy == "trees":
            loads = np.bincount(self.entry.ravel(), np.repeat(self.chunks, self.entry.shape[1]))
            spent = float(loads.max()) * self.network.chunk_overhead_s
            late = max(self.makespan_s - self.lower_bound_s - spent, 0.0)
            return (f"{int(loads.max())} blocks cost a port {spent:.6f} s in addition to their bytes, and the last "
                    f"takes {late:.6f} s longer to reach all of {hosts} hosts than the lower bound says")
        if hosts > 2:
            return (f"the last of {hosts} hosts in a chain gets its first chunk after {hosts - 1} hops, which the "
                    "lower bound leaves out")
        ports = np.bincount(self.network.port[self.sender], self.end_s - self.start_s, minlength=1)
        busy = float(ports.max(initial=0.0)) / self.makespan_s
        return (f"the busiest port sends for {min(busy, 1.0):.0%} of the time; the rest is latency, chunk overhead and "
                "ports that wait for each other")

    def receivers(self, row: int) -> list[int]:
        """Devices (positions) that get a row, in chain order: hosts as the job visits them, entry first."""
        group = self.rows.groups[self.rows.receivers[row]]
        ports = [port for port in self.entry[self.job[row]].tolist() if port >= 0]
        if not ports or self.rows.gather[row]:
            return list(group)
        nics = self.network.nics_per_host
        rank = {port // nics: i for i, port in enumerate(ports)}
        host, port = self.network.host, self.network.port
        return sorted(group, key=lambda d: (rank[int(host[d])], int(port[d]) != ports[rank[int(host[d])]], d))

    def task_dicts(self) -> Iterator[dict[str, Any]]:
        """The rows as plain data: slice, sender, receivers (device ids), start_s, end_s, kind, bytes."""
        ids = self.network.devices.tolist()
        start, stop = self.rows.start.tolist(), self.rows.stop.tolist()
        sizes, senders = self.rows.size.tolist(), self.sender.tolist()
        begins, ends, gather = self.start_s.tolist(), self.end_s.tolist(), self.rows.gather.tolist()
        chunks, seen = self.chunks.tolist(), {}
        for row in range(len(self.rows)):
            key = (int(self.rows.receivers[row]), int(self.job[row]))
            if key not in seen:
                seen[key] = [ids[d] for d in self.receivers(row)]
            yield {"slice": [list(pair) for pair in zip(start[row], stop[row], strict=True)],
                   "sender": ids[senders[row]], "receivers": seen[key], "start_s": begins[row],
                   "end_s": ends[row], "kind": "all-gather" if gather[row] else "broadcast" if
                   len(seen[key]) > 1 else "send", "bytes": int(sizes[row]), "chunks": chunks[row]}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides what is sent: equal on processes that agree."""
        state = hashlib.sha256()
        facts = (self.tasks.source.shape, self.itemsize, self.strategy, self.order, self.rows.groups)
        state.update(repr(facts).encode())
        arrays = (self.network.devices, self.network.host, self.network.port, self.rows.start, self.rows.stop,
                  self.rows.holders, self.rows.receivers, self.rows.gather, self.job, self.sender, self.entry,
                  self.chunks, *self.tasks.source.cuts, *self.tasks.destination.cuts, self.tasks.source.devices,
                  self.tasks.destination.devices)
        for array in arrays:
            state.update(np.ascontiguousarray(array, np.int64).tobytes())
        return state.hexdigest()


def plan_reshard(source: Layout, destination: Layout, itemsize: int, network: Network, strategy: str = "auto", *,
                 order: str = "optimal", sender: str | None = None, budget: SolverBudget | None = None) -> ReshardPlan:
    """Plans how a tensor gets from one layout to another.

    Args:
      source: the layout it has.
      destination: the layout it is to have.
      itemsize: bytes of an element.
      network: the links.
      strategy: ``auto`` (the fastest of all), ``broadcast``, ``send-recv``, ``trees`` (every block a tree of its
        own), ``all-gather`` (send/recv of parts, then all-gather inside each destination host) or
        ``global-all-gather`` (among all receivers).
      order: ``naive`` (as the tasks come), ``size`` (largest first) or ``optimal``.
      sender: ``first`` holder or ``least-loaded``; by default ``first`` for the naive order, else
        ``least-loaded``, which the optimal order also refines.
      budget: the budget of the solver, where several plans share one; by default the plan has its own.

    Returns:
      The plan.

    Raises:
      UsageError: the shapes differ, or a name is unknown.
      PlanError: the strategy is too large to plan.

    Example:
      >>> from hlorewrite.cost import topology
      >>> from hlorewrite.pipelines.reshard import hosts_of_meshes, network_of, parse_mesh, parse_spec, sharded
      >>> have, want = parse_mesh("2x4"), parse_mesh("2x4", first_device=8)
      >>> network = network_of(topology("p3.8xlarge"), hosts_of_meshes(have, want, 4))
      >>> plan = plan_reshard(sharded((1024, 1024, 512), have, parse_spec("host,-,-", have)),
      ...                     sharded((1024, 1024, 512), want, parse_spec("-,host,-", want)), 4, network)
      >>> f"{plan.strategy} {plan.makespan_s / (2**31 / 1.25e9):.2f} of the tensor's time through one NIC"
      "broadcast 0.50 of the tensor's time through one NIC"
    """
    for name, known, what in ((strategy, (*STRATEGIES, "auto"), "strategy"), (order, ORDERS, "order"),
                              (sender or "first", SENDERS, "sender choice")):
        if name not in known:
            raise UsageError(f'there is no {what} "{name}"', hint=did_you_mean(name, known))
    tasks = unit_tasks(source, destination)
    choice = sender or ("first" if order == "naive" else "least-loaded")
    base = transfers(tasks, itemsize, network, "broadcast")
    bound = lower_bound(bundled_jobs(base, network), network)
    copies = int(np.array([len(group) for group in base.groups], np.int64)[base.receivers].sum())
    budget = budget or SolverBudget()
    if strategy != "auto":
        return _plan_one(tasks, itemsize, network, strategy, order=order, sender=choice, bound=bound, budget=budget)
    plans: list[ReshardPlan] = []
    for name in STRATEGIES if copies <= _FEW_COPIES else STRATEGIES[:-1]:
        try:
            if plans and ((name != "trees" and copies > _MANY_COPIES)
                          or _surely_slower(tasks, itemsize, network, name, plans)):
                continue
            plans.append(_plan_one(tasks, itemsize, network, name, order=order, sender=choice, bound=bound,
                                   budget=budget))
        except PlanError:
            if not plans:
                raise
            continue  # too many transfers to plan, and there is another strategy
        if plans[-1].gap <= GOOD_GAP:
            break
    return min(plans, key=lambda plan: plan.makespan_s)


def _surely_slower(tasks: UnitTasks, itemsize: int, network: Network, strategy: str, plans: list[ReshardPlan]) -> bool:
    """Whether blocks in trees, or the holders' ports alone, need longer than the fastest plan so far."""
    if strategy == "trees":
        least = least_trees_time(_rows_of_trees(tasks, itemsize, network), network)
    else:
        least = leaving_time(bundled_jobs(transfers(tasks, itemsize, network, strategy), network), network)
    return least > min(plan.makespan_s for plan in plans)


def _plan_one(tasks: UnitTasks, itemsize: int, network: Network, strategy: str, *, order: str, sender: str,
              bound: float, budget: SolverBudget) -> ReshardPlan:
    if strategy == "trees":
        return _in_trees(tasks, itemsize, network, order, bound)
    rows = transfers(tasks, itemsize, network, strategy)
    if order != "optimal":
        jobs = single_jobs(rows, network)
        items = first_senders(jobs, network) if sender == "first" else least_loaded(jobs, network, in_order=True)
        sequence = by_size(items) if order == "size" else range(len(items))
        schedule = of_items(items, *timed(jobs, items, sequence, network), False)
        return _finish(tasks, itemsize, network, strategy, order=order, rows=rows, jobs=jobs, schedule=schedule,
                       bound=bound)
    best: ReshardPlan | None = None
    for candidate, jobs in _groupings(tasks, itemsize, network, strategy, rows):
        schedule = _optimise(jobs, network, sender, bound, budget)
        plan = _finish(tasks, itemsize, network, strategy, order=order, rows=candidate, jobs=jobs, schedule=schedule,
                       bound=bound)
        if best is None or plan.makespan_s < best.makespan_s * (1 - 1e-9):
            best = plan
        if best.gap <= GOOD_GAP:
            break
    if strategy == "broadcast" and best and best.gap > GOOD_GAP:
        best = min([best, *_by_ports(tasks, itemsize, network, rows, bound)], key=lambda plan: plan.makespan_s)
    if best is None:
        raise PlanError("there is nothing to plan", hint="report this as a bug")
    return best


def _by_ports(tasks: UnitTasks, itemsize: int, network: Network, rows: SliceTransfers,
              bound: float) -> Iterator[ReshardPlan]:
    """The plan in which all ports of a host send a slice in messages that end one after another, if one exists."""
    messages = messages_of_ports(rows, network)
    if not messages:
        return
    cut = transfers(tasks.cut(places_of(messages)), itemsize, network, "broadcast")
    if len(cut) == len(messages) * len(rows):  # no message is smaller than an element
        schedule = by_ports(jobs := single_jobs(cut, network), messages, network)
        yield _finish(tasks, itemsize, network, "broadcast", order="optimal", rows=cut, jobs=jobs, schedule=schedule,
                      bound=bound)


def _in_trees(tasks: UnitTasks, itemsize: int, network: Network, order: str, bound: float) -> ReshardPlan:
    """The plan in which every block takes a separate tree."""
    rows = _rows_of_trees(tasks, itemsize, network)
    planned = trees_schedule(rows, network)
    return ReshardPlan(tasks, itemsize, network, strategy="trees", order=order, rows=rows, job=np.arange(len(rows)),
                       sender=planned.sender, entry=planned.entry, chunks=np.full(len(rows), planned.blocks),
                       start_s=np.zeros(len(rows)), end_s=planned.end, lower_bound_s=bound, proven=False)


def _rows_of_trees(tasks: UnitTasks, itemsize: int, network: Network) -> SliceTransfers:
    """One row for each slice, or more where there are fewer than a host has ports."""
    rows = transfers(tasks, itemsize, network, "trees")
    if len(rows) >= network.nics_per_host:
        return rows
    return transfers(tasks.split(network.nics_per_host), itemsize, network, "trees")


def _groupings(tasks: UnitTasks, itemsize: int, network: Network, strategy: str,
               rows: SliceTransfers) -> Iterator[tuple[SliceTransfers, Jobs]]:
    """Ways to form jobs, cheapest first: bundles, single rows, holders that share receivers, then slices cut."""
    @cache
    def cut_in(pieces: int) -> SliceTransfers:
        return rows if pieces == 1 else transfers(tasks.split(pieces), itemsize, network, strategy)

    yield rows, (bundles := bundled_jobs(rows, network))
    if 1 < len(rows) <= _SINGLES:
        yield rows, single_jobs(rows, network)
    ports = network.nics_per_host
    for pieces in sorted({1, ports}) if strategy == "broadcast" else ():
        cut = cut_in(pieces)
        divided = shared(cut, network)
        if len(cut) < len(divided) <= _AUTO_ROWS:
            yield divided, bundled_jobs(divided, network, lanes=pieces)
    hosts = sum(len(rows.groups[r]) for r in rows.receivers.tolist()) if len(rows) <= _AUTO_ROWS else 0
    if rows.gather.any() or not 0 < hosts <= _AUTO_ROWS:
        return
    for pieces in sorted({ports, 2, 3, 4} - {1}):
        cut = cut_in(pieces) if bundles.counts.min() < pieces else rows
        if len(bundles) * pieces <= _AUTO_ROWS:
            yield cut, bundled_jobs(cut, network, lanes=pieces)
    if bundles.local_hops.any():  # the last part of a slice is small, because hosts pass it on at the end
        cut = transfers(tasks.split(ports).cut((1 - _LAST_PART,)), itemsize, network, strategy)
        if len(cut) <= _AUTO_ROWS:
            yield cut, single_jobs(cut, network)


def _optimise(jobs: Jobs, network: Network, sender: str, bound: float,
              budget: SolverBudget) -> TransferSchedule:
    """Senders, order and times of jobs."""
    good = bound * (1 + GOOD_GAP)
    if len(jobs) > (_SINGLES if jobs.unicast else _ROUND_ROBIN) and jobs.to_one_host:
        schedule = rotated(jobs, network)
        if schedule.end.max() <= good or len(jobs) > _AUTO_ROWS:
            return schedule
    items = first_senders(jobs, network) if sender == "first" else least_loaded(jobs, network)
    floor = ports_time(jobs, [item.busy for item in items], network)
    good = max(good, floor + min((item.done - item.busy for item in items), default=0.0))
    order = heuristic(items, network.ports, good)
    items, start, end = rechunked(jobs, items, order, network)
    if end.max(initial=0.0) > good and can_solve(jobs, items):
        if budget.effort > 0 and not solver_installed():
            return replace(of_items(items, start, end, False), unsolved=True)
        solution = solve(jobs, items, start.tolist(), network, budget)
        if solution:
            begin, finish = timed(jobs, solution.items, solution.order, network)
            if finish.max() < end.max():
                return of_items(solution.items, begin, finish, solution.proven)
        return of_items(items, start, end, solution is not None and solution.proven)
    return of_items(items, start, end, False)


def _finish(tasks: UnitTasks, itemsize: int, network: Network, strategy: str, *, order: str, rows: SliceTransfers,
            jobs: Jobs, schedule: TransferSchedule, bound: float) -> ReshardPlan:
    """Spreads the jobs' times over their rows, picks the sending devices, and sorts rows by start."""
    job = np.repeat(np.arange(len(jobs)), jobs.counts) if len(jobs) != len(rows) else np.arange(len(jobs))
    begin, finish = row_times(rows.size[jobs.rows].astype(float), jobs, job, schedule)
    sequence = np.argsort(begin, kind="stable")
    keep, job = jobs.rows[sequence], job[sequence]
    size = rows.size[keep]
    chunks = np.maximum(1, np.rint(schedule.chunks[job] * size / np.maximum(jobs.size, 1)[job])).astype(np.int64)
    device = sending_devices(rows, keep, jobs, job, schedule.sender, network)
    after: dict[int, tuple[int, ...]] = {}
    if rows.after:
        placed = np.empty(len(keep), np.int64)
        placed[keep] = np.arange(len(keep))
        after = {int(placed[r]): tuple(int(placed[b]) for b in before) for r, before in rows.after.items()}
    sorted_rows = replace(rows, start=rows.start[keep], stop=rows.stop[keep], size=size, holders=rows.holders[keep],
                          receivers=rows.receivers[keep], gather=rows.gather[keep], after=after)
    return ReshardPlan(tasks, itemsize, network, strategy=strategy, order=order, rows=sorted_rows, job=job,
                       sender=device, entry=schedule.entry, chunks=chunks, start_s=begin[sequence],
                       end_s=finish[sequence], lower_bound_s=bound, proven=schedule.proven, unsolved=schedule.unsolved)
