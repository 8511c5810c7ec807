"""The pipeline simulator against closed forms, hand-made cases and the rules every simulation keeps."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

from hlorewrite.cost import topology
from hlorewrite.errors import HlorewriteError, PlanError, UsageError
from hlorewrite.pipelines.schedules import SCHEDULES, Schedule, custom_schedule, make_schedule, peers
from hlorewrite.pipelines.schedules.check import producer
from hlorewrite.pipelines.simulate import (
    Description,
    LinkCost,
    PipelineCost,
    Simulation,
    StageCost,
    describe,
    parse_meshes,
    simulate,
    uniform_cost,
)
from hlorewrite.pipelines.simulate.pictures import trace_events, write_trace
from hlorewrite.util.sizes import parse_seconds


def random_cost(stages: int, chance: random.Random) -> PipelineCost:
    """Costs of every kind, some of them zero."""
    def some(scale: float) -> float:
        return chance.choice((0.0, chance.random() * scale))
    return PipelineCost(
        tuple(StageCost(chance.random() + 0.1, chance.random() + 0.1, update_s=some(1), all_reduce_s=some(4),
                        all_reduce_on_network=chance.random() < 0.5, live_bytes=some(9), static_bytes=some(9))
              for _ in range(stages)),
        tuple(LinkCost(some(1), some(1), some(3), some(3)) for _ in range(stages - 1)))


def random_simulations() -> list[Simulation]:
    """Every schedule at several sizes, both modes, with and without Comm-Shift."""
    chance = random.Random(7)
    simulations = []
    for name, (meshes, microbatches) in itertools.product(SCHEDULES, [(1, 2), (2, 4), (3, 6), (4, 8)]):
        schedule = make_schedule(name, meshes, microbatches)
        for comm_shift, overlap in itertools.product((False, True), repeat=2):
            cost = random_cost(schedule.stages, chance)
            simulations.append(simulate(schedule, cost, comm_shift=comm_shift, overlap=overlap))
    return simulations


def intervals(simulation: Simulation, mesh: int) -> list[tuple[float, float]]:
    """When a mesh computes, and when its executables wait for a reduction inside them."""
    times = simulation.times
    rows = [(times.start[k], times.end[k]) for k in simulation.schedule.numbers[mesh].tolist()]
    rows += [(start, end) for where, _, start, end in times.reductions if where == mesh]
    return sorted([*rows, times.updates[mesh]])


def apart(rows: list[tuple[float, float]]) -> bool:
    """Whether no two intervals overlap."""
    rows = sorted(row for row in rows if row[1] > row[0])
    return all(later[0] >= earlier[1] - 1e-9 for earlier, later in itertools.pairwise(rows))


def test_a_mesh_does_one_thing_at_a_time_in_its_order() -> None:
    for simulation in random_simulations():
        for mesh, numbers in enumerate(simulation.schedule.numbers):
            starts = [simulation.times.start[k] for k in numbers.tolist()]
            assert starts == sorted(starts)
            assert apart(intervals(simulation, mesh))


def test_tasks_wait_for_their_input() -> None:
    for simulation in random_simulations():
        schedule, times = simulation.schedule, simulation.times
        held = _released(simulation)
        for numbers in schedule.numbers:
            for number in numbers.tolist():
                needs = producer(number, schedule.stages, schedule.microbatches)
                if needs >= 0:
                    ready = times.arrived[needs] if times.arrived[needs] >= 0 else held.get(needs, times.end[needs])
                    assert times.start[number] >= ready - 1e-9


def test_overlapped_tasks_start_as_early_as_they_can() -> None:
    for simulation in random_simulations():
        if not simulation.overlap:
            continue
        schedule, times = simulation.schedule, simulation.times
        held = _released(simulation)
        for numbers in schedule.numbers:
            free = 0.0
            for number in numbers.tolist():
                needs = producer(number, schedule.stages, schedule.microbatches)
                ready = 0.0 if needs < 0 else max(times.arrived[needs], held.get(needs, times.end[needs]))
                assert times.start[number] == pytest.approx(max(free, ready))
                free = held.get(number, times.end[number])


def _released(simulation: Simulation) -> dict[int, float]:
    """Tasks whose results a reduction holds back, and until when."""
    from hlorewrite.pipelines.simulate.events import durations_of
    stage_of = durations_of(simulation.schedule, simulation.cost, simulation.comm_shift).reduce_in
    ends = {stage: end for _, stage, _, end in simulation.times.reductions if stage >= 0}
    return {task: ends[stage] for task, stage in stage_of.items()}


def test_every_transfer_runs_once_for_its_time_after_its_task() -> None:
    for simulation in random_simulations():
        schedule, times, count = simulation.schedule, simulation.times, simulation.schedule.microbatches
        goes = peers(schedule)
        held = _released(simulation)
        for numbers in schedule.numbers:
            for number in numbers.tolist():
                row, stage = divmod(number // count, schedule.stages)
                link = simulation.cost.links[stage if row == 0 else stage - 1] if goes[number // count] >= 0 else None
                seconds = 0.0 if link is None else (link.forward_s, link.backward_s)[row]
                if seconds:
                    assert times.arrived[number] - times.sent[number] == pytest.approx(seconds)
                    assert times.sent[number] >= held.get(number, times.end[number]) - 1e-9
                else:
                    assert times.sent[number] == times.arrived[number] == -1.0


def test_ports_carry_one_transfer_at_a_time() -> None:
    for simulation in random_simulations():
        schedule, times, count = simulation.schedule, simulation.times, simulation.schedule.microbatches
        goes = peers(schedule).tolist()
        ports: list[list[tuple[float, float]]] = [[] for _ in range(2 * schedule.meshes)]
        for mesh, numbers in enumerate(schedule.numbers):
            for number in numbers.tolist():
                if times.sent[number] >= 0:
                    span = (times.sent[number], times.arrived[number])
                    ports[2 * mesh].append(span)
                    ports[2 * goes[number // count] + 1].append(span)
        for mesh, stage, start, end in times.reductions:
            stages = schedule.stages_of(mesh) if stage < 0 else [stage]
            if any(simulation.cost.stages[each].all_reduce_on_network for each in stages):
                ports[2 * mesh].append((start, end))
                ports[2 * mesh + 1].append((start, end))
        assert all(apart(port) for port in ports)


def test_ports_serve_in_the_order_of_requests_and_do_not_idle() -> None:
    for simulation in random_simulations():
        if not simulation.overlap:
            continue
        schedule, times, count = simulation.schedule, simulation.times, simulation.schedule.microbatches
        goes, held = peers(schedule).tolist(), _released(simulation)
        sent = sorted((times.sent[number], held.get(number, times.end[number]), times.arrived[number], mesh,
                       goes[number // count])
                      for mesh, numbers in enumerate(schedule.numbers) for number in numbers.tolist()
                      if times.sent[number] >= 0)
        for mesh, stage, start, end in times.reductions:
            stages = schedule.stages_of(mesh) if stage < 0 else [stage]
            if any(simulation.cost.stages[each].all_reduce_on_network for each in stages):
                sent.append((start, start, end, mesh, mesh))
        last: dict[tuple[str, int], tuple[float, float]] = {}
        for start, ready, end, mesh, peer in sorted(sent):
            before = [last.get(("out", mesh), (0.0, 0.0)), last.get(("in", peer), (0.0, 0.0))]
            if mesh != peer:  # when a reduction was asked for is not recorded
                assert start == pytest.approx(max(ready, *(finish for _, finish in before)))
                assert all(asked <= ready + 1e-9 for asked, finish in before if finish > ready + 1e-9)
            last["out", mesh] = last["in", peer] = (ready if mesh != peer else -1.0, end)


def test_time_is_compute_bubble_and_exposed_communication() -> None:
    for simulation in random_simulations():
        total = simulation.iteration_time_s
        assert total >= simulation.free_communication_s - 1e-9
        assert simulation.period_s <= total + 1e-9
        for compute, bubble in zip(simulation.compute_s, simulation.bubble_s, strict=True):
            assert compute + bubble + simulation.exposed_communication_s == pytest.approx(total)
            assert bubble > -1e-9


def test_comm_shift_never_costs_time_where_a_mesh_has_one_stage() -> None:
    # With several, a stage's reduction inside its last backward may hide in a bubble that the update does not have.
    chance = random.Random(3)
    gained = 0
    for name, overlap in itertools.product(SCHEDULES, (False, True)):
        schedule = make_schedule(name, 4, 8)
        for _ in range(5):
            cost = random_cost(schedule.stages, chance)
            off, on = (simulate(schedule, cost, comm_shift=each, overlap=overlap) for each in (False, True))
            if schedule.stages == schedule.meshes:
                assert on.iteration_time_s <= off.iteration_time_s + 1e-9
            gained += on.iteration_time_s < off.iteration_time_s - 1e-9
            assert sorted(stage for _, stage, _, _ in off.times.reductions) == [
                stage for stage in range(schedule.stages) if cost.stages[stage].all_reduce_s]
            spent = [sum(end - start for _, _, start, end in each.times.reductions) for each in (off, on)]
            assert spent[0] == pytest.approx(spent[1])
    assert gained > 30


@pytest.mark.parametrize("meshes", [1, 2, 4, 6])
def test_without_comm_shift_reductions_line_up_in_the_drain(meshes: int) -> None:
    # Every stage's last backward is held until its reduction is done: n of them in a row. With it only the longest
    # tail remains: stage i is through with its backwards 2i before stage 0.
    schedule = make_schedule("1f1b", meshes, 8)
    cost = uniform_cost(meshes, 1.0, 2.0, all_reduce_s=5.0)
    base = (8 + meshes - 1) * 3.0
    assert simulate(schedule, cost).iteration_time_s == pytest.approx(base + 5.0 * meshes)
    assert simulate(schedule, cost, comm_shift=True).iteration_time_s == pytest.approx(base + 5.0)


def test_unequal_reductions_hide_behind_the_drain() -> None:
    stages = tuple(StageCost(1.0, 2.0, all_reduce_s=each) for each in (1.0, 3.0, 9.0))
    schedule = make_schedule("1f1b", 3, 4)
    # Stage 2's backwards end 4 s before stage 0's, at 14: it ends at 14 + 9.
    simulation = simulate(schedule, PipelineCost(stages, (LinkCost(),) * 2), comm_shift=True)
    assert simulation.iteration_time_s == pytest.approx(23.0)
    assert [mesh for mesh, _, _, end in simulation.times.reductions if end == pytest.approx(23.0)] == [2]


def test_blocking_transfers_take_the_meshes_time() -> None:
    # One micro-batch: forward, transfer, forward, backward, transfer back, backward.
    cost = uniform_cost(2, 1.0, 2.0, transfer_s=0.5)
    assert simulate(make_schedule("1f1b", 2, 1), cost, overlap=False).iteration_time_s == pytest.approx(7.0)
    # Two. Mesh 0: F0 to 1, send to 1.5, F1 to 2.5, send to 3, receive from 5 to 5.5, B0 to 7.5, receive to 9 (mesh 1's
    # B1 ends at 8.5, after F1 from 5.5), B1 to 11. Mesh 1: F0 from 1.5, takes F1's activation at 2.5, B0 from 3 to 5.
    simulation = simulate(make_schedule("1f1b", 2, 2), cost, overlap=False)
    assert simulation.times.sent[:2] == pytest.approx([1.0, 2.5])
    assert simulation.iteration_time_s == pytest.approx(11.0)


def test_eager_1f1b_hides_transfers_that_1f1b_does_not() -> None:
    # Where a transfer is shorter than a task, eager-1F1B pays only for the fill and drain of the pipeline.
    cost = uniform_cost(4, 1.0, 1.0, transfer_s=0.5)
    plain, eager = (simulate(make_schedule(name, 4, 32), cost) for name in ("1f1b", "eager-1f1b"))
    assert eager.exposed_communication_s == pytest.approx(2 * 3 * 0.5)
    assert plain.exposed_communication_s > 4 * eager.exposed_communication_s


def test_links_limit_the_pipeline() -> None:
    # A transfer longer than a whole round: the first link serves m activations one after another, both ways apart.
    cost = uniform_cost(2, 1.0, 1.0, transfer_s=10.0)
    simulation = simulate(make_schedule("gpipe", 2, 8), cost)
    assert simulation.iteration_time_s == pytest.approx(1 + 8 * 10 + 1 + 1 + 8 * 10 + 1)


def test_bubble_ratio_and_memory() -> None:
    link = LinkCost(0.0, 0.0, 0.0, 0.0)
    cost = PipelineCost((StageCost(1.0, 2.0, live_bytes=7.0, static_bytes=100.0),) * 4, (link,) * 3)
    plain, eager = (simulate(make_schedule(name, 4, 8), cost) for name in ("1f1b", "eager-1f1b"))
    assert plain.bubble_ratio == pytest.approx(3 / (3 + 8))
    assert plain.peak_bytes == [100 + 7.0 * alive for alive in (4, 3, 2, 1)]
    assert eager.peak_bytes == [100 + 7.0 * alive for alive in (7, 5, 3, 1)]


def test_memory_of_split_backwards_and_buffers() -> None:
    schedule = custom_schedule("F0 I0 F1 W0 I1 W1")
    cost = PipelineCost((StageCost(1.0, 2.0, live_bytes=5.0),), ())
    at, level = simulate(schedule, cost).memory(0)
    assert (at.tolist(), level.tolist()) == ([0, 2, 4, 6], [5, 10, 5, 0])
    # A buffer at the receiver from the transfer's start to the forward's, at the sender until the transfer's end.
    pair = PipelineCost((StageCost(1.0, 1.0),) * 2, (LinkCost(2.0, 3.0, upper_bytes=1.0, lower_bytes=10.0),))
    simulation = simulate(make_schedule("1f1b", 2, 1), pair)
    assert [each.tolist() for each in simulation.memory(0)] == [[0, 1, 3, 5, 9], [0, 1, 0, 1, 0]]
    assert [each.tolist() for each in simulation.memory(1)] == [[0, 1, 3, 5, 8], [0, 10, 0, 10, 0]]


def test_memory_returns_to_the_static_share() -> None:
    for simulation in random_simulations():
        for mesh in range(simulation.schedule.meshes):
            at, level = simulation.memory(mesh)
            static = sum(simulation.cost.stages[stage].static_bytes for stage in simulation.schedule.stages_of(mesh))
            assert level[-1] == pytest.approx(static)
            assert level.min() >= static - 1e-6 and np.all(np.diff(at) > 0)


def test_zero_bubble_2_has_a_shorter_period_than_its_iteration() -> None:
    simulation = simulate(make_schedule("zb-h2", 4, 8), uniform_cost(4, 1.0, 2.0))
    assert (simulation.iteration_time_s, simulation.period_s) == (27.0, 24.0)


def test_a_deadlock_is_told_and_not_simulated() -> None:
    broken = custom_schedule("F0 B0 F1 B1\nF1 B1 F0 B0")
    for overlap in (False, True):
        with pytest.raises(PlanError, match="the schedule deadlocks: the backward of micro-batch 0 on stage 0"):
            simulate(broken, uniform_cost(2, 1.0, 1.0), overlap=overlap)


@pytest.mark.parametrize("make", [
    lambda: StageCost(-1.0, 1.0), lambda: StageCost(1.0, float("nan")), lambda: LinkCost(float("inf"), 0.0),
    lambda: StageCost(1.0, 1.0, weight_gradient_s=-0.5), lambda: PipelineCost((StageCost(1, 1),) * 2, ()),
    lambda: simulate(make_schedule("1f1b", 3, 3), uniform_cost(2, 1.0, 1.0))])
def test_bad_costs(make) -> None:
    with pytest.raises(PlanError) as caught:
        make()
    assert "\n" not in str(caught.value) and ";" in str(caught.value)


def described(schedule: Schedule, **changes) -> PipelineCost:
    """Four stages of the paper's shape on TSUBAME4."""
    fields = {"meshes": ((8, 1), (4, 2), (4, 2), (4, 2)), "forward_s": (1e-3,) * 4, "backward_s": (2e-3,) * 4,
              "act_bytes": (1 << 24,) * 4, "grad_bytes": (1 << 28,) * 4} | changes
    return describe(Description(**fields), schedule, topology("tsubame4"), "broadcast")


def test_description_prices_transfers_and_reductions() -> None:
    cost = described(make_schedule("1f1b", 4, 8))
    # 16 MiB leave a mesh of two hosts through eight ports of 25 GB/s.
    assert cost.links[0].forward_s == pytest.approx((1 << 24) / 8 / 25e9, rel=0.2)
    # Four ranks, two on each host with a port each: between the bytes once through the ports and a ring's 1.5 times.
    assert (1 << 28) / (2 * 25e9) < cost.stages[1].all_reduce_s < 1.1 * 1.5 * (1 << 28) / (2 * 23.75e9)
    assert all(stage.all_reduce_on_network for stage in cost.stages)
    assert cost.stages[0].live_bytes == (1 << 24) / 8


def test_small_meshes_share_a_host() -> None:
    # (2x1) next to (2x1) on the third host, not across the second and third: the reductions stay on NVLink.
    fields = {"meshes": ((4, 1), (2, 1), (4, 1), (2, 1))}
    cost = described(make_schedule("1f1b", 4, 8), **fields)
    assert not any(stage.all_reduce_on_network for stage in cost.stages)
    across = described(make_schedule("1f1b", 4, 8), meshes=((8, 1), (2, 1), (4, 1), (2, 1)))
    assert [stage.all_reduce_on_network for stage in across.stages] == [True, False, False, False]


def test_chunks_share_their_meshs_time_and_gradients() -> None:
    whole = described(make_schedule("1f1b", 4, 8))
    parts = described(make_schedule("interleaved-1f1b", 4, 8, 2))
    assert len(parts.stages) == 8
    assert parts.stages[5].forward_s == pytest.approx(whole.stages[1].forward_s / 2)
    assert whole.stages[1].all_reduce_s / 2 < parts.stages[5].all_reduce_s < whole.stages[1].all_reduce_s
    folded = described(make_schedule("dualpipe-v", 4, 8))
    assert folded.links[3].forward_s == 0.0 < folded.links[4].forward_s


def test_signal_is_below_every_transfer() -> None:
    schedule = make_schedule("1f1b", 2, 4)
    flat = Description(((2, 2),) * 2, (1.0,) * 2, (1.0,) * 2, (1 << 26,) * 2, (0,) * 2)
    seconds = {name: describe(flat, schedule, topology("p3.8xlarge"), name).links[0].forward_s
               for name in ("signal", "broadcast", "send-recv", "auto")}
    assert seconds["signal"] < 1e-3 < seconds["auto"] <= seconds["broadcast"] <= seconds["send-recv"]
    assert seconds["send-recv"] / seconds["broadcast"] == pytest.approx(2.0, rel=0.1)  # copied on two GPUs


@pytest.mark.parametrize("text", ["", "(8x1", "8x1)", "(8x)", "(0x2)", "(8x1)(4x2)", "(8x1),", "(axb)", "(8x1x2)"])
def test_malformed_meshes(text: str) -> None:
    with pytest.raises(UsageError, match="mesh of stage"):
        parse_meshes(text)


def test_meshes_with_and_without_brackets() -> None:
    assert parse_meshes("8x1, 4x2") == parse_meshes("[(8x1), (4x2)]") == ((8, 1), (4, 2))


@pytest.mark.parametrize(("changes", "message"), [
    ({"forward_s": (1.0,)}, "4 stages are given 1 values"), ({"backward_s": (1.0, -2.0, 1.0, 1.0)}, "stage 1 has a"),
    ({"weight_gradient_s": (0.0, 0.0, 0.0, 9.0)}, "stage 3 has a weight gradient of 9.0 s")])
def test_bad_descriptions(changes: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        described(make_schedule("1f1b", 4, 8), **changes)
    with pytest.raises(UsageError, match='did you mean "broadcast"'):
        describe(Description(((1, 1),), (1.0,), (1.0,), (0,), (0,)), make_schedule("1f1b", 1, 1), None, "brodcast")


@pytest.mark.parametrize(("text", "seconds"), [("1ms", 1e-3), ("2.5 us", 2.5e-6), ("3", 3.0), ("1e-2s", 1e-2)])
def test_times(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "fast", "-1ms", "1 minute", "1MS", "nan", "inf"])
def test_bad_times(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seconds(text)


def test_trace_holds_every_task_and_transfer(tmp_path: Path) -> None:
    simulation = simulate(make_schedule("1f1b", 4, 8), uniform_cost(4, 1e-3, 2e-3, 1e-4, 5e-3), comm_shift=True)
    events = trace_events(simulation)
    names = [event["name"] for event in events if event["ph"] == "X"]
    assert sum(name[0] in "FB" for name in names) == 64
    assert sum("activation" in name or "gradient" in name for name in names) == 2 * 3 * 8
    assert names.count("all-reduce") == 4
    assert max(event["ts"] + event["dur"] for event in events if event["ph"] == "X") == pytest.approx(
        simulation.iteration_time_s * 1e6, abs=0.01)
    write_trace(simulation, str(tmp_path / "step.json"))
    assert json.loads((tmp_path / "step.json").read_text())["traceEvents"] == events


def test_gantt_is_drawn_alike_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the viz extra")
    from hlorewrite.cost.training.plots import save
    from hlorewrite.pipelines.simulate.pictures import draw_gantt
    simulation = simulate(make_schedule("zb-h1", 4, 8), uniform_cost(4, 1e-3, 2e-3, 1e-4, 5e-3))
    for name in ("a.svg", "b.svg", "a.png"):
        save(draw_gantt(simulation), str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_gantt_refuses_what_nobody_can_see() -> None:
    pytest.importorskip("matplotlib", reason="pictures need the viz extra")
    from hlorewrite.pipelines.simulate import pictures
    simulation = simulate(make_schedule("1f1b", 4, 8), uniform_cost(4, 1.0, 1.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "_MOST_BARS", 63)
        with pytest.raises(HlorewriteError, match="64 tasks are too many"):
            pictures.draw_gantt(simulation)
