"""How errors of operands reach the result of an op that works element by element, and what the op adds.

For y = f(x) with ``|x - x'| <= e`` the result is off by at most e times the largest derivative of f between x - e and
x + e; f itself adds its roundings, relative to the computed result: the running error analysis of Wilkinson (Higham,
"Accuracy and Stability of Numerical Algorithms", 2nd edition, section 3.3).
"""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Rule = Callable[[list[Array], list[Array], Array], Array]
"""(operands, their error bounds, the computed result) -> bound of what the errors of the operands cause."""


def _largest(values: list[Array], errors: list[Array], result: Array) -> Array:
    return np.maximum(errors[0], errors[1])


def _sum(values: list[Array], errors: list[Array], result: Array) -> Array:
    return errors[0] + errors[1]


def _product(values: list[Array], errors: list[Array], result: Array) -> Array:
    (a, b), (e, f) = values, errors
    return np.abs(a) * f + np.abs(b) * e + e * f


def _quotient(values: list[Array], errors: list[Array], result: Array) -> Array:
    (a, b), (e, f) = values, errors
    room = np.abs(b) - f
    return np.where((e == 0) & (f == 0), 0, np.where(room > 0, (e + np.abs(a / b) * f) / room, np.inf))


def _power(values: list[Array], errors: list[Array], result: Array) -> Array:
    (a, b), (e, f) = values, errors
    size = np.abs(b) + f
    relative = np.where(a > e, size * -np.log1p(-np.where(a > e, e / a, 0.0)) + f * np.abs(np.log(a)), np.inf)
    whole = (f == 0) & (b == np.rint(b)) & (b >= 1)
    of_whole = size * np.maximum(np.abs(a) + e, 1e-300) ** np.maximum(size - 1, 0) * e
    steep = np.abs(a ** b) * np.expm1(relative)
    return np.where((e == 0) & (f == 0), 0, np.where(whole, of_whole, steep))


def _clamp(values: list[Array], errors: list[Array], result: Array) -> Array:
    return np.maximum(np.maximum(errors[0], errors[1]), errors[2])


def _root(values: list[Array], errors: list[Array], result: Array) -> Array:
    """``|sqrt(x) - sqrt(x')| = |x - x'| / (sqrt(x) + sqrt(x'))``, and at most ``sqrt(|x - x'|)``."""
    [x], [e] = values, errors
    below = np.sqrt(np.maximum(x, 0)) + np.sqrt(np.maximum(x - e, 0))
    return np.minimum(np.sqrt(e), np.where(below > 0, e / np.where(below > 0, below, 1), np.inf))


def _logistic(values: list[Array], errors: list[Array], result: Array) -> Array:
    [x], [e] = values, errors
    nearest = np.maximum(np.abs(x) - e, 0)
    return e / (2 + 2 * np.cosh(np.minimum(nearest, 700)))


def _tanh(values: list[Array], errors: list[Array], result: Array) -> Array:
    [x], [e] = values, errors
    return e / np.cosh(np.minimum(np.maximum(np.abs(x) - e, 0), 350)) ** 2


def _steps(function: Callable[[Array], Array]) -> Rule:
    """A function that is constant between jumps: exact where no jump is within reach."""
    def rule(values: list[Array], errors: list[Array], result: Array) -> Array:
        [x], [e] = values, errors
        return np.where(e > 0, np.maximum(np.abs(function(x + e) - function(x)), np.abs(function(x) - function(x - e))),
                        0)
    return rule


def _unary(slope: Callable[[Array, Array], Array]) -> Rule:
    """A function whose change over ``e`` around x is at most slope(x, e)."""
    return lambda values, errors, result: np.where(errors[0] > 0, slope(values[0], errors[0]), 0)


def _log(x: Array, e: Array) -> Array:
    return np.where(x > e, -np.log1p(-np.where(x > e, e / x, 0)), np.inf)


def _rsqrt(x: Array, e: Array) -> Array:
    low = np.where(x > e, x - e, 1)
    return np.where(x > e, e / 2 * low ** -1.5, np.inf)


PROPAGATED: dict[str, Rule] = {
    "add": _sum, "subtract": _sum, "multiply": _product, "divide": _quotient, "maximum": _largest,
    "minimum": _largest, "power": _power, "clamp": _clamp, "complex": _sum,
    "abs": _unary(lambda x, e: e), "negate": _unary(lambda x, e: e), "real": _unary(lambda x, e: e),
    "imag": _unary(lambda x, e: e), "convert": _unary(lambda x, e: e), "sqrt": _root, "rsqrt": _unary(_rsqrt),
    "exponential": _unary(lambda x, e: np.exp(x) * np.expm1(e)),
    "exponential_minus_one": _unary(lambda x, e: np.exp(x) * np.expm1(e)),
    "log": _unary(_log), "log_plus_one": _unary(lambda x, e: _log(1 + x, e)), "logistic": _logistic, "tanh": _tanh,
    "sine": _unary(lambda x, e: e), "cosine": _unary(lambda x, e: e),
    "sign": _steps(np.sign), "floor": _steps(np.floor), "ceil": _steps(np.ceil),
    "round_nearest_even": _steps(np.rint),
}
"""Rules by op; nothing is known about an op without one once an operand has an error."""
STEPS = frozenset({"sign", "floor", "ceil", "round_nearest_even"})
"""Ops that are constant between jumps."""

ROUNDINGS: dict[str, float] = {
    "add": 1, "subtract": 1, "multiply": 1, "divide": 1, "sqrt": 1, "convert": 1,
}
"""Roundings an op adds, in units of ``RoundingArithmetic.basic``."""
FUNCTIONS: dict[str, float] = {
    "rsqrt": 1, "exponential": 1, "exponential_minus_one": 1, "log": 1, "log_plus_one": 1, "logistic": 2, "tanh": 1,
    "sine": 1, "cosine": 1, "cbrt": 1, "power": 1, "atan2": 1, "remainder": 0,
}
"""The same for functions, in units of ``RoundingArithmetic.function``."""


def adds_nothing(name: str, values: list[Array]) -> Array | bool:
    """Where an op is exact: sums with zero, products with a power of two."""
    if name in ("add", "subtract"):
        return (values[0] == 0) | (values[1] == 0)
    if name == "multiply":
        return _power_of_two(values[0]) | _power_of_two(values[1])
    return _power_of_two(values[1]) if name == "divide" else False


def _power_of_two(x: Array) -> Array:
    return np.abs(np.frexp(np.where(np.isfinite(x), x, 1.5))[0]) == 0.5
