"""Computes chosen members in two halves: the first in the place of the whole, the second after it."""

from collections.abc import Iterable
from typing import NamedTuple

from hlorewrite.ir import (
    COLLECTIVES,
    Editor,
    Loop,
    defining_op,
    ir,
    nested_ops,
    op_key,
    terminator,
    users,
    with_dimension,
)
from hlorewrite.ir.edit import point_behind
from hlorewrite.ir.frontend import COMBINER_KEY, FRONTEND, with_frontend
from hlorewrite.ir.regions import BARRIER, WHILE
from hlorewrite.ops.attributes import shape_of
from hlorewrite.ops.dims import attributes_for, repeats_whole
from hlorewrite.ops.table import FILLINGS
from hlorewrite.passes.common.dimension_region import RegionMember
from hlorewrite.passes.common.emit import add_results, filled_part
from hlorewrite.passes.common.loop_copies.copies import ChannelHandles
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.passes.common.overlap_model import HALF
from hlorewrite.passes.common.separate_copies import copied_for
from hlorewrite.passes.interleave_halves.choose import HalvesChoice
from hlorewrite.passes.interleave_halves.region import HALVES

_SECOND = "hlorewrite.second-half"
Halves = tuple[ir.Value, ir.Value]


class _Along(NamedTuple):
    """The divided dimension of a value, and the size of its blocks."""

    dimension: int
    block: int


class HalvesEmitter:
    """Rewrites one choice.

        f(x) = [f(x0); f(x1)]    where x = [x0; x1]

    for each op that does not mix the halves, and ``f(x0) + f(x1)`` for sums over the divided dimension. Where the
    dimension consists of blocks, such as rows gathered from devices, ``x0`` is the first half of every block.

    Args:
      editor: the editor of the module.
      choice: the members computed in halves.
      channels: gives new handles to the collectives of the second half.
    """

    def __init__(self, editor: Editor, choice: HalvesChoice, channels: ChannelHandles) -> None:
        self.editor, self.choice, self.channels = editor, choice, channels
        self._along: dict[ir.Value, _Along] = {}
        self._second: dict[ir.Value, ir.Value] = {}
        self._cut: dict[tuple[ir.Value, int], Halves] = {}
        self._held: dict[ir.Value, ir.Value] = {}
        self._from_tensor: dict[ir.Value, bool] = {}
        self._reads_half: set[tuple[int, int]] = set()
        """(key of an op, position) of operands that are halves."""
        region = choice.region
        self._read = {(op_key(read.op), read.position):
                      _Along(read.dimension, region.blocks.get(read.op.operands[read.position], 0))
                      for index in choice.chosen for read in region.members[index].reads}
        """Rebuilt loops have other results, so this is looked up first. A value that repeats needs no blocks."""

    def run(self) -> None:
        """Rewrites the module."""
        members = self.choice.by_op()
        ordered = [op for op in nested_ops(self.editor.view.module.operation) if op_key(op) in members]
        whiles = [(op, members[op_key(op)]) for op in ordered if op.name == WHILE]
        others = [(op, members[op_key(op)]) for op in ordered if op.name != WHILE]
        loops = [self._carry_halves(op, each) for op, each in whiles]
        for op, each in others:
            self._divide(op, each)
        for loop, slots in loops:
            self._connect(loop, slots)
        for value in list(self._second):
            self._join(value)
        for value, _ in self._cut:
            maker = defining_op(value)
            if maker is not None and maker.name in FILLINGS:
                self.editor.erase_if_dead(maker)

    # ---- loops

    def _carry_halves(self, op: ir.Operation, members: list[RegionMember]) -> tuple[Loop, dict[int, int]]:
        """Rebuilds a loop so it carries two halves in place of some values.

        Returns:
          The loop; maps the position of each first half to that of the second.
        """
        carried = {member.position: self._of_region(member.values[0]) for member in members
                   if member.position is not None}
        types = [_half(op.results[position].type, along.dimension) for position, along in carried.items()]
        starts = iter([op.operands[position] for position in carried])  # whole until the halves are made
        count = len(op.results)
        loop = Loop(add_results(self.editor, op, types, lambda _type, _before: next(starts)))
        slots: dict[int, int] = {}
        for twin, (position, along) in enumerate(carried.items(), start=count):
            slots[position] = twin
            self.editor.set_type(loop.condition.arguments[position], types[twin - count])
            for values in (loop.op.results, loop.body.arguments):
                self._note(values[position], values[twin], along)
        return loop, slots

    def _of_region(self, value: ir.Value) -> _Along:
        return _Along(self.choice.region.dims[value], self.choice.region.blocks[value])

    def _connect(self, loop: Loop, slots: dict[int, int]) -> None:
        """Gives a loop the initial halves, and those of the next iteration."""
        for op in (loop.op, terminator(loop.body)):
            for position, twin in slots.items():
                first, second = self._halves(op.operands[position], self._along[loop.body.arguments[position]])
                self.editor.set_operand(op, position, first)
                self.editor.set_operand(op, twin, second)
                self._reads_half |= {(op_key(op), position), (op_key(op), twin)}

    # ---- ops

    def _divide(self, op: ir.Operation, members: list[RegionMember]) -> None:
        """Replaces an op by its first half, followed by the second."""
        reads = {read.position: self._halves(op.operands[read.position], self._read[op_key(op), read.position])
                 for member in members for read in member.reads}
        copy = self.editor.clone_at(op, ir.InsertionPoint.after(op))
        for number, each in enumerate((op, copy)):
            for position, halves in reads.items():
                self.editor.set_operand(each, position, halves[number])
                self._reads_half.add((op_key(each), position))
        if op.name != BARRIER:
            self._hold_whole(copy, reads)
        if op.name in COLLECTIVES:
            self._mark(op, copy)
        values = [value for member in members for value in member.values]
        if not values:
            self._sum(op, copy)
            return
        for value in values:
            self._note(value, copy.results[ir.OpResult(value).result_number], self._of_region(value))
        if op.name != BARRIER:
            dimension = self._along[values[0]].dimension
            for name, attribute in attributes_for(op, dimension, shape_of(values[0])[dimension]).items():
                if attribute != op.attributes[name]:
                    self.editor.set_attribute(op, name, attribute)
                    self.editor.set_attribute(copy, name, attribute)

    def _hold_whole(self, copy: ir.Operation, divided: Iterable[int]) -> None:
        """Makes the second half read whole tensors through a barrier.

        XLA merges two kernels that read the same tensor (``dot_merger.cc``, ``multi_output_fusion.cc``), and one kernel
        for both halves would wait for the collectives of both.
        """
        for position, value in enumerate(copy.operands):
            maker = defining_op(value)
            if position in divided or (maker is not None and maker.name in FILLINGS):
                continue
            if not shape_of(value) and not self._is_read_from_tensor(value):
                continue
            self.editor.set_operand(copy, position, self._hold(value))

    def _hold(self, value: ir.Value) -> ir.Value:
        """A value behind a barrier. Of a value that is made in halves, these are the joined ones, see _join."""
        if value not in self._held:
            self._held[value] = _behind(self.editor, self._second.get(value, value)).make(
                BARRIER, [value], self._whole_shape(value))
        return self._held[value]

    def _is_read_from_tensor(self, scalar: ir.Value) -> bool:
        """Whether a scalar is computed from a tensor, such as the index that ``lax.scan`` reads of ``jnp.arange``.

        XLA computes it in the kernel that reads it, which then reads the tensor.
        """
        known, pending = self._from_tensor, [scalar]
        # Ends: a scalar is known once its operands are.
        while pending:
            maker = defining_op(pending[-1])
            operands = [] if maker is None or len(maker.regions) else list(maker.operands)
            of_tensor = any(map(shape_of, operands))
            unknown = [] if of_tensor else [each for each in operands if each not in known]
            if not unknown:
                known[pending.pop()] = of_tensor or any(known[each] for each in operands)
            pending += unknown
        return known[scalar]

    def _mark(self, op: ir.Operation, copy: ir.Operation) -> None:
        with self.editor.context:
            mark = ir.UnitAttr.get()
        for each in (op, copy):
            self.editor.set_attribute(each, HALF, mark)
        # XLA's combiners leave collectives of different keys apart.
        self.editor.set_attribute(copy, FRONTEND, with_frontend(copy, COMBINER_KEY, _SECOND))
        self.channels.renew([copy])

    def _sum(self, op: ir.Operation, copy: ir.Operation) -> None:
        """Sums over the divided dimension are the sums of those over its halves."""
        for whole, second in zip(op.results, copy.results, strict=True):
            made = self.editor.create("stablehlo.add", [whole, second], [whole.type], location=op.location,
                                      at=ir.InsertionPoint.after(copy))
            self.editor.replace(whole, made.results[0], keep=[made])

    def _note(self, first: ir.Value, second: ir.Value, along: _Along) -> None:
        """Records that a value is its first half from now on."""
        half = _half(first.type, along.dimension)
        for value in (first, second):
            if value.type != half:
                self.editor.set_type(value, half)
        self._second[first], self._along[first] = second, along

    # ---- between halves and whole values

    def _halves(self, value: ir.Value, along: _Along) -> Halves:
        """The halves of a value; cuts it if it is made whole."""
        dimension = along.dimension
        if value in self._second:
            return value, self._second[value]
        if (value, dimension) not in self._cut:
            maker = defining_op(value)
            if maker is not None and repeats_whole(maker, dimension):
                part = filled_part(self.editor, maker, _half(value.type, dimension))
                self._cut[value, dimension] = part, part
            else:
                self._cut[value, dimension] = self._slices(value, along)
        return self._cut[value, dimension]

    def _slices(self, value: ir.Value, along: _Along) -> Halves:
        half, rows = _half(value.type, along.dimension), along.block // HALVES
        wholes = [value]
        if not all(copied_for(reader) for reader, _ in users(value)):
            wholes.append(self._hold(value))  # readers that cut it themselves would be merged, see _hold_whole
        places = [_behind(self.editor, whole) for whole in wholes]
        blocks = [_in_blocks(place, whole, *along) for place, whole in zip(places, wholes, strict=True)]
        first, second = (place.reshaped(place.part(whole, dimension, start, start + rows), half.shape)
                         for place, (whole, dimension), start in (
                             (places[0], blocks[0], 0), (places[-1], blocks[-1], rows)))
        return first, second

    def _join(self, value: ir.Value) -> None:
        """Makes readers of a whole value read its joined halves."""
        whole = [(use.owner.operation, use.operand_number) for use in value.uses
                 if (op_key(use.owner.operation), use.operand_number) not in self._reads_half]
        if not whole:
            return
        (dimension, block), second = self._along[value], self._second[value]
        place = _behind(self.editor, second)
        (first, joint), (other, _) = (_in_blocks(place, half, dimension, block // HALVES) for half in (value, second))
        joined = place.reshaped(place.concatenated([first, other], joint), self._whole_shape(value))
        for op, position in whole:
            self.editor.set_operand(op, position, joined)

    def _whole_shape(self, value: ir.Value) -> list[int]:
        """The shape of a value that may be made in halves."""
        shape = list(shape_of(value))
        if value in self._second:
            shape[self._along[value].dimension] *= HALVES
        return shape


def _half(type_: ir.Type, dimension: int) -> ir.RankedTensorType:
    return with_dimension(type_, dimension, ir.RankedTensorType(type_).shape[dimension] // HALVES)


def _behind(editor: Editor, value: ir.Value) -> OpWriter:
    """A writer of ops that follow what makes a value."""
    owner = value.owner
    like = owner.operations[0] if isinstance(owner, ir.Block) else owner
    return OpWriter(editor, like.location, point_behind(value))


def _in_blocks(place: OpWriter, value: ir.Value, dimension: int, rows: int) -> tuple[ir.Value, int]:
    """A value with its blocks, or their halves, as a separate dimension, if there are several.

    Args:
      place: writes ops.
      value: the value.
      dimension: the divided dimension.
      rows: the size of a block, or of its half.

    Returns:
      The value, and the dimension of the rows.
    """
    shape = shape_of(value)
    if shape[dimension] == rows:
        return value, dimension
    split = [*shape[:dimension], shape[dimension] // rows, rows, *shape[dimension + 1:]]
    return place.reshaped(value, split), dimension + 1
