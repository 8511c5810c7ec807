"""Scatters as XLA carries them out: an update whose window does not fit into the operand is left out as a whole.

The interpreter leaves out single elements, so a window that lies partly outside still writes the others.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlorewrite.ir import ir, nested_ops
from hlorewrite.ops.attributes import scatter_numbers


def leave_out_partial_windows(module: ir.Operation) -> None:
    """Moves each window that does not fit so that all of it is outside.

    Args:
      module: the module, which is changed; its indices are signed.
    """
    for op in nested_ops(module):
        if op.name == "stablehlo.scatter":
            _move_windows(op)


def _move_windows(op: ir.Operation) -> None:
    inputs = len(op.results)
    numbers = scatter_numbers(op)
    shape, updates = (list(ir.RankedTensorType(op.operands[k].type).shape) for k in (0, inputs + 1))
    absent = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [axis for axis in range(len(shape)) if axis not in absent]
    extent = {axis: updates[window] for axis, window in zip(kept, numbers.update_window_dims, strict=True)}
    scattered = list(numbers.scattered_dims_to_operand_dims)
    if all(extent.get(axis, 1) == 1 for axis in scattered):
        return
    last = [shape[axis] - extent.get(axis, 1) for axis in scattered]
    with op.context, op.location:
        made = _Indices(ir.InsertionPoint(op), numbers.index_vector_dim)
        op.operands[inputs] = made.moved(op.operands[inputs], last, [shape[axis] for axis in scattered])


@dataclass(frozen=True)
class _Indices:
    """Writes ops on indices before a scatter; components of an index are along ``axis``, or there is one."""

    point: ir.InsertionPoint
    axis: int

    def moved(self, value: ir.Value, last: list[int], outside: list[int]) -> ir.Value:
        """The indices, with ``outside`` where a component is below zero or above its ``last``."""
        shape = list(ir.RankedTensorType(value.type).shape)
        wide = self._op("stablehlo.convert", shape, "i64", [value])
        fitting = self._op("stablehlo.clamp", shape, "i64", [
            self._components(shape, [0] * len(last)), wide, self._components(shape, last)])
        off = self._op("stablehlo.compare", shape, "i1", [wide, fitting],
                       comparison_direction=ir.Attribute.parse("#stablehlo<comparison_direction NE>"))
        if self.axis < len(shape):
            off = self._any(off, shape)
        return self._op("stablehlo.select", shape, "i64", [off, self._components(shape, outside), wide])

    def _any(self, off: ir.Value, shape: list[int]) -> ir.Value:
        """Whether any component of an index is off, for each of its components."""
        one = [*shape[:self.axis], 1, *shape[self.axis + 1:]]
        parts = []
        for k in range(shape[self.axis]):
            start = [k if axis == self.axis else 0 for axis in range(len(shape))]
            limit = [k + 1 if axis == self.axis else size for axis, size in enumerate(shape)]
            parts.append(self._op("stablehlo.slice", one, "i1", [off], **{
                name: ir.DenseI64ArrayAttr.get(numbers) for name, numbers in (
                    ("start_indices", start), ("limit_indices", limit), ("strides", [1] * len(shape)))}))
        found = parts[0]
        for part in parts[1:]:
            found = self._op("stablehlo.or", one, "i1", [found, part])
        return self._op("stablehlo.broadcast_in_dim", shape, "i1", [found],
                        broadcast_dimensions=ir.DenseI64ArrayAttr.get(range(len(shape))))

    def _components(self, shape: list[int], numbers: list[int]) -> ir.Value:
        """One number for each component of an index."""
        along = [len(numbers) if axis == self.axis else 1 for axis in range(len(shape))]
        array = np.broadcast_to(np.array(numbers, np.int64).reshape(along), shape)
        kind = ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(64))
        return ir.Operation.create("stablehlo.constant", [kind], ip=self.point, attributes={
            "value": ir.DenseElementsAttr.get(np.ascontiguousarray(array).data, type=kind)}).results[0]

    def _op(self, name: str, shape: list[int], element: str, operands: list[ir.Value], **attributes: Any) -> ir.Value:
        kind = ir.RankedTensorType.get(shape, ir.Type.parse(element))
        return ir.Operation.create(name, [kind], operands, attributes=attributes, ip=self.point).results[0]
