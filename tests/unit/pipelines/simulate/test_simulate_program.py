"""Simulation of programs: agrees with the simulation of descriptions, and includes what only a program states."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hlorewrite.cli.main import main
from hlorewrite.cost import topology
from hlorewrite.errors import PlanError
from hlorewrite.ir.load import load
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, Transfer, read_program
from hlorewrite.pipelines.schedules import make_schedule
from hlorewrite.pipelines.simulate import simulate, uniform_cost
from hlorewrite.pipelines.simulate.program import FragmentTime, ProgramCost, pipeline_cost, simulate_program
from hlorewrite.pipelines.simulate.program_times import cards_of, sized_for, transfer_seconds

PROGRAMS = Path(__file__).parents[3] / "programs"
TWO = str(PROGRAMS / "two_stages.mlir")
FOUR = str(PROGRAMS / "gpt_four_stages.mlir")


def program(path: str = TWO) -> Program:
    return read_program(load(path))


def cost(pipelined: Program, transfer_s: float = 0.5, **seconds: FragmentTime) -> ProgramCost:
    """Every fragment of a task takes the same time."""
    tasks = {"before": FragmentTime(0.0), "F": FragmentTime(1.0), "B": FragmentTime(2.0),
             "update": FragmentTime(0.25)} | seconds
    calls = [step for step in pipelined.steps if isinstance(step, FragmentCall)]
    transfers = {position: transfer_s for position, step in enumerate(pipelined.steps) if isinstance(step, Transfer)}
    return ProgramCost({step.callee: tasks[step.task] for step in calls}, transfers)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "eager-1f1b"])
@pytest.mark.parametrize("transfer_s", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("overlap", [True, False])
def test_a_chain_takes_what_its_description_takes(name: str, transfer_s: float, overlap: bool):
    pipelined = program()
    schedule = make_schedule(name, 2, 4)
    mine = simulate_program(pipelined, schedule, cost(pipelined, transfer_s), overlap=overlap)
    flat = uniform_cost(2, 1.0, 2.0, transfer_s)
    flat = replace(flat, stages=tuple(replace(stage, update_s=0.25) for stage in flat.stages))
    described = simulate(schedule, flat, overlap=overlap)
    if overlap or not transfer_s:
        assert mine.iteration_time_s == pytest.approx(described.iteration_time_s)
        assert mine.times.start == pytest.approx(described.times.start)
        assert mine.times.arrived == pytest.approx(described.times.arrived)
    assert mine.compute_s == pytest.approx(described.compute_s)
    assert mine.free_communication_s == pytest.approx(described.free_communication_s)


def test_blocking_transfers_never_gain():
    pipelined = program()
    schedule = make_schedule("1f1b", 2, 4)
    times = [simulate_program(pipelined, schedule, cost(pipelined), overlap=overlap).iteration_time_s
             for overlap in (True, False)]
    assert times[0] < times[1]


def test_reductions_cost_where_the_program_has_them():
    pipelined = program()
    schedule = make_schedule("1f1b", 2, 4)
    inside = simulate_program(pipelined, schedule, cost(pipelined, 0.0, B=FragmentTime(2.0, 1.0)))
    behind = simulate_program(pipelined, schedule, cost(pipelined, 0.0, update=FragmentTime(0.25, 1.0)))
    plain = simulate_program(pipelined, schedule, cost(pipelined, 0.0))
    assert behind.iteration_time_s == plain.iteration_time_s + 1.0
    assert inside.iteration_time_s == plain.iteration_time_s + 5.0  # four micro-batches, and one in the drain
    assert inside.compute_s == behind.compute_s == plain.compute_s
    assert len(inside.times.reductions) == 8
    assert len(behind.times.reductions) == 2
    assert inside.exposed_communication_s == 5.0


def test_meshes_on_one_card_wait_for_each_other():
    pipelined = program()
    schedule = make_schedule("1f1b", 2, 4)
    plain = cost(pipelined, 0.0, update=FragmentTime(0.25, 3.0))
    apart = {"m0": frozenset({(0, 0), (1, 1)}), "m1": frozenset({(2, 2), (3, 3)})}
    shared = {"m0": frozenset({(0, 0), (1, 1)}), "m1": frozenset({(0, 0), (1, 1)})}
    inside = {"m0": frozenset({(0, 0)}), "m1": frozenset({(0, 0)})}
    alone, together, local = (simulate_program(pipelined, schedule, replace(plain, cards=cards)).iteration_time_s
                              for cards in (apart, shared, inside))
    assert alone == local == simulate_program(pipelined, schedule, plain).iteration_time_s
    # Mesh 1 is done with its last backward at 13 and mesh 0 at 15. Each reduces for 3: the second waits for the first.
    assert alone == 15 + 3 + 0.25
    assert together == 13 + 3 + 3 + 0.25


def test_ports_that_do_one_thing_at_a_time():
    pipelined = program()
    schedule = make_schedule("eager-1f1b", 2, 4)
    for transfer_s in (0.0, 0.5, 4.0):
        both, one = (simulate_program(pipelined, schedule, cost(pipelined, transfer_s), duplex=duplex).iteration_time_s
                     for duplex in (True, False))
        assert one >= both
    assert one >= 8 * 4.0 > both  # four activations and four gradients, one after the other
    assert simulate_program(pipelined, schedule, cost(pipelined, 0.0), duplex=False).iteration_time_s == \
        simulate_program(pipelined, schedule, cost(pipelined, 0.0)).iteration_time_s


def test_cards_are_the_topology_s():
    pipelined = program()
    topo = sized_for(pipelined, topology("p3.8xlarge"), "p3.8xlarge")
    assert cards_of(pipelined, topo) == {"m0": frozenset({(0, 0)}), "m1": frozenset({(1, 1)})}


def test_a_transfer_around_the_loop_is_waited_for():
    """The gradient of tied weights goes to the first stage before the update there."""
    pipelined = program(FOUR)
    schedule = make_schedule("1f1b", 4, pipelined.iterations)
    free = cost(pipelined, 0.0)
    position = next(i for i, step in enumerate(pipelined.steps) if isinstance(step, Transfer)
                    and step in pipelined.after and pipelined.types[step.result].shape == (64, 16))
    slow = ProgramCost(free.fragments, {**free.transfers, position: 100.0})
    before, after = (simulate_program(pipelined, schedule, each) for each in (free, slow))
    assert after.iteration_time_s > before.iteration_time_s + 90.0
    assert after.times.start == before.times.start


def test_bytes_are_those_of_the_program():
    pipelined = program()
    costs = pipeline_cost(pipelined, make_schedule("1f1b", 2, 4), cost(pipelined))
    # stage 0 keeps x and h, 16x8 floats cut over four devices; stage 1 keeps h and the difference
    assert [stage.live_bytes for stage in costs.stages] == [256.0, 256.0]
    # w 8x8, a quarter of 4x16x8 inputs, the accumulator; the loss on stage 1
    assert [stage.static_bytes for stage in costs.stages] == [256.0 + 512.0 + 256.0, 256.0 + 512.0 + 256.0 + 4.0]
    assert (costs.links[0].upper_bytes, costs.links[0].lower_bytes) == (128.0, 128.0)


def test_transfers_take_what_their_plans_take():
    pipelined = program()
    cluster = sized_for(pipelined, topology("tsubame4"), "tsubame4")
    assert cluster.gpus == 8
    seconds = transfer_seconds(pipelined, cluster)
    assert set(seconds) == {position for position, step in enumerate(pipelined.steps) if isinstance(step, Transfer)}
    signal = transfer_seconds(pipelined, cluster, "signal")
    assert all(0 < signal[position] <= seconds[position] for position in seconds)


def test_what_does_not_fit_is_refused():
    pipelined = program()
    with pytest.raises(PlanError, match="is for 3 stages, but the program has 2"):
        simulate_program(pipelined, make_schedule("1f1b", 3, 4), cost(pipelined))
    with pytest.raises(PlanError, match="@forward_0 has no time"):
        fragments = {name: time for name, time in cost(pipelined).fragments.items() if name != "forward_0"}
        simulate_program(pipelined, make_schedule("1f1b", 2, 4), ProgramCost(fragments, {}))
    with pytest.raises(PlanError, match="takes nan seconds"):
        FragmentTime(float("nan"))


# ---- the command


def run(*words: str) -> int:
    return main(["pipeline", "simulate", *words])


def measured(tmp_path: Path, **more: object) -> str:
    pipelined = program()
    times = {name: time.compute_s for name, time in cost(pipelined).fragments.items()}
    path = tmp_path / "times.json"
    path.write_text(json.dumps({"fragments": times, "transfers": {"transfer 0": 0.5, "transfer 1": 0.5}} | more))
    return str(path)


def as_manual(tmp_path: Path) -> str:
    """The program with its fragments on one device each, so that no partitioner is needed."""
    text = Path(TWO).read_text().replace('"data"=4', '"data"=1')
    path = tmp_path / "program.mlir"
    path.write_text(text)
    return str(path)


def test_the_command_prints_the_iteration_time_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(as_manual(tmp_path), "--times", measured(tmp_path), "--json") == 0
    printed = capsys.readouterr().out
    content = json.loads(printed)
    assert next(iter(content)) == "iteration_time_s"
    expected = simulate_program(program(), make_schedule("1f1b", 2, 4), cost(program()))
    assert content["iteration_time_s"] == pytest.approx(expected.iteration_time_s)
    assert run(as_manual(tmp_path), "--times", measured(tmp_path), "--schedule", "gpipe", "--trace",
               str(tmp_path / "step.json")) == 0
    assert "gpipe, 2 stages, 4 micro-batches" in capsys.readouterr().out
    assert json.loads((tmp_path / "step.json").read_text())["traceEvents"]


def test_the_cost_model_gives_times_that_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(as_manual(tmp_path), "--topology", "h200", "--json") == 0
    assert 0 < json.loads(capsys.readouterr().out)["iteration_time_s"] < 1e-2


@pytest.mark.parametrize(("words", "sentence"), [
    (["--fwd", "1ms"], "--fwd describes a pipeline"),
    (["--meshes", "(1x1)"], "--meshes describes a pipeline"),
    (["--microbatches", "3"], "--microbatches 3, but the program has 4"),
    (["--schedule", "zb-h1"], "splits the backward pass in two"),
    (["--schedule", "custom"], "needs its table"),
    ([], "without a topology"),
    (["--topology", "nowhere"], 'there is no topology "nowhere"'),
    (["--topology", "h200:1x1"], "the meshes need 2 GPUs"),
    (["--topology", "h200", "--transfer", "pigeon"], 'there is no transfer "pigeon"')])
def test_flags_that_do_not_go_with_a_program(tmp_path: Path, words: list[str], sentence: str):
    from hlorewrite.errors import HlorewriteError
    with pytest.raises(HlorewriteError) as error:
        run(as_manual(tmp_path), *words)
    assert sentence in str(error.value)


@pytest.mark.parametrize(("content", "sentence"), [
    ('{"fragments": {"forward_9": 1}}', 'no fragment "forward_9"'),
    ('{"transfers": {"transfer 7": 1}}', 'no transfer "transfer 7"'),
    ('{"fragments": {"forward_0": -1}}', 'its "fragments" do not map names to seconds'),
    ('{"fragments": [1]}', 'its "fragments" do not map names to seconds'),
    ("{", "is not JSON")])
def test_times_that_are_none(tmp_path: Path, content: str, sentence: str):
    from hlorewrite.errors import HlorewriteError
    path = tmp_path / "times.json"
    path.write_text(content)
    with pytest.raises(HlorewriteError) as error:
        run(as_manual(tmp_path), "--times", str(path))
    assert sentence in str(error.value)


def test_a_file_that_is_no_program(tmp_path: Path):
    from hlorewrite.errors import HlorewriteError
    path = tmp_path / "plain.mlir"
    path.write_text("func.func @main() { return }")
    with pytest.raises(HlorewriteError, match="not a program of several meshes"):
        run(str(path), "--topology", "h200")
    path.write_text(Path(TWO).read_text()[:2500])
    with pytest.raises(HlorewriteError, match="cut short"):
        run(str(path), "--topology", "h200")
