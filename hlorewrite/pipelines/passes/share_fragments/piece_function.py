"""Writes a piece of a fragment as a function."""

from hlorewrite.ir import CHANNEL, channel_number, ir, nested_ops, remap, renumbered
from hlorewrite.pipelines.mpmd.mesh_view import manual_body
from hlorewrite.pipelines.passes.share_fragments.fragment_graph import CrossingValue, FragmentGraph
from hlorewrite.pipelines.passes.share_fragments.outline import FragmentPiece

_IN, _OUT = "in_shardings", "out_shardings"


def piece_function(host: FragmentGraph, piece: FragmentPiece, values: dict[int, CrossingValue], target: ir.Block,
                   part: FragmentGraph) -> ir.Operation:
    """Writes a piece.

    Args:
      host: the fragment it is of.
      piece: what to write.
      values: how each value that it takes or gives is placed.
      target: the block that the function is put into.
      part: the contained fragment, whose channels a shared piece has.

    Returns:
      The function, with the fragment's name.
    """
    inputs, outputs = ([values[value] for value in side] for side in (piece.reads, piece.gives))
    kinds = [[ir.Type.parse(each.kind.tensor) for each in side] for side in (inputs, outputs)]
    attributes = {"sym_name": ir.StringAttr.get(host.call.callee), "sym_visibility": ir.StringAttr.get("private"),
                  "function_type": ir.TypeAttr.get(ir.FunctionType.get(kinds[0], kinds[1]))}
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


def _manual(host: FragmentGraph, piece: FragmentPiece, outer: ir.Block, results: list[ir.Type],
            inputs: list[CrossingValue], outputs: list[CrossingValue]) -> list[ir.Value]:
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


def _copied(host: FragmentGraph, piece: FragmentPiece, block: ir.Block) -> list[ir.Value]:
    mapping: dict[ir.Value, ir.Value] = dict(zip((host.values[value] for value in piece.reads), block.arguments,
                                                 strict=True))
    for position in piece.ops:
        op = host.ops[position].op
        copy = op.clone(ir.InsertionPoint(block)).operation
        remap(copy, mapping)
        mapping.update(zip(op.results, copy.results, strict=True))
    return [mapping[host.values[value]] for value in piece.gives]


def _renumber_channels(function: ir.Operation, like: FragmentGraph | None) -> None:
    """Gives collectives the channels that a fragment's have, or separate channels."""
    for place, op in enumerate(op for op in nested_ops(function) if channel_number(op)):
        op.attributes[CHANNEL] = renumbered(op, like.channels[place] if like is not None else place + 1)


__all__ = ["piece_function"]
