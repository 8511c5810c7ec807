"""Semantics of ops, one row per op: its class, and how one element of its result is computed.

The rows say what StableHLO's specification says and nothing about reductions; tests compare each with the reference
interpreter. There are five classes:

* *elementwise*: the element of the result is a function of the elements of the operands in the same place;
* *selection*: it is one element of one operand; which one does not depend on the values of the moved operands;
* *fold*: it is a reduction of some elements of the operands; which ones does not depend on their values;
* *sum of terms*: it is a sum, in the result's type, of terms made of one element of each operand;
* *substitution*: it is what the elements solved before leave of the right-hand side, over the diagonal.

For a selection, fold, sum or substitution it is enough to look at one or two elements (the lemmas in ``lemmas.py``).
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hlorewrite.checks.prove.elements import COMPLEX, FLOATS, TYPES, Arithmetic, Value, part_of, sort_of

Get = Callable[[int, str], Value]
"""The element of an operand at a place; places have names, and depend on the values of the selectors."""


@dataclass(frozen=True)
class Typing:
    """Element types of an op's operands and result."""

    operands: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class OpSemantics:
    """What an op computes.

    Attributes:
      op: its name.
      kind: ``elementwise``, ``selection``, ``fold``, ``sum of terms`` or ``substitution``.
      typings: the element types it may have, given how many operands there are; None for a selector's type.
      elements: what an element of the result may be; each is a separate case.
      selectors: operands that only say which elements are taken.
      source: ``file`` for one that a rule file declares.
      count: how many operands a declared one has.
    """

    op: str
    kind: str
    typings: Callable[[int], Iterator[Typing]]
    elements: Callable[[Arithmetic, Typing, Get, str], list[Value]]
    selectors: tuple[int, ...] = ()
    source: str = "StableHLO specification"
    count: int | None = None


def semantics_of(op: str) -> OpSemantics | None:
    """The row of an op; None when there is none.

    Example:
      >>> semantics_of("stablehlo.transpose").kind, semantics_of("stablehlo.sort")
      ('selection', None)
    """
    return _TABLE.get(op)


def table() -> dict[str, OpSemantics]:
    """Every row, by op."""
    return dict(_TABLE)


def known_ops() -> tuple[str, ...]:
    """The ops of the table."""
    return tuple(sorted(_TABLE))


# ---- element types


def _alike(allowed: Callable[[str], bool] = lambda element: True) -> Callable[[int], Iterator[Typing]]:
    """All operands and the result have one type."""
    return lambda count: (Typing((element,) * count, element) for element in TYPES if allowed(element))


def _numbers(element: str) -> bool:
    return element != "i1"


def _bits(element: str) -> bool:
    return sort_of(element) in ("truth", "integer")


def _selected(data: tuple[int, ...], selectors: tuple[int, ...]) -> Callable[[int], Iterator[Typing]]:
    """The moved operands have the result's type, selectors a separate type."""
    def typings(count: int) -> Iterator[Typing]:
        chosen = data or tuple(i for i in range(count) if i not in selectors and (not selectors or i < min(selectors)))
        for element in TYPES:
            yield Typing(tuple(element if i in chosen else "i32" for i in range(count)), element)
    return typings


def _any_pair(count: int) -> Iterator[Typing]:
    return (Typing((source,) * count, target) for source in TYPES for target in TYPES)


def _products(count: int) -> Iterator[Typing]:
    """Real results of real operands and complex ones of complex: dot_general and convolution convert within a sort."""
    for source in TYPES:
        for target in TYPES:
            if (sort_of(source) == "complex") == (sort_of(target) == "complex"):
                yield Typing((source,) * count, target)


def _parts(count: int) -> Iterator[Typing]:
    return (Typing((whole,) * count, part_of(whole)) for whole in COMPLEX)


def _wholes(count: int) -> Iterator[Typing]:
    return (Typing((part_of(whole),) * count, whole) for whole in COMPLEX)


def _fourier(count: int) -> Iterator[Typing]:
    for whole in COMPLEX:
        yield from (Typing((whole,), whole), Typing((part_of(whole),), whole), Typing((whole,), part_of(whole)))


# ---- elements


def _each(function: Callable[..., Value]) -> Callable[[Arithmetic, Typing, Get, str], list[Value]]:
    def elements(math: Arithmetic, typing: Typing, get: Get, reduction: str) -> list[Value]:
        return [function(math, typing, *(get(i, "j") for i in range(len(typing.operands))))]
    return elements


def _one_of(selectors: tuple[int, ...], data: tuple[int, ...] = ()) -> Callable[..., list[Value]]:
    def elements(math: Arithmetic, typing: Typing, get: Get, reduction: str) -> list[Value]:
        count = len(typing.operands)
        moved = data or tuple(i for i in range(count) if i not in selectors and (not selectors or i < min(selectors)))
        return [get(i, "j") for i in moved]
    return elements


def fold(*most: tuple[int, tuple[str, ...], int]) -> Callable[..., list[Value]]:
    """Reductions of elements of the operands: each way to take two elements of an operand, one, or as few as the op
    allows.

    More of an operand follow by the exchange lemma; fewer do not, so what holds for two is asked of one and of none.

    Args:
      most: for each operand that is reduced its number, the places of two elements, and how many are taken at least.
    """
    ways = [way for way in itertools.product(*(range(least, len(places) + 1) for _, places, least in most)) if any(way)]

    def elements(math: Arithmetic, typing: Typing, get: Get, reduction: str) -> list[Value]:
        taken = [[get(i, place) for (i, places, _), count in zip(most, way, strict=True) for place in places[:count]]
                 for way in ways]
        return [functools.reduce(functools.partial(math.reduce, reduction, typing.result), values) for values in taken]
    return elements


def _product_terms(math: Arithmetic, typing: Typing, get: Get, reduction: str) -> list[Value]:
    def term(place: str) -> Value:
        left, right = (math.convert(element, typing.result, get(i, place)) for i, element in enumerate(typing.operands))
        return math.multiply(typing.result, left, right)
    return [math.add(typing.result, term("j"), term("k"))]


def _fourier_terms(math: Arithmetic, typing: Typing, get: Get, reduction: str) -> list[Value]:
    """Each element is multiplied with a root of unity; of a real result the real part is kept."""
    source, target = typing.operands[0], typing.result
    whole = target if sort_of(target) == "complex" else source

    def term(place: str) -> Value:
        root = math.variable(f"root.{place}", whole)
        product = math.multiply(whole, math.convert(source, whole, get(0, place)), root)
        return product if target == whole else product[0]
    return [math.add(target, term("j"), term("k"))]


def _solved_terms(math: Arithmetic, typing: Typing, get: Get, reduction: str) -> list[Value]:
    """Substitution: what the solved rows leave of the right-hand side, over the diagonal, which may be taken as ones.

    ``j`` is a row that is solved first, ``k`` one that reads its result; more rows follow by the exchange lemma.
    """
    element, (matrix, right) = typing.result, (0, 1)
    first = get(right, "j")

    def solved(divided: bool) -> Value:
        known = math.divide(element, first, get(matrix, "j")) if divided else first
        left = math.subtract(element, get(right, "k"), math.multiply(element, get(matrix, "kj"), known))
        return math.divide(element, left, get(matrix, "k")) if divided else left
    return [solved(True), solved(False)]


def _clamped(math: Arithmetic, typing: Typing, low: Value, value: Value, high: Value) -> Value:
    return math.minimum(typing.result, math.maximum(typing.result, value, low), high)


def _binary(name: str) -> Callable[..., Value]:
    return lambda math, typing, a, b: getattr(math, name)(typing.result, a, b)


def _rows() -> Iterator[OpSemantics]:
    for name, method in (("add", "add"), ("multiply", "multiply"), ("maximum", "maximum"), ("minimum", "minimum")):
        yield OpSemantics(name, "elementwise", _alike(), _each(_binary(method)))
    for name, method in (("subtract", "subtract"), ("divide", "divide")):
        yield OpSemantics(name, "elementwise", _alike(_numbers), _each(_binary(method)))
    yield OpSemantics("negate", "elementwise", _alike(_numbers), _each(lambda math, t, a: math.negate(t.result, a)))
    yield OpSemantics("clamp", "elementwise", _alike(), _each(_clamped))
    for name in ("and", "or"):
        yield OpSemantics(name, "elementwise", _alike(_bits), _each(
            lambda math, t, a, b, name=name: math.bitwise(name, t.result, a, b)))
    yield OpSemantics("convert", "elementwise", _any_pair, _each(
        lambda math, t, a: math.convert(t.operands[0], t.result, a)))
    yield OpSemantics("real", "elementwise", _parts, _each(lambda math, t, a: a[0]))
    yield OpSemantics("imag", "elementwise", _parts, _each(lambda math, t, a: a[1]))
    yield OpSemantics("complex", "elementwise", _wholes, _each(lambda math, t, a, b: (a, b)))
    for name in ("reshape", "transpose", "broadcast_in_dim", "slice", "reverse", "concatenate", "pad"):
        yield OpSemantics(name, "selection", _selected((), ()), _one_of(()))
    for name, data, selectors in (("dynamic_slice", (0,), (1,)), ("dynamic_update_slice", (0, 1), (2,)),
                                  ("gather", (0,), (1,)), ("select", (1, 2), (0,))):
        yield OpSemantics(name, "selection", _selected(data, selectors), _one_of(selectors, data), selectors)
    for name in ("reduce", "reduce_window"):  # the initial value is read once for each padded place
        yield OpSemantics(name, "fold", _alike(), fold((0, ("j", "k"), 0), (1, ("j", "j"), 1)))
    yield OpSemantics("scatter", "fold", _selected((0, 2), (1,)), fold((0, ("j",), 1), (2, ("j", "k"), 0)), (1,))
    for name in ("dot_general", "convolution"):
        yield OpSemantics(name, "sum of terms", _products, _product_terms)
    yield OpSemantics("fft", "sum of terms", _fourier, _fourier_terms)
    yield OpSemantics("triangular_solve", "substitution", _alike(lambda e: e in (*FLOATS, *COMPLEX)), _solved_terms)


_TABLE = {f"stablehlo.{row.op}": row for row in _rows()}
