"""Index expressions evaluated once per device, or once per iteration of a loop.

JAX code computes its position in the mesh with a dozen scalar ops on ``partition_id`` (divide, remainder, compare,
select, a table look-up). Symbolic matching of such expressions is hopeless, but evaluating them for each device is
exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from hlorewrite.analysis.mesh import replicated_operand
from hlorewrite.ir import defining_op, element_count, ir, terminator
from hlorewrite.ops.attributes import comparison_direction, integer, ints, shape_of
from hlorewrite.ops.elements import MOVERS, iota, moved
from hlorewrite.ops.elementwise import INTEGER_OPS, converted, of_integers
from hlorewrite.ops.table import MOVES, OpClass, ops_of

_MOST_ELEMENTS = 4096
_MOST_OPS = 256
_MOST_CALLS = 8
_WIDTHS = ("1", "8", "16", "32", "64")  # integers that numpy computes with, wrapping around as in the specification
_FLOATS = {"f32": np.float32, "f64": np.float64}
_EVALUATED = MOVES | {f"stablehlo.{name}" for name in INTEGER_OPS} | {
    "stablehlo.partition_id", "func.call"} | ops_of(OpClass.CONSTANT)
_OF_FLOATS = MOVES | {"stablehlo.constant", "stablehlo.convert", "stablehlo.select", "func.call"}

Table = tuple[np.ndarray, ...]


class PerDeviceConstants:
    """Evaluates small integer values for every device.

    Args:
      devices: the partition ids to evaluate for.
      floats: also evaluate f32 and f64 tensors that are integers or constants, converted and moved about. Equal numbers
        may then differ in the sign of a zero.
    """

    def __init__(self, devices: Sequence[int], _depth: int = 0, *, floats: bool = False) -> None:
        self.devices = tuple(devices)
        self._floats = floats
        self._depth = _depth
        self._iterations = False
        self._known: dict[ir.Value, Table | None] = {}

    @classmethod
    def of_iterations(cls, counters: Mapping[ir.Value, np.ndarray]) -> PerDeviceConstants:
        """Evaluates scalars for all iterations of a loop at once, if they are equal on all devices.

        Args:
          counters: scalar arguments of the loop's body, with their values in each iteration.

        Returns:
          A map whose tables contain one array: a value for each iteration, or one number for all.
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
          One array per device; None when the value depends on anything but ``partition_id`` and constants.
        """
        order = self._cone(value)
        if order is None:
            self._known[value] = None
            return None
        for result in order:
            if result not in self._known:
                self._known[result] = self._evaluate(result)
        return self._known[value]

    def forget(self, value: ir.Value) -> None:
        """Forgets a value that is about to leave the module, since another value may reuse its address."""
        self._known.pop(value, None)

    def _cone(self, value: ir.Value) -> list[ir.Value] | None:
        """The values that a value is computed from, operands first; None when one of them cannot be evaluated.

        An argument of a manual computation that is not sharded equals its operand outside.
        """
        order: list[ir.Value] = []
        seen: set[ir.Value] = set()
        stack: list[tuple[ir.Value, bool]] = [(value, False)]
        # Ends: the operands of a value are added once.
        while stack:
            current, ready = stack.pop()
            if self._known.get(current) is not None:
                continue
            if ready:
                order.append(current)
                continue
            op = defining_op(current)
            if current in seen:
                continue
            seen.add(current)
            if len(seen) > _MOST_OPS:
                return None
            read = None if current in self._known else self._read_by(current, op)
            if read is None:
                self._known.update((reader, None) for reader, waits in stack if waits)
                return None
            stack.append((current, True))
            stack.extend((operand, False) for operand in read)
        return order

    def _read_by(self, value: ir.Value, op: ir.Operation | None) -> Sequence[ir.Value] | None:
        """The values that a value is computed from directly; None when it cannot be evaluated."""
        if op is not None:
            return list(op.operands) if self._is_evaluable(op) else None
        outside = None if self._iterations else _outside(value)
        return None if outside is None else [outside]

    def _is_evaluable(self, op: ir.Operation) -> bool:
        return _evaluable(op, self._floats) and (not self._iterations or _of_scalars(op))

    def _evaluate(self, value: ir.Value) -> Table | None:
        op = defining_op(value)
        if op is None:
            outside = _outside(value)
            table = None if outside is None else self._known[outside]
            return table if table is not None and all(np.array_equal(table[0], each) for each in table) else None
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
                made = [_apply(op, [table[place] for table in operands if table is not None], dtype)
                        for place in range(len(self.devices))]
            return None if any(each is None for each in made) else tuple(each for each in made if each is not None)
        except (ValueError, TypeError, KeyError, IndexError):
            return None

    def _called(self, op: ir.Operation, operands: Sequence[Table | None]) -> Table | None:
        """The results of a single-block function for arguments that are known on every device."""
        function = _callee(op)
        if function is None or len(function.regions[0].blocks) != 1 or self._depth >= _MOST_CALLS:
            return None
        block = function.regions[0].blocks[0]
        inside = PerDeviceConstants(self.devices, self._depth + 1, floats=self._floats)
        inside._iterations = self._iterations
        inside._known.update(zip(block.arguments, operands, strict=True))
        return inside.table(terminator(block).operands[0])


def _outside(value: ir.Value) -> ir.Value | None:
    return replicated_operand(value) if isinstance(value, ir.BlockArgument) else None


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
    """The type in which numpy computes an integer or boolean tensor; None for any other."""
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
    """Whether an op can be evaluated: no integers from floats, and no float arithmetic."""
    if len(op.results) != 1 or not 0 < element_count(op.results[0].type) <= _MOST_ELEMENTS:
        return False
    element = _element(op.results[0])
    if element in _FLOATS:
        return floats and op.name in _OF_FLOATS
    if element.lstrip("ui") not in _WIDTHS:
        return False
    if op.name != "func.call" and any(_element(operand) in _FLOATS for operand in op.operands):
        return False
    return op.name in _EVALUATED


def _of_scalars(op: ir.Operation) -> bool:
    """Whether an op computes a scalar from scalars elementwise, equal on all devices."""
    scalars = all(ir.RankedTensorType(value.type).rank == 0 for value in (*op.operands, *op.results))
    return scalars and op.name not in MOVES and op.name != "stablehlo.partition_id"


def _apply(op: ir.Operation, operands: list[np.ndarray], dtype: np.dtype) -> np.ndarray | None:
    shape, short = shape_of(op.results[0]), op.name.removeprefix("stablehlo.")
    if op.name == "stablehlo.constant":
        return np.array(op.attributes["value"]).astype(dtype).reshape(shape)
    if op.name == "stablehlo.iota":
        return iota(shape, integer(op, "iota_dimension"), dtype)
    if short in MOVERS:
        return moved(short, partial(ints, op), shape, operands)
    if short == "convert":
        return converted(operands[0], dtype)
    return of_integers(short, operands, dtype, comparison_direction(op) if short == "compare" else "")
