"""Two micro-batches at a time: values, what is shared, what is refused and why, and what it takes."""

from __future__ import annotations

import random

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source
from generators.structure.random_micro_batches import random_micro_batches

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.ir import View, channel_number, op_key
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.interleave_micro_batches.interleave_micro_batches import InterleaveMicroBatches, has_pairs
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import named_pipeline
from hlorewrite.passmanager.spec import parse_pipeline

HOME = "hlorewrite.passes.interleave_micro_batches"
PASS, PLAN = f"{HOME}.interleave_micro_batches", f"{HOME}.plan"
CLUSTER, PROGRAMS = "h200:1x4", 60
V, STACK = "tensor<8xf32>", "tensor<3x8xf32>"


def program(seed: int) -> Module:
    """A random accumulation of gradients."""
    return parse(random_micro_batches(random.Random(seed)))


def paired(module: Module) -> bool:
    """Runs the pass whatever it costs."""
    return InterleaveMicroBatches().run(module, PassContext(ignore_cost=True, topology=CLUSTER))


def accumulation(*body: str, trips: int = 4, loss: str = "%after", before: tuple[str, ...] = (),
                 layers: str = "%three") -> Module:
    """Micro-batches through three layers, each with an all-reduce; their results are summed up.

    Args:
      body: lines of the outer loop, between the rows of a micro-batch ``%x`` and its layers; they make ``%h``.
      trips: the number of micro-batches.
      loss: what is added to the loss.
      before: lines before the loop.
      layers: how many layers there are.
    """
    lines = body or (f"%h = stablehlo.tanh %x : {V}",)
    return parse("\n".join((
        "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {",
        f"func.func public @main(%xs: tensor<6x8xf32>, %w: {STACK}) -> {V} {{", *before,
        "%zero = stablehlo.constant dense<0> : tensor<i32>", "%one = stablehlo.constant dense<1> : tensor<i32>",
        "%three = stablehlo.constant dense<3> : tensor<i32>", f"%n = stablehlo.constant dense<{trips}> : tensor<i32>",
        f"%none = stablehlo.constant dense<0.0> : {V}",
        f"%o:2 = stablehlo.while(%i = %zero, %loss = %none) : tensor<i32>, {V} cond {{",
        "%c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "stablehlo.return %c : tensor<i1> } do {",
        "%row = stablehlo.dynamic_slice %xs, %i, %zero, sizes = [1, 8] : "
        "(tensor<6x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
        f"%x = stablehlo.reshape %row : (tensor<1x8xf32>) -> {V}", *lines,
        f"%l:2 = stablehlo.while(%j = %zero, %g = %h) : tensor<i32>, {V} cond {{",
        f"%d = stablehlo.compare LT, %j, {layers} : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "stablehlo.return %d : tensor<i1> } do {",
        "%cut = stablehlo.dynamic_slice %w, %j, %zero, sizes = [1, 8] : "
        f"({STACK}, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>",
        f"%weight = stablehlo.reshape %cut : (tensor<1x8xf32>) -> {V}", f"%m = stablehlo.multiply %g, %weight : {V}",
        m.unique_reduce("%r", "%m", V), "%k = stablehlo.add %j, %one : tensor<i32>",
        f"stablehlo.return %k, %r : tensor<i32>, {V} }}", f"%after = stablehlo.add %loss, %l#1 : {V}",
        "%next = stablehlo.add %i, %one : tensor<i32>", f"stablehlo.return %next, {loss} : tensor<i32>, {V} }}",
        f"return %o#1 : {V} }} }}")))


# ---- values


@pytest.mark.parametrize("block", range(4))
def test_random_programs(block: int) -> None:
    changed = 0
    for seed in range(block, PROGRAMS, 4):
        before = program(seed)
        after = before.clone()
        if paired(after):
            changed += 1
            assert check(before, after, seed=seed).equal, seed
            assert isinstance(validate(before, after), Proved), seed
        assert not after.verify(), seed
    assert changed >= PROGRAMS // 12


@pytest.mark.parametrize("block", range(2))
def test_random_programs_through_the_pipeline(block: int) -> None:
    for seed in range(block, PROGRAMS // 3, 2):
        before = program(seed)
        after = before.clone()
        run_passes(after, parse_pipeline(named_pipeline("pairs")), PassContext(ignore_cost=True, topology=CLUSTER))
        assert check(before, after, seed=seed).equal, seed


def test_a_second_run_changes_nothing() -> None:
    module = accumulation()
    assert paired(module) and not paired(module)


def test_collectives_alternate_and_keep_apart() -> None:
    after, said = m.run(InterleaveMicroBatches(), accumulation(), ignore_cost=True)
    first, second = View(after).ops("stablehlo.all_reduce")
    assert first.block == second.block and channel_number(first) != channel_number(second)
    assert "combiner_key" not in str(first) and "combiner_key" in str(second)
    assert m.count(after, "while") == 2 and m.count(after, "dynamic_slice") == 3  # weights are read once for both
    assert said[0].startswith("applied: its 4 iterations run two at a time, which keeps 32 bytes more: compute waits ")


def test_gathered_weights_are_shared() -> None:
    for seed in range(PROGRAMS):
        before = program(seed)
        after = before.clone()
        paired(after)
        assert m.count(after, "all_gather") == m.count(before, "all_gather"), seed


# ---- conditions

MUTATIONS = {
    "an even number of times": (PASS, "counter.trips < 2 or counter.trips % 2", "counter.trips < 2"),
    "what one iteration needs of the one before": (PLAN, "if len(plan.steps) < len(left):", "if False:"),
    "stacks that are the same": (
        PLAN, "plan = _varying(loop, counter, [op for op in inner if op_key(op) in plan.positions])", "pass"),
    "sums that nothing else reads": (
        PLAN, "if users(carried) == [(total, 1 - readers[0][1])] and", "if"),
    "totals that nothing else reads": (
        PLAN, " and users(total.results[0]) == [(end, carried.arg_number)]:", ":"),
    "sums are sums": (PLAN, 'total.name != "stablehlo.add" or', ""),
    "rows are added": (f"{HOME}.emit", "self.editor.set_operand(update, 1, made.results[0])", "pass"),
    "barriers of what differs": (
        f"{HOME}.emit", "mapping[op.operands[place]] for place", "op.operands[place] for place"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, old, new = MUTATIONS[name]
    pipeline = "interleave-micro-batches"
    replace_source(where, old, new, monkeypatch)
    assert any(m.went_wrong(program(seed), pipeline) for seed in range(4 * PROGRAMS))


COUNTED = ("%many = stablehlo.minimum %i, %three : tensor<i32>", f"%h = stablehlo.tanh %x : {V}")


def test_layers_are_counted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    before = accumulation(*COUNTED, layers="%many")
    _, said = m.run(InterleaveMicroBatches(), before, ignore_cost=True)
    assert said == ["missed: its iterations stay apart: how often a loop in it runs may differ between iterations"]
    replace_source(PLAN, "(trip_count(each) is None or _is_tested(each, plan))", "False", monkeypatch)
    assert m.went_wrong(before, "interleave-micro-batches")


def test_what_a_loop_makes_differs_if_it_runs_differently_often(monkeypatch: pytest.MonkeyPatch) -> None:
    before = accumulation(COUNTED[0], f"%h = stablehlo.cosine %none : {V}", layers="%many")
    _, said = m.run(InterleaveMicroBatches(), before, ignore_cost=True)
    assert said == ["missed: its iterations stay apart: how often a loop in it runs may differ between iterations"]
    replace_source(PLAN, "if inner == loop:", "if inner == loop or op.block == inner.condition:", monkeypatch)
    assert m.went_wrong(before, "interleave-micro-batches")


TOLD = f'%h = stablehlo.custom_call @told(%x) {{has_side_effect = true}} : ({V}) -> {V}'


@pytest.mark.parametrize("module, why", [
    (accumulation(trips=3), "it runs 3 times, not an even number of times"),
    (accumulation(trips=0), "it runs 0 times, not an even number of times"),
    (accumulation(f"%h = stablehlo.add %x, %loss : {V}"),
     "a collective, a product or a loop in it needs what it computes in the iteration before"),
    (accumulation(f"%p = stablehlo.dot_general %x, %loss, contracting_dims = [0] x [0] : ({V}, {V}) -> tensor<f32>",
                  f"%e = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<f32>) -> {V}",
                  f"%h = stablehlo.tanh %x : {V}", loss="%e"),
     "a collective, a product or a loop in it needs what it computes in the iteration before"),
    (accumulation(TOLD), "it runs stablehlo.custom_call"),
], ids=["odd", "none", "chained", "products", "effects"])
def test_reasons(module: Module, why: str) -> None:
    text = module.text()
    assert not has_pairs(module)
    recorder = m.Recorder(wants_missed=True)
    assert not InterleaveMicroBatches().run(module, PassContext((recorder,), topology=CLUSTER, ignore_cost=True))
    assert [each.sentence for each in recorder.remarks] == [f"its iterations stay apart: {why}"]
    assert module.text() == text


def test_layers_of_a_step_are_no_micro_batches() -> None:
    """A loop over layers runs an even number of times, too, but each layer needs the one before."""
    module = accumulation(trips=1)
    module = parse(module.text().replace("dense<3>", "dense<4>"))
    assert not has_pairs(module) and not paired(module)


# ---- what it takes


def test_it_has_to_pay() -> None:
    recorder = m.Recorder(wants_missed=True)
    large = parse(accumulation().text().replace("8xf32", "67108864xf32").replace("sizes = [1, 8]",
                                                                                "sizes = [1, 67108864]"))
    assert InterleaveMicroBatches().run(large.clone(), PassContext((recorder,), topology=CLUSTER))
    assert not InterleaveMicroBatches(min_gain=0.9).run(large.clone(), PassContext((recorder,), topology=CLUSTER))
    assert recorder.remarks[-1].kind == "unprofitable"


def test_memory_is_a_budget() -> None:
    recorder = m.Recorder(wants_missed=True)
    ctx = PassContext((recorder,), topology=CLUSTER, ignore_cost=True, memory_left=31)
    assert not InterleaveMicroBatches().run(accumulation(), ctx) and ctx.memory_refused
    assert recorder.remarks[0].sentence == ("its iterations stay apart: two at a time would keep 32 bytes more, which "
                                            "is more than is left of the memory of this run")
    assert InterleaveMicroBatches().run(accumulation(), PassContext(topology=CLUSTER, ignore_cost=True, memory_left=32))


# ---- proofs

MISTAKES = {
    "another micro-batch": ("stablehlo.add %iterArg, %c_0 : tensor<i32>", "stablehlo.add %iterArg, %c_1 : tensor<i32>"),
    "one micro-batch twice": ("stablehlo.add %iterArg, %c_0 : tensor<i32>", "stablehlo.add %iterArg, %c : tensor<i32>"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_not_proved(name: str) -> None:
    before = accumulation()
    after = before.clone()
    assert paired(after) and isinstance(validate(before, after), Proved)
    old, new = MISTAKES[name]
    assert after.text().count(old) == 1
    wrong = parse(after.text().replace(old, new))
    assert not check(before, wrong).equal and isinstance(validate(before, wrong), Unknown)


def test_pairs_of_an_odd_number_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five micro-batches are not three pairs, whatever is guessed from the texts."""
    before, after = accumulation(trips=5), accumulation(trips=6)
    assert paired(after) and not check(before, after).equal
    assert isinstance(validate(before, after), Unknown)
    validator = "hlorewrite.checks.translation_validation"
    outermost = next(op_key(op) for op in View(before).ops("stablehlo.while"))
    monkeypatch.setattr(f"{validator}.validate.in_pairs", lambda original, result: frozenset((outermost,)))
    assert isinstance(validate(before, after), Unknown)
    after = parse(after.text().replace("dense<6>", "dense<5>"))  # from 0 to 5 in steps of 2
    assert not check(before, after).equal and isinstance(validate(before, after), Unknown)
    monkeypatch.setattr(f"{validator}.program.loops.is_even", lambda graph, predicate: True)
    assert isinstance(validate(before, after), Proved)
