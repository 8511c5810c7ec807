"""Bounds of what rounding may change between two modules that XLA compiles."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hlorewrite.checks.reference.inputs import exponents_of
from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.checks.reference.program import LockstepProgram, element_count, prepare
from hlorewrite.checks.reference.range_check import range_faults
from hlorewrite.checks.reference.rounding.bounds import RoundingBounds, bounds_or_reason
from hlorewrite.checks.reference.rounding.summation_order import computed_tolerances
from hlorewrite.checks.reference.rounding.trace import MOST_ELEMENTS, MOST_STEPS
from hlorewrite.checks.reference.rounding.units import COMPILED, TENSOR_CORES
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import Module, View, nested_ops, symbol_name
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd, main_function

_MOST_FOR_RANGES = 1 << 14
"""Elements of all inputs: the interpreter takes seconds for more."""


def rounding_between(before: Module, after: Module, arguments: Sequence[np.ndarray], *, gpu: bool = False
                     ) -> RoundingBounds:
    """Bounds of the outputs of two modules that XLA compiles and runs on the same arguments.

    XLA compiles each module by itself, and may fuse and round even parts that no pass touched in another way. So the
    error analysis starts at the inputs (`oracle.rounding.arithmetic.COMPILED`), and the bounds are wider than those of
    the interpreter.

    Args:
      before: the original; a per-device module must have been put over all devices (`execute.prepared_for_run`).
      after: the rewritten module.
      arguments: global arrays.
      gpu: float32 matrix products may take TF32 operands.

    Returns:
      The bounds, or why there are none; and tolerances for outputs without one.
    """
    found = _bounds(before, after, arguments, gpu)
    return replace(found, tolerances=computed_tolerances(before, symbol_name(main_function(before))))


def range_problems(before: Module, after: Module, seed: int) -> tuple[str, ...]:
    """Results that leave the range of a narrow floating-point type, or lose their digits, in the rewritten module only.

    The reference interpreter executes both on extreme inputs (`oracle.range_check`): XLA on CPUs adds float16 up in
    float32. Modules that compute with wide types only, and large ones, are not executed.

    Args:
      before: the original; a per-device module must have been put over all devices.
      after: the rewritten module.
      seed: the seed of the inputs.
    """
    name = symbol_name(main_function(before))
    try:
        original = prepare(before, name)
        size = exponents_of(original)
        if size is None or not size.narrow or element_count(original) * original.processes > _MOST_FOR_RANGES:
            return ()
        return tuple(range_faults(original, prepare(after, name, like=original), name, seed))
    except CannotExecute:
        return ()


def _bounds(before: Module, after: Module, arguments: Sequence[np.ndarray], gpu: bool) -> RoundingBounds:
    reason = _too_large(before, arguments) or _too_large(after, arguments)
    if reason:
        return RoundingBounds(reason=reason)
    try:
        original = prepare(before, symbol_name(main_function(before)))
        rewritten = prepare(after, symbol_name(main_function(after)), like=original)
    except CannotExecute as error:
        return RoundingBounds(reason=f"{error.what} ({error.location})" if error.location else error.what)
    if any(not _takes(program, arguments) for program in (original, rewritten)):
        return RoundingBounds(reason="the module's arguments differ from those passed")
    return bounds_or_reason(original, rewritten, [arguments], TENSOR_CORES if gpu else COMPILED)


def _too_large(module: Module, arguments: Sequence[np.ndarray]) -> str:
    """Why a module is not replayed: checked before it is written for all devices."""
    if sum(math.prod(np.shape(array)) for array in arguments) > MOST_ELEMENTS:
        return f"the arguments contain more than {MOST_ELEMENTS} elements"
    count = sum(1 for function in View(module).functions.values() for _ in nested_ops(function))
    if count * for_spmd(module).devices > MOST_STEPS:
        return f"the module has more than {MOST_STEPS} ops on all devices"
    return ""


def _takes(program: LockstepProgram, arguments: Sequence[np.ndarray]) -> bool:
    if program.processes != 1 or len(program.input_types) != len(arguments):
        return False
    with program.lowered.context:
        types = [(tuple(kind.shape), dtype_of(kind)) for kind in program.input_types]  # pyright: ignore
    return types == [(tuple(array.shape), array.dtype) for array in arguments]
