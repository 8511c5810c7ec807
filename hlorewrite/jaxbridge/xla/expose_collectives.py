"""The pass ``expose-collectives``: XLA's partitioner first, so that its collectives can be rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlorewrite.errors import InputError, PassFailed
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.programs import is_program, program_adapter
from hlorewrite.rules.listener import Remark

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet


@dataclass(frozen=True)
class ExposeCollectives(Pass):
    """Makes the collectives of an auto-sharded module explicit by running XLA's partitioner once.

    A plain ``jit`` with shardings contains no collective until XLA partitions it. The per-device program comes back
    inside an ``sdy.manual_computation`` over all mesh axes, with the same arguments, results, donation and shardings.
    Modules that are manual already are left alone. Needs jax; XLA's own pass is SpmdPartitioner.

    Attributes:
      target: what the module is compiled for (``h200:1x8``), whose pipeline partitions it; by default the one the run
        names, else CPU devices.
      optional: leave a module that XLA's partitioner refuses as it is, with a remark, in place of an error.
    """

    name = "expose-collectives"
    target: str = ""
    optional: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Replaces the module's content by the partitioned program."""
        if is_program(module):
            return self._run_on_program(module, ctx)
        try:
            from hlorewrite.jaxbridge.xla import partition
        except ImportError as error:
            raise _needs_jax(error) from None
        if not partition.hides_collectives(module):
            ctx.remark(Remark("missed", self.name, "nothing is auto-sharded here: there is one device, or every op is "
                                                   "already in a manual computation", module.name))
            return False
        try:
            module.mlir = partition.expose_collectives(module, _place(self.target or ctx.target, module)).mlir
        except InputError as error:
            if not self.optional and not isinstance(error, partition.NotExposed):
                raise
            ctx.remark(Remark("blocked", self.name, f"the module stays as it is: {error.what}", error.location or ""))
            return False
        ctx.forget_view()
        ctx.count("modules partitioned")
        ctx.remark(Remark("applied", self.name, "XLA's partitioner made every collective explicit", module.name))
        return True

    def _run_on_program(self, module: Module, ctx: PassContext) -> bool:
        """Partitions fragment by fragment."""
        def refused(where: str, why: str) -> None:
            ctx.remark(Remark("blocked", self.name, f"the fragment stays as it is: {why}", where, "func.func"))

        try:
            count = program_adapter(module).expose_program(module, refused)
        except ImportError as error:
            raise _needs_jax(error) from None
        if not count:
            ctx.remark(Remark("missed", self.name, "no fragment is auto-sharded here: each runs on one device, or is a "
                                                   "manual computation already", module.name))
            return False
        ctx.forget_view()
        ctx.count("fragments partitioned", count)
        ctx.remark(Remark("applied", self.name, f"XLA's partitioner made every collective of {count} fragments "
                                                "explicit", module.name))
        return True


def _place(target: str, module: Module) -> DeviceSet | None:
    """The devices of a target; None if none is named."""
    if not target:
        return None
    from hlorewrite.jaxbridge.xla.compile_for import place_of
    from hlorewrite.jaxbridge.xla.target import parse_target
    return place_of(parse_target(target), module)


def _needs_jax(error: ImportError) -> PassFailed:
    return PassFailed(f"expose-collectives needs jax ({error})", hint="install jax")
