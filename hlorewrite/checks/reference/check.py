"""Executes a module before and after a rewrite, and compares the results."""

from collections.abc import Sequence
from dataclasses import replace

from hlorewrite.analysis.parameter_provenance import named, result_paths
from hlorewrite.checks.reference.compare import Comparison, compare, same_bits
from hlorewrite.checks.reference.entries import EntryPair, entry_pairs
from hlorewrite.checks.reference.inputs import run_on_random_inputs
from hlorewrite.checks.reference.program import LockstepProgram, prepare
from hlorewrite.checks.reference.range_check import range_faults
from hlorewrite.checks.reference.rounding.bounds import bounds_or_reason
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.programs import is_program, program_adapter


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
