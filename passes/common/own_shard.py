"""The shard of a whole value that a device holds."""

from hlorewrite.analysis.groups import Rows
from hlorewrite.ir import Editor, defining_op, ir, op_key, owner_op, with_dimension
from hlorewrite.ir.edit import point_behind
from hlorewrite.ops.dims import repeats_whole
from hlorewrite.ops.table import FILLINGS
from hlorewrite.passes.common.device_masks import lookup
from hlorewrite.passes.common.emit import filled_part, splat_constant


class OwnShard:
    """Slices at the device's place in its group; each block computes the place once.

    Constants and broadcasts are rebuilt in the size of a shard.

    Args:
      editor: the editor of the module.
      rows: the groups, of partition ids; they cover every device.
    """

    def __init__(self, editor: Editor, rows: Rows) -> None:
        self.editor = editor
        self._count = len(rows[0])
        place = {device: k for row in rows for k, device in enumerate(row)}
        self._places = [place[device] for device in range(len(place))]
        self._first: dict[ir.Block, ir.Operation] = {}
        self._in_block: dict[ir.Block, tuple[ir.Value, ir.Value]] = {}
        self._starts: dict[tuple[ir.Block, int], ir.Value] = {}
        self._made: dict[tuple[ir.Value, int], ir.Value] = {}

    def of(self, value: ir.Value, dimension: int) -> ir.Value:
        """The device's shard of a whole value, made once, after the value.

        Args:
          value: the whole value.
          dimension: the dimension along which it is cut.
        """
        if (value, dimension) not in self._made:
            maker, size = defining_op(value), ir.RankedTensorType(value.type).shape[dimension]
            type_ = with_dimension(value.type, dimension, size // self._count)
            repeated = maker is not None and repeats_whole(maker, dimension)
            self._made[value, dimension] = (filled_part(self.editor, maker, type_) if maker is not None and repeated
                                            else self._sliced(value, dimension, type_))
        return self._made[value, dimension]

    def erase_unread(self) -> None:
        """Erases constants and broadcasts of which only shards are read; no shard may be made afterwards."""
        makers = {op_key(maker): maker for maker in (defining_op(value) for value, _ in self._made)
                  if maker is not None}
        for maker in makers.values():
            if maker.name in FILLINGS:
                self.editor.erase_if_dead(maker)

    def _sliced(self, value: ir.Value, dimension: int, type_: ir.RankedTensorType) -> ir.Value:
        maker = defining_op(value)
        block = ir.BlockArgument(value).owner if maker is None else maker.block
        start, zero = self._start(block, type_.shape[dimension])
        indices = [start if k == dimension else zero for k in range(len(type_.shape))]
        with self.editor.context:
            sizes = ir.DenseI64ArrayAttr.get(list(type_.shape))
        return self.editor.create("stablehlo.dynamic_slice", [value, *indices], [type_],
                                  attributes={"slice_sizes": sizes}, location=(maker or owner_op(start)).location,
                                  at=self.after(value)).results[0]

    def after(self, value: ir.Value) -> ir.InsertionPoint:
        """The point after the op that makes a value, or before the original first op of its block."""
        owner = value.owner
        first = self._first.get(owner) if isinstance(owner, ir.Block) else None
        return point_behind(value) if first is None else ir.InsertionPoint(first)

    def _start(self, block: ir.Block, size: int) -> tuple[ir.Value, ir.Value]:
        """The first element of a shard of some size, and zero; made before the first op of the block."""
        first = self._first.setdefault(block, block.operations[0].operation)
        if block not in self._in_block:
            place = lookup(self.editor, self._places, first)
            self._in_block[block] = place, splat_constant(self.editor, 0, place.type, first)
        place, zero = self._in_block[block]
        if (block, size) not in self._starts:
            length = splat_constant(self.editor, size, place.type, first)
            self._starts[block, size] = self.editor.create("stablehlo.multiply", [place, length], [place.type],
                                                           location=first.location, before=first).results[0]
        return self._starts[block, size], zero
