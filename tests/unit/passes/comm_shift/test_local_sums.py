"""What deferred reduce-scatters leave in loops: one copy of the local sums, and no zeros."""

from __future__ import annotations

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.module import Module
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import View
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passes.common.zero_iter_args import drop_carried_zeros
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

X, SHARD, ROW = "tensor<8x3xf32>", "tensor<2x3xf32>", "tensor<1x2x3xf32>"
STACK, WHOLE = "tensor<2x2x3xf32>", "tensor<2x8x3xf32>"
REDUCER = "({ ^bb0(%l: tensor<f32>, %r: tensor<f32>): %s = stablehlo.add %l, %r : tensor<f32> stablehlo.return %s : " \
          "tensor<f32> })"
SCATTERED = (f'%g = "stablehlo.reduce_scatter"(%x) <{{scatter_dimension = 0 : i64, {m.CHANNEL}, '
             f"{m.groups_text(m.ALL)}, use_global_device_ids}}> {REDUCER} : ({X}) -> {SHARD}")


def loop(name: str, trips: int, others: str, types: str, body: str, yields: str) -> str:
    """A counted loop: ``%i_name`` counts."""
    return (f"%{name} = stablehlo.while(%i_{name} = %c0, {others}) : tensor<i32>, {types} cond {{ "
            f"%n_{name} = stablehlo.constant dense<{trips}> : tensor<i32> %p_{name} = stablehlo.compare LT, %i_{name}, "
            f"%n_{name} : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p_{name} : tensor<i1> }} do {{ "
            f"{body} %j_{name} = stablehlo.add %i_{name}, %c1 : tensor<i32> stablehlo.return %j_{name}, {yields} : "
            f"tensor<i32>, {types} }} ")


def step(*, index: str = "%i_in", init: str = "0.0", after: str = "", base: str = "%acc", then: str = "",
         total: str = "%sum") -> Module:
    """Three micro-batches of two layers; each layer's gradient is scattered, stacked, and added to the sums."""
    row = (f"%scale = stablehlo.convert %i_in : (tensor<i32>) -> tensor<f32> "
           f"%wide = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> {X} "
           f"%x = stablehlo.add %w, %wide : {X} {SCATTERED} "
           f"%row = stablehlo.reshape %g : ({SHARD}) -> {ROW} "
           f"%rows = stablehlo.dynamic_update_slice %stack, %row, {index}, %c0, %c0 : ({STACK}, {ROW}, tensor<i32>, "
           f"tensor<i32>, tensor<i32>) -> {STACK}")
    layers = loop("in:2", 2, "%stack = %zeros", STACK, row, "%rows").replace("_in:2", "_in")
    sums = f"{layers} {after} %sum = stablehlo.add {base}, %in#1 : {STACK} {then}"
    outer = loop("out:2", 3, "%acc = %start", STACK, sums, total).replace("_out:2", "_out")
    return m.module(f"%w: {X}", STACK, "%c0 = stablehlo.constant dense<0> : tensor<i32>",
                    "%c1 = stablehlo.constant dense<1> : tensor<i32>",
                    f"%zeros = stablehlo.constant dense<0.0> : {STACK}",
                    f"%start = stablehlo.constant dense<{init}> : {STACK}",
                    outer, f"return %out#1 : {STACK}")


def deferred(before: Module) -> tuple[Module, list[str]]:
    """The module with its reduce-scatter after the loops, compared by execution."""
    after, said = m.run(CommShift(memory_budget=1 << 20), before)
    text = after.text()
    assert text.rindex("stablehlo.while") < text.index("reduce_scatter"), "it is deferred out of both loops"
    return after, said


def carried(module: Module, type_: str) -> list[int]:
    """How many values of a type each loop carries and changes, the inner loop last."""
    loops = [Loop(op) for op in View(module).ops("stablehlo.while")]
    return sorted(sum(str(argument.type) == type_ and argument != value for argument, value in
                      zip(loop.body.arguments, loop.yields, strict=True)) for loop in loops)


def test_one_copy_of_the_sums_and_no_zeros() -> None:
    after, said = deferred(step())
    assert carried(after, WHOLE) == [1, 1] and carried(after, STACK) == [0, 0]
    assert "stablehlo.dynamic_slice" in after.text()
    assert any("for 192 bytes of local sums" in line for line in said), said


@pytest.mark.parametrize("number, kept", [("2.0", False), ("1.0e-4", False), ("0.0", True), ("1.0e-20", True),
                                          ("-2.0", True)])
def test_zeros_stay_zeros_when_they_are_scaled(number: str, kept: bool) -> None:
    """By what is neither zero nor infinite in any type it may be converted to."""
    after = step(**scaled(number))
    assert run_passes(after, parse_pipeline("comm-shift{memory-budget=1GiB}"), PassContext())
    assert (sum(carried(after, STACK)) > 0) == kept


def scaled(number: str) -> dict[str, str]:
    """The sums are divided in each micro-batch."""
    return {"then": f"%by = stablehlo.constant dense<{number}> : {STACK} %even = stablehlo.divide %sum, %by : {STACK}",
            "total": "%even"}


def test_sums_that_do_not_start_as_zeros_are_kept() -> None:
    """The sharded addend is not zero: the outer loop carries it, and the inner one what it stacks of it."""
    after, _ = deferred(step(init="1.0"))
    assert carried(after, WHOLE) == [1, 1] and sum(carried(after, STACK)) > 0


@pytest.mark.parametrize("before", [
    step(index="%c0"),
    step(after=f"%twice = stablehlo.add %in#1, %in#1 : {STACK}", base="%twice"),
], ids=["one row is written twice", "the stack is read twice"])
def test_a_stack_stays_that_cannot_start_as_the_sums(before: Module) -> None:
    after, said = deferred(before)
    assert "stablehlo.dynamic_slice" not in after.text()
    assert any("for 384 bytes of local sums" in line or "for 576 bytes" in line for line in said), said


@pytest.mark.parametrize("old, new, changes", [
    ("readers = users(loop.op.results[stack.position])", "readers = users(loop.op.results[stack.position])[-1:]",
     {"then": f"%more = stablehlo.add %sum, %in#1 : {STACK}", "total": "%more"}),
    ("if users(base) == [(add, 1 - number)] and _precedes(base, loop.op) else None", "",
     {"after": f"%late = stablehlo.add %acc, %acc : {STACK}", "base": "%late"}),
])
def test_conditions_of_sums_in_place(old: str, new: str, changes: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    before = step(**changes)
    assert not m.went_wrong(before, "comm-shift{memory-budget=1GiB}")
    replace_source("hlorewrite.passes.comm_shift.in_place", old, new, monkeypatch)
    assert m.went_wrong(before, "comm-shift{memory-budget=1GiB}")


@pytest.mark.parametrize("old, new, changes", [
    ("and self.is_zero(op.operands[position])}", "}", {"init": "1.0"}),
])
def test_conditions_of_carried_zeros(old: str, new: str, changes: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    before = step(**changes)
    assert not m.went_wrong(before, "comm-shift{memory-budget=1GiB}")
    replace_source("hlorewrite.passes.common.zero_iter_args", old, new, monkeypatch)
    assert m.went_wrong(before, "comm-shift{memory-budget=1GiB}")


def test_hybrid_sharding_reduces_across_hosts_once() -> None:
    """HSDP: scattered within pairs in each micro-batch, and summed across pairs once, without memory."""
    shard = "tensor<4x3xf32>"
    scatter = (f'%g = "stablehlo.reduce_scatter"(%x) <{{scatter_dimension = 0 : i64, {m.CHANNEL}, '
               f"{m.groups_text(m.PAIRS)}, use_global_device_ids}}> {REDUCER} : ({X}) -> {shard}")
    body = (f"%scale = stablehlo.convert %i_out : (tensor<i32>) -> tensor<f32> "
            f"%wide = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> {X} "
            f"%x = stablehlo.add %w, %wide : {X} {scatter} "
            f"{m.reduce('%all', '%g', shard, groups='[[0, 2], [1, 3]]')} %sum = stablehlo.add %acc, %all : {shard}")
    steps = loop("out:2", 3, "%acc = %start", shard, body, "%sum").replace("_out:2", "_out")
    before = m.module(f"%w: {X}", shard, "%c0 = stablehlo.constant dense<0> : tensor<i32>",
                      "%c1 = stablehlo.constant dense<1> : tensor<i32>",
                      f"%start = stablehlo.constant dense<0.0> : {shard}", steps, f"return %out#1 : {shard}")
    after, _ = m.run(CommShift(memory_budget=0), before)
    view = View(after)
    around = {name: view.ops(f"stablehlo.{name}")[0].parent.operation.name for name in ("reduce_scatter", "all_reduce")}
    assert around == {"reduce_scatter": "stablehlo.while", "all_reduce": "func.func"}
    assert carried(after, X) == [0] and carried(after, shard) == [1]


PAIR, FOUR = "tensor<2xf32>", "tensor<4xf32>"


@pytest.mark.parametrize("body, dropped", [
    (f"%p = stablehlo.slice %v [0:2] : ({FOUR}) -> {PAIR} "
     f"%n = stablehlo.concatenate %p, %none, %p, dim = 0 : ({PAIR}, tensor<0xf32>, {PAIR}) -> {FOUR}", 1),
    (f"%p = stablehlo.slice %v [0:2] : ({FOUR}) -> {PAIR} "
     f"%n = stablehlo.concatenate %p, %ones, dim = 0 : ({PAIR}, {PAIR}) -> {FOUR}", 0),
    (f"%p = stablehlo.slice %v [0:2] : ({FOUR}) -> {PAIR} "
     f"%n = stablehlo.pad %p, %nil, low = [1], high = [1], interior = [0] : ({PAIR}, tensor<f32>) -> {FOUR}", 1),
    (f"%p = stablehlo.slice %v [0:2] : ({FOUR}) -> {PAIR} "
     f"%n = stablehlo.pad %p, %one, low = [1], high = [1], interior = [0] : ({PAIR}, tensor<f32>) -> {FOUR}", 0),
    (f"%n = stablehlo.divide %zeros, %v : {FOUR}", 0),
    (f"%two = stablehlo.constant dense<2.0> : {FOUR} %n = stablehlo.multiply %v, %two : {FOUR}", 1),
    (f"%n = stablehlo.cosine %v : {FOUR}", 0),
], ids=["put together", "with ones", "padded", "padded by ones", "over zeros", "doubled", "of another op"])
def test_what_zeros_become(body: str, dropped: int) -> None:
    """Together with a second value, so that the loop stays."""
    made = {"zeros": ("0.0", FOUR), "ones": ("1.0", PAIR), "nil": ("0.0", "tensor<f32>"), "one": ("1.0", "tensor<f32>"),
             "c0": ("0", "tensor<i32>"), "c1": ("1", "tensor<i32>"), "none": ("", "tensor<0xf32>")}
    constants = [f"%{name} = stablehlo.constant dense<{number}> : {type_}" for name, (number, type_) in made.items()]
    around = loop("l:3", 3, "%v = %zeros, %x = %a", f"{FOUR}, {FOUR}", f"{body} %y = stablehlo.add %x, %v : {FOUR}",
                  "%n, %y").replace("_l:3", "_l")
    holder = m.module(f"%a: {FOUR}", f"({FOUR}, {FOUR})", *constants, around, f"return %l#1, %l#2 : {FOUR}, {FOUR}")
    after = holder.clone()
    view = View(after)
    assert drop_carried_zeros(view, Editor(view)) == dropped
    assert not after.verify() and check(holder, after).equal
