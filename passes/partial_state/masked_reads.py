"""Moves masked reads of sums into a branch, in which the sum may be reduced."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint
from hlorewrite.ir import Editor, defining_op, ir, nested_ops, op_key, users
from hlorewrite.passes.comm_shift.deferral_rewrite import identity_constant
from hlorewrite.passes.partial_state.calls_as_loop import CallsAsLoop
from hlorewrite.passes.partial_state.masks import Mask, Masks, cone_of_numbers, mask_of
from hlorewrite.util.reachability import reachable

_PASSES_ON = ("stablehlo.convert", "stablehlo.reshape")


@dataclass(frozen=True)
class MaskedRead:
    """Uses of a value whose effects a mask hides.

    Attributes:
      value: the value.
      uses: (op, operand position) of each.
      mask: the mask.
    """

    value: ir.Value
    uses: tuple[tuple[ir.Operation, int], ...]
    mask: Mask


def read_in_branches(loop: CallsAsLoop, flow: DeferralGraph, editor: Editor) -> bool:
    """Makes masked readers of sums read a branch that yields zeros in all calls in which the mask hides them.

    Their values in those calls are hidden as before; a product with 0 or 1 that hides them becomes a branch as well,
    because zeros may give NaN. One branch serves all sums of a mask.

    Args:
      loop: the step.
      flow: the flow of the sums.
      editor: the editor of the module.

    Returns:
      Whether anything changed.
    """
    masks = Masks(loop)
    by_mask: dict[tuple[Mask, ir.Block], list[MaskedRead]] = {}
    for read in _masked_reads(loop, flow, masks):
        by_mask.setdefault((read.mask, read.uses[0][0].block), []).append(read)
    for (mask, block), reads in by_mask.items():
        products = _products(block, mask, masks)
        _read_in_branch(loop, mask, reads, editor)
        for op, position in products:
            _as_branch(op, position, mask, editor)
    return bool(by_mask)


def _masked_reads(loop: CallsAsLoop, flow: DeferralGraph, masks: Masks) -> Iterable[MaskedRead]:
    """The masked reads that are nearest to the sums.

    For each value, the reads that need its sum; if it is also read otherwise, all reads that one mask hides.
    """
    for place in _before_calls_end(loop, flow):
        if place.branch is not None or place.value in masks.hidden:
            continue
        home = place.value.owner if isinstance(place.value.owner, ir.Block) else place.value.owner.operation.block
        uses = [(op, position) for op, position in users(place.value) if op.block == home]
        groups: dict[Mask, list[tuple[ir.Operation, int]]] = {}
        for op, position in uses:
            mask = None if _is_new_value(loop, op) else masks.of_use(op, position)
            if mask is not None:
                groups.setdefault(mask, []).append((op, position))
        needed = {op_key(use.reader) for use in flow.forcing_uses.get(place, [])}
        for mask, group in groups.items():
            hidden = [value for op, position in group for value in masks.hidden_by(op, position)]
            if any(op_key(op) in needed for op, _ in group) or (
                    len(group) < len(users(place.value)) and _ends_in_masks(group, hidden)):
                masks.hidden.update(hidden)
                yield MaskedRead(place.value, tuple(group), mask)


def _ends_in_masks(group: Sequence[tuple[ir.Operation, int]], hidden: Sequence[ir.Value]) -> bool:
    """Whether selects or products hide the results of some uses; sums reach into branches anyway."""
    return any(mask_of(op, position) is not None for op, position in (
        *group, *(use for value in hidden for use in users(value))))


def _before_calls_end(loop: CallsAsLoop, flow: DeferralGraph) -> list[ProgramPoint]:
    """The places that sums of a call reach in that call, nearest first."""
    later = {ProgramPoint(value) for value in (*loop.body.arguments, *loop.op.results)}
    return list(reachable(map(ProgramPoint, flow.sources), lambda place: [
        target for target in flow.edges.get(place, ()) if target not in later]))


def _is_new_value(loop: CallsAsLoop, op: ir.Operation) -> bool:
    """Whether an op only makes a new value of state, so it starts a sum over."""
    # Ends: each step goes to a reader.
    while len(op.results) == 1:
        readers = users(op.results[0])
        if len(readers) != 1:
            return False
        if readers[0][0] == loop.end:
            return True
        op = readers[0][0]
        if op.name not in _PASSES_ON:
            return False
    return False


def _products(block: ir.Block, mask: Mask, masks: Masks) -> list[tuple[ir.Operation, int]]:
    """(op, operand position) of the products by which a mask hides what depends on masked reads."""
    found = []
    for op in (each.operation for each in block.operations):
        if op.name == "stablehlo.multiply":
            found += [(op, position) for position in (0, 1)
                      if op.operands[position] in masks.hidden and mask_of(op, position) == mask]
    return found


def _as_branch(op: ir.Operation, position: int, mask: Mask, editor: Editor) -> None:
    zeros = identity_constant(editor, "sum", op.results[0].type, before=op)
    branch = _branch(mask, mask.predicate, [op.operands[position]], [zeros], op, editor)
    editor.replace(op.results[0], branch.results[0])
    editor.erase(op)


def _read_in_branch(loop: CallsAsLoop, mask: Mask, reads: Sequence[MaskedRead], editor: Editor) -> None:
    """Makes one branch for masked reads; their dependents move after it, in order.

    Values that depend on others of these reads get branches of their own.
    """
    block = reads[0].uses[0][0].block
    # Ends: each round leaves fewer, since the value whose maker comes first depends on no other.
    while reads:
        late = _dependents(block, {op_key(op) for read in reads for op, _ in read.uses})
        ready = [read for read in reads if (maker := defining_op(read.value)) is None or op_key(maker) not in late]
        reads = [read for read in reads if read not in ready]
        late = _dependents(block, {op_key(op) for read in ready for op, _ in read.uses})
        last = loop.returned if loop.returned.block == block else list(block.operations)[-1].operation
        for op in late.values():
            if op not in (last, loop.end):
                editor.move_before(op, last)
        first = next(iter(late.values()))
        zeros = [identity_constant(editor, "sum", read.value.type, before=first) for read in ready]
        branch = _branch(mask, _before(mask.predicate, first, editor), [read.value for read in ready], zeros, first,
                         editor)
        for number, read in enumerate(ready):
            for op, position in read.uses:
                editor.set_operand(op, position, branch.results[number])


def _dependents(block: ir.Block, readers: set[int]) -> dict[int, ir.Operation]:
    """Some ops of a block and those that depend on them, by their keys and in their order."""
    late: dict[int, ir.Operation] = {}
    for op in (each.operation for each in block.operations):
        makers = [defining_op(value) for inner in nested_ops(op) for value in inner.operands]
        if op_key(op) in readers or any(maker is not None and op_key(maker) in late for maker in makers):
            late[op_key(op)] = op
    return late


def _branch(mask: Mask, predicate: ir.Value, values: Sequence[ir.Value], otherwise: Sequence[ir.Value],
            before: ir.Operation, editor: Editor) -> ir.Operation:
    """A branch that yields some values where a mask lets them through, and others elsewhere."""
    made = editor.create("stablehlo.if", [predicate], [value.type for value in values], regions=2,
                         location=before.location, before=before)
    for region, given in zip(made.regions, (values, otherwise) if mask.holds else (otherwise, values), strict=True):
        with editor.context:
            block = ir.Block.create_at_start(region, [], [])
        editor.create("stablehlo.return", list(given), [], location=before.location, at_end=block)
    return made


def _before(value: ir.Value, anchor: ir.Operation, editor: Editor) -> ir.Value:
    """A copy of a predicate before an op, since the original may come after it."""
    mapping: dict[ir.Value, ir.Value] = {}
    editor.clone_ops((op for op in cone_of_numbers(value) or () if op.block == anchor.block), anchor, mapping)
    return mapping.get(value, value)
