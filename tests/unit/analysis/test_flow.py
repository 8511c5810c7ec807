"""The flow of deferred reductions: edges, needs with their sentences, and how often a place is passed."""

from __future__ import annotations

import pytest
from spmd_helpers import loop, marked, module, region

from hlorewrite.analysis.block_frequency import ASSUMED_TRIPS
from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint, places_to
from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.linearity import UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir.binding import op_key
from hlorewrite.ir.regions import Loop
from hlorewrite.ir.view import View, defining_op
from hlorewrite.rules.library import shipped_facts

V, N = "tensor<4xf32>", "tensor<i32>"
GRADIENT = f"%w = stablehlo.multiply %s, %r : {V}\n%g = AR(%w) : {V}\n"


def flow_of(view: View, kind: str = "sum") -> DeferralGraph:
    sources = [result for op in view.ops("stablehlo.all_reduce") for result in op.results]
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert isinstance(groups, Groups)
    return DeferralGraphBuilder(shipped_facts(), UniformContext(kind, Uniformity(view, groups))).build(sources)


def forcing_uses(text: str, kind: str = "sum") -> set[tuple[str, str, bool]]:
    """(reader, sentence, whether a legality condition failed) of every forcing use, but for the end of the region."""
    view = module(text)
    forced = {(use.reader.name, use.sentence, use.illegal) for uses in flow_of(view, kind).forcing_uses.values()
              for use in uses}
    return {use for use in forced if use[1] != "it is a result of the program"}


def accumulate(trips: int | str = 5, update: str = f"%new = stablehlo.add %acc, %g : {V}", condition: str = "",
               test: str = "") -> str:
    return loop("l", trips, {"acc": "%zero"}, GRADIENT + update, "%new", condition=condition, test=test)


def test_places_of_one_value_differ_by_their_branch() -> None:
    view = module(region(f'%b = "stablehlo.if"(%go) ({{ stablehlo.return %r : {V} }}, {{ stablehlo.return %s : {V} '
                         f"}}) : (tensor<i1>) -> {V}"))
    fork = view.ops("stablehlo.if")[0]
    first, second = (ProgramPoint(fork.results[0], fork.regions[number].blocks[0]) for number in range(2))
    assert first != second and first != ProgramPoint(fork.results[0]) and ProgramPoint(fork.results[0]) != first
    assert len({first, second, ProgramPoint(fork.results[0]), ProgramPoint(fork.results[0],
                                                                           fork.regions[0].blocks[0])}) == 3


# ---- loops


def test_an_accumulation_is_free_until_the_loop_has_ended() -> None:
    view = module(region(accumulate(test="l"), "%l#1"))
    flow = flow_of(view)
    while_op = view.ops("stablehlo.while")[0]
    source = ProgramPoint(flow.sources[0])
    total, carried = ProgramPoint(while_op.results[1]), ProgramPoint(Loop(while_op).body.arguments[1])
    reached = list(flow.reachable([source]))
    assert reached[0] == source and total in reached and carried in reached
    assert flow.executions[source] == flow.executions[carried] == 5
    assert flow.executions[total] == 1
    readers = {place: [use.reader.name for use in uses] for place, uses in flow.forcing_uses.items()}
    assert list(readers.values()) == [["sdy.return"]]
    assert next(iter(readers)).value.owner.operation.name == "stablehlo.reshape"


@pytest.mark.parametrize(("trips", "times"), [(7, 7), ("%n", ASSUMED_TRIPS)])
def test_places_in_loops_are_passed_as_often_as_the_loop_runs(trips: int | str, times: float) -> None:
    flow = flow_of(module(region(accumulate(trips), "%l#1")))
    assert flow.executions[ProgramPoint(flow.sources[0])] == times


def test_a_loop_that_runs_differently_on_other_devices_needs_the_value() -> None:
    through = GRADIENT + loop("l", "%me", {"acc": "%g"}, f"%new = stablehlo.add %acc, %acc : {V}", "%new")
    assert forcing_uses(region(through, "%l#1")) == {
        ("stablehlo.while", "devices of a group may run the loop a different number of times: it is computed from the "
         "device's own id", True)}


OWN_LENGTH = f"""%first = stablehlo.slice %s [0:1] : ({V}) -> tensor<1xf32>
      %real = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>
      %length = stablehlo.convert %real : (tensor<f32>) -> {N}
      """
CHANGING = f"""%turn = stablehlo.convert %i_l : ({N}) -> tensor<f32>
        %turns = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<f32>) -> {V}
        %w = stablehlo.multiply %s, %turns : {V}
        %g = AR(%w) : {V}
        %new = stablehlo.add %acc, %g : {V}"""


@pytest.mark.parametrize(("body", "legal"), [
    (OWN_LENGTH + loop("l", "%length", {"acc": "%zero"}, CHANGING, "%new"), True),
    (OWN_LENGTH + accumulate("%length"), False),  # XLA moves its all-reduce before the loop
    (loop("l", "%me", {"acc": "%zero"}, CHANGING, "%new"), False)])
def test_a_loop_that_reduces_something_new_in_each_iteration_runs_alike_or_never_ends(body: str, legal: bool) -> None:
    illegal = {sentence for _, sentence, illegal in forcing_uses(region(body, "%l#1")) if illegal}
    assert bool(illegal) != legal
    assert all("may run the loop a different number of times" in sentence for sentence in illegal)


def test_a_condition_that_reads_the_accumulator_needs_the_value() -> None:
    condition = f"""%part = stablehlo.slice %acc [0:1] : ({V}) -> tensor<1xf32>
      %number = stablehlo.reshape %part : (tensor<1xf32>) -> tensor<f32>
      %limit = stablehlo.constant dense<9.0> : tensor<f32>
      %small = stablehlo.compare LT, %number, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %more = stablehlo.and %lt, %small : tensor<i1>"""
    assert forcing_uses(region(accumulate(condition=condition), "%l#1")) == {
        ("stablehlo.return", "the loop's condition reads it", True)}


def test_a_reduced_predicate_decides_whether_the_loop_goes_on() -> None:
    view = module(region(f"""%go1 = stablehlo.convert %mine : (tensor<i1>) -> tensor<i1>
      {loop("l", 3, {"x": "%zero"}, f"%y = stablehlo.add %x, %s : {V}", "%y", condition='''
        %any = "stablehlo.all_reduce"(%go1) ({^bb0(%p: tensor<i1>, %q: tensor<i1>):
          %either = stablehlo.or %p, %q : tensor<i1> stablehlo.return %either : tensor<i1>})
          {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
           channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}
          : (tensor<i1>) -> tensor<i1>
        %more = stablehlo.or %any, %any : tensor<i1>''')}""", "%l#1"))
    sentences = {use.sentence for uses in flow_of(view, "or").forcing_uses.values() for use in uses}
    assert sentences == {"it decides whether the loop continues"}


def test_a_loop_with_a_token_is_left_alone() -> None:
    text = region(f"""%t = stablehlo.create_token : !stablehlo.token
      %l:3 = stablehlo.while(%i = %c0, %acc = %zero, %tok = %t) : {N}, {V}, !stablehlo.token
      cond {{
        %lt = stablehlo.compare LT, %i, %c1 : ({N}, {N}) -> tensor<i1>
        stablehlo.return %lt : tensor<i1>
      }} do {{
        {GRADIENT}
        %new = stablehlo.add %acc, %g : {V}
        %next = stablehlo.add %i, %c1 : {N}
        stablehlo.return %next, %new, %tok : {N}, {V}, !stablehlo.token
      }}""", "%l#1")
    assert forcing_uses(text) == {("stablehlo.return", "the loop carries a token, so its effects are ordered", True)}


def test_a_value_from_outside_is_not_reduced_in_a_loop_that_runs_differently() -> None:
    def text(trips: int | str) -> str:
        update = f"%new = stablehlo.add %acc, %g : {V}"
        return region(GRADIENT + loop("l", trips, {"acc": "%zero"}, update, "%new"), "%l#1")
    assert forcing_uses(text(3)) == set()
    assert forcing_uses(text("%me")) == {
        ("stablehlo.while", "devices of a group may run the loop around its reader a different number of times: it is "
         "computed from the device's own id", True)}


# ---- branches


def branch(predicate: str, left: str, right: str, before: str = "") -> str:
    return f"""{before}
      %b = "stablehlo.if"({predicate}) ({{ {left} stablehlo.return %x : {V} }}, {{ {right} stablehlo.return %y : {V} }})
        : (tensor<i1>) -> {V}
"""


def test_a_value_read_in_one_branch_may_be_reduced_there() -> None:
    view = module(region(branch("%go", f"%x = stablehlo.tanh %g {{test.v}} : {V}", f"%y = stablehlo.negate %r : {V}",
                                GRADIENT), "%b"))
    flow = flow_of(view)
    source = ProgramPoint(flow.sources[0])
    reader = defining_op(marked(view))
    assert reader is not None
    chain = places_to(flow.sources[0], reader)
    assert chain == [source, ProgramPoint(flow.sources[0], (reader.block,))]
    assert flow.edges[source] == [chain[1]]
    assert [use.sentence for use in flow.forcing_uses[chain[1]]] == ["stablehlo.tanh is not linear"]
    assert (flow.executions[source], flow.executions[chain[1]]) == (1, 0.5)


def test_a_branch_that_differs_between_devices_is_not_entered() -> None:
    enter = branch("%mine", f"%x = stablehlo.negate %g : {V}", f"%y = stablehlo.negate %r : {V}", GRADIENT)
    sentence = "the branch taken differs between devices of a group: it is computed from the device's own id"
    assert forcing_uses(region(enter, "%b")) == {("stablehlo.if", sentence, True)}
    leave = GRADIENT.replace("\n", " ") + f"%x = stablehlo.negate %g : {V}"
    assert forcing_uses(region(branch("%mine", leave, f"%y = stablehlo.negate %r : {V}"), "%b")) == {
        ("stablehlo.if", sentence, True)}
    assert forcing_uses(region(branch("%go", leave, f"%y = stablehlo.negate %r : {V}"), "%b")) == set()


def test_nested_branches_are_entered_one_by_one() -> None:
    other = f"%y = stablehlo.negate %r : {V}"
    inner = branch("%go", f"%x = stablehlo.tanh %g {{test.v}} : {V}", other).replace("%b", "%c").replace("%x", "%x2")
    view = module(region(branch("%go", f"{inner}%x = stablehlo.negate %c : {V}", other, GRADIENT), "%b"))
    flow = flow_of(view)
    reader = defining_op(marked(view))
    assert reader is not None
    chain = places_to(flow.sources[0], reader)
    assert len(chain) == 3 and [flow.executions[place] for place in chain] == [1, 0.5, 0.25]
    assert flow.edges[chain[0]] == [chain[1]] and flow.edges[chain[1]] == [chain[2]]


# ---- other readers


@pytest.mark.parametrize(("lines", "expected"), [
    (f"%v = stablehlo.tanh %g : {V}", ("stablehlo.tanh", "stablehlo.tanh is not linear", False)),
    (f"%v = stablehlo.multiply %g, %s : {V}",
     ("stablehlo.multiply", "the factor differs between devices of a group", True)),
    (f"%v = func.call @f(%g) : ({V}) -> {V}", ("func.call", "it is passed to a function", False)),
    (f"%v = stablehlo.multiply %g, %g : {V}",
     ("stablehlo.multiply", "stablehlo.multiply is not linear in this operand", False)),
    (f"%v = stablehlo.multiply %g, %r : {V}", None),
    (f"%v = stablehlo.optimization_barrier %g : {V}", None),
    (f"""%k = stablehlo.slice %g [0:1] : ({V}) -> tensor<1xf32>
      %q = stablehlo.reshape %k : (tensor<1xf32>) -> tensor<f32>
      %v = "stablehlo.map"(%r) ({{^bb0(%x: tensor<f32>):
        %z = stablehlo.add %x, %q : tensor<f32> stablehlo.return %z : tensor<f32>}}) {{dimensions = array<i64: 0>}}
        : ({V}) -> {V}""", ("stablehlo.map", "it is read inside a region of stablehlo.map", False)),
])
def test_readers(lines: str, expected: tuple[str, str, bool] | None) -> None:
    function = f"func.func private @f(%x: {V}) -> {V} {{ return %x : {V} }}"
    assert forcing_uses(region(GRADIENT + lines, "%v", functions=function)) == ({expected} if expected else set())


def test_results_of_dynamic_shape_are_not_followed() -> None:
    text = region(GRADIENT + f"""%v = stablehlo.slice %g [0:2] : ({V}) -> tensor<2xf32>
      %d = "stablehlo.dynamic_update_slice"(%g, %v, %c0) : ({V}, tensor<2xf32>, {N}) -> tensor<?xf32>""")
    assert forcing_uses(text) == {("stablehlo.dynamic_update_slice", "tensor<?xf32> has no static shape", True)}


def test_a_barrier_hands_on_each_operand_by_itself() -> None:
    view = module(region(GRADIENT + f"""%o:2 = stablehlo.optimization_barrier %r, %g : {V}, {V}
      %v = stablehlo.tanh %o#0 {{test.v}} : {V}
      %u = stablehlo.negate %o#1 {{test.u}} : {V}"""))
    flow = flow_of(view)
    reached = {place.value for place in flow.reachable([ProgramPoint(flow.sources[0])])}
    assert marked(view, "u") in reached and marked(view) not in reached


def test_of_two_factors_the_larger_one_stays_deferred() -> None:
    def joint_positions(left: str, right: str) -> set[int]:
        view = module(region(f"""%w = stablehlo.broadcast_in_dim %s, dims = [1] : ({V}) -> tensor<8x4xf32>
          %big = AR(%w) : tensor<8x4xf32>
          %small = AR(%s) : {V}
          %wide = stablehlo.broadcast_in_dim %small, dims = [1] : ({V}) -> tensor<8x4xf32>
          %v = stablehlo.multiply {left}, {right} {{test.v}} : tensor<8x4xf32>"""))
        flow = flow_of(view)
        product = defining_op(marked(view))
        assert product is not None
        sentences = [use.sentence for uses in flow.forcing_uses.values() for use in uses]
        assert sentences == ["it meets another reduced value there, and the op is linear in each of them, but "
                             "not in both at once"]
        return set(flow.joint[op_key(product)].operands)
    assert joint_positions("%big", "%wide") == {0}
    assert joint_positions("%wide", "%big") == {1}


def test_a_refused_use_is_a_need_with_its_sentence() -> None:
    view = module(region(GRADIENT + f"%v = stablehlo.negate %g {{test.v}} : {V}", "%v"))
    op = defining_op(marked(view))
    assert op is not None
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert isinstance(groups, Groups)
    builder = DeferralGraphBuilder(shipped_facts(), UniformContext("sum", Uniformity(view, groups)))
    sources = list(view.ops("stablehlo.all_reduce")[0].results)
    assert ProgramPoint(marked(view)) in builder.build(sources).executions
    builder.refuse([(op, 0)], "for a reason")
    flow = builder.build(sources)
    assert [use.sentence for use in flow.forcing_uses[ProgramPoint(sources[0])]] == ["for a reason"]
    assert ProgramPoint(marked(view)) not in flow.executions


# ---- refusals


@pytest.mark.parametrize(("reader", "position", "reached"), [
    ("stablehlo.add", 1, 0), ("stablehlo.optimization_barrier", 0, 0), ("stablehlo.return", 1, 1),
    ("stablehlo.while", 1, 0)])
def test_a_refused_use_is_a_need_whatever_reads_there(reader: str, position: int, reached: int) -> None:
    inner = loop("k", 3, {"in": "%first"}, f"%more_ = stablehlo.add %in, %r : {V}", "%more_")
    text = {"stablehlo.while": f"{GRADIENT}%first = stablehlo.add %g, %zero : {V}\n{inner}"
                               f"%new = stablehlo.add %acc, %k#1 : {V}",
            "stablehlo.optimization_barrier": f"{GRADIENT}%h = stablehlo.optimization_barrier %g : {V}\n"
                                              f"%new = stablehlo.add %acc, %h : {V}",
            }.get(reader, f"{GRADIENT}%new = stablehlo.add %acc, %g : {V}")
    view = module(region(loop("l", 5, {"acc": "%zero"}, text, "%new", test="l"), "%l#1"))
    outer = marked(view, "l").owner.operation
    body = [op.operation for op in Loop(outer).body.operations]
    refused = next(op for op in body if op.name == reader)
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert isinstance(groups, Groups)
    builder = DeferralGraphBuilder(shipped_facts(), UniformContext("sum", Uniformity(view, groups)))
    assert builder.refuse([(refused, position)], "as asked") == 1
    assert builder.refuse([(refused, position)], "as asked") == 0, "building anew would change nothing"
    flow = builder.build([view.ops("stablehlo.all_reduce")[0].results[0]])
    forced = [use for uses in flow.forcing_uses.values() for use in uses if use.sentence == "as asked"]
    assert [use.reader == refused for use in forced] == [True]
    assert ProgramPoint(outer.results[1]) not in flow.reachable([ProgramPoint(flow.sources[0])])
    assert reached == sum(use.reader.name == "stablehlo.return" for use in forced)
