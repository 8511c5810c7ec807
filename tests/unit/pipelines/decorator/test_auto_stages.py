"""Stages that are chosen: values are those of the unsplit step, the step takes about what the best hand cut does."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from pipeline_models import ScannedGpt, gpt, moe_gpt, t5, unet
from pipeline_steps import batch, calls, check_same, mlp_loss, sent, sent_outside, split, train_step, weights

import hlorewrite
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.pipelines.mpmd.program import read_program
from hlorewrite.pipelines.simulate.program_times import simulate_module

FOUR = "(2),(2),(2),(2)"
SMALL = {"gpt": lambda: gpt(4, 16, 4, 8, 4), "moe": lambda: moe_gpt(4, 16, 2, 4, 8, 4),
         "t5": lambda: t5(2, 16, 4, 8, 4), "unet": lambda: unet(2, 4, 4, 8, 4)}


def plain_loss(params, x, y):
    """Layers without marks."""
    for w in params:
        x = jnp.tanh(x @ w)
    return jnp.mean((x - y) ** 2)


@pytest.mark.parametrize(("model", "schedule", "meshes"), [
    ("gpt", "1f1b", "(4),(2),(1)"), ("moe", "zb-h1", "(2),(2)"), ("t5", "1f1b", FOUR), ("t5", "interleaved-1f1b",
                                                                                          "(2),(2)"),
    ("unet", "gpipe", "(2),(1),(1)")])
def test_values_are_those_of_the_unsplit_step(model, schedule, meshes):
    made = SMALL[model]()
    program = check_same(made.step(), made.init(), meshes, schedule, stages="auto")
    stages = meshes.count("(") * (2 if schedule == "interleaved-1f1b" else 1)
    assert {call.stage for call in calls(program, "F")} == set(range(stages))


def test_equal_layers_are_cut_like_a_hand_would():
    args = jax.eval_shape(lambda: (weights(4, 2048), *batch(4, 2048, 2048)))
    program = read_program(split(train_step(plain_loss), args, FOUR, stages="auto"))
    assert sent(program) == sent(read_program(split(train_step(mlp_loss), args, FOUR)))


def test_a_larger_mesh_gets_more_of_the_layers():
    module = split(train_step(plain_loss), (weights(10, 512), *batch(8, 512, 512)), "(4),(1)", stages="auto")
    program = read_program(module)
    stored = [sum(program.types[each].mesh == mesh for each in program.arguments) for mesh in ("m0", "m1")]
    assert stored[0] >= 7 and stored[1] <= 3 + 2  # inputs and targets


def test_recomputed_layers():
    def loss(params, x, y):
        for w in params:
            x = jax.checkpoint(lambda x, w: jnp.tanh(jnp.tanh(x @ w) @ w))(x, w)
        return jnp.mean((x - y) ** 2)

    program = check_same(train_step(loss), (weights(4), *batch()), "(2),(2)", stages="auto")
    assert len(sent(program)) == 2


def test_dropout_statistics_and_adam():
    def loss(params, x, y, seed):
        for number, w in enumerate(params):
            keep = jax.random.bernoulli(jax.random.fold_in(jax.random.key(seed), number), 0.9, x.shape)
            x = jnp.where(keep, jnp.tanh(x @ w), 0.0)
        return jnp.mean((x - y) ** 2)

    check_same(train_step(loss), (weights(4), *batch(), jnp.arange(4)), "(2),(2)", stages="auto")


def test_the_cuts_that_were_chosen_give_the_same_program():
    step, args = train_step(plain_loss), (weights(4), *batch())
    pipelined = hlorewrite.pipeline(step, meshes=[(2,), (2,)], stages="auto", passes="")
    lowered = pipelined.lower(*args)
    said = [remark.sentence for remark in lowered.remarks if "begins after op" in remark.sentence]
    cut = int(said[0].split("after op ")[1].split()[0])
    assert said[0].endswith("; chosen for h200 (assumed, no cluster is named)")
    again = hlorewrite.pipeline(step, meshes=[(2,), (2,)], stages=(cut,), passes="").lower(*args)
    assert len(said) == 1 and again.program() == lowered.program()


def test_a_pipelined_step_runs():
    step, args = train_step(plain_loss), (weights(2), *batch())
    expected = jax.jit(step)(*args)
    actual = hlorewrite.pipeline(step, meshes=[(2,), (2,)], stages="auto", microbatches=4)(*args)
    assert all(jnp.allclose(a, b, rtol=1e-5) for a, b in zip(*map(jax.tree.leaves, (expected, actual)), strict=True))


@pytest.mark.parametrize("meshes", [[(2,)] * 3, [(4,), (2,), (1,)]])
@pytest.mark.parametrize("make", [lambda: unet(2, 32, 8, 64), lambda: moe_gpt(4, 512, 4, 8, 256),
                                  lambda: ScannedGpt(6, 512, 8, 256, 2048)])
def test_no_hand_cut_is_five_percent_faster(make, meshes):
    model = make()

    def seconds(stages, cuts=()):
        pipelined = hlorewrite.pipeline(model.step(cuts), meshes=meshes, passes="", topology="h200", stages=stages)
        return pipelined.lower(*jax.eval_shape(model.init)).simulate().iteration_time_s

    hand = [seconds("marked", cuts) for cuts in itertools.combinations(range(1, len(model.blocks)), 2)]
    assert seconds("auto") <= 1.05 * min(hand)


def refusal(step, args, *splitting, **options) -> str:
    with pytest.raises(HlorewriteError) as said:
        split(step, args, *splitting, **options)
    text = str(said.value)
    assert "\n" not in text
    return text


def test_more_stages_than_places_to_cut_at():
    text = refusal(train_step(plain_loss), (weights(2), *batch()), ",".join(["(1)"] * 8), stages="auto")
    assert "the forward pass can be cut in" in text and "8 stages need 7" in text


def scanned_loss(params, x, y):
    """Layers in a scan, without marks."""
    return jnp.mean((lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, params)[0] - y) ** 2)


def test_a_loop_of_more_iterations_than_are_cut():
    text = refusal(train_step(scanned_loss), (jnp.ones((300, 8, 8)), *batch()), "(2),(2)", stages="auto")
    assert "cannot be cut between its iterations" in text and "hlorewrite.stage_layers" in text
    assert "test_auto_stages.py" in text


def scanned_layers(count, width=16):
    return 0.3 * jax.random.normal(jax.random.key(3), (count, width, width))


def rows_of_stages(program, shape) -> list[int]:
    """How many layers each part of a stack has."""
    return [program.types[each].shape[0] for each in program.arguments if program.types[each].shape[1:] == shape]


@pytest.mark.parametrize(("wrap", "schedule", "meshes"), [
    (lambda layer: layer, "1f1b", "(2),(2),(2)"), (jax.checkpoint, "zb-h1", "(2),(1)"),
    (lambda layer: layer, "interleaved-1f1b", "(2),(2)")])
def test_values_of_a_scan_that_is_cut_between_layers(wrap, schedule, meshes):
    """Only what a layer gives crosses, and each stage has its rows of the stack."""
    def loss(params, x, y):
        layer = wrap(lambda x, w: (jnp.tanh(x @ w), None))
        return jnp.mean((lax.scan(layer, x, params)[0] - y) ** 2)

    program = check_same(train_step(loss), (scanned_layers(9), *batch(4, 8, 16)), meshes, schedule, stages="auto")
    assert {shape for _, _, shape in sent(program)} == {(8, 16)} and not sent_outside(program)
    rows = rows_of_stages(program, (16, 16))
    assert len(rows) > 1 and sum(rows) == 9


@pytest.mark.parametrize("meshes", ["(2),(2),(2),(2)", "(4),(2),(1),(1)"])
def test_a_stage_gets_as_many_layers_as_it_has_time_for(meshes):
    args = jax.eval_shape(lambda: (scanned_layers(16, 4096), *batch(8, 8192, 4096)))
    module = split(train_step(scanned_loss), args, meshes, stages="auto", specs=[P(), *[P(None, "data")] * 2])
    program = read_program(module)
    rows = rows_of_stages(program, (4096, 4096))
    assert rows == [4, 4, 4, 4] if meshes.startswith("(2)") else rows[0] >= 8 and rows[1] == 4 and sum(rows) == 16
    assert not sent_outside(program)
    assert {shape for _, _, shape in sent(program)} == {(8192, 4096)} and len(sent(program)) == 6


def test_scans_of_an_encoder_and_a_decoder_with_norms_of_all_layers():
    """Loops of different lengths; the decoder's loop reads the encoder's result in each layer."""
    def loss(params, x, y):
        encoded, _ = lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, params["encoder"])
        decoded, lengths = lax.scan(lambda h, w: (jnp.tanh(h @ w + encoded), jnp.mean(h ** 2)), y, params["decoder"])
        return jnp.mean(decoded ** 2) + 0.1 * jnp.sum(lengths)

    def clipped(params, grads):
        length = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        return jax.tree.map(lambda p, g: p - 0.1 * g * jnp.minimum(1.0, 1.0 / length), params, grads)

    step, stacks = train_step(loss, clipped), {"encoder": 4, "decoder": 7}
    args = ({name: scanned_layers(count) for name, count in stacks.items()}, *batch(4, 8, 16))
    check_same(step, args, "(1),(1),(1)", stages="auto")
    wide = jax.eval_shape(lambda: ({name: scanned_layers(count, 2048) for name, count in stacks.items()},
                                   *batch(4, 4096, 2048)))
    program = read_program(split(step, wide, "(1),(1),(1)", stages="auto"))
    # A layer of the decoder also adds the encoder's result and takes a norm: the first stage has the encoder and one.
    assert sorted(rows_of_stages(program, (2048, 2048))) == [1, 3, 3, 4]
    assert {shape for _, _, shape in sent(program)} <= {(4096, 2048), (3,), (4,), ()}
    assert {shape for _, _, shape in sent_outside(program)} == {()}


def test_cuts_inside_a_scan_count_its_layers():
    step, args = train_step(scanned_loss), jax.eval_shape(lambda: (scanned_layers(6, 2048), *batch(4, 4096, 2048)))
    pipelined = hlorewrite.pipeline(step, meshes=[(1,), (1,)], stages="auto", passes="")
    lowered = pipelined.lower(*args)
    said = [str(remark) for remark in lowered.remarks if "begins after op" in remark.sentence]
    assert len(said) == 1 and "begins after op 3 of the forward pass" in said[0] and "test_auto_stages.py" in said[0]
    again = hlorewrite.pipeline(step, meshes=[(1,), (1,)], stages=(3,), passes="").lower(*args)
    assert again.program() == lowered.program()
    five = read_program(split(step, args, "(1),(1)", cuts=(5,)))
    assert rows_of_stages(five, (2048, 2048)) == [5, 1]
    assert "do not increase between 1 and" in refusal(step, args, "(1),(1)", cuts=(50,))


def test_a_scan_that_is_unrolled_is_cut_between_layers():
    def loss(params, x, y):
        return jnp.mean((lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, params, unroll=True)[0] - y) ** 2)

    args = jax.eval_shape(lambda: (scanned_layers(4, 2048), *batch(4, 4096, 2048)))
    program = read_program(split(train_step(loss), args, "(2),(2)", stages="auto"))
    assert sent(program) == [("m0", "m1", (4096, 2048)), ("m1", "m0", (4096, 2048))] and not sent_outside(program)
    assert rows_of_stages(program, (2048, 2048)) == [2, 2]


def test_marks_and_a_choice_exclude_each_other():
    text = refusal(train_step(mlp_loss), (weights(2), *batch()), "(2),(2)", stages="auto")
    assert "has stage marks" in text and "pipeline_steps.py" in text


def test_a_step_without_a_loop_and_one_of_another_length():
    def step(params, x, y):
        return jax.tree.map(jnp.add, params, jax.grad(plain_loss)(params, x, y))

    assert "no loop over micro-batches" in refusal(step, (weights(2), *batch()), stages="auto")
    assert "that runs 3 times" in refusal(train_step(plain_loss), (weights(2), *batch()), stages="auto", microbatches=3)


def test_ops_without_names():
    text = refusal(train_step(plain_loss), (weights(2), *batch()), stages="auto", locations=False)
    assert "debug_info=True" in text


def test_an_unknown_cluster_and_one_that_is_too_small():
    step, args = train_step(plain_loss), (weights(4), *batch())
    assert 'there is no topology "h20"' in refusal(step, args, stages="auto", topology="h20")
    assert "the meshes need 4 GPUs" in refusal(step, args, stages="auto", topology="h200:1x2")


def test_a_step_that_fits_no_device():
    args = jax.eval_shape(lambda: (weights(16, 65536), *batch(4, 4, 65536)))
    assert "stages fits the" in refusal(train_step(plain_loss), args, "(1),(1)", stages="auto")


@pytest.mark.parametrize("cuts", [(5, 3), (0,), (10_000,)])
def test_cuts_that_are_none(cuts):
    assert "do not increase between" in refusal(train_step(plain_loss), (weights(2), *batch()), cuts=cuts)


@pytest.mark.parametrize("stages", ["automatic", (), (0,), 3])
def test_stages_that_are_neither_a_name_nor_cuts(stages):
    with pytest.raises((UsageError, TypeError)):
        hlorewrite.pipeline(train_step(plain_loss), meshes=[(2,), (2,)], stages=stages)


def test_choosing_twice_gives_the_same_text():
    step, args = train_step(plain_loss), (weights(6), *batch())
    assert split(step, args, stages="auto").text() == split(step, args, stages="auto").text()


def test_the_simulation_is_what_the_choice_was_made_by():
    module = split(train_step(plain_loss), (weights(4, 512), *batch(8, 512, 512)), stages="auto")
    assert simulate_module(module, "1f1b", "h200").iteration_time_s > 0
