"""Looks for inputs on which two modules compute different values; draws them, with a seed, from the kinds of values on
which rewrites go wrong.

Indices lie at the borders of dimensions and past them, counts are 0 and 1 among others, numbers are equal, cancel, or
lie at the ends of their types. A difference that rounding does not explain is a counterexample.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from hlorewrite.checks.reference.check import compare, same_bits
from hlorewrite.checks.reference.entries import EntryPair, entry_pairs
from hlorewrite.checks.reference.inputs import Role, random_array, random_inputs, range_of, roles
from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.program import Array, LockstepProgram, Outcome, prepare
from hlorewrite.checks.reference.range_check import range_faults
from hlorewrite.checks.reference.rounding.bounds import bounds_or_reason
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import Module, ir, nested_ops
from hlorewrite.util.tolerances import relative_tolerance

DRAWS = ("random", "borders", "few values", "counts of 0", "counts of 1", "past borders", "random, equal counts")
"""How inputs are drawn, in turns: draw n of a seed is of kind n modulo their number."""
_FEW = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
_COUNTS = {"counts of 0": 0, "counts of 1": 1}
_NARROW = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}
_MOST_SHOWN = 4


@dataclass(frozen=True)
class Counterexample:
    """Inputs on which two modules differ.

    Attributes:
      function: which public function.
      draw: the number of the draw; with the seed it gives the inputs again.
      kind: how they were drawn, one of ``DRAWS``, or ``extreme``.
      device: the process it is on.
      output: which result.
      place: which element.
      before: what the original computes there.
      after: what the other module computes.
      inputs: the small inputs of that process, as text.
      problem: a sentence, where no single element shows it.
    """

    function: str
    draw: int
    kind: str
    device: int = 0
    output: int = 0
    place: tuple[int, ...] = ()
    before: str = ""
    after: str = ""
    inputs: tuple[str, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"{self.problem} (draw {self.draw}, {self.kind})"
        at = f"[{', '.join(map(str, self.place))}]" if self.place else ""
        given = f" for {', '.join(self.inputs)}" if self.inputs else ""
        return (f"output {self.output}{at} on device {self.device} becomes {self.after} instead of {self.before}{given}"
                f" (draw {self.draw}, {self.kind})")


@dataclass(frozen=True)
class Refutation:
    """The result of executing two modules.

    Attributes:
      example: inputs on which they differ; None if none was found.
      equal: the number of draws on which they were equal.
      reason: why something was not executed.
    """

    example: Counterexample | None
    equal: int
    reason: str = ""


def refute(before: Module, after: Module, *, seed: int = 0, draws: int = len(DRAWS), seconds: float = 60.0
           ) -> Refutation:
    """Executes two modules, until they differ, on inputs of the kinds on which rewrites go wrong.

    Args:
      before: the original.
      after: the other module.
      seed: the seed of all draws.
      draws: how many inputs are tried; the extremes of types come after them.
      seconds: no further draw is begun after this time.

    Returns:
      The first counterexample, or how often both were equal.

    Raises:
      CannotExecute: one of them cannot be run.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> a = parse("func.func @f(%x: tensor<i32>) -> tensor<i32> {"
      ...           "%y = stablehlo.add %x, %x : tensor<i32>  return %y : tensor<i32> }")
      >>> b = parse(a.text().replace("add", "multiply"))
      >>> found = refute(a, b)
      >>> found.equal, found.example is not None
      (0, True)
    """
    until = time.monotonic() + seconds
    pairs = [pair for pair in entry_pairs(before, after) if pair.usual or pair.changed]
    if not pairs:
        raise CannotExecute("the module has no public function with a body", location=before.name,
                            hint="add a main function")
    equal, reason = draws, ""
    for pair in pairs:
        found = _of_function(pair, seed, draws, until)
        if found.example is not None:
            return found
        equal, reason = min(equal, found.equal), reason or found.reason
    return Refutation(None, equal, reason)


def _of_function(pair: EntryPair, seed: int, draws: int, until: float) -> Refutation:
    original = prepare(pair.before, pair.name)
    other = prepare(pair.after, pair.name, like=original)
    if [str(kind) for kind in (*original.input_types, *original.output_types)] != [
            str(kind) for kind in (*other.input_types, *other.output_types)] or original.processes != other.processes:
        return Refutation(Counterexample(pair.label, 0, DRAWS[0],
                                         problem=f"@{pair.label} is called differently"), 0)
    equal, reason = 0, ""
    for draw in range(draws):
        if draw and time.monotonic() > until:
            return Refutation(None, equal, "the time was up")
        inputs = drawn_inputs(original, seed, draw)
        expected = original.run(inputs)
        if expected.diverged:
            reason = "the original hangs on some inputs"
            continue
        made = other.run(inputs)
        example = _difference(pair.label, draw, (original, other), inputs, (expected, made))
        if example is not None:
            return Refutation(example, equal)
        equal += 1
    faults = range_faults(original, other, pair.label, seed) if equal and time.monotonic() < until else []
    if faults:
        return Refutation(Counterexample(pair.label, draws, "extreme", problem=faults[0]), equal)
    return Refutation(None, equal, reason)


def drawn_inputs(program: LockstepProgram, seed: int, draw: int) -> list[list[Array]]:
    """The inputs of a draw, for each process.

    Args:
      program: the original.
      seed: the seed of all draws.
      draw: its number.
    """
    kind = DRAWS[draw % len(DRAWS)]
    if kind in ("random", "random, equal counts"):
        return random_inputs(program, seed + draw, equal_scalars=kind != "random")
    role, sizes = roles(program), _sizes(program)
    rows = [[_array(type_, np.random.default_rng([seed, draw, process, position]), role(process, position), kind, sizes)
             for position, type_ in enumerate(program.input_types)] for process in range(program.processes)]
    for row in rows[1:]:  # trip counts and predicates agree, so that few programs hang
        for position, type_ in enumerate(program.input_types):
            tensor = ir.RankedTensorType(type_)
            if not tensor.shape and isinstance(tensor.element_type, ir.IntegerType):
                row[position] = rows[0][position]
    return rows


def _sizes(program: LockstepProgram) -> list[int]:
    """The sizes of all dimensions in a program: where indices reach borders."""
    found = {size for op in nested_ops(program.lowered.operation) for value in op.results
             if isinstance(value.type, ir.RankedTensorType) for size in ir.RankedTensorType(value.type).shape}
    return sorted(found | {size for type_ in program.input_types for size in ir.RankedTensorType(type_).shape})


def _array(type_: ir.Type, generator: np.random.Generator, role: Role, kind: str, sizes: Sequence[int]) -> Array:
    dtype, tensor = dtype_of(type_), ir.RankedTensorType(type_)
    shape, element = tuple(tensor.shape), tensor.element_type
    if not isinstance(element, ir.IntegerType):
        choice = _FEW if kind == "few values" else (0.0, 1.0, -1.0) if kind in _COUNTS else ()
        return np.asarray(generator.choice(choice, shape)).astype(dtype) if choice else random_array(type_, generator)
    if element.width == 1:
        return random_array(type_, generator)
    low, high = range_of(element)
    if role == "deciding":
        choice_of = [_COUNTS[kind]] if kind in _COUNTS else [0, 1, 2, 3]
    elif kind in _COUNTS:
        choice_of = [0, 1]
    elif kind == "past borders":
        last = max((0, *sizes))
        choice_of = [at for at in (last, last + 1, -last, -last - 1) if low <= at <= high]
        choice_of = choice_of if shape else [min(last, high)]
    else:
        borders = {at for size in (0, 1, *sizes) for at in (size - 1, size, size + 1, -size, -size - 1)}
        choice_of = sorted(at for at in (borders if kind == "borders" else {*borders, low, high}) if low <= at <= high)
    return np.asarray(generator.choice(np.array(choice_of, dtype=object), shape)).astype(dtype)


def _difference(function: str, draw: int, programs: tuple[LockstepProgram, LockstepProgram],
                inputs: Sequence[Sequence[Array]], outcomes: tuple[Outcome, Outcome]) -> Counterexample | None:
    """The element that differs most, where rounding does not explain it."""
    expected, made = outcomes
    if same_bits(expected, made) and not made.diverged:
        return None
    plain = compare(expected, made, function, None, None)
    bounds = bounds_or_reason(*programs, inputs) if not plain.problems else None
    found = compare(expected, made, function, None, bounds)
    kind = DRAWS[draw % len(DRAWS)]
    if found.problems:
        return Counterexample(function, draw, kind, problem=found.problems[0])
    allowed = max(map(_tolerance, programs))
    wrong = next((number for number, row in enumerate(found.rows)
                  if not row.equal and (row.bound is not None or row.relative > allowed)), None)
    if wrong is None:
        return None
    device, place = max(((process, at) for process in range(len(expected.outputs))
                         for at in [_farthest(expected.outputs[process][wrong], made.outputs[process][wrong])]),
                        key=lambda each: _apart(expected.outputs[each[0]][wrong][each[1]],
                                                made.outputs[each[0]][wrong][each[1]]))
    values = [str(outcome.outputs[device][wrong][place]) for outcome in outcomes]
    return Counterexample(function, draw, kind, device, wrong, place, before=values[0], after=values[1],
                          inputs=_shown(inputs[device]))


def _tolerance(program: LockstepProgram) -> float:
    """The relative error that the narrowest floats of a program allow, for outputs that have no bound of rounding."""
    elements = {str(ir.RankedTensorType(value.type).element_type) for op in nested_ops(program.lowered.operation)
                for value in op.results if isinstance(value.type, ir.RankedTensorType)}
    held = [np.dtype(dtype) for name, dtype in _NARROW.items() if name in elements]
    return max(map(relative_tolerance, held), default=0.0)


def _farthest(a: Array, b: Array) -> tuple[int, ...]:
    if a.size == 0:
        return (0,) * a.ndim
    apart = np.array([_apart(x, y) for x, y in zip(a.reshape(-1), b.reshape(-1), strict=True)])
    return tuple(int(n) for n in np.unravel_index(int(apart.argmax()), a.shape))


def _apart(a: object, b: object) -> float:
    with np.errstate(all="ignore"):
        if a == b or (a != a and b != b):
            return 0.0
        apart = abs(complex(a) - complex(b))  # type: ignore[arg-type]
        return float(apart) if apart == apart else float("inf")


def _shown(row: Sequence[Array]) -> tuple[str, ...]:
    """The scalars among some inputs, and short ones."""
    return tuple(f"argument {position} = {array.tolist()}" for position, array in enumerate(row)
                 if array.size <= _MOST_SHOWN)
