"""jaxlib's StableHLO reference interpreter: what it can run, and its values as numpy arrays.

An op the interpreter does not know ends the process (``report_fatal_error``), so what it supports is listed here, from
``stablehlo/reference/Ops.cpp``.
"""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from hlorewrite.errors import CannotExecute
from hlorewrite.ir.binding import ir, stablehlo

_RUNNABLE = """
abs add after_all and atan2 bitcast_convert broadcast_in_dim case cbrt ceil clamp compare complex concatenate constant
convert convolution cosine count_leading_zeros divide dot_general dynamic_slice dynamic_update_slice
exponential exponential_minus_one floor gather get_dimension_size get_tuple_element if imag iota is_finite log
log_plus_one logistic map maximum minimum multiply negate not optimization_barrier or pad popcnt power real reduce
reduce_precision reduce_window remainder reshape return reverse round_nearest_afz round_nearest_even rsqrt scatter
select select_and_scatter shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan
tanh transpose triangular_solve tuple while xor
"""
RUNNABLE = frozenset({f"stablehlo.{name}" for name in _RUNNABLE.split()} | {"func.call", "func.return"})
"""Ops the interpreter evaluates and that mean the same on every device given the same operands."""

_DTYPES: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E3M4": ml_dtypes.float8_e3m4, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu, "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "i1": np.bool_, "i4": ml_dtypes.int4, "ui4": ml_dtypes.uint4,
    **{f"{prefix}{bits}": np.dtype(f"{kind}{bits // 8}") for bits in (8, 16, 32, 64)
       for prefix, kind in (("i", "i"), ("ui", "u"))},
    "complex<f32>": np.complex64, "complex<f64>": np.complex128,
}
# Types jaxlib does not give as a buffer, and the type of the same width to look at their bits through.
_CARRIERS = {"bf16": "i16", **{name: "i8" for name in _DTYPES if name.startswith("f8")}}


def dtype_of(type_: ir.Type) -> np.dtype[Any]:
    """The numpy dtype of a tensor type.

    Raises:
      CannotExecute: the type is not a static tensor, or of elements numpy does not know.
    """
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        raise CannotExecute(f"a value of type {type_} cannot be passed to the interpreter",
                            hint="arguments and results must be tensors of static shape")
    name = str(type_.element_type)
    if name not in _DTYPES:
        raise CannotExecute(f"elements of type {name} cannot be passed to the interpreter",
                            hint="use another element type, or --check=none")
    return np.dtype(_DTYPES[name])


def carrier_of(type_: ir.Type) -> tuple[str, str] | None:
    """How to make a result of the interpreter readable, as (op, element type); None if it is readable already."""
    name = str(ir.RankedTensorType(type_).element_type)
    if name in _CARRIERS:
        return "stablehlo.bitcast_convert", _CARRIERS[name]
    if name in ("i1", "i4"):
        return "stablehlo.convert", "i8"
    return ("stablehlo.convert", "ui8") if name == "ui4" else None


def to_attribute(array: np.ndarray[Any, Any], type_: ir.Type) -> ir.Attribute:
    """A numpy array as the constant the interpreter takes.

    Raises:
      CannotExecute: the array has another shape or dtype than the type.
    """
    tensor = ir.RankedTensorType(type_)
    wanted = dtype_of(type_)
    array = np.asarray(array)
    if list(array.shape) != list(tensor.shape) or array.dtype != wanted:
        raise CannotExecute(f"an input of shape {tuple(array.shape)} and type {array.dtype} was passed for {type_}",
                            hint="pass inputs with the types of the program's arguments")
    array = np.ascontiguousarray(array)
    name = str(tensor.element_type)
    if name in _CARRIERS:
        array = array.view(np.dtype(f"u{wanted.itemsize}"))
    elif name in ("i4", "ui4"):
        array = array.astype(np.int8 if name == "i4" else np.uint8)
    return ir.DenseElementsAttr.get(array.data, type=tensor)


def from_attributes(values: Sequence[ir.Attribute], type_: ir.Type) -> np.ndarray[Any, Any]:
    """The numpy array of one result, from the one or two constants that the interpreter returned for it."""
    tensor, dtype = ir.RankedTensorType(type_), dtype_of(type_)
    arrays = [np.array(value).reshape(tuple(tensor.shape)) for value in values]
    if len(arrays) == 2:  # real and imaginary part
        made = np.empty(arrays[0].shape, dtype)
        made.real, made.imag = arrays  # 1j times an infinity is NaN
        return made
    if str(tensor.element_type) in _CARRIERS:
        return arrays[0].view(dtype)
    return arrays[0].astype(dtype)


def readable_parts(values: Sequence[ir.Value], point: ir.InsertionPoint) -> list[ir.Value]:
    """Values in types that can be read from Python: ``from_attributes`` makes arrays of them.

    Args:
      values: tensors.
      point: where ops are added that look at the bits through another type, or take complex numbers apart.

    Returns:
      For each value one part, of complex types two.
    """
    parts = []
    for value in values:
        dtype_of(value.type)
        tensor = ir.RankedTensorType(value.type)
        carrier = carrier_of(value.type)
        if isinstance(tensor.element_type, ir.ComplexType):
            names, element = ("stablehlo.real", "stablehlo.imag"), ir.ComplexType(tensor.element_type).element_type
        elif carrier:
            names, element = (carrier[0],), ir.Type.parse(carrier[1])
        else:
            parts.append(value)
            continue
        parts += [ir.Operation.create(name, results=[ir.RankedTensorType.get(tensor.shape, element)], operands=[value],
                                      ip=point).results[0] for name in names]
    return parts


def keep_scatter_operands(module: ir.Module) -> None:
    """Gives each scatter a copy of what it updates: the interpreter writes its result into the operand itself.

    ``evalScatterOp`` of ``stablehlo/reference/Ops.cpp`` starts from the operand's own buffer, so that every other
    reader of that value would see the updates.

    Args:
      module: what is about to be evaluated; changed in place.
    """
    scatters: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "stablehlo.scatter":
            scatters.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    for op in scatters:
        with module.context, op.location, ir.InsertionPoint(op):
            for position in range((len(op.operands) - 1) // 2):
                value = op.operands[position]
                axes = ir.DenseI64ArrayAttr.get(range(ir.RankedTensorType(value.type).rank))
                op.operands[position] = ir.Operation.create("stablehlo.transpose", results=[value.type],
                                                            operands=[value], attributes={"permutation": axes}
                                                            ).results[0]


def evaluate(module: ir.Module, inputs: Sequence[ir.Attribute]) -> list[ir.Attribute]:
    """Runs ``main`` of a module that contains only runnable ops.

    Raises:
      CannotExecute: the interpreter fails.
    """
    try:
        return stablehlo.eval_module(module, list(inputs))
    except ValueError as error:
        raise CannotExecute(f"the StableHLO interpreter fails ({error})",
                            hint="check that the module verifies") from None
