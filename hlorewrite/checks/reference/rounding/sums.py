"""Sums: matrix products, reductions and sums over windows in one common form, with their terms along the last axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.checks.reference.rounding import fingerprint
from hlorewrite.checks.reference.rounding.eval_op import eval_op
from hlorewrite.checks.reference.rounding.trace import MOST_ELEMENTS, NoBound
from hlorewrite.ir.binding import ir
from hlorewrite.ops.attributes import convolution_numbers, dot_dims, ints, shape_of
from hlorewrite.ops.elementwise import applied, converted

REDUCED_BY = frozenset({"add", "multiply", "maximum", "minimum", "and", "or"})


@dataclass(frozen=True)
class ProductForm:
    """The form of a ``dot_general``: batches of (m, k) times (n, k).

    Attributes:
      left: order of the axes of the left operand: batch, free, contracted.
      right: the same for the right one.
      batch: how many pairs of matrices.
      free: m and n.
      terms: k, the length of each sum.
      shape: the shape of the result.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    batch: int
    free: tuple[int, int]
    terms: int
    shape: tuple[int, ...]

    def sides(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both operands as (batch, free, terms)."""
        return (a.transpose(self.left).reshape(self.batch, self.free[0], self.terms),
                b.transpose(self.right).reshape(self.batch, self.free[1], self.terms))

    def apply(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The product, in whatever order numpy adds."""
        x, y = self.sides(a, b)
        with np.errstate(all="ignore"):
            return np.matmul(x, y.swapaxes(1, 2)).reshape(self.shape)

    def in_order(self, a: np.ndarray, b: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """The product as the interpreter computes it: operands in the type of the result, terms one after the other."""
        x, y = (converted(side, dtype) for side in self.sides(a, b))
        total = np.zeros((self.batch, *self.free), dtype)
        with np.errstate(all="ignore"):
            for k in range(self.terms):
                total = total + x[:, :, None, k] * y[:, None, :, k]
        return total.astype(dtype).reshape(self.shape)

    def prints(self, a: np.ndarray, b: np.ndarray, seed: np.uint64) -> np.ndarray:
        """Fingerprints of the sums of products."""
        x, y = self.sides(a, b)
        with np.errstate(over="ignore"):
            x = (fingerprint.mixed(x + seed) | np.uint64(1)) * fingerprint.powers(self.terms)
            y = fingerprint.mixed(y ^ seed) | np.uint64(1)
            total = np.zeros((self.batch, *self.free), np.uint64)
            for k in range(self.terms):
                total = total + fingerprint.mixed(x[:, :, None, k] + (y[:, None, :, k] << np.uint64(1)))
            return fingerprint.mixed(total + seed).reshape(self.shape)


def product_of(op: ir.Operation) -> ProductForm:
    """The form of a ``dot_general``."""
    dims = dot_dims(op)
    shapes = [shape_of(value) for value in op.operands]
    batch, summed = ([[pair[side] for pair in pairs] for side in (0, 1)] for pairs in (dims.batch, dims.summed))
    free = [list(axes) for axes in dims.free]
    count = [int(np.prod([shapes[side][axis] for axis in axes], dtype=np.int64))
             for side, axes in ((0, batch[0]), (0, free[0]), (1, free[1]), (0, summed[0]))]
    left, right = (tuple(batch[side] + free[side] + summed[side]) for side in (0, 1))
    return ProductForm(left, right, count[0], (count[1], count[2]), count[3], shape_of(op.results[0]))


@dataclass(frozen=True)
class ReductionForm:
    """The form of a ``reduce`` of one operand by one op.

    Attributes:
      by: the op: ``add``, ``maximum`` and so on.
      order: the order of the axes of the operand: kept, reduced.
      kept: how many results.
      terms: number of elements of each sum, without the initial one.
      shape: the shape of the result.
    """

    by: str
    order: tuple[int, ...]
    kept: int
    terms: int
    shape: tuple[int, ...]

    def rows(self, x: np.ndarray) -> np.ndarray:
        """The operand as (kept, terms)."""
        return x.transpose(self.order).reshape(self.kept, self.terms)

    def in_order(self, x: np.ndarray, start: np.ndarray) -> np.ndarray:
        """The result as the interpreter computes it: one element after the other."""
        rows, total = converted(self.rows(x), start.dtype), np.full(self.kept, start.reshape(()), start.dtype)
        for k in range(self.terms):
            total = applied(self.by, total, rows[:, k])
        return total.astype(start.dtype).reshape(self.shape)

    def prints(self, x: np.ndarray, start: np.ndarray, seed: np.uint64) -> np.ndarray:
        """Fingerprints of the results."""
        return fingerprint.of_sum(seed, self.rows(x), start.reshape(())).reshape(self.shape)


def reduction_of(op: ir.Operation) -> ReductionForm | None:
    """The form of a ``reduce``; None when it reduces several operands, or by more than one op."""
    by = body_op(op)
    if by is None or len(op.operands) != 2:
        return None
    shape = shape_of(op.operands[0])
    reduced = ints(op, "dimensions")
    kept = [axis for axis in range(len(shape)) if axis not in reduced]
    terms = int(np.prod([shape[axis] for axis in reduced], dtype=np.int64))
    count = int(np.prod([shape[axis] for axis in kept], dtype=np.int64))
    return ReductionForm(by, (*kept, *sorted(reduced)), count, terms, shape_of(op.results[0]))


def body_op(op: ir.Operation) -> str | None:
    """The one op, of two arguments, that the region of an op applies."""
    ops = [each.operation for each in op.regions[0].blocks[0].operations]
    if len(ops) != 2 or len(ops[0].operands) != 2:
        return None
    arguments = list(op.regions[0].blocks[0].arguments)
    name = ops[0].name.removeprefix("stablehlo.")
    same = set(ops[0].operands) == set(arguments) and list(ops[1].operands) == list(ops[0].results)
    return name if same and name in REDUCED_BY else None


# ---- sums over windows, as moves of elements and sums of known form: ``reduce_window`` and ``convolution``

# A window sum is a reduction of a tensor that holds the elements of each window side by side, and a convolution a
# product of matrices of such a tensor and the kernel (Chellapilla, Puri and Simard 2006).


Places = np.ndarray
"""int64: for each element, its place among the elements of all operands."""
INTERPRETED = {"gather": (0,)}
"""Moves that the interpreter resolves, and which of their operands hold elements; the others hold indices."""


def places(shapes: Sequence[tuple[int, ...]]) -> list[Places]:
    """The places of the elements of some operands, numbered consecutively."""
    made, start = [], 0
    for shape in shapes:
        count = int(np.prod(shape, dtype=np.int64))
        made.append(np.arange(start, start + count, dtype=np.int64).reshape(shape))
        start += count
    return made


def interpreted(op: ir.Operation, elements: Sequence[Places], indices: Sequence[tuple[np.ndarray, ir.Type]]) -> Places:
    """The index map of an op, found by running it on places in the interpreter.

    Args:
      op: the op, without regions; its first operands hold elements, the others indices.
      elements: places of the elements.
      indices: the other operands, with their types.

    Returns:
      The place of each element of the result.
    """
    whole = ir.IntegerType.get_signless(64)
    given = [(each, ir.RankedTensorType.get(each.shape, whole)) for each in elements] + list(indices)
    result = ir.RankedTensorType.get(shape_of(op.results[0]), whole)
    [made] = eval_op(op, given, [result])
    return made


@dataclass(frozen=True)
class WindowAxis:
    """The windows along one axis, in elements.

    Attributes:
      size: the size of a window.
      stride: the distance from one window to the next.
      low: padding before the first element.
      high: padding after the last one.
      base: the distance from one element to the next in the padded axis.
      dilation: the distance from one element of a window to the next.
      reversed: a window's elements are taken from its end.
    """

    size: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1
    reversed: bool = False

    def sources(self, length: int) -> np.ndarray:
        """For each element of each window, its index on an axis; the length of the axis for padding.

        Example:
          >>> WindowAxis(2, low=1).sources(3)
          array([[3, 0],
                 [0, 1],
                 [1, 2]])
        """
        spread = (length - 1) * self.base + 1 if length else 0
        room = spread + self.low + self.high - (self.size - 1) * self.dilation - 1
        starts = np.arange(max(room // self.stride + 1, 0)) * self.stride - self.low
        inside = np.arange(self.size)[::-1 if self.reversed else 1] * self.dilation
        found = starts[:, None] + inside[None, :]
        held = (found >= 0) & (found < spread) & (found % self.base == 0)
        return np.where(held, found // self.base, length)


def in_windows(x: Places, axes: Sequence[WindowAxis], padding: int) -> Places:
    """The last axes of ``x`` by window and by element of a window.

    Args:
      x: places; axes before the last ``len(axes)`` stay.
      axes: the windows along the last axes.
      padding: the position of padding.

    Returns:
      Places with the axes: those that stay, windows along each axis, elements along each axis.

    Raises:
      NoBound: the windows contain too many elements.

    Example:
      >>> in_windows(np.arange(3), [WindowAxis(2, low=1)], padding=-1)
      array([[-1,  0],
             [ 0,  1],
             [ 1,  2]])
    """
    kept = x.ndim - len(axes)
    tables = [axis.sources(length) for axis, length in zip(axes, x.shape[kept:], strict=True)]
    if math.prod(x.shape[:kept]) * math.prod(table.size for table in tables) > MOST_ELEMENTS:
        raise NoBound(f"the windows of one op contain more than {MOST_ELEMENTS} elements")
    x = np.pad(x, [(0, 0)] * kept + [(0, 1)] * len(axes), constant_values=padding)
    for axis, table in reversed(list(enumerate(tables, kept))):
        x = np.take(x, table, axis=axis)
    order = [*range(kept), *range(kept, x.ndim, 2), *range(kept + 1, x.ndim, 2)]
    return x.transpose(order)


def window_sums_of(op: ir.Operation) -> tuple[Places, ReductionForm] | None:
    """A ``reduce_window`` as the places of each window's elements and their reduction.

    Args:
      op: the op.

    Returns:
      Places among the elements of the operand and, after them, of the initial value; windows along the first axes, the
      elements of a window along the last one. None when it reduces several operands, or by more than one op.
    """
    by = body_op(op)
    if by is None or len(op.operands) != 2 or _element(op.operands[0]) != _element(op.operands[1]):
        return None
    shape = shape_of(op.operands[0])
    sizes = ints(op, "window_dimensions")
    axes = _axes(op, sizes, "base_dilations", "window_dilations")
    [x] = places([shape])
    found = in_windows(x, axes, x.size)
    result, terms = shape_of(op.results[0]), math.prod(sizes)
    found = found.reshape(*result, terms)
    return found, ReductionForm(by, tuple(range(len(result) + 1)), math.prod(result), terms, result)


@dataclass(frozen=True)
class ConvolutionForm:
    """A ``convolution`` as a product of matrices.

    Attributes:
      left: places among the elements of the input and, after them, of one zero: (group, window, term).
      right: places among the elements of the kernel: (group, feature, term).
      product: the product of both: (group, window, feature).
      result: the place in the product of each element of the result.
    """

    left: Places
    right: Places
    product: ProductForm
    result: Places


def convolution_of(op: ir.Operation) -> ConvolutionForm:
    """The form of a ``convolution``; terms in the order of the interpreter: along the kernel's axes, then by feature.

    Raises:
      NoBound: the windows contain too many elements.
    """
    numbers = convolution_numbers(op)
    by_feature, by_batch = (ir.IntegerAttr(op.attributes[f"{name}_group_count"]).value for name in ("feature", "batch"))
    [x], [kernel] = (places([shape_of(value)]) for value in op.operands)
    padding = x.size
    x = x.transpose([numbers.input_batch_dimension, numbers.input_feature_dimension, *numbers.input_spatial_dimensions])
    kernel = kernel.transpose([numbers.kernel_output_feature_dimension, *numbers.kernel_spatial_dimensions,
                               numbers.kernel_input_feature_dimension])
    sizes, groups = kernel.shape[1:-1], by_feature * by_batch
    x = in_windows(x, _axes(op, sizes, "lhs_dilation", "rhs_dilation"), padding)
    rank = len(sizes)
    windows, batch, features = x.shape[2:2 + rank], x.shape[0] // by_batch, x.shape[1] // by_feature
    x = x.reshape(by_batch, batch, by_feature, features, *x.shape[2:])
    order = [0, 2, 1, *range(4, 4 + 2 * rank), 3]
    count, terms = batch * math.prod(windows), math.prod(sizes) * features
    left = x.transpose(order).reshape(groups, count, terms)
    right = kernel.reshape(groups, -1, terms)
    made = right.shape[1]
    product = ProductForm((0, 1, 2), (0, 1, 2), groups, (count, made), terms, (groups, count, made))
    whole = np.arange(groups * count * made).reshape(groups, batch, *windows, made)
    whole = np.moveaxis(whole, 0, -2).reshape(batch, *windows, groups * made)
    target = [numbers.output_batch_dimension, *numbers.output_spatial_dimensions, numbers.output_feature_dimension]
    return ConvolutionForm(left, right, product, whole.transpose(np.argsort(target)))


def window_terms(op: ir.Operation) -> int:
    """How many terms each sum of a ``reduce_window`` or ``convolution`` has."""
    if op.name == "stablehlo.reduce_window":
        return math.prod(ints(op, "window_dimensions"))
    kernel = shape_of(op.operands[1])
    outputs = convolution_numbers(op).kernel_output_feature_dimension
    return math.prod(size for axis, size in enumerate(kernel) if axis != outputs)


def _axes(op: ir.Operation, sizes: Sequence[int], base: str, dilation: str) -> list[WindowAxis]:
    count = len(sizes)
    strides, bases, dilations = (ints(op, name) if name in op.attributes
                                 else [1] * count for name in ("window_strides", base, dilation))
    reversals = [False] * count
    if "window_reversal" in op.attributes:
        reversals = list(ir.DenseBoolArrayAttr(op.attributes["window_reversal"]))
    padded = np.zeros((count, 2), np.int64)
    if "padding" in op.attributes:
        padded = np.array(ir.DenseIntElementsAttr(op.attributes["padding"])).reshape(count, 2)
    return [WindowAxis(size, stride, int(low), high=int(high), base=each, dilation=spread, reversed=bool(turned))
            for size, stride, (low, high), each, spread, turned
            in zip(sizes, strides, padded, bases, dilations, reversals, strict=True)]


def _element(value: ir.Value) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type
