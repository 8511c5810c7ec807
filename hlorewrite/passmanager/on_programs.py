"""Runs a pass for SPMD modules on a program of several meshes: on one SPMD module for each mesh."""

from __future__ import annotations

from hlorewrite.ir.module import Module
from hlorewrite.ir.view import COLLECTIVES
from hlorewrite.mpmd.mesh_view import MeshView
from hlorewrite.mpmd.program import read_program
from hlorewrite.mpmd.program_edit import rewrite_by_mesh
from hlorewrite.mpmd.sums_across import SentSum
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.rules.events import Remark


def run_by_mesh(step: Pass, module: Module, run: PassContext) -> bool:
    """Runs a pass on a program, mesh by mesh.

    Args:
      step: the pass.
      module: the program; it is changed in place.
      run: what the pass is given.

    Returns:
      Whether the program changed.
    """
    holds: list[str] = []

    def rewrite(view_module: Module, view: MeshView) -> bool:
        run.forget_view()
        if not run.view(view_module).ops(*COLLECTIVES):
            return False
        holds.append(view.mesh)
        return step.run(view_module, run)

    def refused(mesh: str, why: str) -> None:
        run.remark(Remark("blocked", step.name, f"mesh {mesh} stays as it is: {why}", module.name))

    def sent(each: SentSum) -> None:
        where = program.after[each.place.position].where
        run.remark(Remark("applied", step.name, f"sent to mesh {each.target} before it is reduced: one reduction there "
                                                f"is for the sums of both meshes", where, "mpmd.transfer"))

    def merge(view_module: Module, view: MeshView) -> bool:
        return step.run(view_module, PassContext(ignore_cost=run.ignore_cost, topology=run.topology))

    program = read_program(module)
    changed = rewrite_by_mesh(module, rewrite, refused, merge if step.across_meshes else None, sent)
    run.forget_view()
    if not holds and run.wants_missed:
        run.remark(Remark("missed", step.name, "no fragment holds a collective; where XLA has still to insert them, "
                                               "run expose-collectives first", module.name))
    return changed
