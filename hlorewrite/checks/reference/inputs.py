"""Inputs made from a seed, ordinary and extreme ones: the same on every machine."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.program import Array, LockstepProgram, Outcome
from hlorewrite.checks.reference.rounding.units import float_format, is_narrow
from hlorewrite.ir import ir, nested_ops

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


# ---- inputs of extreme values: large, cancelling and tiny ones, and integers next to the ends of their type


Kind = Literal["large", "large negative", "cancelling", "tiny"]
KINDS: tuple[Kind, ...] = ("large", "large negative", "cancelling", "tiny")
"""What is drawn, in this order."""
OF_INTEGERS: tuple[Kind, ...] = ("large", "large negative")
"""The same for programs without floating-point numbers."""
OF_WIDE: tuple[Kind, ...] = ("cancelling", "tiny")
"""For programs whose floating-point formats are wide."""
SHARES = (1.0, 0.5, 0.25, 0.125)
"""How far numbers are from one, as parts of the exponents that a type has."""
_EDGE = 24
"""How many bits numbers stay away from the limits of formats whose range no training run comes near: float32 and the
like."""
_PLACES = 4
"""Cancelling numbers differ by up to this many units in the last place."""
_NEAR = 4
"""Integers are at most this far from the ends of their type."""


@dataclass(frozen=True)
class Exponents:
    """How large and how small the inputs of a program are, so that they fit its narrowest floating-point range.

    Attributes:
      top: exponent of the largest.
      bottom: exponent of the tiniest.
      least: the smallest number that is drawn; 0 if that is ``bottom``.
      added: exponents that a sum over all devices takes.
      narrow: whether a format is among them whose range training comes near.
    """

    top: int
    bottom: int
    least: float
    added: int
    narrow: bool


def exponents_of(program: LockstepProgram) -> Exponents | None:
    """The exponents of inputs for a program; None if nothing in it is a floating-point number.

    Raises:
      CannotExecute: numpy does not know a type.
    """
    forms = [form for form in map(float_format, _dtypes(program)) if form is not None]
    if not forms:
        return None
    edge = {form: 0 if is_narrow(form) else _EDGE for form in forms}
    low = max(forms, key=lambda form: math.log2(form.normal) + edge[form])
    return Exponents(min(math.floor(math.log2(form.largest)) - edge[form] for form in forms),
                     math.ceil(math.log2(low.normal)) + edge[low], 2 * low.underflow if is_narrow(low) else 0.0,
                     math.ceil(math.log2(program.devices)), any(map(is_narrow, forms)))


def extreme_inputs(program: LockstepProgram, seed: int, kind: Kind, share: float, size: Exponents | None
                   ) -> list[list[Array]]:
    """Inputs of extreme values: in any order, the sums of one input over all devices stay in range.

    Args:
      program: the program.
      seed: the seed.
      kind: ``large`` ones have one sign; ``cancelling`` ones differ in their signs, and add up to about zero over
        every axis and every group of devices of a power of two; ``tiny`` ones are equal.
      share: which part of the exponents is used.
      size: the exponents; None for integers only.

    Returns:
      For each process, its inputs; scalar integers are the same on all.
    """
    role = roles(program)
    return [[_array(type_, np.random.default_rng([seed, position]), role(process, position),
                    _InputPlace(process, position), kind, share, size=size)
             for position, type_ in enumerate(program.input_types)] for process in range(program.processes)]


@dataclass(frozen=True)
class _InputPlace:
    process: int
    position: int


def _array(type_: ir.Type, generator: np.random.Generator, role: Role, place: _InputPlace, kind: Kind, share: float,
           *, size: Exponents | None) -> Array:
    dtype, shape = dtype_of(type_), tuple(ir.RankedTensorType(type_).shape)
    form = float_format(dtype)
    if form is None or size is None:
        return _integers(type_, generator, role, share, kind == "large negative")
    if kind == "tiny":
        number = 3 * size.least if size.least and share == 1 else 1.5 * 2.0**(size.bottom * share)
        made = np.full(shape, number)
    elif kind == "cancelling":
        places = min(_PLACES, 1 + int(0.125 / form.unit))
        size_each = 1.5 + 2 * form.unit * generator.integers(0, places, shape)
        half = min(size.top - 1, size.top + 1 - size.added)  # what has one sign adds up to less than the largest number
        made = _signs(shape, place) * size_each * 2.0**math.floor(half * share)
    else:
        made = (1 + generator.integers(0, 4, shape) / 4) * 2.0**math.floor((size.top - 1) * share)
        made = -made if kind == "large negative" else made
    return np.asarray(made + 0.5j * made if dtype.kind == "c" else made).astype(dtype)


def _signs(shape: tuple[int, ...], place: _InputPlace) -> Array:
    """Signs by the parity of bits (Thue and Morse): equally many of both in each block of a power of two."""
    total = np.full(shape, place.process.bit_count() + place.position)
    for axis, length in enumerate(shape):
        bits = np.array([at.bit_count() for at in range(length)]).reshape([-1 if k == axis else 1 for k in
                                                                           range(len(shape))])
        total = total + bits
    return 1.0 - 2.0 * (total % 2)


def _integers(type_: ir.Type, generator: np.random.Generator, role: Role, share: float, turned: bool) -> Array:
    """Integers near the ends of their type (``turned`` swaps the ends), or small ones if ``share`` is below 1."""
    dtype, shape = dtype_of(type_), tuple(ir.RankedTensorType(type_).shape)
    element = ir.IntegerType(ir.RankedTensorType(type_).element_type)
    if role == "deciding" or share < 1 or element.width == 1:
        return random_array(type_, generator, role or "deciding")
    low, high = range_of(element)
    low = low or 1  # the interpreter ends its process where integers are divided by zero
    near = np.asarray(generator.integers(0, min(_NEAR, 2**element.width), shape)).astype(object)
    wide = np.where(generator.integers(0, 2, shape) != turned, high - near, low + near)
    return wide.astype(np.int64 if low < 0 else np.uint64).astype(dtype)


def _dtypes(program: LockstepProgram) -> set[np.dtype]:
    """The element types of all that a program takes and computes."""
    elements: dict[str, ir.Type] = {}
    for kind in [*program.input_types, *(value.type for op in nested_ops(program.lowered.operation)
                                         for value in op.results)]:
        if isinstance(kind, ir.RankedTensorType):
            elements.setdefault(str(kind.element_type), kind.element_type)
    with program.lowered.context, ir.Location.unknown():
        return {dtype_of(ir.RankedTensorType.get([], each)) for each in elements.values()}
