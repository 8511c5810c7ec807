"""Narrow floats computed in float32: ``op(a, b) = round(op(wide(a), wide(b)))``, as XLA normalizes them.

An op of bfloat16 or float16 is by its meaning the op of the wide numbers, rounded once. Widening is exact, so it moves
through ops that round nothing, and converting a value that is exact in the narrow type to that type and back does not
change it.
"""

from hlorewrite.checks.translation_validation.value_graph.graph import shape_and_element, tensor_type
from hlorewrite.checks.translation_validation.value_graph.normalize import op_label
from hlorewrite.checks.translation_validation.value_graph.views.moves import MakeOp, Moves
from hlorewrite.ops.table import ELEMENTWISE

_NARROW = ("bf16", "f16")
_CONVERT, _SELECT, _COMPARE = "stablehlo.convert", "stablehlo.select", "stablehlo.compare"
_EXACT = frozenset(f"stablehlo.{name}" for name in ("maximum", "minimum", "negate", "abs"))
_OTHER = frozenset({_CONVERT, _SELECT, _COMPARE, "stablehlo.reduce_precision", "stablehlo.is_finite",
                    "stablehlo.bitcast_convert"})


class Narrow:
    """Ops of narrow floats.

    Args:
      moves: the views.
      make: makes the node of an op, in its canonical form.
    """

    def __init__(self, moves: Moves, make: MakeOp) -> None:
        self.moves, self.graph, self._make = moves, moves.graph, make

    def op(self, name: str, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        """The node of an op of narrow floats, or of a conversion; None for others."""
        known = shape_and_element(type_)
        assert known is not None
        if name == _CONVERT:
            return self._convert(known[1], type_, args[0])
        if name == _COMPARE and self.moves.element(args[0]) in _NARROW:
            wide = tuple(self._wide(arg) for arg in args)
            return self._make((name, tuple(sorted(attributes.items())), (), 0), type_, wide)
        if name == _SELECT and known[1] in _NARROW:
            wide = (args[0], *(self._wide(arg) for arg in args[1:]))
            return self._rounded(self._make(op_label(name), tensor_type(known[0], "f32"), wide), type_)
        if known[1] not in _NARROW or name in _OTHER or name not in ELEMENTWISE or (
                {self.moves.element(arg) for arg in args} != {known[1]}):
            return None
        label = (name, tuple(sorted(attributes.items())), (), 0)
        wide = tuple(self._wide(arg) for arg in args)
        return self._rounded(self._make(label, tensor_type(known[0], "f32"), wide), type_)

    def _wide(self, node: int) -> int:
        return self._make(op_label(_CONVERT), tensor_type(self.moves.shape(node), "f32"), (node,))

    def _rounded(self, node: int, type_: str) -> int:
        return self._make(op_label(_CONVERT), type_, (node,))

    def _convert(self, element: str, type_: str, node: int) -> int | None:
        own = self.moves.element(node)
        label = self.graph.labels[node]
        if label[0] == "splat" and own in _NARROW and element in ("f32", "f64"):
            return self.graph.node(label, type_)
        if label[0] != _CONVERT:
            return None
        inner = self.graph.args[node][0]
        first = self.moves.element(inner)
        if first == element and self._holds(inner, own):
            return inner  # from the wide type through the narrow one and back, where nothing is lost; or the reverse
        if first in _NARROW and own == "f32" and element == "f64":
            return self._make(op_label(_CONVERT), type_, (inner,))
        return None

    def _holds(self, node: int, element: str) -> bool:
        """Whether a type represents every value of a node exactly."""
        own = self.moves.element(node)
        if own == element or (own, element) in (("bf16", "f32"), ("f16", "f32"), ("f32", "f64"), ("bf16", "f64"),
                                                ("f16", "f64")):
            return True
        label, args = self.graph.labels[node], self.graph.args[node]
        if label[0] == _CONVERT:
            return self.moves.element(args[0]) == element
        if label[0] in _EXACT:
            return all(self._holds(arg, element) for arg in args)
        if label[0] == _SELECT:
            return all(self._holds(arg, element) for arg in args[1:])
        return label[0] == "view" and self._holds(args[0], element)
