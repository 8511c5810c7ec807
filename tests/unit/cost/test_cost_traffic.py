"""Traffic: one rule a collective, and the formula's matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hlorewrite.cost import Options, Parallelism, model
from hlorewrite.cost.traffic import (
    CollectiveTraffic,
    iteration_transfers,
    rank,
    stage_weights,
    traffic_by_category,
    traffic_matrix,
)

SHAPE = model("gpt", layers=8, hidden=64, heads=4, seq=16, vocab=128)
SIZES = Parallelism(4, 2, 4, 64, 2)
M = 64 // 8


@pytest.mark.parametrize(("kind", "each", "total"), [
    ("all-reduce", 150.0, 600.0), ("all-gather", 75.0, 300.0), ("reduce-scatter", 75.0, 300.0),
    ("all-to-all", 25.0, 300.0), ("collective-broadcast", 100.0, 300.0),
])
def test_rule_of_each_collective(kind: str, each: float, total: float) -> None:
    matrix = traffic_matrix([CollectiveTraffic(kind, 100.0, ((0, 1, 2, 3),))], 4)
    assert matrix.sum() == total and matrix[0, 1] == each and np.all(np.diag(matrix) == 0)


def test_permute_and_counts() -> None:
    matrix = traffic_matrix([CollectiveTraffic("collective-permute", 10.0, ((0, 1), (1, 0), (2, 2)), 3)], 3)
    assert matrix.tolist() == [[0, 30, 0], [30, 0, 0], [0, 0, 0]]


def test_categories_sum_to_the_matrix_and_stand_where_they_should() -> None:
    transfers = iteration_transfers(SHAPE, SIZES)
    parts = traffic_by_category(transfers, 32)
    assert set(parts) == {"tp", "dp", "pp", "embedding"}
    np.testing.assert_allclose(sum(parts.values()), traffic_matrix(transfers, 32))
    activation = 2 * 16 * 64 * 2
    tp = parts["tp"]
    assert tp[0, 1] == M * 2 * 4 * activation  # m micro-batches, l/p = 2 layers, 4 all-reduces of 2(t-1)/t = 1
    assert np.count_nonzero(tp) == 32
    pp = parts["pp"]
    assert pp[rank(SIZES, 1, 2, 1), rank(SIZES, 2, 2, 1)] == M * activation
    np.testing.assert_array_equal(pp, pp.T)
    assert np.count_nonzero(pp) == 2 * 3 * 8
    dp = parts["dp"]
    for stage in range(4):
        weights = stage_weights(SHAPE, SIZES, stage)[0]
        assert dp[rank(SIZES, stage, 0, 0), rank(SIZES, stage, 1, 0)] == pytest.approx(2 * 3 / 4 * weights * 2)
    ends = parts["embedding"]
    assert np.count_nonzero(ends) == 2 * 8
    assert ends[0, rank(SIZES, 3, 0, 0)] == 128 * 64 / 2 * 2


def test_full_recompute_and_sequence_parallelism() -> None:
    plain = traffic_by_category(iteration_transfers(SHAPE, SIZES), 32)["tp"]
    full = traffic_by_category(iteration_transfers(SHAPE, SIZES, Options(recompute="full")), 32)["tp"]
    np.testing.assert_allclose(full, 1.5 * plain)
    split = traffic_by_category(iteration_transfers(SHAPE, SIZES, Options(sequence_parallel=True)), 32)["tp"]
    norms = 2 * 6 * 64 * 2  # all-reduce of two layers' norms and late biases
    np.testing.assert_allclose(split[split > 0], plain[plain > 0] + norms)


def test_stage_weights_sum_to_the_model() -> None:
    total = sum(stage_weights(SHAPE, Parallelism(4, 1, 8, 64), stage)[0] for stage in range(4))
    assert total == SHAPE.parameters + SHAPE.embedding_parameters  # both ends hold the tied embedding


def test_interleaving_wraps_around() -> None:
    pp = traffic_by_category(iteration_transfers(SHAPE, Parallelism(4, 2, 4, 64, 2, virtual_stages=2)), 32)["pp"]
    activation = 2 * 16 * 64 * 2
    assert pp[0, rank(SIZES, 1, 0, 0)] == 2 * M * activation
    assert pp[rank(SIZES, 3, 0, 0), 0] == M * activation


def test_experts_talk_within_their_group() -> None:
    shape = model("moe-760m")
    ep = traffic_by_category(iteration_transfers(shape, Parallelism(1, 2, 8, 64, ep=4)), 16)["ep"]
    assert ep[0, 2] > 0 and ep[0, 1] == 0 and ep[0, 8] == 0
    assert np.count_nonzero(ep[0]) == 3


def test_zero_moves_the_same_gradient_bytes() -> None:
    shape = model("gpt", layers=4, hidden=64, heads=4, seq=16, vocab=128)
    plain = traffic_matrix(iteration_transfers(shape, Parallelism(1, 1, 8, 64)), 8)
    one = traffic_matrix(iteration_transfers(shape, Parallelism(1, 1, 8, 64), Options(zero=1)), 8)
    three = traffic_matrix(iteration_transfers(shape, Parallelism(1, 1, 8, 64), Options(zero=3)), 8)
    np.testing.assert_allclose(one, plain)
    np.testing.assert_allclose(three, 8 * 1.5 * plain)  # FSDP: in each of the eight micro-batches


def test_context_ranks_exchange_keys_and_values() -> None:
    shape = model("gpt", layers=4, hidden=64, heads=4, seq=16, vocab=128, kv_heads=2)
    cp = traffic_by_category(iteration_transfers(shape, Parallelism(2, 2, 2, 8, cp=2)), 16)["cp"]
    ring = 2 * shape.kv_width * 16 / 2 * 2 / 2  # two gathers or one reduction of b s kv elements over t, (n-1)/n of it
    assert cp[0, 2] == pytest.approx(4 * 2 * 1.5 * ring) and cp[2, 0] == cp[0, 2]
    assert cp[0, 1] == 0 and cp[0, 4] == 0 and cp[0, 8] == 0


def test_gradients_cross_context_ranks_and_replicas() -> None:
    shape = model("gpt", layers=4, hidden=64, heads=4, seq=16, vocab=128)
    split = traffic_by_category(iteration_transfers(shape, Parallelism(1, 1, 2, 8, cp=4)), 8)["dp"]
    plain = traffic_by_category(iteration_transfers(shape, Parallelism(1, 1, 8, 8)), 8)["dp"]
    np.testing.assert_allclose(split, plain)


def test_experts_in_place_of_tensor_ranks_talk_to_their_neighbours() -> None:
    shape = model("mixtral-8x7b", experts=16, layers=2, hidden=64, heads=8, feed_forward=128, vocab=128, seq=16)
    inner = traffic_by_category(iteration_transfers(shape, Parallelism(1, 4, 4, 16, ep=16)), 16)["ep"]
    assert np.count_nonzero(inner[0]) == 15  # all ranks of the stage
    outer = traffic_by_category(iteration_transfers(shape, Parallelism(1, 4, 4, 16, ep=4)), 16)["ep"]
    assert sorted(np.flatnonzero(outer[0])) == [4, 8, 12]


def test_stages_of_unequal_length_carry_their_layers() -> None:
    shape = model("gpt", layers=7, hidden=64, heads=4, seq=16, vocab=128)
    sizes = Parallelism(2, 2, 1, 4)
    tp = traffic_by_category(iteration_transfers(shape, sizes), 4)["tp"]
    assert tp[0, 1] / tp[2, 3] == pytest.approx(4 / 3)
    total = sum(stage_weights(shape, replace(sizes, tp=1), stage)[0] for stage in range(2))
    assert total == pytest.approx(shape.parameters + shape.embedding_parameters)
