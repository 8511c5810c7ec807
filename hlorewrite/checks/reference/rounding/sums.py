"""Sums: matrix products and reductions in one common form, with their terms along the last axis."""

from dataclasses import dataclass

import numpy as np

from hlorewrite.checks.reference.rounding import fingerprint
from hlorewrite.ir.binding import ir
from hlorewrite.ops.attributes import dot_dims, ints, shape_of
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
