"""Bytes and FLOP of an op, from its kind and its sizes: one function for StableHLO and for HLO.

Kinds are HLO's opcodes; :func:`kind_of_op` returns the opcode of a StableHLO op.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

SLICES = frozenset(("slice", "dynamic-slice", "gather"))
REDUCES = frozenset(("reduce", "reduce-window"))
UPDATE, SCATTER = "dynamic-update-slice", "scatter"
IN_PLACE = frozenset((UPDATE, SCATTER))
"""Ops that write into their first operand."""
PRODUCTS = frozenset(("dot", "convolution"))
WHOLE = frozenset((*PRODUCTS, "custom-call", "fusion", "sort", "call", "fft", "cholesky", "triangular-solve", "rng",
                   "rng-bit-generator", "select-and-scatter"))
"""Ops that read all of their operands, and that no other kernel recomputes."""
_OTHERS = SLICES | IN_PLACE | WHOLE | REDUCES | {"concatenate"}
SAME_BYTES = frozenset(("bitcast", "reshape"))
_HLO_NAMES = {"dot-general": "dot", "broadcast-in-dim": "broadcast"}


class OpSizes(NamedTuple):
    """The sizes that determine the bytes of an op.

    Attributes:
      kind: the opcode.
      made: elements of its result.
      update: elements that it writes into its first operand; 0 for other ops.
    """

    kind: str
    made: int
    update: int = 0


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product, or a convolution seen as one.

    Attributes:
      dtype: the type whose peak it runs at.
      flops: twice the multiplications.
    """

    dtype: str
    flops: float


class WrittenElements(NamedTuple):
    """The elements that a kernel writes.

    Attributes:
      elements: the elements of its largest result; for updates in place, of the update.
      scattered_16_bit: two-byte elements that a scatter adds to others.
    """

    elements: float = 0.0
    scattered_16_bit: float = 0.0


NOTHING_WRITTEN = WrittenElements()


def scattered(elements: float, size: float) -> WrittenElements:
    """The elements that a scatter writes.

    Args:
      elements: the elements of the updates.
      size: bytes of the updates.
    """
    return WrittenElements(elements, elements if size == 2 * elements else 0.0)


@functools.cache
def kind_of_op(name: str) -> str:
    """The HLO opcode of a StableHLO op, by its name.

    Example:
      >>> kind_of_op("stablehlo.dynamic_update_slice"), kind_of_op("stablehlo.dot_general")
      ('dynamic-update-slice', 'dot')
    """
    kind = name.removeprefix("stablehlo.").replace("_", "-")
    return _HLO_NAMES.get(kind, kind)


def update_place(kind: str, operands: int) -> int:
    """The index of the first operand that an in-place op writes into another: a scatter has its buffers, then indices.

    Args:
      kind: ``UPDATE`` or ``SCATTER``.
      operands: the number of its operands.

    Example:
      >>> update_place(UPDATE, 4), update_place(SCATTER, 3), update_place(SCATTER, 5)
      (1, 2, 3)
    """
    return 1 if kind == UPDATE else (operands + 1) // 2


def needed_elements(reader: OpSizes, place: int, count: float, size: int, *, in_place: bool) -> float:
    """The number of an operand's elements that some elements of an op's result depend on.

    As ``GpuHloCostAnalysis`` in openxla/xla, ``xla/service/gpu/model/gpu_hlo_cost_analysis.cc``: the elements of a
    slice, the rows of a gather, nothing of a buffer that is updated in place.

    Args:
      reader: the op.
      place: which operand.
      count: elements of the result that are needed.
      size: elements of the operand.
      in_place: whether an update is written into its operand.

    Example:
      >>> needed_elements(OpSizes("dynamic-slice", 128), 0, 128, 1024, in_place=False)
      128
      >>> needed_elements(OpSizes("reduce", 8), 0, 8, 1024, in_place=False)
      1024.0
    """
    kind = reader.kind
    if element_by_element(kind):
        return min(size, count)
    if kind in SLICES and place == 0:
        return count
    if kind in IN_PLACE:
        if place > 0:
            return size
        if kind == SCATTER:
            return reader.update if in_place else count
        return 0 if in_place else max(0.0, count - reader.update)
    if kind in WHOLE or kind in SLICES:
        return size
    return size * min(1.0, count / max(reader.made, 1))  # a reduction, or a concatenation


def element_by_element(kind: str) -> bool:
    """Whether each element of an op's result depends on at most one element of each operand."""
    return kind not in _OTHERS


def product_of(dtype: str, made: int, contracted: int, *, precise: bool = False,
               algorithm: tuple[str, int] | None = None) -> Product:
    """The product of a dot: 2 times the result's elements times the contracted size.

    XLA:GPU multiplies f32 in TF32 unless the precision is high or highest, or an algorithm is named (openxla/xla, docs
    of ``PrecisionConfig``; JAX, ``jax.default_matmul_precision``).

    Args:
      dtype: the element type of the operands.
      made: elements of the result.
      contracted: elements that each result element sums over.
      precise: whether the precision of an operand is high or highest.
      algorithm: the type that a named algorithm multiplies in, and how many such products replace one.

    Example:
      >>> product_of("f32", 64, 16), product_of("f32", 64, 16, algorithm=("bf16", 3))
      (Product(dtype='tf32', flops=2048.0), Product(dtype='bf16', flops=6144.0))
    """
    flops = 2.0 * made * contracted
    if algorithm is not None:
        return Product(algorithm[0], flops * algorithm[1])
    return Product("tf32" if dtype == "f32" and not precise else dtype, flops)


def convolution_of(dtype: str, made: int, kernel: int, features: int, *, precise: bool = False) -> Product:
    """A convolution as a product: each element of its result sums over the filter of one output feature.

    Args:
      dtype: the element type of the operands.
      made: elements of the result of the forward convolution.
      kernel: elements of the filter.
      features: output features of the filter.
      precise: whether the precision of an operand is high or highest.
    """
    return Product("tf32" if dtype == "f32" and not precise else dtype, 2.0 * made * kernel / max(features, 1))
