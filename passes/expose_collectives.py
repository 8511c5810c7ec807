"""The pass ``expose-collectives``: XLA's partitioner first, so that its collectives can be rewritten."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

from hlorewrite.errors import PassFailed
from hlorewrite.ir.module import Module
from hlorewrite.pipeline.base import Pass, PassContext
from hlorewrite.rules.events import Remark
from hlorewrite.spmd.program import is_program


@dataclass(frozen=True)
class ExposeCollectives(Pass):
    """Makes the collectives of an auto-sharded module explicit by running XLA's partitioner once.

    A plain ``jit`` with shardings holds no collective until XLA partitions it. The per-device program comes back inside
    an ``sdy.manual_computation`` over all mesh axes, with the same arguments, results, donation and shardings. Modules
    that are manual already are left alone. Needs jax; XLA's own pass is SpmdPartitioner.
    """

    name = "expose-collectives"

    def run(self, module: Module, run: PassContext) -> bool:
        """Replaces the module's content by the partitioned program."""
        partition = _bridge("partition")
        if is_program(module):
            return self._run_on_program(module, run)
        if not partition.hides_collectives(module):
            run.remark(Remark("missed", self.name, "nothing is auto-sharded here: there is one device, or every op is "
                                                   "in a manual computation already", module.name))
            return False
        try:
            module.mlir = partition.expose_collectives(module).mlir
        except partition.UnknownGroups as error:
            run.remark(Remark("blocked", self.name, f"the module stays as it is: {error.what}", error.location))
            return False
        run.forget_view()
        run.count("modules partitioned")
        run.remark(Remark("applied", self.name, "XLA's partitioner made every collective explicit", module.name))
        return True

    def _run_on_program(self, module: Module, run: PassContext) -> bool:
        """Partitions fragment by fragment."""
        def refused(where: str, why: str) -> None:
            run.remark(Remark("blocked", self.name, f"the fragment stays as it is: {why}", where, "func.func"))

        count = _bridge("partition_program").expose_program(module, refused)
        if not count:
            run.remark(Remark("missed", self.name, "no fragment is auto-sharded here: each runs on one device, or is a "
                                                   "manual computation already", module.name))
            return False
        run.forget_view()
        run.count("fragments partitioned", count)
        run.remark(Remark("applied", self.name, f"XLA's partitioner made every collective of {count} fragments "
                                                "explicit", module.name))
        return True


def _bridge(name: str) -> ModuleType:
    """The bridge to XLA, loaded by name: passes stand below the package that imports jax."""
    try:
        return importlib.import_module(f"hlorewrite.jaxbridge.{name}")
    except ImportError as error:
        raise PassFailed(f"expose-collectives needs jax ({error})", hint="install jax") from None
