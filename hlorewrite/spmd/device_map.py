"""Index expressions evaluated once per device, or once per iteration of a loop.

JAX code finds its place in the mesh by a dozen scalar ops on ``partition_id`` (divide, remainder, compare, select, a
table look-up). Matching such expressions symbolically is hopeless; evaluating them for each of the devices is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hlorewrite.ir.binding import ir
from hlorewrite.ir.element_moves import broadcast_in_dim
from hlorewrite.ir.types import element_count
from hlorewrite.ir.view import defining_op, terminator

_MOST_ELEMENTS = 4096
_MOST_OPS = 256
_MOST_CALLS = 8
_WIDTHS = ("1", "8", "16", "32", "64")  # integers numpy computes with, wrapping around as the specification does
_FLOATS = {"f32": np.float32, "f64": np.float64}
_MOVES = frozenset({"stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.dynamic_slice", "stablehlo.slice"})
_OF_FLOATS = _MOVES | {"stablehlo.constant", "stablehlo.convert", "stablehlo.select", "func.call"}

Table = tuple[np.ndarray, ...]


def _compare(op: ir.Operation, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    return {"EQ": left == right, "NE": left != right, "LT": left < right, "LE": left <= right,
            "GT": left > right, "GE": left >= right}[direction]


def _truncated_division(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if np.any(right == 0):
        raise ValueError("division by zero")
    floor = left // right
    rounds_up = (left - floor * right != 0) & ((left < 0) != (right < 0))
    return (floor + rounds_up).astype(left.dtype)


def _remainder(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left - right * _truncated_division(left, right)


_ELEMENTWISE: dict[str, Callable[..., np.ndarray]] = {
    "stablehlo.add": np.add, "stablehlo.subtract": np.subtract, "stablehlo.multiply": np.multiply,
    "stablehlo.divide": _truncated_division, "stablehlo.remainder": _remainder, "stablehlo.negate": np.negative,
    "stablehlo.maximum": np.maximum, "stablehlo.minimum": np.minimum, "stablehlo.and": np.bitwise_and,
    "stablehlo.or": np.bitwise_or, "stablehlo.xor": np.bitwise_xor, "stablehlo.not": np.invert,
    "stablehlo.select": np.where, "stablehlo.sign": np.sign, "stablehlo.abs": np.abs,
}


class DeviceMap:
    """Evaluates small integer values for every device.

    Args:
      devices: the partition ids to evaluate for.
      floats: also evaluate f32 and f64 tensors that are integers or constants, converted and moved about. Numbers
        that compare equal may then differ in the sign of a zero.
    """

    def __init__(self, devices: Sequence[int], _depth: int = 0, *, floats: bool = False) -> None:
        self.devices = tuple(devices)
        self._floats = floats
        self._depth = _depth
        self._iterations = False
        self._known: dict[ir.Value, Table | None] = {}

    @classmethod
    def of_iterations(cls, counters: Mapping[ir.Value, np.ndarray]) -> DeviceMap:
        """Evaluates scalars for all iterations of a loop at once, alike on all devices.

        Args:
          counters: scalar arguments of the loop's body, and what each holds in each iteration.

        Returns:
          A map whose tables hold one array: a value for each iteration, or one number for all.
        """
        made = cls((0,))
        made._iterations = True
        made._known.update({argument: (values,) for argument, values in counters.items()})
        return made

    def table(self, value: ir.Value) -> Table | None:
        """A value on each device, in the order of ``devices``.

        Args:
          value: an integer or boolean tensor of at most 4096 elements; with ``floats`` one of f32 or f64 too.

        Returns:
          One array a device; None when the value depends on anything but ``partition_id`` and constants.
        """
        order = self._cone(value)
        if order is None:
            self._known[value] = None
            return None
        for op in order:
            result = op.results[0]
            if result not in self._known:
                self._known[result] = self._evaluate(op)
        return self._known[value]

    def forget(self, value: ir.Value) -> None:
        """A value is about to leave the module; its address may come back as another one's."""
        self._known.pop(value, None)

    def _cone(self, value: ir.Value) -> list[ir.Operation] | None:
        """The ops a value is computed from, operands first; None when one of them cannot be evaluated."""
        order: list[ir.Operation] = []
        seen: set[ir.Value] = set()
        stack: list[tuple[ir.Value, bool]] = [(value, False)]
        # Ends: the operands of a value are added once.
        while stack:
            current, ready = stack.pop()
            if self._known.get(current) is not None:
                continue
            op = defining_op(current)
            if ready and op is not None:
                order.append(op)
                continue
            if current in seen:
                continue
            seen.add(current)
            if len(seen) > _MOST_OPS:
                return None
            if op is None or current in self._known or not self._is_evaluable(op):
                self._known.update((reader, None) for reader, waits in stack if waits)
                return None
            stack.append((current, True))
            stack.extend((operand, False) for operand in op.operands)
        return order

    def _is_evaluable(self, op: ir.Operation) -> bool:
        return _evaluable(op, self._floats) and (not self._iterations or _of_scalars(op))

    def _evaluate(self, op: ir.Operation) -> Table | None:
        dtype = _numpy_type(op.results[0].type)
        if op.name == "stablehlo.partition_id":
            return tuple(np.array(device, dtype) for device in self.devices)
        operands = [self._known[operand] for operand in op.operands]
        if any(operand is None for operand in operands):
            return None
        if op.name == "func.call":
            return self._called(op, operands)
        try:
            with np.errstate(all="ignore"):
                return tuple(_apply(op, [table[place] for table in operands if table is not None], dtype)
                             for place in range(len(self.devices)))
        except (ValueError, TypeError, KeyError, IndexError):
            return None

    def _called(self, op: ir.Operation, operands: Sequence[Table | None]) -> Table | None:
        """What a function of one block returns for arguments that are known on every device."""
        function = _callee(op)
        if function is None or len(function.regions[0].blocks) != 1 or self._depth >= _MOST_CALLS:
            return None
        block = function.regions[0].blocks[0]
        inside = DeviceMap(self.devices, self._depth + 1, floats=self._floats)
        inside._iterations = self._iterations
        inside._known.update(zip(block.arguments, operands, strict=True))
        return inside.table(terminator(block).operands[0])


def _callee(op: ir.Operation) -> ir.Operation | None:
    """The function a call names, looked up in the module around it."""
    module = op
    # Ends: each step goes to the op around.
    while module.name != "builtin.module" and module.parent is not None:
        module = module.parent.operation
    name = op.attributes["callee"]
    for function in module.regions[0].blocks[0].operations:
        held = function.operation
        if held.name == "func.func" and ir.StringAttr(held.attributes["sym_name"]).value == ir.FlatSymbolRefAttr(
                name).value:
            return held
    return None


def numpy_type(type_: ir.Type) -> np.dtype | None:
    """The type numpy computes an integer or boolean tensor in; None for any other."""
    name = str(ir.RankedTensorType(type_).element_type)
    return _numpy_type(type_) if name.lstrip("ui") in _WIDTHS else None


def _numpy_type(type_: ir.Type) -> np.dtype:
    name = str(ir.RankedTensorType(type_).element_type)
    if name in _FLOATS:
        return np.dtype(_FLOATS[name])
    if name == "i1":
        return np.dtype(bool)
    return np.dtype(("uint" if name.startswith("ui") else "int") + name.lstrip("ui"))


def _element(value: ir.Value) -> str:
    return str(ir.RankedTensorType(value.type).element_type)


def _evaluable(op: ir.Operation, floats: bool) -> bool:
    """Whether an op is one that is evaluated; no integer is computed from floats, and no float by arithmetic."""
    if len(op.results) != 1 or not 0 < element_count(op.results[0].type) <= _MOST_ELEMENTS:
        return False
    element = _element(op.results[0])
    if element in _FLOATS:
        return floats and op.name in _OF_FLOATS
    if element.lstrip("ui") not in _WIDTHS:
        return False
    if op.name != "func.call" and any(_element(operand) in _FLOATS for operand in op.operands):
        return False
    return op.name in _ELEMENTWISE or op.name in {
        "stablehlo.partition_id", "stablehlo.constant", "stablehlo.convert", "stablehlo.compare", "stablehlo.iota",
        "stablehlo.clamp", "func.call", *_MOVES}


def _of_scalars(op: ir.Operation) -> bool:
    """Whether an op computes a scalar from scalars, element by element, alike on all devices."""
    scalars = all(ir.RankedTensorType(value.type).rank == 0 for value in (*op.operands, *op.results))
    return scalars and op.name not in _MOVES and op.name != "stablehlo.partition_id"


def _apply(op: ir.Operation, operands: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
    shape = tuple(ir.RankedTensorType(op.results[0].type).shape)
    name = op.name
    if name in _ELEMENTWISE:
        return np.asarray(_ELEMENTWISE[name](*operands)).astype(dtype)
    if name == "stablehlo.constant":
        return np.array(op.attributes["value"]).astype(dtype).reshape(shape)
    if name == "stablehlo.convert":
        return (operands[0] != 0) if dtype.kind == "b" else operands[0].astype(dtype)
    if name == "stablehlo.reshape":
        return operands[0].reshape(shape)
    if name == "stablehlo.compare":
        return _compare(op, *operands)
    if name == "stablehlo.clamp":
        return np.minimum(np.maximum(operands[1], operands[0]), operands[2])
    if name == "stablehlo.iota":
        axis = ir.IntegerAttr(op.attributes["iota_dimension"]).value
        index = np.arange(shape[axis], dtype=dtype).reshape([-1 if d == axis else 1 for d in range(len(shape))])
        return np.broadcast_to(index, shape)
    if name == "stablehlo.broadcast_in_dim":
        return broadcast_in_dim(operands[0], list(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"])), shape)
    return _sliced(op, operands)


def _sliced(op: ir.Operation, operands: list[np.ndarray]) -> np.ndarray:
    if op.name == "stablehlo.slice":
        starts, limits, steps = (list(ir.DenseI64ArrayAttr(op.attributes[key]))
                                 for key in ("start_indices", "limit_indices", "strides"))
        return operands[0][tuple(slice(*bounds) for bounds in zip(starts, limits, steps, strict=True))]
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["slice_sizes"]))
    starts = [int(np.clip(int(start), 0, full - size))
              for start, full, size in zip(operands[1:], operands[0].shape, sizes, strict=True)]
    return operands[0][tuple(slice(s, s + n) for s, n in zip(starts, sizes, strict=True))]
