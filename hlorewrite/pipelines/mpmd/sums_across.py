"""Sums over two meshes: sent before they are reduced, and reduced once where they meet.

Tied weights have a gradient on each of two stages, and one addition after the loop: ``AR(a) + send(AR(b))``. Where both
meshes have the same axes and the value is on both in the same way, device p of one mesh can send its own part of the
sum to device p of the other, and ``AR(a + send(b))`` reduces once:

    AR(a) + T(AR(b)) = AR(a) + AR(T(b)) = AR(a + T(b)),   T the transfer, tile by tile.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hlorewrite.analysis.uniform import PARTS_OF_SUM
from hlorewrite.ir import ALL_REDUCE, Editor, Module, View, ancestors, defining_op, ir, users
from hlorewrite.pipelines.mpmd.mesh_view import PARTS, RECEIVE, SEND, MeshView, ProgramPosition, mark_of
from hlorewrite.pipelines.mpmd.mesh_view_types import Differences
from hlorewrite.pipelines.mpmd.program import Program, Transfer


@dataclass(frozen=True)
class SentSum:
    """A sum that is reduced on the mesh it is sent to.

    Attributes:
      place: the transfer.
      source: name of the mesh it comes from.
      target: name of the mesh that reduces it.
    """

    place: ProgramPosition
    source: str
    target: str


def send_sums(program: Program, views: dict[str, MeshView], rewrite: Callable[[Module, MeshView], bool]
              ) -> list[SentSum]:
    """Lets transfers after the loop carry sums before they are reduced, if that saves a reduction.

    Args:
      program: the program the views were made of.
      views: the views of its meshes after a pass, by name; they are edited in place.
      rewrite: the pass, which merges a reduction of what arrives into one that is there.

    Returns:
      What is sent unreduced now.
    """
    sent = []
    for position, step in enumerate(program.after):
        if not isinstance(step, Transfer):
            continue
        source, target = (program.types[number] for number in (step.operand, step.result))
        if source.mesh == target.mesh or source.mesh not in views or target.mesh not in views:
            continue
        here, there = views[source.mesh], views[target.mesh]
        alike = here.local == there.local and (source.shape, source.spec) == (target.shape, target.spec)
        place = ProgramPosition("after", position)
        if alike and _moved(program, here, there, place, step, rewrite):
            sent.append(SentSum(place, source.mesh, target.mesh))
    return sent


def _moved(program: Program, here: MeshView, there: MeshView, place: ProgramPosition, step: Transfer,
           rewrite: Callable[[Module, MeshView], bool]) -> bool:
    """Tries one transfer; both views are as before when nothing is gained."""
    send = _mark(here.module, SEND, [-1, PARTS.index(place.part), place.position])
    reduction = None if send is None else defining_op(send.operands[0])
    if send is None or reduction is None or reduction.name != ALL_REDUCE.op or len(reduction.results) != 1 or any(
            parent.name == "stablehlo.while" for parent in ancestors(reduction)):
        return False
    if len(users(reduction.results[0])) != 1:
        return False
    axes = Differences(here).axes(reduction.operands[0], program.types[step.operand])
    saved = there.module.clone()
    count = len(View(there.module).ops(ALL_REDUCE.op))
    _reduce_behind(there.module, step.result, reduction, axes)
    rewrite(there.module, replace(there, loose=there.loose | {step.result}))
    if len(View(there.module).ops(ALL_REDUCE.op)) > count:
        there.module.mlir = saved.mlir
        return False
    editor = Editor(View(here.module))
    editor.set_operand(send, 0, reduction.operands[0])
    editor.erase(reduction)
    there.loose |= {step.result}
    here.loose |= {step.operand}
    here.loose_sends |= {place}
    return True


def _mark(module: Module, target: str, numbers: list[int]) -> ir.Operation | None:
    return next((op for op in View(module).ops("stablehlo.custom_call") if mark_of(op) == (target, numbers)), None)


def _reduce_behind(module: Module, number: int, like: ir.Operation, axes: tuple[str, ...]) -> None:
    """Reduces what arrives, as it was reduced before it was sent."""
    arrived = _mark(module, RECEIVE, [number])
    assert arrived is not None
    with module.context, like.location:
        arrived.attributes[PARTS_OF_SUM] = ir.ArrayAttr.get([ir.StringAttr.get(axis) for axis in axes])
        copy = like.clone(ir.InsertionPoint.after(arrived)).operation
    arrived.results[0].replace_all_uses_except(copy.results[0], [copy])
    copy.operands[0] = arrived.results[0]
