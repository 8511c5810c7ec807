"""Simulates a program of several meshes: its own fragments and transfers, in the order its driver runs them.

A fragment runs as soon as its mesh is free and its operands are there, a transfer as soon as its value is there and
both ports are free. A port is a network card if the cards of the meshes are known, so that meshes on one host wait for
each other. Otherwise every mesh has its own port. A collective between hosts needs its mesh's cards both ways. The
order on each mesh and port is that of :func:`hlorewrite.pipelines.actions.order.order_program`. So transfers that skip
stages, transfers around the loop, and reductions anywhere in the program need no separate model.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.actions.fit import check_fit, steps_by_task
from hlorewrite.pipelines.actions.order import OUTSIDE, Action, order_program
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, Transfer
from hlorewrite.pipelines.mpmd.types import device_bytes
from hlorewrite.pipelines.schedules import ROW, Schedule
from hlorewrite.pipelines.simulate.cost import LinkCost, PipelineCost, StageCost
from hlorewrite.pipelines.simulate.events import Times, empty_times
from hlorewrite.pipelines.simulate.simulation import Simulation, program_buffers

Card = tuple[int, int]
"""A network card: (host, number on it)."""


@dataclass(frozen=True)
class FragmentTime:
    """Seconds of one run of a fragment.

    Attributes:
      compute_s: its computation.
      collective_s: its collectives, which nothing hides; they come after its computation.
    """

    compute_s: float
    collective_s: float = 0.0

    @classmethod
    def split(cls, measured_s: float, collective_s: float) -> FragmentTime:
        """Splits a measured time: the collectives get the modelled time, at most all of it.

        Example:
          >>> FragmentTime.split(5.0, 2.0)
          FragmentTime(compute_s=3.0, collective_s=2.0)
        """
        share = min(measured_s, collective_s)
        return cls(measured_s - share, share)

    def __post_init__(self) -> None:
        for seconds in (self.compute_s, self.collective_s):
            if not (math.isfinite(seconds) and seconds >= 0):
                raise PlanError(f"a fragment takes {seconds} seconds", hint="times must be finite and not negative")


@dataclass(frozen=True)
class ProgramCost:
    """The costs of a program's steps.

    Attributes:
      fragments: time of each fragment, by the function's name.
      transfers: seconds of each transfer, by position in ``Program.steps``.
      cards: the network cards of each mesh's devices as (host, card), by the mesh's name; empty when each mesh has
        ports of its own.
    """

    fragments: Mapping[str, FragmentTime]
    transfers: Mapping[int, float]
    cards: Mapping[str, frozenset[Card]] = field(default_factory=dict)

    def ports(self, mesh: str, other: str) -> list[Hashable]:
        """The time that a transfer between two meshes, or a collective of one, takes at a mesh; none inside one
        host.
        """
        if mesh not in self.cards or other not in self.cards:
            return [mesh] if mesh != other else []
        hosts = {host for name in (mesh, other) for host, _ in self.cards[name]}
        if len(hosts) == 1:
            return [mesh] if mesh != other else []
        return [*sorted(self.cards[mesh])]


def simulate_program(program: Program, schedule: Schedule, cost: ProgramCost, *, comm_shift: bool = False,
                     overlap: bool = True, duplex: bool = True) -> Simulation:
    """Simulates one step of a program.

    Args:
      program: the program.
      schedule: a schedule that fits it.
      cost: seconds of its fragments and transfers.
      comm_shift: what the simulation says about where gradients are reduced; the program decides.
      overlap: whether transfers run concurrently with the computation, or block both their meshes.
      duplex: whether a port sends while it receives. False for XLA:CPU, where a process runs its programs with
        collectives one at a time, in launch order. Transfers between processes, and fragments with collectives between
        processes, are such programs.

    Returns:
      The simulation. Collectives inside a task follow it as reductions, those of the update before it.

    Raises:
      PlanError: the schedule does not fit the program, or a fragment has no time.
    """
    check_fit(program, schedule)
    missing = sorted({step.callee for step in program.steps if isinstance(step, FragmentCall)} - set(cost.fragments))
    if missing:
        raise PlanError(f"the fragment @{missing[0]} has no time", location=program.name, hint="add its time")
    walk = _ProgramSimulation(program, schedule, cost, overlap, duplex)
    times = walk.times()
    made = program_buffers(program, walk.order, walk.taken, max(end for _, end in times.updates))
    names = {mesh: name for name, mesh in walk.mesh_number.items()}
    buffers = tuple(made[names[mesh]] for mesh in range(schedule.meshes))
    return Simulation(schedule, pipeline_cost(program, schedule, cost), comm_shift, overlap, times, buffers)


@dataclass
class _ProgramSimulation:
    """Walks the actions once; each takes its resources in the order of the list."""

    program: Program
    schedule: Schedule
    cost: ProgramCost
    overlap: bool
    duplex: bool
    free: dict[str, float] = field(default_factory=dict)
    out: dict[Hashable, float] = field(default_factory=dict)
    into: dict[Hashable, float] = field(default_factory=dict)
    ready: dict[int, float] = field(default_factory=dict)
    taken: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Start and end of each action, by its position in the order."""

    def times(self) -> Times:
        """When everything happens."""
        program = self.program
        if not self.duplex:
            self.into = self.out
        self.mesh_number = {name: self.schedule.mesh_of[stage] for stage, name in enumerate(program.mesh_of_stage())}
        self.position = {id(step): position for position, step in enumerate(program.steps)}
        self.timing = empty_times(self.schedule)
        self.maker: dict[int, int] = {}
        self.kind_of = {id(program.body[index]): (kind, stage)
                        for (kind, stage), positions in steps_by_task(program, self.schedule).items()
                        for index in positions}
        for name in program.meshes:
            self.free[name] = 0.0
        self.after = {id(step) for step in program.after}
        self.updates: dict[int, list[float]] = {}
        self.order = order_program(program, self.schedule)
        actions = self.order.actions
        self.number = {id(action): position for position, action in enumerate(actions)}
        for action in actions:
            if id(action.step) not in self.after:
                self.run(action)
        self.run_after([action for action in actions if id(action.step) in self.after])
        for name, mesh in self.mesh_number.items():
            ends = self.updates.get(mesh)
            last = max(self.free[name], self.timing.updates[mesh][1])
            self.timing.updates[mesh] = (ends[0], ends[1]) if ends else (last, last)
        return self.timing

    def run(self, action: Action) -> None:
        """Runs one action as soon as all its resources are free."""
        if isinstance(action.step, Transfer):
            self.transfer(action, action.step)
        elif isinstance(action.step, FragmentCall):
            self.fragment(action, action.step, id(action.step) in self.after)
        else:
            at = max((self.ready.get(slot, 0.0) for slot in action.reads), default=0.0)
            self.ready[action.writes[0]] = at
            self.taken[self.number[id(action)]] = at, at

    def run_after(self, actions: Sequence[Action]) -> None:
        """The tasks after the loop, in the order of the time at which they are ready: no schedule says which mesh's
        update comes first.
        """
        rest = list(actions)
        pending = {slot for action in rest for slot in action.writes}
        # Ends: each round runs an action; the actions are in an order in which each could run.
        while rest:
            able = [action for action in rest if pending.isdisjoint(action.reads)]
            first = min(able, key=self.asked_at)  # the first in the text of those that ask at once
            rest.remove(first)
            pending.difference_update(first.writes)
            self.run(first)

    def asked_at(self, action: Action) -> float:
        """When an action could run if all ports were free."""
        meshes = [self.free[action.step.mesh]] if isinstance(action.step, FragmentCall) else []
        return max([0.0, *meshes, *(self.ready.get(slot, 0.0) for slot in action.reads)])

    def fragment(self, action: Action, step: FragmentCall, is_update: bool) -> None:
        """A fragment runs."""
        seconds = self.cost.fragments[step.callee]
        start = max([self.free[step.mesh], *(self.ready.get(slot, 0.0) for slot in action.reads)])
        if not self.duplex and seconds.collective_s:  # the whole fragment is one of those programs
            start = max([start, *(self.out.get(port, 0.0) for port in self.cost.ports(step.mesh, step.mesh))])
        if is_update:
            begin, first = self.collective(step.mesh, start, seconds.collective_s)
            computed = end = first + seconds.compute_s
        else:
            first, computed = start, start + seconds.compute_s
            begin, end = self.collective(step.mesh, computed, seconds.collective_s)
        if not self.duplex and seconds.collective_s:
            self.out.update(dict.fromkeys(self.cost.ports(step.mesh, step.mesh), end))
        self.free[step.mesh] = end
        self.taken[self.number[id(action)]] = start, end
        self.ready.update(dict.fromkeys(action.writes, end))
        mesh = self.mesh_number[step.mesh]
        if seconds.collective_s:
            self.timing.reductions.append((mesh, -1 if is_update else step.stage, begin, begin + seconds.collective_s))
        if is_update:
            span = self.updates.setdefault(mesh, [first, end])
            span[1] = end
        if action.microbatch != OUTSIDE and id(step) in self.kind_of:
            kind, stage = self.kind_of[id(step)]
            number = (ROW[kind] * self.schedule.stages + stage) * self.schedule.microbatches + action.microbatch
            if self.timing.start[number] < 0:
                self.timing.start[number] = start
            self.timing.end[number] = computed
            self.maker.update(dict.fromkeys(action.writes, number))

    def collective(self, mesh: str, ready: float, seconds: float) -> tuple[float, float]:
        """When a fragment's collectives begin and end; between hosts they need the mesh's cards both ways."""
        ports = self.cost.ports(mesh, mesh) if seconds else []
        begin = max([ready, *(taken.get(port, 0.0) for port in ports for taken in (self.out, self.into))])
        for port in ports:
            self.out[port] = self.into[port] = begin + seconds
        return begin, begin + seconds

    def transfer(self, action: Action, step: Transfer) -> None:
        """A value goes from mesh to mesh."""
        here, there = (self.program.types[number].mesh for number in (step.operand, step.result))
        seconds = self.cost.transfers.get(self.position[id(step)], 0.0)
        leaving, coming = self.cost.ports(here, there), self.cost.ports(there, here)
        start = max([self.ready.get(action.reads[0], 0.0), *(self.out.get(port, 0.0) for port in leaving),
                     *(self.into.get(port, 0.0) for port in coming)])
        if not self.overlap and seconds:
            start = max(start, self.free[here], self.free[there])
        end = start + seconds
        self.ready[action.writes[0]] = end
        self.taken[self.number[id(action)]] = start, end
        if not seconds:
            return
        self.out.update(dict.fromkeys(leaving, end))
        self.into.update(dict.fromkeys(coming, end))
        if not self.overlap:
            self.free[here], self.free[there] = end, end
        number = self.maker.get(action.reads[0])
        if number is not None:
            sent, arrived = self.timing.sent, self.timing.arrived
            sent[number] = start if sent[number] < 0 else min(sent[number], start)
            arrived[number] = max(arrived[number], end)


def pipeline_cost(program: Program, schedule: Schedule, cost: ProgramCost) -> PipelineCost:
    """The costs of a program stage by stage, without collectives inside tasks: what a mesh computes and keeps.

    Args:
      program: the program.
      schedule: a schedule that fits it.
      cost: seconds of its fragments and transfers.

    Returns:
      The costs. For each micro-batch, a device keeps what its stage's forward passes to the backward, received
      activations included. The static share is arguments and carried values, reported for the first stage on each mesh.
      A simulated program reports the memory of its buffers instead.
    """
    def seconds(kind: str, stage: int) -> float:
        steps = (program.body[index] for index in positions.get((kind, stage), ()))
        return sum(cost.fragments[step.callee].compute_s for step in steps if isinstance(step, FragmentCall))

    positions = steps_by_task(program, schedule)
    split = any(kind in "IW" for kind, _ in positions)
    around = [step for step in program.after if isinstance(step, FragmentCall)]
    stages = []
    for stage in range(program.stages):
        first, second = seconds("I", stage), seconds("W", stage)
        mine = [cost.fragments[step.callee] for step in around if step.stage == stage]
        stages.append(StageCost(
            seconds("F", stage), first + second if split else seconds("B", stage), first, second,
            update_s=sum(each.compute_s for each in mine), all_reduce_s=sum(each.collective_s for each in mine),
            live_bytes=_live_bytes(program, stage), static_bytes=_static_bytes(program, stage)))
    return PipelineCost(tuple(stages), tuple(_link(program, stage, cost) for stage in range(program.stages - 1)))


def _of(program: Program, numbers: set[int]) -> float:
    types = [program.types[number] for number in numbers]
    return sum(device_bytes(kind, program.meshes[kind.mesh]) for kind in types if kind.mesh)


def _live_bytes(program: Program, stage: int) -> float:
    """Bytes that exist after the forward of a stage and that its backward reads."""
    calls = [step for step in program.body if isinstance(step, FragmentCall) and step.stage == stage]
    made = {number for step in calls if step.task == "F" for number in step.results}
    taken = {number for step in calls if step.task == "F" for number in step.operands}
    read = {number for step in calls if step.task != "F" for number in step.operands}
    arrived = {step.result for step in program.body if isinstance(step, Transfer)}
    carried = {carry.inside for carry in program.carries} | {carry.next for carry in program.carries}
    return _of(program, ((made & read) | (arrived & taken & read)) - carried)


def _static_bytes(program: Program, stage: int) -> float:
    names = program.mesh_of_stage()
    if names.index(names[stage]) != stage:
        return 0.0
    kept = {*program.arguments, *(carry.inside for carry in program.carries)}
    return _of(program, {number for number in kept if program.types[number].mesh == names[stage]})


def _link(program: Program, stage: int, cost: ProgramCost) -> LinkCost:
    """What passes between a stage and the next for each micro-batch."""
    makers = {number: step for step in program.body if isinstance(step, FragmentCall) for number in step.results}
    first = len(program.before)
    seconds, sent, arrived = {1: 0.0, -1: 0.0}, set[int](), set[int]()
    for index, step in enumerate(program.body):
        maker = makers.get(step.operand) if isinstance(step, Transfer) else None
        if maker is None or not isinstance(step, Transfer):
            continue
        readers = {each.stage for each in program.body if isinstance(each, FragmentCall)
                   and step.result in each.operands}
        for way, here, there in ((1, stage, stage + 1), (-1, stage + 1, stage)):
            if maker.stage == here and there in readers:
                seconds[way] += cost.transfers.get(first + index, 0.0)
                if way == 1:
                    sent.add(step.operand)
                    arrived.add(step.result)
    return LinkCost(seconds[1], seconds[-1], _of(program, sent), _of(program, arrived))
