"""Unit roundoff, underflow and gamma of floating-point types, and what is assumed of the arithmetic."""

from dataclasses import dataclass, replace
from functools import cache

import ml_dtypes
import numpy as np

_WIDE = 2.0**64


@dataclass(frozen=True)
class FloatFormat:
    """The error of rounding to a floating-point type.

    Attributes:
      unit: the unit roundoff u: a result is off by at most u times its magnitude, to nearest.
      underflow: half the smallest subnormal number: what a result below the normal range is off by at most.
      normal: the smallest normal number, which is the error if smaller results are flushed to zero.
      largest: the largest finite number.
    """

    unit: float
    underflow: float
    normal: float
    largest: float

    def gamma(self, count: int) -> float:
        """Higham's gamma_n = n u / (1 - n u): the relative error of n roundings in a row.

        Args:
          count: n.

        Returns:
          The factor; infinite if n u reaches 1, because no bound holds then.

        Example:
          >>> float_format(np.dtype("float32")).gamma(8) == 8 * 2.0**-24 / (1 - 8 * 2.0**-24)
          True
          >>> float_format(np.dtype(ml_dtypes.float8_e5m2)).gamma(8)
          inf
        """
        product = count * self.unit
        return product / (1 - product) if product < 1 else float("inf")


def is_narrow(form: FloatFormat) -> bool:
    """Whether the values of a training step come near the limits of a format, as with float16 and 8 bits or fewer.

    Example:
      >>> [is_narrow(float_format(np.dtype(name))) for name in ("float16", "float32")]
      [True, False]
    """
    return form.largest < _WIDE


@cache
def float_format(dtype: np.dtype) -> FloatFormat | None:
    """The format of a type's elements; for complex types, the format of their parts.

    Args:
      dtype: a type of numpy or ``ml_dtypes``.

    Returns:
      The format; None for integers and truth values, which are exact.

    Example:
      >>> float_format(np.dtype("float32")).unit == 2.0**-24
      True
      >>> float_format(np.dtype(ml_dtypes.bfloat16)).unit, float_format(np.dtype("int32"))
      (0.00390625, None)
    """
    if dtype.kind in "iub" or "int" in dtype.name:
        return None
    info = ml_dtypes.finfo({"complex64": np.float32, "complex128": np.float64}.get(dtype.name, dtype))
    if "e8m0" in dtype.name:  # powers of two: the nearest one may be a third away
        return FloatFormat(0.5, 0.0, float(info.tiny), float(info.max))
    return FloatFormat(float(info.eps) / 2, float(info.smallest_subnormal) / 2, float(info.tiny), float(info.max))


def carry(array: np.ndarray) -> np.ndarray:
    """An array in the type its errors are calculated in: float64, complex128, or the integers themselves."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array if float_format(array.dtype) is None else array.astype(np.float64)


# ---- what is assumed of the arithmetic that executes a program


@dataclass(frozen=True)
class RoundingArithmetic:
    """How exactly single ops are computed.

    Attributes:
      basic: units of the last place that ``+ - * /`` and square root are off by, in unit roundoffs.
      function: the same for exponential, tanh and other functions.
      flushes: results below the normal range become zero.
      repeats: equal ops on equal operands give equal bits wherever they are in a program.
      products: unit roundoff of what operands of float32 matrix products are first rounded to; 0 if they are not.
      underflows: results below the normal range may lose digits; where none may, a lost one is a difference.
    """

    basic: float
    function: float
    flushes: bool
    repeats: bool
    products: float = 0.0
    underflows: bool = True

    def floor(self, form: FloatFormat) -> float:
        """The possible error of a result near zero."""
        if not self.underflows:
            return 0.0
        return form.normal if self.flushes else form.underflow


INTERPRETER = RoundingArithmetic(1.0, 2.0, False, True)
"""The StableHLO interpreter: each op is rounded once; functions are computed in double precision first, and those of
double precision itself by the C library, which is within one unit in the last place."""
IN_RANGE = replace(INTERPRETER, underflows=False)
"""The same on inputs for which the original loses nothing to underflow: then the rewritten program must not either."""
COMPILED = RoundingArithmetic(2.0, 16.0, True, False)
"""XLA: another fusion may contract a product and a sum, keep a wider type, or divide by multiplying with a reciprocal;
its own approximations of functions are within a few units in the last place."""
TENSOR_CORES = replace(COMPILED, products=2.0**-11)
"""XLA on GPUs, where float32 matrix products of default precision may take TF32 operands."""
