"""Emits the update of shards: reduce-scatters, ops on shards, sums of shards, all-gathers of new parameters."""

from dataclasses import dataclass, field

from hlorewrite.analysis.groups import rows_attribute
from hlorewrite.ir import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, REPLICA_GROUPS, Editor, ir, op_key, with_dimension
from hlorewrite.ir.view import defining_op, terminator
from hlorewrite.passes.common.emit import add_reducer, integer_attribute
from hlorewrite.passes.common.own_shard import OwnShard
from hlorewrite.passes.common.steps.manual_step import ManualStep, Rows, along
from hlorewrite.passes.shard_update.carried import operand_dimensions, whole_reduction
from hlorewrite.passes.shard_update.growth import StateShards
from hlorewrite.passes.shard_update.pairs import StatePair


@dataclass
class UpdateEmitter:
    """Emits the shards that come with one gradient.

    Args:
      step: the step.
      shards: the values that become shards.
      pairs: the arguments and results that hold optimizer state.
      editor: the editor of the module.
      own: cuts shards out of whole values.
    """

    step: ManualStep
    shards: StateShards
    pairs: list[StatePair]
    editor: Editor
    own: OwnShard
    _made: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _old: list[ir.Operation] = field(default_factory=list)

    def run(self) -> None:
        """Rewrites the manual computation; arguments and results of state are shards in it afterwards."""
        arguments = [(self.step.block.arguments[pair.argument], pair.dim) for pair in self.pairs]
        self._made |= {argument: argument for argument, _ in arguments}
        for op in [op.operation for op in self.step.block.operations]:
            if op_key(op) in self.shards.sums:
                self._sum(op)
                self._old.append(op)
            elif len(op.results) == 1 and op.results[0] in self.shards.dims:
                self._made[op.results[0]] = self._scattered(op) if op.name == ALL_REDUCE.op else self._shard_of(op)
                self._old.append(op)
        self._return()
        for argument, dim in arguments:  # last, since types determine how ops read their operands
            argument.set_type(self._shard_type(argument.type, dim))

    def erase_old(self) -> None:
        """Erases unread ops, after all updates are emitted, since shards are cut before these ops."""
        for op in reversed(self._old):
            self.editor.erase_if_dead(op)

    # ---- values

    def _scattered(self, op: ir.Operation) -> ir.Value:
        """``slice(AR(x)) = RS(x)``; for a sum over more axes, the shard is then reduced over the rest."""
        dim = self.shards.dims[op.results[0]]
        axes = self.step.reduced_axes(op)
        assert not isinstance(axes, str)
        kept = self._shard_type(op.results[0].type, dim)
        value = self._collective(REDUCE_SCATTER.op, op, op.operands[0], kept, self.step.scatter_rows, dim=dim)
        rest = tuple(axis for axis in axes if axis != self.step.axis)
        return value if not rest else self._collective(ALL_REDUCE.op, op, value, kept, along(self.step.mesh, rest))

    def _shard_of(self, op: ir.Operation) -> ir.Value:
        """The same op on shards."""
        dim = self.shards.dims[op.results[0]]
        read = operand_dimensions(op, dim, self.step.shards)
        assert isinstance(read, list)
        operands = [operand if wanted is None else self._read(operand, wanted)
                    for operand, wanted in zip(op.operands, read, strict=True)]
        copy = self.editor.clone_before(op, op)
        for position, operand in enumerate(operands):
            self.editor.set_operand(copy, position, operand)
        copy.results[0].set_type(self._shard_type(op.results[0].type, dim))
        return copy.results[0]

    def _read(self, value: ir.Value, dim: int) -> ir.Value:
        """The shard of a value: computed as one, or cut out of the whole value."""
        if value in self.shards.dims:
            return self._made[value]
        return self.own.of(value, dim)

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
                                                   self.step.scatter_rows, dim=self.shards.dims[value], before=end)
            self.editor.set_operand(end, position, shard if position in sharded else gathered[value])

    # ---- ops

    def _collective(self, name: str, at: ir.Operation, value: ir.Value, result: ir.Type, rows: Rows,
                    *, dim: int | None = None, kind: str = "sum", before: ir.Operation | None = None) -> ir.Value:
        with self.editor.context:
            attributes: dict[str, ir.Attribute] = {
                REPLICA_GROUPS: rows_attribute(self.editor.context, rows), "use_global_device_ids": ir.UnitAttr.get(),
                "channel_handle": ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 1>")}
            if dim is not None:
                where, = (REDUCE_SCATTER if name == REDUCE_SCATTER.op else ALL_GATHER).dimensions
                attributes[where] = integer_attribute(self.editor, dim)
        reduces = name != ALL_GATHER.op
        made = self.editor.create(name, [value], [result], attributes=attributes, regions=int(reduces),
                                  location=at.location, before=before or at)
        if reduces:
            add_reducer(self.editor, made, kind)
        return made.results[0]

    def _shard_type(self, type_: ir.Type, dim: int) -> ir.RankedTensorType:
        return with_dimension(type_, dim, ir.RankedTensorType(type_).shape[dim] // self.step.shards)
