"""Reduce-scatters that leave loops: the dimension they are scattered along, the memory budget, components, branches."""

from __future__ import annotations

import pytest
from generators.code_mutation import replace_source
from shift_helpers import Shifted, shift
from spmd_helpers import CHANNEL, V, loop, module, region

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.placement import place
from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.linearity import UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir.view import View
from hlorewrite.passes.comm_shift import CommShift, scatter, scatter_deferral
from hlorewrite.passes.comm_shift.deferral_rewrite import with_identities
from hlorewrite.passes.comm_shift.scatter_facts import ScatterDimensions, ScatterFacts
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.options import Size
from hlorewrite.rules.library import shipped_facts

WHOLE, PART = "tensor<8x4xf32>", "tensor<2x4xf32>"
ROOM = CommShift(memory_budget=1 << 20)
START = (f"%part = stablehlo.constant dense<0.0> : {PART}\n"
         f"%rows = stablehlo.broadcast_in_dim %r, dims = [1] : ({V}) -> {PART}\n"
         f"%factor = stablehlo.constant dense<0.5> : {PART}\n")
WIDEN = f"%w = stablehlo.broadcast_in_dim %s, dims = [1] : ({V}) -> {WHOLE}\n"


def scattered(name: str = "g", operand: str = "%w", whole: str = WHOLE, part: str = PART, dimension: int = 0,
              rows: str = "[[0, 1, 2, 3]]", op: str = "add") -> str:
    size = f"{rows.count('[') - 1}x{rows.split(']')[0].count(',') + 1}"
    return (f'%{name} = "stablehlo.reduce_scatter"({operand}) ({{^bb0(%x_: tensor<f32>, %y_: tensor<f32>): '
            f"%z_ = stablehlo.{op} %x_, %y_ : tensor<f32> stablehlo.return %z_ : tensor<f32>}}) {{scatter_dimension = "
            f"{dimension} : i64, replica_groups = dense<{rows}> : tensor<{size}xi64>, {CHANNEL}, "
            f"use_global_device_ids}} : ({whole}) -> {part}\n")


def accumulate(update: str = f"%new = stablehlo.add %acc, %g : {PART}", start: str = "%part", trips: int | str = 5,
               scatter: str = "", before: str = "") -> str:
    body = WIDEN + (scatter or scattered()) + update
    return region(START + before + loop("l", trips, {"acc": start}, body, "%new", kind=PART), "%l#1", PART)


def scatters(shifted: Shifted) -> list[int]:
    return shifted.reductions("reduce_scatter")


# ---- what leaves


def added_into(operand: str, updates: str = "%more", kind: str = "tensor<3x4xf32>", op: str = "add",
               result: str = "%new") -> str:
    """A scatter of rows; the indices repeat."""
    count = kind.partition("x")[0].removeprefix("tensor<")
    rows = ", ".join(f"[{k % 2}]" for k in range(int(count)))
    return (f"%at = stablehlo.constant dense<[{rows}]> : tensor<{count}x1xi32>\n"
            f"%more = stablehlo.broadcast_in_dim %s, dims = [1] : ({V}) -> {kind}\n"
            f'{result} = "stablehlo.scatter"({operand}, %at, {updates}) <{{indices_are_sorted = false, '
            "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({"
            f"^bb0(%x_: tensor<f32>, %y_: tensor<f32>): %z_ = stablehlo.{op} %x_, %y_ : tensor<f32> "
            f"stablehlo.return %z_ : tensor<f32>}}) : ({PART}, tensor<{count}x1xi32>, {kind}) -> {PART}\n")


@pytest.mark.parametrize("start", ["%part", "%rows"])
@pytest.mark.parametrize("update", [
    f"%m = stablehlo.add %acc, %g : {PART}\n" + added_into("%m"),
    added_into("%acc", result="%m") + f"%new = stablehlo.add %m, %g : {PART}",
    f"%new = stablehlo.add %acc, %g : {PART}", f"%new = stablehlo.subtract %acc, %g : {PART}",
    f"%n1 = stablehlo.negate %g : {PART}\n%new = stablehlo.add %acc, %n1 : {PART}",
    f"%m = stablehlo.multiply %g, %factor : {PART}\n%new = stablehlo.add %acc, %m : {PART}",
    f"%m = stablehlo.divide %g, %factor : {PART}\n%new = stablehlo.add %acc, %m : {PART}",
    f"%m = stablehlo.multiply %acc, %factor : {PART}\n%new = stablehlo.add %m, %g : {PART}",
    f"%m = stablehlo.add %acc, %g : {PART}\n%new = stablehlo.select %go, %m, %acc : tensor<i1>, {PART}",
    f"%o = stablehlo.optimization_barrier %g : {PART}\n%new = stablehlo.add %acc, %o : {PART}",
    f"%m = stablehlo.add %g, %rows : {PART}\n%new = stablehlo.add %acc, %m : {PART}",
    "%n2 = stablehlo.broadcast_in_dim %g, dims = [0, 2] : (tensor<2x4xf32>) -> tensor<2x1x4xf32>\n"
    "%n3 = stablehlo.reshape %n2 : (tensor<2x1x4xf32>) -> tensor<2x4xf32>\n"
    f"%new = stablehlo.add %acc, %n3 : {PART}",
    "%n2 = stablehlo.reshape %g : (tensor<2x4xf32>) -> tensor<2x2x2xf32>\n"
    "%n3 = stablehlo.reverse %n2, dims = [1] : tensor<2x2x2xf32>\n"
    "%n4 = stablehlo.reshape %n3 : (tensor<2x2x2xf32>) -> tensor<2x4xf32>\n"
    f"%new = stablehlo.add %acc, %n4 : {PART}",
    "%n2 = stablehlo.transpose %g, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>\n"
    "%n3 = stablehlo.transpose %n2, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>\n"
    f"%new = stablehlo.add %acc, %n3 : {PART}",
    "%n2 = stablehlo.slice %g [0:2, 1:3] : (tensor<2x4xf32>) -> tensor<2x2xf32>\n"
    "%n3 = stablehlo.slice %g [0:2, 0:4:2] : (tensor<2x4xf32>) -> tensor<2x2xf32>\n"
    "%n4 = stablehlo.concatenate %n2, %n3, dim = 1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>\n"
    f"%new = stablehlo.add %acc, %n4 : {PART}",
    "%n2 = stablehlo.slice %g [0:2, 1:3] : (tensor<2x4xf32>) -> tensor<2x2xf32>\n"
    "%nil = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%n3 = stablehlo.pad %n2, %nil, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<2x2xf32>, tensor<f32>) -> "
    f"{PART}\n%new = stablehlo.add %acc, %n3 : {PART}",
    "%n2 = stablehlo.slice %g [0:2, 1:3] : (tensor<2x4xf32>) -> tensor<2x2xf32>\n"
    "%one_f = stablehlo.constant dense<1.0> : tensor<f32>\n"
    "%n3 = stablehlo.pad %n2, %one_f, low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<2x2xf32>, tensor<f32>) "
    f"-> {PART}\n%new = stablehlo.add %acc, %n3 : {PART}",
])
def test_accumulations_leave_when_there_is_room(update: str, start: str) -> None:
    shifted = shift(accumulate(update, start), ROOM)
    assert scatters(shifted) == [0] and shifted.carried() == [3]
    assert shifted.remarks == [("applied", "reduced where its result is needed: 5× 128 bytes before, 1× 128 bytes "
                                "now, for 128 bytes of local sums")]


NOT_ADDED = {
    "position != 0 or": f"%own = stablehlo.slice %g [0:2, 0:4] : ({PART}) -> {PART}\n"
                        + added_into("%acc", "%own", PART),
    ' or reduction_kind(op) != "sum"': f"%m = stablehlo.add %acc, %g : {PART}\n" + added_into("%m", op="maximum"),
}


@pytest.mark.parametrize("condition", NOT_ADDED)
def test_scatters_that_do_not_add_into_the_sum(condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As updates, or where the scatter takes maxima, the sum has to be scattered first."""
    assert scatters(shift(accumulate(NOT_ADDED[condition]), ROOM)) == [1]
    replace_source("hlorewrite.passes.comm_shift.scatter_facts", condition, "", monkeypatch)
    with pytest.raises((AssertionError, KeyError)):  # other values, or no way to move it
        assert scatters(shift(accumulate(NOT_ADDED[condition]), ROOM)) == [1]


def test_layers_that_are_written_out_are_scattered_in_one_piece() -> None:
    """Gradients of an unrolled scan are stacked before they are added."""
    row, stack = "tensor<1x2x4xf32>", "tensor<2x2x4xf32>"
    rows = "".join(f"{scattered(f'g{k}')}%s{k} = stablehlo.reshape %g{k} : ({PART}) -> {row}\n" for k in (1, 2))
    body = (f"{WIDEN}{rows}%both = stablehlo.concatenate %s1, %s2, dim = 0 : ({row}, {row}) -> {stack}\n"
            f"%new = stablehlo.add %acc, %both : {stack}")
    text = region(f"%p = stablehlo.constant dense<0.0> : {stack}\n"
                  + loop("l", 5, {"acc": "%p"}, body, "%new", kind=stack), "%l#1", stack)
    shifted = shift(text, ROOM)
    assert scatters(shifted) == [0]
    assert shifted.remarks == 2 * [("applied", "reduced where its result is needed: 5× 128 bytes before, 1× 256 bytes "
                                    "now together with 1 other, for 256 bytes of local sums")]


def test_along_the_last_dimension_and_over_sub_groups() -> None:
    part = "tensor<8x1xf32>"
    last = scattered(part=part, dimension=1)
    text = region(f"%p = stablehlo.constant dense<0.0> : {part}\n" + loop(
        "l", 3, {"acc": "%p"}, f"{WIDEN}{last}%new = stablehlo.add %acc, %g : {part}", "%new", kind=part), "%l#1", part)
    assert scatters(shift(text, ROOM)) == [0]
    part = "tensor<4x4xf32>"
    pairs = scattered(part=part, rows="[[0, 1], [2, 3]]")
    text = region(f"%p = stablehlo.constant dense<0.0> : {part}\n" + loop(
        "l", 3, {"acc": "%p"}, f"{WIDEN}{pairs}%new = stablehlo.add %acc, %g : {part}", "%new", kind=part),
                  "%l#1", part)
    shifted = shift(text, ROOM)
    assert scatters(shifted) == [0] and "[[0, 1], [2, 3]]" in shifted.after.text()


def test_nested_loops_each_carry_a_twin() -> None:
    inner = loop("k", 3, {"acc": "%outer"}, f"{WIDEN}{scattered()}%new = stablehlo.add %acc, %g : {PART}", "%new",
                 kind=PART)
    text = region(START + loop("l", 4, {"outer": "%part"}, inner, "%k#1", kind=PART), "%l#1", PART)
    shifted = shift(text, ROOM)
    assert scatters(shifted) == [0] and shifted.carried() == [3, 3]
    assert shifted.remarks[0][1].endswith("12× 128 bytes before, 1× 128 bytes now, for 256 bytes of local sums")


# ---- what stays


@pytest.mark.parametrize(("update", "kind", "sentence"), [
    (f"%c = stablehlo.tanh %g : {PART}\n%new = stablehlo.add %acc, %c : {PART}", "missed",
     "stablehlo.tanh is not done on sums that are not scattered yet"),
    (f"%c = stablehlo.multiply %g, %rows : {PART}\n%new = stablehlo.add %acc, %c : {PART}", "blocked",
     "stablehlo.multiply has another operand that is not one number everywhere"),
    (f"%own = stablehlo.broadcast_in_dim %s, dims = [1] : ({V}) -> {PART}\n%c = stablehlo.multiply %g, %own : {PART}\n"
     f"%new = stablehlo.add %acc, %c : {PART}", "blocked", "the factor differs between devices of a group"),
])
def test_what_stays_says_why(update: str, kind: str, sentence: str) -> None:
    shifted = shift(accumulate(update), ROOM)
    assert not shifted.changed and [k for k, _ in shifted.remarks] == [kind]
    assert sentence in shifted.remarks[0][1]


def test_reductions_other_than_sums_stay() -> None:
    shifted = shift(accumulate(scatter=scattered(op="maximum")), ROOM)
    assert shifted.remarks == [("blocked", "the reduce-scatter stays: it is not a sum of tensors of static shape")]


def test_outside_loops_nothing_moves() -> None:
    text = region(f"{WIDEN}{scattered()}%o = stablehlo.negate %g : {PART}", "%o", PART)
    assert not shift(text, ROOM).changed


def test_exact_keeps_them() -> None:
    assert not shift(accumulate(), CommShift(exact=True, memory_budget=1 << 20)).changed


@pytest.mark.parametrize("predicate", ["%go", "%mine"])
def test_reduce_scatters_in_branches_stay(predicate: str) -> None:
    body = f"""{WIDEN}%b = "stablehlo.if"({predicate}) ({{
        {scattered()}%new1 = stablehlo.add %acc, %g : {PART} stablehlo.return %new1 : {PART} }}, {{
        stablehlo.return %acc : {PART} }}) : (tensor<i1>) -> {PART}"""
    text = region(START + loop("l", 3, {"acc": "%part"}, body, "%b", kind=PART), "%l#1", PART)
    before = module(text).module
    after = before.clone()
    assert not run_passes(after, [ROOM], PassContext()) and after.text() == before.text()


# ---- memory


@pytest.mark.parametrize(("budget", "moves"), [(127, False), (128, True), (0, False)])
def test_the_budget_says_how_much_may_be_spent(budget: int, moves: bool) -> None:
    shifted = shift(accumulate(), CommShift(memory_budget=budget))
    assert shifted.changed is moves
    if not moves:
        assert shifted.remarks == [("unprofitable", "deferring it would save 512 executed bytes for 128 bytes of local "
                                    f"sums; the budget has {budget} bytes")]


@pytest.mark.parametrize(("budget", "option", "moves", "left"), [
    (127, None, False, 127), (128, None, True, 0), (300, 128, True, 172), (300, 127, False, 300)])
def test_the_budget_of_the_whole_run_is_drawn_from(budget: int, option: int | None, moves: bool, left: int) -> None:
    ctx = PassContext(memory_left=budget)
    option = None if option is None else Size(option)
    assert run_passes(module(accumulate()).module, [CommShift(memory_budget=option)], ctx) is moves
    assert ctx.memory_left == left and ctx.memory_refused is not moves


def test_without_a_budget_a_small_share_of_the_arguments_may_be_spent() -> None:
    shifted = shift(accumulate())
    assert not shifted.changed
    assert shifted.remarks[0][1].endswith("without memory-budget=SIZE a step may grow by 0 bytes")


def two(second_factor: str = "%factor") -> str:
    """Two accumulators that never meet."""
    body = (f"{WIDEN}{scattered('g')}{scattered('h')}"
            f"%a = stablehlo.add %acc, %g : {PART}\n%f = stablehlo.multiply %h, {second_factor} : {PART}\n"
            f"%b = stablehlo.add %more, %f : {PART}")
    return region(START + loop("l", 5, {"acc": "%part", "more": "%part"}, body, "%a, %b", kind=PART)
                  + f"%t = stablehlo.tanh %l#1 : {PART}\n%u = stablehlo.tanh %l#2 : {PART}\n"
                  f"%o = stablehlo.add %t, %u : {PART}", "%o", PART)


def test_parts_that_never_meet_are_decided_apart() -> None:
    both = shift(two(), CommShift(memory_budget=256))
    assert scatters(both) == [0, 0] and both.carried() == [5]
    first = shift(two(), CommShift(memory_budget=128), settles=False)  # another run may spend as much again
    assert sorted(scatters(first)) == [0, 1] and first.carried() == [4]
    assert sorted(kind for kind, _ in first.remarks) == ["applied", "unprofitable"]
    one_needed = shift(two("%rows"), CommShift(memory_budget=1 << 20))
    assert sorted(scatters(one_needed)) == [0, 1]


def test_hundreds_of_parts_are_analysed_and_carried_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network whose layers are written out has a part for each parameter."""
    count, made = 40, list[object]()
    body = WIDEN + "".join(f"{scattered(f'g{i}')}%n{i} = stablehlo.add %a{i}, %g{i} : {PART}\n" for i in range(count))
    sums = "".join(f"%t{i + 1} = stablehlo.tanh %l#{i + 1} : {PART}\n" for i in range(count))
    carried = loop("l", 5, {f"a{i}": "%part" for i in range(count)}, body,
                   ", ".join(f"%n{i}" for i in range(count)), kind=PART)
    monkeypatch.setattr(scatter, "Uniformity", lambda *given: made.append(1) or Uniformity(*given))
    monkeypatch.setattr(scatter_deferral, "with_identities", lambda *given: made.append(2) or with_identities(*given))
    shifted = shift(region(START + carried + sums, "%t1", PART), ROOM)
    assert scatters(shifted) == [0] * count and shifted.carried() == [1 + 2 * count]
    assert made.count(1) < 6 and made.count(2) < 3


def test_parts_that_meet_are_decided_together() -> None:
    body = (f"{WIDEN}{scattered('g')}{scattered('h')}"
            f"%a = stablehlo.add %g, %h : {PART}\n%new = stablehlo.add %acc, %a : {PART}")
    shifted = shift(region(START + loop("l", 5, {"acc": "%part"}, body, "%new", kind=PART), "%l#1", PART), ROOM)
    assert scatters(shifted) == [0] and shifted.counters["reductions moved"] == 2


# ---- the dimension


def test_what_goes_on_along_another_dimension_than_its_slot_starts_with_stays() -> None:
    part = "tensor<4x4xf32>"
    first = (f"%w0 = stablehlo.broadcast_in_dim %s, dims = [1] : ({V}) -> tensor<16x4xf32>\n"
             + scattered("g", "%w0", "tensor<16x4xf32>", part))
    other = (f"%w1 = stablehlo.broadcast_in_dim %s, dims = [0] : ({V}) -> tensor<4x16xf32>\n"
             + scattered("h", "%w1", "tensor<4x16xf32>", part, 1))
    inner = loop("k", 3, {"in": "%g"}, other, "%h", kind=part) + f"%new = stablehlo.add %acc, %k#1 : {part}\n"
    text = region(f"%z4 = stablehlo.constant dense<0.0> : {part}\n"
                  + loop("l", 4, {"acc": "%z4"}, first + inner, "%new", kind=part), "%l#1", part)
    shifted = shift(text, ROOM)
    assert sorted(scatters(shifted)) == [1, 2]
    assert shifted.remarks == [
        ("blocked", "the reduce-scatter stays: it meets another one that has to stay, and those that meet move "
         "together"),
        ("missed", "stablehlo.return needs the reduced value in the loop: the other operand is scattered along "
         "another dimension")]


def dimension_of(lines: str, kind: str) -> tuple[int | None, int]:
    """(the scattered dimension of ``%v``, how many uses conflict) when all of a chain is deferred."""
    body = f"{WIDEN}{scattered()}{lines}\n%n2 = stablehlo.add %acc, %v : {kind}"
    view = module(region(f"%p = stablehlo.constant dense<0.0> : {kind}\n"
                         + loop("l", 5, {"acc": "%p"}, body, "%n2", kind=kind), "%l#1", kind))
    source = view.ops("stablehlo.reduce_scatter")[0]
    groups = groups_of(source, view)
    assert isinstance(groups, Groups)
    flow = DeferralGraphBuilder(ScatterFacts(shipped_facts()),
                       UniformContext("sum", Uniformity(view, groups))).build([source.results[0]])
    placement = place(flow)
    dimensions = ScatterDimensions(flow, placement.touched)
    value = next(op.operands[1] for op in view.ops("stablehlo.add") if str(op.operands[1].type) == kind
                 and op.parent is not None and op.parent.operation.name == "stablehlo.while")
    return dimensions.by_value.get(value), len(dimensions.conflicts)


@pytest.mark.parametrize(("lines", "kind", "expected"), [
    (f"%v = stablehlo.negate %g : {PART}", PART, (0, 0)),
    (f"%v = stablehlo.transpose %g, dims = [1, 0] : ({PART}) -> tensor<4x2xf32>", "tensor<4x2xf32>", (1, 0)),
    (f"%v = stablehlo.reshape %g : ({PART}) -> tensor<1x2x4xf32>", "tensor<1x2x4xf32>", (1, 0)),
    (f"%v = stablehlo.reshape %g : ({PART}) -> tensor<2x1x4x1xf32>", "tensor<2x1x4x1xf32>", (0, 0)),
    (f"%v = stablehlo.reshape %g : ({PART}) -> tensor<8xf32>", "tensor<8xf32>", (None, 1)),
    (f"%v = stablehlo.reshape %g : ({PART}) -> tensor<2x2x2xf32>", "tensor<2x2x2xf32>", (0, 0)),
    (f"%v = stablehlo.reshape %g : ({PART}) -> tensor<4x2xf32>", "tensor<4x2xf32>", (None, 1)),
    (f"%v = stablehlo.reverse %g, dims = [1] : {PART}", PART, (0, 0)),
    (f"%v = stablehlo.reverse %g, dims = [0] : {PART}", PART, (None, 1)),
    (f"%v = stablehlo.dynamic_slice %g, %c1, %c0, sizes = [2, 2] : ({PART}, tensor<i32>, tensor<i32>) -> "
     "tensor<2x2xf32>", "tensor<2x2xf32>", (0, 0)),
    (f"%v = stablehlo.slice %g [0:2, 1:3] : ({PART}) -> tensor<2x2xf32>", "tensor<2x2xf32>", (0, 0)),
    (f"%v = stablehlo.slice %g [0:1, 0:4] : ({PART}) -> tensor<1x4xf32>", "tensor<1x4xf32>", (None, 1)),
    (f"%v = stablehlo.concatenate %g, %g, dim = 1 : ({PART}, {PART}) -> tensor<2x8xf32>", "tensor<2x8xf32>", (0, 0)),
    (f"%v = stablehlo.concatenate %g, %g, dim = 0 : ({PART}, {PART}) -> tensor<4x4xf32>", "tensor<4x4xf32>", (None, 4)),
    (f"%v = stablehlo.broadcast_in_dim %g, dims = [0, 2] : ({PART}) -> tensor<2x1x4xf32>", "tensor<2x1x4xf32>", (0, 0)),
    (f"%v = stablehlo.broadcast_in_dim %g, dims = [1, 2] : ({PART}) -> tensor<3x2x4xf32>", "tensor<3x2x4xf32>", (1, 0)),
])
def test_the_dimension_is_followed_through_what_moves_elements(lines: str, kind: str,
                                                               expected: tuple[int | None, int]) -> None:
    assert dimension_of(lines, kind) == expected


@pytest.mark.parametrize("at", ["%i_l, %c0", "%c0, %i_l", "%c1, %c0"])
def test_updates_of_a_slice_keep_the_dimension_whole(at: str) -> None:
    """A scan's stacked outputs are updates at the counter: along another dimension the scattered one stays whole.

    An update of full size along the scattered dimension covers it wherever it starts: starts are clamped to 0.
    """
    buffer = "tensor<2x20xf32>"
    lines = f"%v = stablehlo.dynamic_update_slice %acc, %g, {at} : ({buffer}, {PART}, tensor<i32>, tensor<i32>)"
    body = f"{WIDEN}{scattered()}{lines} -> {buffer}"
    text = region(f"%p = stablehlo.constant dense<0.0> : {buffer}\n"
                  + loop("l", 5, {"acc": "%p"}, body, "%v", kind=buffer), "%l#1", buffer)
    shifted = shift(text, ROOM)
    # 5 × 128 bytes before, one of 640 now: no gain in bytes, one in calls
    assert scatters(shifted) == [0] and shifted.carried() == [3]


def test_an_update_that_covers_a_part_of_the_scattered_dimension_stays() -> None:
    buffer = "tensor<10x4xf32>"
    body = (f"{WIDEN}{scattered()}%v = stablehlo.dynamic_update_slice %acc, %g, %i_l, %c0 : ({buffer}, {PART}, "
            f"tensor<i32>, tensor<i32>) -> {buffer}")
    text = region(f"%p = stablehlo.constant dense<0.0> : {buffer}\n"
                  + loop("l", 5, {"acc": "%p"}, body, "%v", kind=buffer), "%l#1", buffer)
    shifted = shift(text, ROOM)
    assert not shifted.changed and len(View(shifted.after).ops("stablehlo.reduce_scatter")) == 1
