"""Writes the update of shards: reduce-scatters, ops of shards, sums of shards, all-gathers of new parameters."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, REPLICA_GROUPS
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import defining_op, terminator
from hlorewrite.passes.common.device_masks import lookup
from hlorewrite.passes.common.reducer_region import add_reducer
from hlorewrite.passes.common.splats import repeated, splat_constant
from hlorewrite.passes.shard_update.dimensions import BROADCAST, is_repeated_number, operand_dimensions, whole_reduction
from hlorewrite.passes.shard_update.growth import ShardedValues
from hlorewrite.passes.shard_update.manual_step import ManualStep, Rows, along
from hlorewrite.passes.shard_update.pairs import StatePair
from hlorewrite.spmd.constants import constant_attribute
from hlorewrite.spmd.dense_groups import rows_attribute
from hlorewrite.spmd.types import tensor_type, with_dimension


@dataclass
class UpdateEmitter:
    """Writes the shards that come with one gradient.

    Args:
      step: the step.
      shards: what becomes shards.
      pairs: the arguments and results that hold optimizer state.
      editor: the editor of the module.
    """

    step: ManualStep
    shards: ShardedValues
    pairs: list[StatePair]
    editor: Editor
    _made: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _cut: dict[tuple[ir.Value, int], ir.Value] = field(default_factory=dict)

    def run(self) -> None:
        """Rewrites the manual computation; arguments and results of state are shards in it afterwards."""
        arguments = [(self.step.block.arguments[pair.argument], pair.dim) for pair in self.pairs]
        self._made |= {argument: argument for argument, _ in arguments}
        old: list[ir.Operation] = []
        for op in [op.operation for op in self.step.block.operations]:
            if op_key(op) in self.shards.sums:
                self._sum(op)
                old.append(op)
            elif len(op.results) == 1 and op.results[0] in self.shards.dims:
                self._made[op.results[0]] = self._scattered(op) if op.name == ALL_REDUCE.op else self._shard_of(op)
                old.append(op)
        self._return()
        for argument, dim in arguments:  # last: what an op reads is found from its types
            argument.set_type(self._shard_type(argument.type, dim))
        for op in [*reversed(old), *(defining_op(value) for value, _ in self._cut)]:
            if op is not None:
                self.editor.erase_if_dead(op)

    # ---- values

    def _scattered(self, op: ir.Operation) -> ir.Value:
        """``slice(AR(x)) = RS(x)``; of a sum over more axes, the rest is reduced of the shard."""
        dim = self.shards.dims[op.results[0]]
        axes = self.step.reduced_axes(op)
        assert not isinstance(axes, str)
        kept = self._shard_type(op.results[0].type, dim)
        value = self._collective(REDUCE_SCATTER.op, op, op.operands[0], kept, self.step.scatter_rows, dim)
        rest = tuple(axis for axis in axes if axis != self.step.axis)
        return value if not rest else self._collective(ALL_REDUCE.op, op, value, kept, along(self.step.mesh, rest))

    def _shard_of(self, op: ir.Operation) -> ir.Value:
        """The same op, of shards."""
        dim = self.shards.dims[op.results[0]]
        read = operand_dimensions(op, dim)
        assert isinstance(read, list)
        operands = [operand if wanted is None else self._read(operand, wanted, op)
                    for operand, wanted in zip(op.operands, read, strict=True)]
        copy = self.editor.clone_before(op, op)
        for position, operand in enumerate(operands):
            self.editor.set_operand(copy, position, operand)
        copy.results[0].set_type(self._shard_type(op.results[0].type, dim))
        return copy.results[0]

    def _read(self, value: ir.Value, dim: int, before: ir.Operation) -> ir.Value:
        """The shard of a value: made as one, or cut out of what all devices hold."""
        if value in self.shards.dims:
            return self._made[value]
        if (value, dim) not in self._cut:
            self._cut[value, dim] = self._repeated(value, dim, before) if is_repeated_number(value) else \
                self._sliced(value, dim, before)
        return self._cut[value, dim]

    def _repeated(self, value: ir.Value, dim: int, before: ir.Operation) -> ir.Value:
        op = defining_op(value)
        assert op is not None
        type_ = self._shard_type(value.type, dim)
        constant = constant_attribute(op)
        if op.name == BROADCAST:
            scalar = op.operands[0]
            if ir.RankedTensorType(scalar.type).rank:
                flat = tensor_type([], ir.RankedTensorType(scalar.type).element_type)
                scalar = self.editor.create("stablehlo.reshape", [scalar], [flat], location=op.location,
                                            before=before).results[0]
            return repeated(self.editor, scalar, type_, before)
        assert constant is not None
        return splat_constant(self.editor, constant.get_splat_value(), type_, before)

    def _sliced(self, value: ir.Value, dim: int, before: ir.Operation) -> ir.Value:
        type_ = self._shard_type(value.type, dim)
        shape = list(type_.shape)
        place = lookup(self.editor, self.step.place_of_shard(), before)
        size = splat_constant(self.editor, shape[dim], place.type, before)
        zero = splat_constant(self.editor, 0, place.type, before)
        start = self.editor.create("stablehlo.multiply", [place, size], [place.type], location=before.location,
                                   before=before).results[0]
        with self.editor.context:
            sizes = ir.DenseI64ArrayAttr.get(shape)
        starts = [start if each == dim else zero for each in range(len(shape))]
        return self.editor.create("stablehlo.dynamic_slice", [value, *starts], [type_],
                                  attributes={"slice_sizes": sizes}, location=before.location,
                                  before=before).results[0]

    def _sum(self, op: ir.Operation) -> None:
        """A reduction to one element: of the shard, then over all shards."""
        copy = self.editor.clone_before(op, op)
        self.editor.set_operand(copy, 0, self._made[op.operands[0]])
        total = self._collective(ALL_REDUCE.op, op, copy.results[0], op.results[0].type, self.step.scatter_rows,
                                 kind=whole_reduction(op))
        self.editor.replace(op.results[0], total)

    # ---- results

    def _return(self) -> None:
        end = terminator(self.step.block)
        sharded = {pair.result for pair in self.pairs}
        gathered: dict[ir.Value, ir.Value] = {}
        for position, value in enumerate(end.operands):
            if value not in self.shards.dims:
                continue
            shard = self._made[value]
            if position not in sharded and value not in gathered:
                gathered[value] = self._collective(ALL_GATHER.op, defining_op(shard) or end, shard, value.type,
                                                   self.step.scatter_rows, self.shards.dims[value], before=end)
            self.editor.set_operand(end, position, shard if position in sharded else gathered[value])

    # ---- ops

    def _collective(self, name: str, at: ir.Operation, value: ir.Value, result: ir.Type, rows: Rows,
                    dim: int | None = None, kind: str = "sum", before: ir.Operation | None = None) -> ir.Value:
        with self.editor.context:
            attributes: dict[str, ir.Attribute] = {
                REPLICA_GROUPS: rows_attribute(self.editor.context, rows), "use_global_device_ids": ir.UnitAttr.get(),
                "channel_handle": ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 1>")}
            if dim is not None:
                where, = (REDUCE_SCATTER if name == REDUCE_SCATTER.op else ALL_GATHER).dimensions
                attributes[where] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
        reduces = name != ALL_GATHER.op
        made = self.editor.create(name, [value], [result], attributes=attributes, regions=int(reduces),
                                  location=at.location, before=before or at)
        if reduces:
            add_reducer(self.editor, made, kind)
        return made.results[0]

    def _shard_type(self, type_: ir.Type, dim: int) -> ir.RankedTensorType:
        return with_dimension(type_, dim, ir.RankedTensorType(type_).shape[dim] // self.step.shards)
