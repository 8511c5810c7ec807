"""Concatenations, however their parts lie, as concatenations of rows along the first of two dimensions.

A concatenation along a dimension leaves the others alone, so they may be in any order as long as all parts have the
same: ``concatenate(v(a), v(b)) = w(concatenate(a, b))``. They take the order of the first part that is not
a constant. A part that is itself a concatenation of rows becomes its parts.
"""

from hlorewrite.checks.translation_validation.value_graph.graph import Graph, shape_and_element, tensor_type
from hlorewrite.checks.translation_validation.value_graph.normalize import normalized, op_label
from hlorewrite.checks.translation_validation.value_graph.per_process_constants import numbers_in
from hlorewrite.checks.translation_validation.value_graph.views.moves import CONCATENATE, Moves
from hlorewrite.checks.translation_validation.value_graph.views.strided import count_of, places, strided
from hlorewrite.checks.translation_validation.value_graph.views.structure import Layouts, flattened, restored

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
