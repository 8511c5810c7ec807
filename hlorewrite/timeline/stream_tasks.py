"""What a block would take that XLA has not scheduled yet: its kernels and transfers by what they wait for.

Passes ask this about a loop's body before and after a change. The order is one that XLA's latency-hiding scheduler can
reach: one transfer is under way at a time, begun as soon as what it sends is there; kernels that a transfer waits for
precede others, and a wait comes when nothing else is left to run. The engine of :mod:`hlorewrite.timeline.engine` then
says how long it takes, as for a schedule of XLA.
"""

from __future__ import annotations

import heapq
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
    ops = tuple(_TaskOrder(tasks, places).ops())
    transfers = tuple(StreamTransfer(str(number), "", "", "", 0, (), tasks[number].seconds, ("", ""))
                      for number in numbers)
    program = StreamProgram("block", ops, (), "")
    done = Engine(ScheduledProgram(program, transfers, (), ("collectives",), (), frozenset()), slowdown).run()
    return BlockTime(done.seconds, {numbers[place]: waited for place, (_, waited, _) in done.totals.transfers.items()
                                    if waited > 0})


class _TaskOrder:
    """Puts tasks in order, as for the streams of one GPU.

    Args:
      tasks: the tasks.
      places: the number of each transfer's op.
    """

    def __init__(self, tasks: Sequence[StreamTask], places: dict[int, int]) -> None:
        self.tasks, self.places = tasks, places
        self.readers: list[list[int]] = [[] for _ in tasks]
        self.missing = [len(set(task.after)) for task in tasks]
        for number, task in enumerate(tasks):
            for source in set(task.after):
                self.readers[source].append(number)
        self.urgent = self._sent_on()
        self.kernels: list[tuple[bool, int]] = []
        self.transfers: list[int] = []
        self.now = 0.0
        self.flying: tuple[int, float] | None = None
        self.listed: list[Op] = []

    def ops(self) -> list[Op]:
        """The ops of the block's program."""
        self._arrive([number for number, missing in enumerate(self.missing) if not missing])
        while self.kernels or self.transfers or self.flying:  # Ends: each round begins or ends a task.
            if self.flying is not None and (self.flying[1] <= self.now or not self.kernels):
                self._end(*self.flying)
            elif self.flying is None and self.transfers:
                self._begin(heapq.heappop(self.transfers))
            else:
                number = heapq.heappop(self.kernels)[1]
                self.listed.append((KERNEL, self.tasks[number].seconds, str(number)))
                self.now += self.tasks[number].seconds
                self._finish(number)
        return self.listed

    def _sent_on(self) -> list[bool]:
        """Whether a transfer waits for each task."""
        sent = [task.transfer for task in self.tasks]
        for number in range(len(self.tasks) - 1, -1, -1):
            if sent[number]:
                for source in self.tasks[number].after:
                    sent[source] = True
        return sent

    def _begin(self, number: int) -> None:
        seconds, place = self.tasks[number].seconds, self.places[number]
        self.listed.append((START, str(number), 0, seconds, place))
        self.flying = number, self.now + seconds

    def _end(self, number: int, end: float) -> None:
        self.listed.append((DONE, str(number)))
        self.now, self.flying = max(self.now, end), None
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
                heapq.heappush(self.transfers, number)
            elif task.seconds:
                heapq.heappush(self.kernels, (not self.urgent[number], number))
            else:
                for reader in self.readers[number]:
                    self.missing[reader] -= 1
                    if not self.missing[reader]:
                        numbers.append(reader)
