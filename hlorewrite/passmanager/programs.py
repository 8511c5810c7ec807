"""Programs of several meshes: how the core recognizes one, and what it asks of those who read them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from hlorewrite.errors import InputError
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.util.registered import PROGRAMS

if TYPE_CHECKING:
    from hlorewrite.cost.report.report import Executed


@dataclass(frozen=True)
class ProgramPiece:
    """A collective or transfer of a program.

    Attributes:
      fragment: the fragment it is in, and its mesh; empty for a transfer.
      times: how often the program runs the fragment or transfer.
      what: the collective, as one run of the fragment executes it.
    """

    fragment: str
    times: int
    what: Executed


class ProgramAdapter(Protocol):
    """The functions of the registered module; each takes a program of several meshes."""

    def run_by_mesh(self, pass_: Pass, module: Module, ctx: PassContext) -> bool:
        """Runs a pass for SPMD modules on one SPMD module for each mesh; returns whether the program changed."""
        ...

    def collectives_of_program(self, module: Module) -> tuple[int, list[Executed], list[str]]:
        """(devices, collectives and transfers, messages about what could not be read); reading changes the module."""
        ...

    def pieces_of_program(self, module: Module) -> tuple[int, list[ProgramPiece], list[str]]:
        """The same, each with the fragment it is in."""
        ...

    def sequential(self, module: Module) -> Module:
        """One SPMD module that computes what the program computes, for the reference interpreter."""
        ...

    def expose_program(self, module: Module, refused: Callable[[str, str], None]) -> int:
        """Partitions the fragments that are in the global view, in place; returns how many changed."""
        ...


def is_program(module: Module) -> bool:
    """Whether a module is a program of several meshes.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> is_program(parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"))
      False
    """
    return any("topology" in op.operation.attributes for op in module.mlir.body.operations
               if op.operation.name == "func.func")


def program_adapter(module: Module) -> ProgramAdapter:
    """The registered reader of programs.

    Args:
      module: the program, to name it where there is no reader.

    Raises:
      InputError: this installation has none.
    """
    if not PROGRAMS:
        raise InputError("is a program of several meshes, but this installation has no hlorewrite.pipelines",
                         location=module.name, hint="install a released version of hlorewrite")
    return cast(ProgramAdapter, importlib.import_module(PROGRAMS[0]))
