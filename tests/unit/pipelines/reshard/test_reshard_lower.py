"""Lowered plans: rounds are sound, and the reference interpreter delivers every element, for both targets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reshard_helpers import check_delivery, plan_of, setting, tiles

from hlorewrite.checks.reference.program import execute
from hlorewrite.errors import PlanError, UsageError
from hlorewrite.ir.load import parse
from hlorewrite.pipelines.reshard import ReshardPlan, plan_reshard
from hlorewrite.pipelines.reshard.lower import Lowered, default_chunk_bytes, lower, rounds_time
from hlorewrite.pipelines.reshard.lowering import rounds as trees_in_rounds
from hlorewrite.pipelines.reshard.lowering.flows import _side_by_side, flows
from hlorewrite.pipelines.reshard.lowering.rounds import runs, schedule

CASES = {
    "case3": ("2x2", "2x2", (8, 8, 3), "-,host,-", "host,-,-"),
    "case4": ("2x2", "2x2", (8, 8), "-,all", "all,-"),
    "case6, ragged": ("2x2", "3x1", (13, 4), "host,-", "host,-"),
    "case7": ("1x2", "2x2", (6, 5), "gpu,-", "-,-"),
    "ragged both ways": ("3x1", "2x2", (7, 5), "host,-", "gpu,host"),
    "one dimension": ("1x1", "2x3", (37,), "-", "-"),
    "tiny against large": ("1x4", "1x2", (9, 2), "gpu,-", "-,-"),
    "scalar": ("1x1", "1x3", (), "", ""),
}
OVERLAPS = {
    "same mesh": ("2x2", "2x2", (8, 6), "host,-", "-,all", 0),
    "half": ("2x2", "2x2", (7, 6), "-,gpu", "host,-", 2),
    "to replicas": ("1x4", "1x4", (5, 4), "gpu,-", "-,-", 0),
}


@pytest.mark.parametrize("target", ["cpu", "gpu"])
@pytest.mark.parametrize("strategy", ["broadcast", "send-recv", "all-gather", "global-all-gather"])
@pytest.mark.parametrize("name", [*CASES, *OVERLAPS])
def test_the_interpreter_delivers_every_element(name, strategy, target) -> None:
    source, destination, shape, have, want, *first = {**CASES, **OVERLAPS}[name]
    plan = plan_of(source, destination, shape, have, want, strategy, first=first[0] if first else None)
    lowered = lower(plan, "i32", target, chunk_bytes=64)
    _check_values(plan, lowered)
    assert lowered.chunk_bytes <= 64


TREES = {
    "one device a host": ("1x1", "5x1", (37,), "-", "-"),
    "to replicas": ("1x2", "3x2", (12, 6), "gpu,-", "-,-"),
    "ports apart": ("1x2", "3x2", (12, 6), "gpu,-", "-,gpu"),
    "ragged": ("1x2", "4x2", (13, 5), "-,-", "gpu,-"),
    "two senders": ("2x1", "3x1", (8, 4), "host,-", "-,-"),
    "scalar": ("1x2", "3x2", (), "", ""),
}


@pytest.mark.parametrize("server", ["p3.8xlarge", "h200"])
@pytest.mark.parametrize("chunk_bytes", [16, 64, None])
@pytest.mark.parametrize("name", TREES)
def test_trees_deliver_every_element(name, chunk_bytes, server) -> None:
    source, destination, shape, have, want = TREES[name]
    plan = plan_of(source, destination, shape, have, want, "trees", server=server)
    check_delivery(plan)
    lowered = lower(plan, "i32", chunk_bytes=chunk_bytes)
    assert "collective_permute" in lowered.text
    _check_values(plan, lowered)


PORTS = {
    "host to host": ("2x4", "2x4", (16, 8), "host,-", "host,-", 0),
    "ragged": ("2x4", "2x4", (13, 9), "host,-", "host,-", 0),
    "several slices": ("2x4", "2x4", (16, 12), "-,gpu", "host,-", 0),
    "chains of hosts": ("1x4", "3x4", (12, 6), "gpu,-", "-,-", 0),
    "rank one": ("1x4", "2x4", (44,), "-", "-", 0),
    "other devices keep what they have": ("2x4", "2x4", (16, 8), "host,-", "-,-", 4),
}


@pytest.mark.parametrize("chunk_bytes", [40, 200, None])
@pytest.mark.parametrize("name", PORTS)
def test_hosts_gather_what_arrives_at_their_ports(name, chunk_bytes) -> None:
    plan = _by_all_ports(*PORTS[name])
    lowered = lower(plan, "i32", "gpu", chunk_bytes)
    # Small chunks favour broadcasts, which need room for two of them, not for one from each device.
    assert "stablehlo.all_gather" in lowered.text or (chunk_bytes and name[:4] in ("rank", "othe"))
    assert lowered.chunk_bytes <= (chunk_bytes or lowered.chunk_bytes)
    _check_values(plan, lowered)


def test_gathers_are_for_several_ports_of_equal_hosts_and_chosen_by_time() -> None:
    arguments = ("2x4", "2x4", (64, 64), "host,-", "host,-", "broadcast")
    plan = _by_all_ports(*PORTS["host to host"])
    plain, gathered = (schedule(plan, flows(plan, 1 << 20, True), gathers) for gathers in (False, True))
    assert {hop.kind for hop in plain} == {"broadcast"} and {hop.kind for hop in gathered} == {"permute", "gather"}
    assert 1.9 * rounds_time(plan, runs(gathered), "gpu") < rounds_time(plan, runs(plain), "gpu")
    assert "all_gather" not in lower(plan, "i32", "cpu").text
    assert "all_gather" not in lower(plan_of(*arguments), "i32", "gpu").text, "one port a host"
    unequal = _by_all_ports("1x2", "2x4", (64, 64), "gpu,-", "-,-")
    assert "all_gather" not in lower(unequal, "i32", "gpu").text


def _by_all_ports(source: str, destination: str, shape: tuple[int, ...], have: str, want: str, first: int = 0
                  ) -> ReshardPlan:
    """A broadcast that enters hosts by all ports, because a message costs next to nothing but its bytes."""
    one, other, network = setting(source, destination, shape, have, want, "h200", first or None)
    cheap = replace(network, chunk_overhead_s=1e-11, latency_s=1e-11, local_latency_s=1e-11)
    return plan_reshard(one, other, 4, cheap, strategy="broadcast")


def test_parts_of_a_slice_on_the_same_way_are_one_flow() -> None:
    """A plan cuts slices by when their parts arrive; a module has messages of one size."""
    plan = plan_of("2x8", "2x8", (1 << 12, 1 << 12), "host,-", "host,-", server="h200")
    together = flows(plan, 1 << 20, True)
    assert len(plan.rows) > len(together) == 16
    assert sum(int(np.prod(flow.extent)) for _, flow, _ in together) == plan.rows.size.sum() // 4
    assert max(hop.last for hop in schedule(plan, together)) < 40


@pytest.mark.parametrize(("box", "other", "both"), [
    (((0, 0), (2, 3)), ((2, 0), (1, 3)), ((0, 0), (3, 3))), (((0, 3), (2, 1)), ((0, 0), (2, 3)), ((0, 0), (2, 4))),
    (((0, 0), (2, 3)), ((3, 0), (1, 3)), None), (((0, 0), (2, 3)), ((2, 0), (1, 2)), None),
    (((0, 0), (2, 3)), ((2, 3), (1, 3)), None), (((0, 0), (2, 3)), ((1, 0), (2, 3)), None)])
def test_only_slices_that_make_a_box_are_joined(box, other, both) -> None:
    """Not those with a gap, an overlap, another width, or only a corner in common."""
    assert _side_by_side(box, other) == both


def test_a_chunk_smaller_than_an_element_of_each_device_is_for_broadcasts() -> None:
    plan = _by_all_ports(*PORTS["host to host"])
    lowered = lower(plan, "i32", "gpu", 16)
    assert "all_gather" not in lowered.text and lowered.chunk_bytes <= 16
    _check_values(plan, lowered)


def test_trees_of_too_many_blocks_are_chains(monkeypatch) -> None:
    plan = plan_of("1x2", "3x2", (12, 6), "gpu,-", "-,-", "trees")
    monkeypatch.setattr(trees_in_rounds, "MOST_HOPS", 20)
    assert trees_in_rounds.tree_hops(plan, 8) is None
    _check_values(plan, lower(plan, "i32", chunk_bytes=16))


def _check_values(plan: ReshardPlan, lowered: Lowered) -> None:
    """Executes a module on numbers that are all different."""
    shape = plan.tasks.source.shape
    values = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    held, wanted = tiles(plan.tasks.source, values), tiles(plan.tasks.destination, values)
    nothing = np.full(lowered.source_tile, -7, np.int32)
    inputs = [[held[d].reshape(lowered.source_tile) if d in held else nothing] for d in lowered.devices]
    delivered = execute(parse(lowered.text), inputs)
    for device, (result,) in zip(lowered.devices, delivered, strict=True):
        if device in wanted:
            assert np.array_equal(result.reshape(plan.tasks.destination.tile_shape), wanted[device])


def test_multicast_uses_collective_broadcast_on_gpus_only() -> None:
    plan = plan_of("1x1", "2x2", (64,), "-", "-", "broadcast")
    gpu, cpu = lower(plan, "f32", "gpu").text, lower(plan, "f32", "cpu", chunk_bytes=64).text
    assert gpu.count("stablehlo.collective_broadcast") == 1 and "collective_permute" not in gpu
    assert "dense<[[0, 1, 2, 3, 4]]>" in gpu
    assert "collective_broadcast" not in cpu and "stablehlo.while" in cpu
    sends = lower(plan_of("1x1", "2x2", (64,), "-", "-", "send-recv"), "f32", "gpu").text
    assert "collective_broadcast" not in sends and sends.count("stablehlo.collective_permute") == 4


@pytest.mark.parametrize(("multicast", "gathers"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("strategy", ["broadcast", "send-recv", "global-all-gather"])
@pytest.mark.parametrize("server", ["p3.8xlarge", "h200"])
def test_rounds_are_sound(strategy, multicast, gathers, server) -> None:
    plan = plan_of("2x4", "3x4", (24, 12, 6), "host,-,-", "-,host,-", strategy, server=server)
    hops = schedule(plan, flows(plan, 64, multicast), gathers)
    last: dict[tuple[int, int], int] = {}
    for run in runs(hops):
        senders = [hop.sender for hop in run.hops]
        receivers = [device for hop in run.hops for device in hop.receivers]
        assert len({(hop.flow.message, hop.kind) for hop in run.hops}) == 1
        assert len(set(senders)) == len(senders)
        if run.hops[0].kind != "gather":  # in a gather a device receives from every other
            assert len(set(receivers)) == len(receivers)
        last.update({(id(hop), 0): run.first + run.count for hop in run.hops})
    for hop in hops:
        assert last[id(hop), 0] == hop.last
        if hop.forwarded and not hop.flow.forwarded:  # who forwards a chunk got it in an earlier round
            feed = [h for h in hops if (h.flow.start, h.flow.extent) == (hop.flow.start, hop.flow.extent)
                    and hop.sender in h.receivers]
            assert len(feed) == 1 and feed[0].first < hop.first
            assert not hop.gathers or feed[0].last <= hop.first


def test_chunks_follow_the_cost_model() -> None:
    short, long = (plan_of("1x1", mesh, (1 << 22,), "-", "-", "broadcast") for mesh in ("2x1", "8x1"))
    assert default_chunk_bytes(long, "cpu") < default_chunk_bytes(short, "cpu")
    assert default_chunk_bytes(long, "gpu") > default_chunk_bytes(long, "cpu")


@pytest.mark.parametrize("element", ["i1", "ui8", "bf16", "f64", "complex<f32>", "f8E4M3FN", "i64"])
def test_every_element_type_makes_a_valid_module(element) -> None:
    plan = plan_of("1x2", "2x2", (6, 4), "gpu,-", "-,host")
    parse(lower(plan, element, "gpu", 32).text)


def test_refusals() -> None:
    plan = plan_of("1x2", "2x2", (6, 4), "gpu,-", "-,host")
    with pytest.raises(UsageError, match='there is no target "tpu"'):
        lower(plan, "f32", "tpu")
    for chunk_bytes in (0, -5):
        with pytest.raises(UsageError, match=f"a chunk of {chunk_bytes} bytes is empty"):
            lower(plan, "f32", "gpu", chunk_bytes)
    with pytest.raises(PlanError, match="nothing to move"):
        lower(plan_of("1x2", "2x2", (0, 4), "gpu,-", "-,host"), "f32")
    with pytest.raises(PlanError, match="rounds of 6 devices: too many for one program"):  # a million bytes, one by one
        lower(plan_of("1x2", "2x2", (6, 4_000_000), "gpu,-", "-,host"), "i32", "gpu", 1)
