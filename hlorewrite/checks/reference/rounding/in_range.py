"""Whether a run stays in the range of its types: no op makes an infinity or not-a-number, or loses digits to underflow.

Of float16 and narrower formats the whole range counts, subnormal numbers too where an op is exact there: sums always
are (Hauser 1996). Of wider formats only numbers away from both ends count, so that sums in another order stay in range.
"""

import numpy as np

from hlorewrite.checks.reference.rounding.trace import ExecutionTrace, TraceStep
from hlorewrite.checks.reference.rounding.units import FloatFormat, carry, float_format, is_narrow

_EDGE = 2.0**20
"""How far numbers of wide formats stay away from the limits."""
_MOVES = frozenset({"move", "bits", "decision"})
_EXACT = frozenset({"add", "subtract", "negate", "abs", "maximum", "minimum", "clamp", "select", "sign", "floor",
                    "ceil", "round_nearest_even", "round_nearest_afz", "real", "imag", "complex", "remainder"})
"""Ops whose results below the normal range are exact."""
_SUMS = frozenset({"add", "maximum", "minimum", "and", "or"})
_NEVER_ZERO = frozenset({"multiply", "divide", "exponential", "logistic", "power", "convert", "sqrt", "rsqrt", "cbrt",
                         "tanh"})
"""Ops whose result is zero for an operand other than zero only if the operand is too small."""


def stays_in_range(tape: ExecutionTrace) -> bool:
    """Whether every op of a run stayed in range; values copied from infinite constants count as in range."""
    with np.errstate(all="ignore"):
        return all(_fits(tape, step) for step in tape.steps)


def _fits(tape: ExecutionTrace, step: TraceStep) -> bool:
    if step.kind in _MOVES:
        return True
    read = [tape.cells[slot].value for slot in step.operands]
    return all(_result_fits(step, read, tape.cells[slot].value) for slot in step.results)


def _result_fits(step: TraceStep, read: list[np.ndarray], made: np.ndarray) -> bool:
    form = float_format(made.dtype)
    floats = [x for x in read if float_format(x.dtype) is not None]
    if form is None:
        return step.kind != "convert" or not floats or _holds(made, floats[0])
    if not made.size:
        return True
    value = _parts(made)
    largest = form.largest if is_narrow(form) else form.largest / _EDGE
    if not np.abs(value).max() <= largest:
        known = [_parts(x) for x in floats]
        if not any(np.isinf(x).any() for x in known) or (np.isnan(value).any() and not any(np.isnan(x).any()
                                                                                           for x in known)):
            return False
        if (np.abs(value[np.isfinite(value)]) > largest).any():
            return False
    return _keeps_digits(step, [carry(x) for x in read], carry(made), form)


def _holds(made: np.ndarray, source: np.ndarray) -> bool:
    """Whether an integer type represents the numbers that are converted to it."""
    if made.dtype == np.bool_:
        return True
    apart = np.abs(made.astype(np.float64) - np.trunc(_parts(source)[..., 0].astype(np.float64)))
    return bool((apart <= np.abs(made.astype(np.float64)) * 2.0**-50).all())


def _keeps_digits(step: TraceStep, read: list[np.ndarray], made: np.ndarray, form: FloatFormat) -> bool:
    """Whether no element of a result is too small for its digits."""
    least = form.normal if is_narrow(form) else form.normal * _EDGE
    if step.kind in _EXACT or (step.kind in ("reduce", "scatter") and step.detail.by in (*_SUMS, "put")):
        return True
    if step.kind in ("dot_general", "convolution"):
        return _least(read[0]) * _least(read[1]) >= least
    value = np.abs(_parts(made))
    small = ((value > 0) & (value < least)).any(axis=-1)
    if step.kind in _NEVER_ZERO:
        small = small | ((value == 0).all(axis=-1) & _some(step, read, made.shape))
    if not small.any():
        return True
    return is_narrow(form) and step.kind in ("multiply", "divide", "convert") and made.dtype.kind != "c" and bool(
        (_exact(step.kind, read, made) | ~small).all())


def _some(step: TraceStep, read: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Where the operands do not explain a zero: they are finite, and none of the factors is zero."""
    factors = read if step.kind == "multiply" else read[:1]
    found = np.ones(shape, bool)
    for each in read:
        found = found & np.isfinite(each)
    if step.kind in ("exponential", "logistic"):
        return found
    for each in factors:
        found = found & (each != 0)
    return found


def _exact(kind: str, read: list[np.ndarray], made: np.ndarray) -> np.ndarray:
    """Whether products, quotients and converts of narrow formats are what they are in float64."""
    if kind == "multiply":
        return read[0] * read[1] == made
    return read[0] == made if kind == "convert" else made * read[1] == read[0]


def _least(x: np.ndarray) -> float:
    """The least magnitude of an element that is not zero; infinite if all are."""
    value = np.abs(_parts(x)).astype(np.float64)
    return float(value[value > 0].min(initial=np.inf))


def _parts(x: np.ndarray) -> np.ndarray:
    """Elements with their real and imaginary parts along a last axis."""
    if x.dtype.kind == "c":
        return np.stack([np.real(x), np.imag(x)], axis=-1)
    return np.asarray(x)[..., None] if x.dtype.kind == "f" else carry(x)[..., None]


