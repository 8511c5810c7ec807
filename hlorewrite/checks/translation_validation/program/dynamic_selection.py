"""Values of one member of a group, chosen by a number that the program computes.

``chosen(H)(k, x)`` is, on process p, what process H[p][k] holds of x, and zero where k is not a place in H[p]. H[p]
lists the members of p's group. Three forms are one:

* ``AG(x)[i]``, one row: the member clamp(i) / s holds it, as its row clamp(i) mod s, where each member has s rows;
* ``AR(where(place = k, x, 0))``, where the places of a group's members are 0, 1, ..., n - 1;
* ``case(k, fetch(H, 0), ..., fetch(H, n - 1))`` for k from 0 to n - 1.

The number has to be the same on all members, so that the holder computes the row that the others ask for.
"""

from collections.abc import Sequence

import numpy as np

from hlorewrite.analysis.groups import Rows
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.value_graph.graph import Label, shape_and_element
from hlorewrite.checks.value_graph.groups import Members
from hlorewrite.checks.value_graph.normalize import op_label, op_of

Holders = tuple[tuple[int, ...], ...]
_KEEPS_ZERO = ("stablehlo.convert", "stablehlo.bitcast_convert")
_INDEX = "tensor<i32>"
_NARROW = ("tensor<i8>", "tensor<i16>", "tensor<ui8>", "tensor<ui16>")


def chosen(state: ProgramState, holders: Holders, number: int, node: int) -> int:
    """The part of a node on the member with a given number; a convert applies to the chosen part."""
    graph = state.graph
    label, type_ = graph.labels[node], graph.types[node]
    if label[0] in _KEEPS_ZERO:
        return state.op_node(label, type_, (chosen(state, holders, number, graph.args[node][0]),))
    return graph.node(("chosen", holders), type_, (number, node))


def _holders(rows: Rows, size: int) -> Holders:
    row_of = {process: tuple(row) for row in rows for process in row}
    return tuple(row_of[process] for process in range(size))


def part(state: ProgramState, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
    """The node of a slice of a gathered or a chosen value; None for other slices."""
    if state.graph.labels[args[0]][0] == "chosen":
        return _part_of_chosen(state, label, type_, args)
    return _row_of_gather(state, label, type_, args)


def _row_of_gather(state: ProgramState, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
    """``AG(x)[i]`` for one row i that is computed; None when it is anything else."""
    gathered = state.gathered.get(args[0])
    if gathered is None or len(args) == 1:
        return None
    rows, along, shard = gathered
    part, own, full = (shape_and_element(t) for t in (type_, state.graph.types[shard], state.graph.types[args[0]]))
    if part is None or own is None or full is None or part[0][along] != 1 or own[0][along] == 0:
        return None
    index, members = args[1 + along], state.space.members(rows)
    if state.tables.numbers(index) is not None or not all(state.same.same(start, members) for start in args[1:]):
        return None
    size = own[0][along]
    zero, rows_of_one = (state.graph.splat(n, _INDEX) for n in (0, size))
    inside = _clamped(state, index, full[0][along] - 1)
    place = state.op_node(op_label("stablehlo.divide"), _INDEX, (inside, rows_of_one))
    row = zero if size == 1 else state.op_node(op_label("stablehlo.remainder"), _INDEX, (inside, rows_of_one))
    starts = (*args[1:1 + along], row, *args[2 + along:])
    return chosen(state, _holders(rows, state.space.size), place, state.op_node(label, type_, (shard, *starts)))


def _clamped(state: ProgramState, index: int, last: int) -> int:
    """clamp(0, index, last) as i32; a narrower type may not hold the last number, and is converted first."""
    graph = state.graph
    if graph.types[index] in _NARROW:
        index = state.op_node(op_label("stablehlo.convert"), _INDEX, (index,))
    type_ = graph.types[index]
    bounds = graph.splat(0, type_), graph.splat(last, type_)
    inside = state.op_node(op_label("stablehlo.clamp"), type_, (bounds[0], index, bounds[1]))
    return inside if type_ == _INDEX else state.op_node(op_label("stablehlo.convert"), _INDEX, (inside,))


def _part_of_chosen(state: ProgramState, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
    """A slice of what was chosen is chosen from the slices: the members slice alike."""
    holders: Holders = state.graph.labels[args[0]][1]  # type: ignore[assignment]
    members = state.space.members(tuple(dict.fromkeys(holders)))
    if not all(state.same.same(start, members) for start in args[1:]):
        return None
    number, node = state.graph.args[args[0]]
    return chosen(state, holders, number, state.op_node(label, type_, (node, *args[1:])))


def sum_of_masked(state: ProgramState, node: int, rows: Rows) -> int | None:
    """``AR(where(place = k, x, 0))``; None when it is anything else."""
    graph = state.graph
    if op_of(graph, node, "stablehlo.select") is None:
        return None
    mask, value, other = graph.args[node]
    compared = op_of(graph, mask, "stablehlo.compare")
    if compared is None or "EQ" not in compared.get("comparison_direction", "") or not graph.is_identity(other, "sum"):
        return None
    if graph.types[mask] != "tensor<i1>":
        return None
    for table, number in (graph.args[mask], graph.args[mask][::-1]):
        places = state.tables.numbers(table)
        holders = None if places is None else _by_place(places, rows)
        if holders is not None and state.same.same(number, state.space.members(rows)):
            return chosen(state, holders, number, value)
    return None


def _by_place(places: np.ndarray, rows: Rows) -> Holders | None:
    """The members of each process's group in the order of their places, which have to be 0, 1, ..., n - 1."""
    ordered: dict[int, tuple[int, ...]] = {}
    for row in rows:
        of = {int(places[process]): process for process in row}
        if sorted(of) != list(range(len(row))):
            return None
        ordered.update(dict.fromkeys(row, tuple(of[place] for place in range(len(row)))))
    return tuple(ordered[process] for process in range(len(ordered)))


def case_of_fetches(state: ProgramState, predicate: int, nodes: Sequence[int]) -> int | None:
    """``case(k, fetch(H, 0), ..., fetch(H, n - 1))`` where k is a number from 0 to n - 1; None for anything else."""
    graph = state.graph
    if any(graph.labels[node][0] != "fetch" for node in nodes) or len({graph.args[node] for node in nodes}) != 1:
        return None
    holders: Holders = tuple(zip(*(graph.labels[node][1] for node in nodes), strict=True))  # type: ignore[arg-type]
    members = Members(tuple(dict.fromkeys(holders)))
    if sorted(members.row_of) != list(range(len(holders))) or any(
            process not in row or len(set(row)) < len(row) for process, row in enumerate(holders)):
        return None
    if not state.same.same(predicate, state.space.members(members.rows)) or not _below(state, predicate, len(nodes)):
        return None
    return chosen(state, holders, predicate, graph.args[nodes[0]][0])


def _below(state: ProgramState, node: int, bound: int) -> bool:
    """Whether a number is clamped so that it is between 0 and a bound, the bound excluded."""
    graph, divisor = state.graph, 1
    if op_of(graph, node, "stablehlo.divide") is not None:  # towards zero, and what is divided is not negative
        node, by = graph.args[node]
        known = _number(state, by)
        if known is None or known < 1:
            return False
        divisor = known
    if op_of(graph, node, "stablehlo.clamp") is None:
        return False
    low, high = _number(state, graph.args[node][0]), _number(state, graph.args[node][2])
    return low is not None and high is not None and 0 <= low <= high and high // divisor < bound


def _number(state: ProgramState, node: int) -> int | None:
    numbers = state.tables.numbers(node)
    flat = None if numbers is None else numbers.ravel()
    return int(flat[0]) if flat is not None and flat.size and (flat == flat[0]).all() else None

