"""Every shipped rule: fires where it should with equal values, and stays away where it should, with its sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.rules.apply.driver import apply_rules
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.library import load, select
from hlorewrite.rules.listener import Recorder

PAIRS, CROSS, ALL, ALONE = "[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]", "[[0, 1, 2, 3]]", "[[0], [1], [2], [3]]"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


def groups(rows: str) -> str:
    shape = f"{rows.count('[') - 1}x{rows.split(']')[0].count(',') + 1}"
    return f"replica_groups = dense<{rows}> : tensor<{shape}xi64>"


def reduce(result: str, operand: str, rows: str = PAIRS, op: str = "add", kind: str = "tensor<4xf32>") -> str:
    element = kind.split("x")[-1].rstrip(">")
    return (f'%{result} = "stablehlo.all_reduce"(%{operand}) ({{^bb0(%x: tensor<{element}>, %y: tensor<{element}>): '
            f'%z = stablehlo.{op} %x, %y : tensor<{element}> stablehlo.return %z : tensor<{element}>}}) '
            f'{{{groups(rows)}, {CHANNEL}, use_global_device_ids}} : ({kind}) -> {kind}\n')


def gather(result: str, operand: str, kind: str, to: str, rows: str = PAIRS) -> str:
    return (f'%{result} = "stablehlo.all_gather"(%{operand}) {{all_gather_dim = 0 : i64, {groups(rows)}, {CHANNEL}, '
            f'use_global_device_ids}} : ({kind}) -> {to}\n')


def scatter(result: str, operand: str, rows: str = PAIRS) -> str:
    return (reduce(result, operand, rows).replace("all_reduce", "reduce_scatter")
            .replace("use_global", "scatter_dimension = 0 : i64, use_global").replace("-> tensor<4", "-> tensor<2"))


def permute(result: str, operand: str, pairs: str, kind: str = "tensor<4xf32>") -> str:
    count = pairs.count("[") - 1
    return (f'%{result} = "stablehlo.collective_permute"(%{operand}) {{source_target_pairs = dense<{pairs}> : '
            f'tensor<{count}x2xi64>, {CHANNEL}}} : ({kind}) -> {kind}\n')


def all_to_all(result: str, operand: str, split: int, concat: int, source: str, target: str, rows: str = PAIRS) -> str:
    return (f'%{result} = "stablehlo.all_to_all"(%{operand}) {{split_dimension = {split} : i64, '
            f'concat_dimension = {concat} : i64, split_count = 2 : i64, {groups(rows)}, {CHANNEL}}} : '
            f'({source}) -> {target}\n')


def binary(result: str, op: str, left: str, right: str, kind: str = "tensor<4xf32>") -> str:
    return f"%{result} = stablehlo.{op} %{left}, %{right} : {kind}\n"


def convert(result: str, operand: str, source: str, target: str) -> str:
    return f"%{result} = stablehlo.convert %{operand} : ({source}) -> {target}\n"


def module(body: str, result: str = "tensor<4xf32>", a: str = "tensor<4xf32>") -> Module:
    """A program of four devices; a collective no rule is about keeps it one when the others vanish."""
    keep = f'"stablehlo.collective_broadcast"(%b) {{{groups(ALL)}, {CHANNEL}}} : ({a}) -> {a}'
    return parse(f"""module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func @main(%a: {a}, %b: {a}) -> ({result}, {a}) {{
        {body}
        %keep = {keep}
        return %r, %keep : {result}, {a}
      }} }}""")


LOOP = """%n = stablehlo.constant dense<3> : tensor<i32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  BEFORE
  %w:2 = stablehlo.while(%i = %i0, %acc = %b) : tensor<i32>, tensor<4xf32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1> }
    do { INSIDE
         %next = stablehlo.add %i, %one : tensor<i32>
         stablehlo.return %next, %new : tensor<i32>, tensor<4xf32> }
  %r = stablehlo.negate %w#1 : tensor<4xf32>"""


def in_loop(before: str, inside: str) -> str:
    return LOOP.replace("BEFORE", before).replace("INSIDE", inside)


@dataclass(frozen=True)
class Case:
    rule: str
    body: str
    times: int = 1
    gone: str = ""       # text that must not be left
    kind: str = ""       # of the remark, when the rule must not fire
    sentence: str = ""
    result: str = "tensor<4xf32>"
    a: str = "tensor<4xf32>"


def shard_start(expression: str) -> str:
    """A scalar ``%start`` computed from the device's id ``%me``; ``%two`` and ``%one`` are at hand."""
    return f"""%pid = stablehlo.partition_id : tensor<ui32>
      %me = stablehlo.convert %pid : (tensor<ui32>) -> tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      {expression}
    """


def cut(operand: str, source: str, target: str, size: int) -> str:
    return f"%r = stablehlo.dynamic_slice %{operand}, %start, sizes = [{size}] : ({source}, tensor<i32>) -> {target}\n"


MINE = """%place = stablehlo.remainder %me, %two : tensor<i32>
  %start = stablehlo.multiply %place, %two : tensor<i32>"""
OTHERS = MINE.replace("%start =", "%mine =") + " %start = stablehlo.subtract %two, %mine : tensor<i32>"
ODD = "%start = stablehlo.remainder %me, %two : tensor<i32>"
FIRST = "%start = stablehlo.subtract %one, %one : tensor<i32>"
HALF = "tensor<2xf32>"
FOUR = "%four = stablehlo.add %two, %two : tensor<i32> "
V4, F64, BF16, F32x8 = "tensor<4xf32>", "tensor<4xf64>", "tensor<4xbf16>", "tensor<8xf32>"
TABLE = "tensor<4x2xf32>"
EVEN = """%first = stablehlo.remainder %me, %two : tensor<i32>
  %none = stablehlo.subtract %one, %one : tensor<i32>
  %here = stablehlo.compare EQ, %first, %none : (tensor<i32>, tensor<i32>) -> tensor<i1>"""
MASKED = "%k = stablehlo.select %mask, %u, %zeros : tensor<4xi1>, tensor<4xf32>\n"


def updated(choice: str = MASKED, rows: str = PAIRS, op: str = "add", carry: str = PAIRS) -> str:
    """A carry ``%u`` that one device of two holds, what a scatter adds to it, and the sum of that over devices."""
    numbers = ("#stablehlo.scatter<inserted_window_dims = [0], "
               "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>")
    scattered = (f'%s = "stablehlo.scatter"(%k, %at, %up) ({{^bb0(%x: tensor<f32>, %y: tensor<f32>): '
                 f"%z = stablehlo.{op} %x, %y : tensor<f32> stablehlo.return %z : tensor<f32>}}) "
                 f"{{scatter_dimension_numbers = {numbers}}} : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> "
                 "tensor<4xf32>\n")
    return (shard_start(EVEN) + "%mask = stablehlo.broadcast_in_dim %here, dims = [] : (tensor<i1>) -> tensor<4xi1>\n"
            "%zeros = stablehlo.constant dense<0.0> : tensor<4xf32>\n"
            "%at = stablehlo.constant dense<[[1], [3]]> : tensor<2x1xi32>\n"
            "%up = stablehlo.slice %a [0:2] : (tensor<4xf32>) -> tensor<2xf32>\n"
            + reduce("u", "b", carry) + choice + scattered + reduce("r", "s", rows))


def combined(op: str) -> list[Case]:
    """A rule of the family of reductions that are combined by their own op."""
    kind = "tensor<4xi32>" if op in ("and", "or") else V4
    root = binary("r", op, "p", "q", kind)

    name, p, q = f"{op}-of-all-reduces", reduce("p", "a", op=op, kind=kind), reduce("q", "b", op=op, kind=kind)
    sum_of_a, sum_of_b = reduce("p", "a", kind=kind), reduce("q", "b", kind=kind)
    return [Case(name, p + q + root, result=kind, a=kind),
            Case(name, sum_of_a + sum_of_b + root, 0, result=kind, a=kind),
            Case(name, p + sum_of_b + root, 0, result=kind, a=kind),
            Case(name, p + reduce("q", "b", CROSS, op, kind) + root, 0, kind="blocked", sentence="the groups differ",
                 result=kind, a=kind)]


CASES = [
    Case("add-of-all-reduces", reduce("p", "a") + reduce("q", "b") + binary("r", "add", "p", "q")),
    Case("add-of-all-reduces", reduce("p", "a") + reduce("q", "b") + reduce("s", "b") + binary("t", "add", "p", "q")
         + binary("r", "add", "s", "t"), times=2),
    Case("add-of-all-reduces", reduce("p", "a") + reduce("q", "b", CROSS) + binary("r", "add", "p", "q"), 0,
         kind="blocked", sentence="the groups differ"),
    Case("add-of-all-reduces", reduce("p", "a") + reduce("q", "b") + binary("t", "add", "p", "q")
         + binary("r", "multiply", "t", "p"), 0, kind="missed", sentence="the all-reduce %rb is read elsewhere too"),
    Case("add-of-all-reduces", reduce("p", "a") + binary("r", "add", "p", "p"), 0),
    Case("add-of-all-reduces", reduce("p", "a", op="maximum") + reduce("q", "b", op="maximum")
         + binary("r", "add", "p", "q"), 0),
    Case("add-of-all-reduces", in_loop(reduce("p", "a"), reduce("q", "acc") + binary("new", "add", "q", "p")), 0,
         kind="missed", sentence="runs in another region"),
    Case("subtract-of-all-reduces", reduce("p", "a") + reduce("q", "b") + binary("r", "subtract", "p", "q")),
    Case("subtract-of-all-reduces", reduce("p", "a") + reduce("q", "b", ALL) + binary("r", "subtract", "p", "q"), 0,
         kind="blocked", sentence="the groups differ"),
    *(case for op in ("multiply", "maximum", "minimum", "and", "or") for case in combined(op)),
    Case("all-reduce-of-all-reduce", reduce("p", "a") + reduce("r", "p", CROSS)),
    Case("all-reduce-of-all-reduce", reduce("p", "a", op="maximum") + reduce("r", "p", CROSS, "maximum")),
    Case("all-reduce-of-all-reduce", reduce("p", "a") + reduce("r", "p"), 0, kind="missed",
         sentence="a device would be counted twice"),
    Case("all-reduce-of-all-reduce", reduce("p", "a", ALL) + reduce("r", "p", CROSS), 0, kind="missed",
         sentence="a device would be counted twice"),
    Case("all-reduce-of-all-reduce", reduce("p", "a") + reduce("r", "p", CROSS, "maximum"), 0),
    Case("all-reduce-of-all-reduce", reduce("p", "a") + reduce("q", "p", CROSS) + binary("r", "add", "p", "q"), 0,
         kind="missed", sentence="the all-reduce %inner is read elsewhere too"),
    Case("all-reduce-of-uniform-sum", reduce("p", "a") + reduce("r", "p"), gone="%4 = stablehlo.add"),
    Case("all-reduce-of-uniform-sum", reduce("p", "a", ALL) + reduce("r", "p", CROSS)),
    Case("all-reduce-of-uniform-sum", reduce("r", "a"), 0, kind="missed", sentence="differs between devices"),
    Case("all-reduce-of-uniform-idempotent", reduce("p", "a") + reduce("r", "p", op="maximum"), gone="maximum"),
    Case("all-reduce-of-uniform-idempotent", reduce("p", "a") + reduce("r", "p", CROSS, op="maximum"), 0,
         kind="missed", sentence="differs between devices"),
    Case("carry-inside-scatter", updated(), gone="select"),
    Case("carry-inside-scatter", updated(MASKED.replace("%u, %zeros", "%zeros, %u")), gone="select"),
    Case("carry-inside-scatter", updated().replace("compare EQ", "compare NE"), gone="select"),
    Case("carry-inside-scatter", updated(carry=ALL), gone="select"),
    Case("carry-inside-scatter", updated(rows=CROSS), 0, kind="missed", sentence="2 members of a group take the value"),
    Case("carry-inside-scatter", updated(rows=ALL, carry=ALL), 0, kind="missed", sentence="2 members of a group take"),
    Case("carry-inside-scatter", updated(carry=CROSS), 0, kind="blocked", sentence="differs between devices"),
    Case("carry-inside-scatter", updated(MASKED.replace("%u, %zeros", "%u, %a")), 0, kind="missed",
         sentence="not exactly one side of the select is zero"),
    Case("carry-inside-scatter", updated("%given = stablehlo.compare GT, %a, %b : (tensor<4xf32>, tensor<4xf32>) -> "
                                         "tensor<4xi1>\n" + MASKED.replace("%mask", "%given")), 0, kind="missed",
         sentence="is not a known function of the device id"),
    Case("carry-inside-scatter", updated("%lane = stablehlo.iota dim = 0 : tensor<4xi32>\n"
                                         "%mine = stablehlo.broadcast_in_dim %me, dims = [] : (tensor<i32>) -> "
                                         "tensor<4xi32>\n%own = stablehlo.compare EQ, %lane, %mine : (tensor<4xi32>, "
                                         "tensor<4xi32>) -> tensor<4xi1>\n" + MASKED.replace("%mask", "%own")), 0,
         kind="missed", sentence="takes different elements from its two sides"),
    Case("carry-inside-scatter", updated(op="maximum"), 0),
    Case("all-gather-of-reduce-scatter", scatter("s", "a") + gather("r", "s", "tensor<2xf32>", "tensor<4xf32>"),
         gone="all_gather"),
    Case("all-gather-of-reduce-scatter", scatter("s", "a")
         + gather("r", "s", "tensor<2xf32>", "tensor<4xf32>", "[[1, 0], [3, 2]]"), 0, kind="blocked",
         sentence="the groups differ"),
    Case("slice-of-all-reduce", shard_start(MINE) + reduce("p", "a") + cut("p", V4, HALF, 2), gone="all_reduce",
         result=HALF),
    Case("slice-of-all-reduce", shard_start(OTHERS) + reduce("p", "a", op="maximum") + cut("p", V4, HALF, 2),
         gone="all_reduce", result=HALF),
    Case("slice-of-all-reduce", shard_start(FIRST) + reduce("p", "a") + cut("p", V4, HALF, 2), 0, kind="missed",
         sentence="two members of a group read the same shard", result=HALF),
    Case("slice-of-all-reduce", shard_start(ODD) + reduce("p", "a") + cut("p", V4, HALF, 2), 0, kind="missed",
         sentence="the slice straddles two shards", result=HALF),
    Case("slice-of-all-reduce", shard_start(MINE) + reduce("p", "a", ALL) + cut("p", V4, HALF, 2), 0, kind="missed",
         sentence="one of 2 shards, and a group has 4 members", result=HALF),
    Case("slice-of-all-gather", shard_start(FOUR + MINE.replace("%place, %two", "%place, %four"))
         + gather("p", "a", V4, F32x8) + cut("p", F32x8, V4, 4), gone="all_gather"),
    Case("slice-of-all-gather", shard_start(FIRST) + gather("p", "a", V4, F32x8) + cut("p", F32x8, V4, 4), 0,
         kind="missed", sentence="one device's shard is read by several"),
    Case("slice-of-all-gather", shard_start(MINE) + gather("p", "a", V4, F32x8) + cut("p", F32x8, V4, 4), 0,
         kind="missed", sentence="the slice straddles two shards"),
    Case("collective-of-one", reduce("r", "a", ALONE), gone="all_reduce"),
    Case("collective-of-one", gather("r", "a", "tensor<4xf32>", "tensor<4xf32>", ALONE), gone="all_gather"),
    Case("collective-of-one", reduce("r", "a"), 0, kind="missed", sentence="its groups have 2 members"),
    Case("permute-to-oneself", permute("r", "a", "[[0, 0], [1, 1], [2, 2], [3, 3]]"), gone="permute"),
    Case("permute-to-oneself", permute("r", "a", "[[0, 0], [1, 1], [2, 2]]"), 0, kind="missed",
         sentence="devices that receive nothing would get zeros"),
    Case("permute-to-oneself", permute("r", "a", "[[0, 1], [1, 0], [2, 2], [3, 3]]"), 0, kind="missed",
         sentence="device 0 sends to device 1"),
    Case("duplicate-collective", reduce("p", "a") + reduce("q", "a", "[[0, 1], [2, 3]]") + binary("r", "multiply", "p",
                                                                                                    "q")),
    Case("duplicate-collective", permute("p", "a", "[[0, 1]]") + permute("q", "a", "[[0, 1]]")
         + binary("r", "add", "p", "q")),
    Case("duplicate-collective", reduce("p", "a") + reduce("q", "a", CROSS) + binary("r", "multiply", "p", "q"), 0,
         kind="missed", sentence="the groups differ"),
    Case("duplicate-collective", reduce("p", "a") + reduce("q", "a", op="maximum") + binary("r", "multiply", "p", "q"),
         0, kind="missed", sentence="the reductions differ"),
    Case("duplicate-collective", in_loop("", reduce("p", "a") + binary("new", "add", "acc", "p"))
         .replace("%r = stablehlo.negate %w#1 : tensor<4xf32>",
                  reduce("q", "a") + binary("r", "add", "w#1", "q")), 0, kind="missed",
         sentence="its result is not available there"),
    Case("dead-collective", reduce("p", "a") + binary("r", "add", "a", "b"), gone="all_reduce"),
    Case("dead-collective", reduce("r", "a"), 0, kind="missed", sentence="its result is read"),
    Case("permute-of-permute", permute("p", "a", "[[0, 1], [1, 2], [2, 3]]") + permute("r", "p", "[[1, 3], [2, 0]]")),
    Case("permute-of-permute", permute("p", "a", "[[0, 1]]") + permute("r", "p", "[[2, 3]]"), 0, kind="missed",
         sentence="nothing is sent by both"),
    Case("permute-of-permute", permute("p", "a", "[[0, 1]]") + permute("q", "p", "[[1, 2]]")
         + binary("r", "add", "p", "q"), 0, kind="missed",
         sentence="the collective-permute %inner is read elsewhere too"),
    Case("all-to-all-and-back", all_to_all("p", "a", 0, 1, TABLE, "tensor<2x4xf32>")
         + all_to_all("r", "p", 1, 0, "tensor<2x4xf32>", TABLE), gone="all_to_all", result=TABLE, a=TABLE),
    Case("all-to-all-and-back", all_to_all("p", "a", 0, 1, TABLE, "tensor<2x4xf32>")
         + all_to_all("r", "p", 1, 0, "tensor<2x4xf32>", TABLE, CROSS), 0, kind="blocked",
         sentence="the groups differ", result=TABLE, a=TABLE),
    Case("gather-before-widening", convert("w", "a", "tensor<4xf32>", F64) + gather("r", "w", F64, "tensor<8xf64>"),
         result="tensor<8xf64>"),
    Case("gather-before-widening", convert("w", "a", "tensor<4xf32>", BF16) + gather("r", "w", BF16, "tensor<8xbf16>"),
         0, kind="unprofitable", sentence="the converted elements are not wider", result="tensor<8xbf16>"),
    Case("gather-after-narrowing", gather("w", "a", "tensor<4xf32>", F32x8)
         + convert("r", "w", F32x8, "tensor<8xbf16>"), result="tensor<8xbf16>"),
    Case("gather-after-narrowing", gather("w", "a", "tensor<4xf32>", F32x8)
         + convert("r", "w", F32x8, "tensor<8xf64>"), 0, kind="unprofitable",
         sentence="the converted elements are not narrower", result="tensor<8xf64>"),
    Case("permute-before-widening", convert("w", "a", "tensor<4xf32>", F64) + permute("r", "w", "[[0, 1]]", F64),
         result=F64),
    Case("permute-before-widening", convert("w", "a", "tensor<4xf32>", BF16) + permute("r", "w", "[[0, 1]]", BF16), 0,
         kind="unprofitable", sentence="not wider", result=BF16),
    Case("permute-after-narrowing", permute("w", "a", "[[0, 1]]") + convert("r", "w", "tensor<4xf32>", BF16),
         result=BF16),
    Case("permute-after-narrowing", permute("w", "a", "[[0, 1]]") + convert("r", "w", "tensor<4xf32>", F64), 0,
         kind="unprofitable", sentence="not narrower", result=F64),
    Case("all-to-all-after-narrowing", all_to_all("w", "a", 0, 1, TABLE, "tensor<2x4xf32>")
         + convert("r", "w", "tensor<2x4xf32>", "tensor<2x4xbf16>"), result="tensor<2x4xbf16>", a=TABLE),
    Case("all-to-all-after-narrowing", all_to_all("w", "a", 0, 1, TABLE, "tensor<2x4xf32>")
         + convert("r", "w", "tensor<2x4xf32>", "tensor<2x4xf64>"), 0, kind="unprofitable", sentence="not narrower",
         result="tensor<2x4xf64>", a=TABLE),
    Case("all-to-all-after-narrowing", all_to_all("w", "a", 0, 1, TABLE, "tensor<2x4xf32>")
         + convert("n", "w", "tensor<2x4xf32>", "tensor<2x4xbf16>")
         + convert("back", "n", "tensor<2x4xbf16>", "tensor<2x4xf32>")
         + binary("r", "add", "back", "w", "tensor<2x4xf32>"), 0, kind="missed",
         sentence="the all-to-all %t is read elsewhere too", result="tensor<2x4xf32>", a=TABLE),
]
PAIRS = str(Path(__file__).with_name("pairs.hlopat"))
SHIPPED = {rule.name: rule for rule in load("collectives").rules}
RULES = SHIPPED | {rule.name: rule for rule in load(PAIRS).rules}


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.rule}-{c.kind or ('fires' if c.times else 'silent')}")
def test_rule(case: Case) -> None:
    before = module(case.body, case.result, case.a)
    after = before.clone()
    text = after.text()
    recorder = Recorder(wants_text=True, wants_missed=True)
    assert apply_rules([RULES[case.rule]], View(after), listener=recorder) == case.times
    assert after.verify() == []
    refused = [r for r in recorder.remarks if r.kind != "applied"]
    assert len(recorder.rewrites) == sum(r.kind == "applied" for r in recorder.remarks) == case.times
    if case.times == 0:
        assert after.text() == text
        told = [r for r in refused if r.kind == case.kind and case.sentence in r.sentence]
        assert told if case.kind else not refused, refused
        return
    assert not case.gone or case.gone not in after.text()
    assert check(before, after).equal


@pytest.mark.parametrize("rule", sorted(SHIPPED))
def test_every_rule_is_seen_to_fire_and_to_stay_away_and_is_documented(rule: str) -> None:
    cases = [c for c in CASES if c.rule == rule]
    assert any(c.times for c in cases), f"add a row to CASES in which {rule} fires"
    assert any(not c.times for c in cases), f"add a row to CASES in which {rule} stays away"
    assert RULES[rule].rule.docs, f"the first doc line of {rule} is its equation"
    golden = Path(__file__).parents[2] / "lit" / "rules" / f"{rule}.mlir"
    assert f"only={rule}}}" in golden.read_text(encoding="utf-8"), f"tests/lit/rules/{rule}.mlir runs {rule}"


def test_unprofitable_rules_fire_when_cost_is_ignored() -> None:
    case = next(c for c in CASES if c.rule == "gather-before-widening" and c.kind == "unprofitable")
    before = module(case.body, case.result)
    after = before.clone()
    assert apply_rules([RULES[case.rule]], View(after), ignore_cost=True) == 1
    assert check(before, after).equal


@pytest.mark.parametrize("case", [c for c in CASES if c.kind == "unprofitable"], ids=lambda case: case.rule)
def test_rules_that_undo_each_other_end_when_cost_is_ignored(case: Case) -> None:
    before = module(case.body, case.result, case.a)
    after = before.clone()
    assert 1 <= apply_rules(list(RULES.values()), View(after), ignore_cost=True) < 10
    assert check(before, after).equal


def test_legality_holds_when_cost_is_ignored() -> None:
    case = next(c for c in CASES if c.rule == "add-of-all-reduces" and c.kind == "blocked")
    assert apply_rules([RULES[case.rule]], View(module(case.body)), ignore_cost=True) == 0


def test_exact_order_blocks_floating_sums_only() -> None:
    body = reduce("p", "a") + reduce("q", "b") + binary("r", "add", "p", "q")
    for kind, times in (("f32", 0), ("i32", 1)):
        target = module(body.replace("f32", kind), f"tensor<4x{kind}>", f"tensor<4x{kind}>")
        view, recorder = View(target), Recorder()
        rules = [RULES["add-of-all-reduces"]]
        context = RuleContext(view, allow_reassociation=False)
        assert apply_rules(rules, view, listener=recorder, context=context) == times
    assert recorder.remarks[0].kind == "applied"


def test_exact_blocks_every_rule_that_is_not() -> None:
    """n · x rounds once, a sum of n equal terms n - 1 times."""
    body = "%c = stablehlo.constant dense<0.1> : tensor<4xf32>\n" + reduce("r", "c")
    for exact, times in ((True, 0), (False, 1)):
        view = View(module(body))
        context = RuleContext(view, allow_reassociation=not exact)
        assert apply_rules([RULES["all-reduce-of-uniform-sum"]], view, context=context) == times


def test_all_rules_together_reach_the_same_module_twice() -> None:
    body = (reduce("p", "a") + reduce("p2", "p", CROSS) + reduce("q", "b") + reduce("q2", "q", CROSS)
            + binary("s", "add", "p2", "q2") + reduce("r", "s", ALONE))
    texts = []
    for _ in range(2):
        before = module(body)
        after = before.clone()
        apply_rules(load("collectives").rules, View(after))
        texts.append(after.text())
        assert check(before, after).equal
    assert texts[0] == texts[1]
    assert texts[0].count("all_reduce") == 1
    assert apply_rules(load("collectives").rules, View(after)) == 0


def test_select_takes_names_and_tags() -> None:
    rules = load("collectives").rules
    assert {r.name for r in select(rules, only=("cleanup",), skip=("permute-to-oneself",))} == {"collective-of-one"}
