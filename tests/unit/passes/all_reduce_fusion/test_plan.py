"""Bucketing by dynamic programming: as good as the best of all partitions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from generators.code_mutation import replace_source

from hlorewrite.passes.all_reduce_fusion.merge import fewer_calls
from hlorewrite.passes.all_reduce_fusion.model import Costs, FusionItem, FusionPlan, Limits
from hlorewrite.passes.all_reduce_fusion.plan import MOST_ITEMS, best_plan, held_plan
from hlorewrite.passes.all_reduce_fusion.states import dominating
from hlorewrite.passes.all_reduce_fusion.times import timed

Buckets = tuple[tuple[int, ...], ...]


def intervals(count: int) -> Iterator[Buckets]:
    """All partitions of a sequence into neighbours."""
    for cuts in range(1 << (count - 1)):
        edges = [0, *(i + 1 for i in range(count - 1) if cuts >> i & 1), count]
        yield tuple(tuple(range(a, b)) for a, b in itertools.pairwise(edges))


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All partitions of a set."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        for place in range(len(rest)):
            yield [*rest[:place], [items[0], *rest[place]], *rest[place + 1:]]
        yield [[items[0]], *rest]


def drawn(seed: int, *, copies: bool, one_need: bool, depends: bool,
          updates: bool = False) -> tuple[list[FusionItem], Costs]:
    """A random instance."""
    at = random.Random(seed)
    count = at.randint(1, 7)
    last = at.uniform(5, 30)
    items: list[FusionItem] = []
    for ready in sorted(at.uniform(0, 20) for _ in range(count)):
        after = at.randrange(-1, len(items)) if depends and at.random() < 0.3 else -1
        items.append(FusionItem(ready, max(last, 20) if one_need else at.uniform(ready, 25), at.randint(1, 9), after,
                                reading=at.uniform(0, 3) if updates else 0.0))
    latency, byte = at.uniform(0, 6), at.uniform(0.1, 2)
    share = at.uniform(0, 0.4) if copies else 0.0
    return items, Costs(lambda size: latency + byte * np.asarray(size) ** 0.9, share, at.uniform(0, 1) * share)


def allowed(items: list[FusionItem], bucket: tuple[int, ...]) -> bool:
    """Whether no member of a bucket waits for another."""
    return all(items[index].after < bucket[0] for index in bucket)


@pytest.mark.parametrize("seed", range(150))
def test_no_partition_of_the_ready_order_is_better(seed: int) -> None:
    """Against all intervals, with copies, different needs and dependences."""
    items, costs = drawn(seed, copies=seed % 3 > 0, one_need=seed % 2 == 0, depends=seed % 5 == 0,
                         updates=seed % 4 == 0)
    plans = [timed(items, buckets, costs) for buckets in intervals(len(items))
             if all(allowed(items, bucket) for bucket in buckets)]
    best = min(plan.exposed for plan in plans)
    planned = best_plan(items, costs)
    assert planned.exposed == pytest.approx(max(best, 0.0), abs=1e-9)
    assert all(allowed(items, bucket) for bucket in planned.buckets)


@pytest.mark.parametrize("seed", range(60))
def test_updates_run_while_later_calls_are_under_way(seed: int) -> None:
    """The step ends as in a simulation: kernels until all is needed, then the update of each call that has arrived."""
    items, costs = drawn(seed, copies=False, one_need=True, depends=False, updates=True)
    at = random.Random(seed)
    cuts = [0, *sorted(at.sample(range(1, len(items)), at.randint(0, len(items) - 1))), len(items)]
    buckets = [tuple(range(*edges)) for edges in itertools.pairwise(cuts)]
    stream, compute = 0.0, items[0].needed
    for bucket in buckets:
        stream = max(stream, items[bucket[-1]].ready) + float(costs.call(np.array(sum(items[i].size for i in bucket))))
        compute = max(compute, stream) + sum(items[i].reading for i in bucket)
    without = items[0].needed + sum(item.reading for item in items)
    assert timed(items, buckets, costs).exposed == pytest.approx(max(compute - without, 0.0))


@pytest.mark.parametrize("seed", range(60))
def test_no_partition_at_all_is_better_when_all_are_needed_at_the_end(seed: int) -> None:
    """The exchange argument after intervals: calls of a latency and so much a byte, no copies, one need."""
    items = drawn(seed, copies=False, one_need=True, depends=False)[0]
    latency = random.Random(seed).uniform(0, 6)
    costs = Costs(lambda size: latency + 0.7 * np.asarray(size))
    best = float("inf")
    for parts in partitions(list(range(len(items)))):
        ordered = sorted((tuple(sorted(part)) for part in parts), key=lambda b: items[b[-1]].ready)
        best = min(best, timed(items, tuple(ordered), costs).exposed)
    assert best_plan(items, costs).exposed == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("most", [1, 2, 3])
def test_bounds_are_kept_and_the_best_within_them_is_found(seed: int, most: int) -> None:
    items, costs = drawn(seed, copies=True, one_need=True, depends=False)
    plans = [timed(items, buckets, costs) for buckets in intervals(len(items)) if len(buckets) <= most]
    planned = best_plan(items, costs, Limits(max_buckets=most))
    assert len(planned.buckets) <= most
    assert planned.exposed == pytest.approx(max(min(plan.exposed for plan in plans), 0.0), abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_bucket_bytes(seed: int) -> None:
    items, costs = drawn(seed, copies=True, one_need=False, depends=True)
    plan = best_plan(items, costs, Limits(bucket_bytes=10))
    assert sorted(i for bucket in plan.buckets for i in bucket) == list(range(len(items)))
    assert all(len(bucket) == 1 or sum(items[i].size for i in bucket) <= 10 for bucket in plan.buckets)


@pytest.mark.parametrize("seed", range(60))
def test_light_items_ride_along(seed: int) -> None:
    """With biases between weights the plan is never worse than the best of neighbours, and often better."""
    items, costs = with_biases(seed)
    plan = best_plan(items, costs)
    assert sorted(i for bucket in plan.buckets for i in bucket) == list(range(len(items)))
    assert plan.exposed <= neighbours(items, costs) + 0.1  # what the biases themselves take


def test_riding_along_pays() -> None:
    """Summed over the instances above."""
    drawn_ones = [with_biases(seed) for seed in range(30)]
    ours = sum(best_plan(*one).exposed for one in drawn_ones)
    assert ours < 0.96 * sum(neighbours(*one) for one in drawn_ones)


def with_biases(seed: int) -> tuple[list[FusionItem], Costs]:
    """Four weights, each with a bias that is ready just after it."""
    at = random.Random(seed)
    items, now = [], 0.0
    steps = [at.uniform(1, 8) for _ in range(4)]
    for step in steps:
        now += step
        items += [FusionItem(now, sum(steps), at.randint(100, 900), free=True),
                  FusionItem(now, sum(steps), 1, free=True)]
    return items, Costs(lambda size: 1.0 + 0.004 * np.asarray(size), 0.002, 0.002)


def neighbours(items: list[FusionItem], costs: Costs) -> float:
    """The least exposed time of buckets of neighbours."""
    return min(timed(items, buckets, costs).exposed for buckets in intervals(len(items)))


@pytest.mark.parametrize("seed", range(60))
def test_fewer_calls_expose_no_more(seed: int) -> None:
    items, costs = drawn(seed, copies=seed % 2 == 0, one_need=True, depends=True, updates=seed % 3 == 0)
    apart = timed(items, [(place,) for place in range(len(items))], costs)
    fewer = fewer_calls(items, apart, costs, Limits(bucket_bytes=12))
    assert fewer.exposed <= apart.exposed and fewer.busy <= apart.busy
    assert sorted(i for bucket in fewer.buckets for i in bucket) == list(range(len(items)))
    assert all(allowed(items, bucket) for bucket in fewer.buckets)
    assert all(len(bucket) == 1 or sum(items[i].size for i in bucket) <= 12 for bucket in fewer.buckets)


@pytest.mark.parametrize("old, new", [
    ("if any(items[index].after >= bucket[0] for index in bucket):", "if False:"),
    ("and size > limits.bucket_bytes", "and False"),
    ("merged.exposed <= most and", "")])
def test_each_condition_of_merging_counts(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_source("hlorewrite.passes.all_reduce_fusion.merge", old, new, monkeypatch)
    failed = 0
    for seed in range(60):
        try:
            test_fewer_calls_expose_no_more(seed)
        except AssertionError:
            failed += 1
    assert failed


def crowd(seed: int) -> tuple[list[FusionItem], Costs, Limits]:
    """A random instance of all that the programme knows: light items, kernels to hold to, gathers, small limits."""
    at = random.Random(seed)
    count = at.randint(12, 20)
    kernels, same, light = at.uniform(20, 60), at.random() < 0.3, at.random() < 0.3
    items: list[FusionItem] = []
    for number in range(count):
        ready = 0.0 if same else kernels * number / count
        after = at.randrange(number) if number and at.random() < 0.1 else -1
        bias = light and number % 2 == 1 and after < 0
        items.append(FusionItem(ready, at.uniform(ready, 1.2 * kernels) if seed % 4 == 0 else kernels,
                                1 if bias else at.randint(20, 900), after, bias, reading=at.uniform(0, 2)))
    ends = tuple(np.linspace(1.0, kernels, 2 * count).tolist()) if at.random() < 0.5 else ()
    latency, byte, copy = at.uniform(0.5, 6), at.uniform(0.001, 0.02), at.choice([0.0, 0.0005, 0.004])
    costs = Costs(lambda size: latency + byte * np.asarray(size), copy, at.choice([0.0, copy]), ends,
                  one_by_one=at.random() < 0.2)
    return items, costs, Limits(1500 if at.random() < 0.2 else None)


@pytest.mark.parametrize("seed", range(100))
def test_bounds_lose_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same buckets as without dropping what exposes more than a plan of merged neighbours."""
    items, costs, limits = crowd(seed)
    monkeypatch.setattr("hlorewrite.passes.all_reduce_fusion.states._EXACT", 1 << 20)
    plain = best_plan(items, costs, limits)
    monkeypatch.setattr("hlorewrite.passes.all_reduce_fusion.plan._FEW", 3)
    assert best_plan(items, costs, limits) == plain


def test_light_items_may_make_a_call_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another algorithm from some size on: what heavy items take alone is no bound then."""
    items = [FusionItem(10.0 * (number >= 6), 12.0, 50, free=True) for number in range(12)]
    items[3:3], items[10:10] = [FusionItem(0.0, 12.0, 1, free=True)], [FusionItem(10.0, 12.0, 1, free=True)]
    costs = Costs(lambda size: 2.0 + 0.01 * size + 28.0 * ((np.asarray(size) % 50 == 0) & (np.asarray(size) > 0)))
    monkeypatch.setattr("hlorewrite.passes.all_reduce_fusion.plan._FEW", 3)
    assert [len(bucket) for bucket in best_plan(items, costs).buckets] == [7, 7]


def test_the_condition_on_light_items_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_source("hlorewrite.passes.all_reduce_fusion.plan", "if self.light else", "if False else", monkeypatch)
    with pytest.raises(AssertionError):
        test_light_items_may_make_a_call_shorter(monkeypatch)


@pytest.mark.parametrize("old, new", [
    (" - reading[start]", ""), ("later[after])).min()", "later[after])).max()"),
    ("+ _RELATIVE * abs(most)", "- 0.2 * abs(most)")])
def test_each_part_of_the_bound_counts(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_source("hlorewrite.passes.all_reduce_fusion.bounds", old, new, monkeypatch)
    failed = 0
    for seed in range(100):
        with pytest.MonkeyPatch.context() as patched:
            try:
                test_bounds_lose_nothing(seed, patched)
            except AssertionError:
                failed += 1
    assert failed


def test_most_states_expose_more_than_a_plan_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal gradients that are ready together: one call is best, and hardly a prefix is worth a state."""
    kept: list[int] = []
    monkeypatch.setattr("hlorewrite.passes.all_reduce_fusion.plan.dominating",
                        lambda values: kept.append(values.shape[1]) or dominating(values))
    items = [FusionItem(1.0, 1.0, 1 << 14) for _ in range(200)]
    plan = best_plan(items, Costs(lambda size: 3e-5 + np.asarray(size) / 2e11, 1e-12))
    assert plan.buckets == (tuple(range(200)),)
    assert sum(kept[-200:]) < 400


def test_thousands_of_items() -> None:
    """Small neighbours are merged first; everything is placed once, none with what it waits for."""
    at = random.Random(0)
    items = [FusionItem(i * 1e-6, 1.0, at.randint(1, 1 << 20), i - 50 if i % 97 == 0 and i >= 50 else -1)
             for i in range(4 * MOST_ITEMS)]
    plan = best_plan(items, Costs(lambda size: 1e-5 + np.asarray(size) / 2e11, 1e-12, 1e-12))
    assert [i for bucket in plan.buckets for i in bucket] == list(range(len(items)))
    assert all(allowed(items, bucket) for bucket in plan.buckets)
    assert plan.exposed <= timed(items, (tuple(range(len(items))),), Costs(
        lambda size: 1e-5 + np.asarray(size) / 2e11, 1e-12, 1e-12)).exposed


def test_equal_states_keep_one() -> None:
    values = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [9.0, 4.0], [0.0, 0.0]])
    assert dominating(values).tolist() == [1]


def test_copies_out_of_gathers_add_to_the_wait_before_them() -> None:
    """The first gather is waited for; what is copied out of those read after it delays the step once more."""
    items = [FusionItem(0.0, 1.0, 10), FusionItem(0.0, 50.0, 10), FusionItem(0.0, 60.0, 10)]
    gathers = Costs(lambda size: 5.0 + 0.0 * np.asarray(size), copy_in=0.1, copy_out=0.2, one_by_one=True)
    assert timed(items, ((0,), (1, 2)), gathers).exposed == pytest.approx(4.0 + 4.0)
    together = replace(gathers, copy_in=0.2, one_by_one=False)
    assert timed(items, ((0,), (1, 2)), together).exposed == pytest.approx(8.0)  # copies alone
    assert best_plan(items, gathers).buckets == ((0,), (1,), (2,))


def test_compute_before_the_first_call_is_no_reason_to_wait_longer() -> None:
    """A block whose reductions follow a long loop is planned as one that begins with them."""
    def planned(before: float) -> tuple[FusionPlan, float]:
        items = [FusionItem(before + 0.1 * number, before + 20.0, 10) for number in range(10)]
        ends = tuple(before + 2.0 * number for number in range(1, 11))
        return held_plan(items, Costs(lambda size: 1.0 + 0.1 * np.asarray(size), 0.001, 0.001, ends))

    (at_once, margin), (later, other) = planned(0.0), planned(3000.0)
    assert later.buckets == at_once.buckets and other == margin
    assert later.exposed == pytest.approx(at_once.exposed)
