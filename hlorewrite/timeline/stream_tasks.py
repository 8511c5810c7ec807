"""What a block would take that XLA has not scheduled yet: its kernels and transfers by what they wait for.

Passes ask this about a loop's body before and after a change. The order is one that XLA's latency-hiding scheduler can
reach (openxla/xla, ``xla/service/latency_hiding_scheduler.cc``). It fills the schedule from the end: one transfer is
under way at a time, its end as late as its readers allow, its start before enough kernels to hide it. The engine of
:mod:`hlorewrite.timeline.engine` then says how long that takes, as for a schedule of XLA.
"""

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.cost.compute import timeline_constants
from hlorewrite.timeline.engine import Engine
from hlorewrite.timeline.program import DONE, KERNEL, START, Op, ScheduledProgram, StreamProgram, StreamTransfer


@dataclass(frozen=True, slots=True)
class StreamTask:
    """A kernel, a transfer, or an op that takes no time and passes on what it waits for.

    Attributes:
      seconds: by itself.
      after: the tasks before it in the list whose results it reads.
      transfer: whether it runs next to compute.
    """

    seconds: float
    after: tuple[int, ...] = ()
    transfer: bool = False


@dataclass(frozen=True)
class BlockTime:
    """What a block takes.

    Attributes:
      seconds: until its last kernel and transfer are over.
      waited: for each transfer for which compute waits, how long; by its number among the tasks.
    """

    seconds: float
    waited: dict[int, float]


def block_time(tasks: Sequence[StreamTask], slowdown: float | None = None) -> BlockTime:
    """Simulates the tasks of a block on a compute stream and one for transfers.

    Args:
      tasks: each after those it waits for.
      slowdown: compute during a transfer takes 1 + this times as long; by default the published mean.

    Example:
      >>> kernel, transfer = StreamTask(2.0), StreamTask(3.0, transfer=True)
      >>> block_time([kernel, transfer], 0.0)  # neither waits for the other
      BlockTime(seconds=3.0, waited={1: 1.0})
      >>> block_time([transfer, StreamTask(2.0, (0,))], 0.0)
      BlockTime(seconds=5.0, waited={0: 3.0})
    """
    slowdown = float(timeline_constants()["overlap_slowdown"]) if slowdown is None else slowdown
    numbers = [number for number, task in enumerate(tasks) if task.transfer]
    places = {number: place for place, number in enumerate(numbers)}
    ops = _from_the_end(tasks, places)
    transfers = tuple(StreamTransfer(str(number), "", "", stream="", payload_bytes=0, groups=(),
                                     seconds=tasks[number].seconds, sends=("", ""))
                      for number in numbers)
    program = StreamProgram("block", ops, (), "")
    done = Engine(ScheduledProgram(program, transfers, (), ("collectives",), (), frozenset()), slowdown).run()
    return BlockTime(done.seconds, {numbers[place]: waited for place, (_, waited, _) in done.totals.transfers.items()
                                    if waited > 0})


def _from_the_end(tasks: Sequence[StreamTask], places: dict[int, int]) -> tuple[Op, ...]:
    """The ops of a block, put in order from the last one: the order of the mirrored tasks, mirrored again.

    Args:
      tasks: the tasks.
      places: the number of each transfer by that of its task.
    """
    last = len(tasks) - 1
    readers: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for source in set(task.after):
            readers[source].append(number)
    mirrored = [StreamTask(task.seconds, tuple(last - reader for reader in readers[number]), task.transfer)
                for number, task in reversed(list(enumerate(tasks)))]
    ops: list[Op] = []
    for op in reversed(_TaskOrder(mirrored, {last - number: place for number, place in places.items()}).ops()):
        number = last - int(op[2] if op[0] == KERNEL else op[1])
        if op[0] == KERNEL:
            ops.append((KERNEL, op[1], str(number)))
        elif op[0] == START:
            ops.append((DONE, str(number)))
        else:
            ops.append((START, str(number), 0, tasks[number].seconds, places[number]))
    return tuple(ops)


class _TaskOrder:
    """Puts tasks in order for a compute stream and one for transfers.

    Of several kernels the one comes first after which a transfer can begin soonest, of several transfers the one for
    which the longest chain of tasks waits; a wait comes when no kernel is left to run.

    Args:
      tasks: the tasks.
      places: the number of each transfer by that of its task.
    """

    def __init__(self, tasks: Sequence[StreamTask], places: dict[int, int]) -> None:
        self.tasks, self.places = tasks, places
        self.readers: list[list[int]] = [[] for _ in tasks]
        self.missing = [len(set(task.after)) for task in tasks]
        for number, task in enumerate(tasks):
            for source in set(task.after):
                self.readers[source].append(number)
        self.left, self.tail = self._to_next_transfer(), self._to_end()
        self.kernels: list[tuple[float, float, int]] = []
        self.transfers: list[tuple[float, int]] = []
        self.now = 0.0
        self.flying: deque[tuple[int, float]] = deque()
        self.listed: list[Op] = []

    def ops(self) -> list[Op]:
        """The ops of the block's program."""
        self._arrive([number for number, missing in enumerate(self.missing) if not missing])
        while self.kernels or self.transfers or self.flying:  # Ends: each round begins or ends a task.
            if self.flying and (self.flying[0][1] <= self.now or not self.kernels):
                self._end(*self.flying.popleft())
            elif self.kernels:
                self._compute(heapq.heappop(self.kernels)[2])
            else:
                self._begin()
        return self.listed

    def _to_next_transfer(self) -> list[float]:
        """Seconds of kernels after each task until some transfer can begin; infinite where none waits for it."""
        left = [math.inf] * len(self.tasks)
        for number in range(len(self.tasks) - 1, -1, -1):
            task = self.tasks[number]
            after = 0.0 if task.transfer else left[number] + task.seconds
            for source in task.after:
                left[source] = min(left[source], after)
        return left

    def _to_end(self) -> list[float]:
        """Seconds of the longest chain of tasks that wait for each task."""
        tail = [0.0] * len(self.tasks)
        for number in range(len(self.tasks) - 1, -1, -1):
            for source in self.tasks[number].after:
                tail[source] = max(tail[source], tail[number] + self.tasks[number].seconds)
        return tail

    def _compute(self, number: int) -> None:
        """Runs a kernel, and before it starts the transfers that can begin before it is over."""
        seconds = self.tasks[number].seconds
        while self.transfers and self._free() < self.now + seconds:  # Ends: each round begins a transfer.
            self._begin()
        self.listed.append((KERNEL, seconds, str(number)))
        self.now += seconds
        self._finish(number)

    def _free(self) -> float:
        """When the transfers that have been started are over."""
        return max(self.now, self.flying[-1][1] if self.flying else 0.0)

    def _begin(self) -> None:
        number = heapq.heappop(self.transfers)[1]
        seconds = self.tasks[number].seconds
        self.listed.append((START, str(number), 0, seconds, self.places[number]))
        self.flying.append((number, self._free() + seconds))

    def _end(self, number: int, end: float) -> None:
        self.listed.append((DONE, str(number)))
        self.now = max(self.now, end)
        self._finish(number)

    def _finish(self, number: int) -> None:
        ready = []
        for reader in self.readers[number]:
            self.missing[reader] -= 1
            if not self.missing[reader]:
                ready.append(reader)
        self._arrive(ready)

    def _arrive(self, numbers: list[int]) -> None:
        """Tasks whose sources are there; what takes no time is over at once."""
        for number in numbers:  # Ends: a task is added once, when its last source is over.
            task = self.tasks[number]
            if task.transfer:
                heapq.heappush(self.transfers, (-self.tail[number], number))
            elif task.seconds:
                heapq.heappush(self.kernels, (self.left[number], -self.tail[number], number))
            else:
                for reader in self.readers[number]:
                    self.missing[reader] -= 1
                    if not self.missing[reader]:
                        numbers.append(reader)
