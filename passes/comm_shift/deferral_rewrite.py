"""Carries out a placement of deferred reductions.

The rewrite reinterprets values in place: every deferred value ``v = AR(w) + u`` keeps its name and now holds ``w``.
An all-reduce forwards its operand; an op that is jointly linear in deferred and other operands reads the identity of
the reduction in place of the others; a loop's deferred accumulator starts at the identity. A ``u`` other than the
identity is computed next to it, and ``AR(w) + u`` where the placement reduces.
"""

from collections.abc import Iterable
from typing import Any

from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint, blocks_between
from hlorewrite.analysis.deferral_graph.placement import ReductionPlacement
from hlorewrite.ir import ALL_REDUCE, BRANCHES, Editor, Loop, element_bytes, ir, is_floating, op_key
from hlorewrite.ir.edit import point_behind
from hlorewrite.ir.view import owner_op, terminator, users
from hlorewrite.ops.reducers import OP_OF_KIND, identity_number, is_identity
from hlorewrite.passes.comm_shift.deferral import IDENTITY, LOOP, ReplicatedAddend, ReplicatedAddends
from hlorewrite.passes.common.emit import add_reducer, add_results, splat_constant

Slots = dict[tuple[int, int], int]
"""(op key, position) of a deferred value -> position that carries its ``u``."""


def add_slots(editor: Editor, wanted: Iterable[tuple[ir.Operation, int]], kind: str) -> Slots:
    """Gives loops and branches slots for ``u``; each holds the identity, so nothing changes yet.

    Args:
      editor: the editor of the module.
      wanted: (op, position) of each value whose ``u`` needs a slot.
      kind: the kind of reduction.

    Returns:
      The position of each slot, by the key of the rebuilt op.
    """
    by_op: dict[int, tuple[ir.Operation, list[int]]] = {}
    for op, position in wanted:
        by_op.setdefault(op_key(op), (op, []))[1].append(position)
    slots: Slots = {}
    for op, positions in by_op.values():
        first = len(op.results)
        rebuilt = with_identities(editor, op, [op.results[position].type for position in sorted(positions)], kind)
        slots.update({(op_key(rebuilt), position): first + index for index, position in enumerate(sorted(positions))})
    return slots


def with_identities(editor: Editor, op: ir.Operation, types: list[ir.Type], kind: str) -> ir.Operation:
    """Rebuilds a loop or branch with more results, each the identity of a reduction.

    Args:
      editor: the editor of the module.
      op: the ``while``, ``case`` or ``if``; it is erased.
      types: types of the new results, which come last.
      kind: the kind of reduction.

    Returns:
      The new op.
    """
    return add_results(editor, op, types,
                             lambda type_, before: identity_constant(editor, kind, type_, before=before))


class Deferral:
    """Carries out one placement.

    Args:
      editor: the editor of the module.
      flow: the flow of the class.
      placement: where it is reduced.
      parts: the ``u`` of every deferred value.
      slots: where loops and branches carry ``u``.
      wire_dtype: element type in which new reductions are sent; None keeps the value's own.
    """

    def __init__(self, editor: Editor, flow: DeferralGraph, placement: ReductionPlacement, parts: ReplicatedAddends,
                 slots: Slots, wire_dtype: str | None = None) -> None:
        self.editor = editor
        self.flow = flow
        self.placement = placement
        self.kind = parts.kind
        self.parts = parts
        self.slots = slots
        self.wire_dtype = wire_dtype
        self._sources = set(flow.sources)
        self._reduced: dict[ProgramPoint, ir.Value] = {}
        self._beside: dict[ir.Value, ir.Value] = {}
        self._origin = self._origins()
        self._starts = [place for place in self._origin if place in placement.reduced]
        self._after = self._cut_off() if placement.least else None

    def made_at(self) -> list[ProgramPoint]:
        """Where ``run`` will make all-reduces, in the order in which it returns them; call this before ``run``."""
        return [place for place in self._starts if self.parts.holds_local(place.value)]

    def run(self) -> list[ir.Operation]:
        """Rewrites; returns the all-reduces it made."""
        made = self.made_at()
        identities = self._operands_to_blank()
        self._origin = {place: op for place, op in self._origin.items() if place in self.placement.reduced}
        self._make_beside([*(place.value for place in made), *self._slot_sources()])
        carried = self._slot_values()
        for place in made:
            self._reduce_at(place)
        for op, position, value in carried:
            self.editor.set_operand(op, position, value)
        for op, position in identities:
            constant = identity_constant(self.editor, self.kind, op.operands[position].type, before=op)
            self.editor.set_operand(op, position, constant)
        sources = [value for value in dict.fromkeys(self.flow.sources)
                   if ProgramPoint(value) in self.placement.deferred]
        owners = [owner_op(value) for value in sources]
        for value, op in zip(sources, owners, strict=True):
            self.editor.replace(value, op.operands[ir.OpResult(value).result_number])
        for op in {op_key(op): op for op in owners}.values():
            drop_unread_results(self.editor, op)
        return [_all_reduce_behind(self._reduced[place]) for place in made]

    def flow_after(self) -> DeferralGraph | None:
        """The flow that begins where the placement reduces, without tracing it again; call it after ``run``.

        Returns:
          None if a reduced value meets a deferred one again, which now differs between devices, or if an all-reduce of
          several values keeps only some.
        """
        if self._after is not None:
            for place in self._starts:
                self._begin(self._after, place)
        return self._after

    def _cut_off(self) -> DeferralGraph | None:
        """The part of the flow after the placement; found before any edit, since some of its values leave the
        module."""
        after = DeferralGraph([])
        moved = {op_key(owner_op(value)) for value in self.flow.sources
                 if ProgramPoint(value) in self.placement.deferred}
        if any(place.value in self._sources and op_key(owner_op(place.value)) in moved for place in self._starts):
            return None
        met = {*self._starts, *self.placement.deferred}
        for place in self.flow.reachable(self._starts):
            targets, needs = self.flow.edges.get(place, []), self.flow.forcing_uses.get(place, [])
            leaves = any(op_key(op) in moved for use in needs for op in (use.reader, use.culprit) if op is not None)
            if leaves or not met.isdisjoint(targets):
                return None
            after.edges[place], after.executions[place] = targets, self.flow.executions[place]
            after.forcing_uses |= {place: needs} if needs else {}
        return after

    def _begin(self, after: DeferralGraph, place: ProgramPoint) -> None:
        """Replaces the local value at a place by its all-reduce, plus its ``u``."""
        total = self._reduced.get(place)
        if total is None:  # an all-reduce that stays
            after.sources.append(place.value)
            return
        source, whole = _all_reduce_behind(total).results[0], ProgramPoint(total)
        after.sources.append(source)
        _rename(after.edges, place, whole)
        _rename(after.executions, place, whole)
        _rename(after.forcing_uses, place, whole)
        if source != total:
            after.edges[ProgramPoint(source)] = [whole]
            after.executions[ProgramPoint(source)] = after.executions[whole]

    def _origins(self) -> dict[ProgramPoint, ir.Operation]:
        """Each place of the flow -> the all-reduce nearest to it, for attributes and locations."""
        origin: dict[ProgramPoint, ir.Operation] = {}
        pending = []
        for value in self.flow.sources:
            origin.setdefault(ProgramPoint(value), owner_op(value))
            pending.append(ProgramPoint(value))
        # Ends: a place is added once.
        for place in pending:
            for target in self.flow.edges.get(place, ()):
                if target not in origin:
                    origin[target] = origin[place]
                    pending.append(target)
        return origin

    # ---- the changes, found before any edit

    def _operands_to_blank(self) -> list[tuple[ir.Operation, int]]:
        """Operands without a ``w``, which the identity replaces."""
        operands: list[tuple[ir.Operation, int]] = []
        for place in self._origin:
            if place.branch is not None or not self.parts.holds_local(place.value):
                continue
            operands += [(op, position) for op, position in self._inputs(place.value)
                         if not self.parts.is_deferred(op.operands[position], op)
                         and not is_identity(op.operands[position], self.kind)]
        return list({(op_key(op), position): (op, position) for op, position in operands}.values())

    def _inputs(self, value: ir.Value) -> list[tuple[ir.Operation, int]]:
        """(op, operand position) of each operand that a deferred value's ``w`` is computed from."""
        owner = value.owner
        if isinstance(owner, ir.Block) or value in self._sources:
            return []
        op = owner.operation
        position = ir.OpResult(value).result_number
        if op.name == LOOP:
            return [(op, position), (terminator(Loop(op).body), position)]
        if op.name in BRANCHES:
            return [(terminator(region.blocks[0]), position) for region in op.regions]
        if op_key(op) not in self.flow.joint:  # an optimisation barrier
            return [(op, position)]
        return [(op, operand) for operand in sorted(self.flow.joint[op_key(op)].operands)]

    def _slot_values(self) -> list[tuple[ir.Operation, int, ir.Value]]:
        """The inputs of the slots for ``u``: (op, operand position, value)."""
        slots = []
        for (key, position), op in self.parts.slots.items():
            slot = self.slots[key, position]
            readers = [terminator(region.blocks[0]) for region in op.regions]
            if op.name == LOOP:
                readers = [op, readers[1]]
            for reader in readers:
                part = self.parts.contribution(reader.operands[position], reader)
                if part != IDENTITY:
                    slots.append((reader, slot, part))
                else:
                    slots.append((reader, slot, None))
        return [(reader, slot, self._value(part) if part is not None else
                 identity_constant(self.editor, self.kind, reader.operands[slot].type, before=reader))
                for reader, slot, part in slots]

    def _slot_sources(self) -> list[ir.Value]:
        """Deferred values whose ``u`` goes into a slot."""
        sources = []
        for (_, position), op in self.parts.slots.items():
            readers = [terminator(region.blocks[0]) for region in op.regions]
            for reader in [op, readers[1]] if op.name == LOOP else readers:
                if self.parts.is_deferred(reader.operands[position], reader):
                    sources.append(reader.operands[position])
        return sources

    # ---- making u and AR(w) + u

    def _make_beside(self, wanted: Iterable[ir.Value]) -> None:
        """Makes the ``u`` of values, and of all that they depend on, in data-flow order."""
        needed = dict.fromkeys(wanted)  # visits the addends, which determines their order
        for value in needed:
            self.parts.of(value)
        order = self.parts.order
        for value in reversed(order):
            if value in needed and self.parts.of(value).form == "beside":
                needed |= dict.fromkeys(self.parts.dependencies(value))
        for value in order:
            part = self.parts.of(value)
            if value in needed and part.form == "beside" and part.value is not None:
                self._made_beside(part.value)

    def _value(self, part: ReplicatedAddend) -> ir.Value:
        """A ``u`` as an SSA value."""
        if part.form == "reduced" and part.place is not None:
            return self._reduce_at(part.place)
        assert part.value is not None
        if part.form == "value":
            return part.value
        return self._made_beside(part.value)

    def _made_beside(self, value: ir.Value) -> ir.Value:
        known = self._beside.get(value)
        if known is not None:
            return known
        owner = value.owner
        if isinstance(owner, ir.Block):
            parent = owner.owner.operation
            made: ir.Value = owner.arguments[self.slots[op_key(parent), ir.BlockArgument(value).arg_number]]
        elif (op_key(owner.operation), ir.OpResult(value).result_number) in self.slots:
            made = owner.operation.results[self.slots[op_key(owner.operation), ir.OpResult(value).result_number]]
        else:
            made = self._copied(owner.operation, ir.OpResult(value).result_number)
        self._beside[value] = made
        return made

    def _copied(self, op: ir.Operation, position: int) -> ir.Value:
        """``op`` on the ``u`` of its operands: by linearity the ``u`` of its result."""
        parts = {operand: self.parts.contribution(op.operands[operand], op)
                 for operand in sorted(self.flow.joint[op_key(op)].operands)}
        values = {operand: None if part == IDENTITY else self._value(part) for operand, part in parts.items()}
        copy = self.editor.clone_before(op, op)  # its readers and the reduction of w follow op
        for operand, value in values.items():
            self.editor.set_operand(copy, operand, value if value is not None else identity_constant(
                self.editor, self.kind, op.operands[operand].type, before=copy))
        return copy.results[position]

    def _reduce_at(self, place: ProgramPoint) -> ir.Value:
        """Makes ``AR(w) + u`` at a place, for everything that reads the value there."""
        known = self._reduced.get(place)
        if known is not None:
            return known
        local = place.value
        readers = users(local)
        part = self.parts.of(local)
        plain = None if part == IDENTITY else self._value(part)
        point = _start_of(place)
        total = make_all_reduce(self.editor, self._origin[place], local, self.kind, point, self.wire_dtype)
        if plain is not None:
            total = self.editor.create(OP_OF_KIND[self.kind], [total, plain], [local.type],
                                       location=self._origin[place].location, at=point).results[0]
        self._reduced[place] = total
        self._redirect(place, total, readers)
        return total

    def _redirect(self, place: ProgramPoint, total: ir.Value, readers: list[tuple[ir.Operation, int]]) -> None:
        """Makes the readers of a place read the reduced value."""
        local = place.value
        for reader, position in readers:
            if place.branch is not None and place.branch not in blocks_between(ProgramPoint(local), reader):
                continue
            if reader.operands[position] == local:
                self.editor.set_operand(reader, position, total)


def _rename(table: dict[ProgramPoint, Any], place: ProgramPoint, whole: ProgramPoint) -> None:
    if place in table:
        table[whole] = table.pop(place)


def _start_of(place: ProgramPoint) -> ir.InsertionPoint:
    """The insertion point of a place's reduction."""
    if place.branch is not None:
        return ir.InsertionPoint.at_block_begin(place.branch)
    return point_behind(place.value)


def _all_reduce_behind(value: ir.Value) -> ir.Operation:
    """The all-reduce that a reduced value comes from."""
    op = owner_op(value)
    # Ends: each step goes to an operand.
    while op.name != ALL_REDUCE.op:
        op = owner_op(op.operands[0])
    return op


def identity_constant(editor: Editor, kind: str, of: ir.Type, *, before: ir.Operation) -> ir.Value:
    """A constant filled with the identity of a reduction.

    Args:
      editor: the editor of the module.
      kind: the kind of reduction.
      of: the tensor type.
      before: the op it is put before.

    Returns:
      The constant's value.
    """
    tensor = ir.RankedTensorType(of)
    if isinstance(tensor.element_type, ir.ComplexType):
        with editor.context, before.location:
            real = ir.RankedTensorType.get(tensor.shape, tensor.element_type.element_type)
        parts = [_filled(editor, number, real, before) for number in (identity_number(kind, real.element_type), 0)]
        return editor.create("stablehlo.complex", parts, [of], location=before.location, before=before).results[0]
    return _filled(editor, identity_number(kind, tensor.element_type), tensor, before)


def _filled(editor: Editor, number: float | int | bool, of: ir.RankedTensorType, before: ir.Operation) -> ir.Value:
    """A constant of real numbers or integers."""
    element = of.element_type
    with editor.context, before.location:
        held = (ir.IntegerAttr.get(element, int(number)) if isinstance(element, ir.IntegerType)
                else ir.FloatAttr.get(element, float(number)))
    return splat_constant(editor, held, of, before)


def make_all_reduce(editor: Editor, like: ir.Operation, operand: ir.Value, kind: str, at: ir.InsertionPoint,
                    wire_dtype: str | None = None) -> ir.Value:
    """An all-reduce of one value with the attributes of another.

    Args:
      editor: the editor of the module.
      like: the all-reduce whose groups, channel and attributes it takes.
      operand: the value to reduce.
      kind: the kind of reduction.
      at: the insertion point.
      wire_dtype: element type to send; None keeps the operand's.

    Returns:
      The reduced value, of the operand's type.
    """
    full = ir.RankedTensorType(operand.type)
    element = _wire_element(editor, full.element_type, wire_dtype)
    narrows = element != full.element_type
    if narrows:
        with editor.context, like.location:
            narrow = ir.RankedTensorType.get(full.shape, element)
        operand = editor.create("stablehlo.convert", [operand], [narrow], location=like.location, at=at).results[0]
    attributes = {name: like.attributes[name] for name in like.attributes}
    op = editor.create(ALL_REDUCE.op, [operand], [operand.type], attributes=attributes, regions=1,
                       location=like.location, at=at)
    add_reducer(editor, op, kind)
    if not narrows:
        return op.results[0]
    return editor.create("stablehlo.convert", [op.results[0]], [full], location=like.location, at=at).results[0]


def _wire_element(editor: Editor, element: ir.Type, wire_dtype: str | None) -> ir.Type:
    """The element type to send: the requested one if it is narrower than a floating-point element."""
    if wire_dtype is None or not is_floating(element) or str(element).startswith("complex"):
        return element
    with editor.context:
        wire = ir.Type.parse(wire_dtype)
    return wire if element_bytes(wire) < element_bytes(element) else element


def drop_unread_results(editor: Editor, op: ir.Operation) -> None:
    """Erases an all-reduce without readers, or rebuilds a variadic one without its unread results."""
    read = [position for position, result in enumerate(op.results) if next(iter(result.uses), None) is not None]
    if len(read) == len(op.results):
        return
    if not read:
        editor.erase(op)
        return
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = editor.create(op.name, [op.operands[p] for p in read], [op.results[p].type for p in read],
                        attributes=attributes, regions=1, location=op.location, before=op)
    op.regions[0].blocks[0].append_to(new.regions[0])
    for index, position in enumerate(read):
        editor.replace(op.results[position], new.results[index])
    editor.erase(op)
