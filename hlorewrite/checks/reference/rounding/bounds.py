"""How far the outputs of a module and of a rewritten one may differ by rounding, on given inputs.

``|a - b| <= |a - f| + |b - f|`` for the results a and b of both programs and the real function f that both approximate.
Both distances come from an error analysis that starts at a cut: elements that both programs compute
bit for bit alike, which their fingerprints say. The bound of the ops after the cut alone is smaller by orders of
magnitude than one from the inputs.

The bound needs that both programs are one function of the cut, not only on the values that the cut has. A sum that one
program takes from the cut, and the other forms again from terms in the cut, breaks this: the rounding of the shared sum
would be left out. So both programs are also evaluated in float64 on a cut whose elements were moved, each by itself, by
up to 2**-12. Where results differ then, more than a rounding of the cut accounts for, the cut is given up and the
analysis starts at the inputs. A function that is zero on the moved cut by chance is the only way to be wrong (Schwartz
1980; Zippel 1979).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlorewrite.checks.reference.interpreter import carrier_of
from hlorewrite.checks.reference.program import LockstepProgram
from hlorewrite.checks.reference.rounding import fingerprint, trace
from hlorewrite.checks.reference.rounding.op_errors import Known, of_sums, of_terms, of_updates, on_elements
from hlorewrite.checks.reference.rounding.replay import replay
from hlorewrite.checks.reference.rounding.trace import ExecutionTrace, TracedTensor
from hlorewrite.checks.reference.rounding.units import INTERPRETER, RoundingArithmetic, carry, float_format
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.binding import ir
from hlorewrite.ops.elementwise import FUNCTIONS

# ---- error bounds along a tape: for each element, how far it may be from what real numbers would give

# The reference is the program's function over the reals, applied to a cut: elements that both programs compute bit for
# bit alike. Elements of the cut have no error. Each op after it adds its own roundings, relative to the computed
# result, and passes on the errors of its operands (a running error analysis: Wilkinson 1986; Higham, "Accuracy and
# Stability of Numerical Algorithms", 2nd edition, section 3.3). A sum of n terms in any order is off by at most
# gamma_(n-1) times the sum of the magnitudes of its terms (Higham, section 4.2, equation 4.4), a product of matrices by
# ``gamma_n |A| |B|`` (section 3.5, equation 3.13).
#
# A probe is computed too: the program in float64 on a cut whose elements were moved a little, each by itself. Two
# programs whose probes agree are equal as functions of the cut, not only on its values (`bounds.py`).


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

    def _decided(self, step: trace.TraceStep) -> None:
        known = self.of(step.operands[0])
        if known.error.any():
            name = step.detail.removeprefix("stablehlo.")
            raise trace.NoBound(f"{name} is decided by a value that differs", location=step.location or None)

    def _result(self, step: trace.TraceStep, position: int) -> Tracked:
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

    def _by_kind(self, step: trace.TraceStep, cells: TracedTensor, read: list[Known]) -> tuple[np.ndarray, np.ndarray]:
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


def _moved_about(step: trace.TraceStep, read: list[Known]) -> tuple[np.ndarray, np.ndarray]:
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


def _reason(step: trace.TraceStep, read: list[Known], result: np.ndarray) -> str:
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


# ---- bounds of outputs


_SLACK = 1 + 2.0**-20
"""The bound is itself computed in float64."""
_UNACCOUNTED = 2.0**-6
"""Error from roundings in the cut, relative to the bound, above which the cut is not used."""


@dataclass(frozen=True)
class OutputBound:
    """The bound of one output of one process.

    Attributes:
      most: for each element, how far original and rewritten module may differ, absolute; infinite if no bound is
        known.
      reason: why there is no bound for some element; empty when there is one for all.
    """

    most: np.ndarray
    reason: str = ""

    @property
    def largest(self) -> float:
        """The largest bound of an element; 0 if both modules compute the same bits."""
        return float(self.most.max(initial=0.0))


@dataclass(frozen=True)
class RoundingBounds:
    """Bounds of all outputs of a program.

    Attributes:
      outputs: for each process, a bound for each output.
      reason: why there are none at all.
      tolerances: for each output the smallest relative tolerance that makes sense where it has no bound; empty for
        none.
    """

    outputs: tuple[tuple[OutputBound, ...], ...] = ()
    reason: str = ""
    tolerances: tuple[float, ...] = ()

    def reason_of(self, position: int) -> str:
        """Why some element of an output has no bound; empty when all have one."""
        return self.reason or next((row[position].reason for row in self.outputs if row[position].reason), "")

    def tolerance_of(self, position: int) -> float:
        """The smallest relative tolerance of an output without a bound; 0 if nothing is known about it."""
        return self.tolerances[position] if position < len(self.tolerances) else 0.0

    def of_output(self, position: int) -> tuple[float | None, str]:
        """The largest bound of an output's elements on any process, or None and why there is none."""
        reason = self.reason_of(position)
        return (None, reason) if reason else (max(row[position].largest for row in self.outputs), "")


def bounds_or_reason(before: LockstepProgram, after: LockstepProgram, inputs: Sequence[Sequence[np.ndarray]],
                     arithmetic: RoundingArithmetic = INTERPRETER) -> RoundingBounds:
    """`bounds`, or the sentence that says why there are none."""
    try:
        return RoundingBounds(bounds(before, after, inputs, arithmetic))
    except trace.NoBound as error:
        return RoundingBounds(reason=f"{error.what} ({error.location})" if error.location else error.what)


@dataclass(frozen=True)
class Replayed:
    """A run in numpy: the tape, and the slots of the outputs of one process after the other."""

    tape: ExecutionTrace
    outputs: list[int]

    def values(self) -> list[np.ndarray]:
        """The values of the outputs."""
        return [self.tape.cells[slot].value for slot in self.outputs]


def bounds(before: LockstepProgram, after: LockstepProgram, inputs: Sequence[Sequence[np.ndarray]],
           arithmetic: RoundingArithmetic = INTERPRETER) -> tuple[tuple[OutputBound, ...], ...]:
    """Bounds of what rounding may change between two programs that compute the same in real numbers.

    Args:
      before: the original.
      after: the rewritten program.
      inputs: for each process, its inputs.
      arithmetic: what executes both.

    Returns:
      For each process, a bound for each output.

    Raises:
      NoBound: a loop or branch depends on rounding, or the program is too large to be replayed.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.checks.reference.program import prepare
      >>> def sums(text):
      ...     return prepare(parse("func.func @main(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>) -> tensor<f32> {"
      ...                          f"{text} return %y : tensor<f32> }}"))
      >>> one = sums("%x = stablehlo.add %a, %b : tensor<f32>  %y = stablehlo.add %x, %c : tensor<f32>")
      >>> other = sums("%x = stablehlo.add %b, %c : tensor<f32>  %y = stablehlo.add %a, %x : tensor<f32>")
      >>> numbers = [[np.float32(0.3), np.float32(0.5), np.float32(0.7)]]
      >>> [[bound]] = bounds(one, other, numbers)
      >>> f"{bound.largest / 2.0**-24:.2f} unit roundoffs"
      '5.00 unit roundoffs'
    """
    try:
        runs = [replayed(program, inputs, in_order=arithmetic.repeats) for program in (before, after)]
    except CannotExecute as error:
        raise trace.NoBound(f"an op cannot be replayed: {error.what}", location=error.location) from None
    made, count = bounds_of_runs(runs, arithmetic), len(before.output_types)
    return tuple(tuple(made[process * count:(process + 1) * count]) for process in range(before.processes))


def bounds_of_runs(runs: Sequence[Replayed], arithmetic: RoundingArithmetic) -> list[OutputBound]:
    """The same for two runs on equal inputs, for the outputs of one process after the other.

    Raises:
      NoBound: a loop or branch depends on rounding.
    """
    found = _from_cut(runs, arithmetic) if arithmetic.repeats else None
    return found or _combined(runs, [ErrorAnalysis(run.tape, np.zeros(0, np.uint64), arithmetic) for run in runs],
                              arithmetic)


def replayed(program: LockstepProgram, inputs: Sequence[Sequence[np.ndarray]], *, in_order: bool = True,
             limits: trace.TraceLimits = trace.USUAL_LIMITS) -> Replayed:
    """A program's run on inputs of each process, as `replay` makes it."""
    flat = [np.asarray(array) for row in inputs for array in row]
    return Replayed(*replay(program.lowered, flat, _outputs(program), in_order=in_order, limits=limits))


def _outputs(program: LockstepProgram) -> list[ir.Value]:
    """The outputs in their own types: before the ops that make them readable from Python."""
    operands = iter(program.lowered.body.operations[0].operation.regions[0].blocks[0].operations[-1].operation.operands)
    values = []
    for _ in range(program.processes):
        for type_ in program.output_types:
            value = next(operands)
            split = isinstance(ir.RankedTensorType(type_).element_type, ir.ComplexType)
            if split:
                next(operands)
            values.append(value.owner.operands[0] if split or carrier_of(type_) else value)
    return values


def _from_cut(runs: Sequence[Replayed], arithmetic: RoundingArithmetic) -> list[OutputBound] | None:
    """Bounds from what both programs share; None if they are not one function of it."""
    prints = [np.unique(np.concatenate([cells.prints.reshape(-1) for cells in run.tape.cells])) for run in runs]
    analyses = [ErrorAnalysis(run.tape, other, arithmetic)
                for run, other in zip(runs, reversed(prints), strict=True)]
    made = _combined(runs, analyses, arithmetic)
    for position, bound in enumerate(made):
        first, second = (each.of(run.outputs[position]) for each, run in zip(analyses, runs, strict=True))
        form = float_format(runs[0].tape.cells[runs[0].outputs[position]].value.dtype)
        if form is None:
            continue
        with np.errstate(all="ignore"):
            apart = np.abs(first.probe - second.probe) * (form.unit / MOVED)
            if np.any(np.isfinite(bound.most) & (apart > _UNACCOUNTED * bound.most)):
                return None
    return made


def _combined(runs: Sequence[Replayed], analyses: list[ErrorAnalysis], arithmetic: RoundingArithmetic
              ) -> list[OutputBound]:
    made = []
    for slots in zip(*(run.outputs for run in runs), strict=True):
        first, second = (run.tape.cells[slot] for run, slot in zip(runs, slots, strict=True))
        known = [analysis.of(slot) for analysis, slot in zip(analyses, slots, strict=True)]
        if first.value.shape != second.value.shape:
            raise trace.NoBound("the outputs have different shapes")
        most = (known[0].error + known[1].error) * _SLACK
        if arithmetic.repeats:
            most = np.where(first.prints == second.prints, 0.0, most)
        reason = next((each.reason for each in known if each.reason), "") if np.isinf(most).any() else ""
        made.append(OutputBound(most, reason))
    return made
