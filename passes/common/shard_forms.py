"""How ops map a sharded dimension: what each computes on shards of its operands.

A value is replicated over a group, sharded along a dimension (each member holds its own contiguous part, in the order
of the members), or a partial sum. An op has a form on shards when each part of its result depends on the same part of
its operands alone, or when it sums over the sharded dimension, so that the parts add up to its result. These are the
sharding rules of GSPMD (Xu et al. 2021, section 3.2) for one dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlorewrite.ir.binding import ir, stablehlo
from hlorewrite.ir.slices import SLICES, takes_whole
from hlorewrite.ir.types import is_static_tensor
from hlorewrite.ops.reducers import is_identity, reduction_kind

Dims = tuple[int | None, ...]


@dataclass(frozen=True)
class ShardForm:
    """An op on shards.

    Attributes:
      operands: the sharded dimension of each operand; None of one that is read whole.
      result: the sharded dimension of its results; None when they are partial sums.
    """

    operands: Dims
    result: int | None


ELEMENTWISE = frozenset((*(f"stablehlo.{name}" for name in (
    "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "complex", "convert", "cosine",
    "count_leading_zeros", "divide", "exponential", "exponential_minus_one", "floor", "imag", "is_finite", "log",
    "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real",
    "reduce_precision", "remainder", "round_nearest_afz", "round_nearest_even", "rsqrt", "select", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor")),
    *(f"chlo.{name}" for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "digamma", "erf", "erf_inv", "erfc", "is_inf",
        "lgamma", "log1p", "sinh", "square"))))


def shard_form(op: ir.Operation, dimension: int, position: int | None = None, shards: int = 0) -> ShardForm | str:
    """What an op computes on shards, when one operand or its result is sharded.

    Args:
      op: any op but a loop, a barrier or a collective.
      dimension: the sharded one.
      position: of the operand that is sharded; None when the result is.
      shards: into how many; a reshape may then join or split the dimension where each shard stays one block. By default
        it has to keep the dimension as it is.

    Returns:
      The form; or why it has none, as the end of a sentence about the op.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> text = ("func.func @f(%a: tensor<4x8xf32>) -> tensor<8x4xf32> {"
      ...         "%b = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>"
      ...         "return %b : tensor<8x4xf32> }")
      >>> module = parse(text)
      >>> function, = module.mlir.body.operations
      >>> shard_form(function.regions[0].blocks[0].operations[0], 1, 0)
      ShardForm(operands=(1,), result=0)
    """
    if not all(is_static_tensor(value.type) for value in (*op.operands, *op.results)) or len(op.results) == 0:
        return "has a value without a static shape"
    if op.name in ELEMENTWISE:
        return _elementwise(op, dimension, position)
    if op.name == "stablehlo.reshape":
        return _reshape(op, dimension, position, shards)
    rule = _RULES.get(op.name)
    return rule(op, dimension, position) if rule else "needs the dimension whole"


def repeats_whole(op: ir.Operation, dimension: int) -> bool:
    """Whether each shard of an op's result is the same function of its whole operands: constants, spread-out values.

    Args:
      op: the op.
      dimension: of its result, the sharded one.
    """
    if op.name == "stablehlo.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    if op.name == "stablehlo.iota":
        return ir.IntegerAttr(op.attributes["iota_dimension"]).value != dimension
    if op.name != "stablehlo.broadcast_in_dim" or not is_static_tensor(op.results[0].type):
        return False
    places = _numbers(op, "broadcast_dimensions")
    return dimension not in places or _shape(op.operands[0])[places.index(dimension)] == 1


def _elementwise(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    shape = _shape(op.results[0])
    if position is not None and _shape(op.operands[position]) != shape:
        return "reads it as one number"
    return ShardForm(tuple(dimension if _shape(operand) == shape else None for operand in op.operands), dimension)


def _transpose(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    order = _numbers(op, "permutation")
    if position is None:
        return ShardForm((order[dimension],), dimension)
    return ShardForm((dimension,), order.index(dimension))


def _broadcast(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    places = _numbers(op, "broadcast_dimensions")
    result = dimension if position is None else places[dimension]
    if repeats_whole(op, result):
        return "repeats it along the dimension"
    return ShardForm((places.index(result),), result)


def _bitcast(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    if _shape(op.operands[0]) != _shape(op.results[0]):
        return "splits or joins elements"
    return ShardForm((dimension,), dimension)


def _reshape(op: ir.Operation, dimension: int, position: int | None, shards: int) -> ShardForm | str:
    before, after = _shape(op.operands[0]), _shape(op.results[0])
    source, target = (before, after) if position is not None else (after, before)
    other = _same_place(source, target, dimension, shards)
    if other is None:
        return "joins or splits the dimension"
    return ShardForm((dimension,), other) if position is not None else ShardForm((other,), dimension)


def _same_place(source: Sequence[int], target: Sequence[int], dimension: int, shards: int) -> int | None:
    """The dimension of a reshaped tensor whose shards hold the same elements; it keeps its size where shards is 0."""
    before, size = math.prod(source[:dimension]), source[dimension]
    for place, other in enumerate(target):
        same = other == size or (shards > 0 and other > 0 and other % shards == 0 and size % shards == 0)
        if same and math.prod(target[:place]) == before:
            return place
    return None


def _reduce(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    count = len(op.results)
    removed = _numbers(op, "dimensions")
    kept = [place for place in range(len(_shape(op.operands[0]))) if place not in removed]
    whole: Dims = (None,) * count
    if position is None:
        return ShardForm((kept[dimension],) * count + whole, dimension)
    if position >= count:
        return "reads it as one number"
    if dimension in kept:
        return ShardForm((dimension,) * count + whole, kept.index(dimension))
    if count != 1 or reduction_kind(op) != "sum":
        return "combines elements along the dimension by something other than a sum"
    if not is_identity(op.operands[1], "sum"):
        return "sums along the dimension from a start other than zero"
    return ShardForm((dimension, None), None)


def _dot(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    free = [[place for place in range(len(_shape(op.operands[side])))
             if place not in [pair[side] for pair in (*batch, *summed)]] for side in (0, 1)]
    forms = [ShardForm(pair, k) for k, pair in enumerate(batch)]
    forms += [ShardForm((place, None), len(batch) + k) for k, place in enumerate(free[0])]
    forms += [ShardForm((None, place), len(batch) + len(free[0]) + k) for k, place in enumerate(free[1])]
    forms += [ShardForm(pair, None) for pair in summed]
    return next((form for form in forms if _fits(form, dimension, position)), "needs the dimension whole")


def _fits(form: ShardForm, dimension: int, position: int | None) -> bool:
    return (form.result if position is None else form.operands[position]) == dimension


def _slice(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    if position or not takes_whole(op, dimension):
        return "cuts the dimension"
    return ShardForm((dimension,) + (None,) * (len(op.operands) - 1), dimension)


def _update_slice(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    if (position or 0) > 1 or _shape(op.operands[0])[dimension] != _shape(op.operands[1])[dimension]:
        return "writes a part of the dimension"
    return ShardForm((dimension, dimension) + (None,) * (len(op.operands) - 2), dimension)


def _concatenate(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    if ir.IntegerAttr(op.attributes["dimension"]).value == dimension:
        return "joins tensors along the dimension"
    return ShardForm((dimension,) * len(op.operands), dimension)


def _reverse(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    if dimension in _numbers(op, "dimensions"):
        return "reverses the dimension"
    return ShardForm((dimension,), dimension)


def _pad(op: ir.Operation, dimension: int, position: int | None) -> ShardForm | str:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    if position or any(_numbers(op, name)[dimension] for name in names):
        return "pads the dimension"
    return ShardForm((dimension, None), dimension)


def _numbers(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


_RULES: dict[str, Callable[[ir.Operation, int, int | None], ShardForm | str]] = {
    "stablehlo.transpose": _transpose, "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.bitcast_convert": _bitcast, "stablehlo.reduce": _reduce, "stablehlo.dot_general": _dot,
    "stablehlo.dynamic_update_slice": _update_slice, "stablehlo.concatenate": _concatenate,
    "stablehlo.reverse": _reverse, "stablehlo.pad": _pad,
    **dict.fromkeys(SLICES, _slice)}
