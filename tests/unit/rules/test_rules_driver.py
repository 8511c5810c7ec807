"""Matcher and driver of the rule language: what patterns can say, order, bounds, events, explanations."""

from __future__ import annotations

import pytest

from hlorewrite.errors import PassFailed
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.rules.apply.driver import apply_rules
from hlorewrite.rules.apply.matcher import explain
from hlorewrite.rules.library import load_text
from hlorewrite.rules.listener import Recorder
from hlorewrite.rules.match_failure import Answer
from hlorewrite.rules.register import native

V = "tensor<4xf32>"
NATIVES = 'import "natives.hlopat";\n'


def module(body: str, arguments: str = f"%a: {V}, %b: {V}", result: str = V) -> Module:
    return parse(f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}", name="main.mlir")


def run(rules: str, target: Module, **options: bool) -> tuple[int, Recorder]:
    recorder = Recorder(wants_text=True, wants_missed=True)
    count = apply_rules(load_text(NATIVES + rules).rules, View(target), listener=recorder, **options)
    assert target.verify() == []
    return count, recorder


def ops(target: Module) -> list[str]:
    body = target.mlir.body.operations[0].regions[0].blocks[0].operations
    return [op.operation.name.split(".")[1] for op in body]


def op(result: str, name: str, *operands: str) -> str:
    return f"%{result} = stablehlo.{name} {', '.join('%' + o for o in operands)} : {V}\n"


NEGATE_TWICE = """rule negate-twice {
  match { %i = stablehlo.negate(%x); root %o = stablehlo.negate(%i); }
  types any;
  floats exact;
  rewrite { replace %o with %x; erase %i; }
}"""


def test_operands_are_followed_and_dead_ops_erased() -> None:
    target = module(op("p", "negate", "a") + op("q", "negate", "p") + op("r", "add", "q", "b"))
    assert run(NEGATE_TWICE, target)[0] == 1
    assert ops(target) == ["add", "return"]


def test_an_erased_op_that_is_still_read_stays() -> None:
    target = module(op("p", "negate", "a") + op("q", "negate", "p") + op("r", "add", "q", "p"))
    assert run(NEGATE_TWICE, target)[0] == 1
    assert ops(target) == ["negate", "add", "return"]


def test_a_name_used_twice_means_the_same_value() -> None:
    rule = "rule x-minus-x { match { root %r = stablehlo.subtract(%x, %x); } " \
           "types any; floats exact; rewrite { %t = stablehlo.abs(%x); " \
           "replace %r with %t; } }"
    assert run(rule, module(op("r", "subtract", "a", "a")))[0] == 1
    assert run(rule, module(op("r", "subtract", "a", "b")))[0] == 0


@pytest.mark.parametrize(("commutes", "times"), [("commutes", 1), ("", 0)])
def test_commutes_tries_both_orders_in_the_matcher(commutes: str, times: int) -> None:
    rule = f"rule a {commutes} {{ match {{ %n = stablehlo.negate(%x); root %r = stablehlo.add(%n, %y); }} " \
           "types any; floats exact; rewrite { %s = stablehlo.subtract(%y, %x); replace %r with %s; erase %n; } }"
    target = module(op("n", "negate", "a") + op("r", "add", "b", "n"))
    assert run(rule, target)[0] == times


def test_nested_commutative_ops_need_no_copies_of_the_rule() -> None:
    rule = """rule a commutes {
      match { %n = stablehlo.negate(%x); %m = stablehlo.multiply(%n, %y); root %r = stablehlo.add(%m, %z); }
      types any;
      floats exact;
      rewrite { %t = stablehlo.multiply(%x, %y); %s = stablehlo.subtract(%z, %t); replace %r with %s; erase %m, %n; }
    }"""
    target = module(op("n", "negate", "a") + op("m", "multiply", "b", "n") + op("r", "add", "b", "m"))
    assert run(rule, target)[0] == 1
    assert ops(target) == ["multiply", "subtract", "return"]


def test_a_failed_check_makes_the_matcher_try_the_other_order() -> None:
    rule = """rule a commutes {
      match { root %r = stablehlo.add(%x, %y); }
      where { only_used_by(%x, %r); }
      types any;
      floats exact;
      rewrite { %s = stablehlo.subtract(%x, %y); replace %r with %s; }
    }"""
    target = module(op("n", "negate", "a") + op("s", "add", "a", "n") + op("r", "multiply", "s", "s"))
    assert run(rule, target)[0] == 1
    assert "subtract %1" not in target.text() and "stablehlo.subtract %0, %arg0" in target.text()


def test_two_names_never_stand_for_the_same_op() -> None:
    rule = "rule a { match { %p = stablehlo.negate(%x); %q = stablehlo.negate(%y); " \
           "root %r = stablehlo.add(%p, %q); } " \
           "types any; floats exact; rewrite { %t = stablehlo.add(%x, %y); replace %r with %t; erase %p, %q; } }"
    assert run(rule, module(op("p", "negate", "a") + op("r", "add", "p", "p")))[0] == 0


def test_ops_connected_by_a_shared_operand_or_by_a_use_are_found() -> None:
    shared = "rule a { match { %p = stablehlo.abs(%x); root %r = stablehlo.negate(%x); } where { before(%p, %r); } " \
             "types any; floats exact; rewrite { %t = stablehlo.add(%p, %x); replace %r with %t; } }"
    target = module(op("p", "abs", "a") + op("q", "negate", "a") + op("r", "add", "p", "q"))
    assert run(shared, target)[0] == 1
    forward = "rule a { match { root %r = stablehlo.negate(%x); %u = stablehlo.abs(%r); } " \
              "types any; floats exact; rewrite { %t = stablehlo.abs(%x); replace %u with %t; erase %r; } }"
    target = module(op("p", "negate", "a") + op("r", "abs", "p"))
    # The new op precedes the root, which precedes its readers.
    assert run(forward, target)[0] == 1
    assert ops(target) == ["abs", "return"]


ATTRIBUTES = [
    ("{dims = [1, 0]}".replace("dims", "permutation"), 1), ("{permutation = [0, 1]}", 0),
    ("{permutation = `array<i64: 1, 0>`}", 1), ("{permutation = $p}", 1), ("{permutation = ?$p}", 1),
    ("{mine.tag = $t}", 0), ("{mine.tag = ?$t}", 1), ("{mine.flag = false}", 1), ("{mine.flag = true}", 0),
]


@pytest.mark.parametrize(("pattern", "times"), ATTRIBUTES)
def test_attributes_match_literals_variables_and_absence(pattern: str, times: int) -> None:
    rule = f"rule a {{ match {{ root %r = stablehlo.transpose(%x) {pattern}; }} where {{ one_use(%r); }} " \
           "types any; floats exact; rewrite { replace %r with %x; } }"
    target = module("%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>",
                    "%a: tensor<4x4xf32>", "tensor<4x4xf32>")
    assert run(rule, target)[0] == times


def test_an_attribute_bound_twice_must_be_equal() -> None:
    rule = "rule a { match { %p = stablehlo.reverse(%x) {dimensions = $d}; root %r = stablehlo.reverse(%p) " \
           "{dimensions = $d}; } types any; floats exact; rewrite { replace %r with %x; erase %p; } }"
    kind = "tensor<4x4xf32>"
    for second, times in (("0", 1), ("1", 0)):
        body = f"%p = stablehlo.reverse %a, dims = [0] : {kind} %r = stablehlo.reverse %p, dims = [{second}] : {kind}"
        assert run(rule, module(body, f"%a: {kind}", kind))[0] == times


def test_types_can_be_bound_and_compared() -> None:
    rule = "rule a { match { root %r = stablehlo.convert(%x) -> $t; } where { $t == type(%x); } " \
           "types any; floats exact; rewrite { replace %r with %x; } }"
    assert run(rule, module(f"%r = stablehlo.convert %a : {V}"))[0] == 1
    assert run(rule, module(f"%r = stablehlo.convert %a : ({V}) -> tensor<4xf64>", result="tensor<4xf64>"))[0] == 0


def test_spreads_bind_the_rest_and_can_be_passed_on() -> None:
    rule = "rule a { match { root %r = stablehlo.concatenate(%first, ...%rest) {dimension = $d}; } " \
           "where { %first == %first; $d == $d; one_use(%r); } types any; floats exact; rewrite { " \
           "%n = stablehlo.negate(%first); %t = stablehlo.concatenate(%n, ...%rest) like %r; replace %r with %t; } }"
    body = f"%r = stablehlo.concatenate %a, %b, %a, dim = 0 : ({V}, {V}, {V}) -> tensor<12xf32>"
    with pytest.raises(PassFailed, match="rewrites its own results without end"):
        run(rule, module(body, result="tensor<12xf32>"))
    target = module(body, result="tensor<12xf32>")
    assert run(rule.replace("rule a", "rule a recursive(2)"), target)[0] == 3
    assert "stablehlo.concatenate %2, %arg1, %arg0" in target.text()


# ---- regions

LOOP = """%n = stablehlo.constant dense<3> : tensor<i32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %w:3 = stablehlo.while(%i = %i0, %acc = %a, %other = %b) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1> }
    do { %new = stablehlo.add %acc, %b : tensor<4xf32>
         %next = stablehlo.add %i, %one : tensor<i32>
         stablehlo.return YIELDS }
  %r = stablehlo.negate %w#1 : tensor<4xf32>"""
GOOD_LOOP = LOOP.replace("YIELDS", "%next, %new, %other : tensor<i32>, tensor<4xf32>, tensor<4xf32>")
SWAPPED_LOOP = LOOP.replace("YIELDS", "%next, %other, %new : tensor<i32>, tensor<4xf32>, tensor<4xf32>")
CARRIED = """rule start-at-zero {
  match {
    root %w = stablehlo.while(..., [@i] = %init)
      cond ^(..., [@i] = %c) { yield(%_); }
      body ^(..., [@i] = %acc) {
        %new = stablehlo.add(%acc, %d);
        yield(..., [@i] = %new);
      };
    %z = stablehlo.negate(%w#@i);
  }
  where { @i >= 1; }
  types any;
  floats exact;
  rewrite {
    set %w[@i] = %d;
    after %z { %s = stablehlo.add(%z, %init); %t = stablehlo.abs(%s); }
    replace %z with %t;
  }
}"""


def test_loop_carried_values_block_arguments_and_yields() -> None:
    target = module(GOOD_LOOP)
    count, _ = run(CARRIED.replace("start-at-zero", "start-at-zero recursive(0)"), target)
    assert count == 1
    assert ops(target)[-4:] == ["negate", "add", "abs", "return"]
    loop = next(op for op in View(target).ops("stablehlo.while"))
    assert loop.operands[1] == loop.operands[2]  # the accumulator starts from what it adds, not from %a
    assert run(CARRIED, module(SWAPPED_LOOP))[0] == 0


def test_ops_inside_regions_are_found_by_their_place() -> None:
    rule = """rule a recursive(0) {
      match { root %w = stablehlo.while(...) body ^(...) { %n = stablehlo.add(%x, %x); }; }
      types any;
      floats exact;
      rewrite { before %n { %t = stablehlo.negate(%x); } replace %n with %t; }
    }"""
    outside = GOOD_LOOP.replace("%r = stablehlo", "%o = stablehlo.add %a, %a : tensor<4xf32>\n%r = stablehlo")
    assert run(rule, module(outside))[0] == 0
    inside = GOOD_LOOP.replace("%next =", "%dd = stablehlo.add %b, %b : tensor<4xf32>\n%next =")
    assert run(rule, module(inside))[0] == 1


# ---- driver


def test_higher_benefit_goes_first_and_the_file_order_decides_ties() -> None:
    def rule(name: str, head: str, to: str) -> str:
        return f"rule {name} {head} {{ match {{ root %r = stablehlo.negate(%x); }} " \
               f"types any; floats exact; rewrite {{ " \
               f"%t = stablehlo.{to}(%x); replace %r with %t; }} }}\n"
    target = module(op("r", "negate", "a"))
    _, recorder = run(rule("one", "", "abs") + rule("two", "benefit(5)", "sign"), target)
    assert [r.rule for r in recorder.rewrites] == ["two"]
    target = module(op("r", "negate", "a"))
    _, recorder = run(rule("one", "", "abs") + rule("two", "", "sign"), target)
    assert [r.rule for r in recorder.rewrites] == ["one"]


PING = "rule ping { match { root %r = stablehlo.abs(%x); } " \
       "types any; floats exact; rewrite { %t = stablehlo.negate(%x); replace %r with %t; } }\n"
PONG = PING.replace("ping", "pong").replace("abs", "tmp").replace("negate", "abs").replace("tmp", "negate")


def test_rules_that_undo_each_other_are_named() -> None:
    with pytest.raises(PassFailed) as caught:
        run(PING + PONG, module(op("r", "abs", "a")))
    assert "rules ping and pong rewrite each other's results without end" in caught.value.what
    assert caught.value.location is not None and caught.value.location.startswith("main.mlir:2:")


def test_rules_that_only_cost_keeps_apart_end_when_cost_is_ignored() -> None:
    """Cost is ignored until a chain of rewrites comes back to the rule."""
    ping = PING.replace("rewrite", 'cost { bytes(%x) < 8 : "it is large"; } rewrite')
    target = module(op("r", "abs", "a"))
    count, recorder = run(ping + PONG, target, ignore_cost=True)
    assert count == 2 and ops(target) == ["abs", "return"]
    assert [(r.rule, r.kind, r.sentence) for r in recorder.remarks if r.kind != "applied"] == [
        ("ping", "unprofitable", "it is large")]
    again = module(op("n", "abs", "a") + op("r", "abs", "n"))
    assert run(ping, again, ignore_cost=True)[0] == 2 and ops(again) == ["negate", "negate", "return"]


GROWS = ("rule grow { match { root %r = stablehlo.abs(%x); } types { same(%x, %r); } floats exact; "
         "rewrite { %a = stablehlo.abs(%x) like %r; %b = stablehlo.abs(%a) like %r; replace %r with %b; } }")


def test_a_rule_that_makes_two_of_one_is_named_before_it_fills_the_memory() -> None:
    """In a row it would take as many steps as before, and two to the power of that in total."""
    with pytest.raises(PassFailed) as caught:
        run(GROWS, module(op("r", "abs", "a")))
    assert caught.value.what.startswith("rule grow rewrites its own results without end")
    in_all = int(caught.value.what.split(" in total")[0].split()[-1])
    assert in_all <= 20_000 and "recursive(k)" in (caught.value.hint or "")


def test_long_chains_that_end_are_no_loop() -> None:
    body = "".join(op(f"n{i + 1}", "negate", f"n{i}" if i else "a") for i in range(2400)) + op("r", "abs", "n2400")
    target = module(body)
    assert run(NEGATE_TWICE, target)[0] == 1200
    assert ops(target) == ["abs", "return"]


def test_a_recursion_bound_ends_quietly() -> None:
    count, recorder = run(PING.replace("ping", "ping recursive(1)") + PONG.replace("pong", "pong recursive(1)"),
                          module(op("r", "abs", "a")))
    assert count == 4
    assert [(r.kind, r.sentence) for r in recorder.remarks if r.kind != "applied"] == [
        ("missed", "it rewrites its own results at most 1 times")]


def test_locations_name_the_rule_and_keep_the_source() -> None:
    target = module(op("r", "abs", "a"))
    run(PING, target)
    made = target.mlir.body.operations[0].regions[0].blocks[0].operations[0].operation
    assert str(made.location).startswith('loc("hlorewrite.ping"(')
    assert View(target).source(made).startswith("main.mlir:2:")


def test_events_hold_rule_place_and_text() -> None:
    target = module(op("p", "negate", "a") + op("q", "negate", "p") + op("r", "add", "q", "b"))
    _, recorder = run("/// -(-x) = x\n" + NEGATE_TWICE, target)
    remark = recorder.remarks[0]
    assert (remark.kind, remark.rule, remark.sentence) == ("applied", "negate-twice", "-(-x) = x")
    assert remark.location.startswith("main.mlir:3:") and remark.rule_location == "<rules>:3"
    record = recorder.rewrites[0]
    assert record.before == f"%i = stablehlo.negate(%x) : {V}\n%o = stablehlo.negate(%i) : {V}"
    assert record.after == "" and record.index == 0
    assert [(s.rule, s.tried, s.matched, s.applied) for s in recorder.rules] == [("negate-twice", 2, 1, 1)]


def test_a_rule_that_never_matched_is_in_the_statistics() -> None:
    _, recorder = run(NEGATE_TWICE, module(op("r", "abs", "a")))
    assert [(s.rule, s.tried, s.applied) for s in recorder.rules] == [("negate-twice", 0, 0)]


def test_a_refusal_that_a_later_rewrite_removes_is_not_told() -> None:
    rules = NEGATE_TWICE + """rule merge {
      match { %p = stablehlo.abs(%x); root %r = stablehlo.add(%p, %y); }
      types any;
      floats exact;
      legal { one_use(%p) : "read twice"; }
      rewrite { %t = stablehlo.subtract(%x, %y); replace %r with %t; erase %p; }
    }"""
    body = op("p", "abs", "a") + op("s", "add", "p", "b") + op("n", "negate", "p") + op("m", "negate", "n")
    count, recorder = run(rules, module(body + op("r", "multiply", "s", "b")))
    assert count == 2 and {r.kind for r in recorder.remarks} == {"applied"}


def test_order_and_output_are_the_same_every_time() -> None:
    body = "".join(op(f"n{i}", "negate", "a") + op(f"m{i}", "negate", f"n{i}") for i in range(20))
    texts = set()
    for _ in range(3):
        target = module(body + op("r", "add", "m3", "m7"))
        _, recorder = run(NEGATE_TWICE, target)
        texts.add(target.text() + "".join(str(r) for r in recorder.remarks))
    assert len(texts) == 1


# ---- mistakes of rule writers end in a sentence


def test_a_rewrite_that_changes_a_type_is_told() -> None:
    rule = "rule a { match { root %r = stablehlo.convert(%x); } " \
           "types any; floats exact; rewrite { replace %r with %x; } }"
    with pytest.raises(PassFailed, match="of type tensor<4xf64> is replaced by a value of type tensor<4xf32>"):
        run(rule, module(f"%r = stablehlo.convert %a : ({V}) -> tensor<4xf64>", result="tensor<4xf64>"))


def test_values_whose_sizes_are_known_of_one_alone_are_not_exchanged() -> None:
    """StableHLO lets a value say less of its size than an equal one: the rule stays away, and nothing fails."""
    rule = "rule a { match { %p = stablehlo.collective_permute(%x); root %q = stablehlo.collective_permute(%x); } " \
           "where { before(%p, %q); } types any; floats exact; rewrite { replace %q with %p; } }"
    permute = '"stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}>'
    for dynamic, changes in (("tensor<?xf32>", False), (V, True)):
        target = module(f"%p = {permute} : ({V}) -> {V}\n %r = {permute} : ({V}) -> {dynamic}", result=dynamic)
        changed, recorder = run(rule, target)
        assert bool(changed) is changes
        assert changes or any("one has no size" in str(each) for each in recorder.remarks)


def test_an_op_whose_type_cannot_be_inferred_is_told() -> None:
    rule = "rule a { match { root %r = stablehlo.negate(%x); } " \
           "types any; floats exact; rewrite { %t = stablehlo.reshape(%x); " \
           "replace %r with %t; } }"
    with pytest.raises(PassFailed, match=r"the result type of `stablehlo.reshape` is not inferred"):
        run(rule, module(op("r", "negate", "a")))


@native
def bad(context: object, op: ir.Operation) -> Answer:
    raise TypeError("no")


def test_a_native_that_raises_is_told_with_the_rule() -> None:
    rule = 'native predicate bad(op: Op); ' \
           "rule a { match { root %r = stablehlo.negate(%x); } where { bad(%r); } " \
                  "types any; floats exact; rewrite { replace %r with %x; } }"
    with pytest.raises(PassFailed, match="rule a: a check raised TypeError"):
        run(rule, module(op("r", "negate", "a")))


# ---- explain


@pytest.mark.parametrize(("body", "outcome", "sentence"), [
    (op("r", "abs", "a"), "no root", "the module contains no stablehlo.negate"),
    (op("p", "abs", "a") + op("r", "negate", "p"), "no match", "`%i` is the result of stablehlo.abs, not of"),
    (op("p", "negate", "a") + op("r", "negate", "p"), "applies", "every check holds"),
    (op("p", "negate", "a") + op("q", "negate", "p") + op("r", "add", "q", "p"), "where", "the inner one is read"),
])
def test_explain_tells_how_far_a_rule_came(body: str, outcome: str, sentence: str) -> None:
    rule = NEGATE_TWICE.replace("types", 'where { one_use(%i) : "the inner one is read elsewhere"; } types', 1)
    target = module(body)
    text = target.text()
    explanation = explain(load_text(NATIVES + rule).rules[0], View(target))
    assert explanation.outcome == outcome and sentence in explanation.sentence
    assert target.text() == text
    if outcome == "where":
        assert explanation.failed_check == "one_use(%i)" and explanation.culprit.startswith("stablehlo.negate")
        assert 0 < explanation.matched < explanation.steps


# ---- facts that are kept over a run


def test_what_is_known_of_values_is_forgotten_with_them_and_with_changes_in_place() -> None:
    from hlorewrite.analysis.groups import groups_of
    from hlorewrite.rules.context import RuleContext
    psum = ('%{0} = "stablehlo.all_reduce"(%{1}) ({{^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.add %x, %y '
            ': tensor<f32> stablehlo.return %z : tensor<f32>}}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, '
            'channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}} : '
            '(tensor<4xf32>) -> tensor<4xf32>\n')
    target = module(psum.format("p", "a") + op("n", "negate", "p") + op("m", "negate", "n") + op("r", "add", "m", "b"))
    view = View(target)
    context = RuleContext(view)
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert not isinstance(groups, str)
    known = context.uniformity(groups)
    last = view.ops("stablehlo.add")[-1]
    assert known.varying(last.operands[0]) is None and known.varying(last.results[0]) is not None
    rules = load_text(NATIVES + NEGATE_TWICE).rules
    assert apply_rules(rules, view, context=context) == 1
    assert context.uniformity(groups) is known  # values that stay compute what they did
    assert known.varying(view.ops("stablehlo.add")[-1].operands[0]) is None
    in_place = load_text("rule a recursive(0) { match { root %r = stablehlo.add(%x, %y); } "
                         "types any; floats exact; rewrite { set %r[0] = %y; } }").rules
    assert in_place[0].in_place and not rules[0].in_place
    assert apply_rules(in_place, view, context=context) >= 1
    assert context.uniformity(groups) is not known


def test_attributes_of_complex_constants_cannot_be_copied_but_can_be_replaced() -> None:
    c = "tensor<4xcomplex<f32>>"
    body = (f"%c = stablehlo.constant dense<(1.0,2.0)> : {c}\n%n = stablehlo.negate %c : {c}\n"
            f"%r = stablehlo.real %n : ({c}) -> {V}")
    match = "match { %c = stablehlo.constant(); %n = stablehlo.negate(%c); root %r = stablehlo.real(%n); }"
    copied = f"rule r {{ {match} " \
           "types any; floats exact; rewrite { %t = stablehlo.constant() -> type(%r) like %c; replace %r with %t; } }"
    with pytest.raises(PassFailed, match=r"the attribute `value` of stablehlo\.constant contains complex numbers"):
        run(copied, module(body))
    assert run(copied.replace("constant() ->", "constant() {value = splat(%r, 2.0)} ->"), module(body))[0] == 1
