"""Families of rules and ``sole`` ops: what they stand for, and what is said about wrong ones."""

from __future__ import annotations

import pytest

from hlorewrite.ops.reducers import OP_OF_KIND
from hlorewrite.rules.checks.checker import check
from hlorewrite.rules.library import load_text, read_source, written
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.expand import EXACT_KINDS, expanded
from hlorewrite.rules.syntax.parser import parse
from hlorewrite.rules.syntax.printer import expression, print_file

FAMILY = """import "natives.hlopat";

/// $op of two reductions
rule $op-of-two {
  match {
    sole %p = stablehlo.all_reduce(%a) {channel_handle = ?$c} computation reduces($op);
    root %s = $op(%p, %b);
  }
  where { $op == "sum"; }
  types { same(%a, %b, %s); }
  floats $op;
  rewrite {
    %t = $op(%b, %p) like %s;
    before %s {
      %u = stablehlo.all_reduce(%t) {channel_handle = $c} computation reduces($op) -> type(%s);
    }
    replace %s with %u;
  }
}
"""


def test_a_family_is_printed_as_it_is_written_and_stands_for_a_rule_of_each_kind() -> None:
    tree = parse(FAMILY)
    assert print_file(tree) == FAMILY
    rules = [item for item in expanded(tree).items if isinstance(item, ast.Rule)]
    for rule, (kind, op) in zip(rules, OP_OF_KIND.items(), strict=True):
        text = print_file(ast.File((rule,)))
        short = op.removeprefix("stablehlo.")
        assert "$op" not in text and rule.name == f"{short}-of-two" and rule.docs == (f"{short} of two reductions",)
        assert f"root %s = {op}(%p, %b);" in text and f"%t = {op}(%b, %p) like %s;" in text
        assert text.count(f"reduces({kind})") == 2 and f'"{kind}" == "sum";' in text
        assert f"floats {'exact' if kind in EXACT_KINDS else 'reassociates'};" in text
        assert "channel_handle = ?$c" in text and "channel_handle = $c" in text


def test_sole_stands_for_two_conditions_at_the_head_of_where() -> None:
    rule = load_text(FAMILY).rules[0].rule
    assert rule.where is not None
    said = [(expression(s.expression), s.sentence) for s in rule.where.statements if isinstance(s, ast.Condition)]
    assert said == [("one_use(%p)", "the all-reduce %p is read elsewhere too"),
                    ("same_block(%p, %s)", "the all-reduce %p runs in another region"), ('"sum" == "sum"', "")]
    pattern = rule.match.statements[0]
    assert isinstance(pattern, ast.OpPattern) and not pattern.sole
    assert rule.where.statements[0].span == pattern.span


def test_all_conditions_of_one_use_stand_before_those_of_the_block() -> None:
    rule = next(item for item in expanded(parse(
        "rule a { match { sole %p = stablehlo.negate(%a); sole %q = stablehlo.negate|stablehlo.abs(%b); "
        "root %s = stablehlo.add(%p, %q); } types any; floats exact; rewrite { replace %s with %a; } }")).items
        if isinstance(item, ast.Rule))
    assert rule.where is not None
    assert [expression(s.expression) for s in rule.where.statements if isinstance(s, ast.Condition)] == [
        "one_use(%p)", "one_use(%q)", "same_block(%p, %s)", "same_block(%q, %s)"]
    second = rule.where.statements[1]
    assert isinstance(second, ast.Condition) and second.sentence == "the op %q is read elsewhere too"


def test_a_shipped_family_is_found_under_each_of_its_names() -> None:
    items = written(read_source("collectives"))
    assert items["minimum-of-all-reduces"] is items["add-of-all-reduces"]
    assert items["minimum-of-all-reduces"].name == "$op-of-all-reduces"


@pytest.mark.parametrize(("text", "what"), [
    ("rule a { match { root %s = $op(%a, %b); } types any; floats exact; rewrite { replace %s with %a; } }",
     "`$op` is an op only in a family of rules"),
    ("rule a { match { root %s = stablehlo.negate(%a); } types any; floats exact; "
     "rewrite { before %s { %t = $op(%a, %a); } replace %s with %a; } }", "`$op` is an op only in a family of rules"),
    ("rule $op-a { match { root %s = $kind(%a, %b); } types any; floats exact; rewrite { replace %s with %a; } }",
     "`$kind` is an op only in a family of rules"),
    ("rule $op-a { match { root %s = stablehlo.negate(%a); } types any; floats exact; "
     "rewrite { replace %s with %a; } }", "no op of the family is `$op`"),
    ("rule a { match { root %s = stablehlo.negate(%a); } types any; floats $op; rewrite { replace %s with %a; } }",
     "`$op` is not a reduction of a family"),
    ("linear $op-a { match { root %s = stablehlo.negate(%a); } in %a; kinds sum; types any; floats exact; }",
     "a fact is about one op"),
    ("rule a { match { root %w, %v = stablehlo.while(%a, %b) body ^(%x, %y) { sole %n = stablehlo.negate(%x); "
     "yield(%n, %y); }; } types any; floats exact; rewrite { replace %w with %a; } }",
     "a `sole` op must be in the block of the root, but this one is in a region"),
    ("rule a { match { sole %x, %y = stablehlo.optimization_barrier(%a, %b); root %s = stablehlo.add(%x, %y); } "
     "types any; floats exact; rewrite { replace %s with %a; } }", "a `sole` op has one name"),
    ("rule a { match { sole %p = stablehlo.negate(%a); root %s = stablehlo.negate(%p); } types any; floats exact; "
     "rewrite { replace %s with %a; } }", "`sole` needs the natives `one_use` and `same_block`"),
])
def test_wrong_short_forms_are_named(text: str, what: str) -> None:
    problems = check(parse(text))
    assert what in [problem.what for problem in problems], problems
    assert all(problem.span.line == 1 and problem.hint for problem in problems)


def test_a_mistake_in_a_family_is_named_once() -> None:
    problems = check(parse(FAMILY.replace("stablehlo.all_reduce(%t)", "stablehlo.all_reduce(%wrong)")),
                     {item.name: item for item in parse(read_source("natives").text).items
                      if isinstance(item, ast.Native)})
    assert [problem.what for problem in problems] == ["the value `%wrong` is not bound"]
