"""Relations of element types, the declarations that every rule makes, and meanings: parsed, printed, checked, asked."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hlorewrite.errors import RuleSyntaxError
from hlorewrite.ir.binding import ir
from hlorewrite.ir.context import new_context
from hlorewrite.patterns import element_types
from hlorewrite.rules.checks.checker import check
from hlorewrite.rules.facts import type_checks
from hlorewrite.rules.library import checked, read_source
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.parser import parse
from hlorewrite.rules.syntax.printer import print_file

DECLARED = """native relation same(...values: Value);
native relation narrow(value: Value);
native predicate one_use(op: Op);
"""


@dataclass(frozen=True)
class TypeOnly:
    type: ir.Type


@pytest.mark.parametrize("name, types, holds", [
    ("same", "f32 f32 f32", True), ("same", "f32 f16", False), ("same", "i1", True),
    ("parts", "complex<f32> f32", True), ("parts", "complex<f32> f64", False), ("parts", "f32 f32", False),
    ("real_floating", "bf16", True), ("real_floating", "complex<f32>", False), ("real_floating", "i8", False),
    ("keeps_zero", "f32 i8", True), ("keeps_zero", "f8E8M0FNU f32", False), ("keeps_zero", "f32 f8E8M0FNU", False),
    ("monotone_convert", "f32 i64", True), ("monotone_convert", "f8E4M3FN f32", False),
    ("monotone_convert", "i32 i8", True), ("monotone_convert", "i8 i32", False), ("monotone_convert", "i32 f32", False),
    ("monotone_convert", "i16 ui8", True), ("monotone_convert", "i8 ui8", False),
    ("monotone_convert", "ui16 i8", False), ("monotone_convert", "ui16 ui8", True),
    ("monotone_convert", "i8 i1", True), ("monotone_convert", "ui2 i1", True), ("monotone_convert", "i1 i8", False),
    ("monotone_convert", "complex<f64> f32", False),
    ("exact_convert", "f32 bf16", True), ("exact_convert", "i32 i8", True), ("exact_convert", "f16 bf16", False),
])
def test_relations(name: str, types: str, holds: bool) -> None:
    """The result's type stands first."""
    with new_context(), ir.Location.unknown():
        values = [TypeOnly(ir.RankedTensorType.get([2], ir.Type.parse(e))) for e in types.split()]
        assert (getattr(element_types, name)(None, *values) is True) == holds


def test_elements_that_are_no_numbers_have_no_relation() -> None:
    with new_context(), ir.Location.unknown():
        value = TypeOnly(ir.Type.parse("tensor<2xindex>"))
        assert element_types.same(None, value, value) is not True  # pyright: ignore[reportArgumentType]


def rule(types: str = "types any;", floats: str = "floats exact;") -> str:
    return (f"{DECLARED}rule a {{ match {{ root %r = stablehlo.negate(%x); }} {types} {floats} "
            "rewrite { replace %r with %x; } }")


def fact(types: str = "types any;", floats: str = "floats exact;") -> str:
    return (f"{DECLARED}linear a {{ match {{ root %r = stablehlo.negate(%x); }} in %x; kinds sum; {types} {floats} }}")


@pytest.mark.parametrize("make", [rule, fact])
@pytest.mark.parametrize("types, floats, what", [
    ("", "floats exact;", "`a` does not state its element types"),
    ("types any;", "", "`a` does not state its effect on floating-point numbers"),
    ("types { one_use(%r); }", "floats exact;", "`one_use(%r)` says nothing about element types"),
    ("types { same(%x, %r) or one_use(%r); }", "floats exact;", "`one_use(%r)` says nothing about element types"),
    ("types { let a = same(%x); }", "floats exact;", "`types` contains only relations of element types"),
    ("types { same(%x, %y); }", "floats exact;", "the value `%y` is not bound"),
    ("types any;", "floats exakt;", "there is no class of floats `exakt`"),
    ("types any;", "floats exact, widens;", "an exact rule does nothing else to floats"),
])
def test_wrong_declarations(make: object, types: str, floats: str, what: str) -> None:
    text = rule(types, floats) if make is rule else fact(types, floats)
    problems = check(parse(text))
    assert [problem.what for problem in problems] == [what]
    assert problems[0].span.line == 4 and problems[0].hint


def test_the_hint_is_the_line_to_add() -> None:
    [problem] = check(parse(rule(types="")))
    assert "add `types { same(%x, %r); }`" in problem.hint


@pytest.mark.parametrize("text", [
    rule(), fact(), rule("types { same(%x, %r) and not narrow(%x); narrow(%r); }", "floats reassociates, widens;"),
    DECLARED + "meaning stablehlo.sort(%a, ...%i) { moves %a by ...%i; }\n",
    DECLARED + "meaning stablehlo.sort(%a) { each max(%a, 2) * -%a + convert(%a) / 3; }  // after\n",
    DECLARED + "// before\nmeaning stablehlo.sort(%a, %b) { folds %a, %b; }\n",
])
def test_printing_keeps_everything(text: str) -> None:
    tree = parse(text)
    printed = print_file(tree)
    assert parse(printed) == tree and print_file(parse(printed)) == printed


def test_comments_stay_beside_declarations() -> None:
    text = rule("// which types\n  types any;  // all\n", "// how\n  floats exact;  // exactly\n")
    printed = print_file(parse(text))
    assert all(line in printed for line in ("  // which types\n  types any;  // all\n",
                                            "  // how\n  floats exact;  // exactly\n"))


def test_a_word_that_is_not_any() -> None:
    with pytest.raises(RuleSyntaxError, match=r"a:4:\d+: `types all` means nothing; write `types any;`"):
        parse(rule("types all;"), "a")


def test_relations_that_always_hold_are_not_asked() -> None:
    """Facts about `add` cost nothing; what the verifier does not guarantee is asked."""
    facts = {i.name: i for i in checked(read_source("linearity"))[0].items if isinstance(i, ast.Linear)}

    def asked(name: str) -> int:
        pattern = facts[name].match.statements[0]
        assert isinstance(pattern, ast.OpPattern)
        return len(type_checks(pattern, facts[name].types))
    assert [asked(name) for name in ("add", "select", "gather", "reduce-sum", "complex", "concatenate")] == [0] * 6
    assert [asked(name) for name in ("convert", "divide-by-uniform", "dot-general-left")] == [1] * 3


def test_a_relation_between_other_operands_is_asked() -> None:
    """A condition and a value of `select` need not have one type."""
    text = DECLARED + ("linear a { match { root %r = stablehlo.select(%c, %a, %b); } in %a, %b; kinds any; "
                       "types { same(%c, %a); same(%a, %b, %r); } floats exact; }")
    item = parse(text).items[-1]
    assert isinstance(item, ast.Linear) and isinstance(pattern := item.match.statements[0], ast.OpPattern)
    assert len(type_checks(pattern, item.types)) == 1
