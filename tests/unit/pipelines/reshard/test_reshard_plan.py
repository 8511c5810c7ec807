"""Plans: the paper's cases, correctness of delivery, order against exhaustive search, and the bound."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reshard_helpers import NINE, check_delivery, plan_of, setting, unit

from hlorewrite.cost import topology
from hlorewrite.errors import HlorewriteError, PlanError, UsageError
from hlorewrite.pipelines.reshard import (
    STRATEGIES,
    ReshardPlan,
    hosts_of_meshes,
    network_of,
    parse_mesh,
    parse_spec,
    plan_reshard,
    sharded,
)
from hlorewrite.pipelines.reshard.assign import Arrivals, least_loaded, timed, with_copies
from hlorewrite.pipelines.reshard.bounds import lower_bound
from hlorewrite.pipelines.reshard.jobs import bundled_jobs, single_jobs
from hlorewrite.pipelines.reshard.messages import rechunked
from hlorewrite.pipelines.reshard.order import heuristic, matching_levels
from hlorewrite.pipelines.reshard.plan import GOOD_GAP
from hlorewrite.pipelines.reshard.simulate import RoutedJob, item_of, run
from hlorewrite.pipelines.reshard.tasks import unit_tasks
from hlorewrite.pipelines.reshard.transfers import transfers
from hlorewrite.pipelines.reshard.trees.block_sends import block_sends, circulant_sends


@pytest.mark.parametrize("case", NINE, ids=lambda case: f"case{case[0]}")
def test_nine_cases_reach_the_optimum(case) -> None:
    _, source, destination, shape, have, want, optimum, first, least = case
    plan = plan_of(source, destination, shape, have, want)
    assert plan.makespan_s == pytest.approx(optimum * unit(shape), rel=0.02)
    assert plan.gap <= 0.02 and plan.lower_bound_s <= plan.makespan_s * (1 + 1e-12)
    naive = plan_of(source, destination, shape, have, want, "broadcast", "naive")
    assert naive.makespan_s == pytest.approx(first * unit(shape), rel=0.01)
    balanced = plan_of(source, destination, shape, have, want, "broadcast", "naive", "least-loaded")
    assert balanced.makespan_s == pytest.approx(least * unit(shape), rel=0.01)


def test_one_to_many_costs_one_tensor() -> None:
    shape = (1 << 28,)
    for destination, receivers in (("1x1", 1), ("1x4", 4), ("2x2", 4), ("4x2", 8), ("4x4", 16)):
        assert plan_of("1x1", destination, shape, "-", "-").makespan_s == pytest.approx(unit(shape), rel=0.02)
        send = plan_of("1x1", destination, shape, "-", "-", "send-recv")
        assert send.makespan_s == pytest.approx(receivers * unit(shape), rel=0.01)
    hosts = plan_of("1x1", "4x2", shape, "-", "-", "all-gather").makespan_s / unit(shape)
    whole = plan_of("1x1", "4x2", shape, "-", "-", "global-all-gather").makespan_s / unit(shape)
    assert hosts == pytest.approx(4, rel=0.02) and whole == pytest.approx(2, rel=0.07)


SPECS = ["-,-", "host,-", "-,host", "gpu,-", "all,-", "-,all", "host,gpu", "gpu,host"]


@given(st.sampled_from(["1x1", "2x2", "1x4", "3x2", "a=2,b=3"]), st.sampled_from(["2x2", "1x3", "3x1", "2x4"]),
       st.sampled_from(SPECS), st.sampled_from(SPECS), st.sampled_from(STRATEGIES),
       st.sampled_from(["naive", "size", "optimal"]), st.sampled_from([None, 0, 2]),
       st.sampled_from(["p3.8xlarge", "h200"]), st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_every_plan_delivers(source, destination, have, want, strategy, order, first, server, shape) -> None:
    if "=" in source:
        have = have.replace("host", "a").replace("gpu", "b")
    try:
        plan = plan_of(source, destination, shape, have, want, strategy, order, server=server, first=first,
                       effort=0.3)
    except PlanError:
        assert strategy == "trees"  # served are slices that go to the same hosts
        return
    check_delivery(plan)
    assert plan.makespan_s >= plan.lower_bound_s * (1 - 1e-9)
    assert (np.diff(plan.start_s) >= 0).all() and (plan.end_s >= plan.start_s).all()


@pytest.mark.parametrize("order", ["naive", "optimal"])
def test_links_carry_one_job_at_a_time(order) -> None:
    plan = plan_of("2x4", "3x4", (30, 64, 170), "host,-,-", "-,host,gpu", "broadcast", order)
    busy: dict[int, list[tuple[float, float]]] = {}
    for row in range(len(plan.rows)):
        port = int(plan.network.port[plan.sender[row]])
        length = plan.rows.size[row] / plan.network.bytes_per_s
        busy.setdefault(port, []).append((float(plan.start_s[row]), float(plan.start_s[row]) + length))
    for intervals in busy.values():
        for (_, end), (start, _) in itertools.pairwise(sorted(intervals)):
            assert start >= end * (1 - 1e-9)


def _items(jobs: list[tuple[int, tuple[int, ...], int]]) -> list[RoutedJob]:
    return [RoutedJob((2 * sender, *(2 * port + 1 for port in into)), (0,) * (1 + len(into)), 0.0, float(size),
                      float(size), (), sender, into, 1) for sender, into, size in jobs]


@given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(3, 5), min_size=1, max_size=2), st.integers(1, 4)),
                min_size=2, max_size=6))
def test_order_is_near_the_best_of_all_orders(jobs) -> None:
    items = _items([(sender, tuple(sorted(into)), size) for sender, into, size in jobs])
    best = min(run(items, order, 6)[1].max() for order in itertools.permutations(range(len(items))))
    makespan = run(items, heuristic(items, 6, 0.0), 6)[1].max()
    assert best <= makespan <= best * 1.15


def test_the_solver_proves_and_repairs_what_heuristics_miss() -> None:
    from hlorewrite.pipelines.reshard.order import solve
    have, want, network = setting("3x1", "3x1", (6, 6), "host,-", "-,host")
    jobs = single_jobs(transfers(_tasks(have, want), 4, network, "broadcast"), network)
    from hlorewrite.pipelines.reshard.assign import first_senders
    items = first_senders(jobs, network)
    bad = list(range(len(items)))
    start, end = run(items, bad, network.ports)
    solution = solve(jobs, items, start.tolist(), network)
    assert solution is not None and solution.proven
    best = run(solution.items, solution.order, network.ports)[1].max()
    assert best < end.max()
    orders = (order for order in itertools.permutations(range(len(items))) if order[0] == 0)
    every = min(run(items, order, network.ports)[1].max() for order in orders)
    assert best == pytest.approx(every, rel=1e-6)


def _tasks(have, want):
    from hlorewrite.pipelines.reshard import unit_tasks
    return unit_tasks(have, want)


def test_plans_repeat_and_differ() -> None:
    plans = [plan_of("2x4", "3x4", (33, 20, 17), "host,-,-", "-,gpu,host") for _ in range(2)]
    assert plans[0].digest == plans[1].digest
    assert plans[0].digest != plan_of("2x4", "3x4", (33, 20, 16), "host,-,-", "-,gpu,host").digest


def test_several_nics_share_one_slice() -> None:
    plan = plan_of("1x8", "1x8", (1 << 30,), "-", "-", "broadcast", server="h200")
    ports = {int(plan.network.port[d]) for d in plan.sender}
    assert len(ports) == 8 and plan.gap < 0.1
    check_delivery(plan_of("1x8", "1x8", (64,), "-", "-", "broadcast", server="h200"))


def test_a_million_tasks_are_planned_without_a_gap() -> None:
    plan = plan_of("250x4", "250x4", (4000, 4000, 8), "all,-,-", "-,all,-")
    assert len(plan.rows) == 1_000_000 and plan.gap < 0.001
    received = np.bincount(np.array([group[0] for group in plan.rows.groups])[plan.rows.receivers], plan.rows.size)
    assert set(received[1000:].tolist()) == {4000 * 4 * 8 * 4.0}


def test_users_mistakes_are_told() -> None:
    have, want, network = setting("2x4", "2x4", (8, 8), "host,-", "-,host")
    other, _, _ = setting("2x4", "2x4", (8, 9), "host,-", "-,host")
    with pytest.raises(UsageError, match="has shape"):
        plan_reshard(other, want, 4, network)
    for wrong in ({"strategy": "brodcast"}, {"order": "best"}, {"sender": "last"}):
        with pytest.raises(HlorewriteError, match=r"there is no (strategy|order|sender)"):
            plan_reshard(have, want, 4, network, **wrong)


@settings(max_examples=40)
@given(st.sampled_from(["1x1", "2x2", "1x8", "4x4", "8x8"]), st.sampled_from(["1x3", "2x4", "9x2", "17x1", "8x8"]),
       st.sampled_from(SPECS), st.sampled_from(SPECS), st.sampled_from([*STRATEGIES, "auto"]),
       st.sampled_from([None, 0, 2]), st.sampled_from(["p3.8xlarge", "h200"]),
       st.tuples(*[st.sampled_from([1, 64, 1000, 30000])] * 2))
def test_no_plan_is_faster_than_the_bound(source, destination, have, want, strategy, first, server, shape) -> None:
    """Also where the bytes count, and not only the number of messages."""
    try:
        plan = plan_of(source, destination, shape, have, want, strategy, server=server, first=first, effort=0.05)
    except PlanError:
        return
    assert plan.makespan_s >= plan.lower_bound_s * (1 - 1e-9)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(7, 12)), min_size=1, max_size=60))
def test_levels_are_as_many_as_the_busiest_port_has_jobs(jobs: list[tuple[int, int]]) -> None:
    sender, receiver = np.array(jobs).T
    levels = matching_levels(sender, receiver)
    for side in (sender, receiver):
        assert len({*zip(side.tolist(), levels.tolist(), strict=True)}) == len(jobs)
    assert levels.max() + 1 == max(np.bincount(sender).max(), np.bincount(receiver).max())


def test_empty_plan() -> None:
    plan = plan_of("2x4", "2x4", (0, 8), "host,-", "-,host")
    assert plan.makespan_s == 0 and plan.gap == 0 and len(plan.rows) == 0


@pytest.mark.parametrize(("have", "want", "strategy", "gap"), [
    ("host,gpu", "gpu,host", "broadcast", 0.001), ("-,-", "-,-", "broadcast", 0.08),
    ("gpu,-", "-,-", "broadcast", 0.08), ("gpu,-", "-,gpu", "broadcast", 0.001), ("host,-", "-,-", "trees", 0.23)])
def test_64_hosts_to_64(have: str, want: str, strategy: str, gap: float) -> None:
    """Jobs of all ports follow each other without a pause, and hosts that hold the same send to different hosts."""
    plan = _to_many_hosts(have, want, source="64x8")
    assert plan.strategy == strategy and plan.gap < gap


@pytest.mark.parametrize("shape", [(1024,) * 3, (2048,) * 3])
@pytest.mark.parametrize(("have", "want"), [(have, want) for _, _, _, _, have, want, *_ in NINE])
def test_layouts_of_the_paper_on_64_hosts(have: str, want: str, shape: tuple[int, ...]) -> None:
    """2 and 16 GiB: within a tenth of the bound. Chunks are few, except where a host passes on the last bytes."""
    source, destination = parse_mesh("64x8"), parse_mesh("64x8", first_device=512)
    network = network_of(topology("h200"), hosts_of_meshes(source, destination, 8))
    plan = plan_reshard(sharded(shape, source, parse_spec(have, source)),
                        sharded(shape, destination, parse_spec(want, destination)), 2, network)
    assert plan.gap < 0.1


def test_all_ports_of_a_host_send_a_slice_in_messages_of_different_sizes() -> None:
    plan = plan_of("2x8", "2x8", (1 << 14, 1 << 10), "host,-", "host,-", server="h200")
    nics, devices = 8, plan.network.port
    assert len(set(plan.rows.size.tolist())) > 3 and (plan.chunks == 1).all()
    assert len({int(devices[d]) for d in plan.sender}) == 2 * nics and len(set(plan.entry.ravel().tolist())) == 2 * nics
    equal = plan_reshard(plan.tasks.source, plan.tasks.destination, 4, plan.network, strategy="all-gather")
    assert plan.gap < 0.1 < equal.gap
    check_delivery(plan_of("2x8", "2x8", (1 << 10, 32), "host,-", "host,-", server="h200"))


def test_the_links_of_a_host_make_the_copies_of_all_its_ports() -> None:
    """Eight messages at once to eight devices: each device passes on seven, however few links a single one needs."""
    have, want, network = setting("1x8", "1x8", (8, 1 << 22), "gpu,-", "-,-", "h200")
    jobs = single_jobs(transfers(unit_tasks(have, want), 4, network, "broadcast"), network)
    items = least_loaded(jobs, network)
    for chunks in (1, 4):
        items = [item_of(jobs, job, item.sender, item.entry, network, chunks=chunks) for job, item in enumerate(items)]
        start, end = timed(jobs, items, range(8), network)
        alone = run(items, range(8), network.ports)[1]
        copies = 7 * (1 << 24) / network.local_bytes_per_s
        first = items[0].busy / chunks + network.latency_s + network.local_latency_s
        assert (start == 0).all() and (end >= alone).all()
        assert end.max() == pytest.approx(max(alone.max(), first + copies, items[0].busy + network.latency_s
                                              + network.local_latency_s + copies / chunks))


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 9), st.floats(0.1, 5), st.integers(1, 6), st.floats(0.1, 9)),
                min_size=1, max_size=12))
def test_copies_are_made_in_the_order_in_which_chunks_arrive(jobs: list[tuple[int, float, float, int, float]]) -> None:
    """Beside a simulation of each chunk: up to a chunk of each job apart; the last copy is never made sooner."""
    network = replace(network_of(topology("p3.8xlarge"), {d: d for d in range(3)}), local_bytes_per_s=1.0,
                      local_latency_s=0.0)
    host, first, apart, chunks, size = (np.array(column) for column in zip(*jobs, strict=True))
    last = first + apart * (chunks - 1)
    done = with_copies(np.zeros(len(jobs)), Arrivals(np.arange(len(jobs)), host, first, last, chunks, size), network)
    for each in range(3):
        events = sorted((first[j] + apart[j] * k, j) for j in np.flatnonzero(host == each) for k in range(chunks[j]))
        at, ends = 0.0, dict[int, float]()
        for arrived, j in events:
            at = ends[j] = max(at, arrived) + size[j] / chunks[j]
        slack = sum(size[j] / chunks[j] for j in ends)
        assert all(end - 1e-9 <= done[j] + slack and done[j] <= end + slack + 1e-9 for j, end in ends.items())
        assert not ends or max(done[j] for j in ends) >= max(ends.values()) - 1e-9
        if len(ends) == 1:
            assert all(done[j] == pytest.approx(end) for j, end in ends.items())


@pytest.mark.parametrize(("server", "copies", "hops"), [("h200", 7, 1), ("h200", 8, 8), ("h200", 0, 0), ("v100", 3, 3)])
def test_a_device_passes_on_itself_where_it_keeps_up_with_its_port(server: str, copies: int, hops: int) -> None:
    _, _, network = setting("1x1", "1x1", (8,), "-", "-", server)
    assert network.local_latency(copies) == pytest.approx(hops * network.local_latency_s)
    assert network.local_time(1e6, copies) == pytest.approx(
        hops * network.local_latency_s + copies * 1e6 / network.local_bytes_per_s)


def test_chunks_fit_the_order() -> None:
    """Two slices from one host to the four devices of another: only the second is passed on at the end."""
    have, want, network = setting("1x1", "1x4", (2, 1 << 22), "-,-", "-,-")
    rows = transfers(unit_tasks(have, want).split(2), 4, network, "broadcast")
    jobs = single_jobs(rows, network)
    items, start, end = rechunked(jobs, least_loaded(jobs, network), (0, 1), network)
    assert [item.chunks for item in items] == [1, network.chunks(1 << 24, 1, 3)]
    assert end[0] < end[1] and start[1] == items[0].busy
    alone = least_loaded(jobs, network)
    assert end.max() < run(alone, (0, 1), network.ports)[1].max()


LAYOUTS = (("-,-", "-,-"), ("host,-", "-,host"), ("host,gpu", "host,gpu"), ("host,gpu", "gpu,host"), ("gpu,-", "-,gpu"),
           ("host,-", "-,-"), ("host,gpu", "-,gpu"), ("-,-", "host,gpu"), ("host+gpu,-", "-,host+gpu"))


@pytest.mark.parametrize(("have", "want"), LAYOUTS)
def test_auto_is_never_above_a_named_strategy(have: str, want: str) -> None:
    """Also beyond 768 copies: 64 hosts to 64 hosts, where send/recv reaches the bound and a chain does not."""
    source, destination = parse_mesh("64x8"), parse_mesh("64x8", first_device=512)
    network = network_of(topology("h200"), hosts_of_meshes(source, destination, 8))
    layouts = [sharded((65536, 8192), mesh, parse_spec(spec, mesh)) for mesh, spec in
               ((source, have), (destination, want))]
    auto = plan_reshard(*layouts, 2, network)
    for strategy in STRATEGIES:
        try:
            named = plan_reshard(*layouts, 2, network, strategy)
        except PlanError:
            continue
        assert auto.makespan_s <= named.makespan_s * (1 + GOOD_GAP)
    assert bool(auto.note) == (auto.gap > 0.1)


def _to_many_hosts(have: str, want: str, strategy: str = "auto", source: str = "1x8") -> ReshardPlan:
    """65536 x 8192 numbers of two bytes from hosts of eight H200 to 64."""
    have_mesh = parse_mesh(source)
    want_mesh = parse_mesh("64x8", first_device=have_mesh.size)
    network = network_of(topology("h200"), hosts_of_meshes(have_mesh, want_mesh, 8))
    return plan_reshard(sharded((65536, 8192), have_mesh, parse_spec(have, have_mesh)),
                        sharded((65536, 8192), want_mesh, parse_spec(want, want_mesh)), 2, network, strategy=strategy)


def test_a_gap_is_explained() -> None:
    """A chain through many hosts, and trees."""
    chain, trees = (_to_many_hosts("gpu,-", "-,-", strategy) for strategy in ("broadcast", "trees"))
    assert chain.note == ("the last of 64 hosts in a chain gets its first chunk after 63 hops, which the lower bound "
                          "leaves out")
    assert trees.note.startswith("45 blocks cost a port 0.000270 s in addition to their bytes")


@pytest.mark.parametrize(("have", "want", "gap"), [
    ("gpu,-", "-,-", 0.22), ("-,-", "-,-", 0.22), ("gpu,-", "-,gpu", 0.24), ("gpu,-", "gpu,-", 0.17),
    ("-,-", "gpu,-", 0.24)])
def test_one_host_to_64(have: str, want: str, gap: float) -> None:
    """A chain is 80 to 90 % above the bound."""
    plan = _to_many_hosts(have, want)
    assert plan.strategy == "trees" and 0.1 < plan.gap < gap


@pytest.mark.parametrize("ring", [*range(2, 40), 64, 65, 66, 127, 129])
def test_a_port_a_host_needs_no_more_rounds_than_any_plan(ring: int) -> None:
    """K - 1 + ceil(log2(n)) rounds, and who sends a block has it."""
    for blocks in (1, 2, 5, 9):
        rounds = list(circulant_sends(ring, blocks))
        assert len(rounds) == blocks - 1 + (ring - 1).bit_length()
        there = {(0, block) for block in range(blocks)}
        for sends in rounds:
            assert len({sender for sender, _, _ in sends}) == len({receiver for _, receiver, _ in sends}) == len(sends)
            arrived = {(receiver, block) for _, receiver, block in sends}
            assert there >= {(sender, block) for sender, _, block in sends} and not there & arrived
            there |= arrived
        assert len(there) == ring * blocks


@pytest.mark.parametrize(("hosts", "blocks", "relay"), [(1, (3,), 0), (7, (5,), 0), (12, (4, 3), 1), (64, (9,) * 8, 1)])
def test_blocks_reach_every_host_once(hosts: int, blocks: tuple[int, ...], relay: int) -> None:
    """In a round a port serves one block, and who sends one has it."""
    there: dict[tuple[int, int, int], tuple[int, int]] = {}
    rounds = block_sends(hosts, blocks, relay)
    for number, sends in enumerate(rounds):
        assert len({(each.sender, each.out) for each in sends}) == len(sends)
        assert len({(each.receiver, each.into) for each in sends}) == len(sends)
        for each in sends:
            assert (each.receiver, each.stream, each.block) not in there
            if each.sender:
                assert there[each.sender, each.stream, each.block][0] + relay < number
        there |= {(each.receiver, each.stream, each.block): (number, each.into) for each in sends}
    assert len(there) == hosts * sum(blocks)
    assert len(rounds) <= max(blocks) + (relay + 1) * hosts.bit_length() + 1


def test_the_bound_counts_further_hops() -> None:
    """One port to 63 hosts of one port each: what leaves last is sent on, and again by its holder, until all have it.

    A host gets it after some further messages of a holder and some hops, in any order: comb(a + b, b) hosts after each
    a messages and b hops.
    """
    one, many = (plan_of("1x1", f"{hosts}x1", (1,), "-", "-", "broadcast") for hosts in (1, 63))
    network = replace(many.network, bytes_per_s=math.inf)
    message, hop = network.chunk_overhead_s, network.chunk_overhead_s + network.latency_s
    further = (lower_bound(bundled_jobs(many.rows, network), network)
               - lower_bound(bundled_jobs(one.rows, one.network), replace(one.network, bytes_per_s=math.inf)))

    def reached(seconds: float) -> int:
        return sum(math.comb(a + b, b) for a in range(64) for b in range(7) if a * message + b * hop <= seconds)

    assert reached(further * (1 - 1e-9)) < 63 <= reached(further * (1 + 1e-9))
    again = plan_of("1x1", "2x2", (1, 1), "-,-", "-,-", "send-recv")
    assert again.makespan_s >= again.lower_bound_s  # four messages of one host are sooner there than a hop
    replicas = plan_of("63x1", "63x1", (1,), "-", "-", "broadcast")
    assert replicas.lower_bound_s < one.lower_bound_s * (1 + 1e-9)
