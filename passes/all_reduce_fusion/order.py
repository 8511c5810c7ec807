"""Holds XLA's scheduler to the times that buckets were planned for.

XLA:GPU runs kernels in its own order. Its latency-hiding scheduler fills the schedule from the end: the last
call's done, any op that may precede it, the call's start, the gradients it reads, and so on. One call is in flight at a
time. So weight gradients move to the end, where they do not suffice to hide the calls. Buckets that fit program order
fit that order badly.

Three constraints matter, and optimization barriers can express them. A barrier forwards its operands, and its results
can be read only when all operands are available (StableHLO specification). XLA:GPU drops it after scheduling.

* When a call must be over: the readers of a kernel L, the first on the way to further gradients to end after the call,
  wait for the call's result. So the call's start, and the gradients it reads, come before that.
* When a gradient must be available: the kernel after it in program order waits for the operands of the call.
* When a call may start: a call that is ready while another is in flight waits for L too. Started earlier, it would make
  kernels wait for the call before it.

Peak memory falls, since activations are freed as gradients are computed.
"""

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from hlorewrite.cost.kernels.clock import KERNELS
from hlorewrite.ir import MAY_HAVE_EFFECTS, Editor, defining_op, ir, makers_of, op_key
from hlorewrite.passes.common.block_graph import BlockGraph
from hlorewrite.util.hash_consed_sets import NONE, NumberSet, meet
from hlorewrite.util.reachability import reachable

_FIXED = (*KERNELS, *MAY_HAVE_EFFECTS, "stablehlo.optimization_barrier")
_MOST_MOVED = 4096
_BEFORE = 1 << 40

Place = tuple[int, int]
"""The position of an op: its place, or that of the kernel after which it was moved, and the iteration in which it was
moved."""


@dataclass(frozen=True, slots=True)
class FusedCall:
    """A call as the plan sees it.

    Attributes:
      op: the collective.
      ready: seconds at which its last member is ready, if nothing waits for communication.
      seconds: how long it takes.
      copied: seconds of copies into its buffer.
      needed: seconds at which its results are read first.
      spare: maps end and length of a call to its slack in seconds.
      own: its members.
      before: the members that it depends on.
    """

    op: ir.Operation
    ready: float
    seconds: float
    copied: float
    needed: float
    spare: Callable[[float, float], float]
    own: NumberSet = NONE
    before: NumberSet = NONE


@dataclass(frozen=True)
class Spine:
    """The kernels of a block on the way to later gradients, in program order.

    Attributes:
      starts: seconds at which each starts.
      ends: seconds at which each ends.
      kernels: the kernels.
    """

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    kernels: tuple[ir.Operation, ...]


def spine_of(graph: BlockGraph, last: ir.Operation) -> Spine:
    """The kernels on the way to the operand of the collective that is ready last.

    Args:
      graph: the block.
      last: that collective.

    Returns:
      The kernels.
    """
    def makers(op: ir.Operation) -> list[int]:
        return [graph.position[op_key(maker)] for maker in makers_of(op.operands) if op_key(maker) in graph.position]

    places = reachable(makers(last), lambda place: makers(graph.ops[place]))
    ordered = sorted(place for place in places if place in graph.ends)
    return Spine(tuple(graph.starts[place] for place in ordered), tuple(graph.ends[place] for place in ordered),
                 tuple(graph.ops[place] for place in ordered))


def hold(editor: Editor, block: ir.Block, calls: Sequence[FusedCall], spine: Spine) -> int:
    """Makes kernels wait for the calls that should end before they start.

    Args:
      editor: the editor of the module.
      block: the block all calls are in.
      calls: its calls.
      spine: the kernels whose readers may wait.

    Returns:
      How many calls are held.
    """
    ordered = sorted(calls, key=lambda call: call.ready)
    order = _Order(editor, block)
    for call in ordered:
        index = bisect.bisect_left(spine.starts, call.ready - 1e-12)
        if index < len(spine.starts) and spine.starts[index] < call.needed:
            order.made_before(spine.kernels[index], call.op)
    free = delay = 0.0
    held, last = 0, -1
    for call, following in itertools.pairwise(ordered):
        delay += call.copied
        free = max(free, call.ready + delay) + call.seconds
        over = bisect.bisect_left(spine.ends, free - delay + call.spare(free - delay, call.seconds) - 1e-12)
        index = max(last + 1, over, bisect.bisect_left(spine.ends, following.ready - 1e-12))
        if index >= len(spine.ends) - 1:
            break
        if spine.ends[index] >= call.needed:
            continue
        waits = following.ready < free - delay and not meet(following.before, call.own)
        if order.wait(spine.kernels[index], call.op, following.op if waits else None):
            held, last = held + 1, index
            free = max(free, spine.ends[index] + delay) if waits else free
    return held


class _Order:
    """The positions of a block's ops while some are moved."""

    def __init__(self, editor: Editor, block: ir.Block) -> None:
        self.editor = editor
        self.places = {op_key(op.operation): (place, 0) for place, op in enumerate(block.operations)}
        self.moved = 0

    def made_before(self, kernel: ir.Operation, call: ir.Operation) -> bool:
        """Makes a kernel wait for the operands of a call; returns whether that was possible.

        ``x1, g1 = barrier(x, g)`` before the kernel, which reads x1, and the call reads g1.
        """
        here = self.places[op_key(kernel)]
        position = _operand(kernel)
        makers, readers = self._made_from([call], here), self._readers(call, here)
        if position is None or makers is None or readers is None:
            return False
        if self.places[op_key(call)] < here:
            readers = self._sorted([call, *readers])
        values = [kernel.operands[position], *call.operands]
        for op in makers:
            self._put_before(op, kernel, here)
        barrier = self.editor.create("stablehlo.optimization_barrier", values, [value.type for value in values],
                                     location=call.location, before=kernel)
        self.moved += 1
        self.places[op_key(barrier)] = (here[0], self.moved - _BEFORE)
        for op in readers:
            self._put_before(op, kernel, here)
        self.editor.set_operand(kernel, position, barrier.results[0])
        for number, result in enumerate(list(barrier.results)[1:]):
            self.editor.set_operand(call, number, result)
        return True

    def _put_before(self, op: ir.Operation, kernel: ir.Operation, here: Place) -> None:
        self.moved += 1
        self.places[op_key(op)] = (here[0], self.moved - _BEFORE)
        self.editor.move_before(op, kernel)

    def wait(self, kernel: ir.Operation, call: ir.Operation, following: ir.Operation | None) -> bool:
        """Makes the readers of a kernel, and a call that must not start before it ends, wait for a call.

        Moves ops that the calls read before a barrier after the kernel, and their readers after the barrier.

        Returns:
          Whether that was possible.
        """
        here = self.places[op_key(kernel)]
        makers, readers = self._made_from([call], here), self._readers(call, here)
        if makers is None or readers is None or next(_uses(call), None) is None:
            return False
        if self.places[op_key(call)] > here:
            makers.append(call)
        if following is not None:
            more, behind = self._made_from([following], here), self._readers(following, here)
            if more is None or behind is None:
                following = None
            else:
                makers = self._sorted([*makers, *more])
                ahead = [following] if self.places[op_key(following)] < here else []
                readers = self._sorted([*readers, *ahead, *behind])
        last = kernel
        for op in makers:
            last = self._move(op, last, here)
        last = self._barrier(kernel, call, following, last)
        for op in readers:
            last = self._move(op, last, here)
        return True

    def _barrier(self, kernel: ir.Operation, call: ir.Operation, following: ir.Operation | None,
                 anchor: ir.Operation) -> ir.Operation:
        """``x1, g1 = barrier(x, g)``, ``x2, r2 = barrier(x1, r)``: readers of x, r and g read x2, r2 and g1.

        Two barriers, so that the next call does not depend on the one before it. If it did, the scheduler would start
        it when its own kernel estimates say that it is hidden; of two ready calls it postpones the one that fewer calls
        precede (kAsyncDepth).
        """
        made, results = list(kernel.results), list(call.results)
        places = [[(use.owner.operation, use.operand_number) for use in value.uses] for value in (*made, *results)]
        if following is not None:
            operands = list(following.operands)
            anchor = self._handed_on([*made, *operands], call, kernel, anchor)
            made = list(anchor.results)[:len(made)]
            for number, result in enumerate(list(anchor.results)[len(made):]):
                self.editor.set_operand(following, number, result)
        barrier = self._handed_on([*made, *results], call, kernel, anchor)
        for result, uses in zip(barrier.results, places, strict=True):
            for reader, number in uses:
                self.editor.set_operand(reader, number, result)
        return barrier

    def _handed_on(self, values: Sequence[ir.Value], call: ir.Operation, kernel: ir.Operation,
                   anchor: ir.Operation) -> ir.Operation:
        barrier = self.editor.create("stablehlo.optimization_barrier", values, [value.type for value in values],
                                     location=call.location, at=ir.InsertionPoint.after(anchor))
        self.moved += 1
        self.places[op_key(barrier)] = (self.places[op_key(kernel)][0], self.moved)
        return barrier

    def _move(self, op: ir.Operation, anchor: ir.Operation, here: Place) -> ir.Operation:
        self.moved += 1
        self.places[op_key(op)] = (here[0], self.moved)
        self.editor.move_after(op, anchor)
        return op

    def _made_from(self, roots: Sequence[ir.Operation], here: Place) -> list[ir.Operation] | None:
        """The ops after a kernel that some ops depend on; None when one of them cannot move."""
        return self._cone(roots, _sources, here, lambda place: place > here, outside=True)

    def _readers(self, root: ir.Operation, here: Place) -> list[ir.Operation] | None:
        """The readers of an op before a kernel; None when one of them cannot move."""
        return self._cone([root], _uses, here, lambda place: place < here, outside=False)

    def _cone(self, roots: Sequence[ir.Operation], neighbours: Callable[[ir.Operation], Iterator[ir.Operation]],
              here: Place, moves: Callable[[Place], bool], *, outside: bool) -> list[ir.Operation] | None:
        """The ops between roots and a kernel at ``here``.

        None when the kernel is among them: a barrier around it would then wait for itself. Times do not exclude that,
        since a kernel or a call on groups of one device takes none.
        """
        cone: dict[int, ir.Operation] = {}
        pending = list(roots)
        # Ends: an op is added once.
        while pending:
            for other in neighbours(pending.pop()):
                key = op_key(other)
                place = self.places.get(key)
                if place == here or (place is None and not outside):
                    return None  # the kernel, or inside a region
                if place is None or key in cone or not moves(place):
                    continue
                if other.name in _FIXED or len(other.regions) or len(cone) > _MOST_MOVED:
                    return None
                cone[key] = other
                pending.append(other)
        return self._sorted(cone.values())

    def _sorted(self, ops: Iterable[ir.Operation]) -> list[ir.Operation]:
        by_key = {op_key(op): op for op in ops}
        return [by_key[key] for key in sorted(by_key, key=self.places.__getitem__)]


def _sources(op: ir.Operation) -> Iterator[ir.Operation]:
    return (source for source in map(defining_op, op.operands) if source is not None)


def _uses(op: ir.Operation) -> Iterator[ir.Operation]:
    return (use.owner.operation for result in op.results for use in result.uses)


def _operand(kernel: ir.Operation) -> int | None:
    """The operand of a kernel on which a barrier costs least: one that a kernel made, or an argument."""
    best = None
    for position, value in enumerate(kernel.operands):
        source = defining_op(value)
        if source is not None and source.name in KERNELS:
            return position
        if best is None and (source is None or source.name != "stablehlo.constant"):
            best = position
    return best
