"""Evaluates elementwise ops as the StableHLO interpreter does.

Bounds of rounding replay floats with it. Index expressions are whole numbers, and `of_integers` evaluates them where
every implementation has to agree; no float is computed there.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlorewrite.ops.elements import spread

Array = np.ndarray[Any, Any]


def _in_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Functions are computed in double precision and rounded once (``mapWithUpcastToDouble`` of ``Element.cpp``)."""
    return lambda x: function(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)).astype(x.dtype)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return a / b
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    return (a - np.fmod(a, safe)) // safe


def _logistic(x: Array) -> Array:
    one = np.ones((), x.dtype)
    return (one / (one + _in_double(np.exp)(-x))).astype(x.dtype)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        return np.power(a, np.maximum(b, 0))
    return np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def _clamp(low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _round_away(x: Array) -> Array:
    return np.trunc(x + np.copysign(0.5, x))


BINARY: dict[str, Callable[..., Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": _divide, "maximum": np.maximum,
    "minimum": np.minimum, "power": _power, "remainder": np.fmod, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "atan2": lambda a, b: np.arctan2(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype),
    "complex": lambda a, b: (a + 1j * b).astype(np.complex128 if a.dtype == np.float64 else np.complex64),
}
UNARY: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "negate": np.negative, "not": np.invert, "sign": np.sign, "sqrt": _in_double(np.sqrt),
    "rsqrt": _in_double(lambda x: 1 / np.sqrt(x)), "exponential": _in_double(np.exp),
    "exponential_minus_one": _in_double(np.expm1), "log": _in_double(np.log), "log_plus_one": _in_double(np.log1p),
    "logistic": _logistic, "tanh": _in_double(np.tanh), "sine": _in_double(np.sin), "cosine": _in_double(np.cos),
    "cbrt": _in_double(np.cbrt), "floor": _in_double(np.floor), "ceil": _in_double(np.ceil),
    "round_nearest_even": _in_double(np.rint), "round_nearest_afz": _in_double(_round_away),
    "is_finite": np.isfinite, "real": np.real, "imag": np.imag,
}
FUNCTIONS = {**BINARY, **UNARY, "clamp": _clamp}
"""Functions by the op's name, without ``stablehlo.``; they take the types that the op requires."""
COMPARISONS = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
               "GE": np.greater_equal}


def applied(name: str, *operands: Array) -> Array:
    """One op on arrays of one shape, or scalars with them.

    Example:
      >>> applied("divide", np.int32([7, -7]), np.int32([2, 2])).tolist()
      [3, -3]
    """
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name](*operands))


def converted(x: Array, dtype: np.dtype) -> Array:
    """Elements in another type; towards zero from floats to integers."""
    with np.errstate(all="ignore"):
        if dtype == np.bool_:
            return x != 0
        if x.dtype.kind == "c" and dtype.kind != "c":
            x = x.real
        if x.dtype.name.startswith(("bfloat", "float")) and x.dtype.kind not in "fc":
            x = x.astype(np.float32)  # a type of ml_dtypes
        if "int4" in x.dtype.name:  # which converts to types of numpy only
            x = x.astype(np.int8)
        return x.astype(dtype)


_WHOLE = frozenset(("add", "subtract", "multiply", "divide", "remainder", "negate", "maximum", "minimum", "and", "or",
                    "xor", "not", "sign", "abs", "clamp"))
INTEGER_OPS = _WHOLE | {"compare", "select", "convert"}
"""What `of_integers` evaluates."""
_OF_BOOLEANS = frozenset(("add", "clamp", "multiply", "maximum", "minimum", "and", "or", "xor", "not"))


def of_integers(name: str, operands: Sequence[Array], dtype: np.dtype, direction: str = "") -> Array | None:
    """One elementwise op on integers and booleans, which wrap around as the specification says.

    Args:
      name: the op, one of ``INTEGER_OPS``.
      operands: arrays of one shape, or with fewer trailing dimensions if one number applies to all places.
      dtype: the dtype of the result.
      direction: the direction of a ``compare``.

    Returns:
      The result; None if implementations may differ, as in a division by zero, and for operands of other types.

    Example:
      >>> of_integers("divide", [np.int32([7, -7]), np.int32([2, 2])], np.dtype("int32")).tolist()
      [3, -3]
      >>> of_integers("divide", [np.int32([7]), np.int32([0])], np.dtype("int32")) is None
      True
    """
    if any(each.dtype.kind not in "iub" for each in operands):
        return None
    operands = spread(operands)
    if name == "convert":
        return converted(operands[0], dtype)
    if name == "compare":
        return COMPARISONS[direction](*operands)
    if name == "select":
        return np.where(*operands)
    if name in ("divide", "remainder") and not _divides(*operands):
        return None
    if operands[0].dtype.kind == "b" and name not in _OF_BOOLEANS:
        return None
    return applied(name, *operands).astype(dtype) if name in _WHOLE else None


def _divides(left: Array, right: Array) -> bool:
    """Excludes division by zero, and of the smallest number by -1."""
    overflows = left.dtype.kind == "i" and ((right == -1) & (left == np.iinfo(left.dtype).min)).any()
    return left.dtype.kind != "b" and not (right == 0).any() and not overflows
