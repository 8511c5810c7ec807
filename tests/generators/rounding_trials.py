"""Programs before and after their passes, run on equal inputs: differences beside what rounding explains."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from generators.check import EVERY, rewritten
from generators.golden_cases import cases, modules
from generators.random_layers import random_layers
from generators.random_programs import random_program

from hlorewrite.checks.reference.inputs import run_on_random_inputs
from hlorewrite.checks.reference.program import Array, LockstepProgram, Outcome, entries, prepare
from hlorewrite.checks.reference.rounding.bounds import RoundingBounds, bounds_or_reason
from hlorewrite.checks.reference.rounding.tightest_bound import apart_by, at_largest
from hlorewrite.errors import CannotExecute, HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.programs import is_program
from hlorewrite.pipelines.adapter.sequential import sequential

InputsMaker = Callable[[LockstepProgram, int], tuple[list[list[Array]], Outcome]]
"""Makes the inputs of a program from a seed, and runs it on them."""


@dataclass(frozen=True)
class OutputTrial:
    """One output of one program, over its processes and some inputs.

    Attributes:
      difference: the largest absolute difference of an element.
      bound: the bound of that element; the largest where several elements have that difference, and the largest of all
        where none differs; infinite if it has none.
      nearest: the least quotient of bound and difference, of the elements that differ; infinite if none does.
      widest: the largest bound of any element.
      held: no element differs by more than its bound.
      reason: why there is no bound.
    """

    difference: float
    bound: float
    nearest: float
    widest: float
    held: bool
    reason: str = ""

    @property
    def times(self) -> float | None:
        """The bound over the difference where that is largest; None if nothing differs, or there is no bound."""
        return self.bound / self.difference if self.difference and np.isfinite(self.bound) else None


@dataclass(frozen=True)
class RoundingTrial:
    """One program.

    Attributes:
      name: what it is.
      outputs: its outputs.
    """

    name: str
    outputs: tuple[OutputTrial, ...]

    @property
    def times(self) -> float | None:
        """The largest `OutputTrial.times` of the outputs; None if nothing differs."""
        return max((output.times for output in self.outputs if output.times is not None), default=None)


def trial(name: str, before: Module, after: Module, seeds: tuple[int, ...] = (0, 1, 2),
          inputs: InputsMaker = run_on_random_inputs) -> RoundingTrial | None:
    """Runs a program before and after on inputs of some seeds; None if the interpreter cannot."""
    rows: list[list[OutputTrial]] = []
    try:
        before, after = (sequential(each) if is_program(each) else each for each in (before, after))
        for function in entries(before):
            original = prepare(before, function)
            made = prepare(after, function, like=original)
            if len(original.output_types) == len(made.output_types):
                runs = [_outputs(original, made, *inputs(original, seed)) for seed in seeds]
                rows += map(list, zip(*runs, strict=True))
    except CannotExecute:
        return None
    return RoundingTrial(name, tuple(map(_together, rows))) if rows else None


def _outputs(original: LockstepProgram, made: LockstepProgram, inputs: list[list[Array]], before: Outcome
             ) -> list[OutputTrial]:
    if before.diverged:
        raise CannotExecute("the program hangs")
    after, rounding = made.run(inputs), bounds_or_reason(original, made, inputs)
    return [_output(position, before, after, rounding) for position in range(len(original.output_types))]


def _output(position: int, before: Outcome, after: Outcome, rounding: RoundingBounds) -> OutputTrial:
    apart = np.concatenate([apart_by(a[position], b[position])
                            for a, b in zip(before.outputs, after.outputs, strict=True)])
    if not rounding.outputs:
        return OutputTrial(float(apart.max(initial=0.0)), np.inf, np.inf, np.inf, True, rounding.reason)
    most = np.concatenate([row[position].most.reshape(-1) for row in rounding.outputs])
    return replace(of_elements(apart, most), reason=rounding.reason_of(position))


def of_elements(apart: np.ndarray, most: np.ndarray) -> OutputTrial:
    """The trial of an output whose elements differ by ``apart`` and have the bounds ``most``.

    Example:
      >>> of_elements(np.array([0.0, 2.0, 1.0]), np.array([300.0, 8.0, 3.0]))
      OutputTrial(difference=2.0, bound=8.0, nearest=3.0, widest=300.0, held=True, reason='')
      >>> of_elements(np.array([0.0, 2.0]), np.array([300.0, 1.0])).held
      False
    """
    differs = apart > 0
    return OutputTrial(*at_largest(apart, most), float((most[differs] / apart[differs]).min(initial=np.inf)),
                       float(most.max(initial=0.0)), bool((apart <= most).all()))


def _together(outputs: list[OutputTrial]) -> OutputTrial:
    """One output over several inputs: the figures of those for which it has a bound."""
    held = all(output.held for output in outputs)
    bounded = [output for output in outputs if not output.reason]
    if not bounded:
        return replace(outputs[0], held=held)
    largest = max(bounded, key=lambda output: (output.difference, output.bound))
    return replace(largest, nearest=min(output.nearest for output in bounded),
                   widest=max(output.widest for output in bounded), held=held,
                   reason=next((output.reason for output in outputs if output.reason), ""))


def golden(folder: str = "", seeds: tuple[int, ...] = (0, 1, 2)) -> Iterator[RoundingTrial]:
    """Every runnable module of the golden files whose path contains a text, through its own passes."""
    for case in (each for each in cases() if folder in str(each.file)):
        for first_line, pair in modules(case)[1]:
            made = None if isinstance(pair, str) else trial(f"{case.file}:{first_line}", *pair, seeds)
            if made:
                yield made


def at_random(numbers: range) -> Iterator[RoundingTrial]:
    """Random programs, each through one pipeline, where it changes them."""
    for number in numbers:
        made = _rewritten_trial(f"random program {number}", random_program(random.Random(number)),
                                EVERY[number % len(EVERY)], number)
        if made:
            yield made


def layers(numbers: range) -> Iterator[RoundingTrial]:
    """Random layer loops through the passes that move communication beside compute."""
    for number in numbers:
        made = _rewritten_trial(f"random layers {number}", random_layers(random.Random(number)), EVERY[-1], number)
        if made:
            yield made


def _rewritten_trial(name: str, text: str, pipeline: str, seed: int) -> RoundingTrial | None:
    before = parse(text)
    try:
        after, changed = rewritten(before, pipeline)
    except HlorewriteError:
        return None
    return trial(name, before, after, (seed,)) if changed else None
