"""Sums, products, comparisons and selections in canonical form, with their constants."""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from fractions import Fraction

from hlorewrite.checks.value_graph.graph import Graph, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import op_label
from hlorewrite.checks.value_graph.views.moves import MakeOp

# ---- constants of sums and products as rational numbers, and as the nearest values that a floating-point type can hold


DIGITS = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
"""The significant bits of the floating-point types in which constants are computed."""
_PLACES = 4
"""Constants that differ by at most this many units in the last place are taken to be rounded from each other."""
_LARGEST = {"bf16": 127, "f16": 15, "f32": 127, "f64": 1023}


def is_real(element: str) -> bool:
    """Whether sums and products of an element type are taken over the reals."""
    return element in DIGITS


def is_whole_number(element: str) -> bool:
    """Whether they are taken over integers modulo a power of two."""
    return element.lstrip("ui").isdigit() and element != "i1"


class RealConstants:
    """The constants of both programs.

    Args:
      graph: the graph.
      rounded: whether constants that differ by rounding are one. Then each is taken to be the first that was met near
        it: so two that are one differ by at most twice ``_PLACES`` units in the last place.
    """

    def __init__(self, graph: Graph, rounded: bool) -> None:
        self.graph, self.rounded = graph, rounded
        self._met: dict[str, list[Fraction]] = {}

    def number(self, node: int) -> Fraction | None:
        """The number that a node is filled with; None for other nodes, and for infinities and not-a-number."""
        label, known = self.graph.labels[node], shape_and_element(self.graph.types[node])
        if label[0] == "number":
            return label[1]  # type: ignore[return-value]
        if label[0] != "splat" or known is None or not (is_real(known[1]) or is_whole_number(known[1])):
            return None
        try:
            return Fraction(str(label[1])) if is_whole_number(known[1]) else Fraction(float(str(label[1])))
        except (ValueError, OverflowError):
            return None

    def held(self, number: Fraction, element: str) -> Fraction:
        """A number as the element type represents it: integers wrap around, and a rounded constant becomes the first
        one met nearby."""
        if is_whole_number(element):
            bits, unsigned = int(element.lstrip("ui")), element.startswith("ui")
            low = int(number) % 2**bits
            return Fraction(low if unsigned or low < 2 ** (bits - 1) else low - 2**bits)
        if not self.rounded or number == 0:
            return number
        met = self._met.setdefault(element, [])
        at = bisect_left(met, number)
        width = abs(number) * Fraction(2 * _PLACES, 2 ** DIGITS[element])
        for near in met[max(at - 1, 0):at + 1]:
            if abs(near - number) <= width:
                return near
        insort(met, number)
        return number

    def node(self, number: Fraction, type_: str) -> int:
        """A tensor filled with a number."""
        known = shape_and_element(type_)
        assert known is not None
        number = self.held(number, known[1])
        if is_whole_number(known[1]):
            return self.graph.splat(int(number), type_)
        if _representable(number, known[1]):
            return self.graph.splat(float(number), type_)
        return self.graph.node(("number", number), type_)


def _representable(number: Fraction, element: str) -> bool:
    """Whether a type represents a number exactly, as a normal number."""
    top, bottom = number.numerator, number.denominator
    if bottom & (bottom - 1):
        return False
    top = abs(top)
    if top == 0:
        return True
    bits = top.bit_length()
    return bits - ((top & -top).bit_length() - 1) <= DIGITS[element] and (
        -_LARGEST[element] < bits - bottom.bit_length() < _LARGEST[element])


# ---- sums and products of many values: one node with a constant, whatever their order

# Over the reals, and over integers modulo a power of two: ``a - b = a + (-1) b``, ``c (x + y + d) = c x + c y + c d``,
# ``x / y = x * y^-1``, ``x / c = (1 / c) x``.


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


# ---- comparisons and selections in canonical form

# ``a > b`` is ``b < a``, ``a >= b`` is ``b <= a``, ``a != b`` is ``not (a == b)``, ``select(not p, a, b)`` is
# ``select(p, b, a)``. All of these hold for every float, not-a-number among them.


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
