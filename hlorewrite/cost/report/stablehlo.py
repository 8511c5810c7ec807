"""Collectives of a StableHLO module, as the report counts them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hlorewrite.cost.report.report import Executed
from hlorewrite.ir.binding import ir, op_key, stablehlo
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE, COLLECTIVES, kind_of
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import inline_calls
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, ancestors, defining_op, nested_ops
from hlorewrite.spmd.executions import never_runs
from hlorewrite.spmd.groups import (
    Rows,
    device_count,
    id_mode,
    process_groups,
    replica_count,
    written_groups,
    written_pairs,
)
from hlorewrite.spmd.loops import trip_count
from hlorewrite.spmd.mesh import axis_names, meshes
from hlorewrite.spmd.types import element_count, tensor_bytes

_AT_ONCE = 4096
"""Collectives looked at in one walk: a bit for each of them at every op."""


def collectives_of(module: Module, *, overlap: bool = True) -> tuple[int, list[Executed], list[str]]:
    """Reads a module's collectives; the module's calls are inlined in place.

    Args:
      module: a module of the caller's own: reading it changes it.
      overlap: whether to look for compute that may run beside each collective.

    Returns:
      (devices, collectives in program order, sentences on what could not be read).
    """
    view = View(module)
    inline_calls(Editor(view))
    devices, counted, remarks = counted_collectives(view, overlap=overlap)
    return devices, [what for _, what in counted], remarks


def counted_collectives(view: View, *, overlap: bool) -> tuple[int, list[tuple[ir.Operation, Executed]], list[str]]:
    """The collectives of a module without calls, each with its op.

    Args:
      view: the module, its calls inlined.
      overlap: whether to look for compute that may run beside each collective.

    Returns:
      (devices, op and collective in program order, sentences on what could not be read).
    """
    counted: list[tuple[ir.Operation, Executed]] = []
    remarks: list[str] = []
    graphs: dict[ir.Block, DependenceGraph] = {}
    for op in _in_order(view):
        if never_runs(op):
            continue
        what = executed_of(op, view)
        if isinstance(what, str):
            remarks.append(f"{view.source(op)}: {op.name} is left out: {what}")
            continue
        if overlap:
            graph = graphs.get(op.block) or graphs.setdefault(op.block, DependenceGraph(op.block))
            what = replace(what, beside=graph.independent_flops(op) > 0)
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
    return Executed(kind, view.source(op), groups, tuple(axes), max(sizes), trips, known,
                    view.source(loops[0]) if loops else "", len(loops))


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


class DependenceGraph:
    """Who feeds whom among the ops of one block, whatever stands in their regions, and the FLOP of each.

    Args:
      block: the block; it must not change while the graph is used.
    """

    def __init__(self, block: ir.Block) -> None:
        inner = [nested_ops(op.operation) for op in block.operations]
        self.place = {op_key(op): i for i, ops in enumerate(inner) for op in ops}
        self.flops = [sum(_product_flops(op) for op in ops) for ops in inner]
        self.collectives = [i for i, op in enumerate(block.operations) if op.operation.name in COLLECTIVES]
        self.before: list[list[int]] = [[] for _ in inner]
        self.after: list[list[int]] = [[] for _ in inner]
        for i, ops in enumerate(inner):
            feeding = {self.place.get(op_key(made), i) for op in ops for value in op.operands
                       if (made := defining_op(value)) is not None}
            for j in feeding - {i}:
                self.before[i].append(j)
                self.after[j].append(i)
        self._independent: dict[int, float] | None = None

    def independent_flops(self, op: ir.Operation) -> float:
        """FLOP of the block's matrix products that neither feed an op nor wait for it; inner loops counted once.

        Args:
          op: a collective of the block itself, not of a region inside.
        """
        if self._independent is None:
            self._independent = self._of_collectives()
        return self._independent[self.place[op_key(op)]]

    def _of_collectives(self) -> dict[int, float]:
        """The same for all collectives of the block, by place."""
        total = sum(self.flops)
        waiting = dict.fromkeys(self.collectives, 0.0)
        if total:
            for first in range(0, len(self.collectives), _AT_ONCE):
                self._add_waiting(self.collectives[first:first + _AT_ONCE], waiting)
        return {place: total - waiting[place] for place in self.collectives}

    def _add_waiting(self, places: Sequence[int], waiting: dict[int, float]) -> None:
        """Adds the FLOP that feed some collectives or wait for them; one walk each way, with a bit for each of them."""
        bits = {place: 1 << number for number, place in enumerate(places)}
        count = len(self.before)
        above = self._reached(bits, self.before, range(count))
        below = self._reached(bits, self.after, reversed(range(count)))
        for place, flops in enumerate(self.flops):
            mask = (above[place] | below[place]) if flops else 0
            # Ends: each round clears a bit.
            while mask:
                lowest = mask & -mask
                waiting[places[lowest.bit_length() - 1]] += flops
                mask ^= lowest

    @staticmethod
    def _reached(bits: dict[int, int], edges: list[list[int]], order: Iterable[int]) -> list[int]:
        """For each place the collectives from which it is reached against ``edges``, itself included."""
        masks = [0] * len(edges)
        for place in order:
            mask = bits.get(place, 0)
            for other in edges[place]:
                mask |= masks[other]
            masks[place] = mask
        return masks


def _product_flops(op: ir.Operation) -> float:
    """2 m n k of a matrix product; 0 for any other op."""
    if op.name != "stablehlo.dot_general":
        return 0.0
    dims = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    shape = ir.RankedTensorType(op.operands[0].type).shape
    contracted = math.prod(shape[dim] for dim in dims.lhs_contracting_dimensions)
    return 2.0 * element_count(op.results[0].type) * contracted
