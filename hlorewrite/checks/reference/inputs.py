"""Inputs made from a seed: the same on every machine."""

from collections.abc import Callable
from typing import Literal

import numpy as np

from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.program import Array, LockstepProgram, Outcome
from hlorewrite.ir.binding import ir

_INTEGERS_BELOW = 4  # small enough to be a trip count, a branch or a row of a table
_INDICES = (-3, 24)
"""The range of indices: it goes past small tensors on both sides."""

Role = Literal["", "deciding", "indexing"]
"""The purpose of an integer: none in particular, a trip count or branch, or an index."""


def random_array(type_: ir.Type, generator: np.random.Generator, role: Role = "") -> Array:
    """An array of a tensor type.

    Args:
      type_: the type.
      generator: where the numbers come from.
      role: what integers are for.

    Returns:
      Standard normal numbers for floating-point and complex types; coin flips for ``i1``; of integers about half from
      0 to 3 and half from the whole range of the type, so that sums wrap around. Indices are half from 0 to 3 and half
      from -3 to 23, so that some are clamped; trip counts and branches are from 0 to 3.

    Raises:
      CannotExecute: numpy does not know the type.
    """
    dtype, shape = dtype_of(type_), tuple(ir.RankedTensorType(type_).shape)
    element = ir.RankedTensorType(type_).element_type
    if isinstance(element, ir.ComplexType):
        return np.asarray(generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    if isinstance(element, ir.IntegerType):
        below = np.asarray(generator.integers(0, 2 if element.width == 1 else _INTEGERS_BELOW, shape))
        if role == "deciding" or element.width == 1:
            return below.astype(dtype)
        if role == "indexing":
            low, high = range_of(element)
            wide = generator.integers(max(low, _INDICES[0]), min(high + 1, _INDICES[1]), shape)
            return np.where(generator.integers(0, 2, shape) == 1, wide, below).astype(dtype)
        raw = np.frombuffer(generator.bytes(below.size * max(1, element.width // 8)),
                            f"u{max(1, element.width // 8)}").reshape(shape)
        return np.where(generator.integers(0, 2, shape) == 1, raw.astype(dtype), below.astype(dtype))
    return np.asarray(generator.standard_normal(shape)).astype(dtype)


def range_of(element: ir.IntegerType) -> tuple[int, int]:
    """The smallest and the largest number of an integer type."""
    if element.is_unsigned:
        return 0, 2**element.width - 1
    return -(2**(element.width - 1)), 2**(element.width - 1) - 1


def roles(program: LockstepProgram) -> Callable[[int, int], Role]:
    """The purpose of each input of a program, by process and position."""
    count, control = len(program.input_types), program.control_inputs()

    def role(process: int, position: int) -> Role:
        at = process * count + position
        return "deciding" if at in control.deciding else "indexing" if at in control.indexing else ""
    return role


def random_inputs(program: LockstepProgram, seed: int, *, equal_scalars: bool = False) -> list[list[Array]]:
    """Inputs of a program, different for each process.

    Args:
      program: the program.
      seed: the seed.
      equal_scalars: give scalars of integer and truth type the same value in each process, so that trip counts and
        predicates agree.

    Returns:
      For each process, its inputs.
    """
    role = roles(program)
    rows = [[random_array(kind, np.random.default_rng([seed, process, position]), role(process, position))
             for position, kind in enumerate(program.input_types)] for process in range(program.processes)]
    if equal_scalars:
        for row in rows[1:]:
            for position, kind in enumerate(program.input_types):
                tensor = ir.RankedTensorType(kind)
                if not tensor.shape and isinstance(tensor.element_type, ir.IntegerType):
                    row[position] = rows[0][position]
    return rows


def run_on_random_inputs(program: LockstepProgram, seed: int) -> tuple[list[list[Array]], Outcome]:
    """Inputs of a program and what it computes from them; scalars are equal on all processes if it would hang
    otherwise.

    Args:
      program: the program.
      seed: the seed.

    Returns:
      The inputs of each process, and the outcome, which still hangs where equal scalars do not help.
    """
    inputs = random_inputs(program, seed)
    outcome = program.run(inputs)
    if not outcome.diverged:
        return inputs, outcome
    inputs = random_inputs(program, seed, equal_scalars=True)
    return inputs, program.run(inputs)
