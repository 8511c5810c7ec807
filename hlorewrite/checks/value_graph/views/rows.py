"""Reductions and matrix products as one thing: each row of a viewed expression is combined into one element.

``dot(a, b)[m, n] = sum_k a[m, k] b[n, k]`` is the sum over rows of a product of two views, where a does not depend on n
nor b on m. A reduction of a reduction is one of longer rows. Rows, and the elements within a row, have one order.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from hlorewrite.checks.value_graph.graph import Graph, Label, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import op_label
from hlorewrite.checks.value_graph.per_process_constants import numbers_in
from hlorewrite.checks.value_graph.views.arithmetic import Polynomials, is_real, is_whole_number
from hlorewrite.checks.value_graph.views.moves import REDUCE, MakeOp, Moves
from hlorewrite.checks.value_graph.views.strided import count_of, of_kept, strided, whole
from hlorewrite.checks.value_graph.views.structure import Layouts, flattened, restored

_KINDS = {"stablehlo.add": "sum", "stablehlo.multiply": "product", "stablehlo.maximum": "max",
          "stablehlo.minimum": "min", "stablehlo.and": "and", "stablehlo.or": "or"}
_OP_OF = {kind: name for name, kind in _KINDS.items()}
_LISTS = ("lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions",
          "rhs_contracting_dimensions")


def combiner(label: Label) -> str | None:
    """The op in a region, if it is one commutative op on the region's two arguments."""
    regions = label[2]
    if not isinstance(regions, tuple) or len(regions) != 1 or len(regions[0]) != 1:
        return None
    types, ops = regions[0][0]
    if len(types) != 2 or types[0] != types[1] or len(ops) != 2:
        return None
    (name, read, results, _, inner), (_, returned, *_) = ops
    takes_both = read in ((("local", 0), ("local", 1)), (("local", 1), ("local", 0)))
    simple = takes_both and results == types[:1] and not inner and returned == (("local", 2),)
    return _KINDS.get(name) if simple else None


@dataclass(frozen=True)
class _ProductSide:
    """An operand of a product.

    Attributes:
      node: the operand.
      batch: its batch dimensions.
      free: its dimensions that the result has and the other operand has not.
      summed: its dimensions that are summed over.
      before: how many dimensions of the other operand come before its own in the result.
    """

    node: int
    batch: list[int]
    free: list[int]
    summed: list[int]
    before: int


class Rows:
    """Reductions of viewed rows.

    Args:
      moves: the views.
      layouts: the orders of dimensions.
      polynomials: sums and products.
      make: makes the node of an op, in its canonical form.
    """

    def __init__(self, moves: Moves, layouts: Layouts, polynomials: Polynomials, make: MakeOp) -> None:
        self.moves, self.layouts, self.polynomials, self._make = moves, layouts, polynomials, make
        self.graph: Graph = moves.graph

    def reduce(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """The node of a ``reduce`` of one operand by one commutative op; None for others."""
        kind, known = combiner(label), shape_and_element(type_)
        if kind is None or known is None or len(args) != 2:
            return None
        node, start = args
        shape = self.moves.shape(node)
        if self.moves.element(node) != known[1] or self.moves.element(start) != known[1] or 0 in shape:
            return None
        over = numbers_in(dict(label[1])["dimensions"])  # type: ignore[call-overload]
        kept = [d for d in range(len(shape)) if d not in over]
        size = count_of([shape[d] for d in over])
        rows = self.moves.arranged(node, [*([d] for d in kept), over])
        made = self.of_rows((REDUCE, kind, ""), type_, (rows,), size, known[0])
        if self.graph.is_identity(start, kind):
            return made
        first = self.moves.spread(start, known[0]) if known[0] else start
        return self._make(op_label(_OP_OF[kind]), type_, (first, made))

    def dot(self, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        """The node of a ``dot_general``; None if its element type is not summed here."""
        known = shape_and_element(type_)
        if known is None or not (is_real(known[1]) or is_whole_number(known[1])) or 0 in known[0]:
            return None
        taken = {"dot_dimension_numbers", "precision_config"}
        if set(attributes) - taken or any(0 in self.moves.shape(arg) for arg in args):
            return None
        operands = [self._as_wide(arg, known[1]) for arg in args]
        if None in operands:
            return None
        left_batch, right_batch, left_over, right_over = (
            _dimensions(attributes["dot_dimension_numbers"], name) for name in _LISTS)
        left, right = (each for each in operands if each is not None)
        shapes = self.moves.shape(left), self.moves.shape(right)
        free = [[d for d in range(len(shape)) if d not in (*batch, *over)] for shape, batch, over in
                zip(shapes, (left_batch, right_batch), (left_over, right_over), strict=True)]
        size = count_of([shapes[0][d] for d in left_over])
        sides = (_ProductSide(left, left_batch, free[0], left_over, 0),
                 _ProductSide(right, right_batch, free[1], right_over, len(free[0])))
        viewed = [self._at_every_place(side, known[0], size) for side in sides]
        product = self._make(op_label("stablehlo.multiply"), self.graph.types[viewed[0]], tuple(viewed))
        return self.of_rows((REDUCE, "sum", _precision(attributes)), type_, (product,), size, known[0])

    def _at_every_place(self, side: _ProductSide, shape: tuple[int, ...], size: int) -> int:
        """An operand of a product at every place of the result, with a row of what is summed."""
        held = whole(self.moves.shape(side.node)).dims
        dims = [list(held[d]) for d in side.batch]
        dims += [[(n, 0)] for n in shape[len(side.batch):len(side.batch) + side.before]]
        dims += [list(held[d]) for d in side.free]
        dims += [[(n, 0)] for n in shape[len(dims):]]
        dims.append([digit for d in side.summed for digit in held[d]])
        type_ = tensor_type((*shape, size), self.moves.element(side.node))
        return self.moves.viewed(side.node, strided(0, dims), type_)

    def _as_wide(self, node: int, element: str) -> int | None:
        """An operand in the type of the result; None if that one represents less."""
        own = self.moves.element(node)
        if own == element:
            return node
        wider = (own, element) in (("bf16", "f32"), ("f16", "f32"), ("f32", "f64"), ("bf16", "f64"), ("f16", "f64"))
        whole_numbers = is_whole_number(own) and is_whole_number(element) and (
            own.startswith("ui") == element.startswith("ui")) and int(own.lstrip("ui")) < int(element.lstrip("ui"))
        if not wider and not whole_numbers:
            return None
        return self._make(op_label("stablehlo.convert"), tensor_type(self.moves.shape(node), element), (node,))

    def of_rows(self, label: Label, type_: str, args: tuple[int, ...], size: int, shape: tuple[int, ...]) -> int:
        """The reduction of rows, an operand of shape [*shape, size], in its canonical form."""
        node, = args
        factor = Fraction(1)
        if label[1] == "sum":
            factor, node = self.polynomials.coefficient(node)
        node, size = self._joined_rows(label, node, size, shape)
        made = self._ordered(label, type_, node, size, shape)
        return made if factor == 1 else self.polynomials.scaled(made, factor, type_)

    def _joined_rows(self, label: Label, node: int, size: int, shape: tuple[int, ...]) -> tuple[int, int]:
        """Rows of elements that are rows combined alike, as rows of what these hold."""
        base, view = self.moves.base(node)
        # Ends: each round goes to the operand of a reduction.
        while self.graph.labels[base] == label:
            inner = self.graph.args[base][0]
            within = self.moves.shape(inner)[1]
            longer = of_kept(view, within)
            joined = strided(longer.offset, [*longer.dims[:-2], (*longer.dims[-2], *longer.dims[-1])])
            size *= within
            node = self.moves.viewed(inner, joined, tensor_type((*shape, size), self.moves.element(inner)))
            base, view = self.moves.base(node)
        return node, size

    def _ordered(self, label: Label, type_: str, node: int, size: int, shape: tuple[int, ...]) -> int:
        count, last, element = count_of(shape), len(shape), self.moves.element(node)
        kept = self.layouts.order(node, range(last))
        views = [flattened(parts, (*shape, size)) for parts in (kept, self.layouts.order(node, [last]))]
        flat = self.moves.viewed(node, strided(0, views), tensor_type((count, size), element))
        view = strided(0, restored(kept, last))
        rows = tensor_type((count,), element)
        if size == 1:
            return self.moves.viewed(self.moves.viewed(flat, strided(0, [[(count, 1)]]), rows), view, type_)
        return self.moves.oriented(self.graph.node(label, rows, (flat,)), view, type_)


def _dimensions(text: str, name: str) -> list[int]:
    match = re.search(name + r" = \[([\d, ]*)\]", text)
    return [int(number) for number in match[1].split(",")] if match and match[1].strip() else []


def _precision(attributes: dict[str, str]) -> str:
    """Precisions other than the default, in no order: the operands have none."""
    named = re.findall(r"precision (\w+)", attributes.get("precision_config", ""))
    return " ".join(sorted(named)) if set(named) - {"DEFAULT"} else ""

