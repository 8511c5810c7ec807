"""Gathers and scatters of rows: one column of starts for each dimension that is indexed, however they are written.

XLA writes batching dimensions as columns that count, collapses or restores dimensions of size 1, flattens the batch
and transposes the operand. Here a gather is a tensor [rows, elements of a slice],
and a scatter takes updates of this shape. A start of a gather is clamped: 0 if a slice takes a whole dimension.
An update of a scatter that is outside is left out, so its columns stay. A scatter that adds is a sum of its operand and
of a scatter into zeros.
"""

import re
from collections.abc import Sequence

from hlorewrite.checks.translation_validation.value_graph.graph import Graph, Label, shape_and_element, tensor_type
from hlorewrite.checks.translation_validation.value_graph.normalize import op_label
from hlorewrite.checks.translation_validation.value_graph.per_process_constants import numbers_in
from hlorewrite.checks.translation_validation.value_graph.views.constants import is_real, is_whole_number
from hlorewrite.checks.translation_validation.value_graph.views.moves import MakeOp, Moves
from hlorewrite.checks.translation_validation.value_graph.views.rows import combiner
from hlorewrite.checks.translation_validation.value_graph.views.strided import count_of, places, strided
from hlorewrite.checks.translation_validation.value_graph.views.structure import Layouts, StructuralHashes

_FLAGS = ("indices_are_sorted", "unique_indices")


class IndexedRows:
    """Gathers and scatters of both programs.

    Args:
      moves: the views.
      layouts: the orders of dimensions.
      hashes: the order of columns.
      make: makes the node of an op, in its canonical form.
    """

    def __init__(self, moves: Moves, layouts: Layouts, hashes: StructuralHashes, make: MakeOp) -> None:
        self.moves, self.layouts, self.hashes, self._make = moves, layouts, hashes, make
        self.graph: Graph = moves.graph

    def gather(self, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        """The node of a gather; None for tensors without elements."""
        operand, indices = args
        known, shape = shape_and_element(type_), self.moves.shape(operand)
        if known is None or 0 in known[0] or 0 in shape or 0 in self.moves.shape(indices):
            return None
        text = attributes["dimension_numbers"]
        offset, collapsed, batching, map_ = (_listed(text, name) for name in (
            "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_index_map"))
        slices = numbers_in(attributes["slice_sizes"])
        columns = self._columns(indices, text, "start_indices_batching_dims", map_, batching)
        columns = {d: column for d, column in columns.items() if slices[d] != shape[d]}
        order = self._order(operand, columns, range(len(shape)))
        size, at = count_of(slices), dict(zip(order, places([slices[d] for d in order]), strict=True))
        rows = [n for d, n in enumerate(known[0]) if d not in offset]
        label = ("gathered rows", tuple(slices[d] for d in order), _indexed(order, columns), _flags(attributes))
        node = self.graph.node(label, tensor_type((count_of(rows), size), known[1]), (
            self.moves.arranged(operand, [[d] for d in order]), *(columns[d] for d in order if d in columns)))
        kept = iter([d for d in range(len(shape)) if d not in (*collapsed, *batching)])
        steps = iter(places(rows))
        dims = [[(n, at[next(kept)] if d in offset else size * next(steps))] for d, n in enumerate(known[0])]
        return self.moves.viewed(node, strided(0, dims), type_)

    def scatter(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """The node of a scatter into one operand; None for others."""
        if len(args) != 3 or any(0 in self.moves.shape(arg) for arg in args):
            return None
        operand, indices, updates = args
        attributes: dict[str, str] = dict(label[1])  # type: ignore[call-overload]
        text = attributes["scatter_dimension_numbers"]
        window, inserted, batching, map_ = (_listed(text, name) for name in (
            "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_dims_to_operand_dims"))
        shape, element = self.moves.shape(operand), self.moves.element(operand)
        kept = [d for d in range(len(shape)) if d not in (*inserted, *batching)]
        within = dict(zip(kept, window, strict=True))
        columns = self._columns(indices, text, "scatter_indices_batching_dims", map_, batching)
        order = self._order(operand, columns, range(len(shape)))
        rows = [d for d in range(len(self.moves.shape(updates))) if d not in window]
        sizes = {d: self.moves.shape(updates)[within[d]] if d in within else 1 for d in order}
        made: Label = ("scattered rows", tuple(sizes[d] for d in order), _indexed(order, columns),
                       (_flags(attributes), combiner(label) or label[2]))
        turned = tensor_type(tuple(shape[d] for d in order), element)
        adds = made[3][1] == "sum" and (is_real(element) or is_whole_number(element))  # type: ignore[index]
        zeros = self.graph.identity("sum", turned) if adds else None
        node = self.graph.node(made, turned, (
            self.moves.arranged(operand, [[d] for d in order]) if zeros is None else zeros,
            self.moves.arranged(updates, [rows, [within[d] for d in order if d in within]]),
            *(columns[d] for d in order if d in columns)))
        at = dict(zip(order, places([shape[d] for d in order]), strict=True))
        added = self.moves.viewed(node, strided(0, [[(n, at[d])] for d, n in enumerate(shape)]), type_)
        if zeros is None or self.graph.is_identity(operand, "sum"):
            return added
        return self._make(op_label("stablehlo.add"), type_, (operand, added))

    def _columns(self, indices: int, text: str, batching: str, map_: Sequence[int], of: Sequence[int]
                 ) -> dict[int, int]:
        """By dimension of the operand, the starts of all rows, in one dimension."""
        shape, vector = self.moves.shape(indices), next(iter(_numbers(text, "index_vector_dim")), 0)
        steps = [*places(shape), 0]
        rows = [d for d in range(len(shape)) if d != vector]
        type_ = tensor_type((count_of([shape[d] for d in rows]),), self.moves.element(indices))
        found = {dim: self.moves.viewed(indices, strided(place * steps[vector], [[(shape[d], steps[d]) for d in rows]]),
                                        type_) for place, dim in enumerate(map_)}
        for dim, along in zip(of, _listed(text, batching), strict=True):
            label = op_label("stablehlo.iota", (("iota_dimension", "0 : i64"),))
            one = self.graph.node(label, tensor_type((shape[along],), self.moves.element(indices)))
            found[dim] = self.moves.viewed(one, strided(0, [[(shape[d], int(d == along)) for d in rows]]), type_)
        return found

    def _order(self, operand: int, columns: dict[int, int], dims: Sequence[int]) -> list[int]:
        """The dimensions of the operand: those that are indexed, by their columns, and then the others as they lie."""
        by_layout = list(dict.fromkeys(part.dim for part in self.layouts.order(operand, dims)))
        by_layout += [d for d in dims if d not in by_layout]
        return sorted(by_layout, key=lambda d: (d not in columns, self.hashes.of(columns[d]) if d in columns else 0))


def _indexed(order: Sequence[int], columns: dict[int, int]) -> tuple[int, ...]:
    return tuple(place for place, d in enumerate(order) if d in columns)


def _flags(attributes: dict[str, str]) -> tuple[str, ...]:
    """What the program promises of its indices."""
    return tuple(name for name in _FLAGS if attributes.get(name) == "true")


def _listed(text: str, name: str) -> list[int]:
    match = re.search(rf"\b{name} = \[([\d, ]*)\]", text)
    return [int(number) for number in match[1].split(",")] if match and match[1].strip() else []


def _numbers(text: str, name: str) -> list[int]:
    match = re.search(rf"\b{name} = (\d+)", text)
    return [int(match[1])] if match else []
