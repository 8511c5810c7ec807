"""Parser, printer and messages of the rule language."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlorewrite.errors import RuleSyntaxError
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.diagnose import MISTAKES, SPELLINGS
from hlorewrite.rules.syntax.parser import grammar_text, parse
from hlorewrite.rules.syntax.printer import expression, print_file

EVERYTHING = '''// first comment

// a banner, with a blank line after it

import "natives.hlopat";
native predicate one_use(op: Op);
/// Every operand, joined.
native analysis join(first: Value, ...others: Value) -> Values; // after a native

/// k * AR(a) = AR(k * a)
///
/// second paragraph
linear multiply commutes {
  match { root %r = stablehlo.multiply(%a, %k); }
  // before in
  in %a; // after in
  kinds sum, and;
  legal { uniform(%k) : "the factor differs"; }
  // end of linear
}
linear concat { match { root %r = stablehlo.concatenate(...%parts); } in ...%parts; kinds any; }
rule everything benefit(2) recursive(3) commutes tags(a, b) {
  match {
    // inside match
    %ra = stablehlo.all_reduce(%a) {replica_groups = $g, channel_handle = ?$c, n = -3, s = "x\\"y", b = true,
       dims = [0, -1], m = `#stablehlo.foo<a = 1>`} computation reduces($k) -> $t; // after ra
    %x, %y = stablehlo.optimization_barrier(%ra, %w#1);
    root %w = stablehlo.while|stablehlo.case(..., [@i] = %init, [2] = %other)
      cond ^(...%ca) { yield(%_); }
      body ^(..., [@i] = %acc) {
        %next = stablehlo.add(%acc, %ra); // in a body
        // before the yield
        yield(..., [@i] = %next);
      } -> ($t1, $t2);
    // end of match
  }
  where { one_use(%ra); not same(%a, $g) and (a or b) : "foo";
          let g, h = compose(%a, 2 - (1 - 3), -1, ...%ca, [1, @i]); }
  legal { }
  cost { a < b + 2 * (c + 1.5) : "a very long sentence that does not fit on the line with its check and wraps"; }
  rewrite {
    %t = stablehlo.add(%a, ...%ca, g) {a = $g, b = [1, 2], m = `i32`} computation reduces(sum) -> type(%a) like %ra;
    %u, %v = stablehlo.optimization_barrier(%a, %b) -> (type(%a), type(%b));
    before %w { replace %w#@i with %t; /* */ }
    after %w { let z = f(%a); set %w {x = 1}; set %w[@i] = %z; }
    erase %ra, %w;
    // end of rewrite
  } // after rewrite
}
// the last comment
'''.replace(" /* */", "")


def test_every_terminal_has_a_name_and_messages_call_it_something_else() -> None:
    assert "__ANON" not in grammar_text()
    from lark import Lark
    names = {t.name for t in Lark(grammar_text(), parser="lalr", start="file").terminals}
    assert not [n for n in names if n.startswith("__")]
    keywords = {n for n in names if n.lower() in grammar_text().split('"')}
    assert names - keywords - {"WHITESPACE", "COMMENT"} <= SPELLINGS.keys()


def test_printing_loses_nothing_and_is_stable() -> None:
    tree = parse(EVERYTHING)
    text = print_file(tree)
    assert parse(text) == tree
    assert print_file(parse(text)) == text


def test_every_comment_survives_once() -> None:
    text = print_file(parse(EVERYTHING))
    for line in EVERYTHING.splitlines():
        if "//" in line and "///" not in line:
            comment = line[line.index("//"):]
            assert text.count(comment) == 1, comment


def test_positions_are_kept_and_do_not_count_for_equality() -> None:
    rule = parse("\n\n  rule a { match { root %r = stablehlo.negate(%x); } rewrite { replace %r with %x; } }").items[0]
    assert isinstance(rule, ast.Rule)
    assert (rule.name_span.line, rule.name_span.column) == (3, 8)
    assert (rule.match.statements[0].span.line, rule.match.statements[0].span.column) == (3, 20)
    assert replace(rule, span=ast.Span(9, 9, 9, 9)) == rule


@pytest.mark.parametrize(("label", "text"), [(label, text) for label, texts in MISTAKES.items() for text in texts])
def test_common_mistakes_have_a_label(label: tuple[str, str], text: str) -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse(text, "a.hlopat")
    assert caught.value.what.startswith(label[0])
    assert caught.value.hint == label[1]


def test_a_message_shows_line_column_source_and_caret() -> None:
    text = "/// doc\nrule fuse {\n  match { root %r = stablehlo.negate(x); }\n}"
    with pytest.raises(RuleSyntaxError) as caught:
        parse(text, "a.hlopat")
    assert str(caught.value) == (
        "a.hlopat:3:38: operands are values, written with `%`: found `x`, expected `)`, `...`, `[` or a value such as "
        "`%x`; write `%x`, `...%rest` or `...`\n"
        "      match { root %r = stablehlo.negate(x); }\n"
        "                                         ^")


def test_the_same_mistake_is_found_behind_other_items() -> None:
    good = "rule a { match { root %r = stablehlo.negate(%x); } rewrite { replace %r with %x; } }\n"
    with pytest.raises(RuleSyntaxError, match="a statement ends with `;`") as caught:
        parse(good * 3 + good.replace("with %x;", "with %x"), "a.hlopat")
    assert caught.value.location == "a.hlopat:4:81"


def test_a_wrong_escape_is_told_with_its_place() -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse('import "a\\xzz";', "a.hlopat")
    assert caught.value.location == "a.hlopat:1:8"


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(EVERYTHING)))
def test_a_file_cut_anywhere_parses_or_gives_one_sentence(cut: int) -> None:
    try:
        parse(EVERYTHING[:cut], "a.hlopat")
    except RuleSyntaxError as error:
        assert error.location is not None and error.location.startswith("a.hlopat:")
        assert "__" not in str(error).split("\n")[0]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=40), st.integers(0, len(EVERYTHING)))
def test_garbage_never_escapes_as_another_error(garbage: str, at: int) -> None:
    with contextlib.suppress(RuleSyntaxError):
        parse(EVERYTHING[:at] + garbage + EVERYTHING[at:], "a.hlopat")


_LEAVES = st.one_of(
    st.builds(ast.Name, st.sampled_from(["a", "b_c"])), st.builds(ast.Literal, st.integers(0, 99)),
    st.builds(ast.ValueRef, st.sampled_from(["x", "w"]), st.sampled_from([None, 0, 3, "i"])),
    st.builds(ast.AttributeVariable, st.just("g")), st.builds(ast.Position, st.just("i")),
    st.builds(ast.Literal, st.text(st.characters(codec="ascii"), max_size=5)), st.builds(ast.Literal, st.booleans()))


def _grown(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.one_of(
        st.builds(ast.Binary, st.sampled_from(["or", "and", "==", "<", "+", "-", "*", "/"]), inner, inner),
        st.builds(ast.Unary, st.sampled_from(["not", "-"]), inner),
        st.builds(ast.Call, st.just("f"), st.lists(inner, max_size=2).map(tuple)),
        st.builds(ast.ListOf, st.lists(inner, max_size=2).map(tuple)))


@settings(max_examples=300, deadline=None)
@given(st.recursive(_LEAVES, _grown, max_leaves=8))
def test_expressions_print_with_the_brackets_they_need(node: ast.Expression) -> None:
    text = (f"rule a {{ match {{ root %r = stablehlo.negate(%x); }} where {{ {expression(node)}; }} "
            "rewrite { replace %r with %x; } }")
    rule = parse(text).items[0]
    assert isinstance(rule, ast.Rule) and rule.where is not None
    check = rule.where.statements[0]
    assert isinstance(check, ast.Condition) and check.expression == node
