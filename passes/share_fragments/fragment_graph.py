"""A fragment as a graph of ops that can be compared with others: without names of values, meshes and channels."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace

from hlorewrite.ir.binding import ir
from hlorewrite.ir.channels import channel_number, renumbered
from hlorewrite.ir.collectives import CHANNEL
from hlorewrite.ir.view import nested_ops, readable, terminator
from hlorewrite.mpmd.mesh_view import body_of
from hlorewrite.mpmd.program import FragmentCall
from hlorewrite.mpmd.types import MeshTensor
from hlorewrite.spmd.mesh import Mesh

_MOVES = frozenset(f"stablehlo.{name}" for name in (
    "constant", "iota", "broadcast_in_dim", "reshape", "transpose", "convert", "slice", "pad", "compare", "select",
    "bitcast_convert"))
_EFFECTS = frozenset(f"stablehlo.{name}" for name in (
    "infeed", "outfeed", "send", "recv", "rng", "create_token", "after_all"))


@dataclass(frozen=True)
class GraphOp:
    """An op of a fragment.

    Attributes:
      op: the op.
      signature: what it is, apart from which values it reads.
      reads: numbers of the values it reads, each once; what its regions capture too.
      results: numbers of its results.
      moves: whether it only makes, moves or chooses data, so that it may be made again.
    """

    op: ir.Operation
    signature: Hashable
    reads: tuple[int, ...]
    results: tuple[int, ...]
    moves: bool


@dataclass(frozen=True, eq=False)
class FragmentGraph:
    """A fragment.

    Attributes:
      call: a call of it.
      function: its function.
      mesh: its mesh, devices numbered from 0.
      inputs: types of its arguments, their mesh without a name.
      outputs: types of its results, their mesh without a name.
      values: its values: arguments first, then results of ops in order.
      ops: its ops, in order.
      returned: numbers of the values it returns.
      has_effects: whether an op does more than make its results.
    """

    call: FragmentCall
    function: ir.Operation
    mesh: Mesh
    inputs: tuple[MeshTensor, ...]
    outputs: tuple[MeshTensor, ...]
    values: tuple[ir.Value, ...]
    ops: tuple[GraphOp, ...]
    returned: tuple[int, ...]
    has_effects: bool

    @functools.cached_property
    def key(self) -> Hashable:
        """Equal for fragments that XLA compiles to the same, apart from what is donated to them."""
        return (tuple((op.signature, op.reads) for op in self.ops), self.returned, self.inputs, self.outputs, self.mesh)

    @functools.cached_property
    def maker(self) -> dict[int, int]:
        """Value -> the position of the op that makes it."""
        return {value: position for position, op in enumerate(self.ops) for value in op.results}

    @functools.cached_property
    def by_signature(self) -> dict[Hashable, list[int]]:
        """Positions of ops by what they are."""
        found: dict[Hashable, list[int]] = {}
        for position, op in enumerate(self.ops):
            found.setdefault(op.signature, []).append(position)
        return found

    @functools.cached_property
    def work(self) -> int:
        """How many ops compute something."""
        return sum(not op.moves for op in self.ops)


def graph_of(call: FragmentCall, function: ir.Operation, mesh: Mesh, types: tuple[MeshTensor, ...]
             ) -> FragmentGraph | None:
    """Reads a fragment.

    Args:
      call: a call of it.
      function: its function.
      mesh: its mesh, devices numbered as the fragment numbers them.
      types: types of the program's values.

    Returns:
      The graph; None where XLA has still to partition it.
    """
    block = body_of(function, mesh)
    if block is None:
        return None
    reader = _GraphReader(call.mesh)
    for argument in block.arguments:
        reader.number(argument)
    end = terminator(block)
    ops = tuple(reader.op(each.operation) for each in block.operations if each.operation != end)
    inputs, outputs = (tuple(replace(types[number], mesh="") for number in side) for side in (call.operands, call.results))
    return FragmentGraph(call, function, mesh, inputs, outputs, tuple(reader.numbers), ops,
                         tuple(reader.number(value) for value in end.operands), reader.has_effects)


@dataclass
class _GraphReader:
    """Numbers values as it meets them."""

    mesh: str
    numbers: dict[ir.Value, int] = field(default_factory=dict)
    has_effects: bool = False

    def number(self, value: ir.Value) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def op(self, op: ir.Operation) -> GraphOp:
        """An op of the fragment's block, those inside it included."""
        outside: dict[ir.Value, int] = {}
        signature = self._described(op, {}, outside)
        reads = tuple(self.number(value) for value in outside)
        self.has_effects |= any(map(_has_effect, nested_ops(op)))
        return GraphOp(op, signature, reads, tuple(self.number(result) for result in op.results), op.name in _MOVES)

    def _described(self, op: ir.Operation, inside: dict[ir.Value, int], outside: dict[ir.Value, int]) -> Hashable:
        reads = tuple(("inside", inside[value]) if value in inside else
                      ("outside", outside.setdefault(value, len(outside))) for value in op.operands)
        regions = []
        for region in op.regions:
            for block in region.blocks:
                _number_new(block.arguments, inside)
                regions.append((tuple(argument.type for argument in block.arguments), tuple(
                    self._described(each.operation, inside, outside) for each in block.operations)))
        _number_new(op.results, inside)
        return (op.name, tuple((name, self._attribute(op, name)) for name in sorted(op.attributes)), reads,
                tuple(value.type for value in op.operands), tuple(result.type for result in op.results), tuple(regions))

    def _attribute(self, op: ir.Operation, name: str) -> Hashable:
        attribute = readable(op, name)
        if attribute is None:
            return object()  # equal to no other
        if name == CHANNEL and channel_number(op) > 0:
            return renumbered(op, 1)
        if name.startswith("sdy.") or op.name.startswith("sdy."):
            return str(attribute).replace(f"@{self.mesh}", "@")
        return attribute


def _number_new(values: Iterable[ir.Value], numbers: dict[ir.Value, int]) -> None:
    for value in values:
        numbers[value] = len(numbers)


def _has_effect(op: ir.Operation) -> bool:
    return op.name in _EFFECTS or (
        "has_side_effect" in op.attributes and ir.BoolAttr(op.attributes["has_side_effect"]).value)


__all__ = ["FragmentGraph", "GraphOp", "graph_of"]
