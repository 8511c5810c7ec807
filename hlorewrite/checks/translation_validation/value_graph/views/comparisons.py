"""Comparisons and selections in canonical form.

``a > b`` is ``b < a``, ``a >= b`` is ``b <= a``, ``a != b`` is ``not (a == b)``, ``select(not p, a, b)`` is
``select(p, b, a)``. All of these hold for every float, not-a-number among them.
"""

from collections.abc import Callable

from hlorewrite.checks.translation_validation.value_graph.graph import Graph, shape_and_element, tensor_type
from hlorewrite.checks.translation_validation.value_graph.normalize import op_label
from hlorewrite.checks.translation_validation.value_graph.views.constants import is_whole_number
from hlorewrite.checks.translation_validation.value_graph.views.moves import MakeOp

_SWAPPED = {"GT": "LT", "GE": "LE"}
_COMPARE, _NOT = "stablehlo.compare", "stablehlo.not"
_HOLDS_OF_EQUALS = {"EQ": True, "LE": True, "GE": True, "NE": False, "LT": False, "GT": False}
_OPS: dict[str, Callable[..., bool]] = {"EQ": lambda a, b: a == b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b}


def known_bits(type_: str) -> int:
    """How many bits an element of a tensor of IEEE floats has; 0 for others.

    Example:
      >>> known_bits("tensor<4xf32>"), known_bits("tensor<bf16>"), known_bits("tensor<i32>")
      (32, 16, 0)
    """
    known = shape_and_element(type_)
    return {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}.get(known[1], 0) if known else 0


class Comparisons:
    """Comparisons of both programs.

    Args:
      graph: the graph.
      make: makes the node of an op, in its canonical form.
    """

    def __init__(self, graph: Graph, make: MakeOp) -> None:
        self.graph, self._make = graph, make

    def op(self, name: str, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        """The node that a comparison, a selection or a negation of one is equal to; None if there is no other."""
        if name == _COMPARE:
            return self._compare(attributes, type_, args)
        if name == "stablehlo.select":
            return self._select(type_, args)
        if name == _NOT and self.graph.labels[args[0]][0] == _NOT:
            return self.graph.args[args[0]][0]
        return None

    def _compare(self, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int:
        direction = attributes["comparison_direction"].split()[-1].rstrip(">")
        kind = attributes.get("compare_type", "").split()[-1:]
        known = shape_and_element(self.graph.types[args[0]])
        assert known is not None
        total = kind == ["TOTALORDER>"]
        whole = is_whole_number(known[1]) or known[1] == "i1"
        if args[0] == args[1] and whole:
            return self.graph.splat(_HOLDS_OF_EQUALS[direction], type_)
        if direction == "NE":
            return self._negated(self._written("EQ", total, type_, args), type_)
        if direction in _SWAPPED:
            direction, args = _SWAPPED[direction], args[::-1]
        if direction == "LE" and (whole or total):  # of numbers that are all ordered: a <= b is not (b < a)
            return self._negated(self._written("LT", total, type_, args[::-1]), type_)
        return self._written(direction, total, type_, args)

    def _written(self, direction: str, total: bool, type_: str, args: tuple[int, ...]) -> int:
        if direction == "EQ" and args[0] > args[1]:
            args = args[::-1]
        if total and known_bits(self.graph.types[args[0]]):
            return self._written(direction, False, type_, tuple(self._key(arg) for arg in args))
        folded = self._folded(direction, type_, args)
        if folded is not None:
            return folded
        attributes = (("comparison_direction", f"#stablehlo<comparison_direction {direction}>"), *(
            (("compare_type", "#stablehlo<comparison_type TOTALORDER>"),) if total else ()))
        return self.graph.node(op_label(_COMPARE, attributes), type_, args)

    def _key(self, node: int) -> int:
        """The integer that orders floats totally, as XLA's comparison expander computes it: of negative ones all bits
        but the sign are turned."""
        known = shape_and_element(self.graph.types[node])
        assert known is not None
        bits = known_bits(self.graph.types[node])
        type_, truth = tensor_type(known[0], f"i{bits}"), tensor_type(known[0], "i1")
        number = self._make(op_label("stablehlo.bitcast_convert"), type_, (node,))
        turned = self._make(op_label("stablehlo.xor"), type_, (self.graph.splat(2 ** (bits - 1) - 1, type_), number))
        below = self._compare({"comparison_direction": "LT>"}, truth, (number, self.graph.splat(0, type_)))
        return self._make(op_label("stablehlo.select"), type_, (below, turned, number))

    def _folded(self, direction: str, type_: str, args: tuple[int, ...]) -> int | None:
        """A comparison of two whole numbers that are known."""
        labels = [self.graph.labels[arg] for arg in args]
        known = shape_and_element(self.graph.types[args[0]])
        if known is None or not is_whole_number(known[1]) or any(label[0] != "splat" for label in labels):
            return None
        return self.graph.splat(_OPS[direction](*(int(str(label[1])) for label in labels)), type_)

    def _negated(self, node: int, type_: str) -> int:
        label = self.graph.labels[node]
        if label[0] == "splat":
            return self.graph.splat(label[1] != "True", type_)
        return self._make(op_label(_NOT), type_, (node,))

    def _select(self, type_: str, args: tuple[int, ...]) -> int | None:
        if self.graph.labels[args[0]][0] == _NOT:
            inner = self.graph.args[args[0]][0]
            return self._make(op_label("stablehlo.select"), type_, (inner, args[2], args[1]))
        known = shape_and_element(type_)
        labels = [self.graph.labels[arg] for arg in args[1:]]
        if known is None or known[1] != "i1" or any(label[0] != "splat" for label in labels):
            return None
        if [label[1] for label in labels] == ["True", "False"]:
            return args[0]
        return self._negated(args[0], type_) if [label[1] for label in labels] == ["False", "True"] else None
