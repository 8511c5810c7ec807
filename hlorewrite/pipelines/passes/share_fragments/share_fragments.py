"""The pass ``share-fragments``: a fragment that contains another one runs it as a separate fragment."""

import functools
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from hlorewrite.ir import Module, View, ir
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.programs import is_program
from hlorewrite.pipelines.mpmd.mesh_view import local_mesh
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, ProgramOps, Step, read_program_ops
from hlorewrite.pipelines.mpmd.program_write import ProgramDraft, WrittenStep, write_program
from hlorewrite.pipelines.mpmd.types import MeshTensor, device_bytes
from hlorewrite.pipelines.passes.share_fragments import fragment_graph, subgraph_match
from hlorewrite.pipelines.passes.share_fragments.fragment_graph import CrossingValue, FragmentGraph
from hlorewrite.pipelines.passes.share_fragments.outline import CannotDivide, FragmentPiece, divide, piece_function
from hlorewrite.rules.listener import Remark

# ---- chooses the fragments that are divided, and what they are divided around


CALLS = 3
"""Fragments of one task of one stage, in all."""
EXTRA = 0.1
"""Limit of bytes in buffers between pieces of a fragment, as a share of its inputs and outputs."""
GROWTH = 0.4
"""Calls that may be added to a micro-batch, as a share of those it makes."""


@dataclass(frozen=True)
class ShareDivision:
    """How a fragment is divided.

    Attributes:
      host: the fragment.
      part: what it contains.
      found: where.
      pieces: what becomes of it.
    """

    host: FragmentGraph
    part: FragmentGraph
    found: subgraph_match.Occurrence
    pieces: tuple[FragmentPiece, ...]


@dataclass
class DivisionChooser:
    """Chooses divisions of a program's fragments.

    Args:
      program: the program.
      least: how many ops that compute something a shared fragment has, for each call that is added.
      limit: how many calls a micro-batch may make at most.
      chosen: the divisions, by the identity of the fragment's call.
      refused: why fragments stay whole, by the identity of the call.
    """

    program: Program
    least: int
    limit: int
    chosen: dict[int, ShareDivision] = field(default_factory=dict)
    refused: dict[int, tuple[FragmentCall, str]] = field(default_factory=dict)

    def choose(self, graphs: list[FragmentGraph]) -> None:
        """Divides fragments around whole fragments that they contain; if there are none, divides two around what they
        share.

        Args:
          graphs: the fragments, one for each call.
        """
        classes: dict[Hashable, list[FragmentGraph]] = {}
        for graph in graphs:
            if not graph.has_effects:
                classes.setdefault(graph.key, []).append(graph)
        kinds = sorted(classes.values(), key=lambda each: (-each[0].work, -len(each[0].ops), len(each[0].returned)))
        touched: set[int] = set()
        for position, hosts in enumerate(kinds):
            for place, parts in enumerate(kinds[position + 1:], position + 1):
                found = subgraph_match.occurrence_in(parts[0], hosts[0]) if self._pays(parts[0].work, hosts) else None
                if found is not None and self._add(hosts, parts[0], found):
                    touched |= {position, place}
                    break
        self._around_common_parts([each for position, each in enumerate(kinds) if position not in touched])

    def _around_common_parts(self, kinds: list[list[FragmentGraph]]) -> None:
        """Divides two kinds of fragments around what they share; the others wait for the next round."""
        for position, hosts in enumerate(kinds):
            for parts in (each for place, each in enumerate(kinds) if place != position):
                if not self._pays(subgraph_match.common_work(parts[0], hosts[0]), hosts + parts):
                    continue
                common, values = fragment_graph.prefix_of(parts[0], subgraph_match.common_prefix(parts[0], hosts[0]))
                pays = self._pays(common.work, hosts + parts)
                found = subgraph_match.occurrence_in(common, hosts[0]) if pays else None
                ops = tuple(parts[0].maker[values[op.results[0]]] for op in common.ops)
                own = subgraph_match.Occurrence(ops, values)
                before = dict(self.chosen)
                if found is not None and self._add(hosts, common, found):
                    if self._add(parts, common, own):
                        return
                    self.chosen = before

    def _pays(self, work: int, hosts: list[FragmentGraph]) -> bool:
        """Whether what is shared is worth the calls that it adds: each micro-batch makes those in the loop."""
        often = max(1, self.program.iterations)
        return work * often >= self.least * sum(often if id(host.call) in self._looped else 1 for host in hosts)

    @functools.cached_property
    def _looped(self) -> frozenset[int]:
        """Identities of the calls that each micro-batch makes."""
        return frozenset(map(id, self.program.body))

    def _add(self, hosts: list[FragmentGraph], part: FragmentGraph, found: subgraph_match.Occurrence) -> bool:
        """Adds the divisions of equal fragments, where they are legal and cheap; returns whether they are."""
        try:
            pieces = divide(hosts[0], part, found)
            _check_crossing(ShareDivision(hosts[0], part, found, pieces))
            self._check_calls(hosts, pieces)
            self._check_carried(hosts, pieces)
        except CannotDivide as why:
            for host in hosts:
                self.refused[id(host.call)] = host.call, f"it contains what @{part.call.callee} does, but {why.what}"
            return False
        self.chosen.update((id(host.call), ShareDivision(host, part, found, pieces)) for host in hosts)
        return True

    def _check_calls(self, hosts: list[FragmentGraph], pieces: tuple[FragmentPiece, ...]) -> None:
        """Whether the calls that are added are few.

        Raises:
          CannotDivide: they are not.
        """
        added = {id(each.host.call): len(each.pieces) - 1 for each in self.chosen.values()}
        added |= {id(host.call): len(pieces) - 1 for host in hosts}
        if len(self.program.body) + sum(added.get(id(step), 0) for step in self.program.body) > self.limit:
            raise CannotDivide(f"a micro-batch would make more than {self.limit} calls")
        tasks = {(host.call.task, host.call.stage) for host in hosts}
        for task in tasks:
            mine = [step for step in self.program.steps
                    if isinstance(step, FragmentCall) and (step.task, step.stage) == task]
            if sum(1 + added.get(id(step), 0) for step in mine) > CALLS:
                raise CannotDivide(f"its task would be more than {CALLS} fragments")

    def _check_carried(self, hosts: list[FragmentGraph], pieces: tuple[FragmentPiece, ...]) -> None:
        """Checks that each value that micro-batches carry is read and produced by a single piece. Otherwise a schedule
        could not reorder micro-batches.

        Raises:
          CannotDivide: one does not.
        """
        following = {carry.inside: carry.next for carry in self.program.carries}
        for host in hosts:
            made = dict(zip(host.call.results, host.returned, strict=True))
            for place, number in enumerate(host.call.operands):
                readers = [piece for piece in pieces if place in piece.reads]
                value = made.get(following.get(number, -1))
                if number in following and (len(readers) != 1 or (
                        value is not None and value not in readers[0].gives)):
                    raise CannotDivide("a value that is carried to the next micro-batch would pass through both")


def _check_crossing(division: ShareDivision) -> None:
    """Whether values can be between pieces as the contained fragment has them.

    Raises:
      CannotDivide: a crossing value has another sharding in the fragment, or would be declared equal on devices on
        which it may differ, or the new buffers take too much memory.
    """
    host, values = division.host, crossing_values(division)
    if division.part.mesh != host.mesh:
        raise CannotDivide("the meshes differ")
    theirs = {division.found.values[value]: each for value, each in division.part.crossing.items()}
    own = {value: each.kind for value, each in host.crossing.items()}
    if any(value in theirs and theirs[value].on_mesh(host.call.mesh).kind != kind for value, kind in own.items()):
        raise CannotDivide("a value is placed differently on the devices there")
    between = [each.kind for value, each in values.items() if value not in own]
    axes = {name for name, size in host.mesh.axes if size > 1}
    if any(axes - {axis for cut in kind.spec for axis in cut} or kind.unreduced for kind in between):
        raise CannotDivide("a value between them is not cut over all axes of the mesh, and may differ where it is not")
    extra = sum(device_bytes(kind, host.mesh) for kind in between)
    if extra > EXTRA * sum(device_bytes(kind, host.mesh) for kind in own.values()):
        raise CannotDivide(f"the values between them take more than {EXTRA:.0%} of the bytes of its inputs and outputs")


def crossing_values(division: ShareDivision) -> dict[int, CrossingValue]:
    """How each value that a piece takes or gives is placed.

    Raises:
      CannotDivide: the contained fragment does not say how.
    """
    host = division.host
    values = host.crossing | {division.found.values[value]: each.on_mesh(host.call.mesh)
                              for value, each in division.part.crossing.items()}
    crossing = sorted({value for piece in division.pieces for value in (*piece.reads, *piece.gives)})
    if host.mesh.size > 1 and any(value not in values for value in crossing):
        raise CannotDivide("the placement of a value between them is unknown")
    return {value: values[value] if value in values else fragment_graph.whole_value(host, value) for value in crossing}


__all__ = ["GROWTH", "DivisionChooser", "ShareDivision", "crossing_values"]


# ---- the pass


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
        self._signatures = fragment_graph.OpSignatures()
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
                self._known[call.callee] = fragment_graph.graph_of(call, view.functions[call.callee], meshes[call.mesh],
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
