"""Runs a pass for SPMD modules on a program of several meshes: on one SPMD module for each mesh."""

from hlorewrite.ir import COLLECTIVES, Module, View
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.pipelines.mpmd.mesh_view import MeshView
from hlorewrite.pipelines.mpmd.program import read_program
from hlorewrite.pipelines.mpmd.program_edit import rewrite_by_mesh
from hlorewrite.pipelines.mpmd.sums_across import SentSum
from hlorewrite.rules.listener import Remark


def run_by_mesh(pass_: Pass, module: Module, ctx: PassContext) -> bool:
    """Runs a pass on a program, mesh by mesh.

    Args:
      pass_: the pass.
      module: the program; it is changed in place.
      ctx: what the pass is given.

    Returns:
      Whether the program changed.
    """
    holds: list[str] = []

    def rewrite(view_module: Module, view: MeshView) -> bool:
        ctx.forget_view()
        if not ctx.view(view_module).ops(*COLLECTIVES):
            return False
        holds.append(view.mesh)
        return pass_.run(view_module, ctx)

    def refused(mesh: str, why: str) -> None:
        ctx.remark(Remark("blocked", pass_.name, f"mesh {mesh} stays as it is: {why}", module.name))

    def sent(each: SentSum) -> None:
        where = program.after[each.place.position].where
        ctx.remark(Remark("applied", pass_.name,
                          f"sent to mesh {each.target} before it is reduced: one reduction there "
                                                f"covers the sums of both meshes", where, "mpmd.transfer"))

    def merge(view_module: Module, view: MeshView) -> bool:
        return pass_.run(view_module, PassContext(ignore_cost=ctx.ignore_cost, topology=ctx.topology))

    program = read_program(module)
    held = View(module).ops(*COLLECTIVES)
    changed = bool(held) and rewrite_by_mesh(module, rewrite, refused, merge if pass_.across_meshes else None, sent)
    ctx.forget_view()
    if not holds and ctx.wants_missed:
        ctx.remark(Remark("missed", pass_.name, "no fragment contains a collective; if XLA has yet to insert them, "
                                               "run expose-collectives first", module.name))
    return changed
