"""The two halves of a loop's body between which a rotation cuts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hlorewrite.ir import (
    BARRIER,
    Editor,
    Loop,
    block_ops,
    defining_op,
    ir,
    nested_ops,
    op_key,
    owner_op,
    terminator,
    users,
)
from hlorewrite.passes.common.emit import divide_barrier
from hlorewrite.util.reachability import reachable


@dataclass(frozen=True)
class BodySplit:
    """The ops of a body that run first in an iteration, and those that can overlap with the next iteration's first
    half.

    Attributes:
      first: ops that read nothing of the second half in this iteration; program order.
      second: the other ops, program order.
      second_slots: positions of carried values that the second half makes.
      handed: values of the first half, and varying carried values, that the second half reads or carries on.
      carried: those that the first half carries to the next iteration anyway, with the positions.
      reads_first: whether the second half reads results of the first half of the same iteration.
    """

    first: tuple[ir.Operation, ...]
    second: tuple[ir.Operation, ...]
    second_slots: frozenset[int]
    handed: tuple[ir.Value, ...]
    carried: tuple[tuple[ir.Value, int], ...]
    reads_first: bool

    @property
    def passed(self) -> tuple[ir.Value, ...]:
        """All values that one half passes to the other."""
        return (*self.handed, *(value for value, _ in self.carried))


def behind(loop: Loop, collectives: Sequence[ir.Operation]) -> BodySplit:
    """The split whose second half is exactly the ops that depend on some collectives of the body, in any iteration."""
    return _behind(loop, collectives, True)


def delayed(loop: Loop, collectives: Sequence[ir.Operation]) -> BodySplit:
    """The split whose second half is the ops that depend on some collectives in the same iteration.

    The first half of the next iteration may read what they make. It then waits for them only there: a ring passes on a
    sum while the next summand is computed, and the sum stays where its product is.
    """
    return _behind(loop, collectives, False)


def _behind(loop: Loop, collectives: Sequence[ir.Operation], any_iteration: bool) -> BodySplit:
    reached = list(reached_from(loop, collectives, any_iteration=any_iteration))
    slots = frozenset(node.arg_number for node in reached if isinstance(node, ir.BlockArgument))
    return _split(loop, {op_key(node) for node in reached if not isinstance(node, ir.BlockArgument)}, slots)


def reached_from(loop: Loop, collectives: Sequence[ir.Operation], *, any_iteration: bool = True
                 ) -> Iterator[ir.Operation | ir.BlockArgument]:
    """Yields some collectives of a body, and the ops and carried values that depend on them.

    Args:
      loop: the loop.
      collectives: ops of its body.
      any_iteration: also yield what depends on them in later iterations.
    """
    end = terminator(loop.body)

    def readers(node: ir.Operation | ir.BlockArgument) -> Iterator[ir.Operation | ir.BlockArgument]:
        argument = isinstance(node, ir.BlockArgument)
        for value in ([node] if any_iteration else []) if argument else node.results:
            for reader, number in users(value):
                op = _of_body(reader, loop.body)
                if op is not None:
                    yield loop.body.arguments[number] if op == end else op

    return reachable(collectives, readers, lambda node: node if isinstance(node, ir.BlockArgument) else op_key(node))


def in_front(loop: Loop, collectives: Sequence[ir.Operation]) -> BodySplit:
    """The split whose first half is the ops that some collectives of the body, and the loop's condition, depend on.

    A barrier that they need in part belongs to the second half until ``separate_barriers`` divides it.
    """
    needs = needs_of(loop, collectives)
    every = {op_key(op) for op in block_ops(loop.body)}
    staying = {slot for slot in range(len(loop.body.arguments)) if loop.keeps(slot)}
    second = frozenset(range(len(loop.body.arguments))) - needs.slots - staying
    return _split(loop, every - needs.ops, second)


@dataclass(frozen=True)
class GatherNeeds:
    """The ops that some collectives of a body, and the loop's condition, depend on, in any iteration.

    Attributes:
      ops: keys of ops of the body, the collectives among them.
      slots: positions of carried values that change.
      parts: for each barrier that they need only in part, the positions of the results they depend on.
    """

    ops: frozenset[int]
    slots: frozenset[int]
    parts: tuple[tuple[ir.Operation, frozenset[int]], ...]


def needs_of(loop: Loop, collectives: Sequence[ir.Operation]) -> GatherNeeds:
    """The ops that some collectives depend on. A result of a barrier needs only the operand at its position.
    """
    needed, slots = {op_key(op) for op in collectives}, set[int]()
    barriers: dict[int, tuple[ir.Operation, set[int]]] = {}
    pending = [value for op in collectives for value in _read_of_body(op, loop.body)]
    pending += [loop.body.arguments[argument.arg_number] for argument in loop.condition.arguments if users(argument)]
    # Ends: an op, a result of a barrier or a carried value is added once.
    while pending:
        value = pending.pop()
        if isinstance(value, ir.BlockArgument):
            slot = value.arg_number
            if slot not in slots and not loop.keeps(slot):
                slots.add(slot)
                pending += [loop.yields[slot]] if _of(loop.yields[slot], loop.body) else []
            continue
        maker = owner_op(value)
        if maker.name == BARRIER:
            position = ir.OpResult(value).result_number
            positions = barriers.setdefault(op_key(maker), (maker, set()))[1]
            if position not in positions:
                positions.add(position)
                pending += [maker.operands[position]] if _of(maker.operands[position], loop.body) else []
        elif op_key(maker) not in needed:
            needed.add(op_key(maker))
            pending += _read_of_body(maker, loop.body)
    whole = {key for key, (op, positions) in barriers.items() if len(positions) == len(op.results)}
    parts = tuple((op, frozenset(positions)) for key, (op, positions) in barriers.items() if key not in whole)
    return GatherNeeds(frozenset(needed | whole), frozenset(slots), parts)


def _split(loop: Loop, second: set[int], slots: frozenset[int]) -> BodySplit:
    ops = block_ops(loop.body)
    late = [op for op in ops if op_key(op) in second]
    kept = tuple(op for op in ops if op_key(op) not in second)
    made_late = {result for op in late for result in op.results}
    handed: dict[ir.Value, None] = {}
    reads = [value for op in late for value in _read_of_body(op, loop.body)]
    carried_on = [loop.yields[slot] for slot in sorted(slots) if _of(loop.yields[slot], loop.body)]
    for value in (*reads, *carried_on):
        if isinstance(value, ir.BlockArgument):
            if value.arg_number not in slots and not loop.keeps(value.arg_number):
                handed[value] = None
        elif value not in made_late:
            handed[value] = None
    reads_first = any(not isinstance(value, ir.BlockArgument) and value not in made_late for value in reads)
    carried = {value: slot for slot, value in enumerate(loop.yields) if slot not in slots and value in handed}
    return BodySplit(kept, tuple(late), slots, tuple(value for value in handed if value not in carried),
                     tuple(carried.items()), reads_first)


def _read_of_body(op: ir.Operation, body: ir.Block) -> Iterable[ir.Value]:
    """The values of a body that an op reads, including inside its regions."""
    return (value for inner in nested_ops(op) for value in inner.operands if _of(value, body))


def _of(value: ir.Value, body: ir.Block) -> bool:
    """Whether a value is an argument of a block or made in it."""
    if isinstance(value, ir.BlockArgument):
        return value.owner == body
    maker = defining_op(value)
    return maker is not None and maker.block == body


def _of_body(op: ir.Operation, body: ir.Block) -> ir.Operation | None:
    """The op directly in a block that is, or contains, an op."""
    # Ends: each step goes to the op around.
    while op.block != body:
        parent = op.parent
        if parent is None or parent.operation.name == "builtin.module":
            return None
        op = parent.operation
    return op


# ---- divides the barriers of rematerialised layers, which tie gathers to what the layer computes


def separate_barriers(loop: Loop, collectives: Sequence[ir.Operation], editor: Editor) -> int:
    """Divides barriers that contain values which collectives depend on together with other values.

    ``jax.checkpoint`` passes all inputs of a layer's backward pass through one barrier: parameters, residuals and the
    incoming gradient. XLA then waits for that gradient before it gathers the parameters. Each result of a barrier is
    its operand, so values stay the same. All values keep a barrier, so XLA does not merge them with the forward pass.

    Args:
      loop: the loop in whose body the barriers are.
      collectives: the collectives of the body.
      editor: the editor of the module.

    Returns:
      How many barriers were divided.
    """
    parts = needs_of(loop, collectives).parts
    for barrier, positions in parts:
        divide_barrier(editor, barrier, positions)
    return len(parts)
