"""How far the outputs of a module and of a rewritten one may differ by rounding, on given inputs.

``|a - b| <= |a - f| + |b - f|`` for the results a and b of both programs and the real function f that both approximate.
Both distances come from an error analysis (`propagate.py`) that starts at a cut: elements that both programs compute
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
from hlorewrite.checks.reference.rounding.arithmetic import INTERPRETER, RoundingArithmetic
from hlorewrite.checks.reference.rounding.propagate import MOVED, ErrorAnalysis
from hlorewrite.checks.reference.rounding.replay import replay
from hlorewrite.checks.reference.rounding.trace import USUAL_LIMITS, ExecutionTrace, NoBound, TraceLimits
from hlorewrite.checks.reference.rounding.units import float_format
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.binding import ir

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
    except NoBound as error:
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
        raise NoBound(f"an op cannot be replayed: {error.what}", location=error.location) from None
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
             limits: TraceLimits = USUAL_LIMITS) -> Replayed:
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
            raise NoBound("the outputs have different shapes")
        most = (known[0].error + known[1].error) * _SLACK
        if arithmetic.repeats:
            most = np.where(first.prints == second.prints, 0.0, most)
        reason = next((each.reason for each in known if each.reason), "") if np.isinf(most).any() else ""
        made.append(OutputBound(most, reason))
    return made
