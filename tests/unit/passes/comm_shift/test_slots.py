"""Loops that get a place for the replicated addend: what is known about the ops in them stays known."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
from spmd_helpers import loop, module, region

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph
from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.linearity import FactContext, JointlyLinear, LinearityFacts, NotLinear, UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir.binding import ir
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import View
from hlorewrite.passes.comm_shift.deferral import ReplicatedAddends
from hlorewrite.passes.comm_shift.deferral_rewrite import Deferral, add_slots
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.library import shipped_facts

V = "tensor<4xf32>"
STEP = region(loop("l", 5, {"acc": "%zero"}, (
    f"%w = stablehlo.multiply %s, %r : {V}\n%g = AR(%w) : {V}\n%twice = stablehlo.add %g, %g : {V}\n"
    f"%odd = stablehlo.tanh %g : {V}\n%both = stablehlo.add %twice, %odd : {V}\n"
    f"%new = stablehlo.add %acc, %twice : {V}"), "%new"), "%l#1")


WITH_SLOT = region(f"%start = stablehlo.constant dense<1.0> : {V}\n" + loop("l", 5, {"acc": "%start"}, (
    f"%w = stablehlo.multiply %s, %r : {V}\n%g = AR(%w) : {V}\n%h = stablehlo.add %g, %acc : {V}\n"
    f"%new = stablehlo.add %h, %acc : {V}"), "%new"), "%l#1")


class CountedFacts(LinearityFacts):
    """The shipped facts, and which ops they were asked about."""

    def __init__(self) -> None:
        self.facts = shipped_facts()
        self.asked: list[str] = []

    def linear_in(self, op: ir.Operation, position: int, context: FactContext) -> JointlyLinear | NotLinear:
        """The shipped answer."""
        self.asked.append(op.name)
        return self.facts.linear_in(op, position, context)


def context_of(view: View) -> UniformContext:
    groups = groups_of(view.ops("stablehlo.all_reduce")[0], view)
    assert isinstance(groups, Groups)
    return UniformContext("sum", Uniformity(view, groups))


def described(flow: DeferralGraph) -> tuple[object, ...]:
    uses = [(str(place.value), use.sentence, use.reader.name) for place, found in flow.forcing_uses.items()
            for use in found]
    return list(flow.executions.items()), flow.edges, flow.joint, uses


def test_linear_ops_stay_known_when_loops_get_slots() -> None:
    """The flow is that of a new builder; only ops that are not linear are asked about again."""
    view = module(STEP)
    sources, facts = list(view.ops("stablehlo.all_reduce")[0].results), CountedFacts()
    builder = DeferralGraphBuilder(facts, context_of(view))
    builder.build(sources)
    assert {"stablehlo.add", "stablehlo.reshape", "stablehlo.tanh"} == set(facts.asked)
    facts.asked.clear()
    add_slots(Editor(view), [(view.ops("stablehlo.while")[0], 1)], "sum")
    again = builder.with_slots(context_of(view)).build(sources)
    assert facts.asked == ["stablehlo.tanh"]
    assert described(again) == described(DeferralGraphBuilder(shipped_facts(), context_of(view)).build(sources))
    assert view.ops("stablehlo.while")[0].results[1] in {place.value for place in again.executions}


def test_a_builder_with_slots_has_refused_nothing() -> None:
    view = module(STEP)
    source = view.ops("stablehlo.all_reduce")[0].results[0]
    reader = next(iter(source.uses))
    builder = DeferralGraphBuilder(shipped_facts(), context_of(view))
    assert builder.refuse([(reader.owner.operation, reader.operand_number)], "for a reason") == 1
    flow = builder.with_slots(context_of(view)).build([source])
    assert "for a reason" not in {use.sentence for uses in flow.forcing_uses.values() for use in uses}


def test_the_flow_before_slots_is_gone_when_the_next_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two flows of a large program would be the most that the pass holds."""
    alive: list[list[bool]] = []
    flows: list[weakref.ref[DeferralGraph]] = []
    build = DeferralGraphBuilder.build

    def watched(builder: DeferralGraphBuilder, sources: list[ir.Value]) -> DeferralGraph:
        alive.append([flow() is not None for flow in flows])
        flow = build(builder, sources)
        flows.append(weakref.ref(flow))
        return flow

    monkeypatch.setattr(DeferralGraphBuilder, "build", watched)
    view = module(WITH_SLOT)
    assert run_passes(view.module, parse_pipeline("comm-shift"), PassContext())
    assert alive[:2] == [[], [False]]


def test_what_was_found_out_is_gone_before_the_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of values before the addends are found, and the flow's places before the module grows."""
    held: list[tuple[str, int]] = []
    addends, run = ReplicatedAddends.__init__, Deferral.run
    values: list[dict[ir.Value, object]] = []

    def watched_search(self: Uniformity, root: ir.Value) -> None:
        search(self, root)
        values.append(self._found)

    def watched_addends(self: ReplicatedAddends, *arguments: Any) -> None:
        held.append(("values", sum(map(len, values))))
        addends(self, *arguments)

    def watched_run(self: Deferral) -> list[ir.Operation]:
        held.append(("places", len(self.flow.edges) + len(self.flow.executions) + len(self.flow.forcing_uses)))
        return run(self)

    search = Uniformity._search
    monkeypatch.setattr(Uniformity, "_search", watched_search)
    monkeypatch.setattr(ReplicatedAddends, "__init__", watched_addends)
    monkeypatch.setattr(Deferral, "run", watched_run)
    assert run_passes(module(WITH_SLOT).module, parse_pipeline("comm-shift"), PassContext())
    assert values and held == [("values", 0), ("values", 0), ("places", 0)]


def test_a_place_is_one_object_in_a_flow() -> None:
    view = module(STEP)
    flow = DeferralGraphBuilder(shipped_facts(),
                                context_of(view)).build(list(view.ops("stablehlo.all_reduce")[0].results))
    held = {place: place for place in flow.executions}
    targets = [target for targets in flow.edges.values() for target in targets]
    assert len(targets) > len(set(targets)) and all(held[target] is target for target in targets)
