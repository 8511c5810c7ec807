"""Element types as the solver sees them: integers with wrap-around, and floats in three strengths of arithmetic.

Integers of w bits are bit vectors, ``i1`` truth values, whose sum is *or* and whose product is *and* (StableHLO).
The float class of a fact decides how floats behave:

* ``exact``: numbers of an unknown format. They have an order and one not-a-number; addition and multiplication are
  unknown functions, so only equations that hold bit for bit can be proved. Rounding keeps the order.
* ``reassociates``: addition and multiplication are associative and commutative, and distribute over nothing.
* ``reals``: real numbers.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from hlorewrite.checks.prove.solver import solver

INTEGERS = tuple(f"{sign}i{bits}" for bits in (2, 4, 8, 16, 32, 64) for sign in ("", "u"))
FLOATS = ("f64", "f32", "bf16", "f16", "f8E5M2", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E3M4",
          "f8E8M0FNU", "f8E4M3B11FNUZ", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN")
_WITHOUT_ZERO = {"f8E8M0FNU"}
COMPLEX = ("complex<f32>", "complex<f64>")
TYPES = ("i1", *INTEGERS, *FLOATS, *COMPLEX)
"""The element types proofs go over: all of StableHLO's but quantized ones, which `same` refuses."""

KINDS = ("sum", "product", "max", "min", "and", "or")
CLASSES = ("exact", "reassociates", "reals")
Value = Any
"""An expression of the solver; for a complex number the pair of its parts."""


def sort_of(element: str) -> str:
    """``truth``, ``integer``, ``float`` or ``complex``."""
    if element == "i1":
        return "truth"
    if element.startswith("complex"):
        return "complex"
    return "integer" if element in INTEGERS else "float"


def part_of(element: str) -> str:
    """The type of a complex type's parts.

    Example:
      >>> part_of("complex<f32>")
      'f32'
    """
    return element.removeprefix("complex<").removesuffix(">")


def bits_of(element: str) -> int:
    """Bits of an integer type."""
    return int(element.lstrip("ui"))


def reduces(kind: str, element: str) -> bool:
    """Whether StableHLO has the reduction for the type: no bitwise ones for floats."""
    return kind not in ("and", "or") or sort_of(element) in ("truth", "integer")


def _format(element: str) -> Any:
    name = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}.get(
        element, f"float{element[1]}_{element[2:].lower()}")
    return ml_dtypes.finfo(getattr(ml_dtypes, name, None) or np.dtype(name))


def embeds(source: str, target: str) -> bool:
    """Whether every number of one floating-point type exists in another, by the limits of the formats and not by the
    natives.

    Example:
      >>> embeds("bf16", "f32"), embeds("bf16", "f16"), embeds("f16", "bf16")
      (True, False, False)
    """
    if source == target:
        return True
    a, b = _format(source), _format(target)
    return bool(float(a.max) <= float(b.max) and a.nmant <= b.nmant
                and float(a.smallest_subnormal) >= float(b.smallest_subnormal))


@dataclass
class Arithmetic:
    """Operations on elements of every type, and what may be assumed of them.

    Attributes:
      strength: how much of real arithmetic floats have: one of ``CLASSES``.
      any_order: whether integers represent arbitrary ordered numbers: faster, and enough if nothing is added.
      premises: axioms of the sorts and functions that were used.
    """

    strength: str = "reals"
    any_order: bool = False
    premises: list[Any] = field(default_factory=list)
    _made: dict[str, Any] = field(default_factory=dict, repr=False)
    _fresh: Any = field(default_factory=itertools.count, repr=False)

    # ---- values

    def variable(self, name: str, element: str) -> Value:
        """A value of a type about which nothing is known."""
        z3, sort = solver(), sort_of(element)
        if sort == "complex":
            return self.variable(f"{name}.re", part_of(element)), self.variable(f"{name}.im", part_of(element))
        if sort == "truth":
            return z3.Bool(name)
        if sort == "integer" and not self.any_order:
            return z3.BitVec(name, bits_of(element))
        return z3.Const(name, self._floats(element))

    def number(self, element: str, number: int) -> Value:
        """A whole number in a type; integers wrap around."""
        z3, sort = solver(), sort_of(element)
        if sort == "complex":
            return self.number(part_of(element), number), self.number(part_of(element), 0)
        if sort == "truth":
            return z3.BoolVal(number != 0)
        if sort == "integer":
            return z3.BitVecVal(number, bits_of(element))
        if self.strength == "reals":
            return z3.RealVal(number)
        return z3.Const(f"{number}:{element}", self._floats(element))

    def equal(self, a: Value, b: Value) -> Any:
        """Whether two values are equal."""
        return solver().And(a[0] == b[0], a[1] == b[1]) if isinstance(a, tuple) else a == b

    def where(self, condition: Any, a: Value, b: Value) -> Value:
        """One of two values."""
        z3 = solver()
        if isinstance(a, tuple):
            return z3.If(condition, a[0], b[0]), z3.If(condition, a[1], b[1])
        return z3.If(condition, a, b)

    # ---- arithmetic

    def add(self, element: str, a: Value, b: Value) -> Value:
        """StableHLO ``add``: *or* for truth values, modulo 2^w for integers."""
        if isinstance(a, tuple):
            part = part_of(element)
            return self.add(part, a[0], b[0]), self.add(part, a[1], b[1])
        sort = sort_of(element)
        if sort == "truth":
            return solver().Or(a, b)
        return a + b if sort == "integer" or self.strength == "reals" else self._function("add", element)(a, b)

    def negate(self, element: str, a: Value) -> Value:
        """StableHLO ``negate``."""
        if isinstance(a, tuple):
            return tuple(self.negate(part_of(element), part) for part in a)
        opaque = sort_of(element) == "float" and self.strength != "reals"
        return self._negation(element)(a) if opaque else -a

    def subtract(self, element: str, a: Value, b: Value) -> Value:
        """StableHLO ``subtract``."""
        return self.add(element, a, self.negate(element, b))

    def multiply(self, element: str, a: Value, b: Value) -> Value:
        """StableHLO ``multiply``: *and* for truth values, modulo 2^w for integers."""
        if isinstance(a, tuple):
            return self._complex_product(element, a, b)
        sort = sort_of(element)
        if sort == "truth":
            return solver().And(a, b)
        return a * b if sort == "integer" or self.strength == "reals" else self._function("multiply", element)(a, b)

    def _complex_product(self, element: str, a: Value, b: Value) -> Value:
        if self.strength == "reals":
            return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]
        sort = self._floats(part_of(element))
        return tuple(solver().Function(f"multiply.{part}:{element}", *[sort] * 5)(*a, *b) for part in ("re", "im"))

    def divide(self, element: str, a: Value, b: Value) -> Value:
        """StableHLO ``divide``, where the divisor is not zero."""
        z3 = solver()
        if sort_of(element) == "integer":
            return z3.UDiv(a, b) if element.startswith("u") else a / b
        if self.strength != "reals":
            return self._opaque_quotient(element, a, b)
        inverse = z3.Real(f"inverse{next(self._fresh)}")
        size = b[0] * b[0] + b[1] * b[1] if isinstance(b, tuple) else b
        self.premises.append(inverse * size == 1)
        if not isinstance(b, tuple):
            return a * inverse
        turned = self.multiply(element, a, (b[0], -b[1]))
        return turned[0] * inverse, turned[1] * inverse

    def _opaque_quotient(self, element: str, a: Value, b: Value) -> Value:
        if isinstance(a, tuple):
            sort = self._floats(part_of(element))
            return tuple(solver().Function(f"divide.{part}:{element}", *[sort] * 5)(*a, *b) for part in ("re", "im"))
        sort = self._floats(element)
        return solver().Function(f"divide:{element}", sort, sort, sort)(a, b)

    def bitwise(self, kind: str, element: str, a: Value, b: Value) -> Value:
        """StableHLO ``and`` and ``or``."""
        z3 = solver()
        if sort_of(element) == "truth":
            return z3.And(a, b) if kind == "and" else z3.Or(a, b)
        return a & b if kind == "and" else a | b

    # ---- order

    def at_most(self, element: str, a: Value, b: Value) -> Any:
        """The order of ``maximum``: lexicographic for complex numbers, false below true."""
        z3, sort = solver(), sort_of(element)
        if sort == "complex":
            part = part_of(element)
            less = z3.And(self.at_most(part, a[0], b[0]), a[0] != b[0])
            return z3.Or(less, z3.And(a[0] == b[0], self.at_most(part, a[1], b[1])))
        if sort == "truth":
            return z3.Implies(a, b)
        if sort == "integer" and not self.any_order:
            return z3.ULE(a, b) if element.startswith("u") else a <= b
        return a <= b if sort == "float" and self.strength == "reals" else self._order(element)(a, b)

    def maximum(self, element: str, a: Value, b: Value) -> Value:
        """StableHLO ``maximum``: not-a-number when one operand is."""
        return self._with_nan(element, a, b, self.where(self.at_most(element, a, b), b, a))

    def minimum(self, element: str, a: Value, b: Value) -> Value:
        """StableHLO ``minimum``: not-a-number when one operand is."""
        return self._with_nan(element, a, b, self.where(self.at_most(element, a, b), a, b))

    def _with_nan(self, element: str, a: Value, b: Value, number: Value) -> Value:
        if sort_of(element) != "float" or self.strength == "reals":
            return number
        nan = self._nan(element)
        return solver().If(solver().Or(a == nan, b == nan), nan, number)

    def reduce(self, kind: str, element: str, a: Value, b: Value) -> Value:
        """Two elements, reduced."""
        function = {"sum": self.add, "product": self.multiply, "max": self.maximum, "min": self.minimum}.get(kind)
        return function(element, a, b) if function else self.bitwise(kind, element, a, b)

    def identity(self, kind: str, element: str) -> Value:
        """The value that a reduction leaves unchanged, with the axioms that say so if floats are opaque."""
        z3, sort = solver(), sort_of(element)
        if sort == "complex":
            part, rest = part_of(element), "sum" if kind == "product" else kind
            value = self.identity(kind, part), self.identity(rest, part)
            if kind == "product" and self.strength != "reals":  # (1 + 0i)² is 1 + 0i, bit for bit
                self._axiom(f"identity {element}", self.equal(self.multiply(element, value, value), value))
            return value
        if sort == "float" or (sort == "integer" and self.any_order):
            return self._opaque_identity(kind, element)
        if sort == "truth":
            return z3.BoolVal(kind in ("product", "min", "and"))
        bits = bits_of(element)
        low, high = (0, 2**bits - 1) if element.startswith("u") else (-(2**(bits - 1)), 2**(bits - 1) - 1)
        number = {"sum": 0, "or": 0, "product": 1, "and": -1, "max": low, "min": high}[kind]
        return z3.BitVecVal(number, bits)

    def _opaque_identity(self, kind: str, element: str) -> Value:
        z3 = solver()
        if self.strength == "reals" and kind in ("sum", "product"):
            return z3.RealVal(0 if kind == "sum" else 1)
        sort = self._floats(element)
        value, p = z3.Const(f"identity of {kind}:{element}", sort), z3.Const("p", sort)
        if kind in ("max", "min"):
            below = self.at_most(element, value, p) if kind == "max" else self.at_most(element, p, value)
            if sort != z3.RealSort():  # there is no least real number: the premise would be a contradiction
                self._axiom(f"identity {kind} {element}", z3.ForAll([p], below))
            if sort_of(element) == "float" and sort != z3.RealSort():
                self._axiom(f"number {kind} {element}", value != self._nan(element))
            return value
        whole = self.reduce(kind, element, value, p) == p
        held = z3.ForAll([p], whole) if self.strength == "reassociates" else (
            self.reduce(kind, element, value, value) == value)  # bit for bit: 0 + -0 is 0
        self._axiom(f"identity {kind} {element}", held)
        return value

    # ---- converts

    def convert(self, source: str, target: str, a: Value) -> Value:
        """StableHLO ``convert``."""
        z3, of, to = solver(), sort_of(source), sort_of(target)
        if source == target:
            return a
        if to == "complex":
            re, im = a if of == "complex" else (a, None)
            part = part_of(target)
            return (self.convert(part_of(source), part, re),
                    self.convert(part_of(source), part, im) if im is not None else self.number(part, 0))
        if of == "complex":
            return self.convert(part_of(source), target, a[0])
        if to == "truth":
            return z3.Not(self.equal(a, self.number(source, 0)))
        if to == "float":
            return self._to_float(source, target, a)
        if of == "integer":
            more = bits_of(target) - bits_of(source)
            return z3.Extract(bits_of(target) - 1, 0, a) if more <= 0 else (
                z3.ZeroExt(more, a) if source.startswith("u") else z3.SignExt(more, a))
        if of == "truth":
            return z3.If(a, z3.BitVecVal(1, bits_of(target)), z3.BitVecVal(0, bits_of(target)))
        function = z3.Function(f"convert:{source}:{target}", self._floats(source), z3.BitVecSort(bits_of(target)))
        if source not in _WITHOUT_ZERO:
            self._axiom(f"zero {source} {target}", function(self.number(source, 0)) == self.number(target, 0))
        return function(a)

    def _to_float(self, source: str, target: str, a: Value) -> Value:
        """Rounding: the identity where the target holds every number, else some function that keeps the order."""
        z3 = solver()
        if sort_of(source) == "float" and self.strength == "reals" and embeds(source, target):
            return a
        function = z3.Function(f"convert:{source}:{target}", a.sort(), self._floats(target))
        if not _WITHOUT_ZERO & {source, target}:
            self._axiom(f"zero {source} {target}", function(self.number(source, 0)) == self.number(target, 0))
        p, q = z3.Consts("p q", a.sort())
        ordered = z3.Implies(self.at_most(source, p, q), self.at_most(target, function(p), function(q)))
        if np.isfinite(_above(target)):  # what is too large becomes not-a-number, in no order
            return function(a)
        self._axiom(f"rounding {source} {target}",
                    z3.ForAll([p, q], ordered, patterns=[z3.MultiPattern(function(p), function(q))]))
        if self.strength != "reals":
            nan = self._nan(target)
            if sort_of(source) == "float":
                self._axiom(f"nan {source} {target}", function(self._nan(source)) == nan, z3.ForAll(
                    [p], z3.Implies(p != self._nan(source), function(p) != nan), patterns=[function(p)]))
            else:
                self._axiom(f"nan {source} {target}", z3.ForAll([p], function(p) != nan, patterns=[function(p)]))
        return function(a)

    # ---- floats of unknown format

    def _floats(self, element: str) -> Any:
        real = self.strength == "reals" and sort_of(element) == "float"
        return solver().RealSort() if real else solver().DeclareSort(element)

    def _axiom(self, name: str, *formulas: Any) -> None:
        if name not in self._made:
            self._made[name] = True
            self.premises += formulas

    def _order(self, element: str) -> Any:
        z3, sort = solver(), self._floats(element)
        le = z3.Function(f"at most:{element}", sort, sort, z3.BoolSort())
        a, b, c = z3.Consts("a b c", sort)
        self._axiom(f"order {element}", z3.ForAll([a, b], z3.Or(le(a, b), le(b, a))),
                    z3.ForAll([a, b], z3.Implies(z3.And(le(a, b), le(b, a)), a == b)),
                    z3.ForAll([a, b, c], z3.Implies(z3.And(le(a, b), le(b, c)), le(a, c))))
        return le

    def _nan(self, element: str) -> Any:
        return solver().Const(f"nan:{element}", self._floats(element))

    def _function(self, name: str, element: str) -> Any:
        z3, sort = solver(), self._floats(element)
        function = z3.Function(f"{name}:{element}", sort, sort, sort)
        if self.strength == "reassociates":
            a, b, c = z3.Consts("a b c", sort)
            self._axiom(f"{name} {element}", z3.ForAll([a, b], function(a, b) == function(b, a)),
                        z3.ForAll([a, b, c], function(function(a, b), c) == function(a, function(b, c))))
        return function

    def _negation(self, element: str) -> Any:
        z3, sort = solver(), self._floats(element)
        function = z3.Function(f"negate:{element}", sort, sort)
        if self.strength == "reassociates":
            a, b = z3.Consts("a b", sort)
            add = self._function("add", element)
            self._axiom(f"negate {element}", z3.ForAll([a, b], function(add(a, b)) == add(function(a), function(b))))
        return function


def _above(element: str) -> float:
    """What a number too large for a floating-point type becomes: infinity; 0 means not-a-number."""
    value = float(np.array(np.inf).astype(_format(element).dtype))
    return value if np.isinf(value) else 0.0
