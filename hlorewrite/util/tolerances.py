"""How much the floating-point results of two equal programs may differ: one table for everything that compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# Relative to the largest magnitude of a tensor. A rewrite may change the order of a sum. Rounding errors of a sum grow
# with the square root of the number of its terms, and propagate through the ops after it. The rounding unit is 1.1e-16,
# 6.0e-8, 4.9e-4 and 3.9e-3 for float64, float32, float16 and bfloat16. XLA may add the 16-bit types in float32 and
# round once, or round after each op. The bounds are 9e4, 170, 20 and 10 times the unit. A wrong value (a term left out,
# added twice, or of another device) differs by about one over the number of terms or devices. Of the two bounds for a
# type that were in use before, each is the larger: no correct rewrite is known to exceed it.
_RELATIVE = {"float64": 1e-11, "complex128": 1e-11, "float32": 1e-5, "complex64": 1e-5, "float16": 1e-2,
             "bfloat16": 4e-2}
_NARROW_FLOAT = 0.25
"""The tolerance of floats of 8 bits or fewer: with two bits of mantissa one rounding is up to an eighth."""

FACT_TOLERANCE = 1e-2
"""The tolerance between both sides of a linearity fact, for every type: four devices add small numbers, and a fact may
take the sum in a wider type than bfloat16."""


def relative_tolerance(dtype: np.dtype) -> float:
    """The relative error that another order of summation may cost in a type.

    Args:
      dtype: the dtype of the elements; also a type of ``ml_dtypes``.

    Returns:
      The error relative to the largest magnitude of the tensor; 0 for integers and booleans, which must be equal.

    Example:
      >>> import numpy as np
      >>> relative_tolerance(np.dtype("float32")), relative_tolerance(np.dtype("int32"))
      (1e-05, 0.0)
    """
    if dtype.name in _RELATIVE:
        return _RELATIVE[dtype.name]
    return 0.0 if dtype.kind in "iub" or "int" in dtype.name else _NARROW_FLOAT


def replica_tolerance(bits: int) -> float:
    """The largest relative error that counts as rounding between two copies of one element that devices computed
    separately.

    It is relative to the element, not to the largest magnitude of the tensor as ``relative_tolerance``, because it is
    compared while the program runs. So it is wider: cancellation makes the error of a small element relatively large.

    Args:
      bits: the bits of the floating-point type.

    Returns:
      The allowed error relative to the larger magnitude of the two.

    Example:
      >>> replica_tolerance(64), replica_tolerance(16)
      (1e-05, 0.0625)
    """
    return 1e-5 if bits >= 32 else 6.25e-2
