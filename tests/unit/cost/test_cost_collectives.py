"""Collective times: monotone, sharing NICs, matching held-out measurements."""

from __future__ import annotations

import csv
import statistics
from itertools import pairwise
from pathlib import Path

import pytest

from hlorewrite.cost import KINDS, CollectiveModel, NcclModel, collective_model, topology
from hlorewrite.errors import UsageError

MEASURED = Path("hlorewrite/cost/data/measured")


def groups_of(kind: str, gpus: int) -> list[list[int]]:
    if kind == "collective-permute":
        return [[gpu, (gpu + 1) % gpus] for gpu in range(gpus)]
    return [list(range(gpus))]


@pytest.mark.parametrize("spec", ["h200:1x8", "h100:4x8", "a100:2x8", "p3.8xlarge:2x4", "rtx3090:1x8", "tsubame4:4x4"])
@pytest.mark.parametrize("kind", KINDS)
def test_time_never_falls_with_size(spec: str, kind: str) -> None:
    topo = topology(spec)
    times = collective_model(topo)
    seconds = [times.collective_time(kind, 1 << k, groups_of(kind, topo.gpus)) for k in range(10, 36)]
    # NCCL switches algorithm by its own estimate, which may cost a little at the switch.
    assert all(later >= 0.93 * before for before, later in pairwise(seconds))
    assert seconds[-1] > 10 * seconds[0]


def test_models_keep_the_interface() -> None:
    assert isinstance(collective_model(topology("h200")), CollectiveModel)
    assert isinstance(NcclModel(topology("h200")), CollectiveModel)


def test_lone_devices_cost_nothing_and_small_payloads_cost_a_launch() -> None:
    times = collective_model(topology("a100:1x8"))
    assert times.collective_time("all-reduce", 1 << 20, [[0], [1]]) == 0.0
    assert times.collective_time("collective-permute", 1 << 20, [[3, 3]]) == 0.0
    assert times.collective_time("all-reduce", 0, [[0, 1]]) > 5e-6


@pytest.mark.parametrize(("kind", "size", "groups", "says"), [
    ("all-reduc", 1, [[0, 1]], 'did you mean "all-reduce"'), ("all-reduce", -1, [[0, 1]], "not negative"),
    ("all-reduce", 1, [[0, 99]], "GPU 99"),
])
def test_bad_requests_are_refused(kind: str, size: int, groups: list[list[int]], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        collective_model(topology("h200")).collective_time(kind, size, groups)


def test_groups_that_share_a_nic_take_longer() -> None:
    times = NcclModel(topology("p3.8xlarge:2x4"))
    one = times.collective_time("all-reduce", 1 << 26, [[0, 4]])
    four = times.collective_time("all-reduce", 1 << 26, [[0, 4], [1, 5], [2, 6], [3, 7]])
    assert four == pytest.approx(4 * one, rel=0.02)
    # 64 MiB each way over 10 Gb/s at 95 %: never faster than the wire.
    assert one > (1 << 26) / (1.25e9 * 0.95)


def test_hosts_slow_a_collective_down_and_wires_bound_it() -> None:
    size = 1 << 30
    inside = NcclModel(topology("a100:1x8")).collective_time("all-reduce", size, groups_of("all-reduce", 8))
    across = NcclModel(topology("a100:2x8")).collective_time("all-reduce", size, groups_of("all-reduce", 16))
    assert across > inside > 1.75 * size / 300e9
    # At least each byte leaves a host once; with more hosts twice, but for the share that ends where it began.
    assert across > size / (8 * 25e9)
    four = NcclModel(topology("a100:4x8")).collective_time("all-reduce", size, groups_of("all-reduce", 32))
    assert four > 2 * 31 / 32 * size / (8 * 25e9)


def test_all_to_all_between_hosts_is_bound_by_nics() -> None:
    time = NcclModel(topology("h100:4x8")).collective_time("all-to-all", 1 << 30, groups_of("all-to-all", 32))
    assert time > 24 / 32 * (1 << 30) / 50e9


def test_direct_links_give_a_pair_a_part_of_the_rate() -> None:
    times = NcclModel(topology("tsubame4:1x4"))
    pair = times.collective_time("all-gather", 1 << 30, [[0, 1]])
    assert pair > 0.5 * (1 << 30) / (450e9 / 3)


def test_held_out_rows_of_the_hopper_table() -> None:
    topo = topology("h100:1x8")
    times = collective_model(topo)
    large, small = [], []
    for row in csv.DictReader((MEASURED / "xla_collectives.csv").open()):
        size, ranks = int(row["bytes"]), int(row["ranks"])
        if row["platform"] != "sm_90" or "x" not in row["groups"] or size.bit_length() % 2:
            continue
        groups = [list(range(i * ranks, (i + 1) * ranks)) for i in range(8 // ranks)]
        assert size not in [point for point, _ in topo.curves[f"{row['kind']}-1x{ranks}"]]
        error = abs(times.collective_time(row["kind"], size, groups) / float(row["seconds"]) - 1)
        (large if size > 1 << 20 else small).append(error)
    assert len(large) >= 60 and len(small) >= 50
    assert statistics.median(large) <= 0.10
    assert statistics.median(small) <= 0.30


def test_model_without_curves_on_held_out_rows() -> None:
    times = NcclModel(topology("h100:1x8"))
    errors = [abs(times.collective_time(row["kind"], int(row["bytes"]), [list(range(8))]) / float(row["seconds"]) - 1)
              for row in csv.DictReader((MEASURED / "xla_collectives.csv").open())
              if row["platform"] == "sm_90" and row["groups"] == "1x8" and int(row["bytes"]) in
              {1 << k for k in range(21, 32, 2)}]
    assert statistics.median(errors) <= 0.10


def test_curves_are_monotone_and_meet_their_points() -> None:
    times = collective_model(topology("h200:1x8"))
    points = topology("h200").curves["all-reduce-1x8"]
    for size, seconds in points[3:]:
        assert times.collective_time("all-reduce", int(size), [list(range(8))]) == pytest.approx(seconds, rel=0.01)
    beyond = times.collective_time("all-reduce", 1 << 35, [list(range(8))])
    assert beyond == pytest.approx(2 * points[-1][1], rel=0.05)


def test_group_size_between_measured_ones_lies_between() -> None:
    times = collective_model(topology("h100:1x8"))
    four, six, eight = (times.collective_time("all-gather", 1 << 28, [list(range(n))]) for n in (4, 6, 8))
    assert four < six < eight
