"""Sums and products of many values: one node with a constant, whatever their order.

Over the reals, and over integers modulo a power of two: ``a - b = a + (-1) b``, ``c (x + y + d) = c x + c y + c d``,
``x / y = x * y^-1``, ``x / c = (1 / c) x``.
"""

from collections.abc import Sequence
from fractions import Fraction

from hlorewrite.checks.translation_validation.value_graph.graph import Graph, shape_and_element
from hlorewrite.checks.translation_validation.value_graph.views.constants import RealConstants, is_real, is_whole_number

_ONE = Fraction(1)
_MOST_TERMS = 256
"""Sums of more terms stay as they are: each addition writes all of them again."""


class Polynomials:
    """Nodes of sums and products.

    Args:
      graph: the graph.
      constants: the constants of both programs.
    """

    def __init__(self, graph: Graph, constants: RealConstants) -> None:
        self.graph, self.constants = graph, constants

    def takes(self, type_: str) -> bool:
        """Whether sums of a type are taken in this form."""
        known = shape_and_element(type_)
        return known is not None and (is_real(known[1]) or is_whole_number(known[1]))

    def add(self, args: Sequence[int], type_: str) -> int | None:
        """The sum of some nodes; None if it has too many terms."""
        constant, terms = Fraction(0), dict[tuple[int, ...], Fraction]()
        for arg in args:
            number, parts = self._terms(arg)
            constant += number
            for factors, coefficient in parts:
                terms[factors] = terms.get(factors, Fraction(0)) + coefficient
        return None if len(terms) > _MOST_TERMS else self._sum(constant, terms, type_)

    def scaled(self, node: int, factor: Fraction, type_: str) -> int:
        """A node times a number that is not 0."""
        constant, parts = self._terms(node)
        return self._sum(constant * factor, {factors: coefficient * factor for factors, coefficient in parts}, type_)

    def multiply(self, args: Sequence[int], type_: str) -> int | None:
        """The product of some nodes; None if a float is multiplied by 0: it may be infinite."""
        factor, factors = _ONE, list[int]()
        for arg in args:
            number, parts = self._factors(arg)
            factor *= number
            factors += parts
        known = shape_and_element(type_)
        assert known is not None
        if self.constants.held(factor, known[1]) == 0:
            return self.constants.node(Fraction(0), type_) if is_whole_number(known[1]) else None
        if len(factors) == 1 and self.graph.labels[factors[0]][0] == "sum":
            return self.scaled(factors[0], factor, type_)
        return self._sum(Fraction(0), {tuple(sorted(factors)): factor}, type_)

    def inverse(self, node: int, type_: str) -> int | None:
        """``1 / x``; None if x is 0."""
        number, factors = self._factors(node)
        if number == 0:
            return None
        inverted = [self._power(each, type_) for each in factors]
        return self._sum(Fraction(0), {tuple(sorted(inverted)): 1 / number}, type_)

    def coefficient(self, node: int) -> tuple[Fraction, int]:
        """A node as a number times another node."""
        label = self.graph.labels[node]
        if label[0] == "product" and label[1] != _ONE:
            return label[1], self._product(_ONE, tuple(self.graph.args[node]), self.graph.types[node])  # type: ignore
        return _ONE, node

    def factors(self, node: int) -> tuple[int, ...]:
        """The factors of a node without a constant; the node itself if it is not a product."""
        return self.graph.args[node] if self.graph.labels[node][0] == "product" else (node,)

    # ---- the parts of a node

    def _terms(self, node: int) -> tuple[Fraction, list[tuple[tuple[int, ...], Fraction]]]:
        """A node as a constant and terms: factors, with a coefficient."""
        number = self.constants.number(node)
        if number is not None:
            return number, []
        label = self.graph.labels[node]
        if label[0] == "sum":
            parts = [each for arg in self.graph.args[node] for each in self._terms(arg)[1]]
            return label[1], parts  # type: ignore[return-value]
        factor, factors = self._factors(node)
        return Fraction(0), [(tuple(sorted(factors)), factor)]

    def _factors(self, node: int) -> tuple[Fraction, list[int]]:
        number = self.constants.number(node)
        if number is not None:
            return number, []
        label = self.graph.labels[node]
        return (label[1], list(self.graph.args[node])) if label[0] == "product" else (_ONE, [node])  # type: ignore

    # ---- making

    def _sum(self, constant: Fraction, terms: dict[tuple[int, ...], Fraction], type_: str) -> int:
        known = shape_and_element(type_)
        assert known is not None
        constant = self.constants.held(constant, known[1])
        held = {factors: self.constants.held(coefficient, known[1]) for factors, coefficient in terms.items()}
        nodes = [self._product(coefficient, factors, type_) for factors, coefficient in held.items() if coefficient]
        if not nodes:
            return self.constants.node(constant, type_)
        if len(nodes) == 1 and constant == 0:
            return nodes[0]
        return self.graph.node(("sum", constant), type_, tuple(sorted(nodes)))

    def _product(self, coefficient: Fraction, factors: tuple[int, ...], type_: str) -> int:
        if not factors:
            return self.constants.node(coefficient, type_)
        if len(factors) == 1 and coefficient == 1:
            return factors[0]
        return self.graph.node(("product", coefficient), type_, factors)

    def _power(self, node: int, type_: str) -> int:
        """``x^-1``; the inverse of an inverse is the value."""
        if self.graph.labels[node][0] == "power":
            return self.graph.args[node][0]
        return self.graph.node(("power",), type_, (node,))
