"""Collectives of a StableHLO module, as the report counts them."""

from __future__ import annotations

from collections.abc import Sequence

from hlorewrite.cost.report import Executed
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import inline_calls
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import COLLECTIVES, View, ancestors, defining_op, nested_ops, users
from hlorewrite.spmd.groups import device_count, groups_of, id_mode, replica_count
from hlorewrite.spmd.loops import trip_count
from hlorewrite.spmd.mesh import axis_names, meshes
from hlorewrite.spmd.types import element_count, tensor_bytes

_KINDS = {name: name.removeprefix("stablehlo.").replace("_", "-") for name in COLLECTIVES}
_KINDS["stablehlo.cross-replica-sum"] = "all-reduce"
_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")


def collectives_of(module: Module) -> tuple[int, list[Executed], list[str]]:
    """Reads a module's collectives; the module's calls are inlined in place.

    Args:
      module: a module of the caller's own: reading it changes it.

    Returns:
      (devices, collectives in program order, sentences on what could not be read).
    """
    view = View(module)
    inline_calls(Editor(view))
    found, remarks = [], []
    for op in _in_order(view):
        what = executed_of(op, view)
        if isinstance(what, str):
            remarks.append(f"{view.source(op)}: {op.name} is left out: {what}")
        else:
            found.append(what)
    named = max((gpu + 1 for what in found for group in what.groups for gpu in group), default=1)
    widest = max((mesh.size for mesh in meshes(view).values()), default=1)
    return max(device_count(view) or 0, named, widest), found, remarks


def _in_order(view: View) -> list[ir.Operation]:
    """All collectives in program order, whatever their kind."""
    wanted = {op_key(op) for op in view.ops(*COLLECTIVES)}
    return [op for op in nested_ops(view.module.operation) if op_key(op) in wanted]


def executed_of(op: ir.Operation, view: View) -> Executed | str:
    """One collective as the report counts it, or why it cannot."""
    groups = _device_groups(op, view)
    if isinstance(groups, str):
        return groups
    sizes = [sum(tensor_bytes(value.type) for value in values) for values in (op.operands, op.results)]
    if not max(sizes):
        return "its shape is not static"
    trips, known, loops = 1, True, []
    for parent in ancestors(op):
        if parent.name == "stablehlo.while":
            count = trip_count(parent)
            known, trips = known and count is not None, trips * (1 if count is None else count)
            loops.append(parent)
    kind = _KINDS[op.name]
    if kind == "collective-permute":
        axes = _pair_axes(groups, view)
    else:
        axes = axis_names(groups, view) or ()
    return Executed(kind, view.source(op), groups, tuple(axes), max(sizes), trips, known,
                    view.source(loops[0]) if loops else "", len(loops), hiding_flops=_hiding_flops(op))


def _device_groups(op: ir.Operation, view: View) -> tuple[tuple[int, ...], ...] | str:
    """Groups as device numbers: replica r of partition p is device r * partitions + p."""
    replicas = replica_count(view)
    partitions = max((device_count(view) or 1) // replicas, 1)
    if op.name == "stablehlo.collective_permute":
        import numpy as np
        rows = tuple((int(a), int(b)) for a, b in np.array(
            ir.DenseIntElementsAttr(op.attributes["source_target_pairs"])).reshape(-1, 2))
        mode = id_mode(op)
    else:
        groups = groups_of(op, view)
        if isinstance(groups, str):
            return groups
        rows, mode = groups.rows, groups.mode
    if mode in ("flattened_ids", None) or (mode == "cross_partition" and replicas == 1) or (
            mode == "cross_replica" and partitions == 1):
        return rows
    if mode == "cross_partition":
        return tuple(tuple(r * partitions + p for p in row) for r in range(replicas) for row in rows)
    if mode == "cross_replica":
        return tuple(tuple(r * partitions + p for r in row) for p in range(partitions) for row in rows)
    return tuple(tuple(r * partitions + p for r in row for p in range(partitions)) for row in rows)


def _pair_axes(pairs: Sequence[Sequence[int]], view: View) -> tuple[str, ...]:
    """The mesh axes along which a permute moves data."""
    for mesh in meshes(view).values():
        places = mesh.coordinates([name for name, _ in mesh.axes])
        if all(gpu in places for pair in pairs for gpu in pair):
            moved = [any(places[a][i] != places[b][i] for a, b in pairs) for i in range(len(mesh.axes))]
            return tuple(name for (name, _), moves in zip(mesh.axes, moved, strict=True) if moves)
    return ()


def _hiding_flops(op: ir.Operation) -> float:
    """FLOP of matrix products of the same block that neither feed a collective nor wait for it."""
    block = op.block
    related = {op_key(op)}
    for step in (_operand_ops, _user_ops):
        pending = [op]
        while pending:
            for other in step(pending.pop(), block):
                if op_key(other) not in related:
                    related.add(op_key(other))
                    pending.append(other)
    total = 0.0
    for other in block.operations:
        if op_key(other.operation) not in related:
            total += _product_flops(other.operation)
    return total


def _operand_ops(op: ir.Operation, block: ir.Block) -> list[ir.Operation]:
    inner = nested_ops(op)
    made = [defining_op(value) for each in inner for value in each.operands]
    return [other for other in made if other is not None and other.block == block]


def _user_ops(op: ir.Operation, block: ir.Block) -> list[ir.Operation]:
    found = []
    for result in op.results:
        for user, _ in users(result):
            place = user
            for outer in ancestors(user):
                if place.block == block:
                    break
                place = outer
            found.append(place)
    return found


def _product_flops(op: ir.Operation) -> float:
    """2 m n k of the matrix products an op holds, loops counted once."""
    total = 0.0
    for inner in nested_ops(op):
        if inner.name == "stablehlo.dot_general":
            from hlorewrite.ir.binding import stablehlo
            dims = stablehlo.DotDimensionNumbers(inner.attributes["dot_dimension_numbers"])
            shape = ir.RankedTensorType(inner.operands[0].type).shape
            contracted = 1
            for dim in dims.lhs_contracting_dimensions:
                contracted *= shape[dim]
            total += 2.0 * element_count(inner.results[0].type) * contracted
    return total
