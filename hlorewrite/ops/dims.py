"""The sharding rule of each op: which dimensions of its operands correspond to which dimensions of its result.

A rule has *factors*, in Shardy's word: dimensions of operands and of the result that go together. Divide operands along
a factor, so that each device of a group holds its own contiguous part, in the order of the devices. Then the op works
on parts alone: each part of its result depends on the same part of its operands, or the op sums over the factor and its
results are partial sums. These are the sharding rules of GSPMD (Xu et al. 2021, section 3.2) and of Shardy's
``op_sharding_rule``, for one dimension at a time. A test compares them with Shardy's, and executes ops on parts.

The same factor says where a dimension goes if an op on parts is replaced by the op on whole tensors.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hlorewrite.ir import BY_OP, SPLIT_COUNT, ir, is_static_tensor
from hlorewrite.ops.attributes import (
    PADDING,
    SLICED,
    constant_attribute,
    dot_dims,
    gather_numbers,
    integer,
    ints,
    scatter_numbers,
    shape_of,
)
from hlorewrite.ops.reducers import is_identity, reduction_kind
from hlorewrite.ops.table import ELEMENTWISE, SLICES

Dims = tuple[int | None, ...]
_WHOLE = "needs the dimension whole"


@dataclass(frozen=True)
class DimFactor:
    """Dimensions of operands and of results that go together.

    Attributes:
      operands: the dimension of each operand; None of one that is read whole.
      result: the dimension of each result; None when results are partial sums.
    """

    operands: Dims
    result: int | None


def dim_factor(op: ir.Operation, dimension: int, position: int | None = None, shards: int = 0) -> DimFactor | str:
    """The factor of an op that holds a dimension of an operand, or of the result.

    Args:
      op: any op but a loop, a barrier or a collective.
      dimension: the dimension.
      position: the position of the operand whose dimension it is; None when it is the result's.
      shards: number of parts; a reshape may then join or split the dimension if each part stays one block. By default
        it has to keep the dimension as it is.

    Returns:
      The factor; or why there is none, as the end of a sentence about the op.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> text = ("func.func @f(%a: tensor<4x8xf32>) -> tensor<8x4xf32> {"
      ...         "%b = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>"
      ...         "return %b : tensor<8x4xf32> }")
      >>> module = parse(text)
      >>> function, = module.mlir.body.operations
      >>> dim_factor(function.regions[0].blocks[0].operations[0], 1, 0)
      DimFactor(operands=(1,), result=0)
    """
    if not all(is_static_tensor(value.type) for value in (*op.operands, *op.results)) or len(op.results) == 0:
        return "has a value without a static shape"
    if op.name in ELEMENTWISE:
        return _elementwise(op, dimension)
    if op.name == "stablehlo.reshape":
        return _reshape(op, dimension, position, shards)
    rule = _RULES.get(op.name)
    return rule(op, dimension, position) if rule else _WHOLE


def collective_piece(op: ir.Operation, dimension: int) -> int | str:
    """The size of the pieces of a dimension that a collective keeps together.

    They are what a device sends to one member of its group or gets from one, and all that an operand has if the
    collective neither cuts values along the dimension nor joins them. If each piece consists of blocks of one size,
    then the collective of one part of every block of its operand makes that part of every block of its result.

    Args:
      op: a collective.
      dimension: the dimension of its operand, and of its result.

    Returns:
      The size; or why there are no such pieces, as the end of a sentence about the op.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> view = View(parse('func.func @f(%a: tensor<4x8xf32>) -> tensor<8x8xf32> { %b = "stablehlo.all_gather"(%a) '
      ...                   '<{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : '
      ...                   '(tensor<4x8xf32>) -> tensor<8x8xf32> return %b : tensor<8x8xf32> }'))
      >>> gather, = view.ops("stablehlo.all_gather")
      >>> collective_piece(gather, 1), collective_piece(gather, 0)
      (8, 4)
    """
    row = BY_OP[op.name]
    if len(op.operands) != 1 or len(op.results) != 1 or row.to_root or row.deprecated:
        return "takes several operands, or gives its result to one device"
    if not is_static_tensor(op.operands[0].type) or not is_static_tensor(op.results[0].type):
        return "has a value without a static shape"
    before, after = (shape_of(side[0])[dimension] for side in (op.operands, op.results))
    if SPLIT_COUNT in row.dimensions:
        return before // (integer(op, SPLIT_COUNT) if integer(op, "split_dimension") == dimension else 1)
    return min(before, after)


def repeats_whole(op: ir.Operation, dimension: int) -> bool:
    """Whether each part of an op's result is the same function of its whole operands: constants, spread-out values.

    Args:
      op: the op.
      dimension: the dimension of its result, the divided one.
    """
    if op.name == "stablehlo.constant":
        attribute = constant_attribute(op)
        return attribute is not None and attribute.is_splat
    if op.name == "stablehlo.iota":
        return integer(op, "iota_dimension") != dimension
    if op.name != "stablehlo.broadcast_in_dim" or not is_static_tensor(op.results[0].type):
        return False
    places = ints(op, "broadcast_dimensions")
    if dimension not in places:
        return True
    return shape_of(op.operands[0])[places.index(dimension)] == 1 < shape_of(op.results[0])[dimension]


def reshaped(source: Sequence[int], target: Sequence[int], dimension: int, shards: int = 0) -> int | None:
    """The dimension of a reshaped tensor whose parts hold the same elements; None if there is none.

    Args:
      source: the shape the dimension is of.
      target: the other one.
      dimension: the dimension of ``source``.
      shards: as `dim_factor` takes it: by default the dimension keeps its size.

    Example:
      >>> reshaped([8, 16, 4], [8, 64], 0), reshaped([8, 16, 4], [8, 64], 1), reshaped([4, 8], [32], 0, shards=2)
      (0, None, 0)
    """
    before, size = math.prod(source[:dimension]), source[dimension]
    for place, other in enumerate(target):
        same = other == size or (shards > 0 and other > 0 and other % shards == 0 and size % shards == 0)
        if same and math.prod(target[:place]) == before:
            return place
    return None


def attributes_for(op: ir.Operation, dimension: int, size: int) -> dict[str, ir.Attribute]:
    """The attributes of an op for operands of another size along one factor.

    Args:
      op: the op; it has a factor for that dimension. Its types are not read: they may have changed already.
      dimension: the dimension of its result.
      size: the size of the other result along it.
    """
    attributes = {name: op.attributes[name] for name in op.attributes}
    place, replaced = dimension, dict[str, int]()
    if op.name == "stablehlo.slice":
        replaced = dict(zip(SLICED, (0, size, 1), strict=True))
    elif op.name == "stablehlo.dynamic_slice":
        replaced = {"slice_sizes": size}
    elif op.name == "stablehlo.gather" and dimension in gather_numbers(op).offset_dims:
        place, replaced = dict(_gather_window(op))[dimension], {"slice_sizes": size}
    for name, number in replaced.items():
        numbers = ints(op, name)
        numbers[place] = number
        attributes[name] = ir.DenseI64ArrayAttr.get(numbers, op.context)
    return attributes


# ---- elementwise ops and moves


def _elementwise(op: ir.Operation, dimension: int) -> DimFactor:
    shape = shape_of(op.results[0])  # a scalar operand has no dimension to ask for
    return DimFactor(tuple(dimension if shape_of(operand) == shape else None for operand in op.operands), dimension)


def _transpose(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    order = ints(op, "permutation")
    if position is None:
        return DimFactor((order[dimension],), dimension)
    return DimFactor((dimension,), order.index(dimension))


def _broadcast(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    places = ints(op, "broadcast_dimensions")
    result = dimension if position is None else places[dimension]
    if repeats_whole(op, result):
        return "repeats it along the dimension"
    return DimFactor((places.index(result),), result)


def _bitcast(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    if dimension >= min(len(shape_of(op.operands[0])), len(shape_of(op.results[0]))):
        return "splits or joins elements"
    return DimFactor((dimension,), dimension)


def _reshape(op: ir.Operation, dimension: int, position: int | None, shards: int) -> DimFactor | str:
    before, after = shape_of(op.operands[0]), shape_of(op.results[0])
    source, target = (before, after) if position is not None else (after, before)
    other = reshaped(source, target, dimension, shards)
    if other is None:
        return "joins or splits the dimension"
    return DimFactor((dimension,), other) if position is not None else DimFactor((other,), dimension)


def _slice(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    if position or shape_of(op.operands[0])[dimension] != shape_of(op.results[0])[dimension]:
        return "cuts the dimension"
    return DimFactor((dimension,) + (None,) * (len(op.operands) - 1), dimension)


def _update_slice(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    """Along a dimension that the update covers, any start is clamped to 0."""
    if (position or 0) > 1 or shape_of(op.operands[0])[dimension] != shape_of(op.operands[1])[dimension]:
        return "writes a part of the dimension"
    return DimFactor((dimension, dimension) + (None,) * (len(op.operands) - 2), dimension)


def _concatenate(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    if integer(op, "dimension") == dimension:
        return "joins tensors along the dimension"
    return DimFactor((dimension,) * len(op.operands), dimension)


def _reverse(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    if dimension in ints(op, "dimensions"):
        return "reverses the dimension"
    return DimFactor((dimension,), dimension)


def _pad(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    if position or any(ints(op, name)[dimension] for name in PADDING):
        return "pads the dimension"
    return DimFactor((dimension, None), dimension)


def _sort(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    along = integer(op, "dimension")
    return "sorts along the dimension" if along == dimension else DimFactor((dimension,) * len(op.operands), dimension)


# ---- sums, and what indices say


def _reduce(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    count = len(op.results)
    removed = ints(op, "dimensions")
    kept = [place for place in range(len(shape_of(op.operands[0]))) if place not in removed]
    whole: Dims = (None,) * count
    if position is None:
        return DimFactor((kept[dimension],) * count + whole, dimension)
    if position >= count:
        return "reads it as one number"
    if dimension in kept:
        return DimFactor((dimension,) * count + whole, kept.index(dimension))
    if count != 1 or reduction_kind(op) != "sum":
        return "combines elements along the dimension by something other than a sum"
    if not is_identity(op.operands[1], "sum"):
        return "sums along the dimension from a start that is not zero"
    return DimFactor((dimension, None), None)


def _dot(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    dims = dot_dims(op)
    first, second = len(dims.batch), len(dims.batch) + len(dims.free[0])
    factors = [DimFactor(pair, k) for k, pair in enumerate(dims.batch)]
    factors += [DimFactor((place, None), first + k) for k, place in enumerate(dims.free[0])]
    factors += [DimFactor((None, place), second + k) for k, place in enumerate(dims.free[1])]
    factors += [DimFactor(pair, None) for pair in dims.summed]
    return _holding(factors, dimension, position)


def _holding(factors: Iterable[DimFactor], dimension: int, position: int | None) -> DimFactor | str:
    """The factor among several that holds a dimension."""
    return next((each for each in factors if
                 (each.result if position is None else each.operands[position]) == dimension), _WHOLE)


def _gather(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    """The factors of a ``gather``: operand dimensions taken whole, batches, and one result for each index.

    Along a dimension that is taken whole, any start is clamped to 0.
    """
    numbers, sizes, shape = gather_numbers(op), ints(op, "slice_sizes"), shape_of(op.operands[0])
    batch = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    factors = [DimFactor((place, None), result) for result, place in _gather_window(op) if sizes[place] == shape[place]]
    results = [d for d in range(len(shape_of(op.results[0]))) if d not in numbers.offset_dims]
    factors += [DimFactor((batch.get(place), place), result)
                for place, result in zip(_index_dims(op, numbers.index_vector_dim), results, strict=True)]
    return _holding(factors, dimension, position)


def _gather_window(op: ir.Operation) -> list[tuple[int, int]]:
    """(dimension of the result, dimension of the operand) for the dimensions of the slice that each index takes."""
    numbers = gather_numbers(op)
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [d for d in range(len(ints(op, "slice_sizes"))) if d not in left_out]
    return list(zip(numbers.offset_dims, window, strict=True))


def _scatter(op: ir.Operation, dimension: int, position: int | None) -> DimFactor | str:
    """The factors of a ``scatter``: dimensions that updates cover and no index moves, batches, and sums of updates into
    zeros.
    """
    numbers, count = scatter_numbers(op), len(op.results)
    shape, updates = shape_of(op.operands[0]), shape_of(op.operands[count + 1])
    batch = dict(zip(numbers.scatter_indices_batching_dims, numbers.input_batching_dims, strict=True))
    window = [d for d in range(len(shape)) if d not in (*numbers.inserted_window_dims, *numbers.input_batching_dims)]
    factors = [DimFactor((place,) * count + (None,) + (update,) * count, place)
               for place, update in zip(window, numbers.update_window_dims, strict=True)
               if shape[place] == updates[update] and place not in numbers.scattered_dims_to_operand_dims]
    sums = count == 1 and reduction_kind(op) == "sum" and is_identity(op.operands[0], "sum")
    indexed = zip(_index_dims(op, numbers.index_vector_dim),
                  (d for d in range(len(updates)) if d not in numbers.update_window_dims), strict=True)
    for place, update in indexed:
        if place in batch or sums:
            factors.append(DimFactor((batch.get(place),) * count + (place,) + (update,) * count, batch.get(place)))
    return _holding(factors, dimension, position)


def _index_dims(op: ir.Operation, vector: int) -> list[int]:
    """The dimensions of the indices of a ``gather`` or ``scatter`` along which there is one index after the other."""
    return [d for d in range(len(shape_of(op.operands[len(op.results)]))) if d != vector]


_RULES: dict[str, Callable[[ir.Operation, int, int | None], DimFactor | str]] = {
    "stablehlo.transpose": _transpose, "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.bitcast_convert": _bitcast, "stablehlo.reduce": _reduce, "stablehlo.dot_general": _dot,
    "stablehlo.dynamic_update_slice": _update_slice, "stablehlo.concatenate": _concatenate,
    "stablehlo.reverse": _reverse, "stablehlo.pad": _pad, "stablehlo.sort": _sort, "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter, **dict.fromkeys(SLICES, _slice)}
