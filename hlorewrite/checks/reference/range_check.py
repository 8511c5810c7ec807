"""Whether a rewritten module stays in the range of its types wherever the original does, on extreme inputs.

Standard normal inputs do not reveal a float16 sum that overflows before it cancels, or a factor that is lost below the
normal range. So both modules also run on large, cancelling and tiny inputs (`inputs.py`). If results become infinite,
or tiny ones are lost, both modules are replayed op by op. A fault counts only if every op of the original stays in
range, and rounding without underflow does not explain it.
"""

from collections.abc import Sequence

import numpy as np

from hlorewrite.checks.reference.inputs import KINDS, OF_INTEGERS, OF_WIDE, SHARES, Kind, exponents_of, extreme_inputs
from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.program import Array, LockstepProgram
from hlorewrite.checks.reference.rounding.bounds import bounds_of_runs, replayed
from hlorewrite.checks.reference.rounding.tightest_bound import apart_by
from hlorewrite.checks.reference.rounding.trace import ExecutionTrace, NoBound, TraceStep
from hlorewrite.checks.reference.rounding.units import IN_RANGE, FloatFormat, carry, float_format, is_narrow
from hlorewrite.errors import CannotExecute

_LOST = 0.25
"""How far results for tiny inputs may be off, relative to each, before they are compared with a bound."""


def range_faults(before: LockstepProgram, after: LockstepProgram, name: str, seed: int) -> list[str]:
    """Messages about results that leave the range of their types, or lose their digits, only in the rewritten program.

    Args:
      before: the original.
      after: the rewritten program.
      name: the name of the function.
      seed: the seed of the inputs.

    Returns:
      A sentence for each output; none if floating-point inputs decide how often a loop runs.
    """
    if _loops_by_floats(before):
        return []
    try:
        size = exponents_of(before)
        for kind in (OF_INTEGERS if size is None else KINDS if size.narrow else OF_WIDE):
            for share in SHARES:
                faults = _compared(before, after, kind, extreme_inputs(before, seed, kind, share, size))
                if faults is not None:
                    break
            else:
                continue
            if faults:
                return [f"output @{name} #{position} becomes {new} instead of {old} on {kind} inputs, for which the "
                        "original stays in the range of its types" for position, old, new in faults]
    except CannotExecute:
        pass  # the ordinary inputs were executed
    return []


def _loops_by_floats(program: LockstepProgram) -> bool:
    """Such a loop may not end on extreme inputs."""
    count = len(program.input_types)
    return any(float_format(dtype_of(program.input_types[at % count])) is not None
               for at in program.control_inputs().looping)


def _compared(before: LockstepProgram, after: LockstepProgram, kind: Kind, inputs: Sequence[Sequence[Array]]
              ) -> list[tuple[int, str, str]] | None:
    """(number of an output, its element in the original, in the rewritten program).

    None if the inputs say nothing: the original leaves the range of its types.
    """
    expected = before.run(inputs)
    flat = [array for row in expected.outputs for array in row]
    if expected.diverged or not all(_finite(array).all() for array in flat):
        return None
    actual = [array for row in after.run(inputs).outputs for array in row]
    if not any(len(_suspects(a, b, kind)) for a, b in zip(flat, actual, strict=True)):
        return []
    try:
        runs = [replayed(program, inputs) for program in (before, after)]
        if not stays_in_range(runs[0].tape):
            return None
        bounds = bounds_of_runs(runs, IN_RANGE)
    except NoBound:
        return []
    count, found = len(before.output_types), dict[int, tuple[int, str, str]]()
    for slot, (a, b, bound) in enumerate(zip(flat, actual, bounds, strict=True)):
        wrong = _beyond(a, b, np.broadcast_to(bound.most, a.shape).reshape(-1))
        if len(wrong):
            found.setdefault(slot % count, (slot % count, _shown(a, wrong[0]), _shown(b, wrong[0])))
    return [found[position] for position in sorted(found)]


def _suspects(expected: Array, actual: Array, kind: Kind) -> Array:
    """Elements that may be wrong: cheap to find, and rounding alone makes few of them."""
    if float_format(expected.dtype) is None:
        return np.flatnonzero(expected != actual)
    if kind != "tiny":
        return np.flatnonzero(~_finite(actual))
    size = apart_by(expected, np.zeros_like(expected))
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(apart_by(expected, actual) > _LOST * size)


def _beyond(expected: Array, actual: Array, most: Array) -> Array:
    """Elements that are no longer finite, or further off than a bound."""
    lost = ~_finite(actual).reshape(-1)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(lost | (np.isfinite(most) & (apart_by(expected, actual) > most)))


def _finite(x: Array) -> Array:
    if float_format(x.dtype) is None:
        return np.ones(x.shape, bool)
    return np.isfinite(x if x.dtype.kind in "fc" else x.astype(np.float32))


def _shown(x: Array, place: int) -> str:
    value = x.reshape(-1)[place]
    if float_format(x.dtype) is None:
        return str(int(value))
    return f"{complex(value):.4g}" if x.dtype.kind == "c" else f"{float(value):.4g}"


# ---- whether a run stays in the range of its types: no infinity, no not-a-number, no digits lost to underflow

# Of float16 and narrower formats the whole range counts, subnormal numbers too where an op is exact there: sums always
# are (Hauser 1996). Of wider formats only numbers away from both ends count, so that sums in another order stay in
# range.


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
