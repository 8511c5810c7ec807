"""Predicates of rules about element types: which numbers a type represents, what a convert and a sum keep of them."""

import math

from hlorewrite.ir import element_type, ir, is_floating, largest_float
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.match_failure import Answer, MatchFailure
from hlorewrite.rules.register import native

# ---- kinds of numbers


@native
def same(context: object, *values: ir.Value) -> Answer:
    """Whether all values have one element type, of integers, real or complex numbers."""
    elements = {element_type(value) for value in values}
    if len(elements) > 1:
        return MatchFailure(f"the element types differ ({' and '.join(sorted(map(str, elements)))})")
    other = next((e for e in elements if not isinstance(e, (ir.IntegerType, ir.FloatType, ir.ComplexType))), None)
    return True if other is None else MatchFailure(f"its elements are {other}, and nothing is proved about them")


@native
def parts(context: object, whole: ir.Value, part: ir.Value) -> Answer:
    """Whether the first value's elements are complex numbers and the second's are their parts."""
    element = element_type(whole)
    if _is_complex(element) and ir.ComplexType(element).element_type == element_type(part):
        return True
    return MatchFailure(f"{element} is not made of {element_type(part)}")


@native
def real_floating(context: object, value: ir.Value) -> Answer:
    """Whether the elements are floating-point numbers and not complex."""
    element = element_type(value)
    return True if is_floating(element) and not _is_complex(element) else MatchFailure(f"its elements are {element}")


@native
def has_infinity(context: object, value: ir.Value) -> Answer:
    """Whether the elements are floating-point numbers, not complex, of a type with infinities."""
    element = element_type(value)
    if is_floating(element) and not _is_complex(element) and largest_float(element) == math.inf:
        return True
    if not is_floating(element):
        return MatchFailure(f"its elements are {element}: integers could wrap around")
    return MatchFailure(f"{element} has no infinity: a number added to its least or greatest one gives another number")


@native
def floating(context: object, value: ir.Value) -> Answer:
    """Whether the elements are floating-point or complex numbers."""
    element = element_type(value)
    return True if is_floating(element) else MatchFailure(f"its elements are {element}")


@native
def arithmetic(context: object, value: ir.Value) -> Answer:
    """Whether the elements are numbers that add up, and not truth values (whose sum is an `or`)."""
    element = element_type(value)
    return MatchFailure("its elements are truth values") if str(element) == "i1" else True


@native
def reassociates(context: RuleContext, op: ir.Operation) -> Answer:
    """Whether the order of a sum may change: always for integers, for floats when the user allows it."""
    if context.allow_reassociation or not is_floating(element_type(op.results[0])):
        return True
    return MatchFailure("the order of a floating-point sum would change, which is not allowed", op)


@native
def real_or_integer(context: object, value: ir.Value) -> Answer:
    """Whether the elements are real numbers or integers."""
    element = element_type(value)
    if str(element) == "i1" or _is_complex(element):
        return MatchFailure(f"its elements are {element}")
    return True


# ---- what sums and converts keep


# Bits of exponent and of mantissa; a type is wider when it has as many of both.
_FLOATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "f32": (8, 23), "f64": (11, 52)}


def _bits(element: ir.Type) -> tuple[int, int] | None:
    name = str(element).removeprefix("complex<").removesuffix(">")
    if name in _FLOATS:
        return _FLOATS[name]
    digits = name.partition("E")[2].partition("M")
    if name.startswith("f8E") and digits[0].isdigit() and digits[2][:1].isdigit():
        return int(digits[0]), int(digits[2][0])
    return None


def _is_complex(element: ir.Type) -> bool:
    return str(element).startswith("complex")


def _holds_all(wide: ir.Type, narrow: ir.Type) -> bool:
    """Whether every number of one floating type is a number of the other."""
    if wide == narrow:
        return True
    if str(wide).startswith("f8E"):  # 8-bit formats of equal bits differ in range and in what overflow becomes
        return False
    a, b = _bits(wide), _bits(narrow)
    loses_part = _is_complex(narrow) and not _is_complex(wide)
    return a is not None and b is not None and not loses_part and a[0] >= b[0] and a[1] >= b[1]


@native
def sum_keeps_value(context: object, result: ir.Value, operand: ir.Value) -> Answer:
    """Whether a sum taken in the result's element type is the sum taken in the operand's, in equal or better precision.

    Floats: widening is exact, and a sum in the wider type rounds less. Integers: a sum of k bits is a number modulo
    2^k, so dropping high bits commutes with it. Widening an integer does not: the narrow sum wraps around before it is
    widened, the wide one does not wrap. All else would add up other numbers than before.
    """
    target, source = element_type(result), element_type(operand)
    if is_floating(source) and is_floating(target):
        return True if _holds_all(target, source) else MatchFailure(
            f"the sum would be taken in {target}, which represents less than {source}")
    if 1 < _integer_bits(target) <= _integer_bits(source) or target == source:
        return True
    return MatchFailure(f"a sum of {source} is not the sum of the numbers as {target}")


def _integer_bits(element: ir.Type) -> int:
    """Bits of an integer type; 0 for others."""
    digits = str(element).removeprefix("u").removeprefix("s").removeprefix("i")
    return int(digits) if digits.isdigit() else 0


@native
def monotone_convert(context: object, result: ir.Value, operand: ir.Value) -> Answer:
    """Whether a convert keeps the order of numbers, so that the maximum may be taken after it.

    Rounding keeps it, and so does an integer type that represents all numbers of the other one.
    """
    source, target = element_type(operand), element_type(result)
    if _is_complex(source) or _is_complex(target):
        return MatchFailure("complex numbers have no order that rounding keeps")
    if source == target:
        return True
    if is_floating(target):
        if largest_float(target) == math.inf:
            return True
        return MatchFailure(f"what is too large for {target} becomes not-a-number")
    if _holds_integers(target, source):
        return True
    return MatchFailure(f"from {source} to {target}, numbers can wrap around")


def _holds_integers(wide: ir.Type, narrow: ir.Type) -> bool:
    """Whether every number of one integer type is a number of the other; ``true`` is 1, which no ``i1`` holds."""
    bits, needed = _integer_bits(wide), _integer_bits(narrow)
    signed, was_signed = not str(wide).startswith("ui"), not str(narrow).startswith("ui") and needed > 1
    if bits <= 1 or needed == 0 or (was_signed and not signed):
        return False
    return bits >= needed + (signed and not was_signed)


@native
def exact_convert(context: object, result: ir.Value, operand: ir.Value) -> Answer:
    """Whether a convert loses nothing, so that its input stands for its result."""
    source, target = element_type(operand), element_type(result)
    if _holds_all(target, source) or _holds_integers(target, source):
        return True
    return MatchFailure(f"{target} cannot represent every {source}")


@native
def keeps_zero(context: object, result: ir.Value, operand: ir.Value) -> Answer:
    """Whether a convert gives zero for zero: always, except for floats that have no zero."""
    for element in (element_type(result), element_type(operand)):
        if str(element).startswith("f8E8M0"):
            return MatchFailure(f"{element} has no zero")
    return True


# ---- constants


@native
def splat(context: object, like: ir.Value, number: float) -> ir.Attribute | MatchFailure:
    """A constant of a value's type filled with a number; an integer is taken modulo two to the number of its bits."""
    type_ = ir.RankedTensorType(like.type)
    element = type_.element_type
    if str(element) == "i1" or _is_complex(element) or (not is_floating(element) and not _integer_bits(element)):
        return MatchFailure(f"a constant of {element} is not made from a number")
    with like.type.context, ir.Location.unknown(like.type.context):
        if not is_floating(element):
            return ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(element, _wrapped(int(number), element)))
        held = ir.FloatAttr.get(element, float(number))
        if held.value != number:
            return _not_held(number, element)
        return ir.DenseElementsAttr.get_splat(type_, held)


@native
def holds_number(context: object, value: ir.Value, number: float) -> Answer:
    """Whether a value's elements represent a number exactly; integers modulo two to the number of their bits.

    Where a sum or product of integers wraps around, it makes no difference when that is done.
    """
    element = element_type(value)
    if not is_floating(element) or _is_complex(element):
        return True
    with element.context, ir.Location.unknown(element.context):
        held = ir.FloatAttr.get(element, float(number)).value  # infinite or not a number where it is too large
    return True if held == number else _not_held(number, element)


def _not_held(number: float, element: ir.Type) -> MatchFailure:
    return MatchFailure(f"{element} cannot represent the number {number:g}")


def _wrapped(number: int, element: ir.Type) -> int:
    bits = _integer_bits(element)
    rest = number % 2**bits
    return rest if str(element).startswith("u") or rest < 2**(bits - 1) else rest - 2**bits
