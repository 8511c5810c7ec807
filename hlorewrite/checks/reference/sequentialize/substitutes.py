"""Ops that the interpreter lacks, or computes otherwise than XLA, written with ops that both compute alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hlorewrite.checks.reference.interpreter import to_attribute
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import ir, nested_ops
from hlorewrite.ops.attributes import ints, scatter_numbers

if TYPE_CHECKING:
    from hlorewrite.checks.reference.sequentialize.writer import LockstepWriter


# ---- Fourier transforms, which the interpreter lacks, written as matrix products over real and imaginary parts

# Along one dimension of n elements ``X[k] = sum_j x[j] exp(-2 pi i j k / n)``; the inverse has the other sign and 1/n.
# A transform of real values keeps the first n // 2 + 1 elements, and its inverse counts each of them twice that has a
# mirror image (StableHLO specification, ``fft``).


_MOST_ELEMENTS = 1024


@dataclass(frozen=True)
class _Parts:
    """Real and imaginary part of a value."""

    real: ir.Value
    imaginary: ir.Value | None


def fft(lockstep: LockstepWriter, op: ir.Operation, value: ir.Value) -> ir.Value:
    """A Fourier transform over the last dimensions.

    Args:
      lockstep: writes the ops.
      op: the ``stablehlo.fft``.
      value: its operand.

    Returns:
      Its result.

    Raises:
      CannotExecute: a dimension is so long that the matrix would be too large.
    """
    kind = str(op.attributes["fft_type"]).split()[-1].rstrip(">")
    lengths = ints(op, "fft_length")
    if max(lengths) > _MOST_ELEMENTS:
        raise CannotExecute(f"a Fourier transform over {max(lengths)} elements is too long to be written as a product",
                            location=lockstep.view.source(op), hint="use smaller shapes, or --check=none")
    rank, count = len(ir.RankedTensorType(value.type).shape), len(lengths)
    last, others = rank - 1, range(rank - count, rank - 1)
    parts = _parts(lockstep, value)
    if kind == "RFFT":
        parts = _along(lockstep, parts, last, _kernel(lengths[-1], -1)[:, :lengths[-1] // 2 + 1])
    for dim, length in zip(others, lengths[:-1], strict=True):
        parts = _along(lockstep, parts, dim, _kernel(length, -1 if kind in ("FFT", "RFFT") else 1))
    if kind in ("FFT", "IFFT"):
        parts = _along(lockstep, parts, last, _kernel(lengths[-1], -1 if kind == "FFT" else 1))
    if kind == "IRFFT":
        return _along(lockstep, parts, last, _mirrored(lengths[-1])).real
    assert parts.imaginary is not None
    return lockstep.value("stablehlo.complex", [parts.real, parts.imaginary], op.results[0].type)


def _kernel(length: int, sign: int) -> np.ndarray:
    """The matrix of a transform; scaled where it is an inverse."""
    index = np.arange(length)
    kernel = np.exp(sign * 2j * np.pi * np.outer(index, index) / length)
    return kernel / length if sign > 0 else kernel


def _mirrored(length: int) -> np.ndarray:
    """The inverse of a transform of real values: from its first half to all elements."""
    half = np.arange(length // 2 + 1)
    weights = np.where((half == 0) | (2 * half == length), 1, 2)
    return _kernel(length, 1)[:len(half)] * weights[:, None]


def _parts(lockstep: LockstepWriter, value: ir.Value) -> _Parts:
    tensor = ir.RankedTensorType(value.type)
    if not isinstance(tensor.element_type, ir.ComplexType):
        return _Parts(value, None)
    type_ = ir.RankedTensorType.get(tensor.shape, tensor.element_type.element_type)
    return _Parts(lockstep.value("stablehlo.real", [value], type_), lockstep.value("stablehlo.imag", [value], type_))


def _along(lockstep: LockstepWriter, parts: _Parts, dim: int, kernel: np.ndarray) -> _Parts:
    """``(a + bi)(c + di) = (ac - bd) + (ad + bc)i`` along one dimension."""
    def times(value: ir.Value, matrix: np.ndarray) -> ir.Value:
        return _product(lockstep, value, dim, matrix)

    def op(name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        return lockstep.value(f"stablehlo.{name}", [a, b], a.type)

    c, d = np.real(kernel), np.imag(kernel)
    real, imaginary = times(parts.real, c), times(parts.real, d)
    if parts.imaginary is None:
        return _Parts(real, imaginary)
    return _Parts(op("subtract", real, times(parts.imaginary, d)),
                  op("add", imaginary, times(parts.imaginary, c)))


def _product(lockstep: LockstepWriter, value: ir.Value, dim: int, matrix: np.ndarray) -> ir.Value:
    """A product with a matrix along one dimension, which stays in its place."""
    tensor = ir.RankedTensorType(value.type)
    element, shape, rank = tensor.element_type, list(tensor.shape), len(tensor.shape)
    square = ir.RankedTensorType.get(list(matrix.shape), element)
    dtype = np.float64 if str(element) == "f64" else np.float32
    factor = lockstep.value("stablehlo.constant", [], square, value=to_attribute(matrix.astype(dtype), square))
    rest = [d for d in range(rank) if d != dim]
    made = lockstep.value(
        "stablehlo.dot_general", [value, factor],
        ir.RankedTensorType.get([*(shape[d] for d in rest), matrix.shape[1]], element),
        dot_dimension_numbers=f"#stablehlo.dot<lhs_contracting_dimensions = [{dim}], rhs_contracting_dimensions = [0]>")
    order = [*range(dim), rank - 1, *range(dim, rank - 1)]
    shape[dim] = matrix.shape[1]
    return lockstep.value("stablehlo.transpose", [made], ir.RankedTensorType.get(shape, element),
                          permutation=ir.DenseI64ArrayAttr.get(order))


# ---- scatters as XLA carries them out: an update whose window does not fit into the operand is left out as a whole

# The interpreter leaves out single elements, so a window that lies partly outside still writes the others.


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
