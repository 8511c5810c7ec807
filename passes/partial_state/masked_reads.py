"""Lets what is computed from a sum behind a mask read it in a branch, in which it may be reduced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import defining_op, nested_ops, users
from hlorewrite.passes.comm_shift.deferral_rewrite import identity_constant
from hlorewrite.passes.common.value_numbers import is_function
from hlorewrite.passes.partial_state.calls_as_loop import CallsAsLoop
from hlorewrite.passes.partial_state.masks import Mask, Masks, mask_of
from hlorewrite.spmd.flow import Flow, Place

_MOST_OPS = 64
_PASSES_ON = ("stablehlo.convert", "stablehlo.reshape")


@dataclass(frozen=True)
class MaskedRead:
    """Uses of a value that matter only behind a mask.

    Attributes:
      value: the value.
      uses: (op, operand position) of each.
      mask: the mask.
    """

    value: ir.Value
    uses: tuple[tuple[ir.Operation, int], ...]
    mask: Mask


def read_in_branches(loop: CallsAsLoop, flow: Flow, editor: Editor) -> bool:
    """Makes masked readers of sums read a branch that gives zeros in all calls in which the mask hides them.

    What they compute in those calls is hidden as before; a product with 0 or 1 that hides it becomes a branch as well,
    because zeros may give what is not a number. One branch serves all sums of a mask.

    Args:
      loop: the step.
      flow: of the sums.
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
        _read_in_branch(loop, mask, reads, masks, editor)
        for op, position in products:
            _as_branch(op, position, mask, editor)
    return bool(by_mask)


def _masked_reads(loop: CallsAsLoop, flow: Flow, masks: Masks) -> Iterable[MaskedRead]:
    """The masked reads that are nearest to the sums.

    Of a value, those that need its sum; and, where it is also read otherwise, all that one mask hides.
    """
    for place in _before_calls_end(loop, flow):
        if place.branch is not None or place.value in masks.hidden:
            continue
        home = place.value.owner if isinstance(place.value.owner, ir.Block) else place.value.owner.operation.block
        uses = [(op, position) for op, position in users(place.value) if op.block == home]
        hidden: dict[Mask, list[tuple[ir.Operation, int]]] = {}
        for op, position in uses:
            mask = None if _is_new_value(loop, op) else masks.of_use(op, position)
            if mask is not None and _may_stand_before(mask.predicate, op, masks):
                hidden.setdefault(mask, []).append((op, position))
        needed = {op_key(use.reader) for use in flow.forcing_uses.get(place, [])}
        for mask, group in hidden.items():
            if len(group) < len(users(place.value)) or any(op_key(op) in needed for op, _ in group):
                for op, position in group:
                    masks.hide(op, position)
                yield MaskedRead(place.value, tuple(group), mask)


def _before_calls_end(loop: CallsAsLoop, flow: Flow) -> list[Place]:
    """The places that sums of a call reach in that call, nearest first."""
    found = [Place(value) for value in dict.fromkeys(flow.sources)]
    seen = {*found, *(Place(value) for value in (*loop.body.arguments, *loop.op.results))}
    # Ends: a place is added once.
    for place in found:
        for target in flow.edges.get(place, ()):
            if target not in seen:
                seen.add(target)
                found.append(target)
    return found


def _is_new_value(loop: CallsAsLoop, op: ir.Operation) -> bool:
    """Whether an op gives nothing but a new value of state: it starts a sum over."""
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


def _read_in_branch(loop: CallsAsLoop, mask: Mask, reads: Sequence[MaskedRead], masks: Masks, editor: Editor) -> None:
    """One branch for all masked reads; what depends on them moves after it, in its order."""
    block = reads[0].uses[0][0].block
    late: list[ir.Operation] = []
    keys: set[int] = set()
    readers = {op_key(op) for read in reads for op, _ in read.uses}
    for op in (each.operation for each in block.operations):
        made_of = [defining_op(value) for inner in nested_ops(op) for value in inner.operands]
        if op_key(op) in readers or any(maker is not None and op_key(maker) in keys for maker in made_of):
            late.append(op)
            keys.add(op_key(op))
    end = list(block.operations)[-1].operation
    last = loop.returned if loop.returned.block == block else end
    for op in late:
        if op not in (last, end):
            editor.move_before(op, last)
    first = next(op for op in late if op_key(op) in readers)
    predicate = _before(mask.predicate, first, editor)
    zeros = [identity_constant(editor, "sum", read.value.type, before=first) for read in reads]
    branch = _branch(mask, predicate, [read.value for read in reads], zeros, first, editor)
    for number, read in enumerate(reads):
        for op, position in read.uses:
            editor.set_operand(op, position, branch.results[number])


def _branch(mask: Mask, predicate: ir.Value, values: Sequence[ir.Value], otherwise: Sequence[ir.Value],
            before: ir.Operation, editor: Editor) -> ir.Operation:
    """An op that gives some values where a mask lets them through, and others elsewhere."""
    made = editor.create("stablehlo.if", [predicate], [value.type for value in values], regions=2,
                         location=before.location, before=before)
    for region, given in zip(made.regions, (values, otherwise) if mask.holds else (otherwise, values), strict=True):
        with editor.context:
            block = ir.Block.create_at_start(region, [], [])
        editor.create("stablehlo.return", list(given), [], location=before.location, at_end=block)
    return made


def _cone(value: ir.Value, before: ir.Operation) -> list[ir.Operation] | None:
    """The ops of a block, operands first, that a value is computed from; None where they are too many, or no functions.
    """
    found: list[ir.Operation] = []
    done: set[int] = set()
    pending = [(defining_op(value), False)]
    # Ends: the makers of an op's operands are added once, before it.
    while pending:
        op, ready = pending.pop()
        if op is None or op.block != before.block or (op_key(op) in done and not ready):
            continue
        if ready:
            found.append(op)
            continue
        done.add(op_key(op))
        if not is_function(op) or len(done) > _MOST_OPS or len(op.regions):
            return None
        pending.append((op, True))
        pending += [(defining_op(operand), False) for operand in op.operands]
    return found


def _may_stand_before(value: ir.Value, op: ir.Operation, masks: Masks) -> bool:
    """Whether a predicate can be computed before an op that it hides."""
    cone = _cone(value, op)
    return cone is not None and not any(result in masks.hidden for each in cone for result in each.results)


def _before(value: ir.Value, anchor: ir.Operation, editor: Editor) -> ir.Value:
    """A copy of a predicate before an op."""
    mapping: dict[ir.Value, ir.Value] = {}
    for op in _cone(value, anchor) or ():
        copy = editor.clone_before(op, anchor, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))
    return mapping.get(value, value)
