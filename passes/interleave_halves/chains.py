"""Chains of collectives: those of a block that wait for one another, and the ops in between.

Ops of a block are nodes, and so is each position of what an inner loop carries, because what enters a loop at one
position need not reach the others: no layer waits for the gradients that a loop of layers stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from hlorewrite.ir import COLLECTIVES, Loop, defining_op, ir, nested_ops, op_key, terminator
from hlorewrite.ir.regions import BARRIER, WHILE
from hlorewrite.ir.view import ancestors
from hlorewrite.util.reachability import reachable

_OF_SEVERAL = (WHILE, BARRIER)
"""Ops with a node for each result."""


class _Node(NamedTuple):
    """An op of a block, or one position of a loop in it: what enters there, or what an iteration computes.

    A barrier and the end of a loop's body have a node for each position. The position of other ops is 0.
    """

    op: ir.Operation
    position: int = 0
    enters: bool = False


class Chains(NamedTuple):
    """Collectives of which each waits for another one, or another one for it.

    Attributes:
      ops: the collectives by key.
      awaited: the keys of those that another one waits for.
      keys: the keys of all, and of all ops on the paths between them, within their block and around its loop.
      places: (key of an op, position) of these ops. The end of a loop's body has several positions.
    """

    ops: dict[int, ir.Operation]
    awaited: set[int]
    keys: set[int]
    places: set[tuple[int, int]]


def chained(seeds: Mapping[int, ir.Operation], walk: WaitWalk) -> Chains:
    """The collectives of chains, in which each waits for the one before it through ops in between.

    A reduction of gradients, for which no other collective waits, is not among them.

    Args:
      seeds: key of an op to the op, for collectives of one block or several.
      walk: the edges between ops, of which it remembers those of loops.

    """
    behind = walk.all(seeds.values(), walk.readers)
    in_front = walk.all(seeds.values(), walk.sources)
    linked = behind | in_front
    ops = {key: op for key, op in seeds.items() if _key(_Node(op)) in linked}
    awaited = {key for key, op in ops.items() if _key(_Node(op)) in in_front}
    between = behind & in_front
    return Chains(ops, awaited, ops.keys() | {key for key, *_ in between},
                  {(key, position) for key, position, _ in between})


class WaitWalk:
    """Edges between the nodes of blocks of one module, which must not change meanwhile.

    Args:
      without: keys of ops that no path goes through.
    """

    def __init__(self, without: Collection[int] = ()) -> None:
        self.without = without
        self._slots: dict[int, LoopSlots] = {}

    def all(self, ops: Iterable[ir.Operation], following: Callable[[_Node], list[_Node]]) -> set[tuple[int, int, bool]]:
        """Keys of the nodes that some ops lead to."""
        def open_ways(node: _Node) -> list[_Node]:
            found = following(node)
            return [each for each in found if op_key(each.op) not in self.without] if self.without else found

        starts = [each for op in ops for each in open_ways(_Node(op))]
        return {_key(node) for node in reachable(starts, open_ways, _key)}

    def readers(self, node: _Node) -> list[_Node]:
        """The nodes of its block that read what a node makes, in this iteration or the next."""
        op, block = node.op, node.op.block
        if op.name == WHILE:
            computed = [_Node(op, each) for each in self._of(op).readers[node.position]]
            return computed if node.enters else [*computed, *self._using([op.results[node.position]], block)]
        if op.name == BARRIER:
            return self._using([op.results[node.position]], block)
        ends = op == terminator(block) and _is_body(block)
        return self._using([block.arguments[node.position]] if ends else op.results, block)

    def _using(self, values: Iterable[ir.Value], block: ir.Block) -> list[_Node]:
        found = list[_Node]()
        for value in values:
            for use in value.uses:
                user = use.owner.operation
                reader = _in_block(user, block)
                if reader is None:
                    continue
                if reader == terminator(block) or reader.name == BARRIER:
                    found.append(_Node(reader, use.operand_number))
                elif reader.name != WHILE:
                    found.append(_Node(reader))
                elif user == reader:
                    found.append(_Node(reader, use.operand_number, enters=True))
                else:
                    found += [_Node(reader, each) for each in self._of(reader).capturing(value)]
        return found

    def sources(self, node: _Node) -> list[_Node]:
        """The nodes of its block that make what a node reads, in this iteration or the previous one."""
        op, block = node.op, node.op.block
        if op.name == WHILE:
            if node.enters:
                return self._making([op.operands[node.position]], block)
            slots = self._of(op)
            carried = [_Node(op, each, enters) for each in slots.sources[node.position] for enters in (False, True)]
            return [*carried, *self._making(slots.captured[node.position], block)]
        if op.name == BARRIER or (op == terminator(block) and _is_body(block)):
            return self._making([op.operands[node.position]], block)
        inside = nested_ops(op) if len(op.regions) and op.name not in COLLECTIVES else (op,)
        return self._making((value for inner in inside for value in inner.operands), block)

    def _making(self, values: Iterable[ir.Value], block: ir.Block) -> list[_Node]:
        found = list[_Node]()
        for value in values:
            maker = defining_op(value)
            if maker is None and value.owner == block and _is_body(block):
                found.append(_Node(terminator(block), ir.BlockArgument(value).arg_number))
            if maker is not None and maker.block == block:
                found.append(_Node(maker, ir.OpResult(value).result_number if maker.name in _OF_SEVERAL else 0))
        return found

    def _of(self, loop: ir.Operation) -> LoopSlots:
        key = op_key(loop)
        if key not in self._slots:
            self._slots[key] = LoopSlots(Loop(loop), self.without)
        return self._slots[key]


class LoopSlots:
    """The values that iterations of a loop compute the next carried values from.

    One walk over the body in program order: each value has the set of carried and captured values that it is computed
    from, as bits. Ops with regions inside of the body count as one.

    Args:
      loop: the loop.
      without: keys of ops of its body that no value passes through.

    Attributes:
      sources: for each position, the positions that its next value reads, and those that the condition reads.
      readers: the same edges the other way around.
      captured: for each position, the values from outside that its next value reads.
    """

    def __init__(self, loop: Loop, without: Collection[int] = ()) -> None:
        count = len(loop.op.operands)
        bits: dict[ir.Value, int] = {value: 1 << place for place, value in enumerate(loop.body.arguments)}
        outside = list[ir.Value]()
        for op in loop.body.operations:
            read = 0
            for inner in nested_ops(op.operation):
                for value in inner.operands:
                    if value not in bits and _is_outside(value, loop.op):
                        bits[value] = 1 << (count + len(outside))
                        outside.append(value)
                    read |= bits.get(value, 0)
            for result in op.operation.results:
                bits[result] = 0 if op_key(op.operation) in without else read
        tested = [place for place in range(count) if loop.tests(place)]
        needed = [bits.get(value, 0) for value in loop.yields]
        self.sources = [[place for place in range(count) if read >> place & 1 or place in tested] for read in needed]
        self.captured = [[value for place, value in enumerate(outside, count) if read >> place & 1] for read in needed]
        self.readers: list[list[int]] = [[] for _ in range(count)]
        for place, read_by in enumerate(self.sources):
            for each in read_by:
                self.readers[each].append(place)

    def capturing(self, value: ir.Value) -> list[int]:
        """The positions whose next value reads a value from outside; all, if only the condition reads it."""
        found = [place for place, values in enumerate(self.captured) if value in values]
        return found or list(range(len(self.captured)))


def _key(node: _Node) -> tuple[int, int, bool]:
    return op_key(node.op), node.position, node.enters


def _is_outside(value: ir.Value, loop: ir.Operation) -> bool:
    """Whether a value comes from outside of a loop."""
    owner = value.owner
    if not isinstance(owner, ir.Block):
        return loop not in ancestors(owner.operation)
    around = owner.owner.operation
    return around != loop and loop not in ancestors(around)


def _is_body(block: ir.Block) -> bool:
    owner = block.owner.operation
    return owner.name == WHILE and Loop(owner).body == block


def _in_block(op: ir.Operation, block: ir.Block) -> ir.Operation | None:
    """The op directly in a block that is, or contains, an op."""
    # Ends: each step goes to the op around.
    while op.block != block:
        parent = op.parent
        if parent is None or op.block is None:
            return None
        op = parent.operation
    return op
