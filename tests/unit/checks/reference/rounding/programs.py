"""Pairs of programs that are equal in real numbers, for tests of their bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import prepare
from hlorewrite.checks.reference.rounding.bounds import bounds
from hlorewrite.checks.reference.rounding.tightest_bound import apart_by
from hlorewrite.checks.reference.rounding.units import INTERPRETER, RoundingArithmetic
from hlorewrite.ir.load import parse


@dataclass(frozen=True)
class MeasuredPair:
    """Differences and bounds of the first output, element by element."""

    apart: np.ndarray
    most: np.ndarray
    reason: str

    @property
    def held(self) -> bool:
        """Whether no element differs by more than its bound."""
        return bool((self.apart <= self.most).all())

    @property
    def share(self) -> float:
        """The largest difference over the largest bound."""
        return float(self.apart.max() / self.most.max())


def measured(before: str, after: str, *, seed: int = 0, scale: float = 1.0, arithmetic: RoundingArithmetic = INTERPRETER
             ) -> MeasuredPair:
    """Runs two functions on the same random inputs, floating-point ones times ``scale``."""
    original = prepare(parse(before), "main")
    made = prepare(parse(after), "main", like=original)
    inputs = random_inputs(original, seed)
    if scale != 1:
        inputs = [[(array * scale).astype(array.dtype) for array in row] for row in inputs]
    found = bounds(original, made, inputs, arithmetic)
    outcomes = [program.run(inputs) for program in (original, made)]
    apart = [apart_by(a[0], b[0]) for a, b in zip(outcomes[0].outputs, outcomes[1].outputs, strict=True)]
    return MeasuredPair(np.concatenate(apart), np.concatenate([row[0].most.reshape(-1) for row in found]),
                    found[0][0].reason)


def function(body: str, type_: str = "tensor<4096xf32>", inputs: str = "abc", result: str = "") -> str:
    """A function of inputs of one type, whose body defines ``%y``."""
    arguments = ", ".join(f"%{name}: {type_}" for name in inputs)
    body = body.replace("T;", f" : {type_}\n")
    return f"func.func @main({arguments}) -> {result or type_} {{\n{body}\n return %y : {result or type_} }}"
