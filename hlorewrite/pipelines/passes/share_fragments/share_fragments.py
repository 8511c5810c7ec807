"""The pass ``share-fragments``: a fragment that contains another one runs it as a separate fragment."""

from dataclasses import dataclass, replace

from hlorewrite.ir import Module, View, ir
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.programs import is_program
from hlorewrite.pipelines.mpmd.mesh_view import local_mesh
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, ProgramOps, Step, read_program_ops
from hlorewrite.pipelines.mpmd.program_write import ProgramDraft, WrittenStep, write_program
from hlorewrite.pipelines.mpmd.types import MeshTensor
from hlorewrite.pipelines.passes.share_fragments.choose import GROWTH, DivisionChooser, ShareDivision, crossing_values
from hlorewrite.pipelines.passes.share_fragments.fragment_graph import FragmentGraph, OpSignatures, graph_of
from hlorewrite.pipelines.passes.share_fragments.piece_function import piece_function
from hlorewrite.rules.listener import Remark


@dataclass(frozen=True)
class ShareFragments(Pass):
    """Cuts fragments of a pipeline program that contain another one, so that XLA compiles equal parts once.

    A first stage is often an embedding and a layer, the next one a layer: equal fragments are compiled once, and equal
    parts of fragments for each. The fragment becomes two or three, which run one after the other on its mesh; the one
    that is shared is equal to the other fragment except for the mesh. That costs a dispatch in each micro-batch, and
    what XLA would fuse across the cut; it pays where compilation is what takes long, as on CPU. A fragment that returns
    less than an equal one returns the rest too.

    Attributes:
      least: how many ops that compute something a fragment must have to be shared, for each call that is added; those
        in a loop count, too. A call outside of the micro-batch loop counts as 1/m of one in it.
    """

    name = "share-fragments"
    least: int = 16

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Divides fragments until no two contain the same ops."""
        if not is_program(module):
            ctx.remark(Remark("missed", self.name, "the module is not a program of several meshes", module.name))
            return False
        rounds, limit, graphs = 0, -1, _Graphs()
        # Ends: each round replaces fragments by smaller ones, or by equal ones of which others exist.
        while True:
            program, ops = read_program_ops(module)
            limit = int((1 + GROWTH) * len(program.body)) if limit < 0 else limit
            chooser = DivisionChooser(program, self.least, limit)
            with module.context, ir.Location.unknown():
                chooser.choose(graphs.of(program, View(module)))
                if not chooser.chosen:
                    break
                graphs.forget({each.host.call.callee for each in chooser.chosen.values()})
                scratch = ir.Module.create()  # new functions stand here until they are written
                module.mlir = write_program(module, _draft(program, ops, chooser.chosen, scratch.body))
            rounds += 1
            for each in chooser.chosen.values():
                how = f"runs as {len(each.pieces)} fragments" if len(each.pieces) > 1 else "returns more than is read"
                ctx.remark(Remark("applied", self.name, f"@{each.host.call.callee} {how}; {each.part.work} ops are "
                                  f"compiled once for it and @{each.part.call.callee}", each.host.call.where,
                                  "func.func"))
            ctx.count("fragments divided", len(chooser.chosen))
        for call, why in chooser.refused.values():
            ctx.remark(Remark("blocked", self.name, f"@{call.callee} stays whole: {why}", call.where, "func.func"))
        if rounds:
            ctx.forget_view()
        return rounds > 0


class _Graphs:
    """The fragments of a program; those that stay as they are are read once."""

    def __init__(self) -> None:
        self._signatures = OpSignatures()
        self._known: dict[str, FragmentGraph | None] = {}
        self._read: list[ir.Module] = []  # their ops are those of the graphs, and end with them

    def of(self, program: Program, view: View) -> list[FragmentGraph]:
        """The fragments, one for each call; those that XLA has yet to partition are left out."""
        self._read.append(view.module.mlir)
        calls = [step for step in program.steps if isinstance(step, FragmentCall)]
        meshes = {name: local_mesh(view, name, program.meshes[name].axes) for name in {step.mesh for step in calls}}
        graphs: list[FragmentGraph] = []
        for call in calls:
            if call.callee not in self._known:
                self._known[call.callee] = graph_of(call, view.functions[call.callee], meshes[call.mesh],
                                                    program.types, self._signatures)
            known = self._known[call.callee]
            if known is not None:
                graphs.append(known.called_by(call))
        return graphs

    def forget(self, callees: set[str]) -> None:
        """Forgets fragments that are replaced: a new one may have the same name."""
        for callee in callees:
            self._known.pop(callee, None)


def _draft(program: Program, ops: ProgramOps, chosen: dict[int, ShareDivision], scratch: ir.Block
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


def _pieces(call: FragmentCall, op: ir.Operation, division: ShareDivision, types: list[MeshTensor],
            kinds: list[ir.Type], scratch: ir.Block) -> list[WrittenStep]:
    """Calls of the pieces of a fragment; values between them get numbers, types and kinds."""
    host, values = division.host, crossing_values(division)
    numbers = dict(enumerate(call.operands)) | dict(zip(host.returned, call.results, strict=True))
    for value, each in values.items():
        if value not in numbers:
            numbers[value] = len(types)
            types.append(each.kind)
            kinds.append(ir.Type.parse(each.kind.text))
    return [WrittenStep(replace(call, operands=tuple(numbers[value] for value in piece.reads),
                                results=tuple(numbers[value] for value in piece.gives)), op,
                        piece_function(host, piece, values, scratch, division.part)) for piece in division.pieces]
