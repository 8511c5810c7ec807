"""Loops whose collectives fill an iteration: what shares a call, compared with every way to share one."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np

from hlorewrite.passes.all_reduce_fusion.classes import crowded_plan
from hlorewrite.passes.all_reduce_fusion.model import Costs, FusionItem


def total(sizes: list[int], joined: tuple[int, ...], costs: Costs) -> float:
    """Seconds of calls and copies where some members share a call."""
    calls = [float(sum(sizes[place] for place in joined))] if joined else []
    calls += [float(size) for place, size in enumerate(sizes) if place not in joined]
    copied = calls[0] if len(joined) > 1 else 0.0
    return float(np.sum(costs.call(np.array(calls)))) + copied * (costs.copy_in + costs.copy_out)


def test_no_other_set_that_shares_a_call_is_shorter() -> None:
    rng = random.Random(5)
    for _ in range(60):
        sizes = [rng.choice((1, 2, 5, 40, 300, 2000)) for _ in range(rng.randint(1, 7))]
        latency, rate = rng.choice((1.0, 20.0, 200.0)), rng.choice((0.1, 1.0))
        costs = Costs(lambda size, latency=latency, rate=rate: latency + rate * size,
                      copy_in=rng.choice((0.0, 0.05, 0.5)), copy_out=rng.choice((0.0, 0.3)))
        plan = crowded_plan([FusionItem(0.0, 1e9, size) for size in sizes], costs)
        joined = max(plan.buckets, key=len)
        ours = total(sizes, joined if len(joined) > 1 else (), costs)
        every = [chosen for count in range(len(sizes) + 1) for chosen in combinations(range(len(sizes)), count)
                 if count != 1]
        assert ours <= min(total(sizes, chosen, costs) for chosen in every) * (1 + 1e-12)
        assert sorted(place for bucket in plan.buckets for place in bucket) == list(range(len(sizes)))


def test_a_large_member_whose_copies_cost_more_than_its_call_saves_stays_alone() -> None:
    items = [FusionItem(0.0, 1e9, size) for size in (10, 100_000, 20)]
    dear, free = (Costs(lambda size: 50.0 + 0.01 * size, copy_out=copy) for copy in (0.001, 0.0))
    assert crowded_plan(items, dear).buckets == ((0, 2), (1,))
    assert crowded_plan(items, free).buckets == ((0, 1, 2),)
