"""A fragment as a graph of ops that can be compared with others: without names of values, meshes and channels."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.ir import CHANNEL, channel_number, does_more_than_compute, ir, renumbered, sdy
from hlorewrite.ir.view import nested_ops, readable, terminator
from hlorewrite.ops.table import OpClass, op_class
from hlorewrite.pipelines.mpmd.mesh_view import body_of, manual_body
from hlorewrite.pipelines.mpmd.program import MOVES, FragmentCall
from hlorewrite.pipelines.mpmd.types import MeshTensor, mesh_tensor


@dataclass(frozen=True)
class CrossingValue:
    """How a value is placed when it enters or leaves a fragment.

    Attributes:
      kind: its type in the program.
      row: attributes of the function's argument or result, as text.
      manual: its sharding in the manual computation, as text; empty if there is none.
    """

    kind: MeshTensor
    row: str
    manual: str

    def on_mesh(self, name: str) -> CrossingValue:
        """The same on another mesh of the same axes."""
        old = self.kind.mesh
        return CrossingValue(replace(self.kind, mesh=name), self.row.replace(f"<@{old},", f"<@{name},"),
                             self.manual.replace(f"<@{old},", f"<@{name},"))


@dataclass(frozen=True)
class GraphOp:
    """An op of a fragment.

    Attributes:
      op: the op.
      signature: a number for what it is, apart from which values it reads; see ``OpSignatures``.
      reads: numbers of the values it reads, each once; what its regions capture too.
      results: numbers of its results.
      work: how many ops compute something in it; 0 if it only makes, moves or chooses data, so that it may be made
        again.
    """

    op: ir.Operation
    signature: int
    reads: tuple[int, ...]
    results: tuple[int, ...]
    work: int

    @property
    def moves(self) -> bool:
        """Whether it only makes, moves or chooses data."""
        return not self.work


@dataclass(frozen=True, eq=False)
class FragmentGraph:
    """A fragment.

    Attributes:
      call: a call of it.
      function: its function.
      mesh: its mesh, devices numbered from 0.
      arguments: how many arguments it has.
      values: its values: arguments first, then results of ops in order.
      ops: its ops, in order.
      returned: numbers of the values it returns.
      crossing: how arguments and returned values are placed, by their numbers.
      channels: numbers of the channels of its collectives, in order.
      has_effects: whether an op does more than make its results.
    """

    call: FragmentCall
    function: ir.Operation
    mesh: Mesh
    arguments: int
    values: tuple[ir.Value, ...]
    ops: tuple[GraphOp, ...]
    returned: tuple[int, ...]
    crossing: dict[int, CrossingValue]
    channels: tuple[int, ...]
    has_effects: bool

    @functools.cached_property
    def key(self) -> Hashable:
        """Equal for fragments that XLA compiles to the same, apart from what is donated to them."""
        crossing = (self.crossing[value].kind for value in (*range(self.arguments), *self.returned))
        kinds = tuple((kind.tensor, kind.spec, kind.unreduced) for kind in crossing)
        return tuple((op.signature, op.reads) for op in self.ops), self.returned, kinds, self.mesh

    @functools.cached_property
    def maker(self) -> dict[int, int]:
        """Value -> the position of the op that makes it."""
        return {value: position for position, op in enumerate(self.ops) for value in op.results}

    @functools.cached_property
    def by_signature(self) -> dict[int, list[int]]:
        """Signature -> the positions of the ops that have it."""
        found: dict[int, list[int]] = {}
        for position, op in enumerate(self.ops):
            found.setdefault(op.signature, []).append(position)
        return found

    @functools.cached_property
    def signatures(self) -> Counter[int]:
        """How often each op is in it."""
        return Counter(op.signature for op in self.ops)

    @functools.cached_property
    def depths(self) -> tuple[int, ...]:
        """The length of the longest chain of ops that each value depends on."""
        lengths = [0] * len(self.values)
        for op in self.ops:
            mine = 1 + max((lengths[each] for each in op.reads), default=0)
            for result in op.results:
                lengths[result] = mine
        return tuple(lengths)

    def called_by(self, call: FragmentCall) -> FragmentGraph:
        """The same fragment with its call in a rewritten program; everything known about it is kept."""
        other = replace(self, call=call)
        other.__dict__.update({name: each for name, each in self.__dict__.items() if name not in other.__dict__})
        return other

    @functools.cached_property
    def work(self) -> int:
        """How many ops compute something."""
        return sum(op.work for op in self.ops)


class OpSignatures:
    """Numbers that are equal for equal ops, so fragments can be compared without looking at their ops again."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, described: Hashable) -> int:
        """The number of an op with this description."""
        return self._numbers.setdefault(described, len(self._numbers))


def graph_of(call: FragmentCall, function: ir.Operation, mesh: Mesh, types: tuple[MeshTensor, ...],
             signatures: OpSignatures) -> FragmentGraph | None:
    """Reads a fragment.

    Args:
      call: a call of it.
      function: its function.
      mesh: its mesh, devices numbered as the fragment numbers them.
      types: types of the program's values.
      signatures: the signatures of all fragments that are compared.

    Returns:
      The graph; None if XLA has yet to partition it.
    """
    block = body_of(function, mesh)
    if block is None:
        return None
    reader = _GraphReader(call.mesh, signatures)
    for argument in block.arguments:
        reader.number(argument)
    end = terminator(block)
    ops = tuple(reader.op(each.operation) for each in block.operations if each.operation != end)
    returned = tuple(reader.number(value) for value in end.operands)
    channels = tuple(channel_number(op) for op in nested_ops(function) if channel_number(op))
    return FragmentGraph(call, function, mesh, arguments=len(block.arguments), values=tuple(reader.numbers), ops=ops,
                         returned=returned, crossing=_crossing(call, function, returned, types), channels=channels,
                         has_effects=reader.has_effects)


def prefix_of(graph: FragmentGraph, ops: Sequence[int]) -> tuple[FragmentGraph, tuple[int, ...]]:
    """The part of a fragment that consists of some ops, as if it were a fragment.

    Args:
      graph: the fragment.
      ops: positions of the ops, ascending; what they read is made by them or an argument.

    Returns:
      (the part, which returns what the rest of the fragment reads of it and what the fragment returns of it; the
      fragment's number of each of its values).
    """
    inside = set(ops)
    rest = {value for position, op in enumerate(graph.ops) if position not in inside for value in op.reads}
    made = [value for position in ops for value in graph.ops[position].results]
    read = {value for position in ops for value in graph.ops[position].reads}
    values = (*(value for value in range(graph.arguments) if value in read), *made)
    number = {value: place for place, value in enumerate(values)}
    kept = tuple(replace(graph.ops[position], reads=tuple(number[value] for value in graph.ops[position].reads),
                         results=tuple(number[value] for value in graph.ops[position].results)) for position in ops)
    given = tuple(number[value] for value in made if value in graph.returned or
                  (value in rest and not graph.ops[graph.maker[value]].moves))
    crossing = {number[value]: each for value, each in graph.crossing.items() if value in number}
    channels = tuple(range(1, 1 + sum(bool(channel_number(inner)) for op in kept for inner in nested_ops(op.op))))
    return FragmentGraph(graph.call, graph.function, graph.mesh, arguments=len(values) - len(made),
                         values=tuple(graph.values[value] for value in values), ops=kept, returned=given,
                         crossing=crossing, channels=channels, has_effects=graph.has_effects), values


def whole_value(graph: FragmentGraph, value: int) -> CrossingValue:
    """How a value is placed on a mesh of one device.

    Args:
      graph: the fragment that makes it.
      value: its number.
    """
    tensor = ir.RankedTensorType(graph.values[value].type)
    cuts = ", ".join("{}" for _ in range(tensor.rank))
    sharding = f"<@{graph.call.mesh}, [{cuts}]>"
    kind = mesh_tensor(ir.Type.parse(f'!mpmd.mesh_tensor<"{graph.call.mesh}", {tensor}, sharding={sharding}>'))
    return CrossingValue(kind, f"{{sdy.sharding = #sdy.sharding{sharding}}}",
                         sharding if manual_body(graph.function) is not None else "")


def _crossing(call: FragmentCall, function: ir.Operation, returned: tuple[int, ...], types: tuple[MeshTensor, ...]
              ) -> dict[int, CrossingValue]:
    """How arguments and results are placed."""
    manual = function.regions[0].blocks[0].operations[0].operation if manual_body(function) is not None else None
    arguments = range(len(function.regions[0].blocks[0].arguments))
    found: dict[int, CrossingValue] = {}
    for key, name, numbers, values in (("arg_attrs", "in_shardings", call.operands, arguments),
                                       ("res_attrs", "out_shardings", call.results, returned)):
        rows = list(ir.ArrayAttr(function.attributes[key])) if key in function.attributes else []
        laid = [] if manual is None else [
            str(each).removeprefix("#sdy.sharding")
            for each in sdy.TensorShardingPerValueAttr(manual.attributes[name]).shardings]
        for place, (number, value) in enumerate(zip(numbers, values, strict=True)):
            found[value] = CrossingValue(types[number], str(rows[place]) if rows else "{}", laid[place] if laid else "")
    return found


@dataclass
class _GraphReader:
    """Numbers values as it meets them."""

    mesh: str
    signatures: OpSignatures
    numbers: dict[ir.Value, int] = field(default_factory=dict)
    types: dict[ir.Value, ir.Type] = field(default_factory=dict)
    has_effects: bool = False

    def number(self, value: ir.Value) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def op(self, op: ir.Operation) -> GraphOp:
        """An op of the fragment's block, those inside it included."""
        outside: dict[ir.Value, int] = {}
        signature = self.signatures.number(self._described(op, {}, outside))
        reads = tuple(self.number(value) for value in outside)
        self.has_effects |= any(map(does_more_than_compute, nested_ops(op)))
        return GraphOp(op, signature, reads, tuple(self.number(result) for result in op.results), _work(op))

    def _described(self, op: ir.Operation, inside: dict[ir.Value, int], outside: dict[ir.Value, int]) -> Hashable:
        operands = tuple(op.operands)
        reads = tuple([inside[value] if value in inside else ("outside", outside.setdefault(value, len(outside)))
                       for value in operands])
        regions = []
        for region in op.regions:
            for block in region.blocks:
                _number_new(block.arguments, inside)
                regions.append((tuple(map(self._type, block.arguments)), tuple(
                    [self._described(each.operation, inside, outside) for each in block.operations])))
        results = tuple(op.results)
        _number_new(results, inside)
        return (op.name, tuple([(name, self._attribute(op, name)) for name in sorted(op.attributes)]), reads,
                tuple(map(self._type, operands)), tuple(map(self._type, results)), tuple(regions))

    def _type(self, value: ir.Value) -> ir.Type:
        known = self.types.get(value)
        if known is None:
            known = self.types[value] = value.type
        return known

    def _attribute(self, op: ir.Operation, name: str) -> Hashable:
        attribute = readable(op, name)
        if attribute is None:
            return object()  # equal to no other
        if name == CHANNEL and channel_number(op) > 0:
            return renumbered(op, 1)
        if name.startswith("sdy.") or op.name.startswith("sdy."):
            return str(attribute).replace(f"@{self.mesh}", "@")
        return attribute


def _work(op: ir.Operation) -> int:
    """How many ops compute something. In a loop or branch XLA makes kernels of what moves data too."""
    if op.name in MOVES:
        return 0
    inside = nested_ops(op) if op_class(op.name) is OpClass.CONTROL else ()
    return sum((op_class(each.name) not in (OpClass.CONSTANT, OpClass.TERMINATOR) for each in inside), 0) or 1


def _number_new(values: Iterable[ir.Value], numbers: dict[ir.Value, int]) -> None:
    for value in values:
        numbers[value] = len(numbers)


__all__ = ["CrossingValue", "FragmentGraph", "GraphOp", "OpSignatures", "graph_of", "prefix_of", "whole_value"]
