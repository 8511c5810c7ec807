"""Element types of random programs: constants, operators and reductions of each, and which may become which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FLOATS = ("f64", "f32", "bf16", "f16", "f8E4M3FN")
SIGNED = ("i64", "i32", "i16", "i8")
UNSIGNED = ("ui32", "ui16", "ui8")
COMPLEX = ("complex<f32>",)
INTEGERS = (*SIGNED, *UNSIGNED)

ELEMENTS = (("f32",), ("f32",), ("f32", "i32"), ("i32", "ui8"), ("f32", "i32", "i1"), ("i32", "i1"), ("f32", "bf16"),
            ("i8", "i32"), ("i16", "i8"), ("ui8", "ui16", "i1"), ("i64", "i32"), ("ui32", "i32"), ("f32", "f16"),
            ("f64", "f32"), ("f32", "f8E4M3FN"), ("complex<f32>",), ("f32", "complex<f32>"), ("bf16", "i8"))
"""What a program computes with; most often the first."""

WIDER = {"i8": ("i16", "i32"), "i16": ("i32", "i64"), "i32": ("i64",), "ui8": ("ui16", "ui32"), "ui16": ("ui32",),
         "bf16": ("f32",), "f16": ("f32",), "f32": ("f64",), "f8E4M3FN": ("bf16", "f32")}
"""In which types sums and products of a type may be made."""


def _each(types: Sequence[str], *names: str) -> dict[str, list[str]]:
    return {element: list(names) for element in types}


CONSTANTS: Mapping[str, list[str]] = {
    **_each(FLOATS, "0.0", "0.0", "1.0", "0.5", "-2.0", "0.25"), **_each(SIGNED, "0", "0", "1", "2", "3", "-1"),
    **_each(UNSIGNED, "0", "0", "1", "2", "3"), **_each(COMPLEX, "(0.0, 0.0)", "(1.0, 0.0)", "(0.5, -2.0)"),
    "ui8": ["0", "0", "1", "2", "3", "255"], "i8": ["0", "0", "1", "2", "-1", "127", "-128"], "i1": ["true", "false"]}
BINARY: Mapping[str, list[str]] = {
    **_each(FLOATS, "add", "add", "add", "subtract", "multiply", "maximum", "minimum", "divide"),
    **_each(SIGNED, "add", "add", "subtract", "multiply", "maximum", "minimum", "and", "or", "divide"),
    **_each(UNSIGNED, "add", "add", "subtract", "multiply", "maximum", "minimum", "and", "or", "divide"),
    **_each(COMPLEX, "add", "add", "subtract", "multiply"), "i1": ["and", "or", "and", "or", "xor"]}
STRAIGHT_BINARY: Mapping[str, list[str]] = {
    **_each(FLOATS, "add", "add", "add", "subtract", "multiply", "divide"),
    **_each((*INTEGERS, *COMPLEX), "add", "add", "subtract", "multiply"), "i1": ["and", "or"]}
DIVISORS: Mapping[str, list[str]] = {**_each(FLOATS, "2.0", "4.0", "-3.0"), **_each(INTEGERS, "2", "3")}
UNARY: Mapping[str, list[str]] = {
    **_each(FLOATS, "negate", "negate", "abs"), "f32": ["negate", "negate", "tanh", "abs"],
    **_each(SIGNED, "negate", "abs", "not"), **_each(UNSIGNED, "not"), **_each(COMPLEX, "negate"), "i1": ["not"]}
COMBINERS: Mapping[str, list[str]] = {
    **_each(FLOATS, "add", "add", "add", "maximum", "minimum", "multiply"),
    **_each(SIGNED, "add", "add", "add", "maximum", "minimum", "and", "or", "multiply"),
    **_each(UNSIGNED, "add", "add", "maximum", "minimum", "and", "or"), **_each(COMPLEX, "add"), "i1": ["and", "or"]}
"""Reductions of each element type, the frequent ones more than once."""


def convertible(source: str, target: str) -> bool:
    """Whether a program converts one type to another.

    Numbers with fractions never become integers, since rounding would decide; nothing becomes or stops being complex.

    Example:
      >>> convertible("i32", "f32"), convertible("f32", "i32"), convertible("f32", "bf16")
      (True, False, True)
    """
    if "complex" in source or "complex" in target:
        return source == target
    return source not in FLOATS or target in FLOATS


def zero(element: str) -> str:
    """The literal of zero.

    Example:
      >>> zero("i8"), zero("complex<f32>")
      ('0', '(0.0, 0.0)')
    """
    return CONSTANTS[element][0] if element != "i1" else "false"
