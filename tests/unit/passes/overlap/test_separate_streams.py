"""Streams for network ports and for links: which collectives get which, and what passes make of it."""

from __future__ import annotations

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source

from hlorewrite.errors import UsageError
from hlorewrite.hlo.published_flags import STREAMS, published_values
from hlorewrite.ir import View, ir
from hlorewrite.ir.frontend import FRONTEND, STREAM, frontend_attributes
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.common.overlap_model import SEPARATE, OverlapModel
from hlorewrite.passes.rotate_collectives.rotate_collectives import RotateCollectives
from hlorewrite.passes.separate_streams import SeparateStreams
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import named_pipeline
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.timeline.stream_tasks import block_time

X = "tensor<1024x1024xf32>"
ACROSS, WITHIN, ALL = "[[0, 2], [1, 3]]", "[[0, 1], [2, 3]]", "[[0, 1, 2, 3]]"
CLUSTER = "h200:2x2"


def reduced(*groups: str, also: str = "") -> Module:
    """All-reduces of one value, over groups."""
    lines = [m.unique_reduce(f"%out{number}", "%x", X, groups=each) for number, each in enumerate(groups)]
    names, types = ", ".join(f"%out{number}" for number in range(len(groups))), ", ".join([X] * len(groups))
    return m.module(f"%x: {X}", f"({types})", *([also] if also else []), *lines, f"return {names} : {types}")


def streams(module: Module) -> list[str]:
    """The annotation of each collective, in order."""
    return [frontend_attributes(op).get(STREAM, "") for op in View(module).ops("stablehlo.all_reduce")]


def separated(module: Module, topology: str = CLUSTER) -> tuple[bool, list[str]]:
    """Whether the pass changed a module, and what it annotated."""
    return SeparateStreams(topology=topology).run(module, PassContext()), streams(module)


def test_ports_and_links_get_a_stream_each() -> None:
    assert separated(reduced(ACROSS, WITHIN, ALL)) == (True, ["1", "0", "0"])


@pytest.mark.parametrize("groups, topology", [
    ((ACROSS, ACROSS), CLUSTER), ((WITHIN, ALL), CLUSTER), ((ACROSS, WITHIN), "h200:1x4"),
    (("[[0], [1], [2], [3]]", WITHIN), CLUSTER)], ids=["ports alone", "no ports alone", "one host", "sends nothing"])
def test_with_one_kind_nothing_changes(groups: tuple[str, ...], topology: str) -> None:
    assert separated(reduced(*groups), topology) == (False, [""] * len(groups))


def test_what_a_user_annotated_stays() -> None:
    module = parse(reduced(ACROSS, WITHIN, ACROSS).text())
    view = View(module)
    with module.mlir.context:
        view.ops("stablehlo.all_reduce")[2].attributes[FRONTEND] = ir.Attribute.parse('{_xla_stream_annotation = "7"}')
    assert separated(module) == (True, ["1", "0", "7"])


def test_ragged_exchanges_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A public report saw gradients that did not repeat with several of them at a time."""
    call = f"%c = stablehlo.custom_call @ragged_all_to_all(%x) : ({X}) -> {X}"
    assert separated(reduced(ACROSS, WITHIN, also=call)) == (False, ["", ""])
    replace_source("hlorewrite.passes.separate_streams", "_is_ragged(view):\n            return marked",
                   "False:\n            return marked", monkeypatch)
    assert separated(reduced(ACROSS, WITHIN, also=call)) == (True, ["1", "0"])


def test_a_cluster_is_needed() -> None:
    with pytest.raises(UsageError, match="reads which links a group uses, and no cluster is named"):
        SeparateStreams().run(reduced(ACROSS, WITHIN), PassContext())


def test_a_plan_is_a_mark_that_the_last_run_takes_away() -> None:
    module = reduced(ACROSS, WITHIN)
    assert SeparateStreams(plan=True, topology=CLUSTER).run(module, PassContext())
    assert SEPARATE in module.operation.attributes and streams(module) == ["", ""]
    assert separated(module) == (True, ["1", "0"]) and SEPARATE not in module.operation.attributes
    assert not SeparateStreams(plan=True, topology="h200:1x4").run(reduced(ACROSS, WITHIN), PassContext())


def test_passes_count_on_two_streams_where_they_are_planned() -> None:
    module = reduced(ACROSS, WITHIN)
    seconds = []
    for _ in range(2):
        view = View(module)
        model = OverlapModel(view, PassContext(topology=CLUSTER), "a test")
        seconds.append(block_time(model.tasks(view.ops("stablehlo.all_reduce")), 0.0).seconds)
        SeparateStreams(plan=True, topology=CLUSTER).run(module, PassContext())
    assert seconds[1] < seconds[0] < 2 * seconds[1]


def test_the_pipeline_leaves_no_mark() -> None:
    module = reduced(ACROSS, WITHIN)
    assert run_passes(module, parse_pipeline(named_pipeline("streams")), PassContext(topology=CLUSTER))
    assert SEPARATE not in module.text() and sorted(streams(module)) == ["0", "1"]


def test_plans_may_hold_the_options() -> None:
    known = published_values()
    assert all(value in known[name] for name, value in STREAMS.items())


# ---- loops whose gradients go over ports while activations are reduced over links


def layers() -> Module:
    """Layers that wait for a reduction within hosts, and reduce a gradient across them at the end of an iteration."""
    big, dot = "tensor<4096x4096xf32>", "contracting_dims = [1] x [0]"
    inner, outer = (m.unique_reduce("%v", "%h", big, groups=WITHIN),
                    m.unique_reduce("%g", "%d", big, groups=ACROSS))
    index = "%i, %z, %z"
    stack = "tensor<8x4096x4096xf32>"
    return m.module(
        f"%x: {big}, %w: {big}", f"({big}, {stack})", "%z = stablehlo.constant dense<0> : tensor<i32>",
        "%one = stablehlo.constant dense<1> : tensor<i32>", "%n = stablehlo.constant dense<8> : tensor<i32>",
        f"%e = stablehlo.constant dense<0.0> : {stack}",
        f"%L:3 = stablehlo.while(%i = %z, %c = %x, %acc = %e) : tensor<i32>, {big}, {stack} cond {{",
        "%p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "stablehlo.return %p : tensor<i1> } do {",
        f"%h = stablehlo.dot_general %c, %w, {dot} : ({big}, {big}) -> {big}", inner,
        f"%t = stablehlo.tanh %v : {big}", f"%u = stablehlo.dot_general %t, %w, {dot} : ({big}, {big}) -> {big}",
        f"%d = stablehlo.dot_general %u, %t, {dot} : ({big}, {big}) -> {big}", outer,
        f"%row = stablehlo.reshape %g : ({big}) -> tensor<1x4096x4096xf32>",
        f"%acc1 = stablehlo.dynamic_update_slice %acc, %row, {index} : ({stack}, tensor<1x4096x4096xf32>, tensor<i32>, "
        f"tensor<i32>, tensor<i32>) -> {stack}", "%next = stablehlo.add %i, %one : tensor<i32>",
        f"stablehlo.return %next, %u, %acc1 : tensor<i32>, {big}, {stack} }}", f"return %L#1, %L#2 : {big}, {stack}")


def test_a_loop_is_rotated_around_what_ends_its_iteration() -> None:
    """Around the gradient alone: the rest of the iteration waits for the activation's reduction."""
    module = layers()
    assert RotateCollectives().run(module, PassContext(topology=CLUSTER))
    before_loop = module.text().split("stablehlo.while")[0]
    assert before_loop.count("all_reduce") == 1 and f"replica_groups = dense<{WITHIN}>" in before_loop
