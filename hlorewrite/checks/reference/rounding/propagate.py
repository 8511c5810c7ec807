"""Error bounds along a tape: for each element, how far it may be from what real numbers would give.

The reference is the program's function over the reals, applied to a cut: elements that both programs compute bit for
bit alike. Elements of the cut have no error. Each op after it adds its own roundings, relative to the computed result,
and passes on the errors of its operands (a running error analysis: Wilkinson 1986; Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd edition, section 3.3). A sum of n terms in any order is off by at most gamma_(n-1) times the
sum of the magnitudes of its terms (Higham, section 4.2, equation 4.4), a product of matrices by ``gamma_n |A| |B|``
(section 3.5, equation 3.13).

A probe is computed too: the program in float64 on a cut whose elements were moved a little, each by itself. Two
programs whose probes agree are equal as functions of the cut, not only on its values (`bounds.py`).
"""

from dataclasses import dataclass

import numpy as np

from hlorewrite.checks.reference.rounding import fingerprint
from hlorewrite.checks.reference.rounding.arithmetic import RoundingArithmetic
from hlorewrite.checks.reference.rounding.op_errors import Known, of_sums, of_terms, of_updates, on_elements
from hlorewrite.checks.reference.rounding.trace import ExecutionTrace, NoBound, TracedTensor, TraceStep
from hlorewrite.checks.reference.rounding.units import carry, float_format
from hlorewrite.ops.elementwise import FUNCTIONS

MOVED = 2.0**-12
"""How far an element of the cut is moved for the probe, relative to its magnitude, at most."""


@dataclass(frozen=True)
class Tracked:
    """What is known about a computed tensor.

    Attributes:
      error: how far each element may be from the exact one, absolute; infinite if nothing is known.
      probe: the exact function, evaluated at slightly moved values of the cut.
      reason: why an error is infinite; empty when none is.
    """

    error: np.ndarray
    probe: np.ndarray
    reason: str = ""


class ErrorAnalysis:
    """Errors of the tensors of one tape.

    Args:
      tape: what was computed.
      shared: fingerprints of the other program, sorted; empty if only inputs are the cut.
      arithmetic: what executes the program.
    """

    def __init__(self, tape: ExecutionTrace, shared: np.ndarray, arithmetic: RoundingArithmetic) -> None:
        self.tape = tape
        self.shared = shared
        self.arithmetic = arithmetic
        self.tracked: list[Tracked | None] = [None] * len(tape.cells)
        self._run()

    def of(self, slot: int) -> Tracked:
        """What is known about a tensor; an input or constant is exact."""
        known = self.tracked[slot]
        if known is None:
            cells = self.tape.cells[slot]
            known = self.tracked[slot] = Tracked(np.zeros(cells.value.shape), self._moved(cells))
        return known

    def in_cut(self, cells: TracedTensor) -> np.ndarray:
        """The elements that the other program computes in the same way.

        What is computed from constants alone is left out: a rewrite may fold constants, and relations between folded
        constants hold up to rounding only.
        """
        if not len(self.shared) or (cells.constant and not cells.exact):
            return np.zeros(cells.value.shape, bool)
        at = np.minimum(np.searchsorted(self.shared, cells.prints), len(self.shared) - 1)
        return self.shared[at] == cells.prints

    def _moved(self, cells: TracedTensor) -> np.ndarray:
        value = carry(cells.value)
        if cells.constant or float_format(cells.value.dtype) is None:
            return value
        return value * (1 + MOVED * fingerprint.noise(cells.prints))

    def _run(self) -> None:
        with np.errstate(all="ignore"):
            for step in self.tape.steps:
                if step.kind == "decision":
                    self._decided(step)
                    continue
                for position, slot in enumerate(step.results):
                    self.tracked[slot] = self._result(step, position)

    def _decided(self, step: TraceStep) -> None:
        known = self.of(step.operands[0])
        if known.error.any():
            name = step.detail.removeprefix("stablehlo.")
            raise NoBound(f"{name} is decided by a value that differs", location=step.location or None)

    def _result(self, step: TraceStep, position: int) -> Tracked:
        cells = self.tape.cells[step.results[position]]
        alike = self.in_cut(cells)
        moved = self._moved(cells)
        if alike.all() and alike.size:
            return Tracked(np.zeros(alike.shape), moved)
        read = [Known(carry(self.tape.cells[slot].value), self.of(slot).error, self.of(slot).probe,
                      float_format(self.tape.cells[slot].value.dtype)) for slot in step.operands]
        error, probe = self._by_kind(step, cells, read)
        error = np.where(alike, 0, np.where(np.isnan(error), np.inf, error))
        probe = np.where(alike, moved, probe)
        reason = ""
        if np.isinf(error).any():
            before = [self.of(slot).reason for slot in step.operands if self.of(slot).reason]
            reason = before[0] if before else _reason(step, read, carry(cells.value))
        return Tracked(error, probe, reason)

    def _by_kind(self, step: TraceStep, cells: TracedTensor, read: list[Known]) -> tuple[np.ndarray, np.ndarray]:
        if step.kind == "move":
            return _moved_about(step, read)
        form = float_format(cells.value.dtype)
        if step.kind == "convolution" and self.arithmetic.products and form is not None:
            return np.full(cells.value.shape, np.inf), carry(cells.value)
        if step.kind in ("dot_general", "convolution"):
            return of_sums(step.detail, read, carry(cells.value), form, self.arithmetic)
        if step.kind == "reduce":
            return of_terms(step.detail, read, carry(cells.value), form, self.arithmetic)
        if step.kind == "scatter":
            return of_updates(step.detail, read, carry(cells.value), form, self.arithmetic)
        if step.kind == "bits":
            return np.where(read[0].error > 0, np.inf, 0.0), carry(cells.value)
        if step.kind == "select":
            return _selected(read)
        if step.kind == "compare":
            return _compared(read, cells.value)
        if step.kind in FUNCTIONS or step.kind == "convert":
            return on_elements(step.kind, read, carry(cells.value), form, self.arithmetic)
        whole = 0.0 if form is None and not any(known.error.any() for known in read) else np.inf
        return np.full(cells.value.shape, whole), carry(cells.value)


def _moved_about(step: TraceStep, read: list[Known]) -> tuple[np.ndarray, np.ndarray]:
    """Elements picked by indices; an index that differs may pick any."""
    held = read[step.picked:]
    error = np.concatenate([known.error.reshape(-1) for known in held])[step.detail]
    if any(known.error.any() for known in read[:step.picked]):
        error = np.full(error.shape, np.inf)
    return error, np.concatenate([known.probe.reshape(-1) for known in held])[step.detail]


def _selected(read: list[Known]) -> tuple[np.ndarray, np.ndarray]:
    """Where the predicate differs, the other operand may be the exact one."""
    predicate, yes, no = read
    error = np.where(predicate.value, yes.error, no.error)
    other = _apart(yes, no) + 3 * np.maximum(yes.error, no.error)
    same = np.broadcast_to(predicate.error == 0, error.shape)
    return np.where(same, error, other), np.where(predicate.value, yes.probe, no.probe)


def _compared(read: list[Known], result: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A truth value differs where its operands are nearer to each other than their errors."""
    left, right = read
    reach = 2 * (left.error + right.error)  # of a replayed value, the exact and the computed one on both sides
    certain = (reach == 0) | (_apart(left, right) > reach)
    return np.where(certain, 0.0, np.inf), result


def _apart(a: Known, b: Known) -> np.ndarray:
    """The distance of elements; truth values are 0 and 1, and unsigned integers do not wrap around."""
    return np.abs(np.subtract(*(each.value if each.form else each.value.astype(np.float64) for each in (a, b))))


def _reason(step: TraceStep, read: list[Known], result: np.ndarray) -> str:
    name = str(step.detail if step.kind == "opaque" else step.kind).removeprefix("stablehlo.")
    where = f" ({step.location})" if step.location else ""
    if step.picked and any(known.error.any() for known in read[:step.picked]):
        return f"an index is computed from a value that differs{where}"
    if step.kind == "convolution" and np.isfinite(result).all() and all(np.isfinite(k.value).all() for k in read):
        return f"convolution may be computed by an algorithm other than sums of products{where}"
    if step.kind == "opaque":
        return f"{name} reads a value that differs, or is in only one module{where}"
    if any(not np.isfinite(known.value).all() for known in read if known.form):
        return f"{name} reads an infinity or NaN{where}"
    if not np.isfinite(result).all():
        return f"{name} overflows{where}"
    return f"{name} reads a value that differs by too much{where}"


