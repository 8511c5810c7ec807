"""Runs a pass for SPMD modules on a program of several meshes: on one SPMD module for each mesh."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hlorewrite.analysis.uniform import PARTS_OF_SUM
from hlorewrite.ir import ALL_REDUCE, COLLECTIVES, Editor, Module, View, ancestors, defining_op, ir, users
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.pipelines.mpmd.mesh_view import PARTS, RECEIVE, SEND, MeshView, ProgramPosition, mark_of, view_of_mesh
from hlorewrite.pipelines.mpmd.mesh_view_cut import CannotCut, CutCall, MeshCut, cut_view
from hlorewrite.pipelines.mpmd.mesh_view_emit import Differences
from hlorewrite.pipelines.mpmd.program import (
    Carry,
    FragmentCall,
    Program,
    ProgramOps,
    Step,
    Transfer,
    read_program,
    read_program_ops,
)
from hlorewrite.pipelines.mpmd.program_write import ProgramDraft, WrittenStep, write_program
from hlorewrite.pipelines.mpmd.types import MeshTensor
from hlorewrite.rules.listener import Remark

# ---- sums over two meshes: sent before they are reduced, and reduced once where they meet

# Tied weights have a gradient on each of two stages, and one addition after the loop: ``AR(a) + send(AR(b))``. Let
# both meshes have the same axes, and the value be on both in the same way. Then device p of one mesh can send its own
# part of the sum to device p of the other, and ``AR(a + send(b))`` reduces once. With T, the transfer tile by tile:
#
#     AR(a) + T(AR(b)) = AR(a) + AR(T(b)) = AR(a + T(b)).


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


# ---- the pass


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


# ---- a program of several meshes, rewritten mesh by mesh by something that handles only SPMD modules


Rewrite = Callable[[Module, MeshView], bool]
"""Rewrites the module of a view in place; returns whether it changed."""


def rewrite_by_mesh(module: Module, rewrite: Rewrite, refused: Callable[[str, str], None],
                    merge: Rewrite | None = None, sent: Callable[[SentSum], None] = lambda _: None) -> bool:
    """Rewrites the views of a program's meshes, one after the other.

    Args:
      module: the program; it is changed in place.
      rewrite: what to do with a view.
      refused: called with the mesh and why its rewritten view was dropped.
      merge: the same without reports, for trials: whether sums of two meshes can be sent first and reduced once; None
        if they are to stay.
      sent: called with each sum that is sent before it is reduced.

    Returns:
      Whether the program changed; if not, it is the same byte for byte.
    """
    program, ops = read_program_ops(module)
    with module.context, ir.Location.unknown():
        built = {name: view_of_mesh(program, ops, module, name) for name in program.meshes}
        views = {name: view for name, view in built.items()
                 if view is not None and len(view.opaque) < len(view.places)}
        pristine = {name: replace(view, module=view.module.clone()) for name, view in views.items()}
        changed = {name for name, view in views.items() if rewrite(view.module, view)}
        alone = {name: replace(view, module=view.module.clone()) for name, view in views.items()}
        sums = [] if merge is None else send_sums(program, views, merge)
        moved = changed | {name for each in sums for name in (each.source, each.target)}
        scratch = ir.Module.create()  # new functions stand here until they are written
        try:
            cuts = _cut(program, views, pristine, moved, scratch.body)
            _check_sums(program, sums, cuts)
        except CannotCut:
            sums, cuts = [], _cut(program, alone, pristine, changed, scratch.body, refused)
        if not cuts:
            return False
        module.mlir = write_program(module, _draft(program, ops, cuts))
    for each in sums:
        sent(each)
    return True


def _check_sums(program: Program, sums: list[SentSum], cuts: list[MeshCut]) -> None:
    """What is sent unreduced must arrive as what it is."""
    types = {number: kind for cut in cuts for number, kind in cut.types.items()}
    sent = {place: number for cut in cuts for place, number in cut.sent.items()}
    for each in sums:
        step = program.after[each.place.position]
        assert isinstance(step, Transfer)
        source, target = types[sent[each.place]], types[step.result]
        if (source.shape, source.spec) != (target.shape, target.spec):
            raise CannotCut("parts of a sum would arrive with a different type than they are sent")


def _cut(program: Program, views: dict[str, MeshView], pristine: dict[str, MeshView], changed: set[str],
         scratch: ir.Block, refused: Callable[[str, str], None] | None = None) -> list[MeshCut]:
    """Cuts the views that changed; one that cannot be cut is reported and left out, or raises without a callback."""
    numbers = iter(range(len(program.types), 1 << 30))
    cuts = []
    for name, view in views.items():
        if name not in changed:
            continue
        try:
            cut = cut_view(program, view, pristine[name], scratch, lambda: next(numbers))
            _check_edges(program, cut)
        except CannotCut as error:
            if refused is None:
                raise
            refused(name, error.what)
            continue
        cuts.append(cut)
    return cuts


def _check_edges(program: Program, cut: MeshCut) -> None:
    """A fragment of the loop may read a new value only of one that it waited for before, in any schedule."""
    before = _waits(program.body)
    makers = {number: call.place.position for call in cut.calls if call.place.part == "body"
              for number in call.results}
    for call in cut.calls:
        if call.place.part != "body":
            continue
        for number in call.operands:
            maker = makers.get(number, call.place.position)
            if maker != call.place.position and maker not in before[call.place.position]:
                raise CannotCut("a fragment would have to wait for another that a schedule may run later")


def _waits(steps: tuple[Step, ...]) -> list[set[int]]:
    """For each step the steps it waits for, directly or not."""
    makers: dict[int, int] = {}
    waits: list[set[int]] = []
    for position, step in enumerate(steps):
        reads = step.operands if isinstance(step, FragmentCall) else (step.operand,)
        mine: set[int] = set()
        for number in reads:
            if number in makers:
                mine |= {makers[number]} | waits[makers[number]]
        waits.append(mine)
        makers.update(dict.fromkeys(step.results if isinstance(step, FragmentCall) else (step.result,), position))
    return waits


def _draft(program: Program, ops: ProgramOps, cuts: list[MeshCut]) -> ProgramDraft:
    """The program with what was cut in place of what was there."""
    carries = list(program.carries)
    results = list(program.results)
    changed: dict[int, MeshTensor] = {}
    for cut in cuts:
        changed.update(cut.types)
        for index, carry in cut.carries.items():
            carries[index] = carry
        for position, number in cut.results.items():
            results[position] = number
    added: list[Carry] = [carry for cut in cuts for carry in cut.new_carries]
    types = list(program.types)
    types += [types[0]] * (1 + max(changed, default=0) - len(types))
    kinds = list(ops.types) + [ops.types[0]] * (len(types) - len(ops.types))
    for number, kind in changed.items():
        if number >= len(program.types) or kind != program.types[number]:
            types[number] = kind
            kinds[number] = ir.Type.parse(kind.text)
    done = replace(program, types=tuple(types), carries=(*carries, *added), results=tuple(results))
    parts = {"before": (program.before, ops.before), "body": (program.body, ops.body),
             "after": (program.after, ops.after)}
    everywhere = [pair for sides in parts.values() for pair in zip(*sides, strict=True)]
    steps = {part: _steps(part, *sides, cuts, everywhere) for part, sides in parts.items()}
    return ProgramDraft(done, ops, kinds, steps["before"], steps["body"], steps["after"])


def _steps(part: str, steps: tuple[Step, ...], ops: tuple[ir.Operation, ...], cuts: list[MeshCut],
           everywhere: list[tuple[Step, ir.Operation]]) -> list[WrittenStep]:
    """The steps of one part, changed ones in place, new ones before theirs."""
    calls = {call.place: call for cut in cuts for call in cut.calls if not call.is_new}
    fresh = [(cut.mesh, call) for cut in cuts for call in cut.calls if call.is_new and call.place.part == part]
    written: list[WrittenStep] = []
    for position in range(len(steps) + 1):
        written += [_new_step(mesh, call, steps, ops, everywhere) for mesh, call in fresh
                    if call.place.position == position]
        if position < len(steps):
            written.append(_old_step(ProgramPosition(part, position), steps[position], ops[position], calls, cuts))
    return written


def _old_step(place: ProgramPosition, step: Step, op: ir.Operation, calls: dict[ProgramPosition, CutCall],
              cuts: list[MeshCut]) -> WrittenStep:
    if isinstance(step, Transfer):
        sent = next((cut.sent[place] for cut in cuts if place in cut.sent), step.operand)
        return WrittenStep(replace(step, operand=sent), op)
    fed = next((cut.fed[place] for cut in cuts if place in cut.fed), None)
    if fed is not None:
        return WrittenStep(replace(step, operands=fed), op)
    call = calls.get(place)
    if call is None:
        return WrittenStep(step, op)
    return WrittenStep(replace(step, operands=call.operands, results=call.results), op, call.function)


def _new_step(mesh: str, call: CutCall, steps: tuple[Step, ...], ops: tuple[ir.Operation, ...],
              everywhere: list[tuple[Step, ir.Operation]]) -> WrittenStep:
    """A new fragment, made like the nearest one of its mesh."""
    near = [(abs(i - call.place.position), step, op) for i, (step, op) in enumerate(zip(steps, ops, strict=True))
            if isinstance(step, FragmentCall) and step.mesh == mesh]
    near = near or [(0, step, op) for step, op in everywhere if isinstance(step, FragmentCall) and step.mesh == mesh]
    assert call.function is not None
    _, step, op = min(near, key=lambda each: each[0])
    name = ir.StringAttr(call.function.attributes["sym_name"]).value
    task = "before" if call.place.part == "before" else "update"
    return WrittenStep(replace(step, callee=name, task=task, operands=call.operands, results=call.results), op,
                       call.function)
