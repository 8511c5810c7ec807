"""The pass as a whole: what moves, what stays and the sentence that says why, its options, calls."""

from __future__ import annotations

import re

import pytest
from shift_helpers import shift
from spmd_helpers import CHANNEL, V, loop, module, region

from hlorewrite.errors import UsageError
from hlorewrite.ir.module import Module
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.rules.listener import Recorder

GRADIENT = f"%w = stablehlo.multiply %s, %r : {V}\n%g = AR(%w) : {V}\n"
ADD = f"{GRADIENT}%new = stablehlo.add %acc, %g : {V}"


def accumulate(body: str = ADD, trips: int | str = 5, start: str = "%zero", condition: str = "") -> str:
    return region(loop("l", trips, {"acc": start}, body, "%new", condition=condition), "%l#1")


# ---- what moves


@pytest.mark.parametrize("update", [
    f"%new = stablehlo.add %acc, %g : {V}", f"%new = stablehlo.add %g, %acc : {V}",
    f"%new = stablehlo.subtract %acc, %g : {V}",
    f"%q = stablehlo.constant dense<4.0> : {V}\n%m = stablehlo.divide %g, %q : {V}\n"
    f"%new = stablehlo.add %acc, %m : {V}",
    f"%a = stablehlo.multiply %acc, %r : {V}\n%new = stablehlo.add %a, %g : {V}",
    f"%m = stablehlo.add %g, %acc : {V}\n%new = stablehlo.select %go, %m, %acc : tensor<i1>, {V}",
    f"%n1 = stablehlo.negate %g : {V}\n"
    f"%new = stablehlo.add %acc, %n1 : {V}",
])
def test_accumulations_leave_their_loop(update: str) -> None:
    shifted = shift(accumulate(GRADIENT + update))
    assert shifted.reductions() == [0] and shifted.carried() == [2]
    assert shifted.remarks == [("applied", "reduced where its result is needed: 5× 16 bytes before, 1× 16 bytes now")]
    assert shifted.counters == {"reductions moved": 1, "executed bytes saved": 64}


def test_a_running_mean_and_two_accumulators() -> None:
    body = f"""{GRADIENT}%h = AR(%s) : {V}
      %a = stablehlo.add %acc, %g : {V}
      %b = stablehlo.subtract %more, %h : {V}"""
    shifted = shift(region(loop("l", 4, {"acc": "%zero", "more": "%r"}, body, "%a, %b")
                           + f"%o = stablehlo.add %l#1, %l#2 : {V}", "%o"))
    assert shifted.reductions() == [0]  # the two sums are added, so one reduction does
    assert shifted.counters["reductions moved"] == 2


def test_maxima_move_and_are_not_mixed_with_sums() -> None:
    body = f"""%g = AR.maximum(%s) : {V}
      %new = stablehlo.maximum %acc, %g : {V}"""
    assert shift(accumulate(body)).reductions() == [0]
    mixed = shift(accumulate(f"{GRADIENT}%new = stablehlo.maximum %acc, %g : {V}"))
    assert not mixed.changed
    assert mixed.remarks == [("missed", "stablehlo.maximum needs the reduced value in the loop: stablehlo.maximum does "
                              "not commute with a sum reduction")]


def test_reductions_over_other_groups_are_classes_of_their_own() -> None:
    body = f"""%g = AR(%s) over [[0, 1], [2, 3]] : {V}
      %h = AR(%s) over [[0, 2], [1, 3]] : {V}
      %k = AR(%s) over [[1, 0], [3, 2]] : {V}
      %a = stablehlo.add %acc, %g : {V}
      %b = stablehlo.add %a, %h : {V}
      %new = stablehlo.add %b, %k : {V}"""
    shifted = shift(accumulate(body))
    assert shifted.changed and all(depth == 0 for depth in shifted.reductions())
    assert len(shifted.reductions()) == 2  # the first and the third mean the same


def test_nested_reductions_move_one_behind_the_other() -> None:
    body = f"""%g = AR(%s) over [[0, 1], [2, 3]] : {V}
      %h = AR(%g) over [[0, 2], [1, 3]] : {V}
      %new = stablehlo.add %acc, %h : {V}"""
    shifted = shift(accumulate(body))
    assert shifted.reductions() == [0, 0]


def test_a_variadic_reduction_keeps_the_results_that_stay() -> None:
    both = f"""%p:2 = "stablehlo.all_reduce"(%s, %r) ({{^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %z = stablehlo.add %x, %y : tensor<f32> stablehlo.return %z : tensor<f32>}})
        {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, {CHANNEL}, use_global_device_ids}}
        : ({V}, {V}) -> ({V}, {V})
      %c = stablehlo.tanh %p#1 : {V}
      %t = stablehlo.add %acc, %p#0 : {V}"""
    shifted = shift(region(loop("l", 3, {"acc": "%zero", "d": "%zero"}, both, "%t, %c")
                           + f"%o = stablehlo.multiply %l#1, %l#2 : {V}", "%o"))
    assert sorted(shifted.reductions()) == [0, 1]


def test_reductions_nobody_reads_leave() -> None:
    shifted = shift(region(loop("l", 3, {"acc": "%zero"}, ADD, "%new"), "%r"))
    assert shifted.reductions() == []
    assert shifted.remarks == [("applied",
                                "reduced where its result is needed: 3× 16 bytes before, never, since nothing "
                                "reads it now")]


# ---- what stays


@pytest.mark.parametrize(("body", "trips", "kind", "sentence"), [
    (f"{GRADIENT}%c = stablehlo.tanh %g : {V}\n%new = stablehlo.add %acc, %c : {V}", 5, "missed",
     "stablehlo.tanh needs the reduced value in the loop: stablehlo.tanh is not linear"),
    (f"{GRADIENT}%c = stablehlo.multiply %g, %s : {V}\n%new = stablehlo.add %acc, %c : {V}", 5, "blocked",
     "stablehlo.multiply needs the reduced value in the loop: the factor differs between devices of a group"),
    (f"{GRADIENT}%c = stablehlo.select %mine, %g, %zero : tensor<i1>, {V}\n%new = stablehlo.add %acc, %c : {V}", 5,
     "blocked",
     "stablehlo.select needs the reduced value in the loop: the condition differs between devices of a group"),
    (f"%g = AR.maximum(%s) : {V}\n%new = stablehlo.add %acc, %g : {V}", 5, "missed",
     "stablehlo.add needs the reduced value in the loop: it meets another reduced value there"),
    (f"%g = AR.maximum(%s) : {V}\n%new = stablehlo.add %s, %g : {V}", 5, "blocked",
     "stablehlo.add needs the reduced value in the loop: the added value differs between devices of a group"),
    (ADD, 1, None, ""),
])
def test_what_stays_says_why(body: str, trips: int | str, kind: str | None, sentence: str) -> None:
    shifted = shift(accumulate(body, trips))
    assert not shifted.changed
    if kind is not None:
        assert [k for k, _ in shifted.remarks] == [kind]
        assert shifted.remarks[0][1].startswith(sentence.rstrip("."))
    else:
        assert shifted.remarks == []


def test_a_loop_of_unequal_length_stays() -> None:
    own = loop("k", "%me", {"acc": "%zero"}, f"%q = stablehlo.add %acc, %g : {V}", "%q")
    assert not shift(region(f"{GRADIENT}{own}", "%k#1")).changed


def test_a_condition_that_reads_the_sum_stays() -> None:
    condition = f"""%part = stablehlo.slice %acc [0:1] : ({V}) -> tensor<1xf32>
      %number = stablehlo.reshape %part : (tensor<1xf32>) -> tensor<f32>
      %limit = stablehlo.constant dense<9.0> : tensor<f32>
      %small = stablehlo.compare LT, %number, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %more = stablehlo.and %lt, %small : tensor<i1>"""
    shifted = shift(accumulate(condition=condition))
    assert not shifted.changed
    assert shifted.remarks == [("blocked", "stablehlo.return needs the reduced value in the loop: the loop's condition "
                                "reads it")]


def test_moving_that_would_send_more_is_not_done() -> None:
    body = (f"{GRADIENT}%wide = stablehlo.broadcast_in_dim %g, dims = [1] : ({V}) -> tensor<4096x4xf32>\n"
            "%new = stablehlo.add %acc, %wide : tensor<4096x4xf32>")
    start = "%big = stablehlo.constant dense<0.0> : tensor<4096x4xf32>\n"
    shifted = shift(region(start + loop("l", 3, {"acc": "%big"}, body, "%new", kind="tensor<4096x4xf32>"), "%l#1",
                           "tensor<4096x4xf32>"))
    assert not shifted.changed
    assert shifted.remarks == [("unprofitable", "reducing it elsewhere would not be cheaper than 3× reductions of 16 "
                                "bytes")]


def test_modules_without_a_reduction_and_ill_formed_ones() -> None:
    nothing = shift(region(f"%v = stablehlo.negate %s : {V}", "%v"))
    assert not nothing.changed and [kind for kind, _ in nothing.remarks] == ["missed"]
    assert nothing.remarks[0][1].startswith("the module contains no all-reduce")
    odd = shift(accumulate(ADD.replace("%g = AR(%w)", f"""%g = "stablehlo.all_reduce"(%w) ({{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.subtract %x, %y : tensor<f32>
        stablehlo.return %z : tensor<f32>}}) {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, {CHANNEL},
        use_global_device_ids}} : ({V}) -> {V} //""")))
    assert odd.remarks == [("blocked", "the all-reduce stays: its reducer is none of sum, product, maximum, "
                            "minimum, and, or")]
    uneven = shift(accumulate(ADD.replace("AR(%w)", "AR(%w) over [[0, 1], [2, -1]]")))
    assert uneven.remarks == [("blocked", "the all-reduce stays: its replica groups are of uneven size")]


# ---- calls


CALL = f"%new = func.call @step(%acc, %s) : ({V}, {V}) -> {V}"
FUNCTION = f"""func.func private @step(%acc: {V}, %s: {V}) -> {V} {{
      %g = AR(%s) : {V}
      %new = stablehlo.add %acc, %g : {V}
      return %new : {V} }}"""


def test_a_reduction_behind_a_call_is_inlined_first() -> None:
    text = region(loop("l", 6, {"acc": "%zero"}, CALL, "%new"), "%l#1", functions=FUNCTION)
    shifted = shift(text)
    assert shifted.reductions() == [0] and "func.call" not in shifted.after.text()


def test_a_function_a_sum_is_passed_to_is_inlined_only_when_it_helps() -> None:
    linear = f"func.func private @half(%x: {V}) -> {V} {{ %y = stablehlo.negate %x : {V} return %y : {V} }}"
    curved = linear.replace("negate", "tanh")
    text = f"{GRADIENT}%h = func.call @half(%g) : ({V}) -> {V}\n%new = stablehlo.add %acc, %h : {V}"

    moved = shift(region(loop("l", 3, {"acc": "%zero"}, text, "%new"), "%l#1", functions=linear))
    assert moved.reductions() == [0]
    stayed = shift(region(loop("l", 3, {"acc": "%zero"}, text, "%new"), "%l#1", functions=curved))
    assert not stayed.changed and "func.call @half" in stayed.after.text()


def test_public_functions_are_not_inlined() -> None:
    text = region(loop("l", 6, {"acc": "%zero"}, CALL, "%new"), "%l#1", functions=FUNCTION.replace("private", "public"))
    assert not shift(text).changed


# ---- options


def test_exact_keeps_the_order_of_floating_sums_only() -> None:
    floating = shift(accumulate(), CommShift(exact=True))
    assert not floating.changed
    assert floating.remarks == [("blocked", "moving it would change the order of a floating-point sum, but exact "
                                 "is set")]
    start = "%start = stablehlo.constant dense<0> : tensor<4xi32>\n%k = stablehlo.convert %s : (tensor<4xf32>) -> " \
            "tensor<4xi32>\n"
    integers = start + loop("l", 5, {"acc": "%start"}, "%g = AR(%k) : tensor<4xi32>\n"
                            "%new = stablehlo.add %acc, %g : tensor<4xi32>", "%new", kind="tensor<4xi32>")
    assert shift(region(integers, "%l#1", "tensor<4xi32>"), CommShift(exact=True)).reductions() == [0]
    maxima = accumulate(f"%g = AR.maximum(%s) : {V}\n%new = stablehlo.maximum %acc, %g : {V}")
    assert shift(maxima, CommShift(exact=True)).reductions() == [0]


def test_wire_dtype_narrows_what_moves() -> None:
    shifted = shift(accumulate(), CommShift(wire_dtype="bf16"))
    text = shifted.after.text()
    assert "(tensor<4xf32>) -> tensor<4xbf16>" in text and "(tensor<4xbf16>) -> tensor<4xf32>" in text
    assert shifted.reductions() == [0]
    same = shift(accumulate(), CommShift(wire_dtype="f32"))
    assert "bf16" not in same.after.text() and same.reductions() == [0]


def test_an_unknown_wire_dtype_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="cannot send in"):
        run_passes(module(accumulate()).module, [CommShift(wire_dtype="bf17")], PassContext())


def test_a_topology_weighs_by_time() -> None:
    shifted = shift(accumulate(), CommShift(topology="h200:1x4"))
    assert shifted.reductions() == [0]


def test_the_same_input_gives_the_same_output() -> None:
    def once() -> Module:
        return shift(accumulate()).after
    assert once().text() == once().text()


@pytest.mark.parametrize("trips", [2, "%n"])
def test_loops_whose_length_is_known_or_not(trips: int | str) -> None:
    assert shift(accumulate(trips=trips)).reductions() == [0]


def test_a_reader_without_a_line_is_told_by_the_nearest_one() -> None:
    """Ops that transformations make often have no line of their own."""
    body = GRADIENT + f"%sq = stablehlo.multiply %g, %g : {V} loc(unknown)\n%new = stablehlo.add %acc, %sq : {V}"
    target = module(accumulate(body)).module
    recorder = Recorder(wants_missed=True)
    assert not run_passes(target, [CommShift()], PassContext((recorder,)))
    told = [remark.sentence for remark in recorder.remarks]
    assert any(re.match(r"stablehlo.multiply near \S+:\d+:\d+ needs the reduced value in the loop: ", line)
               for line in told), told
    assert not any(" at ?" in line for line in told)
