"""Computes chosen members in two halves: the first in the place of the whole, the second after it."""

from collections.abc import Iterable

from hlorewrite.ir import COLLECTIVES, Editor, Loop, defining_op, ir, nested_ops, op_key, terminator, with_dimension
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
from hlorewrite.passes.interleave_halves.choose import HalvesChoice
from hlorewrite.passes.interleave_halves.region import HALVES

_SECOND = "hlorewrite.second-half"
Halves = tuple[ir.Value, ir.Value]


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
        self._dims: dict[ir.Value, int] = {}
        self._second: dict[ir.Value, ir.Value] = {}
        self._cut: dict[tuple[ir.Value, int], Halves] = {}
        self._held: dict[ir.Value, ir.Value] = {}
        self._from_tensor: dict[ir.Value, bool] = {}
        self._reads_half: set[tuple[int, int]] = set()
        """(key of an op, position) of operands that are halves."""

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

    def _carry_halves(self, op: ir.Operation, members: list[RegionMember]) -> tuple[Loop, dict[int, tuple[int, int]]]:
        """Rebuilds a loop so it carries two halves in place of some values.

        Returns:
          The loop; maps the position of each first half to that of the second, and the divided dimension.
        """
        dims = {member.position: self.choice.region.dims[member.values[0]] for member in members
                if member.position is not None}
        types = [_half(op.results[position].type, dimension) for position, dimension in dims.items()]
        starts = iter([op.operands[position] for position in dims])  # whole until the halves are made
        count = len(op.results)
        loop = Loop(add_results(self.editor, op, types, lambda _type, _before: next(starts)))
        slots: dict[int, tuple[int, int]] = {}
        for twin, (position, dimension) in enumerate(dims.items(), start=count):
            slots[position] = twin, dimension
            self.editor.set_type(loop.condition.arguments[position], types[twin - count])
            for values in (loop.op.results, loop.body.arguments):
                self._note(values[position], values[twin], dimension)
        return loop, slots

    def _connect(self, loop: Loop, slots: dict[int, tuple[int, int]]) -> None:
        """Gives a loop the initial halves, and those of the next iteration."""
        for op in (loop.op, terminator(loop.body)):
            for position, (twin, dimension) in slots.items():
                first, second = self._halves(op.operands[position], dimension)
                self.editor.set_operand(op, position, first)
                self.editor.set_operand(op, twin, second)
                self._reads_half |= {(op_key(op), position), (op_key(op), twin)}

    # ---- ops

    def _divide(self, op: ir.Operation, members: list[RegionMember]) -> None:
        """Replaces an op by its first half, followed by the second."""
        reads = {read.position: self._halves(op.operands[read.position], read.dimension)
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
            dimension = self.choice.region.dims[value]
            self._note(value, copy.results[ir.OpResult(value).result_number], dimension)
        if op.name != BARRIER:
            dimension = self._dims[values[0]]
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
            if value not in self._held:
                # Of a value that is made in halves it reads the joined ones, see _join.
                self._held[value] = _behind(self.editor, self._second.get(value, value)).make(
                    BARRIER, [value], self._whole_shape(value))
            self.editor.set_operand(copy, position, self._held[value])

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

    def _note(self, first: ir.Value, second: ir.Value, dimension: int) -> None:
        """Records that a value is its first half from now on."""
        half = _half(first.type, dimension)
        for value in (first, second):
            if value.type != half:
                self.editor.set_type(value, half)
        self._second[first], self._dims[first] = second, dimension

    # ---- between halves and whole values

    def _halves(self, value: ir.Value, dimension: int) -> Halves:
        """The halves of a value; cuts it if it is made whole."""
        if value in self._second:
            return value, self._second[value]
        if (value, dimension) not in self._cut:
            maker = defining_op(value)
            if maker is not None and repeats_whole(maker, dimension):
                part = filled_part(self.editor, maker, _half(value.type, dimension))
                self._cut[value, dimension] = part, part
            else:
                self._cut[value, dimension] = self._slices(value, dimension)
        return self._cut[value, dimension]

    def _slices(self, value: ir.Value, dimension: int) -> Halves:
        place, half = _behind(self.editor, value), _half(value.type, dimension)
        blocks, along = _in_blocks(place, value, dimension, self.choice.region.block)
        rows = shape_of(blocks)[along] // HALVES
        first, second = (place.reshaped(place.part(blocks, along, start, start + rows), half.shape)
                         for start in (0, rows))
        return first, second

    def _join(self, value: ir.Value) -> None:
        """Makes readers of a whole value read its joined halves."""
        whole = [(use.owner.operation, use.operand_number) for use in value.uses
                 if (op_key(use.owner.operation), use.operand_number) not in self._reads_half]
        if not whole:
            return
        dimension, second = self._dims[value], self._second[value]
        place, rows = _behind(self.editor, second), self.choice.region.block // HALVES
        (first, along), (other, _) = (_in_blocks(place, half, dimension, rows) for half in (value, second))
        joined = place.reshaped(place.concatenated([first, other], along), self._whole_shape(value))
        for op, position in whole:
            self.editor.set_operand(op, position, joined)

    def _whole_shape(self, value: ir.Value) -> list[int]:
        """The shape of a value that may be made in halves."""
        shape = list(shape_of(value))
        if value in self._second:
            shape[self._dims[value]] *= HALVES
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
