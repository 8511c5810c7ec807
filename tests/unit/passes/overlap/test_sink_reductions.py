"""Reductions of what a loop stacks, moved into the loop: where it is legal, what it leaves alone, what it costs."""

from __future__ import annotations

import fusion_modules as m
import pytest
from fusion_modules import went_wrong
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.module import Module
from hlorewrite.passes.comm_shift.comm_shift import CommShift
from hlorewrite.passes.common.overlap_model import OVERLAPPED
from hlorewrite.passes.sink_reductions.sink_reductions import SinkReductions
from hlorewrite.passmanager.base import PassContext
from hlorewrite.rules.listener import Recorder

X, S, ROW = "tensor<8xf32>", "tensor<3x8xf32>", "tensor<1x8xf32>"
UPDATE = f"%r2 = stablehlo.dynamic_update_slice %rows, %g, %at, %z : ({S}, {ROW}, tensor<i32>, tensor<i32>) -> {S}"


def stacking(*, at: str = "%at = stablehlo.subtract %two, %i : tensor<i32>", update: str = UPDATE, bound: object = 3,
             condition: str = "", inside: str = "",
             between: str = f"%mean = stablehlo.divide %o#2, %four : {S}\n  %sum = stablehlo.add %acc, %mean : {S}",
             reduced: str = "%sum", op: str = "add", behind: str = "", results: str = f"({S}, {X})",
             returned: str = f"return %r, %o#1 : {S}, {X}", arguments: str = "", limit: str = "%bound",
             functions: str = "", wide: str = "") -> Module:
    """``AR(acc + rows / 4)`` after a loop that stacks its rows from the last to the first."""
    return m.module(f"%x: {X}, %w: {S}, %acc: {S}{arguments}", results, f"""
  %zeros = stablehlo.constant dense<0.0> : {S}
  %four = stablehlo.constant dense<4.0> : {S}
  %start = stablehlo.constant dense<0> : tensor<i32>
  %bound = stablehlo.constant dense<{bound}> : tensor<i32>
  %step = stablehlo.constant dense<1> : tensor<i32>
  %o:3 = stablehlo.while(%i = %start, %h = %x, %rows = %zeros) : tensor<i32>, {X}, {S}
  cond {{
    {condition}
    %more = stablehlo.compare LT, %i, {limit} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %z = stablehlo.constant dense<0> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    {at}
    %wi = stablehlo.dynamic_slice %w, %at, %z, sizes = [1, 8] : ({S}, tensor<i32>, tensor<i32>) -> {ROW}
    %wr = stablehlo.reshape %wi : ({ROW}) -> {X}
    %h2 = stablehlo.multiply %h, %wr : {X}
    %g = stablehlo.reshape %h2 : ({X}) -> {ROW}
    {inside}
    {update}
    %next = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %next, %h2, %r2 : tensor<i32>, {X}, {S}
  }}
  {between}""", m.reduce("%r", reduced, wide or S, op=op), behind, returned, functions=functions)


def sunk(before: Module, *, ignore_cost: bool = True) -> tuple[Module, bool, list[str]]:
    """The module after the pass, whether it changed, and what was said."""
    after, recorder = before.clone(), Recorder(wants_missed=True)
    changed = SinkReductions().run(after, PassContext(listeners=(recorder,), ignore_cost=ignore_cost,
                                                      topology="h200:1x4"))
    assert not after.verify()
    return after, changed, [f"{remark.kind}: {remark.sentence}" for remark in recorder.remarks]


LEGAL = {
    "from the last row": stacking(),
    "from the first row": stacking(at="%at = stablehlo.add %i, %z : tensor<i32>"),
    "an index that is computed": stacking(at=(
        "%one = stablehlo.constant dense<1> : tensor<i32>\n%three = stablehlo.constant dense<3> : tensor<i32>\n"
        "%on = stablehlo.add %i, %one : tensor<i32>\n%at = stablehlo.remainder %on, %three : tensor<i32>")),
    "the rows alone": stacking(between="", reduced="%o#2"),
    "a maximum": stacking(between="", reduced="%o#2", op="maximum"),
    "a constant first": stacking(between=f"%mean = stablehlo.subtract %four, %o#2 : {S}", reduced="%mean"),
    "two tensors beside": stacking(between=f"%p = stablehlo.multiply %w, %o#2 : {S}\n%q = stablehlo.add %p, %acc : {S}",
                                   reduced="%q"),
    "one tensor twice": stacking(between=f"%p = stablehlo.multiply %acc, %o#2 : {S}\n%q = stablehlo.add %p, %acc : {S}",
                                 reduced="%q"),
    "a scalar argument": stacking(
        arguments=", %k: tensor<f32>", reduced="%p",
        between=f"%b = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<f32>) -> {S}\n"
                f"%p = stablehlo.multiply %b, %o#2 : {S}"),
    "one element of rank one": stacking(
        arguments=", %k: tensor<1xf32>", reduced="%p",
        between=f"%b = stablehlo.broadcast_in_dim %k, dims = [1] : (tensor<1xf32>) -> {S}\n"
                f"%p = stablehlo.multiply %b, %o#2 : {S}"),
    "there and back": stacking(
        between="%n = stablehlo.convert %o#2 : (tensor<3x8xf32>) -> tensor<3x8xf64>\n"
                "%p = stablehlo.convert %n : (tensor<3x8xf64>) -> tensor<3x8xf32>", reduced="%p"),
}


@pytest.mark.parametrize("what", LEGAL)
def test_it_moves_with_equal_values(what: str) -> None:
    """The reduction stands in the loop; each device adds the same numbers in the same order."""
    after, changed, said = sunk(LEGAL[what])
    text = after.text()
    assert changed and said[0].startswith("applied: 1 reductions of what it stacks go into it")
    assert text.count("all_reduce") == 1
    assert "(tensor<1x8xf32>) -> tensor<1x8xf32>" in text and OVERLAPPED in text
    compared = check(LEGAL[what], after)
    assert compared.equal and all(row.absolute == 0 for row in compared.rows)


def test_the_sums_of_earlier_micro_batches_are_replaced_in_place() -> None:
    """The stacked tensor starts as what is added to it, so the zeros go and no second tensor lives next to it."""
    text = sunk(stacking())[0].text()
    assert "%iterArg_7 = %arg2" in text or "= %arg2" in text.partition("stablehlo.while(")[2].partition(")")[0]


ILLEGAL = {
    "one row twice": stacking(at="%at = stablehlo.minimum %i, %step : tensor<i32>"),
    "rows left out": stacking(bound=2),
    "rows written again": stacking(bound=6, at="%three = stablehlo.constant dense<3> : tensor<i32>\n"
                                             "%at = stablehlo.remainder %i, %three : tensor<i32>"),
    "an index that differs between devices": stacking(
        at="%p = stablehlo.partition_id : tensor<ui32>\n%at = stablehlo.convert %p : (tensor<ui32>) -> tensor<i32>"),
    "an unknown trip count": stacking(arguments=", %n: tensor<i32>", limit="%n"),
    "read in the loop": stacking(
        update=UPDATE.replace("%g", "%both"),
        inside=f"%old = stablehlo.dynamic_slice %rows, %z, %z, sizes = [1, 8] : ({S}, tensor<i32>, tensor<i32>) "
               f"-> {ROW}\n"
               f"%both = stablehlo.add %old, %g : {ROW}"),
    "read by the condition": stacking(
        condition=f"%c0 = stablehlo.constant dense<0> : tensor<i32>\n%look = stablehlo.dynamic_slice %rows, %c0, %c0, "
                  f"sizes = [1, 8] : ({S}, tensor<i32>, tensor<i32>) -> {ROW}"),
    "updated and changed": stacking(update=UPDATE.replace("%r2", "%r1") + f"\n%r2 = stablehlo.negate %r1 : {S}"),
    "read after the loop too": stacking(results=f"({S}, {S})", returned=f"return %r, %o#2 : {S}, {S}"),
    "a step read twice": stacking(results=f"({S}, {S})", returned=f"return %r, %mean : {S}, {S}"),
    "another element type": stacking(
        between="%n = stablehlo.convert %o#2 : (tensor<3x8xf32>) -> tensor<3x8xf64>", reduced="%n",
        wide="tensor<3x8xf64>", results=f"(tensor<3x8xf64>, {X})", returned=f"return %r, %o#1 : tensor<3x8xf64>, {X}"),
    "another order of the elements": stacking(
        between=f"%p = stablehlo.reverse %o#2, dims = [0] : {S}", reduced="%p"),
    "beside what comes later": stacking(
        between=f"%b = stablehlo.broadcast_in_dim %o#1, dims = [1] : ({X}) -> {S}\n%p = stablehlo.add %b, %o#2 : {S}",
        reduced="%p"),
    "a scalar that comes later": stacking(
        between="%one = stablehlo.slice %o#1 [0:1] : (tensor<8xf32>) -> tensor<1xf32>\n"
                f"%b = stablehlo.broadcast_in_dim %one, dims = [1] : (tensor<1xf32>) -> {S}\n"
                f"%p = stablehlo.add %b, %o#2 : {S}", reduced="%p"),
    "both sides from the loop": stacking(between=f"%p = stablehlo.add %o#2, %o#2 : {S}", reduced="%p"),
    "a window of two rows": stacking(
        update="%gg = stablehlo.concatenate %g, %g, dim = 0 : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<2x8xf32>\n"
               + UPDATE.replace("%g,", "%gg,").replace(ROW, "tensor<2x8xf32>")),
    "half a row": stacking(
        update="%gg = stablehlo.slice %g [0:1, 0:4] : (tensor<1x8xf32>) -> tensor<1x4xf32>\n"
               + UPDATE.replace("%g,", "%gg,").replace(ROW, "tensor<1x4xf32>")),
}


REASONS = {
    "an unknown trip count": "its trip count is unknown, so it may not write each row",
    **dict.fromkeys(("one row twice", "rows left out", "rows written again", "a window of two rows", "half a row",
                     "an index that differs between devices"), "it may not write each row exactly once"),
    **dict.fromkeys(("read in the loop", "read by the condition"), "the loop itself reads the tensor it stacks"),
    **dict.fromkeys(("read after the loop too", "a step read twice", "both sides from the loop"),
                    "its stack has another reader after it"),
    **dict.fromkeys(("another element type", "beside what comes later", "a scalar that comes later"),
                    "the ops between it and the reduction cannot be computed row by row in it"),
}


@pytest.mark.parametrize("what", ILLEGAL)
def test_it_stays(what: str) -> None:
    """A remark about the loop says why, where the loop stacks what is reduced by elementwise operations."""
    text = ILLEGAL[what].text()
    after, changed, said = sunk(ILLEGAL[what])
    assert not changed and after.text() == text
    assert said == ([f"missed: a reduction of what it stacks stays after it: {REASONS[what]}"]
                    if what in REASONS else [])
    assert what in REASONS or what in ("updated and changed", "another order of the elements")


def test_calls_of_jax_are_inlined_where_they_stack() -> None:
    """``jax.lax.scan`` writes its rows in a function of its own; where nothing moves, the call stays."""
    function = f"""func.func private @put(%a: {S}, %b: {ROW}, %i: tensor<i32>) -> {S} {{
      %z = stablehlo.constant dense<0> : tensor<i32>
      %r = stablehlo.dynamic_update_slice %a, %b, %i, %z : ({S}, {ROW}, tensor<i32>, tensor<i32>) -> {S}
      return %r : {S} }}"""
    before = stacking(update=f"%r2 = func.call @put(%rows, %g, %at) : ({S}, {ROW}, tensor<i32>) -> {S}",
                      functions=function)
    after, changed, _ = sunk(before)
    assert changed and "call @put" not in after.text() and check(before, after).equal
    text = before.text()
    same, changed, _ = sunk(before, ignore_cost=False)
    assert not changed and same.text() == text


def test_it_has_to_pay() -> None:
    """Three tiny rows in three calls take longer than one call."""
    _, changed, said = sunk(stacking(), ignore_cost=False)
    assert not changed and "its reductions stay after it: reducing 96 bytes in 3 parts" in said[0]


def test_comm_shift_leaves_it_there_and_a_second_run_changes_nothing() -> None:
    after, changed, _ = sunk(stacking())
    text = after.text()
    assert changed and not sunk(after)[1]
    assert not CommShift().run(after, PassContext()) and after.text() == text


FIND, ROWS = "hlorewrite.passes.sink_reductions.find", "hlorewrite.passes.common.stacked_rows"
CONDITIONS = [
    (ROWS, " and sorted(rows) == [*range(size)]", "", "one row twice"),
    (ROWS, " and sorted(rows) == [*range(size)]", "", "rows left out"),
    (ROWS, "uses != [(update, 0)]", "False", "read in the loop"),
    (FIND, "len(users(value)) != 1", "False", "read after the loop too"),
    (FIND, "op.name not in ELEMENTWISE", "False", "another order of the elements"),
    (FIND, "not all(self._stands_before(value, loop) for value in needed)", "False", "beside what comes later"),
    (FIND, "not all(self._stands_before(value, loop) for value in needed)", "False", "a scalar that comes later"),
    (FIND, "reduction.results[0].type != result.type", "False", "another element type"),
]


@pytest.mark.parametrize(("module", "old", "new", "what"), CONDITIONS, ids=[f"{c[3]}: {c[1][:20]}" for c in CONDITIONS])
def test_without_a_condition_some_program_goes_wrong(module: str, old: str, new: str, what: str,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    replace_source(module, old, new, monkeypatch)
    assert went_wrong(ILLEGAL[what], "sink-reductions")
