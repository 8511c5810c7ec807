"""Collectives between racks, hosts of other sizes, and waiting for late ranks."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hlorewrite.cli.main import guarded
from hlorewrite.cost import KINDS, NcclModel, collective_model, topology
from hlorewrite.cost.collectives.models import waiting_for_ranks
from hlorewrite.errors import UsageError

ROWS = Path("hlorewrite/cost/data/measured/rack_all_reduce.csv")


def seconds(spec: str, size: int, kind: str = "all-reduce", *, measured: bool = True) -> float:
    cluster = topology(spec)
    times = collective_model(cluster) if measured else NcclModel(cluster)
    ranks = list(range(cluster.gpus))
    groups = [ranks]
    if kind == "collective-permute":
        groups = [[rank, (rank + 1) % len(ranks)] for rank in ranks]
    return times.collective_time(kind, size, groups)


@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row['topology']}-{row['bytes']}")
                                 for row in csv.DictReader(ROWS.open(encoding="utf-8"))])
def test_all_reduces_of_one_two_and_twenty_racks(row: dict[str, str]) -> None:
    assert seconds(row["topology"], int(row["bytes"])) == pytest.approx(float(row["seconds"]), rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["gb200-nvl72", "gb300-nvl72"])
@pytest.mark.parametrize("measured", [True, False])
def test_more_racks_never_take_less_time(kind: str, name: str, measured: bool) -> None:
    for size in (1 << 10, 1 << 20, 1 << 24, 1 << 28, 1 << 33):
        times = [seconds(f"{name}:{racks}x72", size, kind, measured=measured) for racks in (1, 2, 3, 4, 8, 20)]
        assert all(less <= more * (1 + 1e-9) for less, more in pairwise(times)), (size, times)


def test_time_grows_with_bytes_between_racks() -> None:
    for racks in (2, 3, 20):
        times = [seconds(f"gb200-nvl72:{racks}x72", 1 << power) for power in range(10, 34)]
        assert all(less <= more for less, more in pairwise(times))


def test_hosts_of_four_reach_over_their_nics() -> None:
    four, rack = topology("gb200-nvl4:2x4"), topology("gb200-nvl72:1x8")
    size = 1 << 30
    assert seconds(four.spec, size) > 2 * seconds(rack.spec, size)
    assert four.nics_per_host == 4 and topology("gb200-nvl4:1x4").gpus == 4
    assert seconds("gb200-nvl4:1x4", size) == pytest.approx(seconds("gb200-nvl72:1x4", size))


def test_boards_of_other_makers_are_described() -> None:
    assert topology("b300").memory_bytes > topology("b200").memory_bytes
    assert topology("h100-500w").memory_bytes_per_s < topology("h100").memory_bytes_per_s
    assert topology("gb300-nvl72").peak_flops["f4"] > topology("gb200-nvl72").peak_flops["f4"]


def test_the_last_of_many_ranks_is_later() -> None:
    rng = np.random.default_rng(0)
    for ranks in (2, 8, 64, 500):
        drawn = rng.exponential(1e-3, (20_000, ranks)).max(1)
        wait = waiting_for_ranks(ranks, 1e-3)
        assert wait.mean == pytest.approx(drawn.mean(), rel=0.02)
        assert wait.low == pytest.approx(np.quantile(drawn, 0.1), rel=0.05)
        assert wait.high == pytest.approx(np.quantile(drawn, 0.9), rel=0.05)
    assert waiting_for_ranks(1).mean == 0
    with pytest.raises(UsageError, match="0 ranks"):
        waiting_for_ranks(0)


@pytest.mark.parametrize(("calls", "own_s", "measured_s"), [(48, 55e-6, 0.189), (47, 0.75e-3, 0.164)])
def test_exposed_calls_of_a_step_on_64_gpus(calls: int, own_s: float, measured_s: float) -> None:
    """marin-community/marin issue 8054: 1540 bytes reduced by all, and 415 MB scattered."""
    assert calls * (own_s + waiting_for_ranks(64).mean) == pytest.approx(measured_s, rel=0.25)


def test_collective_states_the_wait(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["collective", "all-reduce", "--bytes", "1540", "--topology", "gb200-nvl72:1x64"]
    assert guarded(words) == 0
    assert "waits for late ranks: 3.32 ms on average" in capsys.readouterr().out
    assert guarded([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["waiting_s"]["low"] < printed["waiting_s"]["mean"] < printed["waiting_s"]["high"]
    assert printed["time_s"] < printed["waiting_s"]["mean"] and printed["host_call_s"] == 0.5e-3
