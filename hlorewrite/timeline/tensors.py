"""Whose communication it is: the parameters of the step that a collective belongs to."""

from __future__ import annotations

from hlorewrite.hlo.parse import Computation, HloInstruction, HloText


class TensorNames:
    """Names of what collectives send.

    Args:
      module: the module.
    """

    def __init__(self, module: HloText) -> None:
        self._module = module

    def of(self, computation: Computation, instruction: HloInstruction) -> str:
        """The parameters a collective belongs to, else the type of what it sends."""
        operand = computation.instructions.get(next(iter(instruction.operands), ""))
        return (operand.shape if operand is not None else instruction.shape).split("{")[0]
