"""Runs the programs of a scheduled module in order, on a compute stream and the streams next to it.

The compute stream takes one op after another. A start appends a transfer to its stream, where it begins when all
transfers before it have ended. The matching done op on the compute stream waits for it. A synchronous collective
occupies the compute stream and begins when the collectives before it have ended, since they share links and
communicators. While any other stream is busy, compute takes ``1 + slowdown`` times as long (openxla/xla,
``CollectiveThunk::ExecuteOnStream``: the asynchronous stream waits for the compute stream at the start, the compute
stream for an event at the end).

The outcome of a program depends only on what is in flight when it begins: the transfers queued on each stream, relative
to now, and which of them its parameters hold. So each program is simulated once for each such state. A loop is
simulated until its state repeats, which takes a few iterations; the rest is multiplied. The cost is linear in the ops
of a module, whatever the trip counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hlorewrite.timeline.program import Op, OpCode, ScheduledProgram, StreamProgram

_DIGITS = 11
"""Decimals of a second to which two states must agree to count as equal."""
_MOST_STATES = 128
"""Iterations of one loop that are simulated before its period is taken to have begun."""

Queued = tuple[float, float, int]
"""(begin, end, number of the transfer), relative to a common origin."""
Flight = tuple[tuple[int, ...], int, float]
"""A transfer in flight inside a value: (tuple indices that lead to it, stream, end)."""
Tree = Any
"""(stream, end) of a transfer in flight, or a dict of trees by tuple index."""


@dataclass(frozen=True)
class State:
    """What is in flight when a program begins.

    Attributes:
      queues: for each stream what it has still to do, in order.
      held: the transfers in flight that its parameters hold; the first index is the parameter's number.
    """

    queues: tuple[tuple[Queued, ...], ...]
    held: tuple[Flight, ...] = ()


@dataclass(frozen=True)
class Totals:
    """The totals of one or more executions.

    Attributes:
      compute_s: kernels, each alone.
      kernels: number of kernels.
      transfers: for each transfer, its executions, the seconds compute waited for it and the seconds compute lost
        during it.
      gaps: for each gap, how often it was reached.
    """

    compute_s: float
    kernels: int
    transfers: dict[int, tuple[int, float, float]]
    gaps: dict[int, int]


@dataclass(frozen=True)
class ProgramOutcome:
    """The effect of running a program from some state.

    Attributes:
      seconds: its time on the compute stream.
      after: what is in flight when it ends, relative to its end. ``held`` is what its result holds, under the index 0,
        so ``after`` is also the state in which the body of a loop runs again.
      totals: sums.
      items: the events, if recorded: see :mod:`hlorewrite.timeline.spans`.
    """

    seconds: float
    after: State
    totals: Totals
    items: tuple[tuple[Any, ...], ...]


class Engine:
    """Simulates one module.

    Args:
      program: the module.
      slowdown: compute during a transfer takes 1 + this times as long.
      record: whether to record events with their times.
    """

    def __init__(self, program: ScheduledProgram, slowdown: float, *, record: bool = False) -> None:
        self.program, self.slowdown, self.record = program, slowdown, record
        self.turn_s: dict[int, float] = {}
        self.not_periodic: set[str] = set()
        self._known: dict[tuple[str, State], ProgramOutcome] = {}

    def run(self) -> ProgramOutcome:
        """Runs the entry with nothing in flight."""
        return self.outcome(self.program.entry, State(((),) * len(self.program.streams)))

    def outcome(self, program: StreamProgram, state: State) -> ProgramOutcome:
        """The effect of running a program from a state; computed once."""
        key = (program.name, state)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _ProgramExecution(self, program, state).outcome()
        return found


class _ProgramExecution:
    """One execution of a program; times are relative to its start."""

    def __init__(self, engine: Engine, program: StreamProgram, state: State) -> None:
        self.engine, self.program = engine, program
        self.slowdown, self.recording = engine.slowdown, engine.record
        self.now = self.compute = 0.0
        self.kernels = 0
        self.queues = [list(queue) for queue in state.queues]
        self.busy = max((queue[-1][1] for queue in self.queues if queue), default=0.0)
        self.transfers: dict[int, list[float]] = {}
        self.gaps: dict[int, int] = {}
        self.items: list[tuple[Any, ...]] = []
        arguments = _grown(state.held)
        self.flying: dict[str, Tree] = {name: arguments[number] for number, name in enumerate(program.parameters)
                                        if number in arguments}

    def outcome(self) -> ProgramOutcome:
        """Runs all ops."""
        steps: list[Callable[[Op], None]] = [self.kernel] * len(_STEPS)
        for code, name in _STEPS.items():
            steps[code] = getattr(self, name)
        for op in self.program.ops:
            steps[op[0]](op)
        totals = Totals(self.compute, self.kernels,
                        {number: (round(one[0]), one[1], one[2]) for number, one in self.transfers.items()}, self.gaps)
        held = self.state((self.program.root,))
        return ProgramOutcome(self.now, held, totals, tuple(self.items))

    # ---- time

    def kernel(self, op: Op) -> None:
        """Runs a kernel, which is slower while another stream is busy."""
        seconds, begin = op[1], self.now
        if self.slowdown and self.busy > begin:
            slow = seconds * (1 + self.slowdown)
            if begin + slow <= self.busy:
                self.now = begin + slow
            else:
                done = (self.busy - begin) / (1 + self.slowdown)
                self.now = self.busy + seconds - done
            busiest = max(self.queues, key=lambda queue: queue[-1][1] if queue else 0.0)
            self.charge(busiest, begin, self.now, 2, self.slowdown / (1 + self.slowdown))
        else:
            self.now = begin + seconds
        self.compute += seconds
        self.kernels += 1
        if self.recording:
            self.items.append(("kernel", begin, self.now, op[2]))

    def begin(self, stream: int, seconds: float, number: int) -> float:
        """Appends a transfer to its stream; returns the time at which it ends."""
        queue = self.queues[stream]
        start = max(self.now, queue[-1][1] if queue else 0.0)
        end = start + seconds
        queue.append((start, end, number))
        self.busy = max(self.busy, end)
        self.count(number)[0] += 1
        if self.recording:
            self.items.append(("transfer", start, end, number, stream))
        return end

    def wait(self, stream: int, end: float) -> None:
        """Makes the compute stream wait until a time on another stream."""
        if end <= self.now:
            return
        self.charge(self.queues[stream], self.now, end, 1, 1.0)
        if self.recording:
            self.items.append(("wait", self.now, end, stream))
        self.now = end

    def charge(self, queue: list[Queued], begin: float, end: float, column: int, share: float) -> None:
        """Charges lost time to the transfers that ran during it; drops transfers that ended before it."""
        passed = 0
        for start, stop, number in queue:
            if start >= end:
                break
            if stop > begin:
                self.count(number)[column] += (min(end, stop) - max(begin, start)) * share
            passed += stop <= begin
        del queue[:passed]

    def count(self, number: int) -> list[float]:
        """[executions, waited, lost] of a transfer."""
        return self.transfers.setdefault(number, [0, 0.0, 0.0])

    # ---- ops

    def unknown(self, op: Op) -> None:
        """Counts an op of unknown time; it takes no time."""
        self.gaps[op[1]] = self.gaps.get(op[1], 0) + 1

    def start(self, op: Op) -> None:
        """A transfer begins concurrently with compute."""
        self.flying[op[1]] = (op[2], self.begin(op[2], op[3], op[4]))

    def sync(self, op: Op) -> None:
        """A transfer on the compute stream, after those before it."""
        self.wait(op[1], self.begin(op[1], op[2], op[3]))

    def done(self, op: Op) -> None:
        """Compute waits for a transfer."""
        flight = self.flying.get(op[1])
        if isinstance(flight, tuple):
            self.wait(*flight)

    def pack(self, op: Op) -> None:
        """A tuple of values, some in flight."""
        held = {index: self.flying[name] for index, name in enumerate(op[2]) if name in self.flying}
        if held:
            self.flying[op[1]] = held

    def element(self, op: Op) -> None:
        """An element of a tuple."""
        held = self.flying.get(op[2])
        if isinstance(held, dict) and op[3] in held:
            self.flying[op[1]] = held[op[3]]

    def alias(self, op: Op) -> None:
        """The same value."""
        if op[2] in self.flying:
            self.flying[op[1]] = self.flying[op[2]]

    def call(self, op: Op) -> None:
        """Runs a computation once."""
        self.take(op[1], self.engine.outcome(op[3], self.state(op[2])))

    def branch(self, op: Op) -> None:
        """Runs the slowest of several computations."""
        first, *others = (self.engine.outcome(program, self.state((operand,)))
                          for program, operand in zip(op[3], op[2], strict=True))
        for other in others:
            first = other if other.seconds > first.seconds else first
        self.take(op[1], first)

    def loop(self, op: Op) -> None:
        """Simulates iterations until the state repeats, then multiplies."""
        _, name, operand, body, condition, trips, gap = op
        state = self.state((operand,))
        if operand in self.flying:  # what the loop's result holds if it runs no iteration
            self.flying[name] = self.flying[operand]
        if trips is None:
            self.unknown((OpCode.UNKNOWN, gap))
            self.engine.turn_s[gap] = self.engine.outcome(body, state).seconds
            return
        turn, seen = 0, dict[State, int]()
        turns: list[ProgramOutcome] = []
        while turn < trips:  # Ends: each round takes one iteration or more.
            if state in seen or len(seen) == _MOST_STATES:
                first = seen.get(state, turn - 1)
                if state not in seen:
                    self.engine.not_periodic.add(name)
                period = turns[first:]
                self.repeat(period, (trips - turn) // len(period))
                for one in period[:(trips - turn) % len(period)]:
                    self.take(name, one)
                break
            seen[state] = turn
            one = self.turn(body, condition, state)
            turns.append(one)
            self.take(name, one)
            state = one.after
            turn += 1

    def turn(self, body: StreamProgram, condition: StreamProgram | None, state: State) -> ProgramOutcome:
        """One iteration of a loop; the condition runs only if XLA does not know the trip count."""
        if condition is None:
            return self.engine.outcome(body, state)
        test = self.engine.outcome(condition, state)
        rest = State(test.after.queues, tuple((path, stream, max(0.0, round(end - test.seconds, _DIGITS)))
                                              for path, stream, end in state.held))
        return _joined(test, self.engine.outcome(body, rest))

    # ---- programs inside this one

    def state(self, names: Sequence[str]) -> State:
        """The transfers in flight now and the values that hold them; transfers that have ended are left out."""
        queues = tuple(tuple((max(0.0, round(start - self.now, _DIGITS)), round(end - self.now, _DIGITS), number)
                             for start, end, number in queue if end > self.now) for queue in self.queues)
        held = tuple((path, stream, max(0.0, round(end - self.now, _DIGITS))) for number, name in enumerate(names)
                     for path, stream, end in _flights((number,), self.flying.get(name)))
        return State(queues, held)

    def take(self, name: str, outcome: ProgramOutcome) -> None:
        """Continues after a program that ran, whose result is ``name``."""
        if self.recording:
            self.items.append(("inside", self.now, outcome, 1, name))
        self.add(outcome, 1)
        self.now += outcome.seconds
        self.queues = [[(start + self.now, end + self.now, number) for start, end, number in queue]
                       for queue in outcome.after.queues]
        self.busy = max((queue[-1][1] for queue in self.queues if queue), default=0.0)
        result = _grown(tuple((path, stream, end + self.now) for path, stream, end in outcome.after.held)).get(0)
        if result is not None:
            self.flying[name] = result

    def repeat(self, period: Sequence[ProgramOutcome], times: int) -> None:
        """Adds many iterations of a loop at once; they leave the state as it was."""
        if not times:
            return
        seconds = sum(one.seconds for one in period)
        if self.recording:
            self.items.append(("repeat", self.now, tuple(period), times))
        for one in period:
            self.add(one, times)
        shift = seconds * times
        self.now += shift
        self.busy += shift
        self.queues = [[(start + shift, end + shift, number) for start, end, number in queue]
                       for queue in self.queues]
        self.flying = {name: _moved(tree, shift) for name, tree in self.flying.items()}

    def add(self, outcome: ProgramOutcome, times: int) -> None:
        """Adds the totals of an outcome."""
        totals = outcome.totals
        self.compute += totals.compute_s * times
        self.kernels += totals.kernels * times
        for number, (runs, waited, lost) in totals.transfers.items():
            count = self.count(number)
            count[0] += runs * times
            count[1] += waited * times
            count[2] += lost * times
        for number, runs in totals.gaps.items():
            self.gaps[number] = self.gaps.get(number, 0) + runs * times


_STEPS = {OpCode.KERNEL: "kernel", OpCode.UNKNOWN: "unknown", OpCode.START: "start", OpCode.SYNC: "sync",
          OpCode.DONE: "done", OpCode.TUPLE: "pack", OpCode.ELEMENT: "element", OpCode.ALIAS: "alias",
          OpCode.LOOP: "loop", OpCode.CALL: "call", OpCode.BRANCH: "branch"}


def _flights(path: tuple[int, ...], tree: Tree) -> list[Flight]:
    """The transfers in flight in a value."""
    if tree is None:
        return []
    if isinstance(tree, tuple):
        return [(path, *tree)]
    return [flight for index in sorted(tree) for flight in _flights((*path, index), tree[index])]


def _grown(held: Sequence[Flight]) -> dict[int, Tree]:
    """The trees of flights, by the first index of their paths."""
    trees: dict[int, Tree] = {}
    for path, stream, end in held:
        place = trees
        for index in path[:-1]:
            place = place.setdefault(index, {})
        place[path[-1]] = (stream, end)
    return trees


def _moved(tree: Tree, shift: float) -> Tree:
    if isinstance(tree, tuple):
        return tree[0], tree[1] + shift
    return {index: _moved(inner, shift) for index, inner in tree.items()}


def _joined(first: ProgramOutcome, second: ProgramOutcome) -> ProgramOutcome:
    """Two programs, one after the other, as one outcome."""
    transfers = dict(first.totals.transfers)
    for number, (runs, waited, lost) in second.totals.transfers.items():
        before = transfers.get(number, (0, 0.0, 0.0))
        transfers[number] = (before[0] + runs, before[1] + waited, before[2] + lost)
    gaps = dict(first.totals.gaps)
    for number, runs in second.totals.gaps.items():
        gaps[number] = gaps.get(number, 0) + runs
    totals = Totals(first.totals.compute_s + second.totals.compute_s, first.totals.kernels + second.totals.kernels,
                    transfers, gaps)
    items = (("inside", 0.0, first, 1, ""), ("inside", first.seconds, second, 1, ""))
    return ProgramOutcome(first.seconds + second.seconds, second.after, totals, items)
