"""Programs before and after their passes, run on equal inputs: differences beside what rounding explains."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from generators.check import EVERY, rewritten
from generators.golden_cases import cases, modules
from generators.random_layers import random_layers
from generators.random_programs import random_program

from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.mpmd.program import is_program
from hlorewrite.oracle.errors import CannotExecute
from hlorewrite.oracle.inputs import run_on_random_inputs
from hlorewrite.oracle.pipelined import sequential
from hlorewrite.oracle.program import LockstepProgram, Outcome, entries, prepare
from hlorewrite.oracle.rounding.bounds import RoundingBounds, bounds_or_reason
from hlorewrite.oracle.rounding.nearest import apart_by


@dataclass(frozen=True)
class OutputTrial:
    """One output of one program, over its processes and some inputs.

    Attributes:
      difference: the largest absolute difference.
      bound: the largest bound; infinite where there is none.
      held: no element differs by more than its bound.
      reason: why there is no bound.
    """

    difference: float
    bound: float
    held: bool
    reason: str = ""

    @property
    def times(self) -> float | None:
        """The bound over the difference; None where nothing differs, or there is no bound."""
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
        """The bound over the difference of the output where it is largest; None where nothing differs."""
        return max((output.times for output in self.outputs if output.times is not None), default=None)


def trial(name: str, before: Module, after: Module, seeds: tuple[int, ...] = (0, 1, 2)) -> RoundingTrial | None:
    """Runs a program before and after on inputs of some seeds; None where the interpreter cannot."""
    rows: list[list[OutputTrial]] = []
    try:
        before, after = (sequential(each) if is_program(each) else each for each in (before, after))
        for function in entries(before):
            original = prepare(before, function)
            made = prepare(after, function, like=original)
            if len(original.output_types) == len(made.output_types):
                rows += map(list, zip(*[_outputs(original, made, seed) for seed in seeds], strict=True))
    except CannotExecute:
        return None
    return RoundingTrial(name, tuple(map(_together, rows))) if rows else None


def _outputs(original: LockstepProgram, made: LockstepProgram, seed: int) -> list[OutputTrial]:
    inputs, before = run_on_random_inputs(original, seed)
    if before.diverged:
        raise CannotExecute("the program hangs")
    after, rounding = made.run(inputs), bounds_or_reason(original, made, inputs)
    return [_output(position, before, after, rounding) for position in range(len(original.output_types))]


def _output(position: int, before: Outcome, after: Outcome, rounding: RoundingBounds) -> OutputTrial:
    apart = [apart_by(a[position], b[position]) for a, b in zip(before.outputs, after.outputs, strict=True)]
    difference = max(float(each.max(initial=0.0)) for each in apart)
    reason = rounding.reason_of(position)
    if reason:
        return OutputTrial(difference, float("inf"), True, reason)
    most = [row[position].most.reshape(-1) for row in rounding.outputs]
    held = all(bool((a <= b).all()) for a, b in zip(apart, most, strict=True))
    return OutputTrial(difference, max(float(each.max(initial=0.0)) for each in most), held)


def _together(outputs: list[OutputTrial]) -> OutputTrial:
    bounded = [output for output in outputs if not output.reason]
    if not bounded:
        return outputs[0]
    return OutputTrial(max(output.difference for output in bounded), max(output.bound for output in bounded),
                       all(output.held for output in bounded), next((o.reason for o in outputs if o.reason), ""))


def golden() -> Iterator[RoundingTrial]:
    """Every runnable module of the golden files, through its own passes."""
    for case in cases():
        for first_line, pair in modules(case)[1]:
            made = None if isinstance(pair, str) else trial(f"{case.file}:{first_line}", *pair)
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
