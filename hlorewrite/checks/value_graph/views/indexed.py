"""Parts of tensors that are taken or written by index: gathers, scatters, dynamic slices and concatenations.

A gather or scatter is one of rows: one column of starts for each dimension that is indexed, however they are written.

XLA writes batching dimensions as columns that count, collapses or restores dimensions of size 1, flattens the batch
and transposes the operand. Here a gather is a tensor [rows, elements of a slice],
and a scatter takes updates of this shape. A start of a gather is clamped: 0 if a slice takes a whole dimension.
An update of a scatter that is outside is left out, so its columns stay. A scatter that adds is a sum of its operand and
of a scatter into zeros.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlorewrite.checks.value_graph.graph import Graph, Label, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import array, normalized, op_label
from hlorewrite.checks.value_graph.per_process_constants import numbers_in
from hlorewrite.checks.value_graph.views.arithmetic import is_real, is_whole_number
from hlorewrite.checks.value_graph.views.moves import CONCATENATE, FILLED, OF_PLACES, MakeOp, Moves
from hlorewrite.checks.value_graph.views.rows import combiner
from hlorewrite.checks.value_graph.views.strided import Digit, Strided, count_of, covers, cut_within, places, strided
from hlorewrite.checks.value_graph.views.structure import Layouts, StructuralHashes, flattened, restored
from hlorewrite.ops.table import ELEMENTWISE

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


# ---- dynamic slices and updates of a rearranged tensor, as those of the tensor itself

# XLA's layout passes transpose what a scan stacks: the loop then updates ``transpose(x)``, and reads its slices from
# it. Let ``v`` only rearrange the elements of ``x``, and let each dimension in which the part is smaller be a whole
# dimension of ``x``. Then both clamp their starts alike. With ``i'`` for the starts in the order of the dimensions of
# ``x``,
#
#     slice(v(x), i) = v(slice(x, i')),    update(v(x), u, i) = v(update(x, v^-1(u), i')).
#
# A start of a whole dimension is clamped to 0.
#
# Slices move to the leaves of expressions, as views do: ``slice(f(a, b), i) = f(slice(a, i), slice(b, i))`` for ops
# that work element by element. They stay outside of reductions over devices, whose members may have other starts.


SLICE, UPDATE = "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"


class DynamicParts:
    """Dynamic slices and updates of both programs.

    Args:
      moves: the views.
      make: makes the node of an op, in its canonical form.
    """

    def __init__(self, moves: Moves, make: MakeOp) -> None:
        self.moves, self.make = moves, make

    def op(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """The node of a slice or update; None if it is in canonical form already, or moves no element."""
        updates = 1 if label[0] == UPDATE else 0
        known = shape_and_element(self.moves.graph.types[args[1]] if updates else type_)
        assert known is not None
        sizes, starts = known[0], args[1 + updates:]
        if 0 in sizes or not starts:
            return None
        if not updates and (found := self._through_places(label, type_, args)) is not None:
            return found
        base, view = self.moves.base(args[0])
        mapped = _mapped(view, self.moves.shape(base), self.moves.shape(args[0]), sizes, repeats=not updates)
        if mapped is None:
            return None
        turned = self._starts(mapped, starts)
        if base == args[0] and turned == starts:
            return None
        part = tensor_type(mapped.sizes, known[1])
        if not updates:
            made = op_label(SLICE, (("slice_sizes", array(mapped.sizes)),))
            return self.moves.viewed(self.make(made, part, (base, *turned)), mapped.back, type_)
        update = self.moves.viewed(args[1], mapped.there, part)
        return self.moves.viewed(self.make(label, self.moves.graph.types[base], (base, update, *turned)), view, type_)

    def _through_places(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """A slice of an op that works element by element, as the op on slices."""
        operand, *starts = args
        inner, graph = self.moves.graph.labels[operand], self.moves.graph
        if inner[0] in FILLED:
            return graph.node(inner, type_)
        if inner[0] not in OF_PLACES and (inner[0] not in ELEMENTWISE or inner[2]):
            return None
        return self.moves.through_places(operand, type_, lambda arg, kind: self.make(label, kind, (arg, *starts)))

    def _starts(self, mapped: _Mapped, starts: Sequence[int]) -> tuple[int, ...]:
        zero = self.moves.graph.splat(0, self.moves.graph.types[starts[0]])
        return tuple(zero if of is None else starts[of] for of in mapped.starts)


@dataclass(frozen=True)
class _Mapped:
    """A part of a rearranged tensor as one of the tensor itself.

    Attributes:
      sizes: the shape of the part, in the tensor itself.
      starts: for each dimension of the tensor the dimension whose start it takes; None where the part is whole.
      there: the part, read in the order of the tensor itself.
      back: the part of the tensor, read in the rearranged order.
    """

    sizes: tuple[int, ...]
    starts: tuple[int | None, ...]
    there: Strided
    back: Strided


def _mapped(view: Strided, shape: Sequence[int], seen: Sequence[int], sizes: Sequence[int], *, repeats: bool
            ) -> _Mapped | None:
    """The part of sizes ``sizes`` of a view of shape ``seen``; None if the viewed tensor has no such part.

    A dimension along which the view repeats the tensor is left out of the part, if there are to be any.
    """
    again = [bool(dim) and all(stride == 0 for _, stride in dim) for dim in view.dims]
    if repeats and any(again):
        once = [1 if repeated else size for size, repeated in zip(seen, again, strict=True)]
        part = [1 if repeated else size for size, repeated in zip(sizes, again, strict=True)]
        dims = tuple(() if repeated else dim for dim, repeated in zip(view.dims, again, strict=True))
        mapped = _mapped(Strided(view.offset, dims), shape, once, part, repeats=False)
        if mapped is None:
            return None
        read = zip(sizes, again, mapped.back.dims, strict=True)
        return replace(mapped, back=strided(0, [((size, 0),) if repeated else dim for size, repeated, dim in read]))
    if count_of(shape) != count_of(seen) or not covers(view, count_of(shape)):
        return None
    steps = places(shape)
    starts: list[int | None] = [None] * len(shape)
    for dim, (size, whole) in enumerate(zip(sizes, seen, strict=True)):
        if size == whole:
            continue
        of = [d for d, step in enumerate(steps) if view.dims[dim] == ((shape[d], step),)]
        if len(of) != 1:
            return None
        starts[of[0]] = dim
    part = tuple(size if of is None else sizes[of] for size, of in zip(shape, starts, strict=True))
    there: list[list[tuple[int, Digit]]] = [[] for _ in shape]
    back: list[list[Digit]] = []
    for dim, (digits, place) in enumerate(zip(view.dims, places(sizes), strict=True)):
        cut = _cut(digits, shape)
        if cut is None:
            return None
        if dim in starts:
            cut = [(sizes[dim], 1, cut[0][2])]
        back.append([(size, step * places(part)[at]) for size, step, at in cut])
        inside = count_of([size for size, _, _ in cut])
        for size, step, at in cut:
            inside //= size
            there[at].append((step, (size, inside * place)))
    ordered = [[digit for _, digit in sorted(each, reverse=True)] for each in there]
    return _Mapped(part, tuple(starts), strided(0, ordered), strided(0, back))


def _cut(digits: Sequence[Digit], shape: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Digits as parts that each step within one dimension: (size, step, dimension); None if one carries."""
    found: list[tuple[int, int, int]] = []
    for digit in digits:
        parts = cut_within(digit, shape)
        if parts is None:
            return None
        found += parts
    return found


# ---- concatenations, however their parts lie, as concatenations of rows along the first of two dimensions

# A concatenation along a dimension leaves the others alone, so they may be in any order as long as all parts have the
# same: ``concatenate(v(a), v(b)) = w(concatenate(a, b))``. They take the order of the first part that is not a
# constant. A part that is itself a concatenation of rows becomes its parts.


_ATTRIBUTES = (("dimension", "0 : i64"),)
_LABEL = op_label(CONCATENATE, _ATTRIBUTES)


class JoinedRows:
    """Concatenations of both programs.

    Args:
      moves: the views.
      layouts: the orders of dimensions.
    """

    def __init__(self, moves: Moves, layouts: Layouts) -> None:
        self.moves, self.layouts = moves, layouts
        self.graph: Graph = moves.graph

    def op(self, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        """The node of a concatenation; None if it has no elements."""
        known = shape_and_element(type_)
        parts = [arg for arg in args if 0 not in self.moves.shape(arg)]
        if known is None or not parts:
            return None
        shape, along = known[0], numbers_in(attributes["dimension"])[0]
        rest = [dim for dim in range(len(shape)) if dim != along]
        first = next((part for part in parts if self.layouts.leaves(part)), parts[0])
        order = self.layouts.order(first, rest)
        within = count_of([shape[dim] for dim in rest])
        rows: list[int] = []
        for part in parts:
            held = self.moves.shape(part)
            view = strided(0, [[(held[along], places(held)[along])], flattened(order, held)])
            rows += self._rows(self.moves.viewed(part, view, tensor_type((held[along], within), known[1])))
        made = tensor_type((shape[along], within), known[1])
        node = normalized(self.graph, CONCATENATE, _ATTRIBUTES, made, tuple(rows))
        node = self.graph.node(_LABEL, made, tuple(rows)) if node is None else node
        digits = restored(order, len(shape))
        digits[along] = [(shape[along], within)]
        return self.moves.viewed(node, strided(0, digits), type_)

    def _rows(self, part: int) -> tuple[int, ...]:
        return self.graph.args[part] if self.graph.labels[part] == _LABEL else (part,)
