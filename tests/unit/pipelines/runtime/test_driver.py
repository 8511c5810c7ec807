"""The driver in one process: values, schedules, donation, transfers, refusals."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from pipeline_cases import (
    PROGRAMS,
    chain,
    chain_reference,
    chain_values,
    columns,
    edited,
    reference,
    relative_errors,
    reordered_second_mesh,
    smaller_second_mesh,
    two_stages,
    values,
)

from hlorewrite.errors import InputError, PlanError, UsageError
from hlorewrite.ir.load import load, parse
from hlorewrite.jaxbridge.xla.execute import Value, random_arguments
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.registry import make_pass
from hlorewrite.pipelines.runtime.driver import PipelineDriver
from hlorewrite.pipelines.runtime.group import StepFailed
from hlorewrite.pipelines.schedules import custom_schedule, make_schedule

CLOSE = 1e-5


@pytest.mark.parametrize(("mesh_of", "halved", "schedule"), [
    ((0, 1, 2, 3), False, "gpipe"), ((0, 1, 2, 3), False, "1f1b"), ((0, 1, 2, 3), False, "eager-1f1b"),
    ((0, 1, 2, 3), True, "gpipe"), ((0, 1, 2, 3), True, "zb-h1"), ((0, 1, 2, 3), True, "zb-h2"),
    ((0, 1, 0, 1), False, "interleaved-1f1b"), ((0, 1, 0, 1), True, "interleaved-1f1b"),
    ((0, 1, 1, 0), True, "dualpipe-v"),
])
def test_every_schedule_computes_the_step_of_one_device(mesh_of: tuple[int, ...], halved: bool, schedule: str):
    driver = PipelineDriver(chain(mesh_of, halved=halved), schedule=schedule)
    given = chain_values(len(mesh_of))
    assert max(relative_errors(driver(*driver.place(given)), chain_reference(*given))) < CLOSE


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b"])
def test_schedules_on_the_program_written_by_hand(schedule: str):
    driver = PipelineDriver(two_stages(), schedule=schedule)
    given = values()
    assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < CLOSE


def test_the_programs_own_schedule_is_the_default():
    assert PipelineDriver(two_stages()).schedule == make_schedule("1f1b", 2, 4)


def test_a_schedule_of_ones_own():
    table = "F0 F2 B2 B0 F3 F1 B1 B3\nF0 F2 B2 B0 F3 F1 B1 B3"
    driver = PipelineDriver(two_stages(), schedule=custom_schedule(table))
    given = values()
    assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < CLOSE


def test_many_steps_in_flight():
    driver = PipelineDriver(two_stages(), schedule="gpipe")
    given = values()
    state, data = driver.place(given)[:2], driver.place(given)[2:]
    wanted = given
    for _ in range(30):
        *state, _ = driver(*state, *data)
        w0, w1, _ = reference(*wanted)
        wanted = [w0, w1, *given[2:]]
    assert max(relative_errors(state, wanted[:2])) < 1e-4  # thirty steps of float32 against double


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_transfers_between_layouts_follow_a_plan(schedule: str):
    driver = PipelineDriver(columns(), schedule=schedule)
    assert {plan.kind for plan in driver.plans.values()} == {"plan"}
    given = values()
    assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < CLOSE


def test_the_plan_a_program_carries_is_followed_or_refused():
    module = columns()
    # On servers of one GPU a broadcast over columns is worth a plan of the program's own.
    assert make_pass("reshard-to-broadcast", "topology=p3.8xlarge").run(module, PassContext(ignore_cost=True))
    driver = PipelineDriver(module, topology="p3.8xlarge")
    given = values()
    assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < CLOSE
    said = {plan.plan.digest for plan in driver.plans.values() if plan.plan is not None}
    assert all(digest in module.text() for digest in said) and said
    with pytest.raises(PlanError, match="cannot be rebuilt"):
        PipelineDriver(parse(module.text().replace(min(said), "0" * 64), name="x.mlir"), topology="p3.8xlarge")


def test_replicated_values_reach_a_larger_mesh():
    given = values()
    whole = smaller_second_mesh()
    driver = PipelineDriver(whole)
    assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < CLOSE
    assert len(driver.place(given)[1].sharding.device_set) == 2


def test_device_ids_of_a_mesh_are_respected():
    """Numbers of its own may be another mesh's too: both stages are on the first four devices, in another order."""
    driver = PipelineDriver(reordered_second_mesh(), jax.devices()[4:])
    given = values()
    placed = driver.place(given)
    rows = {shard.index[1].start or 0: shard.device.id for shard in placed[3].addressable_shards}
    assert [rows[start] for start in sorted(rows)] == [7, 5, 6, 4]
    assert max(relative_errors(driver(*placed), reference(*given))) < CLOSE


def test_devices_by_mesh():
    devices = jax.devices()
    driver = PipelineDriver(two_stages(), {"m0": devices[4:], "m1": devices[:4]})
    given = values()
    placed = driver.place(given)
    assert placed[0].sharding.device_set == set(devices[4:])
    assert max(relative_errors(driver(*placed), reference(*given))) < CLOSE
    with pytest.raises(UsageError, match=r"mesh m1 shares .* but not all of its devices, with another mesh"):
        PipelineDriver(two_stages(), {"m0": devices[:4], "m1": devices[2:6]})


def test_all_meshes_on_the_same_devices():
    devices = jax.devices()
    driver = PipelineDriver(two_stages(), {"m0": devices[:4], "m1": devices[:4]})
    given = values()
    assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < CLOSE
    with pytest.raises(UsageError, match="mesh m0 has a device twice"):
        PipelineDriver(two_stages(), {"m0": [*devices[:3], devices[0]], "m1": devices[4:]})


def test_devices_of_another_number():
    devices = jax.devices()
    with pytest.raises(UsageError, match="mesh m1 has 4 devices but got 2"):
        PipelineDriver(two_stages(), {"m0": devices[:4], "m1": devices[4:6]})


def test_fragments_in_manual_form():
    module = two_stages()
    assert make_pass("expose-collectives").run(module, PassContext())
    assert "sdy.manual_computation" in module.text()
    driver = PipelineDriver(module)
    given = values()
    assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < CLOSE


# ---- donation


def test_donated_arguments_are_gone_and_others_stay():
    driver = PipelineDriver(two_stages())
    placed = driver.place(values())
    driver.wait(driver(*placed))
    assert [array.is_deleted() for array in placed] == [True, True, False, False]


def test_accumulators_are_written_over():
    driver = PipelineDriver(two_stages())
    assert driver.liveness.donated["backward_0"] >= {3}
    backward = next(step for step in driver.instructions if getattr(step.action.step, "callee", "") == "backward_0")
    kinds = [driver.program.types[value] for value in backward.action.step.operands]
    given = [jax.device_put(np.ones(type_.shape, np.float32), driver.meshes.sharding(type_)) for type_ in kinds]
    made = backward.function(*given)
    again = [jax.device_put(np.ones(type_.shape, np.float32), driver.meshes.sharding(type_)) for type_ in kinds[:3]]
    before = made[0].addressable_shards[0].data.unsafe_buffer_pointer()
    after = backward.function(*again, made[0])
    assert given[3].is_deleted() and made[0].is_deleted()
    assert after[0].addressable_shards[0].data.unsafe_buffer_pointer() == before


def test_nothing_of_a_step_stays_behind():
    driver = PipelineDriver(two_stages(), schedule="gpipe")
    placed = driver.place(values())
    results = driver(*placed)
    driver.wait(results)
    del placed

    def alive() -> int:
        # Tokens of programs in flight, the only int8 there is, are released when the next program is launched.
        return sum(array.dtype != np.int8 for array in jax.live_arrays())

    before = alive()
    for _ in range(3):
        results = driver(*driver.place(values()))
        driver.wait(results)
    assert alive() <= before


def test_an_argument_that_is_not_donated_may_start_a_sum():
    """The accumulators of both stages start from arguments the caller keeps."""
    text = two_stages().text()
    head = 'func.func public @main('
    extra = ('%s: !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, ')
    text = text.replace(head, head + extra.replace("%s", "%zero"), 1)
    text = text.replace("tf.aliasing_output = 0", "tf.aliasing_output = 0", 1)
    lines = text.splitlines()
    loop = next(line for line in lines if "mpmd.for" in line)
    first = loop.split("mpmd.for (")[1].split(",")[0]
    text = text.replace(loop, loop.replace(f"mpmd.for ({first}", "mpmd.for (%zero"))
    driver = PipelineDriver(parse(text, name="kept.mlir"))
    given = values()
    placed = driver.place([np.zeros((8, 8), np.float32), *given])
    for _ in range(2):  # a sum written over would show in the second run
        results = driver(placed[0], *driver.place([np.zeros((8, 8), np.float32), *given])[1:])
        assert max(relative_errors(results, reference(*given))) < CLOSE
    assert not placed[0].is_deleted()


# ---- refusals


@pytest.mark.parametrize(("schedule", "sentence"), [
    ("zb-h1", "splits the backward pass in two, but the program does not"),
    ("dualpipe-v", "is for 4 stages, but the program has 2"),
    (make_schedule("1f1b", 2, 8), "is for 8 micro-batches, but the program has 4"),
    (make_schedule("1f1b", 3, 4), "is for 3 stages, but the program has 2"),
])
def test_schedules_that_do_not_fit(schedule: object, sentence: str):
    with pytest.raises(PlanError, match=sentence):
        PipelineDriver(two_stages(), schedule=schedule)  # pyright: ignore


def test_stages_on_other_meshes_than_the_schedules():
    with pytest.raises(PlanError, match="runs stage 2 on the same mesh as stage 1"):
        PipelineDriver(chain((0, 1, 0, 1), halved=True), schedule="dualpipe-v")


def test_sums_alone_may_be_made_out_of_order():
    module = edited(("hlorewrite.sums = array<i1: true, true, true>", "hlorewrite.sums = array<i1: true, false, true>"))
    with pytest.raises(PlanError, match=r"of micro-batch 3 on stage 1 before that of micro-batch 2.*not a plain sum"):
        PipelineDriver(module, schedule="gpipe")
    driver = PipelineDriver(module, schedule="1f1b")
    given = values()
    assert max(relative_errors(driver(*driver.place(given)), reference(*given))) < CLOSE


def test_unknown_schedules_and_modules_that_are_no_programs():
    with pytest.raises(UsageError, match='there is no schedule "1f2b"'):
        PipelineDriver(two_stages(), schedule="1f2b")
    with pytest.raises(InputError, match="not a program of several meshes"):
        PipelineDriver(parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"))


def test_too_few_devices():
    with pytest.raises(UsageError, match="needs 8 devices but there are 4"):
        PipelineDriver(two_stages(), jax.devices()[:4])


def test_arguments_that_lie_elsewhere():
    driver = PipelineDriver(two_stages())
    placed = driver.place(values())
    with pytest.raises(UsageError, match="4 arguments but got 3"):
        driver(*placed[:3])
    with pytest.raises(UsageError, match="argument 0 is not on mesh m0"):
        driver(placed[1], *placed[1:])
    with pytest.raises(UsageError, match="argument 2 is not an array on devices"):
        driver(*placed[:2], values()[2], placed[3])
    with pytest.raises(UsageError, match=r"argument 1 has shape \[8, 4\]"):
        driver.place([values()[0], values()[1][:, :4], *values()[2:]])
    with pytest.raises(UsageError, match="argument 1 is float64"):
        driver.place([values()[0], values()[1].astype(np.float64), *values()[2:]])


def test_place_takes_arrays_that_live_elsewhere():
    driver = PipelineDriver(two_stages())
    given = values()
    elsewhere = [jax.device_put(value, jax.devices()[-1]) for value in given]
    placed = driver.place(elsewhere)
    assert driver.place(placed)[0] is placed[0]
    assert max(relative_errors(driver(*placed), reference(*given))) < CLOSE
    assert not any(array.is_deleted() for array in elsewhere)


def test_a_call_that_fails_names_the_fragment():
    import dataclasses
    driver = PipelineDriver(two_stages())

    def out_of_memory(*_: object) -> list:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

    place = next(i for i, step in enumerate(driver.instructions)
                 if getattr(step.action.step, "callee", "") == "backward_1" and step.action.microbatch == 2)
    driver.instructions = (*driver.instructions[:place],
                           dataclasses.replace(driver.instructions[place], function=out_of_memory),
                           *driver.instructions[place + 1:])
    with pytest.raises(StepFailed, match=r"@backward_1 \(the backward of micro-batch 2 on stage 1\) failed"):
        driver(*driver.place(values()))


# ---- what is made once


def test_equal_fragments_on_the_same_devices_are_compiled_once():
    driver = PipelineDriver(chain((0, 1, 0, 1)))
    calls = {step.callee for step in driver.program.steps if hasattr(step, "callee")}
    assert driver.compilations < len(calls)


def test_fetch_gives_a_value_of_any_mesh():
    driver = PipelineDriver(two_stages())
    given = values()
    results = driver(*driver.place(given))
    assert abs(float(driver.fetch(2, results[2])) / float(reference(*given)[2]) - 1) < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize(("program", "schedules"), [
    ("gpt_four_stages", ("gpipe", "1f1b", "eager-1f1b")), ("gpt_zero_bubble", ("zb-h1", "zb-h2", "gpipe")),
])
def test_schedules_agree_on_real_programs(program: str, schedules: tuple[str, ...]):
    module = load(str(PROGRAMS / f"{program}.mlir"))
    results = []
    for schedule in schedules:
        driver = PipelineDriver(module, schedule=schedule)
        kinds = [driver.program.types[value] for value in driver.program.arguments]
        given = random_arguments([Value("", type_.shape, type_.element, "") for type_ in kinds], positive=True)
        results.append([np.asarray(each, np.float64) for each in driver(*driver.place(given))])
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.abs(a - b).max() <= CLOSE * max(np.abs(a).max(), 1e-30)


def test_values_cut_over_parts_of_an_axis():
    import dataclasses

    from hlorewrite.pipelines.mpmd.program import read_program
    from hlorewrite.pipelines.mpmd.types import MeshTensor
    from hlorewrite.pipelines.passes.reshard_to_broadcast.transfer import layout_of
    from hlorewrite.pipelines.reshard.layout import ReshardMesh
    from hlorewrite.pipelines.runtime.meshes import PlacedMeshes, place_meshes
    program = read_program(two_stages())
    kinds = tuple(MeshTensor("m0", "tensor<4x4xf32>", (4, 4), "f32", 64, spec) for spec in (
        (("data:(1)2",), ()), (("data:(2)2",), ("data:(1)2",)), (("data",), ())))
    placed = place_meshes(dataclasses.replace(program, types=kinds), None)
    assert isinstance(placed, PlacedMeshes)
    meshes = {"m0": ReshardMesh(program.meshes["m0"].axes, np.array(program.meshes["m0"].device_ids))}
    for type_ in kinds:  # JAX puts each tile where the layout of the type says
        layout = layout_of(type_, meshes)
        tiles = layout.tile_of_device()
        for device, index in placed.sharding(type_).devices_indices_map(type_.shape).items():
            assert tuple(part.start or 0 for part in index) == layout.tile_start(tiles[device.id])
