"""Parameters gathered once: what moves, what stays, and that each condition is needed."""

from __future__ import annotations

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.ir.module import Module
from hlorewrite.passes.gather_once import GatherOnce
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

STACK, ROW, SHARD = "tensor<3x2x5xf32>", "tensor<1x2x5xf32>", "tensor<2x5xf32>"
WHOLE = "tensor<8x5xf32>"
SLICE = (f"%row = stablehlo.dynamic_slice %W, %k, %z, %z, sizes = [1, 2, 5] : ({STACK}, tensor<i32>, tensor<i32>, "
         f"tensor<i32>) -> {ROW}  %shard = stablehlo.reshape %row : ({ROW}) -> {SHARD}  ")
DIMS = "hlorewrite.ops.dims"
SOURCE, PASS = "hlorewrite.passes.gather_once.source", "hlorewrite.passes.gather_once.gather_once"


def gather(name: str, operand: str, before: str = SHARD, after: str = WHOLE, dim: int = 0, groups: str = m.ALL) -> str:
    """An all-gather."""
    return (f'{name} = "stablehlo.all_gather"({operand}) <{{all_gather_dim = {dim} : i64, {m.CHANNEL}, '
            f"{m.groups_text(groups)}, use_global_device_ids}}> : ({before}) -> {after}  ")


def loop(result: str, index: str, trips: object, carried: str, body: str, following: str) -> str:
    """A loop that carries a counter, a sum of 8x5 numbers, and a stack."""
    end = (f"stablehlo.maximum {trips}, %one : tensor<i32>" if isinstance(trips, str) else
           f"stablehlo.constant dense<{trips}> : tensor<i32>")
    return (f"%{result}:3 = stablehlo.while(%{index} = %z, %sum_{result} = {carried}, %w_{result} = %{{stack}}) : "
            f"tensor<i32>, {WHOLE}, {STACK} cond {{ "
            f"%end_{result} = {end}  %p_{result} = stablehlo.compare LT, "
            f"%{index}, %end_{result} : (tensor<i32>, tensor<i32>) -> tensor<i1>  stablehlo.return %p_{result} : "
            f"tensor<i1> }} do {{ {body}  %new_{result} = stablehlo.add %sum_{result}, %out_{result} : {WHOLE}  "
            f"%next_{result} = stablehlo.add %{index}, %one : tensor<i32>  stablehlo.return %next_{result}, "
            f"%new_{result}, {following} : tensor<i32>, {WHOLE}, {STACK} }}  ")


def program(inner: str, *, micro_batches: object = 4, after_inner: str = "", following: str = "%w_in",
            extra: str = "") -> Module:
    """Layers in micro-batches: the inner loop reads rows of the stack; its last line defines ``%out_in``."""
    layers = loop("in", "i", 3, "%sum_out", inner.replace("%W", "%w_in").replace("%k", "%i"), following)
    outer = loop("out", "m", micro_batches, "%acc", layers.replace("%{stack}", "%w_out") + after_inner
                 + f"%out_out = stablehlo.tanh %in#1 : {WHOLE}", "%w_out").replace("%{stack}", "%stack")
    return m.module(f"%stack: {STACK}, %acc: {WHOLE}, %n: tensor<i32>", WHOLE,
                    "%z = stablehlo.constant dense<0> : tensor<i32>",
                    "%one = stablehlo.constant dense<1> : tensor<i32>",
                    extra, outer, f"return %out#1 : {WHOLE}")


PLAIN = SLICE + gather("%full", "%shard") + f"%out_in = stablehlo.sine %full : {WHOLE}"
BF16 = (SLICE + "%cast = stablehlo.convert %shard : (tensor<2x5xf32>) -> tensor<2x5xbf16>  "
        + gather("%full", "%cast", "tensor<2x5xbf16>", "tensor<8x5xbf16>")
        + "%out_in = stablehlo.convert %full : (tensor<8x5xbf16>) -> tensor<8x5xf32>")
REMAT = (SLICE + f"%held:2 = stablehlo.optimization_barrier %sum_in, %shard : {WHOLE}, {SHARD}  "
         + gather("%full", "%held#1") + f"%out_in = stablehlo.multiply %full, %held#0 : {WHOLE}")
TRANSPOSED = (SLICE + f"%turned = stablehlo.transpose %shard, dims = [1, 0] : ({SHARD}) -> tensor<5x2xf32>  "
              + gather("%full", "%turned", "tensor<5x2xf32>", "tensor<5x8xf32>", 1)
              + f"%out_in = stablehlo.transpose %full, dims = [1, 0] : (tensor<5x8xf32>) -> {WHOLE}")
STATIC = (f"%row = stablehlo.slice %W [1:2, 0:2, 0:5] : ({STACK}) -> {ROW}  "
          f"%shard = stablehlo.reshape %row : ({ROW}) -> {SHARD}  " + gather("%full", "%shard")
          + f"%out_in = stablehlo.sine %full : {WHOLE}")
PIECES = (f"%rows = stablehlo.slice %W [0:3:2, 0:2, 1:4] : ({STACK}) -> tensor<2x2x3xf32>  "
          + gather("%full", "%rows", "tensor<2x2x3xf32>", "tensor<2x8x3xf32>", 1)
          + "%sum = stablehlo.slice %full [1:2, 0:8, 0:3] : (tensor<2x8x3xf32>) -> tensor<1x8x3xf32>  "
          "%flat = stablehlo.reshape %sum : (tensor<1x8x3xf32>) -> tensor<8x3xf32>  "
          "%nil = stablehlo.constant dense<1.0> : tensor<f32>  "
          "%out_in = stablehlo.pad %flat, %nil, low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<8x3xf32>, "
          f"tensor<f32>) -> {WHOLE}")
TWICE = (SLICE + gather("%a", "%shard") + gather("%b", "%shard") + f"%out_in = stablehlo.multiply %a, %b : {WHOLE}")


def first_gather(holder: Module) -> str:
    """Where the first all-gather of a module is: before or in its loops."""
    text = holder.text()
    return "before" if 0 < text.find("all_gather") < text.index("stablehlo.while") else "in"


def ran(before: Module, budget: int = 1 << 20, pass_: GatherOnce | None = None) -> tuple[Module, list[str]]:
    """The module after the pass, compared by execution and by proof."""
    after, said = m.run(pass_ or GatherOnce(memory_budget=budget), before)
    if after.text() != before.text():
        assert isinstance(validate(before, after), Proved)
    return after, said


@pytest.mark.parametrize("inner", [PLAIN, BF16, REMAT, TRANSPOSED, TWICE, STATIC, PIECES],
                         ids=["plain", "converted", "remat", "transposed", "two readers", "one layer", "strided slice"])
def test_gathered_once(inner: str) -> None:
    after, said = ran(program(inner))
    assert first_gather(after) == "before" and m.count(after, "all_gather") == 1
    assert all(line.startswith("applied: it is gathered once before the loop: ") for line in said)


def test_what_it_says_and_counts() -> None:
    """3 rows of 160 bytes in 4 micro-batches; one row is live at any time before, and three after."""
    _, said = ran(program(PLAIN))
    assert said == ["applied: it is gathered once before the loop: 1920 bytes before, 480 bytes now, and 320 bytes "
                    "more are live during the loop"]


def test_two_loops_read_one_gathered_value() -> None:
    """Forward and backward passes; without an accumulation loop it is gathered once for both."""
    second = loop("in2", "j", 3, "%in#1", PLAIN.replace("%W", "%w_in2").replace("%k", "%j").replace("out_in", "out_in2")
                  .replace("%row", "%row2").replace("%shard", "%shard2").replace("%full", "%full2"), "%w_in2")
    both = program(PLAIN, micro_batches=1, after_inner=second.replace("%{stack}", "%w_out"))
    after, _ = ran(both)
    assert m.count(both, "all_gather") == 2 and m.count(after, "all_gather") == 1


@pytest.mark.parametrize("budget, moves", [(319, False), (320, True)])
def test_it_is_paid_from_the_budget(budget: int, moves: bool) -> None:
    after, said = ran(program(PLAIN), budget)
    assert first_gather(after) == ("before" if moves else "in")
    if not moves:
        assert said == ["unprofitable: it is gathered in each iteration, 1920 bytes in total: gathered once it would "
                        "send 480 bytes and keep 320, but only 319 are left of the memory budget"]


def test_without_a_budget_nothing_is_kept() -> None:
    assert first_gather(ran(program(PLAIN), pass_=GatherOnce())[0]) == "in"
    ctx = PassContext()
    assert not run_passes(program(PLAIN), parse_pipeline("gather-once"), ctx) and ctx.memory_refused


def test_the_run_pays_too() -> None:
    ctx, module = PassContext(memory_left=1000), program(PLAIN)
    assert run_passes(module, parse_pipeline("gather-once"), ctx)
    assert ctx.memory_left == 680 and not ctx.memory_refused


def test_what_saves_most_for_its_memory_comes_first() -> None:
    """Of two stacks with room for one: the one that two loops read."""
    other = f"%other = stablehlo.negate %stack : {STACK}"
    second = loop("in2", "j", 3, "%in#1", (PLAIN + " ").replace("%W", "%other").replace("%k", "%j")
                  .replace("out_in", "out_in2").replace("%row", "%row2").replace("%shard", "%shard2")
                  .replace("%full", "%full2"), "%w_in2").replace("%{stack}", "%w_out")
    third = second.replace("in2", "in3").replace("%in#1", "%in2#1").replace("%j", "%l").replace("2 =", "3 =").replace(
        "%row2", "%row3").replace("%shard2", "%shard3").replace("%full2", "%full3")
    module = program(PLAIN, after_inner=second + third, extra=other)
    after, said = ran(module, 320)
    assert m.count(after, "all_gather") == 2
    assert sum("3840 bytes before" in line for line in said) == 2
    assert sum(line.startswith("unprofitable") for line in said) == 1


@pytest.mark.parametrize("micro_batches", [0, 1])
def test_nothing_is_gathered_once_that_is_gathered_once_already(micro_batches: int) -> None:
    assert first_gather(ran(program(PLAIN, micro_batches=micro_batches))[0]) == "in"


def test_a_loop_of_unknown_count_counts_once() -> None:
    """Then nothing is known to be saved, but for a second reader."""
    assert first_gather(ran(program(PLAIN, micro_batches="%n"))[0]) == "in"
    assert first_gather(ran(program(TWICE, micro_batches="%n"))[0]) == "before"


PID = ("%pid = stablehlo.partition_id : tensor<ui32>  %mine = stablehlo.convert %pid : (tensor<ui32>) -> tensor<i32>  ")
OTHER_INDEX = PID + "%k2 = stablehlo.add %i, %mine : tensor<i32>  " + PLAIN.replace("%k", "%k2")
CHANGES = (PLAIN + f"  %less = stablehlo.negate %W : {STACK}", "%less")
ALONG = (f"%row = stablehlo.dynamic_slice %W, %z, %k, %z, sizes = [3, 1, 5] : ({STACK}, tensor<i32>, tensor<i32>, "
         "tensor<i32>) -> tensor<3x1x5xf32>  "
         + gather("%full", "%row", "tensor<3x1x5xf32>", "tensor<3x4x5xf32>", 1)
         + "%flat = stablehlo.slice %full [0:2, 0:4, 0:5] : (tensor<3x4x5xf32>) -> tensor<2x4x5xf32>  "
         f"%out_in = stablehlo.reshape %flat : (tensor<2x4x5xf32>) -> {WHOLE}")
MIXED = (f"%row = stablehlo.dynamic_slice %W, %k, %z, %z, sizes = [1, 2, 5] : ({STACK}, tensor<i32>, tensor<i32>, "
         f"tensor<i32>) -> {ROW}  %shard = stablehlo.reshape %row : ({ROW}) -> tensor<5x2xf32>  "
         + gather("%full", "%shard", "tensor<5x2xf32>", "tensor<5x8xf32>", 1)
         + f"%out_in = stablehlo.reshape %full : (tensor<5x8xf32>) -> {WHOLE}")
BRANCH = (SLICE + "%odd = stablehlo.compare EQ, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>  "
          f'%out_in = "stablehlo.if"(%odd) ({{ {gather("%full", "%shard")} stablehlo.return %full : {WHOLE} }}, '
          f"{{ stablehlo.return %sum_in : {WHOLE} }}) : (tensor<i1>) -> {WHOLE}")


@pytest.mark.parametrize("before, why", [
    (program(OTHER_INDEX), "the index of a slice of it may differ between the devices of a group"),
    (program(CHANGES[0], following=CHANGES[1]), "changes from iteration to iteration"),
    (program(ALONG), "changes the dimension along which it gathers"),
    (program(MIXED), "changes the dimension along which it gathers"),
], ids=["another row on each device", "the stack changes", "a slice of the gathered dimension", "dimensions mixed"])
def test_it_stays(before: Module, why: str) -> None:
    after, said = ran(before)
    assert first_gather(after) == "in" and any(why in line for line in said), said


def test_what_only_one_branch_gathers_stays() -> None:
    assert first_gather(ran(program(BRANCH))[0]) == "in"


CONDITIONS = {
    "the index is equal on a group": (SOURCE, "if op.name in SLICES and not all(is_equal(index)",
                                      "if False and not all(is_equal(index)", OTHER_INDEX, "%w_in"),
    "the loop does not change it": (SOURCE, "if not Loop(owner).keeps(position):", "if False:", *CHANGES),
    "a slice takes the gathered dimension whole": (
        DIMS, "if position or shape_of(op.operands[0])[dimension] != shape_of(op.results[0])[dimension]:",
        "if position:", ALONG, "%w_in"),
    "a static slice takes the gathered dimension whole": (
        DIMS, "if position or shape_of(op.operands[0])[dimension] != shape_of(op.results[0])[dimension]:",
        "if position:", ALONG.replace("dynamic_slice %W, %z, %k, %z, sizes = [3, 1, 5]", "slice %W [0:3, 1:2, 0:5]")
        .replace(f"({STACK}, tensor<i32>, tensor<i32>, tensor<i32>)", f"({STACK})"), "%w_in"),
    "a reshape keeps the gathered dimension": (
        DIMS, "if same and math.prod(target[:place]) == before:", "if same:", MIXED, "%w_in"),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, old, new, inner, following = CONDITIONS[name]
    before = program(inner, following=following)
    assert not m.went_wrong(before, "gather-once{memory-budget=1GiB}")
    replace_source(where, old, new, monkeypatch)
    assert m.went_wrong(before, "gather-once{memory-budget=1GiB}")


def test_only_loops_that_gather_in_every_iteration_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gather in a branch that never runs would be sent for nothing."""
    before = program(BRANCH)
    replace_source(SOURCE, 'if outer is None or outer.operation.name != "stablehlo.while" or inner.block != '
                           "Loop(outer.operation).body:", "if outer is None:", monkeypatch)
    after, _ = m.run(GatherOnce(memory_budget=1 << 20), before)
    assert first_gather(after) == "before"


def test_a_second_run_finds_nothing() -> None:
    module = program(PLAIN)
    assert run_passes(module, parse_pipeline("gather-once"), PassContext(memory_left=1 << 20))
    assert not run_passes(module, parse_pipeline("gather-once"), PassContext(memory_left=1 << 20))
