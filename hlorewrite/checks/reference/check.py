"""Executes a module before and after a rewrite, and compares the results up to rounding of their types."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from hlorewrite.analysis.parameter_provenance import named, result_paths
from hlorewrite.checks.reference.entries import EntryPair, entry_pairs
from hlorewrite.checks.reference.inputs import run_on_random_inputs
from hlorewrite.checks.reference.program import Array, LockstepProgram, Outcome, prepare
from hlorewrite.checks.reference.range_check import range_faults
from hlorewrite.checks.reference.rounding.bounds import RoundingBounds, bounds_or_reason
from hlorewrite.checks.reference.rounding.tightest_bound import apart_by, at_largest, bound_lines, nearest, share
from hlorewrite.errors import CannotExecute, ValuesDiffer
from hlorewrite.ir import Module, View
from hlorewrite.passmanager.programs import is_program, program_adapter
from hlorewrite.util.tolerances import relative_tolerance


def check(before: Module, after: Module, *, seed: int = 0, tolerance: float | None = None,
          functions: Sequence[str] | None = None) -> Comparison:
    """Executes ``main`` of two modules and every other public function that differs, or programs of several meshes.

    Inputs are standard normal numbers, and extreme ones (`range_check.py`), equal for both.

    Args:
      before: the original.
      after: the rewritten module.
      seed: the seed of the inputs.
      tolerance: relative tolerance of floating-point outputs; by default what rounding explains is compared
        (`rounding.bounds`), and what the type allows where there is no bound.
      functions: which functions, by label (`entries.py`); by default ``main``, or all public ones where there is none,
        and every other public one that differs.

    Returns:
      A row for each output. A note names each function that differs, is not usual to execute, and cannot be.

    Raises:
      CannotExecute: something cannot be run; the sentence says what.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> a = parse("func.func @f(%x: tensor<f32>) -> tensor<f32> {"
      ...           "%y = stablehlo.add %x, %x : tensor<f32>  return %y : tensor<f32> }")
      >>> b = parse("func.func @f(%x: tensor<f32>) -> tensor<f32> {"
      ...           "%y = stablehlo.multiply %x, %x : tensor<f32>  return %y : tensor<f32> }")
      >>> check(a, a).equal, check(a, b).equal
      (True, False)
    """
    before, after = (program_adapter(each).sequential(each) if is_program(each) else each for each in (before, after))
    pairs = entry_pairs(before, after)
    if not pairs:
        raise CannotExecute("the module has no public function with a body", location=before.name,
                            hint="add a main function")
    asked = [pair for pair in pairs if (pair.usual or pair.changed if functions is None else pair.label in functions)]
    return _joined([_check_or_note(pair, seed, tolerance) for pair in asked])


def _joined(reports: Sequence[Comparison]) -> Comparison:
    return Comparison(*(tuple(each for report in reports for each in getattr(report, part))
                        for part in ("rows", "problems", "notes")))


def _check_or_note(pair: EntryPair, seed: int, tolerance: float | None) -> Comparison:
    """The comparison of one function; a note instead if it is a further function that cannot be executed."""
    try:
        return _check_function(pair, seed, tolerance)
    except CannotExecute as error:
        if pair.usual:
            raise
        return Comparison((), notes=(f"@{pair.label} differs and was not executed: {error.what}",))


def _check_function(pair: EntryPair, seed: int, tolerance: float | None) -> Comparison:
    before, after, name = pair.before, pair.after, pair.label
    original = prepare(before, pair.name)
    rewritten = prepare(after, pair.name, like=original)
    if _face(original) != _face(rewritten):
        return Comparison((), (f"@{name} has another signature after the passes",))
    inputs, expected = run_on_random_inputs(original, seed)
    if expected.diverged:
        raise CannotExecute(f"in @{name} some devices of a group reach a collective that others skip",
                            location=before.name, hint="the module hangs on these inputs; try another --seed"
                            if original.divergence_reads_inputs() else
                            "the module hangs on any inputs: a branch or a trip count depends on the device's id")
    made = rewritten.run(inputs)
    needs_bounds = tolerance is None and not same_bits(expected, made)  # no bound is smaller than no difference
    found = compare(expected, made, name, tolerance,
                    bounds_or_reason(original, rewritten, inputs) if needs_bounds else None)
    paths = result_paths(View(before).functions[pair.name], len(found.rows))
    found = replace(found, rows=tuple(replace(row, output=named(row.output, path))
                                      for row, path in zip(found.rows, paths, strict=True)))
    if not found.equal:
        return found
    return replace(found, problems=tuple(range_faults(original, rewritten, name, seed)))


def _face(program: LockstepProgram) -> tuple[object, ...]:
    return (program.processes, [str(kind) for kind in program.input_types],
            [str(kind) for kind in program.output_types])


# ---- whether two outcomes are the same, up to rounding of their types


@dataclass(frozen=True)
class OutputComparison:
    """How far one output is off, over all processes.

    Attributes:
      output: ``@function`` and the number of the output.
      shape: its shape.
      dtype: its type.
      absolute: the largest absolute error.
      relative: that error over the largest number of the tensor.
      tolerance: the relative error allowed where no bound is compared.
      equal: whether it is within its bound, or within tolerance.
      difference: the absolute error of the element nearest to its bound; None if no bound is compared.
      bound: what rounding explains at most of that element's error.
      bound_at_largest: what rounding explains at most of ``absolute``, at its element.
      reason: why there is no bound.
    """

    output: str
    shape: tuple[int, ...]
    dtype: str
    absolute: float
    relative: float
    tolerance: float
    equal: bool
    difference: float | None = None
    bound: float | None = None
    bound_at_largest: float | None = None
    reason: str = ""

    @property
    def allowed(self) -> str:
        """The limit on the largest error, or on one that is above its bound: a bound or a relative tolerance."""
        if self.bound is None:
            return f"{self.tolerance:.3g} relative"
        bound = self.bound_at_largest if self.equal else self.bound
        return f"{bound:.3g}" if bound or self.difference else "no difference"


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    Attributes:
      rows: one for each output.
      problems: messages about what is wrong beyond values (devices that would wait forever).
      notes: messages about what was not executed.
    """

    rows: tuple[OutputComparison, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether all outputs are as before."""
        return not self.problems and all(row.equal for row in self.rows)

    def table(self) -> str:
        """One line for each output, and what was not executed."""
        from hlorewrite.util.tables import numbers_right, table
        rows = [["output", "shape", "type", "max abs error", "max rel error", "allowed", ""]]
        rows += [[r.output, "x".join(map(str, r.shape)) or "scalar", r.dtype, f"{r.absolute:.3g}", f"{r.relative:.3g}",
                  r.allowed, "equal" if r.equal else "DIFFERS"] for r in self.rows]
        lines = [*table(rows, numbers_right(rows)), *bound_lines([(r.output, r.difference, r.bound, r.reason)
                                                                  for r in self.rows]), *self.notes]
        return "".join(f"{line}\n" for line in lines)

    def to_json(self) -> str:
        """The same as one JSON object; ``from_json`` reads it back."""
        return json.dumps({"rows": [asdict(row) for row in self.rows], "problems": list(self.problems),
                           "notes": list(self.notes)})

    @staticmethod
    def from_json(text: str) -> Comparison:
        """The inverse of ``to_json``."""
        data = json.loads(text)
        return Comparison(tuple(OutputComparison(**{**row, "shape": tuple(row["shape"])}) for row in data["rows"]),
                          tuple(data["problems"]), tuple(data["notes"]))

    def raise_if_different(self, location: str) -> None:
        """Raises an error for what differs, if anything does.

        Raises:
          ValuesDiffer: with the worst output, or the first problem.
        """
        if self.problems:
            raise ValuesDiffer(self.problems[0], location=location, hint="see --trace for the rewrites")
        wrong = [row for row in self.rows if not row.equal]
        if wrong:
            worst = max(wrong, key=lambda row: np.inf if np.isnan(row.relative) else row.relative)
            allowed = f"allowed {worst.tolerance:.3g}" if worst.bound is None else \
                f"and by {worst.difference:.3g} where rounding explains {worst.bound:.3g}"
            raise ValuesDiffer(f"output {worst.output} differs after the passes: relative error {worst.relative:.3g}, "
                               f"{allowed}", location=location,
                               hint="see --trace for the rewrites")


def compare(before: Outcome, after: Outcome, name: str = "", tolerance: float | None = None,
            rounding: RoundingBounds | None = None) -> Comparison:
    """Compares two outcomes of the same inputs.

    Args:
      before: what the original computed.
      after: what the rewritten program computed.
      name: the function's name.
      tolerance: relative tolerance of floating-point outputs; by default what their type allows.
      rounding: what rounding may change; compared instead of a tolerance where there is a bound. It need not be
        computed where the outcomes are equal bit for bit.

    Returns:
      A row for each output; faults that the original already has do not count against the rewritten program.
    """
    problems = []
    if after.diverged and not before.diverged:
        problems.append(f"devices of one group would wait for each other forever in @{name} after the passes")
    if after.replicas_differ and not before.replicas_differ:
        problems.append(f"replicas of one result differ between devices in @{name} after the passes")
    if len(before.outputs) != len(after.outputs) or len(before.outputs[0]) != len(after.outputs[0]):
        return Comparison((), (*problems, f"@{name} has a different number of results or devices after the passes"))
    identical = tolerance is None and rounding is None and same_bits(before, after)
    rows = []
    for k in range(len(before.outputs[0])):
        row = _row(f"@{name} #{k}", [o[k] for o in before.outputs], [o[k] for o in after.outputs], tolerance)
        if identical:
            row = replace(row, difference=0.0, bound=0.0, bound_at_largest=0.0)
        rows.append(row if rounding is None else _within(row, rounding, k, before, after))
    return Comparison(tuple(rows), tuple(problems))


def same_bits(before: Outcome, after: Outcome) -> bool:
    """Whether two outcomes are equal bit for bit, so that no rounding bound can change the verdict."""
    pairs = zip(before.outputs, after.outputs, strict=False)
    return len(before.outputs) == len(after.outputs) and all(
        len(a) == len(b) and all(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
                                 for x, y in zip(a, b, strict=True)) for a, b in pairs)


def _within(row: OutputComparison, rounding: RoundingBounds, position: int, before: Outcome, after: Outcome
            ) -> OutputComparison:
    """A row by its bound; where there is none it keeps its tolerance, and says why."""
    reason = rounding.reason_of(position)
    if reason or np.isinf(row.absolute):
        return replace(row, reason=reason)
    near, largest = [], []
    for a, b, bounds in zip(before.outputs, after.outputs, rounding.outputs, strict=True):
        most = bounds[position].most
        near.append(nearest(a[position], b[position], most))
        largest.append(at_largest(apart_by(a[position], b[position]), most.reshape(-1)))
    difference, bound = max(near, key=share)
    return replace(row, difference=difference, bound=bound, bound_at_largest=max(largest)[1], equal=difference <= bound)


def _row(output: str, expected: Sequence[Array], actual: Sequence[Array], tolerance: float | None) -> OutputComparison:
    dtype = expected[0].dtype
    allowed = relative_tolerance(dtype)
    if tolerance is not None and allowed:
        allowed = tolerance
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(expected, actual, strict=True)):
        return OutputComparison(output, expected[0].shape, str(dtype), absolute=float("inf"), relative=float("inf"),
                                tolerance=allowed, equal=False)
    errors = [error_of(a, b) for a, b in zip(expected, actual, strict=True)]
    absolute, relative = (max(column) for column in zip(*errors, strict=True))
    return OutputComparison(output, expected[0].shape, str(dtype), absolute=absolute, relative=relative,
                            tolerance=allowed, equal=bool(relative <= allowed))


def error_of(expected: Array, actual: Array) -> tuple[float, float]:
    """(largest absolute error, the same over the largest finite number expected); infinite if NaN or an infinity is on
    only one side.

    Example:
      >>> error_of(np.array([1.0, np.nan]), np.array([1.5, np.nan]))
      (0.5, 0.5)
      >>> error_of(np.array([1.0]), np.array([np.nan]))
      (inf, inf)
    """
    if expected.size == 0:
        return 0.0, 0.0
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    if expected.dtype.kind in "iub":
        return (0.0, 0.0) if np.array_equal(expected, actual) else _integer_error(expected, actual)
    a, b = expected.astype(wide), actual.astype(wide)
    both = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.all(both | same):
        return float("inf"), float("inf")
    if not both.any():
        return 0.0, 0.0
    absolute = float(np.abs(a[both] - b[both]).max())
    largest = float(np.abs(a[both]).max())
    return absolute, absolute / largest if largest > 1e-6 else absolute


def _integer_error(a: Array, b: Array) -> tuple[float, float]:
    absolute = float(max(abs(int(x) - int(y)) for x, y in zip(a.ravel(), b.ravel(), strict=True)))
    return absolute, absolute / max(1.0, float(max(abs(int(x)) for x in a.ravel())))
