"""The tape of a run: what a sequential program did on its inputs, with loops, branches and calls resolved."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hlorewrite.errors import HlorewriteError

MOST_ELEMENTS = 1 << 24
"""Elements that fit on a tape: with values, fingerprints and errors about 0.5 GiB."""

MOST_PRODUCTS = 1 << 30
"""Multiplications of matrix products that fit on a tape."""
MOST_STEPS = 200_000
"""Ops that fit on a tape; numpy takes about 0.1 ms for each."""


@dataclass(frozen=True)
class TraceLimits:
    """How much fits on a tape: elements, multiplications of matrix products, ops."""

    elements: int = MOST_ELEMENTS
    products: int = MOST_PRODUCTS
    steps: int = MOST_STEPS


USUAL_LIMITS = TraceLimits()


class NoBound(HlorewriteError):
    """A running error analysis cannot be made; the sentence says why."""


@dataclass(frozen=True)
class TracedTensor:
    """A tensor that was computed.

    Attributes:
      value: its elements, as the program computed them, in their own type.
      prints: the fingerprint of each element.
      exact: no rounding came before it: inputs, constants, and integers made from them alone.
      constant: it depends on no floating-point input.
    """

    value: np.ndarray
    prints: np.ndarray
    exact: bool
    constant: bool


@dataclass(frozen=True)
class TraceStep:
    """One op that was executed.

    Attributes:
      kind: the op's name; ``move`` where elements were picked without calculation; ``decision`` of a loop or branch.
      operands: slots read.
      results: slots written.
      location: the location of the op in the user's program; empty if the oracle wrote it.
      detail: what the rule of the kind reads: for a move, for each element of the result the place of its source
        among the elements of ``operands[picked:]``, one operand after the other.
      picked: how many operands at the front are indices or predicates.
    """

    kind: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    location: str
    detail: Any = None
    picked: int = 0


@dataclass
class ExecutionTrace:
    """The steps of a run and the tensors it computed, by slot."""

    cells: list[TracedTensor] = field(default_factory=list)
    steps: list[TraceStep] = field(default_factory=list)
    limits: TraceLimits = USUAL_LIMITS
    elements: int = 0
    products: int = 0

    def add(self, cells: TracedTensor) -> int:
        """Stores a tensor; returns its slot.

        Raises:
          NoBound: the tape contains too many elements.
        """
        self.elements += cells.value.size
        if self.elements > self.limits.elements:
            raise NoBound(f"the program computes more than {self.limits.elements} elements")
        self.cells.append(cells)
        return len(self.cells) - 1

    def multiply(self, count: int) -> None:
        """Counts multiplications of a matrix product before they are done.

        Raises:
          NoBound: there are too many.
        """
        self.products += count
        if self.products > self.limits.products:
            raise NoBound(f"the program's matrix products take more than {self.limits.products} multiplications")

    def record(self, kind: str, operands: Sequence[int], made: Sequence[tuple[np.ndarray, np.ndarray]],
               location: str, detail: Any = None, picked: int = 0) -> tuple[int, ...]:
        """Stores a step and what it computed, as values and fingerprints; returns the slots.

        Raises:
          NoBound: the tape is full.
        """
        if len(self.steps) >= self.limits.steps:
            raise NoBound(f"the program executes more than {self.limits.steps} ops")
        read = [self.cells[slot] for slot in operands]
        constant = all(cells.constant for cells in read)
        exact = all(cells.exact for cells in read)
        slots = tuple(self.add(TracedTensor(value, prints, exact and (kind == "move" or value.dtype.kind in "iub"),
                                            constant))
                      for value, prints in made)
        self.steps.append(TraceStep(kind, tuple(operands), slots, location, detail, picked))
        return slots
