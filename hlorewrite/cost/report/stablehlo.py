"""Collectives of a StableHLO module, as the report counts them."""

from collections.abc import Sequence

from hlorewrite.analysis.block_frequency import never_runs
from hlorewrite.analysis.groups import (
    Rows,
    device_count,
    id_mode,
    process_groups,
    replica_count,
    written_groups,
    written_pairs,
)
from hlorewrite.analysis.loops import trip_count
from hlorewrite.analysis.mesh import axis_names, meshes
from hlorewrite.cost.report.report import Executed
from hlorewrite.ir import Editor, Module, View, ancestors, inline_calls, ir, nested_ops, op_key, tensor_bytes
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE, COLLECTIVES, kind_of


def collectives_of(module: Module) -> tuple[int, list[Executed], list[str]]:
    """Reads a module's collectives; the module's calls are inlined in place.

    Args:
      module: a module of the caller's own: reading it changes it.

    Returns:
      (devices, collectives in program order, sentences on what could not be read).
    """
    view = View(module)
    inline_calls(Editor(view))
    devices, counted, remarks = counted_collectives(view)
    return devices, [what for _, what in counted], remarks


def counted_collectives(view: View) -> tuple[int, list[tuple[ir.Operation, Executed]], list[str]]:
    """The collectives of a module without calls, each with its op.

    Args:
      view: the module, its calls inlined.

    Returns:
      (devices, op and collective in program order, sentences on what could not be read).
    """
    counted: list[tuple[ir.Operation, Executed]] = []
    remarks: list[str] = []
    for op in _in_order(view):
        if never_runs(op):
            continue
        what = executed_of(op, view)
        if isinstance(what, str):
            remarks.append(f"{view.place(op)}: {op.name} is left out: {what}")
            continue
        counted.append((op, what))
    named = max((gpu + 1 for _, what in counted for group in what.groups for gpu in group), default=1)
    widest = max((mesh.size for mesh in meshes(view).values()), default=1)
    return max(device_count(view) or 0, named, widest), counted, remarks


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
    kind = kind_of(op.name)
    if kind == COLLECTIVE_PERMUTE.kind:
        axes = _pair_axes(groups, view)
    else:
        axes = axis_names(groups, view) or ()
    return Executed(kind, view.place(op), groups, axes=tuple(axes), payload_bytes=max(sizes), trips=trips,
                    trips_known=known, loop=view.place(loops[0]) if loops else "", loop_depth=len(loops))


def _device_groups(op: ir.Operation, view: View) -> Rows | str:
    """Groups as device numbers, in all four modes; of a permute the pairs."""
    replicas = replica_count(view)
    partitions = max((device_count(view) or 1) // replicas, 1)
    if op.name == COLLECTIVE_PERMUTE.op:
        pairs = written_pairs(op, view)
        return pairs if isinstance(pairs, str) else process_groups(pairs, id_mode(op), replicas, partitions)
    groups = written_groups(op, view)
    return groups if isinstance(groups, str) else process_groups(groups.rows, groups.mode, replicas, partitions)


def _pair_axes(pairs: Sequence[Sequence[int]], view: View) -> tuple[str, ...]:
    """The mesh axes along which a permute moves data."""
    for mesh in meshes(view).values():
        places = mesh.coordinates([name for name, _ in mesh.axes])
        if all(gpu in places for pair in pairs for gpu in pair):
            moved = [any(places[a][i] != places[b][i] for a, b in pairs) for i in range(len(mesh.axes))]
            return tuple(name for (name, _), moves in zip(mesh.axes, moved, strict=True) if moves)
    return ()
