"""Calls held to their time with barriers: what waits for what, and that values stay."""

from __future__ import annotations

import fusion_modules as m
import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.view import View
from hlorewrite.passes.all_reduce_fusion import AllReduceFusion
from hlorewrite.passes.all_reduce_fusion.order import FusedCall, Spine, hold
from hlorewrite.passmanager.base import PassContext

T = "tensor<4x4xf32>"
DOT = f"contracting_dims = [1] x [0] : ({T}, {T}) -> {T}"


def chain(length: int, *, sums_last: bool, read_early: bool = False):
    """d0 = a w, d1 = d0 w, ..., each summed; the sums follow their product, or all at the end."""
    products, sums = [], []
    for i in range(length):
        product = f"%d{i} = stablehlo.dot_general {'%a' if i == 0 else f'%d{i - 1}'}, %w, {DOT}"
        total = [f"%n{i} = stablehlo.negate %d{i} : {T}", m.reduce(f"%r{i}", f"%n{i}", T),
                 f"%o{i} = stablehlo.tanh %r{i} : {T}"]
        products += [product] if sums_last else [product, *total]
        sums += total if sums_last else []
    if read_early:
        products.append(f"%e = stablehlo.dot_general %o0, %w, {DOT}")
    outs = [f"%o{i}" for i in range(length)] + (["%e"] if read_early else [])
    return m.module(f"%a: {T}, %w: {T}", f"({', '.join([T] * len(outs))})", *products, *sums,
                    f"return {', '.join(outs)} : {', '.join([T] * len(outs))}")


def held(module, took: float, needed: float = 100.0) -> int:
    """Holds the sums of a chain whose products end at 1, 2, 3, ..."""
    view = View(module)
    products = list(view.ops("stablehlo.dot_general"))
    calls = [FusedCall(op, float(i + 1), took, 0.0, needed, lambda end, took: 0.0, 1 << i)
             for i, op in enumerate(view.ops("stablehlo.all_reduce"))]
    ends = tuple(float(i + 1) for i in range(len(products)))
    spine = Spine(tuple(end - 1 for end in ends), ends, tuple(products))
    return hold(Editor(view, "test"), products[0].block, calls, spine)


@pytest.mark.parametrize("sums_last", [False, True])
@pytest.mark.parametrize("took", [0.3, 1.5, 2.6])
def test_values_stay(sums_last: bool, took: float) -> None:
    """Wherever the sums stand, and whether calls are shorter or longer than what hides them."""
    module = chain(6, sums_last=sums_last)
    before = module.clone()
    assert held(module, took) > 0
    assert not module.verify()
    assert "stablehlo.optimization_barrier" in module.text()
    assert check(before, module).equal


def test_a_kernel_waits_for_the_call_and_the_call_for_its_turn() -> None:
    """The third product reads what the barrier returns, together with the first sum."""
    module = chain(6, sums_last=True)
    held(module, 0.9)
    lines = module.text().splitlines()
    place = next(i for i, line in enumerate(lines) if "optimization_barrier" in line and "all_reduce" not in line)
    assert any("stablehlo.dot_general" in line for line in lines[place:])
    sums = [i for i, line in enumerate(lines) if '"stablehlo.all_reduce"' in line]
    products = [i for i, line in enumerate(lines) if "dot_general" in line]
    assert sums[0] < products[-1]  # it moved up to where it can start


def test_what_is_needed_at_once_is_not_held() -> None:
    module = chain(4, sums_last=False)
    text = module.text()
    assert held(module, 0.9, needed=0.5) == 0
    assert module.text() == text


@pytest.mark.parametrize(("sums_last", "read_early"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("took", [0.0, 1.0])
def test_no_kernel_waits_for_itself(sums_last: bool, read_early: bool, at: int, took: float) -> None:
    """Times may say that a call is ready before the product it is made from: both may take no time at all."""
    module = chain(5, sums_last=sums_last, read_early=read_early)
    before = module.clone()
    view = View(module)
    products = list(view.ops("stablehlo.dot_general"))
    call = view.ops("stablehlo.all_reduce")[0]
    following = view.ops("stablehlo.all_reduce")[4]
    times = tuple(float(i) for i in range(len(products)))
    calls = [FusedCall(call, float(at), took, 0.0, 100.0, lambda end, took: 0.0, 1),
             FusedCall(following, float(at), took, 0.0, 100.0, lambda end, took: 0.0, 2)]
    hold(Editor(view, "test"), products[0].block, calls, Spine(times, times, tuple(products)))
    assert not module.verify()
    assert check(before, module).equal


def test_the_pass_holds_large_gradients_once() -> None:
    """A second run finds the decisions made; without hold there are no barriers."""
    big, weight = "tensor<16384x4096xbf16>", "tensor<4096x4096xbf16>"
    lines, outs = [], []
    for i in range(6):
        lines += [f"%d{i} = stablehlo.dot_general {'%a' if i == 0 else f'%d{i - 1}'}, %w, contracting_dims = [1] x [0]"
                  f" : ({big}, {weight}) -> {big}",
                  f"%g{i} = stablehlo.dot_general %a, %d{i}, contracting_dims = [0] x [0] : ({big}, {big}) -> {weight}"]
        outs.append(f"%r{i}")
    lines += [m.reduce(f"%r{i}", f"%g{i}", weight) for i in range(6)]
    before = m.module(f"%a: {big}, %w: {weight}", f"({', '.join([weight] * 6)})", *lines,
                      f"return {', '.join(outs)} : {', '.join([weight] * 6)}")
    ctx = PassContext(topology="h200:1x4")
    free = before.clone()
    assert AllReduceFusion().run(before, ctx)
    text = before.text()
    assert "optimization_barrier" in text
    assert not AllReduceFusion().run(before, PassContext(topology="h200:1x4"))
    assert before.text() == text
    AllReduceFusion(hold=False).run(free, PassContext(topology="h200:1x4"))
    assert "optimization_barrier" not in free.text()
