"""The most a rewritten module can send beyond its original."""

from __future__ import annotations

import math

import pytest
from spmd_helpers import N, V, loop, module, region

from hlorewrite.cost.report.growth import Growth, worst_growth
from hlorewrite.ir.module import Module

SUM = f"%g = AR(%s) : {V}"
SENT = 24
"""Of its 16 bytes, the ring of four devices sends 2 * 3/4."""
NONE = f"%g = stablehlo.negate %s : {V}"


GROUPS = ("replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, "
          "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids")


def text(body: str, out: str = "%s", functions: str = "") -> Module:
    return module(region(body, out, functions=functions)).module


def growth(before: str, after: str, **others: str) -> Growth:
    return worst_growth(text(before, **others), text(after, **others))


def turns(trips: int | str, inside: str, condition: str = "") -> str:
    return loop("l", trips, {"acc": "%s"}, f"{inside}\n%new = stablehlo.add %acc, %acc : {V}", "%new",
                condition=condition)


def fork(first: str, second: str, predicate: str = "%go") -> str:
    return (f'%b = "stablehlo.if"({predicate}) ({{ {first}\nstablehlo.return %g : {V} }}, '
            f"{{ {second}\nstablehlo.return %g : {V} }}) : (tensor<i1>) -> {V}\n")


def test_a_sequence_adds() -> None:
    assert growth(SUM, SUM + f"\n%h = AR(%g) : {V}") == Growth(SENT)
    assert growth(SUM + f"\n%h = AR(%g) : {V}", NONE) == Growth(-2 * SENT)


@pytest.mark.parametrize(("trips", "bytes_"), [(0, 0), (1, SENT), (5, 5 * SENT)])
def test_a_loop_multiplies(trips: int, bytes_: int) -> None:
    assert growth(turns(trips, NONE), turns(trips, SUM)).bytes == bytes_
    assert growth(turns(trips, SUM), turns(trips, NONE)).bytes == -bytes_


def test_an_unknown_loop_has_no_bound_above_and_runs_at_least_once() -> None:
    more = growth(turns("%n", NONE), turns("%n", SUM))
    assert math.isinf(more.bytes) and more.path[0].endswith("runs many times")
    assert growth(turns("%n", SUM), turns("%n", NONE)).bytes == -SENT
    behind = growth(turns("%n", SUM), turns("%n", NONE) + SUM.replace("%g", "%h"))
    assert behind.bytes == 0 and behind.path[0].endswith("runs once")


def test_a_condition_runs_once_more_than_the_body() -> None:
    plain = f"%more = stablehlo.compare LT, %i_l, %bound : ({N}, {N}) -> tensor<i1>"
    reduced = f"%any = AR.or(%lt) : tensor<i1>\n{plain}"
    assert growth(turns(3, NONE, plain), turns(3, NONE, reduced)).bytes == 6
    assert growth(turns("%n", NONE, reduced), turns("%n", NONE, plain)).bytes == -3


def test_the_worst_branch_counts() -> None:
    worse = growth(SUM.replace("%g", "%h") + "\n" + fork(NONE, NONE), fork(SUM, NONE))
    assert worse.bytes == 0 and worse.path[0].endswith("takes branch 0")
    twice = fork(SUM, NONE) + fork(SUM, NONE).replace("%b", "%c")
    assert growth(SUM.replace("%g", "%h") + "\n" + fork(NONE, NONE) + fork(NONE, NONE).replace("%b", "%c"),
                  twice).bytes == SENT
    assert growth(fork(SUM, NONE), fork(NONE, NONE)).bytes == 0  # the other branch sent nothing before either
    assert growth(fork(SUM, SUM), fork(NONE, NONE)).bytes == -SENT


def test_a_branch_that_the_counter_decides_counts_as_often_as_it_is_taken() -> None:
    first = "%p = stablehlo.compare EQ, %i_l, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    decided = first + fork(SUM, NONE, "%p")
    silent = decided.replace(SUM, NONE)
    assert growth(turns(5, silent), turns(5, decided)).bytes == SENT


def test_a_branch_that_a_constant_decides_is_what_it_runs() -> None:
    yes = "%p = stablehlo.compare EQ, %c1, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    assert growth(yes + fork(SUM, NONE, "%p"), yes + SUM).bytes == 0
    assert growth(yes + fork(NONE, SUM, "%p"), yes + SUM).bytes == SENT


def test_calls_are_dissolved_and_a_function_that_calls_itself_ends() -> None:
    function = f"func.func private @f(%s: {V}) -> {V} {{\n{SUM}\nreturn %g : {V}\n}}"
    call = f"%g = func.call @f(%s) : ({V}) -> {V}"
    assert worst_growth(text(call, functions=function), text(SUM)).bytes == 0
    endless = function.replace("return %g", f"%h = func.call @f(%g) : ({V}) -> {V}\nreturn %h")
    assert worst_growth(text(SUM), text(call, functions=endless)).bytes == 0


def test_a_loop_that_is_gone_or_new_stands_alone() -> None:
    assert growth(turns(4, SUM), SUM).bytes == -3 * SENT
    assert growth(SUM, turns(4, SUM)).bytes == 3 * SENT
    assert math.isinf(growth(SUM, turns("%n", SUM)).bytes)


def test_loops_that_changed_places_are_found_by_their_lines() -> None:
    """Fusing collectives moves what stands between them; both loops keep their source lines."""
    condition = (f"%t = stablehlo.compare LT, %i, %n : ({N}, {N}) -> tensor<i1>\n"
                 "stablehlo.return %t : tensor<i1>")
    first, second = (f'"stablehlo.while"(%c0) ({{^bb0(%i: {N}): {condition}}}, {{^bb0(%i: {N}): {inside}\n'
                     f'stablehlo.return %i : {N}}}) : ({N}) -> {N} loc("f.py":{line}:1)\n'
                     for inside, line in ((SUM, 1), (NONE, 2)))
    assert growth(f"%a = {first}%b = {second}", f"%b = {second}%a = {first}").bytes == 0


def test_a_reduce_scatter_and_an_all_gather_send_what_the_all_reduce_did() -> None:
    part = "tensor<1xf32>"
    split = (f'%p = "stablehlo.reduce_scatter"(%s) <{{scatter_dimension = 0 : i64, {GROUPS}}}> ({{'
             "^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.add %x, %y : tensor<f32>\n"
             "stablehlo.return %z : tensor<f32>}) : "
             f'({V}) -> {part}\n%g = "stablehlo.all_gather"(%p) <{{all_gather_dim = 0 : i64, {GROUPS}}}> : '
             f"({part}) -> {V}")
    assert growth(SUM, split).bytes == 0
    assert growth(split, SUM).bytes == 0
    assert growth(SUM, split + f"\n%h = AR(%g) : {V}").bytes == SENT
