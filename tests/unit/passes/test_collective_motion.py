"""Duplicate, dead and loop-invariant collectives, and all-reduces split by host."""

from __future__ import annotations

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source

from hlorewrite.passes.collective_cse import CollectiveCse
from hlorewrite.passes.hierarchical_all_reduce import HierarchicalAllReduce
from hlorewrite.passes.hoist_collectives import HoistCollectives
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

T = "tensor<8xf32>"


def returning(*lines: str, values: str = "%x, %y", functions: str = ""):
    """A module with two arguments that returns two values."""
    return m.module(f"%a: {T}, %b: {T}", f"({T}, {T})", *lines, f"return {values} : {T}, {T}", functions=functions)


def function(name: str, *lines: str, value: str = "%s") -> str:
    """A private function with one argument."""
    body = "\n  ".join(lines)
    return f"func.func private @{name}(%p: {T}) -> {T} {{\n  {body}\n  return {value} : {T}\n}}\n"


@pytest.mark.parametrize("before, left", [
    (returning(m.reduce("%x", "%a"), m.reduce("%y", "%a")), 1),
    (returning(f"%m = stablehlo.negate %a : {T}", f"%n = stablehlo.negate %a : {T}", m.reduce("%x", "%m"),
               m.reduce("%y", "%n")), 1),
    (returning(m.reduce("%x", "%a"), f"%y = call @f(%a) : ({T}) -> {T}",
               functions=function("f", m.reduce("%s", "%p"))), 1),
    (returning(f"%x = call @f(%a) : ({T}) -> {T}", f"%y = call @f(%a) : ({T}) -> {T}",
               functions=function("f", m.reduce("%s", "%p"))), 1),
    (returning(m.reduce("%z", "%a"), m.reduce("%x", "%b"), values="%x, %a"), 1),
    (returning(m.reduce("%x", "%a"), m.reduce("%y", "%b")), 2),
    (returning(m.reduce("%x", "%a"), m.reduce("%y", "%a", op="maximum")), 2),
    (returning(m.reduce("%x", "%a"), m.reduce("%y", "%a", groups=m.PAIRS)), 2),
    (returning(f"%m = stablehlo.custom_call @g(%a) : ({T}) -> {T}", f"%n = stablehlo.custom_call @g(%a) : ({T}) -> {T}",
               m.reduce("%x", "%a"), m.reduce("%w", "%m"), m.reduce("%y", "%n"), values="%w, %y"), 2),
])
def test_duplicates(before, left: int) -> None:
    text = before.text()
    if "custom_call" in text:  # the interpreter does not know @g
        CollectiveCse().run(before, PassContext())
        assert m.count(before, "all_reduce") == left
        return
    assert m.count(m.run(CollectiveCse(), before)[0], "all_reduce") == left


def nested(levels: int, innermost: str):
    """Two calls of a function with other operands; the op stands some functions further in."""
    functions = "".join(function(f"f{i}", f"%s = call @f{i + 1}(%p) : ({T}) -> {T}") for i in range(levels))
    return m.module(f"%a: {T}, %b: {T}", f"({T}, {T})", f"%x = call @f0(%a) : ({T}) -> {T}",
                    f"%y = call @f0(%b) : ({T}) -> {T}", m.reduce("%u", "%x"), m.reduce("%v", "%y"),
                    f"return %u, %v : {T}, {T}", functions=functions + function(f"f{levels}", innermost))


@pytest.mark.parametrize("levels, op", [(0, "tanh"), (2, "tanh"), (4, "tanh"), (9, "tanh"), (0, "optimization_barrier"),
                                        (1, "optimization_barrier"), (3, "optimization_barrier")])
def test_calls_with_other_operands_stay(levels: int, op: str) -> None:
    """Also where the called function calls one that is not numbered: its result has one number, whatever it takes."""
    before = nested(levels, f"%s = stablehlo.{op} %p : {T}")
    assert m.count(m.run(CollectiveCse(), before)[0], "all_reduce") == 2


@pytest.mark.parametrize("levels, op", [(1, "optimization_barrier"), (5, "tanh")])
def test_a_result_that_is_not_numbered_has_another_number_in_each_call(levels: int, op: str,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    before = nested(levels, f"%s = stablehlo.{op} %p : {T}")
    replace_source("hlorewrite.passes.common.value_numbers", "known[result] = self._new()",
                   "known[result] = self._number((result,))", monkeypatch)
    assert m.went_wrong(before, "collective-cse")


def test_one_branch_does_not_serve_the_other() -> None:
    before = m.module(f"%a: {T}, %p: tensor<i1>", T, f'%y = "stablehlo.if"(%p) ({{ {m.reduce("%u", "%a")} '
                      f'stablehlo.return %u : {T} }}, {{ {m.reduce("%v", "%a")} %n = stablehlo.negate %v : {T} '
                      f"stablehlo.return %n : {T} }}) : (tensor<i1>) -> {T}", f"return %y : {T}")
    assert m.count(m.run(CollectiveCse(), before)[0], "all_reduce") == 2


def loop(body: str, *, carried: str = "%v", trips: str = "dense<3>", following: str = "%u"):
    """A loop over %i that carries %v (from %a) and %w (from %b)."""
    return m.module(f"%a: {T}, %b: {T}, %n: tensor<i32>", f"({T}, {T})",
                    "%c = stablehlo.constant dense<0> : tensor<i32>", f"%t = stablehlo.constant {trips} : tensor<i32>",
                    f"%r:3 = stablehlo.while(%i = %c, %v = %a, %w = %b) : tensor<i32>, {T}, {T} cond {{ "
                    "%p = stablehlo.compare LT, %i, %t, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> "
                    "stablehlo.return %p : tensor<i1> } do { %one = stablehlo.constant dense<1> : tensor<i32> "
                    f"%j = stablehlo.add %i, %one : tensor<i32>  {body}  %u = stablehlo.add %v, %s : {T} "
                    f"stablehlo.return %j, %u, {following} : tensor<i32>, {T}, {T} }}", f"return %r#1, %r#2 : {T}, {T}")


INVARIANT = f"%n2 = stablehlo.negate %w : {T}  " + m.reduce("%s", "%n2")


def place(holder) -> bool:
    """Whether the all-reduce precedes the loop."""
    return holder.text().index("all_reduce") < holder.text().index("stablehlo.while")


def test_hoisted() -> None:
    after, said = m.run(HoistCollectives(), loop(INVARIANT, following="%w"))
    assert place(after)
    assert "runs once, not 3 times" in said[0]


@pytest.mark.parametrize("before", [
    loop(INVARIANT), loop(INVARIANT, following="%w", trips="dense<1>"),
    loop(m.reduce("%s", "%v"), following="%w")], ids=["changes", "one trip", "carried"])
def test_not_hoisted(before) -> None:
    assert not place(m.run(HoistCollectives(), before)[0])


def barred(*held: str, reads: int, mark: str = "") -> str:
    """A barrier that contains values, and the sum of what is made of one of its results."""
    types = ", ".join([T] * len(held))
    return (f"%d = stablehlo.negate %v : {T}  %k:{len(held)} = stablehlo.optimization_barrier{mark} "
            f"{', '.join(held)} : {types}  %n2 = stablehlo.negate %k#{reads} : {T}  " + m.reduce("%s", "%n2"))


def test_a_barrier_holds_other_values_too() -> None:
    """As in rematerialised layers: each result is taken for its own operand."""
    before = loop(barred("%d", "%w", reads=1), following="%w")
    assert not place(m.run(HoistCollectives(), before)[0])
    after, _ = m.run(HoistCollectives(barriers=True), before)
    assert place(after)
    assert "optimization_barrier" in after.text()


@pytest.mark.parametrize("before", [
    loop(barred("%d", "%w", reads=0), following="%w"), loop(barred("%v", "%w", reads=0), following="%w"),
    loop(barred("%w", reads=0, mark=" {hlorewrite.mark = {}}"), following="%w")
], ids=["computed", "carried", "marked"])
def test_what_changes_stays_after_a_barrier(before) -> None:
    assert not place(m.run(HoistCollectives(barriers=True), before)[0])


def test_large_gathers_stay_in_the_loop() -> None:
    gathered = "tensor<32xf32>"
    body = (f'%g = "stablehlo.all_gather"(%w) <{{all_gather_dim = 0 : i64, {m.CHANNEL}, {m.groups_text(m.ALL)}, '
            f"use_global_device_ids}}> : ({T}) -> {gathered}  %s = stablehlo.slice %g [0:8] : ({gathered}) -> {T}")
    after, said = m.run(HoistCollectives(most_bytes=64), loop(body, following="%w"))
    assert after.text().index("all_gather") > after.text().index("stablehlo.while")
    assert "96 bytes more" in said[0]
    assert m.run(HoistCollectives(), loop(body, following="%w"))[0].text().index("all_gather") < 900


@pytest.mark.parametrize("kind", ["tensor<8xf32>", "tensor<3x5xf32>", "tensor<f32>"])
@pytest.mark.parametrize("op", ["add", "maximum"])
def test_split_by_host(kind: str, op: str) -> None:
    """Also where the GPUs of a host do not divide the elements."""
    before = m.module(f"%a: {kind}", kind, m.reduce("%x", "%a", kind, op=op), f"return %x : {kind}")
    after, _ = m.run(HierarchicalAllReduce(), before, topology="h200:2x2", ignore_cost=True)
    assert [m.count(after, n) for n in ("reduce_scatter", "all_reduce", "all_gather")] == [1, 1, 1]


@pytest.mark.parametrize("groups, topology, why", [
    (m.ALL, "h200:1x4", "do not span several hosts"), (m.PAIRS, "h200:2x2", "do not span several hosts"),
    ("[[0, 2], [1, 3]]", "h200:2x2", "several members on each"), (m.ALL, "", "no topology was named"),
    (m.ALL, "h200:2x2", "unprofitable: in one call it takes")])
def test_not_split(groups: str, topology: str, why: str) -> None:
    before = m.module(f"%a: {T}", T, m.reduce("%x", "%a", groups=groups), f"return %x : {T}")
    after, said = m.run(HierarchicalAllReduce(), before, topology=topology)
    assert m.count(after, "reduce_scatter") == 0
    assert any(why in line for line in said), said


def test_comm_is_stable() -> None:
    """The named pipeline finds nothing in what it made."""
    module = returning(m.reduce("%x", "%a"), m.reduce("%z", "%a"), m.reduce("%w", "%b"),
                       f"%y = stablehlo.add %w, %z : {T}")
    passes = parse_pipeline("comm")
    assert run_passes(module, passes, PassContext(topology="h200:1x4"))
    text = module.text()
    run_passes(module, passes, PassContext(topology="h200:1x4"))
    assert module.text() == text


@pytest.mark.parametrize("between, merged", [("stablehlo.tanh %a", True), ("stablehlo.negate %a", False)])
def test_equal_operands_from_equal_ops_far_apart_are_merged(between: str, merged: bool) -> None:
    """Operands are two ops that compute the same: MLIR's cse, which decides whether to look closer, sees it too."""
    before = m.module(f"%a: {T}", f"({T}, {T})", f"%x = stablehlo.tanh %a : {T}", f"%y = {between} : {T}",
                      m.reduce("%p", "%x"), m.reduce("%q", "%y"), f"return %p, %q : {T}, {T}")
    after, _ = m.run(CollectiveCse(), before)
    assert m.count(after, "all_reduce") == (1 if merged else 2)
