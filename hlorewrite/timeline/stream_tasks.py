"""Predicts the time of a block that XLA has not scheduled yet, from its kernels, transfers and their dependences.

Passes ask this about a loop's body before and after a change. The order is one that XLA's latency-hiding scheduler can
reach (openxla/xla, ``xla/service/latency_hiding_scheduler.cc``). That scheduler works from the end: each stream has one
transfer at a time, which ends as late as its readers allow and starts before enough kernels to hide it. The engine of
:mod:`hlorewrite.timeline.engine` then says how long that takes, as for a schedule of XLA.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlorewrite.cost.kernels.rates import timeline_constants
from hlorewrite.timeline.engine import Engine
from hlorewrite.timeline.program import Op, OpCode, ScheduledProgram, StreamProgram, StreamTransfer


@dataclass(frozen=True, slots=True)
class StreamTask:
    """A kernel, a transfer, or an op that takes no time and only passes on dependences.

    Attributes:
      seconds: its time when it runs alone.
      after: the tasks before it in the list whose results it reads.
      transfer: whether it runs next to compute.
      stream: the stream of a transfer; transfers of one stream run in sequence.
    """

    seconds: float
    after: tuple[int, ...] = ()
    transfer: bool = False
    stream: int = 0

    @property
    def is_kernel(self) -> bool:
        """Whether it takes time of the compute stream."""
        return self.seconds > 0 and not self.transfer


def awaited_by_kernels(tasks: Sequence[StreamTask]) -> set[int]:
    """The numbers of the tasks that some kernel waits for, directly or through other tasks.

    Args:
      tasks: each after those it waits for.

    Example:
      >>> awaited_by_kernels([StreamTask(2.0, transfer=True), StreamTask(0.0, (0,)), StreamTask(1.0, (1,))])
      {0, 1}
    """
    awaited = set[int]()
    for number in range(len(tasks) - 1, -1, -1):
        if tasks[number].is_kernel or number in awaited:
            awaited.update(tasks[number].after)
    return awaited


@dataclass(frozen=True)
class BlockTime:
    """The time of a block.

    Attributes:
      seconds: until its last kernel and transfer are over.
      waited: seconds that compute waits for a transfer, by its number among the tasks.
    """

    seconds: float
    waited: dict[int, float]


def block_time(tasks: Sequence[StreamTask], slowdown: float | None = None) -> BlockTime:
    """Simulates the tasks of a block on a compute stream and streams for transfers.

    Args:
      tasks: each after those it waits for.
      slowdown: compute during a transfer takes 1 + this times as long; by default the published mean.

    Example:
      >>> kernel, transfer = StreamTask(2.0), StreamTask(3.0, transfer=True)
      >>> block_time([kernel, transfer], 0.0)  # neither waits for the other
      BlockTime(seconds=3.0, waited={1: 1.0})
      >>> block_time([transfer, StreamTask(2.0, (0,))], 0.0)
      BlockTime(seconds=5.0, waited={0: 3.0})
      >>> block_time([transfer, StreamTask(2.0, transfer=True, stream=1)], 0.0).seconds
      3.0
    """
    slowdown = float(timeline_constants()["overlap_slowdown"]) if slowdown is None else slowdown
    numbers = [number for number, task in enumerate(tasks) if task.transfer]
    places = {number: place for place, number in enumerate(numbers)}
    ops = _from_the_end(tasks, places)
    transfers = tuple(StreamTransfer(str(number), "", "", stream="", payload_bytes=0, groups=(),
                                     seconds=tasks[number].seconds, sends=("", ""))
                      for number in numbers)
    program = StreamProgram("block", ops, (), "")
    streams = tuple(str(stream) for stream in range(1 + max((task.stream for task in tasks), default=0)))
    done = Engine(ScheduledProgram(program, transfers, (), streams, (), frozenset()), slowdown).run()
    return BlockTime(done.seconds, {numbers[place]: waited for place, (_, waited, _) in done.totals.transfers.items()
                                    if waited > 0})


@dataclass(frozen=True)
class TaskPlaces:
    """The tasks of a block in the order that ``block_time`` simulates, and when they are over without slowdown.

    Attributes:
      begins: the place of each task in the order.
      ends: the place where its result is there: for a transfer, where compute waits for it; for a task that takes no
        time, where the last thing is there that it reads; -1 if it reads nothing of the block.
      seconds: when it is over; for a transfer, when it has arrived.
    """

    begins: tuple[int, ...]
    ends: tuple[int, ...]
    seconds: tuple[float, ...]


def task_places(tasks: Sequence[StreamTask]) -> TaskPlaces:
    """The order in which ``block_time`` runs the tasks of a block.

    Args:
      tasks: each after those it waits for.

    Example:
      >>> transfer, other, reader = StreamTask(3.0, transfer=True), StreamTask(2.0), StreamTask(1.0, (0,))
      >>> task_places([transfer, other, reader])
      TaskPlaces(begins=(0, 1, 3), ends=(2, 1, 3), seconds=(3.0, 2.0, 4.0))
    """
    begins, ends, over = [-1] * len(tasks), [-1] * len(tasks), [0.0] * len(tasks)
    now, free = 0.0, defaultdict[int, float](float)
    for place, op in enumerate(_from_the_end(tasks, {number: number for number in range(len(tasks))})):
        number = int(op[2] if op[0] == OpCode.KERNEL else op[1])
        task = tasks[number]
        if op[0] == OpCode.DONE:
            now = max(now, over[number])
        elif op[0] == OpCode.START:
            over[number] = free[task.stream] = max(now, free[task.stream]) + task.seconds
        else:
            over[number] = now = now + task.seconds
        if op[0] != OpCode.DONE:
            begins[number] = place
        ends[number] = place
    for number, task in enumerate(tasks):
        if not task.transfer and not task.is_kernel:
            begins[number] = ends[number] = max((ends[source] for source in task.after), default=-1)
            over[number] = max((over[source] for source in task.after), default=0.0)
    return TaskPlaces(tuple(begins), tuple(ends), tuple(over))


def _from_the_end(tasks: Sequence[StreamTask], places: dict[int, int]) -> tuple[Op, ...]:
    """Orders the ops of a block from the last one backwards: reverses the graph, orders it, and reverses the result.

    Args:
      tasks: the tasks.
      places: transfer numbers by task number.
    """
    last = len(tasks) - 1
    readers: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for source in set(task.after):
            readers[source].append(number)
    mirrored = [replace(task, after=tuple(last - reader for reader in readers[number]))
                for number, task in reversed(list(enumerate(tasks)))]
    ops: list[Op] = []
    for op in reversed(_TaskOrder(mirrored, {last - number: place for number, place in places.items()}).ops()):
        number = last - int(op[2] if op[0] == OpCode.KERNEL else op[1])
        if op[0] == OpCode.KERNEL:
            ops.append((OpCode.KERNEL, op[1], str(number)))
        elif op[0] == OpCode.START:
            ops.append((OpCode.DONE, str(number)))
        else:
            ops.append((OpCode.START, str(number), tasks[number].stream, tasks[number].seconds, places[number]))
    return tuple(ops)


class _TaskOrder:
    """Orders tasks for a compute stream and streams for transfers.

    Among ready kernels, the one after which a transfer can begin soonest goes first. Among transfers, the one that the
    longest chain of tasks waits for goes first. Compute waits only when no kernel is ready.

    Args:
      tasks: the tasks.
      places: transfer numbers by task number.
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
        self.transfers: dict[int, list[tuple[float, int]]] = defaultdict(list)
        self.now = 0.0
        self.free: dict[int, float] = defaultdict(float)
        self.flying: list[tuple[float, int]] = []
        self.listed: list[Op] = []

    def ops(self) -> list[Op]:
        """The ops of the block's program."""
        self._arrive([number for number, missing in enumerate(self.missing) if not missing])
        while self.kernels or self.flying or self._waiting():  # Ends: each round begins or ends a task.
            waiting = self._waiting()
            if self.flying and self.flying[0][0] <= self.now:
                self._end(*heapq.heappop(self.flying))
            elif self.kernels:
                self._compute(heapq.heappop(self.kernels)[2])
            elif waiting and self.free[waiting[0]] <= self.now:
                self._begin(waiting[0])
            else:
                self._end(*heapq.heappop(self.flying))
        return self.listed

    def _to_next_transfer(self) -> list[float]:
        """Seconds of kernels after each task until some transfer can begin; infinite if no transfer waits for it."""
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
        """Runs a kernel, after starting the transfers that can begin before the kernel ends."""
        seconds = self.tasks[number].seconds
        for stream in self._waiting():
            while self.transfers[stream] and self.free[stream] < self.now + seconds:  # Ends: each begins a transfer.
                self._begin(stream)
        self.listed.append((OpCode.KERNEL, seconds, str(number)))
        self.now += seconds
        self._finish(number)

    def _waiting(self) -> list[int]:
        """The streams that transfers wait for, earliest free first."""
        return sorted((stream for stream, waiting in self.transfers.items() if waiting), key=lambda one: self.free[one])

    def _begin(self, stream: int) -> None:
        number = heapq.heappop(self.transfers[stream])[1]
        seconds = self.tasks[number].seconds
        self.listed.append((OpCode.START, str(number), stream, seconds, self.places[number]))
        self.free[stream] = max(self.now, self.free[stream]) + seconds
        heapq.heappush(self.flying, (self.free[stream], number))

    def _end(self, end: float, number: int) -> None:
        self.listed.append((OpCode.DONE, str(number)))
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
        """Makes tasks ready whose sources are done; tasks that take no time end at once."""
        for number in numbers:  # Ends: a task is added once, when its last source is over.
            task = self.tasks[number]
            if task.transfer:
                heapq.heappush(self.transfers[task.stream], (-self.tail[number], number))
            elif task.seconds:
                heapq.heappush(self.kernels, (self.left[number], -self.tail[number], number))
            else:
                for reader in self.readers[number]:
                    self.missing[reader] -= 1
                    if not self.missing[reader]:
                        numbers.append(reader)
