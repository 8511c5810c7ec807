"""One budget for what passes keep for longer: hoisted values, buffers of fused calls, local sums."""

from __future__ import annotations

import fusion_modules as m
import pytest

from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

T = "tensor<8xf32>"
GATHER = (f'%g = "stablehlo.all_gather"(%b) <{{all_gather_dim = 0 : i64, {m.CHANNEL}, {m.groups_text(m.ALL)}, '
          f"use_global_device_ids}}> : ({T}) -> tensor<32xf32> "
          f"%s = stablehlo.slice %g [4:12] : (tensor<32xf32>) -> {T} ")


def hoistable() -> Module:
    """A loop that gathers an argument each time, 96 bytes more than a part, and two sums that may share a call."""
    return m.module(f"%a: {T}, %b: {T}", f"({T}, {T})", "%c = stablehlo.constant dense<0> : tensor<i32>",
                    "%t = stablehlo.constant dense<3> : tensor<i32>",
                    f"%res:2 = stablehlo.while(%i = %c, %v = %a) : tensor<i32>, {T} cond {{ "
                    "%p = stablehlo.compare LT, %i, %t, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> "
                    "stablehlo.return %p : tensor<i1> } do { %one = stablehlo.constant dense<1> : tensor<i32> "
                    f"%j = stablehlo.add %i, %one : tensor<i32> {GATHER} "
                    f"%k = stablehlo.multiply %v, %s : {T} "
                    f"stablehlo.return %j, %k : tensor<i32>, {T} }}", m.reduce("%x", "%res#1"), m.reduce("%y", "%a"),
                    f"return %x, %y : {T}, {T}")


def ran(pipeline: str, memory: int | None) -> tuple[Module, PassContext, bool]:
    module, ctx = hoistable(), PassContext(topology="h200:1x4", memory_left=memory)
    changed = run_passes(module, parse_pipeline(pipeline), ctx)
    return module, ctx, changed


@pytest.mark.parametrize(("memory", "changed", "left"), [(None, True, None), (96, True, 0), (100, True, 4),
                                                         (95, False, 95), (0, False, 0)])
def test_hoisting_is_paid_from_it(memory: int | None, changed: bool, left: int | None):
    _, ctx, did = ran("hoist-collectives", memory)
    assert (did, ctx.memory_left) == (changed, left) and ctx.memory_refused is not changed


@pytest.mark.parametrize(("memory", "calls", "left"), [(None, 1, None), (64, 1, 0), (63, 2, 63)])
def test_buffers_of_fused_calls_are_paid_from_it(memory: int | None, calls: int, left: int | None):
    """Two values of 32 bytes travel together; without them nothing is marked either, so that XLA may merge them."""
    module, ctx, did = ran("all-reduce-fusion", memory)
    assert m.count(module, "all_reduce") == calls
    assert did == (calls == 1)
    assert ctx.memory_left == left and ctx.memory_refused == (calls == 2)


def test_all_passes_share_it():
    """The hoisted value leaves too little for the buffer."""
    module, ctx, did = ran("hoist-collectives,all-reduce-fusion", 96 + 63)
    assert did and ctx.memory_left == 63
    assert m.count(module, "all_reduce") == 2
