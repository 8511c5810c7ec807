"""The canonical form of each op under views: which equations are tried for it, in order."""

import math
from collections.abc import Callable
from fractions import Fraction

from hlorewrite.checks.value_graph.graph import Graph, Label, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import op_label
from hlorewrite.checks.value_graph.per_process_constants import KNOWN, ProcessConstants, numbers_in
from hlorewrite.checks.value_graph.views import arithmetic, indexed, moves
from hlorewrite.checks.value_graph.views.moves import MakeOp, Moves
from hlorewrite.checks.value_graph.views.rows import Rows
from hlorewrite.checks.value_graph.views.structure import Layouts, StructuralHashes
from hlorewrite.ops.table import COMMUTATIVE, ELEMENTWISE

_SUMS = frozenset(f"stablehlo.{name}" for name in ("add", "subtract", "negate", "multiply", "divide"))
_HALF = Fraction(1, 2)
_FOLDED: dict[str, Callable[..., object]] = {
    "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "exponential": math.exp, "log": math.log, "tanh": math.tanh,
    "power": pow, "abs": abs, "maximum": max, "minimum": min, "convert": float, "log_plus_one": math.log1p,
    "exponential_minus_one": math.expm1, "sine": math.sin, "cosine": math.cos}


class Forms:
    """The forms of both programs.

    Args:
      graph: the graph.
      tables: known values on each process.
      rounded: whether constants that differ by rounding are one, and functions of constants are computed.

    Attributes:
      otherwise: the equations that hold in every form, for the program that is read.
    """

    def __init__(self, graph: Graph, tables: ProcessConstants, rounded: bool) -> None:
        self.graph, self.tables, self.rounded = graph, tables, rounded
        self.otherwise: Callable[[Label, str, tuple[int, ...]], int | None] = lambda *op: None
        self.constants = arithmetic.RealConstants(graph, rounded)
        self.polynomials = arithmetic.Polynomials(graph, self.constants)
        self.moves = moves.Moves(graph, self.op, lambda *args: self.rows.of_rows(*args))
        hashes = StructuralHashes(graph)
        self.layouts = Layouts(self.moves, hashes)
        make: moves.MakeOp = self.op
        self.indexed = indexed.IndexedRows(self.moves, self.layouts, hashes, make)
        self.rows = Rows(self.moves, self.layouts, self.polynomials, make)
        self.comparisons = arithmetic.Comparisons(graph, make)
        self.narrow = Narrow(self.moves, make)
        self.parts = indexed.DynamicParts(self.moves, make)
        self.joined = indexed.JoinedRows(self.moves, self.layouts)

    def op(self, label: Label, type_: str, args: tuple[int, ...]) -> int:
        """The node of an op in its canonical form."""
        found = self._counted(label, type_, args)
        if found is None:
            found = self.found(label, type_, args)
        if found is None and len(label) == 4 and not label[2]:
            found = self.otherwise(label, type_, args)
        if found is not None:
            return found
        if label[0] in COMMUTATIVE and args[0] > args[1]:
            args = (args[1], args[0])
        return self.graph.node(label, type_, args)

    def _counted(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """The node of an op of numbers that are known on each process."""
        if not args or self.graph.labels[args[0]][0] not in KNOWN or len(label) != 4 or label[2]:
            return None
        return self.tables.folded(str(label[0]), label[1], type_, args)  # type: ignore[arg-type]

    def found(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """The node that an op is equal to; None if there is no other."""
        if label[0] in moves.OF_PLACES:
            return self._of_places(label, type_, args)
        if label[0] == moves.REDUCE or label[0] in moves.ACROSS:
            return None
        if label[0] == "stablehlo.get_tuple_element" and self.graph.labels[args[0]][0] == "tuple":
            return self.graph.args[args[0]][numbers_in(dict(label[1])["index"])[0]]  # type: ignore[call-overload]
        known = shape_and_element(type_)
        if known is None or any(shape_and_element(self.graph.types[arg]) is None for arg in args):
            return None
        name = str(label[0])
        if label[2]:
            of_regions = {"stablehlo.reduce": self.rows.reduce, "stablehlo.scatter": self.indexed.scatter}.get(name)
            return None if of_regions is None else of_regions(label, type_, args)
        attributes: dict[str, str] = dict(label[1])  # type: ignore[call-overload]
        if name in moves.VIEW_OPS:
            return self.moves.of_op(name, attributes, type_, args[0])
        if name == "stablehlo.iota":
            return moves.iota_view(self.moves, attributes, type_)
        if name in (indexed.SLICE, indexed.UPDATE):
            return self.parts.op(label, type_, args)
        if name == moves.CONCATENATE:
            return self.joined.op(attributes, type_, args)
        if name == "stablehlo.gather":
            return self.indexed.gather(attributes, type_, args)
        if name == "stablehlo.dot_general":
            return self.rows.dot(attributes, type_, args)
        return self._by_places(label, attributes, type_, args) if name in ELEMENTWISE else None

    def literal(self, node: int) -> int:
        """A constant of a program as the number that constants near it are taken for."""
        number = self.constants.number(node) if self.rounded else None
        known = shape_and_element(self.graph.types[node])
        if number is None or known is None or not arithmetic.is_real(known[1]):
            return node
        return self.constants.node(number, self.graph.types[node])

    def _of_places(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """The same sum, product or inverse of other nodes."""
        if label[0] == "power":
            return self.polynomials.inverse(args[0], type_)
        constant = self.constants.node(label[1], type_)  # type: ignore[arg-type]
        combine = self.polynomials.add if label[0] == "sum" else self.polynomials.multiply
        return combine((*args, constant), type_)

    def _by_places(self, label: Label, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        known = shape_and_element(type_)
        assert known is not None
        shape = known[0]
        spread = tuple(arg if self.moves.shape(arg) == shape else self.moves.spread(arg, shape) for arg in args)
        if spread != args:
            return self.op(label, type_, spread)
        name = str(label[0])
        for found in (self._constant, self.narrow.op, self._sum, self.comparisons.op, self._function):
            made = found(name, attributes, type_, args)
            if made is not None:
                return made
        return None

    # ---- equations

    def _sum(self, name: str, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        if name not in _SUMS or not self.polynomials.takes(type_):
            return None
        known = shape_and_element(type_)
        assert known is not None
        if name == "stablehlo.add":
            return self.polynomials.add(args, type_)
        if name == "stablehlo.multiply":
            return self.polynomials.multiply(args, type_)
        if name == "stablehlo.negate":
            return self.polynomials.scaled(args[0], Fraction(-1), type_)
        if name == "stablehlo.subtract":
            return self.polynomials.add((args[0], self.polynomials.scaled(args[1], Fraction(-1), type_)), type_)
        inverse = self.polynomials.inverse(args[1], type_) if arithmetic.is_real(known[1]) else None
        return None if inverse is None else self.polynomials.multiply((args[0], inverse), type_)

    def _constant(self, name: str, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        """A function of float constants, where constants are taken to be rounded."""
        known, function = shape_and_element(type_), _FOLDED.get(name.removeprefix("stablehlo."))
        if not self.rounded or function is None or known is None or not arithmetic.is_real(known[1]) or not args:
            return None
        numbers = [self.constants.number(arg) for arg in args]
        if None in numbers or not all(arithmetic.is_real(self.moves.element(arg)) for arg in args):
            return None
        try:
            made = function(*(float(number) for number in numbers if number is not None))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        if not isinstance(made, float) or not math.isfinite(made):
            return None
        return self.constants.node(Fraction(made), type_)

    def _function(self, name: str, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
        """Functions that are others: ``rsqrt(x) = sqrt(x)^-1``, ``clamp(a, x, b) = min(max(x, a), b)``, ..."""
        known = shape_and_element(type_)
        assert known is not None
        if name == "stablehlo.clamp":
            low = self.op(op_label("stablehlo.maximum"), type_, (args[1], args[0]))
            return self.op(op_label("stablehlo.minimum"), type_, (low, args[2]))
        if name in ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.and", "stablehlo.or") and args[0] == args[1]:
            return args[0]
        if known[1].startswith("ui") and name in ("stablehlo.remainder", "stablehlo.divide"):
            return self._of_power_of_two(name, type_, args)
        if not arithmetic.is_real(known[1]):
            return None
        if name == "stablehlo.rsqrt":
            return self.polynomials.inverse(self.op(op_label("stablehlo.sqrt"), type_, args), type_)
        if name == "stablehlo.logistic":
            below = self.op(op_label("stablehlo.exponential"), type_, (
                self.polynomials.scaled(args[0], Fraction(-1), type_),))
            both = self.polynomials.add((below, self.constants.node(Fraction(1), type_)), type_)
            return None if both is None else self.polynomials.inverse(both, type_)
        if name == "stablehlo.power":
            return self._power(type_, args)
        return None

    def _power(self, type_: str, args: tuple[int, ...]) -> int | None:
        exponent = self.constants.number(args[1])
        if exponent in (1, 2, 3):
            return self.polynomials.multiply((args[0],) * int(exponent), type_)
        if exponent == _HALF:
            return self.op(op_label("stablehlo.sqrt"), type_, args[:1])
        if exponent == -_HALF:
            return self.op(op_label("stablehlo.rsqrt"), type_, args[:1])
        return self.polynomials.inverse(args[0], type_) if exponent == -1 else None

    def _of_power_of_two(self, name: str, type_: str, args: tuple[int, ...]) -> int | None:
        """An unsigned division by a power of two is one of bits."""
        number = self.constants.number(args[1])
        if number is None or number <= 0 or int(number) & (int(number) - 1):
            return None
        if name == "stablehlo.remainder":
            mask = self.constants.node(number - 1, type_)
            return self.op(op_label("stablehlo.and"), type_, (args[0], mask))
        places = self.constants.node(Fraction(int(number).bit_length() - 1), type_)
        return args[0] if number == 1 else self.op(op_label("stablehlo.shift_right_logical"), type_, (args[0], places))


# ---- narrow floats computed in float32: ``op(a, b) = round(op(wide(a), wide(b)))``, as XLA normalizes them

# An op of bfloat16 or float16 is by its meaning the op of the wide numbers, rounded once. Widening is exact, so it
# moves through ops that round nothing, and converting a value that is exact in the narrow type to that type and back
# does not change it.


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
