"""Equations about what travels between processes.

``fetch(s)(x)`` is, on process p, what process s[p] holds of x, and zero where s[p] is -1. Permutes, broadcasts, and one
shard of a gathered value are fetches; so is a value masked by the device's id.
"""

from collections.abc import Sequence

import numpy as np

from hlorewrite.analysis.groups import Rows
from hlorewrite.checks.value_graph.graph import Graph, Label, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import array, normalized, op_label, shifted_type, slice_label
from hlorewrite.checks.value_graph.per_process_constants import ProcessConstants, numbers_in

Sources = tuple[int, ...]
MOVED = frozenset({"stablehlo.dynamic_slice", "stablehlo.slice", "stablehlo.select", "stablehlo.add"})
"""Ops that may be equal to a fetch."""


def fetch(graph: Graph, sources: Sequence[int], node: int) -> int:
    """The value that each process receives from another one."""
    sources = tuple(sources)
    type_ = graph.types[node]
    label = graph.labels[node]
    if sources == tuple(range(len(sources))) or (label[0] == "splat" and min(sources) >= 0):
        return node
    if max(sources) < 0 or graph.is_identity(node, "sum"):
        zero = graph.identity("sum", type_)
        if zero is not None:
            return zero
    if label[0] == "fetch":
        first: Sources = label[1]  # type: ignore[assignment]
        return fetch(graph, [first[s] if s >= 0 else -1 for s in sources], graph.args[node][0])
    if label[0] == "stablehlo.convert":
        return graph.node(label, type_, (fetch(graph, sources, graph.args[node][0]),))
    return graph.node(("fetch", sources), type_, (node,))


def all_gather(graph: Graph, tables: ProcessConstants, rows: Rows, along: int, type_: str, node: int) -> int:
    """The values of a group, one after the other along a dimension."""
    if len(rows[0]) == 1:
        return node
    label = graph.labels[node]
    if label[0] == "stablehlo.convert":
        operand = graph.args[node][0]
        element = shape_and_element(graph.types[operand])
        shape = shape_and_element(type_)
        assert element is not None and shape is not None
        return graph.node(label, type_, (all_gather(graph, tables, rows, along, tensor_type(shape[0], element[1]),
                                                    operand),))
    if label[0] == "stablehlo.dynamic_slice":
        whole = graph.args[node][0]
        if graph.types[whole] == type_ and _alike(graph, whole, rows) and _own_shard(graph, tables, rows, along, node):
            return whole
    return graph.node(("all_gather", rows, along), type_, (node,))


def all_to_all(graph: Graph, rows: Rows, split: int, concat: int, type_: str, node: int) -> int:
    """Piece j of process i goes to process j of its group, as its piece i."""
    if len(rows[0]) == 1:
        return node
    label = graph.labels[node]
    if label == ("opaque", "all_to_all", rows, concat, split) and graph.types[graph.args[node][0]] == type_:
        return graph.args[node][0]
    if label[0] == "stablehlo.convert":
        operand = graph.args[node][0]
        element, shape = shape_and_element(graph.types[operand]), shape_and_element(type_)
        assert element is not None and shape is not None
        inner = all_to_all(graph, rows, split, concat, tensor_type(shape[0], element[1]), operand)
        return graph.node(label, type_, (inner,))
    return graph.node(("opaque", "all_to_all", rows, split, concat), type_, (node,))


def own_starts(graph: Graph, tables: ProcessConstants, rows: Rows, along: int, type_: str) -> tuple[list[int], Label]:
    """The start of the part of a value that belongs to a process's place in its group, and the label of the slice."""
    known = shape_and_element(type_)
    assert known is not None
    place = np.zeros(sum(map(len, rows)), np.int64)
    for row in rows:
        place[list(row)] = np.arange(len(row))
    starts = [tables.place(place * size if d == along else place * 0, "tensor<i64>") for d, size in enumerate(known[0])]
    return starts, op_label("stablehlo.dynamic_slice", (("slice_sizes", array(known[0])),))


def own_part(graph: Graph, tables: ProcessConstants, rows: Rows, along: int, type_: str, node: int) -> int:
    """The part of a value that belongs to a process's place in its group."""
    starts, label = own_starts(graph, tables, rows, along, type_)
    found = moved(graph, tables, "stablehlo.dynamic_slice", dict(label[1]), type_, (node, *starts))  # type: ignore
    return graph.node(label, type_, (node, *starts)) if found is None else found


def moved(graph: Graph, tables: ProcessConstants, name: str, attributes: dict[str, str], type_: str, args: tuple[int,
                                                                                                                 ...]
          ) -> int | None:
    """The node of an op that picks a part of a gathered value, or one of several values by the device's id."""
    if name == "stablehlo.dynamic_slice":
        return _dynamic_slice(graph, tables, attributes, type_, args)
    if name == "stablehlo.slice":
        return _slice_of_gather(graph, tables, attributes, type_, args)
    if name == "stablehlo.select":
        return _selected(graph, tables, args)
    if name == "stablehlo.add":
        return _added(graph, args)
    return None


def one_holder(graph: Graph, node: int, rows: Rows) -> int | None:
    """The sum over groups of a value that one member of each group holds where the others hold zeros; None for other
    sums."""
    label = graph.labels[node]
    if label[0] != "fetch":
        return None
    sources: Sources = label[1]  # type: ignore[assignment]
    taken = list(sources)
    for row in rows:
        holders = [sources[p] for p in row if sources[p] >= 0]
        if len(holders) != 1:
            return None
        for p in row:
            taken[p] = holders[0]
    return fetch(graph, taken, graph.args[node][0])


def _alike(graph: Graph, node: int, rows: Rows) -> bool:
    """Whether a node is the result of a reduction whose groups hold these."""
    label = graph.labels[node]
    if label[0] != "reduced":
        return False
    outermost = [key[0].members if key else None for key in label[2]]  # type: ignore[attr-defined]
    return all(members is not None and all(len({members.row_of[p] for p in row}) == 1 for row in rows)
               for members in outermost)


def _own_shard(graph: Graph, tables: ProcessConstants, rows: Rows, along: int, node: int) -> bool:
    """Whether a dynamic slice takes the part that belongs to the process's place."""
    known = shape_and_element(graph.types[node])
    if known is None:
        return False
    return own_part(graph, tables, rows, along, graph.types[node], graph.args[node][0]) == node


def _dynamic_slice(graph: Graph, tables: ProcessConstants, attributes: dict[str, str], type_: str, args: tuple[int, ...]
                   ) -> int | None:
    """Known starts become clamped 64-bit numbers. If they are the same everywhere, the op becomes a ``slice``."""
    if graph.types[args[0]] == type_:
        return args[0]
    full, part = shape_and_element(graph.types[args[0]]), shape_and_element(type_)
    numbers = [tables.numbers(start) for start in args[1:]]
    if full is None or part is None or any(table is None for table in numbers):
        return None
    clamped = [np.clip(table.astype(np.int64), 0, n - k)
               for table, n, k in zip(numbers, full[0], part[0], strict=True) if table is not None]
    if all((table == table[0]).all() for table in clamped):
        starts = [int(table[0]) for table in clamped]
        label = slice_label(starts, [s + k for s, k in zip(starts, part[0], strict=True)], [1] * len(starts))
        simple = normalized(graph, "stablehlo.slice", label[1], type_, args[:1])  # type: ignore[arg-type]
        return simple if simple is not None else _slice_of_gather(graph, tables, dict(label[1]), type_, args) or (  # type: ignore
            graph.node(label, type_, args[:1]))
    shard = _shard_of_gather(graph, args[0], type_, clamped)
    if shard is not None:
        return shard
    starts = tuple(tables.place(table, "tensor<i64>") for table in clamped)
    return graph.node(op_label("stablehlo.dynamic_slice", (("slice_sizes", attributes["slice_sizes"]),)), type_,
                      (args[0], *starts))


def _slice_of_gather(graph: Graph, tables: ProcessConstants, attributes: dict[str, str], type_: str, args: tuple[int,
                                                                                                                 ...]
                     ) -> int | None:
    if graph.labels[args[0]][0] != "all_gather" or set(numbers_in(attributes["strides"])) - {1}:
        return None
    starts = [np.full(tables.processes, start) for start in numbers_in(attributes["start_indices"])]
    return _shard_of_gather(graph, args[0], type_, starts)


def _shard_of_gather(graph: Graph, node: int, type_: str, starts: list[np.ndarray]) -> int | None:
    """``AG(x)[one shard]`` is what the process that holds this shard has."""
    label = graph.labels[node]
    if label[0] != "all_gather" or graph.types[graph.args[node][0]] != type_:
        return None
    rows, along = label[1], label[2]
    known = shape_and_element(type_)
    assert known is not None
    size = known[0][along]  # type: ignore[index]
    if size == 0 or (starts[along] % size).any():  # type: ignore[index]
        return None
    sources = list(range(len(starts[along])))  # type: ignore[index]
    for row in rows:  # type: ignore[attr-defined]
        for process in row:
            sources[process] = row[starts[along][process] // size]  # type: ignore[index]
    return fetch(graph, sources, graph.args[node][0])


def _as_fetch(graph: Graph, node: int, of: int, processes: int) -> Sequence[int] | None:
    """A node as a fetch of another one."""
    label = graph.labels[node]
    if node == of:
        return range(processes)
    if graph.is_identity(node, "sum"):
        return [-1] * processes
    return label[1] if label[0] == "fetch" and graph.args[node] == (of,) else None  # type: ignore[return-value]


def _origin(graph: Graph, node: int) -> int:
    return graph.args[node][0] if graph.labels[node][0] == "fetch" else node


def _selected(graph: Graph, tables: ProcessConstants, args: tuple[int, ...]) -> int | None:
    """``where(mask of the device, a, b)`` for fetches a, b of one value."""
    mask = tables.of(args[0])
    if mask is None:
        return None
    flat = mask.reshape(len(mask), -1)
    if flat.shape[1] == 0 or not (flat == flat[:, :1]).all():
        return None
    candidates = [_origin(graph, node) for node in args[1:] if not graph.is_identity(node, "sum")]
    if len(set(candidates)) != 1:
        return None
    chosen, other = (_as_fetch(graph, node, candidates[0], len(mask)) for node in args[1:])
    if chosen is None or other is None:
        return None
    return fetch(graph, [c if on else o for on, c, o in zip(flat[:, 0], chosen, other, strict=True)], candidates[0])


def _added(graph: Graph, args: tuple[int, ...]) -> int | None:
    """The sum of two fetches of one value no process gets both of."""
    if any(graph.labels[arg][0] != "fetch" for arg in args) or len({graph.args[arg] for arg in args}) != 1:
        return None
    first, second = (graph.labels[arg][1] for arg in args)
    if any(a >= 0 and b >= 0 for a, b in zip(first, second, strict=True)):  # type: ignore[call-overload]
        return None
    return fetch(graph, [max(a, b) for a, b in zip(first, second, strict=True)], graph.args[args[0]][0])  # type: ignore


__all__ = ["all_gather", "all_to_all", "fetch", "moved", "one_holder", "own_part", "shifted_type"]
