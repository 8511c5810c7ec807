"""The error of one op's result: what the errors of its operands cause, element by element or not, and the roundings it
adds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlorewrite.checks.reference.rounding.scatters import Scattering
from hlorewrite.checks.reference.rounding.sums import ProductForm, ReductionForm
from hlorewrite.checks.reference.rounding.units import FloatFormat, RoundingArithmetic
from hlorewrite.ops.elementwise import applied

Pair = tuple[np.ndarray, np.ndarray]
"""Error bounds and probes."""
_COMPLEX = {"multiply": 3.0, "divide": 12.0, "add": 1.0, "subtract": 1.0, "convert": 1.0}
"""Roundings of complex ops, relative to the magnitude of the result (Higham, section 3.6: sqrt(2) gamma_2 of a product,
sqrt(2) gamma_7 of a quotient)."""


@dataclass(frozen=True)
class Known:
    """One operand.

    Attributes:
      value: its elements, in the type they are calculated with here.
      error: how far each may be from the exact one.
      probe: the exact function, evaluated at slightly moved values of the cut.
      form: its floating-point format; None for integers and truth values.
    """

    value: np.ndarray
    error: np.ndarray
    probe: np.ndarray
    form: FloatFormat | None


def on_elements(name: str, read: list[Known], result: np.ndarray, form: FloatFormat | None,
                arithmetic: RoundingArithmetic) -> Pair:
    """The error of an op that works element by element, ``convert`` included.

    Args:
      name: the op, without ``stablehlo.``.
      read: its operands.
      result: what was computed.
      form: the format of the result.
      arithmetic: what executes it.
    """
    values, errors = [known.value for known in read], [known.error for known in read]
    differs = np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*[error > 0 for error in errors])), result.shape)
    if form is None:
        return _whole(name, read, result, differs), result
    passed_on = np.where(differs, _passed_on(name, values, errors, result, arithmetic), 0.0)
    added = _added(name, read, result, form, arithmetic, passed_on)
    error = passed_on + added
    infinite = ~np.isfinite(result)
    if infinite.any():
        before = np.logical_or.reduce([~np.isfinite(np.broadcast_to(value, result.shape)) for value in values])
        fine = before & np.isinf(result) & ~differs
        certain = name in ("add", "subtract", "maximum", "minimum", "negate", "clamp", "convert", "abs")
        fine |= before & np.isinf(result) & certain & np.isfinite(passed_on)
        error = np.where(infinite, np.where(fine, 0.0, np.inf), error)
    probe = read[0].probe if name == "convert" else applied(name, *[known.probe for known in read])
    return error, np.where(infinite, result, probe) if infinite.any() else probe


def _passed_on(name: str, values: list[np.ndarray], errors: list[np.ndarray], result: np.ndarray,
               arithmetic: RoundingArithmetic) -> np.ndarray | float:
    """What the errors of the operands cause.

    A rule takes the computed operand x and says how far f(x) is from f(x') for ``|x - x'| <= e``. Where x was replayed,
    not computed by the program itself, both the program's operand and the exact one lie up to 2e away from each other's
    neighbourhood; a rule at four times the error, divided by four, covers the steeper slope there.
    """
    rule = PROPAGATED.get(name)
    if rule is None:
        return np.inf
    if arithmetic.repeats:
        return rule(values, errors, result)
    wide = rule(values, [4 * error for error in errors], result)
    if name in STEPS:
        return wide
    if name == "sqrt":
        return np.where(values[0] <= 4 * errors[0], np.sqrt(errors[0]), wide / 4)
    return wide / 4


def _whole(name: str, read: list[Known], result: np.ndarray, differs: np.ndarray) -> np.ndarray:
    """Integers and truth values are exact, or nothing is known about them."""
    if name == "convert" and read[0].form and result.dtype != np.bool_:
        x, e = np.real(read[0].value), 2 * read[0].error
        return np.where((e > 0) & (np.trunc(x - e) != np.trunc(x + e)), np.inf, 0.0)
    return np.where(differs, np.inf, 0.0)


def _added(name: str, read: list[Known], result: np.ndarray, form: FloatFormat, arithmetic: RoundingArithmetic,
           passed_on: np.ndarray) -> np.ndarray:
    """Roundings of the op itself."""
    values = [known.value for known in read]
    source = read[0].form
    if name == "convert" and source and form.unit <= source.unit and form.normal <= source.normal:
        return np.zeros(result.shape)
    if name not in ROUNDINGS and name not in FUNCTIONS:
        return np.zeros(result.shape)
    units = ROUNDINGS[name] * arithmetic.basic if name in ROUNDINGS else FUNCTIONS[name] * arithmetic.function
    if result.dtype.kind == "c":
        units *= _COMPLEX.get(name, np.inf)
    size = np.abs(result) + (0 if arithmetic.repeats else passed_on)
    added = form.gamma(1) * units * size
    if name not in ("add", "subtract", "sqrt") or arithmetic.flushes:
        added = added + np.where(size < 2 * form.normal, arithmetic.floor(form), 0.0)
    if name == "logistic":
        added = added + 1 / form.largest  # exp(-x) runs over and the result is zero
    if result.dtype.kind != "c":
        exact = adds_nothing(name, values)
        if exact is not False and arithmetic.repeats:
            tiny = (size < 2 * form.normal) & (result != 0) & (name not in ("add", "subtract"))
            added = np.where(exact & ~tiny, 0.0, added)
    if name == "convert" and source is None:
        added = np.where(result == values[0], 0.0, added)
    return added


def of_sums(form_of: ProductForm, read: list[Known], result: np.ndarray, form: FloatFormat | None,
            arithmetic: RoundingArithmetic) -> Pair:
    """The error of a matrix product: ``gamma_n |A| |B|``, and the errors of both operands."""
    left, right = read
    if form is None:
        return np.full(result.shape, np.inf if left.error.any() or right.error.any() else 0.0), result
    a, b = np.abs(left.value), np.abs(right.value)
    error = np.zeros(result.shape)
    if right.error.any():
        error = error + form_of.apply(a, right.error)
    if left.error.any():
        error = error + form_of.apply(left.error, b + right.error)
    narrowed = any(known.form and known.form.unit < form.unit for known in read)
    count = (form_of.terms + 2 * narrowed) * (3 if result.dtype.kind == "c" else 1)
    size = form_of.apply(a, b) + (0 if arithmetic.repeats else error)
    narrowing = 2.001 * arithmetic.products if arithmetic.products > form.unit else 0.0
    error = error + (form.gamma(int(np.ceil(count * arithmetic.basic))) + narrowing) * size
    tiny = form_of.apply(((a > 0) & (a < 1)) * 1.0, ((b > 0) & (b < 1)) * 1.0)
    error = error + tiny * arithmetic.floor(form)
    return np.where(np.isfinite(result), error, np.inf), form_of.apply(left.probe, right.probe)


def of_terms(form_of: ReductionForm, read: list[Known], result: np.ndarray, form: FloatFormat | None,
             arithmetic: RoundingArithmetic) -> Pair:
    """The error of a reduction: gamma_(n-1) times the sum of magnitudes for sums, the largest error for maxima and
    minima."""
    operand, start = read
    errors = form_of.rows(operand.error)
    shape = form_of.shape
    probes = np.concatenate([np.broadcast_to(start.probe.reshape(1, 1), (form_of.kept, 1)),
                             form_of.rows(operand.probe)], axis=1)
    if form is None:
        differs = errors.any(axis=1) | bool(start.error.any())
        return np.where(differs, np.inf, 0.0).reshape(shape), result
    if form_of.by in ("maximum", "minimum"):
        pick = np.max if form_of.by == "maximum" else np.min
        error = np.maximum(errors.max(axis=1, initial=0.0), start.error.reshape(())).reshape(shape)
        return np.where(np.isnan(result), np.inf, error), pick(probes, axis=1).reshape(shape)
    if form_of.by == "multiply":
        return _factors(form_of, read, result, form, arithmetic), np.prod(probes, axis=1).reshape(shape)
    size = np.abs(form_of.rows(operand.value)).sum(axis=1) + np.abs(start.value).reshape(())
    passed_on = errors.sum(axis=1) + start.error.reshape(())
    size = size + (0 if arithmetic.repeats else passed_on)
    empty = bool(start.value.reshape(()) == 0) and not start.error.any()
    narrowed = operand.form is not None and operand.form.unit < form.unit
    gamma = form.gamma(int(np.ceil(max(form_of.terms - empty + narrowed, 0) * arithmetic.basic)))
    error = (passed_on + np.where(size > 0, gamma * size, 0.0)).reshape(shape)
    if arithmetic.flushes:
        error = error + form_of.terms * form.normal
    return np.where(np.isfinite(result), error, np.inf), probes.sum(axis=1).reshape(shape)


def of_updates(form_of: Scattering, read: list[Known], result: np.ndarray, form: FloatFormat | None,
               arithmetic: RoundingArithmetic) -> Pair:
    """The error of a scatter: each element is the sum, or the largest or least, of itself and of the updates it
    receives."""
    operand, indices, updates = read
    if form is None or indices.error.any():
        differs = any(known.error.any() for known in read)
        return np.full(result.shape, np.inf if differs else 0.0), result
    if form_of.by in ("maximum", "minimum"):
        sign = 1 if form_of.by == "maximum" else -1
        probe = sign * form_of.largest(sign * operand.probe, sign * updates.probe)
        error = form_of.largest(operand.error, updates.error)
        return np.where(np.isnan(result), np.inf, error), probe
    if form_of.by != "add":
        return np.full(result.shape, np.inf), result
    passed_on = form_of.added(operand.error, updates.error)
    size = form_of.added(np.abs(operand.value), np.abs(updates.value)) + (0 if arithmetic.repeats else passed_on)
    counts = form_of.counts()
    gammas = np.array([form.gamma(int(np.ceil(n * arithmetic.basic))) for n in range(int(counts.max(initial=0)) + 1)])
    error = passed_on + np.where(size > 0, gammas[counts] * size, 0.0)
    if arithmetic.flushes:
        error = error + counts * form.normal
    return np.where(np.isfinite(result), error, np.inf), form_of.added(operand.probe, updates.probe)


def _factors(form_of: ReductionForm, read: list[Known], result: np.ndarray, form: FloatFormat,
             arithmetic: RoundingArithmetic) -> np.ndarray:
    """The error of a product of n factors: gamma_n, and the relative errors of the factors."""
    operand, start = read
    rows, errors = np.abs(form_of.rows(operand.value)), 3 * form_of.rows(operand.error)
    first, first_error = np.abs(start.value).reshape(()), 3 * start.error.reshape(())
    outer = np.prod(rows + errors, axis=1) * (first + first_error)
    inner = np.prod(rows, axis=1) * first
    error = (outer - inner) + form.gamma(int(np.ceil((form_of.terms + 1) * arithmetic.basic))) * outer
    error = error + (form_of.terms + 1) * arithmetic.floor(form)
    return np.where(np.isfinite(result), error.reshape(form_of.shape), np.inf)


# ---- how errors of operands reach the result of an op that works element by element, and what the op adds

# For y = f(x) with ``|x - x'| <= e`` the result is off by at most e times the largest derivative of f between x - e and
# x + e; f itself adds its roundings, relative to the computed result: the running error analysis of Wilkinson (Higham,
# "Accuracy and Stability of Numerical Algorithms", 2nd edition, section 3.3).


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
