"""Moves of elements as tables: where each element of a value comes from, on which process and at which place.

Every composition of reshapes, slices, gathers, permutes, updates and selections by the device's id is one table, so two
ways to move the same elements are one node. Elements of large tensors are not listed; those keep the form of their ops.

A table holds, for each process and element, the number of an element among those of all sources on all processes.
Elementwise ops are done on what was moved: ``move(f(x)) = f(move(x))``. Reductions are moved too,
``AR(move(x)) = move(AR(x))``, where each process moves its own elements, and all members of a group alike.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hlorewrite.analysis.groups import Rows
from hlorewrite.checks.value_graph.graph import Graph, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.groups import Members, Reduction
from hlorewrite.checks.value_graph.per_process_constants import Attributes, ProcessConstants, numbers_in
from hlorewrite.ops.elements import MOVERS, moved
from hlorewrite.ops.table import ELEMENTWISE

_MOST_ENTRIES = 1 << 15
_MOST_WORK = 1 << 24
_PUSHED = (ELEMENTWISE | {"stablehlo.bitcast_convert"}) - {"stablehlo.compare", "stablehlo.select"}
"""Elementwise ops that are done after moves. Comparisons are not: tables of masks are compared as they stand."""
_KEEPS_ZERO = ("stablehlo.convert", "stablehlo.bitcast_convert")
_MOVES = frozenset(f"stablehlo.{name}" for name in MOVERS)


class IndexMaps:
    """Nodes that are moves of elements of other nodes.

    Args:
      graph: the graph.
      tables: what is known about each process, and the tables of moves.
    """

    def __init__(self, graph: Graph, tables: ProcessConstants) -> None:
        self.graph = graph
        self.tables = tables
        self._work = 0

    # ---- the table of a node

    def moved(self, name: str, attributes: Attributes, type_: str, args: tuple[int, ...]) -> int | None:
        """The node of an op that moves elements; None when it does not, or they are too many."""
        if name not in _MOVES or not self._small(type_) or not all(self._small(self.graph.types[a]) for a in args[:2]):
            return None
        sources, codes = self._joined(args)
        made = _moves(name.removeprefix("stablehlo."), dict(attributes), (shape_and_element(type_) or ((),))[0], codes,
                      [self.tables.numbers(arg) for arg in args])
        return None if made is None else self.node(type_, sources, made)

    def fetch(self, places: Sequence[int], node: int) -> int | None:
        """The value that each process receives from another one; zeros if it receives nothing."""
        type_ = self.graph.types[node]
        zero = self.graph.identity("sum", type_)
        if not self._small(type_) or zero is None:
            return None
        sources, (codes, nothing) = self._joined((node, zero))
        taken = np.array(places)
        return self.node(type_, sources, np.where((taken >= 0).reshape(-1, *[1] * (codes.ndim - 1)), codes[taken],
                                                  nothing))

    def all_gather(self, rows: Rows, along: int, type_: str, node: int) -> int | None:
        """The values of a group, one after the other."""
        if not self._small(type_):
            return None
        sources, (codes,) = self._joined((node,))
        made = np.empty((len(codes), *(shape_and_element(type_) or ((), ""))[0]), np.int64)
        for row in rows:
            made[list(row)] = np.concatenate([codes[p] for p in row], axis=along)
        return self.node(type_, sources, made)

    def all_to_all(self, rows: Rows, split: int, concat: int, type_: str, node: int) -> int | None:
        """Piece j of process i goes to process j of its group."""
        if not self._small(type_):
            return None
        sources, (codes,) = self._joined((node,))
        made = np.empty((len(codes), *(shape_and_element(type_) or ((), ""))[0]), np.int64)
        for row in rows:
            pieces = [np.split(codes[p], len(row), axis=split) for p in row]
            for place, process in enumerate(row):
                made[process] = np.concatenate([each[place] for each in pieces], axis=concat)
        return self.node(type_, sources, made)

    # ---- sums of moved elements

    def one_holder(self, node: int, rows: Rows) -> int | None:
        """The sum over groups of elements, each of which one member holds where the others hold zeros; None for other
        sums."""
        label, zero = self.graph.labels[node], self.graph.identity("sum", self.graph.types[node])
        if label[0] in _KEEPS_ZERO:
            inner = self.one_holder(self.graph.args[node][0], rows)
            return None if inner is None else self.graph.node(label, self.graph.types[node], (inner,))
        if node not in self.tables.picks or zero is None:
            return None
        sources, (codes, nothing) = self._joined((node, zero))
        made = codes.copy()
        for row in rows:
            held = codes[list(row)]
            present = held != nothing[list(row)]
            if (present.sum(axis=0) > 1).any():
                return None
            made[list(row)] = np.where(present.any(axis=0), np.take_along_axis(
                held, present.argmax(axis=0)[None], 0)[0], nothing[row[0]])
        return self.node(self.graph.types[node], sources, made)

    def of_reduced(self, kind: str, type_: str, part: int, groups: Sequence[Members], carry_out: Callable[[int], int]
                   ) -> int | None:
        """``AR(move(x)) = move(AR(x))`` if each process moves its own elements, and all members of a group move them
        alike.

        Args:
          kind: the kind of reduction; what is filled with its identity stays so.
          type_: the type of the part.
          part: what is reduced.
          groups: the groups of each reduction.
          carry_out: reduces a source of the move.
        """
        table = self.tables.picks.get(part)
        if table is None:
            return None
        args, start = self.graph.args[part], 0
        local = np.zeros_like(table)
        for number, arg in enumerate(args):
            count = self._count(arg)
            here = (table >= start) & (table < start + len(table) * count)
            place = table - start - np.arange(len(table)).reshape(-1, *[1] * (table.ndim - 1)) * count
            if self.graph.labels[arg][0] == "splat":
                if not self.graph.is_identity(arg, kind):
                    return None
                place = np.zeros_like(table)
            elif (here & ((place < 0) | (place >= count))).any():
                return None
            local = np.where(here, place * len(args) + number, local)
            start += len(table) * count
        rows = [row.tobytes() for row in local]
        if not all(members.alike(rows) for members in groups):
            return None
        flat, codes = self._flattened(tuple(arg if self.graph.labels[arg][0] == "splat" else carry_out(arg)
                                            for arg in args), table)
        return self.node(type_, flat, codes)

    # ---- making

    def node(self, type_: str, sources: tuple[int, ...], codes: np.ndarray) -> int:
        """The node of a table over sources; sources are in the order of their first read, and unread ones are left out.
        """
        counts = [self._count(source) * len(codes) for source in sources]
        starts = np.concatenate([[0], np.cumsum(counts)])
        which = np.searchsorted(starts, codes.ravel(), side="right") - 1
        used, first = np.unique(which, return_index=True)
        order = [int(k) for k in used[np.argsort(first)]]
        shift, begin = np.zeros(len(sources), np.int64), 0
        for k in order:
            shift[k] = begin - starts[k]
            begin += counts[k]
        codes = (codes.ravel() + shift[which]).reshape(codes.shape) if codes.size else codes
        return self._made(type_, tuple(sources[k] for k in order), codes)

    def _made(self, type_: str, sources: tuple[int, ...], codes: np.ndarray) -> int:
        graph = self.graph
        codes = self._own_copies(sources, codes)
        if len(sources) == 1:
            label = graph.labels[sources[0]]
            if label[0] == "splat":
                return graph.node(label, type_)
            if graph.types[sources[0]] == type_ and (codes.ravel() == np.arange(codes.size)).all():
                return sources[0]
        pushed = self._pushed(type_, sources, codes)
        if pushed is not None:
            return pushed
        self._work += codes.size
        if not sources:  # a tensor without elements
            return graph.node(("empty",), type_)
        node = graph.node(("pick", codes.shape, codes.tobytes()), type_, sources)
        self.tables.picks[node] = codes
        return node

    def _own_copies(self, sources: tuple[int, ...], codes: np.ndarray) -> np.ndarray:
        """Elements of a sum are taken from the process itself, where it has the same sum as the one they came from."""
        own = np.arange(len(codes)).reshape(-1, *[1] * (codes.ndim - 1))
        start = 0
        for source in sources:
            count, label = self._count(source), self.graph.labels[source]
            keys: Sequence[Sequence[Reduction]] = label[2] if label[0] == "reduced" else ()  # type: ignore[assignment]
            if keys and all(keys) and count:
                offset = codes - start
                holder = np.clip(offset // count, 0, len(codes) - 1)
                same = (offset >= 0) & (offset < len(codes) * count)
                for key in keys:
                    row = np.array([key[0].members.row_of[process] for process in range(len(codes))])
                    same &= row[holder] == row[own]
                codes = np.where(same, start + own * count + offset % count, codes)
            start += count * len(codes)
        return codes

    def _pushed(self, type_: str, sources: tuple[int, ...], codes: np.ndarray) -> int | None:
        """``move(f(a, b), f(c, d)) = f(move(a, c), move(b, d))``; zeros go with an f that keeps them."""
        graph = self.graph
        zeros = {s for s in sources if graph.is_identity(s, "sum")}
        others = [s for s in sources if s not in zeros]
        labels = {graph.labels[s] for s in others}
        known = shape_and_element(type_)
        if len(labels) != 1 or known is None or self._work > _MOST_WORK:
            return None
        label = next(iter(labels))
        if label[0] not in _PUSHED or (zeros and label[0] not in _KEEPS_ZERO):
            return None
        args = []
        for place in range(len(graph.args[others[0]])):
            operands = [graph.args[s][place] if s not in zeros else s for s in sources]
            elements = {shape_and_element(graph.types[o]) and shape_and_element(graph.types[o])[1]  # type: ignore[index]
                        for o, s in zip(operands, sources, strict=True) if s not in zeros}
            if len(elements) != 1 or None in elements or any(self._shape(o) != self._shape(s) for o, s in zip(
                    operands, sources, strict=True)):
                return None
            inner = tensor_type(known[0], str(next(iter(elements))))
            element = str(next(iter(elements)))
            operands = [graph.identity("sum", tensor_type(self._shape(o), element)) if s in zeros else o
                        for o, s in zip(operands, sources, strict=True)]
            flat, table = self._flattened(tuple(operands), codes)  # type: ignore[arg-type]
            args.append(self.node(inner, flat, table))
        return graph.node(label, type_, tuple(args))

    def _flattened(self, sources: tuple[int, ...], codes: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
        """A table over nodes that may be moves themselves, as one over what they move."""
        flat, every = self._joined(sources)
        lookup = np.concatenate([each.ravel() for each in every]) if every else codes
        return flat, lookup[codes]

    def _joined(self, nodes: Sequence[int]) -> tuple[tuple[int, ...], list[np.ndarray]]:
        """The sources of several nodes, and for each node its table over all of them."""
        sources, tables, start = [], [], 0
        for node in nodes:
            graph = self.graph
            held = self.tables.picks.get(node)
            shape = (self.tables.processes, *self._shape(node))
            if graph.labels[node][0] == "splat":
                element = shape_and_element(graph.types[node])
                scalar = tensor_type((), element[1] if element else "")
                args: tuple[int, ...] = (graph.node(graph.labels[node], scalar),)
                table = np.zeros(shape, np.int64)
            elif held is not None:
                args, table = graph.args[node], held
            else:
                args, table = (node,), np.arange(int(np.prod(shape))).reshape(shape)
            tables.append(table + start)
            sources += args
            start += sum(self._count(arg) for arg in args) * self.tables.processes
        return _merged(tuple(sources), tables, [self._count(s) * self.tables.processes for s in sources])

    def _shape(self, node: int) -> tuple[int, ...]:
        known = shape_and_element(self.graph.types[node])
        return known[0] if known else ()

    def _count(self, node: int) -> int:
        return int(np.prod(self._shape(node), initial=1))

    def _small(self, type_: str) -> bool:
        known = shape_and_element(type_)
        return known is not None and int(np.prod(known[0], initial=1)) * self.tables.processes <= _MOST_ENTRIES


def _merged(sources: tuple[int, ...], tables: list[np.ndarray], counts: list[int]
            ) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """The same with each source once."""
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    first = {source: number for number, source in reversed(list(enumerate(sources)))}
    if len(first) == len(sources):
        return sources, tables
    target = np.array([first[source] for source in sources])
    merged = []
    for table in tables:
        which = np.searchsorted(starts, table.ravel(), side="right") - 1
        merged.append((table.ravel() - starts[which] + starts[target[which]]).reshape(table.shape))
    return sources, merged


def _moves(short: str, attributes: dict[str, str], shape: tuple[int, ...], codes: list[np.ndarray],
           numbers: list[np.ndarray | None]) -> np.ndarray | None:
    """The table of an op of tables; ``numbers`` are its operands where they are known on each process."""
    counted = {"select": [0], "dynamic_slice": range(1, len(codes)), "dynamic_update_slice": range(2, len(codes))}
    operands: list[np.ndarray | None] = [*codes]
    for place in counted.get(short, ()):
        operands[place] = numbers[place]
    known = [each for each in operands if each is not None]
    if len(known) != len(operands):
        return None
    return moved(short, lambda key: numbers_in(attributes[key]), shape, known, copies=1)
