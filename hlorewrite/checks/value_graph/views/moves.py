"""Reshapes, transposes, broadcasts, slices and reversals as views; views move to the leaves of expressions.

``view(f(a, b)) = f(view(a), view(b))`` for ops that work element by element, and for reductions, whose rows are viewed.
Views of arguments, streams, gathered values and the like are left, each in one form.
"""

import re
from collections.abc import Callable

from hlorewrite.checks.value_graph.graph import Graph, Label, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import op_label
from hlorewrite.checks.value_graph.per_process_constants import numbers_in
from hlorewrite.checks.value_graph.views.strided import (
    Strided,
    composed,
    count_of,
    covers,
    is_whole,
    merged,
    of_kept,
    places,
    regrouped,
    strided,
    whole,
    within,
)
from hlorewrite.ops.table import ELEMENTWISE

VIEW_OPS = frozenset(f"stablehlo.{name}" for name in ("reshape", "transpose", "broadcast_in_dim", "slice", "reverse"))
OF_PLACES = frozenset({"sum", "product", "power"})
"""Kinds of nodes made here that work element by element."""
ACROSS = frozenset({"reduced", "fetch"})
"""Kinds of nodes that combine or move elements of the same place on several devices."""
CONCATENATE = "stablehlo.concatenate"
REDUCE = "reduce over rows"
"""Nodes of operands [rows, size] that combine each row into one element."""
FILLED = ("splat", "number")
MakeOp = Callable[[Label, str, tuple[int, ...]], int]
MakeReduce = Callable[[Label, str, tuple[int, ...], int, "tuple[int, ...]"], int]


def by_places(label: Label) -> bool:
    """Whether a node works element by element on operands of its own shape, or scalars."""
    return label[0] in OF_PLACES or label[0] in ACROSS or (label[0] in ELEMENTWISE and not label[2])


class Moves:
    """Views of nodes.

    Args:
      graph: the graph.
      make: makes the node of an op, in its canonical form.
      make_reduce: makes the reduction of viewed rows: label, type, operands, size of a row, shape of the result.
    """

    def __init__(self, graph: Graph, make: MakeOp, make_reduce: MakeReduce) -> None:
        self.graph, self._make, self._make_reduce = graph, make, make_reduce
        self._known: dict[tuple[int, Strided, str], int] = {}

    def shape(self, node: int) -> tuple[int, ...]:
        """The shape of a node of a static type."""
        known = shape_and_element(self.graph.types[node])
        assert known is not None
        return known[0]

    def element(self, node: int) -> str:
        """Its element type."""
        known = shape_and_element(self.graph.types[node])
        assert known is not None
        return known[1]

    def base(self, node: int) -> tuple[int, Strided]:
        """A node as a view of another node that is not itself a view."""
        label = self.graph.labels[node]
        if label[0] == "view":
            return self.graph.args[node][0], label[1]  # type: ignore[return-value]
        return node, whole(self.shape(node))

    def of_op(self, name: str, attributes: dict[str, str], type_: str, node: int) -> int | None:
        """The node of an op that moves the elements of one operand; None if it is not an affine view."""
        known = shape_and_element(type_)
        if known is None or 0 in known[0] or 0 in self.shape(node):
            return None
        source, shape = self.shape(node), known[0]
        view: Strided | None = whole(source)
        if name == "stablehlo.reshape":
            view = regrouped(view, shape)
        elif name == "stablehlo.transpose":
            view = Strided(0, tuple(view.dims[d] for d in numbers_in(attributes["permutation"])))
        elif name == "stablehlo.broadcast_in_dim":
            view = _broadcast(view, numbers_in(attributes["broadcast_dimensions"]), source, shape)
        elif name == "stablehlo.reverse":
            view = _reversed(source, numbers_in(attributes["dimensions"]))
        else:
            view = _sliced(source, shape, attributes)
        return None if view is None else self.viewed(node, view, type_)

    def viewed(self, node: int, view: Strided, type_: str) -> int:
        """A view of the elements of a node, in row-major order."""
        graph = self.graph
        if graph.labels[node][0] != "view":
            return self._of_base(node, view, type_)
        base, inner = self.base(node)
        both = composed(view, inner)
        return self._node(node, view, type_) if both is None else self._of_base(base, both, type_)

    def spread(self, node: int, shape: tuple[int, ...]) -> int:
        """A scalar at every place of a shape."""
        return self.viewed(node, strided(0, [[(size, 0)] for size in shape]), tensor_type(shape, self.element(node)))

    def arranged(self, node: int, dims: list[list[int]]) -> int:
        """A node with its dimensions in another order, some of them joined: each new one is a list of old ones."""
        base, view = self.base(node)
        shape = tuple(count_of([self.shape(node)[d] for d in group]) for group in dims)
        type_ = tensor_type(shape, self.element(node))
        if self.graph.labels[node][0] == "view":
            joined = strided(view.offset, [[digit for d in group for digit in view.dims[d]] for group in dims])
            return self._of_base(base, joined, type_)
        held = whole(self.shape(node)).dims
        return self.viewed(node, strided(0, [[digit for d in group for digit in held[d]] for group in dims]), type_)

    # ---- the one form of a view

    def _of_base(self, node: int, view: Strided, type_: str) -> int:
        label = self.graph.labels[node]
        if label[0] in FILLED:
            return self.graph.node(label, type_)
        if self.graph.types[node] == type_ and is_whole(view, count_of(self.shape(node))):
            return node
        key = (node, view, type_)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._moved_in(node, label, view, type_)
        return found

    def _moved_in(self, node: int, label: Label, view: Strided, type_: str) -> int:
        if by_places(label):
            found = self.through_places(node, type_, lambda arg, inner: self.viewed(arg, view, inner))
            return self._node(node, view, type_) if found is None else found
        if label[0] == REDUCE and not covers(view, count_of(self.shape(node))):
            return self._through_rows(node, label, view, type_)
        if label[0] == CONCATENATE:
            part = self._part_of_joined(node, view, type_)
            if part is not None:
                return part
        return self._node(node, view, type_)

    def _node(self, node: int, view: Strided, type_: str) -> int:
        return self.graph.node(("view", view), type_, (node,))

    def through_places(self, node: int, type_: str, move: Callable[[int, str], int]) -> int | None:
        """An op that works element by element, on moved operands.

        Args:
          node: the op.
          type_: the type of the moved result.
          move: moves an operand, to a type.

        Returns:
          The op; None if an operand has another shape and is not a scalar.
        """
        known = shape_and_element(type_)
        assert known is not None
        shape, args = self.shape(node), []
        for arg in self.graph.args[node]:
            if self.shape(arg) == shape:
                args.append(move(arg, tensor_type(known[0], self.element(arg))))
            elif self.shape(arg) == ():
                args.append(self.spread(arg, known[0]))
            else:
                return None
        return self._make(self.graph.labels[node], type_, tuple(args))

    def _through_rows(self, node: int, label: Label, view: Strided, type_: str) -> int:
        known = shape_and_element(type_)
        assert known is not None
        args = self.graph.args[node]
        size = self.shape(args[0])[1]
        rows = tuple(self.viewed(arg, of_kept(view, size), tensor_type((*known[0], size), self.element(arg)))
                     for arg in args)
        return self._make_reduce(label, type_, rows, size, known[0])

    def oriented(self, node: int, view: Strided, type_: str) -> int:
        """A view that stays outside a reduction and orders its rows; the reduction itself has them in a fixed order."""
        if self.graph.types[node] == type_ and is_whole(view, count_of(self.shape(node))):
            return node
        return self._node(node, view, type_)

    def _part_of_joined(self, node: int, view: Strided, type_: str) -> int | None:
        """A view of one part of a concatenation."""
        along = numbers_in(dict(self.graph.labels[node][1])["dimension"])[0]  # type: ignore[call-overload]
        shape, begin = self.shape(node), 0
        around = (count_of(shape[:along]), shape[along], count_of(shape[along + 1:]))
        for part in self.graph.args[node]:
            end = begin + self.shape(part)[along]
            inside = within(view, around, begin, end)
            if inside is not None:
                return self.viewed(part, inside, type_)
            begin = end
        return None


def iota_view(moves: Moves, attributes: dict[str, str], type_: str) -> int | None:
    """``iota`` along one of several dimensions, as a view of a one-dimensional ``iota``."""
    known = shape_and_element(type_)
    if known is None or len(known[0]) < 2 or 0 in known[0]:
        return None
    along = int((re.search(r"\d+", attributes["iota_dimension"]) or [""])[0])
    size = known[0][along]
    first = re.sub(r"\d+", "0", attributes["iota_dimension"], count=1)
    label = op_label("stablehlo.iota", (("iota_dimension", first),))
    one = moves.graph.node(label, tensor_type((size,), known[1]))
    return moves.viewed(one, strided(0, [[(n, int(d == along))] for d, n in enumerate(known[0])]), type_)


def _broadcast(view: Strided, to: list[int], source: tuple[int, ...], shape: tuple[int, ...]) -> Strided:
    dims = [((size, 0),) if size > 1 else () for size in shape]
    for d, target in enumerate(to):
        if source[d] == shape[target]:
            dims[target] = view.dims[d]  # type: ignore[call-overload]
    return Strided(0, tuple(merged(dim) for dim in dims))


def _reversed(shape: tuple[int, ...], dims: list[int]) -> Strided:
    steps = places(shape)
    offset = sum((shape[d] - 1) * steps[d] for d in dims)
    return strided(offset, [[(size, -step if d in dims else step)] for d, (size, step) in enumerate(
        zip(shape, steps, strict=True))])


def _sliced(source: tuple[int, ...], shape: tuple[int, ...], attributes: dict[str, str]) -> Strided:
    starts, strides = numbers_in(attributes["start_indices"]), numbers_in(attributes["strides"])
    steps = places(source)
    offset = sum(start * step for start, step in zip(starts, steps, strict=True))
    return strided(offset, [[(size, step * stride)] for size, step, stride in zip(shape, steps, strides, strict=True)])
