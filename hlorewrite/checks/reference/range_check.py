"""Whether a rewritten module stays in the range of its types wherever the original does, on extreme inputs.

Standard normal inputs do not reveal a float16 sum that overflows before it cancels, or a factor that is lost below the
normal range. So both modules also run on large, cancelling and tiny inputs (`extremes.py`). If results become infinite,
or tiny ones are lost, both modules are replayed op by op. A fault counts only if every op of the original stays in
range, and rounding without underflow does not explain it.
"""

from collections.abc import Sequence

import numpy as np

from hlorewrite.checks.reference.extremes import KINDS, OF_INTEGERS, OF_WIDE, SHARES, Kind, exponents_of, extreme_inputs
from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.program import Array, LockstepProgram
from hlorewrite.checks.reference.rounding.arithmetic import IN_RANGE
from hlorewrite.checks.reference.rounding.bounds import bounds_of_runs, replayed
from hlorewrite.checks.reference.rounding.in_range import stays_in_range
from hlorewrite.checks.reference.rounding.tightest_bound import apart_by
from hlorewrite.checks.reference.rounding.trace import NoBound
from hlorewrite.checks.reference.rounding.units import float_format
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
