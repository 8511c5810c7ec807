"""Writes a piece of a fragment as a function."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hlorewrite.ir.binding import ir, sdy
from hlorewrite.ir.channels import channel_number, renumbered
from hlorewrite.ir.collectives import CHANNEL
from hlorewrite.ir.edit import remap
from hlorewrite.ir.view import nested_ops
from hlorewrite.mpmd.mesh_view import manual_body
from hlorewrite.mpmd.types import MeshTensor, mesh_tensor
from hlorewrite.passes.share_fragments.fragment_graph import FragmentGraph
from hlorewrite.passes.share_fragments.inside import Occurrence
from hlorewrite.passes.share_fragments.pieces import Piece

_IN, _OUT = "in_shardings", "out_shardings"


@dataclass(frozen=True)
class CrossingValue:
    """How a value lies where it enters or leaves a fragment.

    Attributes:
      kind: its type in the program.
      row: attributes of the function's argument or result, as text.
      manual: its sharding in the manual computation, as text; empty where there is none.
    """

    kind: MeshTensor
    row: str
    manual: str


def crossing_values(host: FragmentGraph, part: FragmentGraph, found: Occurrence) -> dict[int, CrossingValue]:
    """How the values lie that a fragment and one it contains take and give.

    Args:
      host: the fragment.
      part: what it contains.
      found: where.

    Returns:
      By the fragment's numbers of values; what the contained one says of its own, over the fragment's mesh.
    """
    theirs = _sides(part)
    places = {found.values[value]: each for value, each in theirs.items()}
    return _sides(host) | {value: _on_mesh(each, part.call.mesh, host.call.mesh) for value, each in places.items()}


def whole_value(host: FragmentGraph, value: int) -> CrossingValue:
    """How a value lies on a mesh of one device.

    Args:
      host: the fragment that makes it.
      value: its number.
    """
    tensor = ir.RankedTensorType(host.values[value].type)
    cuts = ", ".join("{}" for _ in range(tensor.rank))
    sharding = f"<@{host.call.mesh}, [{cuts}]>"
    kind = mesh_tensor(ir.Type.parse(f'!mpmd.mesh_tensor<"{host.call.mesh}", {tensor}, sharding={sharding}>'))
    return CrossingValue(kind, f"{{sdy.sharding = #sdy.sharding{sharding}}}", sharding)


def _sides(graph: FragmentGraph) -> dict[int, CrossingValue]:
    manual = graph.function.regions[0].blocks[0].operations[0].operation \
        if manual_body(graph.function) is not None else None
    found: dict[int, CrossingValue] = {}
    for key, name, kinds, values in (("arg_attrs", _IN, graph.inputs, range(len(graph.inputs))),
                                     ("res_attrs", _OUT, graph.outputs, graph.returned)):
        rows = list(ir.ArrayAttr(graph.function.attributes[key])) if key in graph.function.attributes else []
        laid = list(_shardings(manual, name)) if manual is not None else []
        for place, (kind, value) in enumerate(zip(kinds, values, strict=True)):
            found[value] = CrossingValue(replace(kind, mesh=graph.call.mesh), str(rows[place]) if rows else "{}",
                                         laid[place] if laid else "")
    return found


def _shardings(manual: ir.Operation, name: str) -> list[str]:
    return [str(each).removeprefix("#sdy.sharding")
            for each in sdy.TensorShardingPerValueAttr(manual.attributes[name]).shardings]


def _on_mesh(value: CrossingValue, old: str, new: str) -> CrossingValue:
    return CrossingValue(replace(value.kind, mesh=new), value.row.replace(f"<@{old},", f"<@{new},"),
                         value.manual.replace(f"<@{old},", f"<@{new},"))


def piece_function(host: FragmentGraph, piece: Piece, values: dict[int, CrossingValue], target: ir.Block,
                   part: FragmentGraph) -> ir.Operation:
    """Writes a piece.

    Args:
      host: the fragment it is of.
      piece: what to write.
      values: how each value lies that it takes or gives.
      target: the block that the function is put into.
      part: the contained fragment, whose channels a shared piece has.

    Returns:
      The function, with the fragment's name.
    """
    inputs, outputs = ([values[value] for value in side] for side in (piece.reads, piece.gives))
    kinds = [[ir.Type.parse(each.kind.tensor) for each in side] for side in (inputs, outputs)]
    attributes = {"sym_name": ir.StringAttr.get(host.call.callee), "sym_visibility": ir.StringAttr.get("private"),
                  "function_type": ir.TypeAttr.get(ir.FunctionType.get(*kinds))}
    if "mesh_shape" in host.function.attributes:
        attributes["mesh_shape"] = host.function.attributes["mesh_shape"]
    for key, side in (("arg_attrs", inputs), ("res_attrs", outputs)):
        if side:
            attributes[key] = ir.ArrayAttr.get([ir.Attribute.parse(each.row) for each in side])
    with host.function.location:
        function = ir.Operation.create("func.func", regions=1, attributes=attributes, ip=ir.InsertionPoint(target))
        block = function.regions[0].blocks.append(*kinds[0])
        if manual_body(host.function) is None:
            returned = _copied(host, piece, block)
        else:
            returned = _manual(host, piece, block, kinds[1], inputs, outputs)
        ir.Operation.create("func.return", operands=returned, ip=ir.InsertionPoint(block))
    _renumber_channels(function, part if piece.shared else None)
    return function


def _manual(host: FragmentGraph, piece: Piece, outer: ir.Block, results: list[ir.Type], inputs: list[CrossingValue],
            outputs: list[CrossingValue]) -> list[ir.Value]:
    old = host.function.regions[0].blocks[0].operations[0].operation
    attributes = {name: old.attributes[name] for name in old.attributes}
    for name, side in ((_IN, inputs), (_OUT, outputs)):
        attributes[name] = ir.Attribute.parse("#sdy.sharding_per_value<[" + ", ".join(
            each.manual for each in side) + "]>")
    manual = ir.Operation.create("sdy.manual_computation", results=results, operands=list(outer.arguments), regions=1,
                                 attributes=attributes, ip=ir.InsertionPoint(outer))
    block = manual.regions[0].blocks.append(*(host.values[value].type for value in piece.reads))
    returned = _copied(host, piece, block)
    ir.Operation.create("sdy.return", operands=returned, ip=ir.InsertionPoint(block))
    return list(manual.results)


def _copied(host: FragmentGraph, piece: Piece, block: ir.Block) -> list[ir.Value]:
    mapping: dict[ir.Value, ir.Value] = dict(zip((host.values[value] for value in piece.reads), block.arguments,
                                                 strict=True))
    for position in piece.ops:
        op = host.ops[position].op
        copy = op.clone(ir.InsertionPoint(block)).operation
        remap(copy, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))
    return [mapping[host.values[value]] for value in piece.gives]


def _renumber_channels(function: ir.Operation, like: FragmentGraph | None) -> None:
    """Gives collectives the channels that a fragment's have, or channels of their own."""
    given = [] if like is None else [channel_number(op) for op in nested_ops(like.function) if CHANNEL in op.attributes]
    for place, op in enumerate(op for op in nested_ops(function) if CHANNEL in op.attributes and channel_number(op)):
        op.attributes[CHANNEL] = renumbered(op, given[place] if like is not None else place + 1)


__all__ = ["CrossingValue", "crossing_values", "piece_function", "whole_value"]
