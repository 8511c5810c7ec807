"""Constants of sums and products as rational numbers, and as the nearest values that a floating-point type can hold."""

from bisect import bisect_left, insort
from fractions import Fraction

from hlorewrite.checks.translation_validation.value_graph.graph import Graph, shape_and_element

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
