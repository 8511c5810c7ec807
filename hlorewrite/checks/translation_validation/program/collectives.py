"""Collectives as nodes and pending reductions."""

from collections.abc import Callable, Sequence

import numpy as np

from hlorewrite.analysis.groups import Rows, id_mode, process_groups, written_groups
from hlorewrite.checks.translation_validation.program.dynamic_selection import sum_of_masked
from hlorewrite.checks.translation_validation.program.linear import wire_of
from hlorewrite.checks.translation_validation.program.sorts import RegionEncoder, reducer_kind
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.value_graph import communication_rules
from hlorewrite.checks.value_graph.graph import Key, SymbolicValue, joined, own_part_of, parts_of, shape_and_element
from hlorewrite.checks.value_graph.groups import Members, OwnPart
from hlorewrite.checks.value_graph.normalize import op_label
from hlorewrite.ir.binding import ir

Handler = Callable[[ProgramState, ir.Operation, Sequence[SymbolicValue]], list[SymbolicValue]]
_IDEMPOTENT = ("max", "min", "and", "or")


def all_reduce(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """Each value waits for the reduction from now on."""
    rows = state.space.groups_of(op, state.view)
    members = state.space.members(rows) if rows else None
    state.execute(op, members)
    kind = reducer_kind(op)
    results: list[SymbolicValue] = []
    for value, operand, result in zip(values, op.operands, op.results, strict=True):
        type_ = state.type_of(result)
        made = None
        if members is not None and kind is not None and state.type_of(operand) == type_:
            made = waiting(state, value, type_, members, kind)
        results.append(made if made is not None else opaque(state, op, [state.node_of(operand)], type_))
    return results


def waiting(state: ProgramState, value: SymbolicValue, type_: str, members: Members, kind: str
            ) -> SymbolicValue | None:
    """The reduction of a value; None when its type has no identity of the reduction."""
    graph, known = state.graph, shape_and_element(type_)
    if known is None or graph.identity(kind, type_) is None:
        return None
    if len(members.rows) == state.space.size:
        return value  # groups of one process
    if not isinstance(value, int) and value.kind != kind:
        value = state.carried_out(value, type_)
    folded = _carried_out(state, value, type_, members, kind)
    if folded is not None:
        return folded
    own = state.space.reduction(members, kind, wire_of(kind, known[1]))
    parts: dict[Key, int] = {}
    for key, node in parts_of(graph, value, kind).items():
        both = state.space.composed(own, key[0]) if key else None
        made = (both, *key[1:]) if both is not None else (own, *key)
        # Two that became one, or one more of a kind that it waits for already: keys would grow without end in a loop.
        # A part of a scattered sum waits for one reduction only.
        if made in parts or len({each.members for each in made}) < len(made) or (both is None and own_part_of(key)):
            return waiting(state, state.carried_out(value, type_), type_, members, kind)
        parts[made] = node
    made = joined(graph, kind, parts)
    return state.carried_out(made, type_) if state.strategy.eager else made


def _carried_out(state: ProgramState, value: SymbolicValue, type_: str, members: Members, kind: str
                 ) -> SymbolicValue | None:
    """A reduction of equal values, or of a value that only one member holds."""
    node = state.carried_out(value, type_)
    if kind in _IDEMPOTENT:
        return node if state.same.same(node, members) else None
    if not state.strategy.fold or kind != "sum":
        return None
    held = communication_rules.one_holder(state.graph, node, members.rows)
    if held is None and state.picks is not None:
        held = state.picks.one_holder(node, members.rows)
    if held is None:
        held = sum_of_masked(state, node, members.rows)
    return _times_size(state, value, node, type_, members) if held is None else held


def _times_size(state: ProgramState, value: SymbolicValue, node: int, type_: str, members: Members
                ) -> SymbolicValue | None:
    """A sum of n equal values: n times the value, part by part."""
    size, known = len(members.rows[0]), shape_and_element(type_)
    even = all(len(row) == size for row in members.rows)
    if not even or known is None or known[1].startswith(("f8", "complex")) or not state.same.same(node, members):
        return None
    if known[1] == "i1":
        return node
    number = state.graph.splat(size, type_)
    return joined(state.graph, "sum", {key: state.op_node(op_label("stablehlo.multiply"), type_, (part, number))
                                       for key, part in parts_of(state.graph, value, "sum").items()})


def reduce_scatter(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """``RS(x)`` is a process's own part of ``AR(x)``."""
    rows, kind = state.space.groups_of(op, state.view), reducer_kind(op)
    members = state.space.members(rows) if rows else None
    state.execute(op, members)
    operand, result = op.operands[0], op.results[0]
    whole, type_ = state.type_of(operand), state.type_of(result)
    if rows is None or members is None or kind is None:
        return [opaque(state, op, [state.node_of(operand)], type_)]
    along = ir.IntegerAttr(op.attributes["scatter_dimension"]).value
    known = shape_and_element(whole)
    if state.strategy.scatter and kind == "sum" and isinstance(values[0], int) and known and whole != type_:
        own = state.space.reduction(members, kind, wire_of(kind, known[1]), OwnPart(rows, along, known[0]))
        return [joined(state.graph, kind, {(own,): values[0]})]
    value = waiting(state, values[0], whole, members, kind)
    if value is None:
        return [opaque(state, op, [state.node_of(operand)], type_)]
    if whole == type_:
        return [value]
    return [state.own_part(rows, along, type_, state.carried_out(value, whole))]


def all_gather(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """The values of a group, one after the other."""
    rows = state.space.groups_of(op, state.view)
    state.execute(op, state.space.members(rows) if rows else None)
    along = ir.IntegerAttr(op.attributes["all_gather_dim"]).value
    return [opaque(state, op, [state.node_of(operand)], state.type_of(result)) if rows is None
            or shape_and_element(state.type_of(result)) is None else
            gathered(state, rows, along, state.type_of(result), state.node_of(operand))
            for operand, result in zip(op.operands, op.results, strict=True)]


def gathered(state: ProgramState, rows: Rows, along: int, type_: str, node: int) -> int:
    """The node of the values of groups, one after the other along a dimension."""
    made = state.picks.all_gather(rows, along, type_, node) if state.picks is not None else None
    if made is None:
        made = communication_rules.all_gather(state.graph, state.tables, rows, along, type_, node)
    if made != node:
        state.gathered[made] = (rows, along, node)
    return made


def _exchanged(state: ProgramState, rows: Rows, split: int, concat: int, type_: str, node: int) -> int:
    listed = state.picks.all_to_all(rows, split, concat, type_, node) if state.picks is not None else None
    return communication_rules.all_to_all(state.graph, rows, split, concat, type_, node) if listed is None else listed


def all_to_all(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """Pieces change places within a group."""
    rows = state.space.groups_of(op, state.view)
    state.execute(op, state.space.members(rows) if rows else None)
    split, concat, count = (ir.IntegerAttr(op.attributes[name]).value
                            for name in ("split_dimension", "concat_dimension", "split_count"))
    fits = rows is not None and count == len(rows[0])
    return [_exchanged(state, rows, split, concat, state.type_of(result), state.node_of(operand))
            if fits and rows is not None and shape_and_element(state.type_of(result)) is not None
            else opaque(state, op, [state.node_of(operand)], state.type_of(result))
            for operand, result in zip(op.operands, op.results, strict=True)]


def collective_permute(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]
                       ) -> list[SymbolicValue]:
    """Each process gets what its source holds, or zeros."""
    pairs = [(int(a), int(b)) for a, b in np.array(op.attributes["source_target_pairs"]).reshape(-1, 2)]
    return [_fetched(state, op, state.space.sources_of(op, pairs), value, state.type_of(result))
            for value, result in zip(op.operands, op.results, strict=True)]


def collective_broadcast(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]
                         ) -> list[SymbolicValue]:
    """Each process gets what the first of its group holds, or zeros when it is in none."""
    groups = written_groups(op, state.view)
    sources = None
    if not isinstance(groups, str):
        rows = process_groups(groups.rows, groups.mode, state.space.replicas, state.space.partitions)
        sources = _first_of_rows(rows, state.space.size)
    return [_fetched(state, op, sources, op.operands[0], state.type_of(op.results[0]))]


def _first_of_rows(rows: Rows, size: int) -> tuple[int, ...] | None:
    members = [p for row in rows for p in row]
    if len(set(members)) != len(members) or not all(0 <= p < size for p in members):
        return None
    sources = [-1] * size
    for row in rows:
        for process in row:
            sources[process] = row[0]
    return tuple(sources)


def _fetched(state: ProgramState, op: ir.Operation, sources: tuple[int, ...] | None, operand: ir.Value, type_: str
             ) -> SymbolicValue:
    """A fetch, executed by each process together with the ones it is linked to."""
    if sources is None or shape_and_element(type_) is None:
        state.execute(op, None)
        return opaque(state, op, [state.node_of(operand)], type_)
    state.execute(op, state.space.members(_linked(sources)))
    node = state.node_of(operand)
    listed = state.picks.fetch(sources, node) if state.picks is not None else None
    return communication_rules.fetch(state.graph, sources, node) if listed is None else listed


def _linked(sources: Sequence[int]) -> Rows:
    """The groups of processes that a permute links, directly or through others."""
    root = list(range(len(sources)))

    def find(process: int) -> int:
        # Ends: roots are joined to roots, so the chain has no circle.
        while root[process] != process:
            process = root[process]
        return process
    for target, source in enumerate(sources):
        if source >= 0:
            root[find(target)] = find(source)
    rows: dict[int, list[int]] = {}
    for process in range(len(sources)):
        rows.setdefault(find(process), []).append(process)
    return tuple(tuple(row) for row in rows.values())


def opaque(state: ProgramState, op: ir.Operation, args: list[int], type_: str, result: int = 0) -> int:
    """A collective that is known only to give equal results for equal operands."""
    encoder = RegionEncoder(state)
    regions = encoder.regions(op)
    return state.graph.node(("opaque", op.name, state.attributes_of(op), id_mode(op), regions, result), type_,
                            (*args, *encoder.captured))


def device_id(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """The partition or replica id, known on every process."""
    if not state.space.known:
        return [state.graph.node(("opaque", op.name), state.type_of(op.results[0]))]
    ids = np.arange(state.space.size)
    partition = op.name == "stablehlo.partition_id"
    numbers = ids % state.space.partitions if partition else ids // state.space.partitions
    return [state.tables.place(numbers.astype(np.uint32), state.type_of(op.results[0]))]


HANDLERS: dict[str, Handler] = {
    "stablehlo.all_reduce": all_reduce, "stablehlo.reduce_scatter": reduce_scatter, "stablehlo.all_gather": all_gather,
    "stablehlo.all_to_all": all_to_all, "stablehlo.collective_permute": collective_permute,
    "stablehlo.collective_broadcast": collective_broadcast, "stablehlo.partition_id": device_id,
    "stablehlo.replica_id": device_id}
