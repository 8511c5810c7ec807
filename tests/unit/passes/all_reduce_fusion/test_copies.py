"""Copies into and out of buffers, and the time of updates."""

from __future__ import annotations

import fusion_modules as m
import pytest

from hlorewrite.cost import topology
from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passes.all_reduce_fusion.classes import copied_in, copied_out
from hlorewrite.passes.common.block_graph import BlockGraph

T, FLAT = "tensor<8x8xf32>", "tensor<64xf32>"
SUM = f"%g = stablehlo.add %a, %b : {T}"
PRODUCT = f"%g = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}"
UPDATE = f"%u = stablehlo.subtract %b, %one : {T}"


def one(*before: str, after: tuple[str, ...] = (UPDATE,), operand: str = "%g", result: str = "%u",
        kind: str = T) -> Module:
    """A gradient, its reduction, and what reads it."""
    return m.module(f"%a: {T}, %b: {T}", f"({kind})", *before, m.reduce("%one", operand, kind), *after,
                    f"return {result} : {kind}")


def reduction(module: Module):
    """The one all-reduce."""
    return View(module).ops("stablehlo.all_reduce")[0]


@pytest.mark.parametrize("before, copied", [
    ([SUM], False), ([PRODUCT], True), ([], True),
    ([SUM.replace("%g", "%h"), f"%g = stablehlo.optimization_barrier %h : {T}"], True),
    ([SUM, f"%n = stablehlo.negate %g : {T}"], True),
], ids=["a sum", "a product", "an argument", "behind a barrier", "read twice"])
def test_copies_in(before: list[str], copied: bool) -> None:
    module = one(*before, operand="%g" if before else "%a")
    assert copied_in(reduction(module)) is copied


@pytest.mark.parametrize("made, copied", [("stablehlo.add %a, %b", False), (
    "stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]", True)])
def test_reshapes_are_looked_through(made: str, copied: bool) -> None:
    types = T if "add" in made else f"({T}, {T}) -> {T}"
    module = m.module(f"%a: {T}, %b: {T}, %c: {FLAT}", f"({FLAT})", f"%g = {made} : {types}",
                      f"%f = stablehlo.reshape %g : ({T}) -> {FLAT}", m.reduce("%one", "%f", FLAT),
                      f"%s = stablehlo.reshape %one : ({FLAT}) -> {T}", f"%v = stablehlo.reshape %s : ({T}) -> {FLAT}",
                      f"%u = stablehlo.subtract %c, %v : {FLAT}", f"return %u : {FLAT}")
    assert copied_in(reduction(module)) is copied
    assert not copied_out(reduction(module))


@pytest.mark.parametrize("after, result, copied", [
    ((UPDATE,), "%u", False), ((), "%one", True),
    ((PRODUCT.replace("%g", "%u").replace("%a", "%one"),), "%u", True),
    ((UPDATE, PRODUCT.replace("%g", "%v").replace("%a", "%one")), "%u", True)],
    ids=["an update", "returned", "a product", "both"])
def test_copies_out(after: tuple[str, ...], result: str, copied: bool) -> None:
    assert copied_out(reduction(one(SUM, after=after, result=result))) is copied


def readings(module: Module) -> list[float]:
    """Bytes that each member's own readers read and write."""
    view = View(module)
    clock = KernelClock(view, topology("h200:1x4"))
    members = view.ops("stablehlo.all_reduce")
    graph = BlockGraph(view, members[0].block, members, clock)
    return [round(reading * clock.memory_bytes_per_s) for reading in graph.readings]


def test_an_update_reads_and_writes() -> None:
    """Reads the sum, a parameter and a momentum, and writes both; a rate that is broadcast costs nothing."""
    module = m.module(f"%a: {T}, %p: {T}, %m: {T}", f"({T}, {T})", m.reduce("%one", "%a", T),
                      "%c = stablehlo.constant dense<1.0> : tensor<f32>",
                      f"%k = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {T}",
                      f"%x = stablehlo.multiply %one, %k : {T}", f"%n = stablehlo.add %m, %x : {T}",
                      f"%q = stablehlo.subtract %p, %n : {T}", f"return %q, %n : {T}, {T}")
    assert readings(module) == [256 * 5]


def test_a_norm_of_all_ends_the_own_part() -> None:
    """Squares are of one gradient; what waits for the norm of both belongs to neither."""
    module = m.module(f"%a: {T}, %b: {T}", f"({T}, {T})", m.reduce("%one", "%a", T), m.reduce("%two", "%b", T),
                      f"%x = stablehlo.multiply %one, %one : {T}", f"%y = stablehlo.multiply %two, %two : {T}",
                      f"%n = stablehlo.add %x, %y : {T}", f"%u = stablehlo.divide %one, %n : {T}",
                      f"%v = stablehlo.divide %two, %n : {T}", f"return %u, %v : {T}, {T}")
    assert readings(module) == [256 * 2, 256 * 2]


def test_kernels_and_other_collectives_have_times_of_their_own() -> None:
    module = m.module(f"%a: {T}, %b: {T}", f"({T})", m.reduce("%one", "%a", T),
                      PRODUCT.replace("%g", "%x").replace("%a", "%one"), m.reduce("%two", "%x", T),
                      f"return %two : {T}")
    assert readings(module) == [0, 0]
