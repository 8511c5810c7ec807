"""A program of several meshes, rewritten mesh by mesh by something that handles only SPMD modules."""

from collections.abc import Callable
from dataclasses import replace

from hlorewrite.ir import Module, ir
from hlorewrite.pipelines.mpmd.mesh_view import MeshView, ProgramPosition, view_of_mesh
from hlorewrite.pipelines.mpmd.mesh_view_cut import CannotCut, CutCall, MeshCut, cut_view
from hlorewrite.pipelines.mpmd.program import Carry, FragmentCall, Program, ProgramOps, Step, Transfer, read_program_ops
from hlorewrite.pipelines.mpmd.program_write import ProgramDraft, WrittenStep, write_program
from hlorewrite.pipelines.mpmd.sums_across import SentSum, send_sums
from hlorewrite.pipelines.mpmd.types import MeshTensor

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
