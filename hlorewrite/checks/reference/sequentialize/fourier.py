"""Fourier transforms, which the interpreter lacks, written as matrix products over real and imaginary parts.

Along one dimension of n elements ``X[k] = sum_j x[j] exp(-2 pi i j k / n)``; the inverse has the other sign and 1/n. A
transform of real values keeps the first n // 2 + 1 elements, and its inverse counts each of them twice that has a
mirror image (StableHLO specification, ``fft``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hlorewrite.checks.reference.interpreter import to_attribute
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.binding import ir
from hlorewrite.ops.attributes import ints

if TYPE_CHECKING:
    from hlorewrite.checks.reference.sequentialize.writer import LockstepWriter

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
