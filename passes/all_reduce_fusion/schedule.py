"""Makes buckets compatible with each other, and finds the ops that must move after them.

Contracting sets of nodes keeps a directed graph acyclic only if no two sets wait for each other, directly or
indirectly. Buckets of one class cannot (they are intervals of one order); buckets of different classes can, so the
graph of all buckets is sorted, and a bucket on a cycle is split.
"""

import functools
from bisect import insort
from collections.abc import Sequence

from hlorewrite.ir import Editor, ir
from hlorewrite.passes.common.block_graph import BlockGraph
from hlorewrite.util.hash_consed_sets import NONE, NumberRange, NumberSet, meet, union, within, without

Bucket = tuple[int, ...]
"""Members of a graph that share a call, by index."""


def without_cycles(buckets: Sequence[Bucket], before: Sequence[NumberSet], sizes: Sequence[int]) -> list[Bucket]:
    """Splits buckets until none waits for itself.

    Args:
      buckets: every member is in exactly one.
      before: for each member, the members it depends on.
      sizes: bytes of each member.

    Returns:
      Buckets without cycles; buckets on no cycle are kept.

    Example:
      >>> without_cycles([(0, 3), (1, 2)], [0, 0, 0b1, 0b10], [1, 1, 1, 1])  # 2 waits for 0, 3 waits for 1
      [(0,), (3,), (1, 2)]
    """
    acyclic = list(buckets)
    # Ends: each round cuts a bucket of several members in two; single members form no cycle.
    while True:
        stuck = _stuck(acyclic, before)
        if not stuck:
            return acyclic
        several = [index for index in stuck if len(acyclic[index]) > 1]
        least = min(several, key=lambda index: (sum(sizes[m] for m in acyclic[index]), acyclic[index]))
        bucket = acyclic[least]
        half = len(bucket) // 2
        acyclic[least:least + 1] = [bucket[:half], bucket[half:]]


def _stuck(buckets: Sequence[Bucket], before: Sequence[NumberSet]) -> list[int]:
    """Buckets that wait for themselves, directly or through others; empty when all can run."""
    numbers = NumberRange(len(before))
    own = [numbers.of(bucket) for bucket in buckets]
    waits = [functools.reduce(union, (before[member] for member in bucket), NONE) for bucket in buckets]
    for index in range(len(buckets)):
        if meet(waits[index], own[index]):
            return [index]
    done, pending = NONE, list(range(len(buckets)))
    # Ends: each round takes a bucket out, or returns.
    while pending:
        stuck = []
        for index in pending:
            if within(waits[index], done):
                done = union(done, own[index])
            else:
                stuck.append(index)
        if len(stuck) == len(pending):
            return pending
        pending = stuck
    return []


class Rescheduler:
    """Moves ops of a block after the buckets they read.

    Args:
      graph: the dependences of the block.
      buckets: buckets of several members, without cycles.
    """

    def __init__(self, graph: BlockGraph, buckets: Sequence[Bucket]) -> None:
        self.graph = graph
        self.buckets = list(buckets)
        self._own = [graph.numbers.of(bucket) for bucket in buckets]
        self._bucket_at = {graph.places[m]: index for index, bucket in enumerate(buckets) for m in bucket}
        self._unseen = [len(bucket) for bucket in buckets]
        self._wanted = [functools.reduce(union, (graph.before[member] for member in bucket)) for bucket in buckets]
        self._pending = functools.reduce(union, self._own, NONE)
        self._delayed: dict[int, NumberSet] = {}
        self._seen: list[int] = []

    def run(self) -> list[tuple[int, int, list[int]]]:
        """The place of each bucket's call.

        Returns:
          In the order they run: (bucket, place of the op to put it before, places of the ops to move after it).
        """
        steps: list[tuple[int, int, list[int]]] = []
        for place in self.graph.cone:
            index = self._bucket_at.get(place)
            if index is not None:
                self._unseen[index] -= 1
                if self._unseen[index] == 0:
                    insort(self._seen, index)
                steps += self._runnable(place)
            elif meet(self.graph.reached[place], self._pending):
                self._delayed[place] = self.graph.reached[place]
        if self._pending != NONE:
            raise ValueError("the buckets wait for each other")
        return steps

    def _runnable(self, place: int) -> list[tuple[int, int, list[int]]]:
        steps = []
        progress = True
        # Ends: each round with progress takes a bucket out of those that are pending.
        while progress:
            progress = False
            for index in list(self._seen):
                if meet(self._wanted[index], self._pending):
                    continue
                self._seen.remove(index)
                self._pending = without(self._pending, self._own[index])
                free = [p for p, waits in self._delayed.items() if not meet(waits, self._pending)]
                for p in free:
                    del self._delayed[p]
                steps.append((index, place, free))
                progress = True
        return steps


def move_all(editor: Editor, ops: Sequence[ir.Operation], anchor: ir.Operation) -> None:
    """Moves ops before another, in their order."""
    for op in ops:
        editor.move_before(op, anchor)
