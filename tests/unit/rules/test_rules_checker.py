"""The checker of rule files."""

from __future__ import annotations

import pytest

from hlorewrite.errors import RuleCheckError
from hlorewrite.rules.checks.checker import check, raise_first
from hlorewrite.rules.dialects import DIALECTS, op_names, signature
from hlorewrite.rules.syntax.parser import parse

NATIVES = '''native predicate one_use(op: Op);
native predicate uniform(value: Value);
native predicate all_zero(...values: Value);
native analysis bytes(value: Value) -> Int;
native analysis type(value: Value) -> Type;
native analysis compose(first: Attr, second: Attr) -> Groups;
'''
NEGATE = "root %r = stablehlo.negate(%x);"


def rule(match: str = NEGATE, where: str = "", rewrite: str = "replace %r with %x;", head: str = "a") -> str:
    return f"{NATIVES}rule {head} {{ match {{ {match} }} where {{ {where} }} " \
           f"types any; floats exact; rewrite {{ {rewrite} }} }}"


def linear(match: str, operands: str, kinds: str = "sum") -> str:
    return f"{NATIVES}linear a {{ match {{ {match} }} in {operands}; kinds {kinds}; types any; floats exact; }}"


ADD_PSUM = ("%p = stablehlo.all_reduce(%x) {replica_groups = $g} computation reduces($k); "
            "root %r = stablehlo.add(%p, %y);")
WHILE = ("root %w = stablehlo.while(..., [@i] = %init) cond ^(...%ca) { yield(%_); } "
         "body ^(..., [@i] = %acc) { %n = stablehlo.add(%acc, %g); yield(..., [@i] = %n); };")

GOOD = [
    rule(), rule(ADD_PSUM, "one_use(%p); bytes(%x) < 3 * bytes(%y) + 1; let c = compose($g, $g); not uniform(%y)"
                           " and one_use(%r);"),
    rule(WHILE, "let b = bytes(%w#@i); @i >= 1;", "set %w[@i] = %g; replace %w#@i with %init;"),
    rule("root %r = stablehlo.add|stablehlo.subtract(%x, %y);"),
    rule("%q = stablehlo.negate(%x); root %r = stablehlo.negate(%x);", rewrite="replace %r with %q;"),
    rule("root %r = stablehlo.concatenate(...%xs) {dimension = 0, sdy.sharding = ?$s};", "all_zero(...%xs);",
         "%t = stablehlo.concatenate(...%xs) like %r; replace %r with %t;"),
    rule("root %a, %b = stablehlo.optimization_barrier(%x, %y);", rewrite="replace %a with %x; replace %b with %y;"),
    linear("root %r = stablehlo.add(%x, %y);", "%x, %y"),
    linear("root %r = stablehlo.concatenate(...%p);", "...%p", "any"),
]


@pytest.mark.parametrize("text", GOOD)
def test_sound_rules_have_no_problem(text: str) -> None:
    assert check(parse(text)) == []


BAD = [
    (rule("root %r = stablehlo.negat(%x);"), "there is no op `stablehlo.negat`", 'did you mean "stablehlo.negate"?'),
    (rule("root %r = stable.negate(%x);"), "there is no dialect `stable` for rules", 'did you mean "stablehlo"?'),
    (rule("root %r = stablehlo.negate(%x, %y);"), "`stablehlo.negate` has 1 operand (operand), 2 given", ""),
    (rule("root %r = stablehlo.dynamic_slice();"), "`stablehlo.dynamic_slice` has at least 1", ""),
    (rule("root %r = stablehlo.negate(%x) {dim = $d};"), "`stablehlo.negate` has no attribute `dim`", ""),
    (rule(ADD_PSUM.replace("replica_groups", "replica_group")), "has no attribute `replica_group`",
     'did you mean "replica_groups"?'),
    (rule(ADD_PSUM.replace("computation", "body")), "`stablehlo.all_reduce` has no region `body`", ""),
    (rule(ADD_PSUM.replace("$k", "summ")), "`summ` is not a kind of reduction", 'did you mean "sum"?'),
    (rule(ADD_PSUM.replace("$k", "$g")), "`$g` is a Attr and is used as a Kind", ""),
    (rule("root %r = stablehlo.case(%x) branches ^() { };"), "has a varying number of regions", ""),
    (rule("%r = stablehlo.negate(%x);"), "a match block has one `root` op, but this one has 0", ""),
    (rule("root %q = stablehlo.negate(%x); root %r = stablehlo.negate(%q);"), "this one has 2", ""),
    (rule("%q = stablehlo.negate(%z); root %r = stablehlo.negate(%x);"), "`%q` is not connected to the root op", ""),
    (rule("root %r = stablehlo.concatenate(...%a, ...%b);"), "a list contains at most one `...`", ""),
    (rule("root %r = stablehlo.concatenate(%a, [@i] = %b);"), "`[@i] = %x` follows `...` alone", ""),
    (rule("root %r = stablehlo.negate(%x#1);"), "`%x` is not an op of this match block", ""),
    (rule("root %r = stablehlo.add(%r, %x);\n%r = stablehlo.negate(%x);"), "two ops are named `%r`", ""),
    (rule(where="one_use(%q);"), "the value `%q` is not bound", "known:"),
    (rule(where="one_use(%_);"), "`%_` matches anything and cannot be read", ""),
    (rule(where="one_us(%r);"), "there is no predicate or analysis `one_us`", 'did you mean "one_use"?'),
    (rule(where="one_use(%x);"), "`one_use` expects op of type Op, but this is of type Value", ""),
    (rule(where="one_use();"), "`one_use(op)` is given 0 arguments", ""),
    (rule(where="one_use(%r, %r);"), "`one_use(op)` is given 2 arguments", ""),
    (rule(where="bytes(%x);"), "a check is true or false, but this is of type Int", ""),
    (rule(where="one_use(%r) + 1 == 2;"), "`+` needs numbers, but this is of type Bool", ""),
    (rule(where="not bytes(%x);"), "`not` needs truth values, but this is of type Int", ""),
    (rule(where="let r = bytes(%x); let r = 1;"), "`r` is bound already", ""),
    (rule(where="n < 1;"), "the name `n` is not bound", ""),
    (rule(where="$q == $q;"), "the attribute `$q` is not bound", ""),
    (rule(where="@i == 0;"), "the position `@i` is not bound", ""),
    (rule(rewrite="replace %r with %y;"), "the value `%y` is not bound", ""),
    (rule(rewrite="erase %x;"), "an op is needed, `%x` is of type Value", ""),
    (rule(rewrite="replace %r with %x; erase %r;"), "`%r` is gone already", ""),
    (rule(rewrite="%t = stablehlo.foo(%x); replace %r with %t;"), "there is no op `stablehlo.foo`", ""),
    (rule(rewrite="%x = stablehlo.negate(%x); replace %r with %x;"), "`%x` is bound already", ""),
    (rule(rewrite="%t = stablehlo.negate(%x) -> bytes(%x); replace %r with %t;"), "`->` needs a type", ""),
    (rule(rewrite="%t = stablehlo.all_reduce(%x) computation reduces(sum); replace %r with %t;"),
     "the result type of `stablehlo.all_reduce` is not inferred", ""),
    (rule(rewrite="set %r {axis = 1};"), "`stablehlo.negate` has no attribute `axis`", ""),
    (linear("root %r = stablehlo.add(%x, %y);", "%z"), "`%z` is not an operand of the op", ""),
    (linear("root %r = stablehlo.add(%x, %y);", "%x", "summ"), "`summ` is not a kind of reduction", ""),
    (linear("%q = stablehlo.negate(%x); root %r = stablehlo.add(%q, %y);", "%q"), "a linear fact is about one op", ""),
    (rule() + rule().replace(NATIVES, ""), "there are two rules named `a`", ""),
    ('native predicate p(a: Op) -> Int;', "a predicate returns True or a message", ""),
    ('native analysis p(a: Op);', "an analysis has a result type", ""),
    ('native predicate p(a: op);', "`op` is not a type", 'did you mean "Op"?'),
    ('native predicate p(...a: Op, b: Op);', "only the last parameter can be variadic", ""),
    ('native predicate p(a: Op);native predicate p(a: Value);', "`p` is declared twice", ""),
]


@pytest.mark.parametrize(("text", "what", "hint"), BAD)
def test_what_means_nothing_is_told(text: str, what: str, hint: str) -> None:
    problems = check(parse(text))
    assert problems, "no problem found"
    assert what in problems[0].what, problems
    assert hint in problems[0].hint, problems
    assert problems[0].span.line > 0


def test_the_first_problem_is_raised_with_its_line_and_the_number_of_others() -> None:
    text = rule(where="one_us(%r); one_use(%q);")
    with pytest.raises(RuleCheckError) as caught:
        raise_first(check(parse(text)), text, "a.hlopat")
    assert caught.value.location == "a.hlopat:7:60"
    assert caught.value.hint is not None and caught.value.hint.endswith("(and 1 more to correct)")
    assert caught.value.excerpt is not None and caught.value.excerpt.endswith("^" * len("one_us(%r)"))


def test_signatures_agree_with_the_installed_ops() -> None:
    assert all(op_names(dialect) for dialect in DIALECTS)
    scatter, loop = signature("stablehlo.scatter"), signature("stablehlo.while")
    assert scatter is not None and scatter.regions == ("update_computation",) and scatter.most_operands is None
    assert loop is not None and loop.regions == ("cond", "body")
    select = signature("stablehlo.select")
    assert select is not None and [name for name, _ in select.operands] == ["pred", "on_true", "on_false"]
