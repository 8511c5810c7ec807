"""Do two modules compute the same values? Both run on the same devices with the same random arguments."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.checks.reference.rounding.bounds import RoundingBounds
from hlorewrite.errors import UsageError
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.execute import (
    Execution,
    Value,
    prepared_for_run,
    random_arguments,
    run_module,
    signature,
)
from hlorewrite.jaxbridge.xla.rounding import range_problems, rounding_between
from hlorewrite.jaxbridge.xla.target import Target
from hlorewrite.util.tolerances import relative_tolerance


@dataclass(frozen=True)
class OutputDifference:
    """How far one output differs.

    Attributes:
      value: name, shape and type of the output.
      abs_error: largest difference on any device.
      rel_error: the same divided by the output's largest magnitude.
      tolerance: the largest ``rel_error`` that counts as equal where there is no bound; 0 means bit for bit.
      nonfinite: elements that are infinite or NaN in both, at the same places.
      equal: whether it is within its bound or tolerance, with NaN and infinities at the same places.
      bound: what rounding explains at most of ``abs_error``; None if no bound is compared.
      reason: why there is no bound.
    """

    value: Value
    abs_error: float
    rel_error: float
    tolerance: float
    nonfinite: int
    equal: bool
    bound: float | None = None
    reason: str = ""

    @property
    def allowed(self) -> str:
        """What is allowed: an absolute bound, or a relative tolerance."""
        return f"{self.tolerance:.3g} relative" if self.bound is None else f"{self.bound:.3g}"


@dataclass(frozen=True)
class Verification:
    """The outputs compared, both executions, and messages about what is wrong on extreme inputs."""

    outputs: tuple[OutputDifference, ...]
    before: Execution
    after: Execution
    positive_inputs: bool
    problems: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether every output is equal within its tolerance, and stays in range where the original does."""
        return not self.problems and all(output.equal for output in self.outputs)


def require_same_signature(before: Module, after: Module) -> None:
    """Raises ``UsageError`` that names the first argument or output in which two modules differ."""
    sides = zip(("argument", "output"), signature(before), signature(after), strict=True)
    for word, old, new in sides:
        if len(old) != len(new):
            raise UsageError(f"{before.name} has {len(old)} {word}s but {after.name} has {len(new)}",
                             hint="compare a module with a rewritten form of itself")
        for position, (a, b) in enumerate(zip(old, new, strict=True)):
            if (a.shape, a.element) != (b.shape, b.element):
                raise UsageError(f"{word} {position} is {a} in {before.name} and {b} in {after.name}",
                                 hint="compare a module with a rewritten form of itself")


def verify(before: Module, after: Module, target: Target, *, seed: int = 0, tolerance: float | None = None,
           positive: bool | None = None) -> Verification:
    """Runs two modules on the same random arguments and compares what every device holds.

    Args:
      before: the original.
      after: the rewritten module; its signature must be the original's.
      target: ``cpu:N`` or ``gpu``.
      seed: the seed of the random arguments.
      tolerance: relative error that counts as equal, for all outputs; by default what rounding explains is compared,
        and an error by dtype where there is no bound.
      positive: draw positive floats; by default standard normals, and positive ones if those give infinities or NaN.

    Returns:
      The comparison.

    Raises:
      UsageError: the signatures differ.
    """
    require_same_signature(before, after)
    first, second = prepared_for_run(before), prepared_for_run(after)
    arguments, _ = signature(first)
    use_positive = bool(positive)
    values = random_arguments(arguments, seed, positive=use_positive)
    old = run_module(first, target, values)
    if positive is None and not _all_finite(old):
        use_positive = True
        values = random_arguments(arguments, seed, positive=True)
        old = run_module(first, target, values)
    new = run_module(second, target, values)
    rounding = None if tolerance is not None else rounding_between(first, second, values, gpu=target.platform == "gpu")
    compared = tuple(compare_output(value, a, b, tolerance, rounding=rounding, position=position)
                     for position, (value, a, b) in enumerate(zip(old.outputs, old.shards, new.shards, strict=True)))
    problems = range_problems(first, second, seed) if all(output.equal for output in compared) else ()
    return Verification(compared, old, new, use_positive, problems)


def _all_finite(made: Execution) -> bool:
    return all(np.isfinite(_wide(shard)).all() for shards in made.shards for shard in shards)


def compare_output(value: Value, before: Sequence[np.ndarray], after: Sequence[np.ndarray],
                   tolerance: float | None = None, *, dtype: np.dtype | None = None,
                   rounding: RoundingBounds | None = None, position: int = 0) -> OutputDifference:
    """Compares one output device by device, so that diverging replicas are found too.

    Args:
      value: what the output is.
      before: what each device holds of it in the original.
      after: the same for the rewritten module.
      tolerance: relative error that counts as equal; by default by dtype, or by a rougher type it is computed in.
      dtype: the dtype of the elements, where ``value`` does not state it.
      rounding: what rounding may change; compared instead of a tolerance where there is a bound.
      position: the position of the output among those of ``rounding``.

    Returns:
      The errors.

    Example:
      >>> value = Value("loss", (2,), "f32", "")
      >>> compare_output(value, [np.float32([1, 2])], [np.float32([1, 2.5])]).rel_error
      0.25
    """
    dtype = dtype or value.dtype
    scale = max((float(np.abs(_finite(a)).max(initial=0.0)) for a in before), default=0.0)
    worst, nonfinite, same_places = 0.0, 0, len(before) == len(after)
    for a, b in zip(before, after, strict=False):
        wide_a, wide_b = _wide(a), _wide(b)
        odd_a, odd_b = ~np.isfinite(wide_a), ~np.isfinite(wide_b)
        nonfinite += int(odd_a.sum())
        same_places &= a.shape == b.shape and bool((odd_a == odd_b).all()) and \
            bool(np.array_equal(wide_a[odd_a], wide_b[odd_b], equal_nan=True))
        if a.shape == b.shape:
            both = ~(odd_a | odd_b)
            worst = max(worst, float(np.abs(wide_a[both] - wide_b[both]).max(initial=0.0)))
    relative = worst / scale if scale else (0.0 if worst == 0 else float("inf"))
    exact = dtype.kind in "biu"
    most, reason = (None, "") if rounding is None else rounding.of_output(position)
    usual = max(relative_tolerance(dtype), 0.0 if rounding is None else rounding.tolerance_of(position))
    allowed = 0.0 if exact else usual if tolerance is None else tolerance
    fits = same_places and (worst <= most if most is not None else worst == 0 if exact else relative <= allowed)
    return OutputDifference(value, worst, relative, tolerance=allowed, nonfinite=nonfinite, equal=fits, bound=most,
                            reason=reason)


def _wide(array: np.ndarray) -> np.ndarray:
    """Values in a type NumPy calculates with: 64-bit integers wrap, so they go to Python-sized floats last."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.longdouble if array.dtype.kind in "iu" else np.float64)


def _finite(array: np.ndarray) -> np.ndarray:
    wide = _wide(array)
    return wide[np.isfinite(wide)]
