"""The pass ``share-fragments``: a fragment that contains another one runs it as a fragment of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from hlorewrite.ir.binding import ir
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.mpmd.mesh_view import local_mesh
from hlorewrite.mpmd.program import FragmentCall, Program, ProgramOps, Step, is_program, read_program_ops
from hlorewrite.mpmd.program_write import ProgramDraft, WrittenStep, write_program
from hlorewrite.mpmd.types import MeshTensor, device_bytes
from hlorewrite.passes.share_fragments.fragment_graph import (
    CrossingValue,
    FragmentGraph,
    graph_of,
    prefix_of,
    whole_value,
)
from hlorewrite.passes.share_fragments.inside import Occurrence, common_prefix, occurrence_in
from hlorewrite.passes.share_fragments.piece_function import piece_function
from hlorewrite.passes.share_fragments.pieces import CannotDivide, Piece, divide
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.rules.events import Remark

_CALLS = 3  # of one task of one stage, in all
_EXTRA = 0.1  # of the bytes that a fragment takes and gives: what may lie in buffers between its pieces


@dataclass(frozen=True)
class Division:
    """How a fragment is divided.

    Attributes:
      host: the fragment.
      part: what it contains.
      found: where.
      pieces: what becomes of it.
    """

    host: FragmentGraph
    part: FragmentGraph
    found: Occurrence
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class ShareFragments(Pass):
    """Cuts fragments of a pipeline program where they contain another one, so that XLA compiles its code once.

    A first stage is often an embedding and a layer, the next one a layer: equal fragments are compiled once, and equal
    parts of fragments for each. The fragment becomes two or three, which run one after the other on its mesh; the one
    that is shared is equal to the other fragment but for the mesh. That costs a dispatch in each micro-batch, and what
    XLA would fuse across the cut; it pays where compilation is what takes long, as on CPU.

    Attributes:
      least: how many ops that compute something a fragment must have to be shared, for each call that is added.
    """

    name = "share-fragments"
    least: int = 16

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Divides fragments until none contains another one."""
        if not is_program(module):
            ctx.remark(Remark("missed", self.name, "the module is not a program of several meshes", module.name))
            return False
        changed = False
        # Ends: each round replaces a fragment by smaller ones.
        while self._round(module, ctx):
            changed = True
        return changed

    def _round(self, module: Module, ctx: PassContext) -> bool:
        """Divides what contains another fragment; returns whether there was one."""
        program, ops = read_program_ops(module)
        view = View(module)
        with module.context, ir.Location.unknown():
            graphs = _graphs(program, view)
            chosen = self._chosen(program, graphs, lambda graph, why: ctx.remark(Remark(
                "blocked", self.name, f"@{graph.call.callee} stays whole: {why}", graph.call.where, "func.func")))
            if not chosen:
                return False
            for each in chosen.values():
                ctx.remark(Remark("applied", self.name, f"@{each.host.call.callee} runs as {len(each.pieces)} "
                                  f"fragments; {each.part.work} ops are compiled once for it and "
                                  f"@{each.part.call.callee}", each.host.call.where, "func.func"))
            scratch = ir.Module.create()  # new functions stand here until they are written
            module.mlir = write_program(module, _draft(program, ops, chosen, scratch.body))
        ctx.forget_view()
        ctx.count("fragments divided", len(chosen))
        return True

    def _chosen(self, program: Program, graphs: list[FragmentGraph], refused: Callable[[FragmentGraph, str], None]
                ) -> dict[int, Division]:
        """Divisions, by the identity of the fragment's call: around whole fragments, else around parts of two."""
        classes: dict[Hashable, list[FragmentGraph]] = {}
        for graph in graphs:
            if not graph.has_effects:
                classes.setdefault(graph.key, []).append(graph)
        kinds = sorted(classes.values(), key=lambda each: (-each[0].work, -len(each[0].ops)))
        chosen: dict[int, Division] = {}
        for position, hosts in enumerate(kinds):
            for parts in kinds[position + 1:]:
                part = parts[0]
                found = occurrence_in(part, hosts[0]) if self._pays(part, len(hosts)) else None
                if found is not None and self._add(program, hosts, part, found, chosen, refused):
                    break
        return chosen or self._around_common_parts(program, kinds, refused)

    def _around_common_parts(self, program: Program, kinds: list[list[FragmentGraph]],
                             refused: Callable[[FragmentGraph, str], None]) -> dict[int, Division]:
        """Divisions of two kinds of fragments around what both hold."""
        for position, hosts in enumerate(kinds):
            for parts in (each for place, each in enumerate(kinds) if place != position):
                count = len(hosts) + len(parts)
                if not self._pays(parts[0], count) or not self._pays(hosts[0], count):
                    continue
                common, values = prefix_of(parts[0], common_prefix(parts[0], hosts[0]))
                found = occurrence_in(common, hosts[0]) if self._pays(common, count) else None
                chosen: dict[int, Division] = {}
                own = Occurrence(tuple(parts[0].maker[values[op.results[0]]] for op in common.ops), values)
                if found is not None and self._add(program, hosts, common, found, chosen, refused) and \
                        self._add(program, parts, common, own, chosen, refused):
                    return chosen
        return {}

    def _pays(self, part: FragmentGraph, calls: int) -> bool:
        """Whether a fragment is large enough for the calls that sharing it adds."""
        return part.work >= self.least * calls

    def _add(self, program: Program, hosts: list[FragmentGraph], part: FragmentGraph, found: Occurrence,
             chosen: dict[int, Division], refused: Callable[[FragmentGraph, str], None]) -> bool:
        """Adds the divisions of equal fragments, where they are legal and cheap."""
        try:
            pieces = divide(hosts[0], part, found)
            _check_crossing(Division(hosts[0], part, found, pieces))
        except CannotDivide as why:
            refused(hosts[0], f"it holds what @{part.call.callee} does, but {why.what}")
            return False
        if any(_calls(program, host.call) + len(pieces) - 1 > _CALLS for host in hosts):
            refused(hosts[0], f"it would be more than {_CALLS} fragments for one task")
            return False
        chosen.update((id(host.call), Division(host, part, found, pieces)) for host in hosts)
        return True


def _graphs(program: Program, view: View) -> list[FragmentGraph]:
    """The fragments, one for each call; those that XLA has still to partition are left out."""
    graphs = []
    for step in program.steps:
        if isinstance(step, FragmentCall):
            mesh = local_mesh(view, step.mesh, program.meshes[step.mesh].axes)
            graphs.append(graph_of(step, view.functions[step.callee], mesh, program.types))
    return [graph for graph in graphs if graph is not None]


def _calls(program: Program, call: FragmentCall) -> int:
    """How many fragments run for the task that a call belongs to."""
    return sum(isinstance(step, FragmentCall) and (step.task, step.stage) == (call.task, call.stage)
               for step in program.steps)


def _check_crossing(division: Division) -> None:
    """Whether values can lie between pieces as the contained fragment has them.

    Raises:
      CannotDivide: one lies otherwise in the fragment, or would be called equal on devices on which it may differ, or
        the new buffers take too much.
    """
    host, values = division.host, _crossing(division)
    if division.part.mesh != host.mesh:
        raise CannotDivide("the meshes differ")
    theirs = {division.found.values[value]: each for value, each in division.part.crossing.items()}
    own = {value: each.kind for value, each in host.crossing.items()}
    if any(value in theirs and theirs[value].on_mesh(host.call.mesh).kind != kind for value, kind in own.items()):
        raise CannotDivide("a value lies otherwise on the devices there")
    between = [each.kind for value, each in values.items() if value not in own]
    axes = {name for name, size in host.mesh.axes if size > 1}
    if any(axes - {axis for cut in kind.spec for axis in cut} or kind.unreduced for kind in between):
        raise CannotDivide("a value between them is not cut over all axes of the mesh, and may differ where it is not")
    extra = sum(device_bytes(kind, host.mesh) for kind in between)
    if extra > _EXTRA * sum(device_bytes(kind, host.mesh) for kind in own.values()):
        raise CannotDivide("what lies between them would take more than a tenth of the bytes that it takes and gives")


def _crossing(division: Division) -> dict[int, CrossingValue]:
    """How each value lies that a piece takes or gives.

    Raises:
      CannotDivide: the contained fragment does not say it.
    """
    host = division.host
    values = host.crossing | {division.found.values[value]: each.on_mesh(host.call.mesh)
                              for value, each in division.part.crossing.items()}
    crossing = sorted({value for piece in division.pieces for value in (*piece.reads, *piece.gives)})
    if host.mesh.size > 1 and any(value not in values for value in crossing):
        raise CannotDivide("how a value between them lies on the devices is not known")
    return {value: values[value] if value in values else whole_value(host, value) for value in crossing}


def _draft(program: Program, ops: ProgramOps, chosen: dict[int, Division], scratch: ir.Block
           ) -> ProgramDraft:
    """The program with pieces in place of fragments."""
    types, kinds = list(program.types), list(ops.types)

    def written(steps: tuple[Step, ...], like: tuple[ir.Operation, ...]) -> list[WrittenStep]:
        made: list[WrittenStep] = []
        for step, op in zip(steps, like, strict=True):
            division = chosen.get(id(step))
            if division is None or not isinstance(step, FragmentCall):
                made.append(WrittenStep(step, op))
            else:
                made += _pieces(step, op, division, types, kinds, scratch)
        return made

    parts = [written(*sides) for sides in ((program.before, ops.before), (program.body, ops.body),
                                           (program.after, ops.after))]
    return ProgramDraft(replace(program, types=tuple(types)), ops, kinds, *parts)


def _pieces(call: FragmentCall, op: ir.Operation, division: Division, types: list[MeshTensor], kinds: list[ir.Type],
            scratch: ir.Block) -> list[WrittenStep]:
    """Calls of the pieces of a fragment; values between them get numbers, types and kinds."""
    host, values = division.host, _crossing(division)
    numbers = dict(enumerate(call.operands)) | dict(zip(host.returned, call.results, strict=True))
    for value, each in values.items():
        if value not in numbers:
            numbers[value] = len(types)
            types.append(each.kind)
            kinds.append(ir.Type.parse(each.kind.text))
    return [WrittenStep(replace(call, operands=tuple(numbers[value] for value in piece.reads),
                                results=tuple(numbers[value] for value in piece.gives)), op,
                        piece_function(host, piece, values, scratch, division.part)) for piece in division.pieces]
