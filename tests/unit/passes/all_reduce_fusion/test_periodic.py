"""Equal buckets for equal layers: where they are taken, and each condition."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import fusion_modules as m
import numpy as np
import pytest
from generators.code_mutation import replace_source

from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passes.all_reduce_fusion import AllReduceFusion
from hlorewrite.passes.all_reduce_fusion.model import Costs, FusionItem, FusionPlan, Limits
from hlorewrite.passes.all_reduce_fusion.periodic import LayerRun, alike_plan, layer_run
from hlorewrite.passes.all_reduce_fusion.plan import held_plan
from hlorewrite.passes.all_reduce_fusion.times import timed, with_waits
from hlorewrite.passmanager.base import PassContext

MODULE = "hlorewrite.passes.all_reduce_fusion.periodic"
MERGE = "hlorewrite.passes.all_reduce_fusion.merge"
ENDS = tuple(0.1 * place for place in range(1, 2000))
COSTS = Costs(lambda size: 1.0 + 0.01 * np.asarray(size), 0.001, 0.001, ENDS)
KINDS = (400, 100, 200)


def layers(count: int, *, outside: Sequence[int] = (), step: float = 1.0) -> list[FusionItem]:
    """Gradients of equal layers, between others; all are read at the end."""
    sizes = [*outside, *(KINDS * count), *reversed(outside)]
    return [FusionItem(place * step, len(sizes) * step, size) for place, size in enumerate(sizes)]


def planned(items: list[FusionItem], costs: Costs = COSTS, limits: Limits | None = None) -> FusionPlan:
    """Equal buckets over the plan of least exposed time."""
    until = replace(costs, ends=tuple(end for end in costs.ends if end <= items[0].needed))
    least, margin = held_plan(items, until, limits)
    return alike_plan(items, [item.size for item in items], least, replace(until, margin=margin), limits)


def shapes(items: list[FusionItem], plan: FusionPlan) -> set[tuple[int, ...]]:
    """What distinct buckets of several members hold."""
    return {tuple(items[index].size for index in bucket) for bucket in plan.buckets if len(bucket) > 1}


@pytest.mark.parametrize("kinds, found", [
    ("abcabcabc", LayerRun(0, 3, 3)), ("xyababababz", LayerRun(2, 2, 4)), ("aaaa", LayerRun(0, 1, 4)),
    ("abcabc", None), ("abc", None), ("", None), ("abcabxabcabcabcab", LayerRun(6, 3, 3)),
    ("aaabaaabaaab", LayerRun(0, 4, 3))])
def test_the_longest_range_that_repeats(kinds: str, found: LayerRun | None) -> None:
    assert layer_run(kinds) == found


@pytest.mark.parametrize("seed", range(60))
def test_every_item_once_and_hardly_more_exposed(seed: int) -> None:
    at = random.Random(seed)
    items = layers(at.randint(3, 9), outside=[at.randint(1, 500) for _ in range(at.randint(0, 3))],
                   step=at.choice([0.2, 1.0, 3.0]))
    items = [replace(item, free=True, size=1) if seed % 3 == 0 and item.size == 100 else item for item in items]
    costs = replace(COSTS, ends=tuple(end for end in ENDS if end <= items[-1].needed) if seed % 2 else ())
    least, margin = held_plan(items, costs)
    plan = alike_plan(items, [item.size for item in items], least, replace(costs, margin=margin))
    assert sorted(index for bucket in plan.buckets for index in bucket) == list(range(len(items)))
    compute = costs.ends[-1] if costs.ends else 0.0
    share = 0.025 if least.busy <= 0.75 * compute else 0.005
    assert plan.exposed <= 1.25 * least.exposed + share * compute + 1e-9
    assert costs.ends or plan is least
    assert plan.buckets == least.buckets or _ready(items, plan) == sorted(_ready(items, plan))


def _ready(items: list[FusionItem], plan: FusionPlan) -> list[float]:
    return [items[bucket[-1]].ready for bucket in plan.buckets]


@pytest.mark.parametrize("outside", [[], [30, 70]])
def test_buckets_repeat(outside: list[int]) -> None:
    """The plan of least exposed time holds buckets of more kinds."""
    items = layers(8, outside=outside, step=2.5)
    costs = replace(COSTS, call=lambda size: 3.0 + 0.01 * np.asarray(size), copy_in=0.0, copy_out=0.0)
    least = held_plan(items, costs)[0]
    assert len(shapes(items, planned(items, costs))) < len(shapes(items, least))


def test_light_items_wait_for_a_call_of_several() -> None:
    items = [replace(item, free=True, size=1) if item.size == 100 else item for item in layers(6, step=2.0)]
    plan = alike_plan(items, [item.size for item in items], timed(items, [tuple(range(18))], COSTS), COSTS)
    assert len(plan.buckets) > 1
    assert all(len(bucket) != 1 or items[bucket[0]].size > 1 for bucket in plan.buckets)


@pytest.mark.parametrize("items, least", [
    (layers(4), [(index,) for index in range(12)]), (layers(2), [(0, 1, 2), (3, 4, 5)])])
def test_nothing_to_repeat(items: list[FusionItem], least: list[tuple[int, ...]]) -> None:
    """Calls of one member copy nothing, and two layers are too few."""
    plan = timed(items, least, COSTS)
    assert alike_plan(items, [item.size for item in items], plan, COSTS) is plan


def _depends() -> None:
    """Each third gradient waits for the one before it: a norm of it, say."""
    items = layers(6)
    items = [replace(item, after=place - 1) if place % 3 == 2 else item for place, item in enumerate(items)]
    for bucket in planned(items).buckets:
        assert all(items[index].after < bucket[0] for index in bucket)


def _exposes() -> None:
    """The last layers come long after the others, at the same time: fewer calls are worth their copies there alone."""
    items = [replace(item, ready=item.ready + 40.0 * (place >= 8), needed=55.0)
             for place, item in enumerate(layers(5))]
    costs = Costs(lambda size: 6.0 + 0.01 * np.asarray(size), 0.01, 0.01, ENDS[:550])
    least, margin = held_plan(items, costs)
    plan = alike_plan(items, [item.size for item in items], least, replace(costs, margin=margin))
    assert plan.exposed <= 1.25 * least.exposed + 0.025 * 55.0


def _bytes() -> None:
    items = layers(6)
    plan = planned(items, limits=Limits(bucket_bytes=650))
    assert all(len(bucket) == 1 or sum(items[index].size for index in bucket) <= 650 for bucket in plan.buckets)


def _calls() -> None:
    items = layers(6, step=3.0)
    least = timed(items, [tuple(range(9)), tuple(range(9, 18))], COSTS)
    sizes = [item.size for item in items]
    assert len(alike_plan(items, sizes, least, COSTS, Limits(max_buckets=2)).buckets) <= 2


def _order() -> None:
    """Light items that wait for the end are sent after what is ready before them."""
    items = [replace(item, free=True, size=1) if item.size == 100 else item for item in layers(5, step=9.0)]
    plan = alike_plan(items, [item.size for item in items], timed(items, [(0, 2), *((i,) for i in range(15) if
                                                                                      i not in (0, 2))], COSTS), COSTS)
    assert _ready(items, plan) == sorted(_ready(items, plan))


def _waits() -> None:
    """The call before the last is over just in time where it starts at once; a smaller one may start late."""
    items = [FusionItem(0.5 * (place + 1), 25.1, 100) for place in range(50)]
    costs = Costs(lambda size: 0.275 + 0.0008 * np.asarray(size), 0.00008, 0.00008, ENDS[:251], 0.25)
    least = timed(items, [tuple(range(50))[first:first + 8] for first in range(0, 50, 8)], costs)
    plan = alike_plan(items, [place % 2 for place in range(50)], least, costs)
    assert {len(bucket) for bucket in plan.buckets[:-1]} == {4}
    assert plan.exposed == pytest.approx(with_waits(items, plan, costs))
    assert least.exposed < with_waits(items, least, costs) - 0.1


CONDITIONS = {
    "dependences": (_depends, "if any(items[index].after >= bucket[0] for index in bucket):", "if False:"),
    "exposed time": (_exposes, "if each.exposed <= most", "if True"),
    "bytes of a bucket": (_bytes, "and size > limits.bucket_bytes", "and False"),
    "number of calls": (_calls, "len(buckets) > limits.max_buckets", "False"),
    "calls that start late": (_waits, "with_waits(items, each, costs) +", "each.exposed +"),
    "order of calls": (_order, "(items[bucket[-1]].ready, bucket[-1])", "(-len(bucket), bucket[-1])"),
}

IN_MERGE = ("dependences", "bytes of a bucket", "number of calls")


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_condition_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, old, new = CONDITIONS[name]
    check()
    replace_source(MERGE if name in IN_MERGE else MODULE, old, new, monkeypatch)
    with pytest.raises(AssertionError):
        check()


LARGE, WIDE, TALL = "tensor<8192x8192xf32>", "tensor<1024x8192xf32>", "tensor<8192x1024xf32>"


def unrolled(kinds: Sequence[str]):
    """A product and two gradients of each layer, the first of them of some type, the second of 8 MiB."""
    lines, results, types = [], [], []
    for layer, kind in enumerate(kinds):
        lines.append(f"%x{layer + 1} = stablehlo.dot_general %x{layer}, %w, contracting_dims = [1] x [0] : "
                     f"({LARGE}, {LARGE}) -> {LARGE}")
        for name, type_ in ((f"a{layer}", kind), (f"b{layer}", "tensor<1024x2048xf32>")):
            rows, columns = type_.removeprefix("tensor<").split("x")[:2]
            lines += [f"%p{name} = stablehlo.slice %x{layer + 1} [0:{rows}, 0:{columns}] : ({LARGE}) -> {type_}",
                      f"%g{name} = stablehlo.negate %p{name} : {type_}", m.reduce(f"%r{name}", f"%g{name}", type_),
                      f"%u{name} = stablehlo.negate %r{name} : {type_}"]
            results.append(f"%u{name}")
            types.append(type_)
    signature = ", ".join(types)
    return m.module(f"%x0: {LARGE}, %w: {LARGE}", f"({signature})", *lines,
                    f"return {', '.join(results)} : {signature}")


def buffers(before: Module, *, alike: bool) -> list[tuple[str, ...]]:
    """The operands' types of each buffer after the pass."""
    after = before.clone()
    AllReduceFusion(alike=alike).run(after, PassContext(topology="h200:16x8"))
    assert not after.verify()
    return [tuple(str(value.type) for value in op.operands) for op in View(after).ops("stablehlo.concatenate")]


def test_layers_of_a_module_get_equal_buffers() -> None:
    before = unrolled([LARGE] * 6)
    assert len(set(buffers(before, alike=True))) < len(set(buffers(before, alike=False)))


def test_layers_of_one_size_and_two_types_are_not_equal() -> None:
    """Kernels that copy a value know its shape."""
    assert buffers(unrolled([WIDE, TALL] * 2), alike=True) == buffers(unrolled([WIDE, TALL] * 2), alike=False)
