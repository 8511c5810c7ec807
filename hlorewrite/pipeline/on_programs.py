"""Runs a pass for SPMD modules on a program of several meshes: on one SPMD module for each mesh."""

from __future__ import annotations

from hlorewrite.ir.module import Module
from hlorewrite.pipeline.base import Pass, PassContext
from hlorewrite.rules.events import Remark
from hlorewrite.spmd.mesh_view import MeshView
from hlorewrite.spmd.program_edit import rewrite_by_mesh


def run_by_mesh(step: Pass, module: Module, run: PassContext) -> bool:
    """Runs a pass on a program, mesh by mesh.

    Args:
      step: the pass.
      module: the program; it is changed in place.
      run: what the pass is given.

    Returns:
      Whether the program changed.
    """
    def rewrite(view_module: Module, view: MeshView) -> bool:
        run.forget_view()
        return step.run(view_module, run)

    def refused(mesh: str, why: str) -> None:
        run.remark(Remark("blocked", step.name, f"mesh {mesh} stays as it is: {why}", module.name))

    changed = rewrite_by_mesh(module, rewrite, refused)
    run.forget_view()
    return changed
