"""Moves chosen members to shards: all-reduces become reduce-scatters, and values are gathered or sliced in between."""

from hlorewrite.analysis.groups import Rows, rows_attribute
from hlorewrite.ir import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Editor, Loop, defining_op, ir, with_dimension
from hlorewrite.ops.dims import attributes_for
from hlorewrite.passes.common.dimension_region import RegionMember
from hlorewrite.passes.common.emit import add_reducer, integer_attribute
from hlorewrite.passes.common.own_shard import OwnShard
from hlorewrite.passes.sequence_parallel.choose import ShardChoice


class ShardEmitter:
    """Rewrites one choice.

    Args:
      editor: the editor of the module.
      choice: the members that work on shards.
      rows: the groups; each shard belongs to the member at its place in a row.
      like: an all-reduce of the groups, whose channel and ids new collectives take.
    """

    def __init__(self, editor: Editor, choice: ShardChoice, rows: Rows, like: ir.Operation) -> None:
        self.editor = editor
        self.choice = choice
        self.rows = rows
        self.size = len(rows[0])
        self._attributes = {name: like.attributes[name] for name in like.attributes}
        with editor.context:
            self._attributes["replica_groups"] = rows_attribute(editor.context, rows)
        self._own = OwnShard(editor, rows)

    def run(self) -> None:
        """Rewrites the module."""
        region, chosen = self.choice.region, self.choice.chosen
        members = [region.members[index] for index in sorted(chosen)]
        made = {value for member in members for value in member.values}
        sliced = [read for member in members for read in member.reads if read.op.operands[read.position] not in made]
        shards = [shard for member in members for shard in self._on_shards(member)]
        for read in sliced:
            whole = read.op.operands[read.position]
            self.editor.set_operand(read.op, read.position, self._own.of(whole, read.dimension))
        for value, dimension in shards:
            self._gather(value, dimension)
        self._own.erase_unread()

    # ---- members

    def _on_shards(self, member: RegionMember) -> list[tuple[ir.Value, int]]:
        """Computes the values of a member on shards, each with its dimension."""
        op, dims = member.op, [self.choice.region.dims[value] for value in member.values]
        if member.reduces:
            return [(self._scattered(op, dims[0]), dims[0])]
        if member.gives_partial_sums:
            self._sum_partial(op)
            return []
        shard = self._part(member.values[0].type, dims[0])
        for name, attribute in attributes_for(op, dims[0], shard.shape[dims[0]]).items():
            if attribute != op.attributes[name]:
                self.editor.set_attribute(op, name, attribute)
        for value, dimension in zip(member.values, dims, strict=True):
            self.editor.set_type(value, self._part(value.type, dimension))
        if op.name == "stablehlo.while" and member.position is not None:
            self.editor.set_type(Loop(op).condition.arguments[member.position], member.values[0].type)
        return list(zip(member.values, dims, strict=True))

    def _scattered(self, op: ir.Operation, dimension: int) -> ir.Value:
        where = integer_attribute(self.editor, dimension)
        made = self.editor.create(REDUCE_SCATTER.op, list(op.operands), [self._part(op.results[0].type, dimension)],
                                  attributes=self._attributes | {"scatter_dimension": where}, regions=1,
                                  location=op.location, before=op)
        add_reducer(self.editor, made, "sum")
        self.editor.replace(op.results[0], made.results[0])
        self.editor.erase(op)
        return made.results[0]

    def _sum_partial(self, op: ir.Operation) -> None:
        """Sums partial sums of shards over the group."""
        result, = op.results
        made = self.editor.create(ALL_REDUCE.op, [result], [result.type], attributes=self._attributes, regions=1,
                                  location=op.location, at=ir.InsertionPoint.after(op))
        add_reducer(self.editor, made, "sum")
        self.editor.replace(result, made.results[0], keep=[made])

    # ---- conversions

    def _gather(self, value: ir.Value, dimension: int) -> None:
        """Makes readers that do not work on shards read the whole value."""
        region, chosen = self.choice.region, self.choice.chosen
        places = [(op, position) for op, position, reader in region.readers(value) if reader not in chosen]
        if not places:
            return
        whole = with_dimension(value.type, dimension, ir.RankedTensorType(value.type).shape[dimension] * self.size)
        where = integer_attribute(self.editor, dimension)
        made = self.editor.create(ALL_GATHER.op, [value], [whole], attributes=self._attributes
                                  | {"all_gather_dim": where}, location=(defining_op(value) or places[0][0]).location,
                                  at=self._own.after(value))
        for op, position in places:
            self.editor.set_operand(op, position, made.results[0])

    def _part(self, type_: ir.Type, dimension: int) -> ir.RankedTensorType:
        return with_dimension(type_, dimension, ir.RankedTensorType(type_).shape[dimension] // self.size)
