"""Iteration model: the parts, published iteration times, memory, vectorised agreement, search, bad input."""

from __future__ import annotations

import importlib.util
import statistics
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hlorewrite.cost import Options, Parallelism, estimate, estimate_many, model, topology
from hlorewrite.cost.training.experts import expert_imbalance, on_off_pattern, sample_expert_matrix
from hlorewrite.cost.training.memory import activation_bytes, layer_activation_bytes, state_bytes
from hlorewrite.cost.training.search import search
from hlorewrite.errors import UsageError

GPT = model("gpt-22b")


def bench():
    spec = importlib.util.spec_from_file_location("cost_validation", Path("bench/predictions/cost_validation.py"))
    assert spec and spec.loader
    import sys
    module = importlib.util.module_from_spec(spec)
    sys.modules["cost_validation"] = module
    spec.loader.exec_module(module)
    return module


def test_parameters_follow_the_published_formula() -> None:
    shape = model("gpt3-175b")
    h, layers, s, v = 12288, 96, 2048, 51200
    assert shape.parameters == pytest.approx(12 * layers * h**2 * (1 + 13 / (12 * h) + (v + s) / (12 * layers * h)))
    assert model("llama-7b").parameters == pytest.approx(6.74e9, rel=0.01)
    assert model("mixtral-8x7b").parameters == pytest.approx(46.7e9, rel=0.01)


def test_parts_sum_and_bubble_is_exact() -> None:
    sizes = Parallelism(4, 2, 4, 256, 2)
    estimated = estimate(GPT, sizes, topology("a100:4x8"), Options(utilisation=0.4, recompute="full"))
    parts = [estimated.t_comp_s, estimated.t_tp_s, estimated.t_pp_s, estimated.t_dp_s, estimated.t_ep_s,
             estimated.t_bubble_s]
    assert sum(parts) == pytest.approx(estimated.iteration_time_s)
    m = 256 // 8
    assert estimated.t_bubble_s == pytest.approx(3 / m * (estimated.t_comp_s + estimated.t_tp_s + estimated.t_pp_s))
    expected = m * 8 * GPT.parameters / 8 * 2 * 2048 / (0.4 * 312e12)
    assert estimated.t_comp_s == pytest.approx(expected)
    alone = estimate(GPT, Parallelism(4, 8, 1, 256, 2), topology("a100:4x8"), Options(utilisation=0.4))
    without = alone.iteration_time_s - alone.t_dp_s
    assert alone.t_bubble_s / without == pytest.approx(3 / (3 + 128))


def test_held_out_iteration_times() -> None:
    validation = bench()
    rows = [row for row in (*validation.sc21_rows(), *validation.table5_rows()) if row.role == "judged"]
    assert len(rows) == 9
    assert statistics.median(abs(row.error) for row in rows) <= 0.05
    assert max(abs(row.error) for row in rows) <= 0.10


def test_vectorised_agrees_with_one_by_one() -> None:
    topo = topology("h100:4x8")
    rows = [(1, 8, 4, 64, 1), (4, 2, 4, 64, 2), (2, 4, 4, 64, 4), (8, 4, 1, 64, 1)]
    many = estimate_many(GPT, Parallelism(*np.array(rows).T), topo, Options(zero=1))
    for i, row in enumerate(rows):
        one = estimate(GPT, Parallelism(*row), topo, Options(zero=1))
        for key, value in one.as_dict().items():
            assert many.as_dict()[key][i] == pytest.approx(value), key


def test_activation_memory_is_the_published_formula() -> None:
    topo = topology("a100:1x8")
    sizes = Parallelism(1, 8, 1, 4, 4).arrays()
    sbh = 2048 * 4 * 6144
    plain = layer_activation_bytes(GPT, sizes, topo, Options())
    assert float(plain[0]) == pytest.approx(sbh * (10 + 24 / 8 + 5 * 64 * 2048 / (6144 * 8)))
    split = layer_activation_bytes(GPT, sizes, topo, Options(sequence_parallel=True, recompute="selective"))
    assert float(split[0]) == pytest.approx(sbh * 34 / 8)
    full = layer_activation_bytes(GPT, sizes, topo, Options(recompute="full"))
    assert float(full[0]) == pytest.approx(2 * sbh)


@pytest.mark.parametrize(("name", "sizes", "plain_gib", "selective_gib"), [
    ("gpt3-175b", Parallelism(8, 8, 1, 64, virtual_stages=3), 66.84375, 12.3515625),
    ("gpt-530b", Parallelism(35, 8, 1, 280, virtual_stages=3), 114.0234375, 23.076171875),
    ("gpt-1t", Parallelism(64, 8, 1, 512), 131.25, 26.5625),
])
def test_published_activation_sizes(name: str, sizes: Parallelism, plain_gib: float, selective_gib: float) -> None:
    """Figure 1 of Korthikanti et al., MLSys 2023."""
    topo, many = topology("selene-a100"), sizes.arrays()
    assert float(activation_bytes(model(name), many, topo, Options())[0]) == pytest.approx(plain_gib * 2**30)
    both = Options(sequence_parallel=True, recompute="selective")
    assert float(activation_bytes(model(name), many, topo, both)[0]) == pytest.approx(selective_gib * 2**30)


def test_zero_shards_state() -> None:
    sizes = Parallelism(1, 1, 8, 8).arrays()
    plain, one, two, three = (float(state_bytes(GPT, sizes, Options(zero=z))[0]) for z in range(4))
    n = GPT.parameters
    assert plain == pytest.approx(18 * n)
    assert one == pytest.approx((6 + 12 / 8) * n)
    assert two == pytest.approx((2 + 16 / 8) * n)
    assert three == pytest.approx(18 / 8 * n)


@pytest.mark.parametrize("option", [Options(recompute="full"), Options(sequence_parallel=True), Options(zero=3)])
def test_options_save_memory(option: Options) -> None:
    topo, sizes = topology("a100:4x8"), Parallelism(2, 4, 4, 64)
    plain = estimate(GPT, sizes, topo)
    assert estimate(GPT, sizes, topo, option).memory_bytes_per_gpu < plain.memory_bytes_per_gpu


def test_interleaving_shrinks_the_bubble_and_costs_transfers() -> None:
    topo = topology("a100:4x8")
    plain = estimate(GPT, Parallelism(8, 4, 1, 32), topo)
    woven = estimate(GPT, Parallelism(8, 4, 1, 32, virtual_stages=2), topo)
    assert woven.t_bubble_s < plain.t_bubble_s and woven.t_pp_s == pytest.approx(2 * plain.t_pp_s)


def test_experts_cost_and_imbalance_costs_more() -> None:
    topo, shape = topology("h100:1x8"), model("mixtral-8x7b")
    even = estimate(shape, Parallelism(1, 1, 8, 64, ep=8), topo)
    uneven = estimate(shape, Parallelism(1, 1, 8, 64, ep=8), topo, Options(expert_imbalance=1.5))
    assert 0 < even.t_ep_s < uneven.t_ep_s and even.t_comp_s < uneven.t_comp_s
    whole = estimate(shape, Parallelism(1, 1, 8, 64), topo)
    assert whole.t_ep_s == 0 and even.t_dp_s < 0.2 * whole.t_dp_s  # experts in one place need no reduction


def test_imbalance_distribution_and_bursts() -> None:
    imbalance = expert_imbalance(8, 4, 5.0)
    assert 1 < imbalance.median <= imbalance.p95 <= imbalance.largest == 4
    bursts = on_off_pattern(2, 3, 1.0, 0.25)
    assert len(bursts) == 2 * 2 * 3 * 2
    assert all(before[1] < after[0] for before, after in pairwise(bursts))
    drawn = sample_expert_matrix(100.0, 4, 2.0)
    assert drawn.shape == (4, 4) and np.all(np.diag(drawn) == 0) and np.all(drawn.sum(1) <= 100)


BAD = [
    (Parallelism(3, 2, 4, 64), Options(), "is not the 32 GPUs"),
    (Parallelism(0, 2, 4, 64), Options(), "pp is 0"),
    (Parallelism(4, 2, 4, -64), Options(), "global_batch is -64"),
    (Parallelism(4, 2, 4, 63), Options(), "not divisible by b"),
    (Parallelism(16, 1, 2, 64, virtual_stages=4), Options(), "48 layers do not fill"),
    (Parallelism(1, 32, 1, 64), Options(), None),
    (Parallelism(4, 2, 4, 64, ep=3), Options(), "not divisible by ep"),
    (Parallelism(4, 2, 4, 64), Options(zero=4), "ZeRO stage 4"),
    (Parallelism(4, 2, 4, 64), Options(recompute="some"), "recompute"),
    (Parallelism(4, 2, 4, 64), Options(dtype="f8"), "no peak"),
    (Parallelism(4, 2, 4, 64), Options(utilisation=1.5), "not a share"),
]


@pytest.mark.parametrize(("sizes", "options", "says"), BAD)
def test_impossible_configurations_are_refused(sizes: Parallelism, options: Options, says: str | None) -> None:
    if says is None:
        assert estimate(GPT, sizes, topology("a100:4x8"), options).iteration_time_s > 0
        return
    with pytest.raises(UsageError, match=says):
        estimate(GPT, sizes, topology("a100:4x8"), options)


def test_heads_have_to_divide() -> None:
    with pytest.raises(UsageError, match="heads are not divisible by t = 4"):
        estimate(replace(GPT, heads=6, kv_heads=6), Parallelism(4, 4, 2, 64), topology("a100:4x8"))


@pytest.mark.parametrize(("name", "changes", "says"), [
    ("gtp", {}, "did you mean"), ("gpt", {"layers": 2}, "needs its numbers"),
    ("gpt-22b", {"layers": -1}, "layers is -1"), ("gpt-22b", {"heads": 7}, "not divisible by 7 heads"),
    ("mixtral-8x7b", {"top_k": 9}, "9 of 8 experts"),
])
def test_impossible_models_are_refused(name: str, changes: dict, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        model(name, **changes)


def test_search_ranks_what_fits() -> None:
    topo = topology("a100:2x8")
    candidates = search(GPT, topo, 32, Options(recompute="full"))
    times = [each.cost.iteration_time_s for each in candidates]
    assert times == sorted(times) and len(candidates) > 3
    assert all(each.sizes.pp * each.sizes.tp * each.sizes.dp == 16 for each in candidates)
    assert all(each.cost.memory_bytes_per_gpu <= topo.memory_bytes for each in candidates)
    one = estimate(GPT, candidates[0].sizes, topo, Options(recompute="full"))
    assert one.iteration_time_s == pytest.approx(times[0])
    assert search(model("gpt-1t"), topo, 32) == []
