"""Stacked parameters and layers in loops: each stage has its rows, and the step computes what it does unsplit."""

from __future__ import annotations

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from pipeline_steps import batch, calls, difference, lowered, run_on_one_device, sent, sent_outside, train_step

import hlorewrite
from hlorewrite.analysis.loops import trip_count
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.step.report import RunRecorder
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.pipelines.mpmd.program import Program, read_program
from hlorewrite.pipelines.passes.split_stages import SplitStages

FOUR = "(2),(2),(2),(2)"


def split(step, args, meshes=FOUR, schedule="1f1b") -> tuple[Module, list[str]]:
    module, recorder = lowered(step, args), RunRecorder()
    run_passes(module, [SplitStages(meshes=meshes, schedule=schedule)], PassContext(listeners=(recorder,)))
    return module, [str(each) for each in recorder.remarks if "applied" not in str(each)]


def check(step, args, meshes=FOUR, schedule="1f1b", tolerance=1e-5) -> tuple[Program, list[str]]:
    """Splits, runs both, compares; returns the program and what the pass said."""
    module, said = split(step, args, meshes, schedule)
    actual = run_on_one_device(module, jax.tree.leaves(args))
    assert difference(jax.tree.leaves(jax.jit(step)(*args)), actual) <= tolerance
    return read_program(module), said


def layers(count=8, width=8):
    return jax.random.normal(jax.random.key(3), (count, width, width)) * 0.5


def scanned(stages, *, wrap=lambda f: f, reverse=False, unroll=1):
    """A loss over layers in a scan."""
    def loss(params, x, y):
        def layer(h, w):
            return jnp.tanh(hlorewrite.stage_layers(h, stages) @ w), None
        h, _ = lax.scan(wrap(layer), x, params, reverse=reverse, unroll=unroll)
        return jnp.mean((h - y) ** 2)
    return train_step(loss)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "eager-1f1b", "zb-h1"])
def test_each_stage_has_its_layers(schedule):
    program, said = check(scanned(4), (layers(), *batch()), schedule=schedule)
    forwards = [(f"m{k}", f"m{k + 1}", (4, 8)) for k in range(3)]
    backwards = [(f"m{k + 1}", f"m{k}", (4, 8)) for k in reversed(range(3))]
    assert sent(program) == forwards + backwards and sent_outside(program) == [] and said == []
    assert [program.types[n].shape for n in program.arguments] == [(2, 8, 8)] * 4 + [(4, 4, 8)] * 2
    assert [program.types[n].mesh for n in program.arguments][:4] == ["m0", "m1", "m2", "m3"]
    assert [program.types[n].shape for n in program.results] == [(2, 8, 8)] * 4 + [()]
    assert program.donated == {0, 1, 2, 3}
    assert sorted(program.types[each.first].shape for each in program.carries) == [(), *[(2, 8, 8)] * 4]


@pytest.mark.parametrize("wrap", [jax.checkpoint, lambda f: jax.checkpoint(f, prevent_cse=False)])
def test_layers_that_are_computed_again(wrap):
    program, _ = check(scanned(4, wrap=wrap), (layers(), *batch()))
    assert {shape for _, _, shape in sent(program)} == {(4, 8)} and sent_outside(program) == []


def test_checkpoint_around_the_scan():
    def loss(params, x, y):
        def layer(h, w):
            return jnp.tanh(hlorewrite.stage_layers(h, 4) @ w), None

        def model(params, x):
            return lax.scan(layer, x, params)[0]
        return jnp.mean((jax.checkpoint(model)(params, x) - y) ** 2)

    program, _ = check(train_step(loss), (layers(), *batch()))
    assert {shape for _, _, shape in sent(program)} == {(4, 8)} and sent_outside(program) == []


def test_a_scan_from_the_last_layer_to_the_first():
    program, said = check(scanned(4, reverse=True), (layers(), *batch()))
    assert [program.types[n].mesh for n in program.arguments][:4] == ["m3", "m2", "m1", "m0"] and said == []


@pytest.mark.parametrize("count, unroll, stages, sizes", [
    (8, 2, 2, [4, 4]), (8, 2, (3,), [3, 5]), (8, True, (1, 5), [1, 4, 3]), (7, 3, (3,), [3, 4]),
    (7, 3, (2, 5), [2, 3, 2]), (7, 2, (6,), [6, 1]), (9, 4, 3, [3, 3, 3])])
@pytest.mark.parametrize("wrap", [lambda layer: layer, jax.checkpoint], ids=["kept", "checkpoint"])
def test_scans_that_are_unrolled(count, unroll, stages, sizes, wrap):
    """Stages that begin between iterations, within one, and in the remainder; forwards and backwards differ in that."""
    step = scanned(stages, unroll=unroll, wrap=wrap)
    program, said = check(step, (layers(count), *batch()), ",".join(["(2)"] * len(sizes)))
    assert {shape for _, _, shape in sent(program)} == {(4, 8)} and len(sent(program)) == 2 * len(sizes) - 2
    assert sent_outside(program) == [] and said == []
    assert [program.types[n].shape[0] for n in program.arguments[:len(sizes)]] == sizes
    assert sorted(program.types[each.first].shape for each in program.carries)[1:] == sorted(
        (size, 8, 8) for size in sizes)


def test_iterations_stay_loops_where_no_stage_begins_in_them():
    module, _ = split(scanned((6,), unroll=2), (layers(12), *batch()), "(2),(2)")
    assert [trip_count(op) for op in View(module).ops("stablehlo.while")] == [3] * 4
    module, _ = split(scanned((5,), unroll=2), (layers(12), *batch()), "(2),(2)")
    assert sorted(trip_count(op) or 0 for op in View(module).ops("stablehlo.while")) == [2, 2, 3, 3]


@pytest.mark.parametrize("unroll", [2, 8])
def test_checkpoint_around_a_scan_that_is_unrolled(unroll):
    """JAX before 0.12 does not name what it makes again there: values are right, or it is refused."""
    def loss(stages):
        def layer(h, w):
            return jnp.tanh(hlorewrite.stage_layers(h, stages) @ w), None

        def model(params, x):
            return lax.scan(layer, x, params, unroll=unroll)[0]
        return lambda params, x, y: jnp.mean((jax.checkpoint(model)(params, x) - y) ** 2)

    check(train_step(loss((3,))), (layers(7), *batch()), "(2),(2)")
    if unroll == 2 or jax.__version_info__ >= (0, 12):
        check(train_step(loss((2, 5))), (layers(7), *batch()), "(2),(2),(2)")
        return
    with pytest.raises(HlorewriteError, match=r"jax\.checkpoint|out of order") as error:
        split(train_step(loss((2, 5))), (layers(7), *batch()), "(2),(2),(2)")
    assert "test_stacked_layers.py" in str(error.value)


def test_layers_in_a_python_loop():
    def loss(params, x, y):
        for w in params:
            x = jnp.tanh(hlorewrite.stage_layers(x, 3) @ w)
        return jnp.mean((x - y) ** 2)

    program, _ = check(train_step(loss), (list(layers(7)), *batch()), "(2),(2),(2)")
    assert {shape for _, _, shape in sent(program)} == {(4, 8)} and sent_outside(program) == []
    assert [program.types[n].mesh for n in program.arguments[:7]] == ["m0"] * 3 + ["m1"] * 2 + ["m2"] * 2


def test_some_layers_of_a_python_loop_that_are_made_again():
    """The first layer that is made again is the third one, whatever number it has among those made again."""
    def run(params, x):
        for w in params:
            x = jnp.tanh(hlorewrite.stage_layers(x, (1,)) @ w)
        return x

    def loss(params, x, y):
        return jnp.mean((jax.checkpoint(run)(params[2:], run(params[:2], x)) - y) ** 2)

    program, _ = check(train_step(loss), (list(layers(4)), *batch()), "(2),(2)")
    assert [program.types[n].mesh for n in program.arguments[:4]] == ["m0", "m1", "m1", "m1"]
    assert sent(program) == [("m0", "m1", (4, 8)), ("m1", "m0", (4, 8))]


def test_an_unrolled_scan_with_several_values_and_its_layers_numbers():
    def loss(params, x, y):
        def layer(carry, each):
            (h, extra), (w, number) = carry, each
            h, extra = hlorewrite.stage_layers((h, extra), 3)
            h = jnp.tanh(h @ w + params["shared"]) * (1 + 0.1 * number)
            return (h, extra + jnp.sum(h ** 2)), jnp.mean(h)
        (h, extra), means = lax.scan(layer, (x, 0.0), (params["layers"], jnp.arange(7.0)), unroll=2)
        return jnp.mean((h - y) ** 2) + 0.01 * extra + 0.1 * jnp.sum(means ** 2)

    params = {"layers": layers(7), "shared": jax.random.normal(jax.random.key(4), (8,))}
    program, _ = check(train_step(loss), (params, *batch()), "(2),(2),(2)")
    assert {len(shape) and shape[-1] for _, _, shape in sent(program)} <= {0, 1, 2, 3, 8}
    assert [program.types[n].shape[0] for n in program.arguments[:3]] == [3, 2, 2]


@pytest.mark.parametrize("stages, sizes, homes, meshes, schedule", [
    ((1, 5), [1, 4, 3], [0, 1, 2], "(2),(2),(2)", "1f1b"), ((3,), [3, 5], [0, 1], "(2),(2)", "zb-h1"),
    (4, [2, 2, 2, 2], [0, 1, 0, 1], "(2),(2)", "interleaved-1f1b"),
    (4, [2, 2, 2, 2], [0, 1, 2, 3], "(2),(1),(1),(2)", "1f1b")])
def test_parts_that_are_not_the_shards_of_one_array(stages, sizes, homes, meshes, schedule):
    """Stages of different lengths, several stages on a mesh, meshes of different sizes."""
    program, said = check(scanned(stages), (layers(), *batch()), meshes, schedule)
    assert {shape for _, _, shape in sent(program)} == {(4, 8)} and sent_outside(program) == [] and said == []
    stack = program.arguments[:len(sizes)]
    assert [program.types[n].shape[0] for n in stack] == sizes
    assert [program.types[n].mesh for n in stack] == [f"m{home}" for home in homes]
    assert [program.types[n].shape[0] for n in program.results[:len(sizes)]] == sizes
    carried = {program.types[each.first].shape[0] for each in program.carries if program.types[each.first].shape}
    assert carried == set(sizes)


def test_it_is_known_how_often_loops_of_fragments_run():
    """Constants are made again in each fragment; the simulator counts iterations, and nothing is kept for them."""
    module, _ = split(scanned((3,)), (layers(), *batch()), "(2),(2)")
    assert sorted(trip_count(op) or 0 for op in View(module).ops("stablehlo.while")) == [3, 3, 5, 5]
    program = read_program(module)
    assert all(program.types[each].shape for call in program.before for each in getattr(call, "results", ())
               if each not in {carry.first for carry in program.carries})


def test_layers_that_stages_do_not_divide():
    program, said = check(scanned(3), (layers(7), *batch()), "(2),(2),(2)")
    assert [program.types[n].shape[0] for n in program.arguments[:3]] == [3, 2, 2]
    assert sent_outside(program) == [] and said == []


def test_parameters_of_all_layers_and_what_layers_return():
    def loss(params, x, y):
        def layer(carry, w):
            h, extra = carry
            h = hlorewrite.stage_layers(h, 4)
            h = jnp.tanh(h @ w + params["shared"])
            return (h, extra + jnp.sum(h ** 2)), jnp.mean(h)
        (h, extra), means = lax.scan(layer, (x, 0.0), params["layers"])
        return jnp.mean((h - y) ** 2) + 0.01 * extra + 0.1 * jnp.sum(means ** 2)

    params = {"layers": layers(), "shared": jax.random.normal(jax.random.key(4), (8,))}
    program, _ = check(train_step(loss), (params, *batch()))
    assert all(shape in ((4, 8), (), (2,)) for _, _, shape in sent(program))
    assert sum(program.types[each.first].shape == (8,) for each in program.carries) == 4  # one a stage


def test_layers_that_read_their_number_and_a_key():
    def loss(params, x, y):
        def layer(carry, each):
            h, key = carry
            w, number = each
            h, (key, use) = hlorewrite.stage_layers(h, 4), jax.random.split(key)
            noise = 0.01 * jax.random.normal(use, h.shape)
            return (jnp.tanh(h @ w + noise) * (1 + number), key), None
        (h, _), _ = lax.scan(layer, (x, jax.random.key(9)), (params, jnp.arange(8) * 0.1))
        return jnp.mean((h - y) ** 2)

    check(train_step(loss), (layers(), *batch()))


def test_a_loop_that_counts_its_layers():
    def loss(params, x, y):
        def layer(number, h):
            h = hlorewrite.stage_layers(h, 4)
            return jnp.tanh(h @ params[number]) + 0.01 * number
        return jnp.mean((lax.fori_loop(0, 8, layer, x) - y) ** 2)

    check(train_step(loss), (layers(), *batch()))


def test_stacks_indexed_by_stage():
    def loss(params, x, y):
        for number in range(4):
            x = jnp.tanh(hlorewrite.stage(x, number) @ params["w"][number] + params["b"][number])
        return jnp.mean((x - y) ** 2)

    params = {"w": layers(4), "b": jax.random.normal(jax.random.key(4), (4, 8))}
    program, said = check(train_step(loss), (params, *batch()))
    assert {shape for _, _, shape in sent(program)} == {(4, 8)} and sent_outside(program) == [] and said == []
    assert [program.types[n].shape for n in program.arguments][:8] == [(1, 8)] * 4 + [(1, 8, 8)] * 4


def test_casts_norms_and_adam_by_part():
    def loss(params, x, y):
        def layer(h, w):
            h = hlorewrite.stage_layers(h, 4)
            return jnp.tanh(h @ w["w"].astype(jnp.bfloat16).astype(jnp.float32) * w["scale"]), None
        cast = jax.tree.map(lambda p: p * 1.5, params)
        return jnp.mean((lax.scan(layer, x, cast)[0] - y) ** 2)

    def step(state, x, y):
        params, mean = state
        loss_, grads = hlorewrite.mean_over_microbatches(
            lambda rows: jax.value_and_grad(loss)(params, *rows), (x, y), 4)
        length = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        largest = jnp.max(jnp.abs(grads["w"]))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / length), grads)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        return (jax.tree.map(lambda p, m: p - 0.1 * m, params, mean), mean), loss_, largest

    params = {"w": layers(), "scale": jnp.ones((8, 8))}
    xs, ys = batch()
    args = ((params, jax.tree.map(jnp.zeros_like, params)), xs.reshape(16, 8), ys.reshape(16, 8))
    program, said = check(step, args)
    assert max(np.prod(shape) for _, _, shape in sent_outside(program)) == 1 and said == []
    assert [program.types[n].shape[0] for n in program.arguments][:16] == [2] * 16


def test_two_loops_with_stages_of_their_own():
    def loss(params, x, y):
        def layer(first):
            return lambda h, w: (jnp.tanh(hlorewrite.stage_layers(h, 2, first=first) @ w), None)
        h, _ = lax.scan(layer(0), x, params["encoder"])
        h, _ = lax.scan(layer(2), hlorewrite.stage(h, 2), params["decoder"])
        return jnp.mean((h - y) ** 2)

    program, _ = check(train_step(loss), ({"encoder": layers(4), "decoder": layers(4)}, *batch()))
    assert {program.types[n].shape for n in program.arguments[:4]} == {(2, 8, 8)} and sent_outside(program) == []


def test_a_stack_that_something_else_reads_whole_is_right():
    def loss(params, x, y):
        def layer(h, w):
            return jnp.tanh(hlorewrite.stage_layers(h, 4) @ w), None
        h, _ = lax.scan(layer, x, params)
        return jnp.mean((h - y) ** 2) + 0.01 * jnp.sum(jnp.einsum("lij,kij->lk", params, params))

    check(train_step(loss), (layers(), *batch()))


def test_rows_in_another_order_are_not_cut():
    """Rows that do not lie side by side in a stage stay with the whole stack."""
    def loss(params, x, y):
        def layer(h, number):
            w = lax.dynamic_index_in_dim(params, (number * 3) % 8, keepdims=False)
            return jnp.tanh(hlorewrite.stage_layers(h, 4) @ w), None
        return jnp.mean((lax.scan(layer, x, jnp.arange(8))[0] - y) ** 2)

    check(train_step(loss), (layers(), *batch()))


def test_a_value_that_is_more_than_a_sum_is_carried():
    def loss(params, x, y):
        def layer(carry, w):
            h, total = carry
            h = jnp.tanh(hlorewrite.stage_layers(h, 4) @ w)
            return (h * (1 + 0.01 * total), total + jnp.mean(h ** 2)), None
        (h, total), _ = lax.scan(layer, (x, 0.5), params)
        return jnp.mean((h - y) ** 2) + total

    check(train_step(loss), (layers(), *batch()))


def test_a_stage_that_receives_more_than_it_reads_is_named():
    def loss(params, x, y):
        h = jnp.tanh(x @ params["first"])
        for number in range(2):
            h = hlorewrite.stage(h, number)
            h = lax.fori_loop(4 * number, 4 * number + 4, lambda k, h: jnp.tanh(h @ params["all"][k]), h)
        return jnp.mean((h - y) ** 2)

    _, said = check(train_step(loss), ({"all": layers(), "first": jnp.eye(8)}, *batch()), "(2),(2)")
    named = [each for each in said if "receives all 8 rows of params['all'] (2.0 KiB) and reads 4 of them" in each]
    assert named and "test_stacked_layers.py" in named[0]


@pytest.mark.parametrize("stages, message", [(9, "8 layers cannot be cut into 9 stages"),
                                             ((3, 8), "begins with layer 8, but the loop has 8")])
def test_boundaries_that_do_not_fit(stages, message):
    with pytest.raises(HlorewriteError, match=message) as error:
        split(scanned(stages), (layers(), *batch()))
    assert "test_stacked_layers.py" in str(error.value)


def test_marks_outside_the_loop_over_micro_batches():
    def step(params, x, y):
        y = hlorewrite.stage_layers(y, 2)
        return scanned(2)(params, x, y)

    with pytest.raises(HlorewriteError, match="is called outside a loop over layers"):
        split(step, (layers(), *batch()), "(2),(2)")


def test_more_stages_than_marks():
    def loss(params, x, y):
        return jnp.mean((jnp.tanh(hlorewrite.stage_layers(x, 2) @ params[0]) @ params[1] - y) ** 2)

    with pytest.raises(HlorewriteError, match="1 layers cannot be cut into 2 stages") as error:
        split(train_step(loss), (layers(), *batch()), "(2),(2)")
    assert "test_stacked_layers.py" in str(error.value)


@pytest.mark.parametrize("stages, first", [(0, 0), (-1, 0), ((), 0), ((3, 3), 0), ((0, 2), 0), (2.5, 0), (2, -1)])
def test_arguments_that_name_no_stages(stages, first):
    with pytest.raises(UsageError, match="stages="):
        hlorewrite.stage_layers(jnp.ones(2), stages, first)


def test_the_pipelined_step_takes_and_returns_one_array_for_all_layers():
    step = scanned(4)
    pipelined = hlorewrite.pipeline(step, meshes=[(2,)] * 4, donate_argnums=0)
    expected, state, data = layers(), layers(), batch()
    for _ in range(3):
        expected, loss = jax.jit(step)(expected, *data)
        before = state
        state, actual = pipelined(state, *data)
        assert before.is_deleted() and state.shape == (8, 8, 8)
        assert difference([expected, loss], [np.asarray(state), np.asarray(actual)]) < 1e-5
        assert {shard.data.shape for shard in state.addressable_shards} == {(2, 8, 8)}
    compiled = next(iter(pipelined._known.values()))
    assert len([each for each in calls(compiled.driver.program, "F") if each.stage in (1, 2)]) == 2
    restored = jax.device_put(np.asarray(state), state.sharding)  # another array that lies in the same way
    again = pipelined(restored, *data)[0]
    assert difference([jax.jit(step)(expected, *data)[0]], [np.asarray(again)]) < 1e-5


def adam_like(stages):
    """A step with state of two stacks, of all layers and of a count."""
    def loss(params, x, y):
        def layer(h, w):
            return jnp.tanh(hlorewrite.stage_layers(h, stages) @ w), None
        return jnp.mean((lax.scan(layer, x, params)[0] - y) ** 2)

    def step(state, x, y):
        params, mean, count = state
        value, grads = hlorewrite.mean_over_microbatches(
            lambda rows: jax.value_and_grad(loss)(params, *rows), (x, y), 4)
        mean = 0.9 * mean + 0.1 * grads * jnp.minimum(1.0, 1.0 / jnp.linalg.norm(grads))
        return (params - 0.1 * mean, mean, count + 1), value

    return step


def test_a_stack_of_unequal_stages_is_one_stage_array():
    step, (xs, ys) = adam_like((3,)), batch()
    data = (xs.reshape(16, 8), ys.reshape(16, 8))
    pipelined = hlorewrite.pipeline(step, meshes=[(2,)] * 2, donate_argnums=0)
    assert "2 results are a hlorewrite.StageArray" in pipelined.lower((layers(), layers(), 0), *data).report()
    expected = (layers(), jnp.zeros((8, 8, 8)), jnp.zeros((), jnp.int32))
    state = jax.tree.map(jnp.copy, expected)
    for number in range(3):
        expected, loss = jax.jit(step)(expected, *data)
        before = state
        state, actual = pipelined(state, *data)
        assert before[0].is_deleted() and before[1].is_deleted()
        assert difference(jax.tree.leaves((expected, loss)), jax.tree.leaves(jax.tree.map(
            np.asarray, (state, actual)))) < 1e-5
        assert all(isinstance(each, hlorewrite.StageArray) and each.edges == (0, 3, 8) for each in state[:2])
        assert number == 0 or len(pipelined._known) == 1
    assert {shard.data.shape for shard in state[0].addressable_shards} == {(3, 8, 8), (5, 8, 8)}
    fetched, whole = pipelined.fetch(state), pipelined.to_global(state)
    assert isinstance(whole[0], jax.Array) and difference(jax.tree.leaves(fetched), jax.tree.leaves(whole)) == 0
    again, other = pipelined(whole, *data)[0], jax.jit(step)(expected, *data)[0]
    assert difference(jax.tree.leaves(other), [np.asarray(each) for each in again]) < 1e-5
    recut = hlorewrite.pipeline(adam_like((5,)), meshes=[(2,)] * 2)(again, *data)[0]
    assert recut[0].edges == (0, 5, 8) and not again[0].is_deleted()
    assert difference(jax.tree.leaves(jax.jit(step)(other, *data)[0]), [np.asarray(each) for each in recut]) < 1e-5


@pytest.mark.skipif(importlib.util.find_spec("orbax") is None, reason="orbax-checkpoint is not installed")
def test_a_state_with_stage_arrays_is_saved_and_restored_by_orbax(tmp_path):
    import orbax.checkpoint as ocp

    step, (xs, ys) = adam_like((3,)), batch()
    data = (xs.reshape(16, 8), ys.reshape(16, 8))
    pipelined = hlorewrite.pipeline(step, meshes=[(2,)] * 2)
    first = (layers(), jnp.zeros((8, 8, 8)), jnp.zeros((), jnp.int32))
    state, _ = pipelined(first, *data)
    whole = pipelined.to_global(state)
    like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), whole)
    with ocp.StandardCheckpointer() as checkpointer:
        for name, saved in (("parts", state), ("global", whole)):
            checkpointer.save(tmp_path / name, saved)
        checkpointer.wait_until_finished()
        restored = [checkpointer.restore(tmp_path / "parts"), checkpointer.restore(tmp_path / "parts", like),
                    checkpointer.restore(tmp_path / "global", like)]
    assert isinstance(restored[0][0], np.ndarray)  # without a target, the values
    expected = pipelined(state, *data)
    for each in restored:
        again = pipelined(tuple(each), *data)
        assert isinstance(again[0][0], hlorewrite.StageArray)
        for mine, other in zip(jax.tree.leaves(expected), jax.tree.leaves(again), strict=True):
            assert np.array_equal(np.asarray(mine), np.asarray(other))


def test_what_a_stage_array_is_to_others():
    parts = [jnp.arange(6.0).reshape(3, 2), jnp.ones((1, 2))]
    stack = hlorewrite.StageArray(parts)
    whole = jnp.concatenate(parts)
    assert (stack.shape, stack.dtype, stack.ndim, stack.size, stack.nbytes, len(stack)) == (
        (4, 2), whole.dtype, 2, 8, 32, 4)
    assert (jnp.ones((4, 2)) + stack == whole + 1).all() and (np.asarray(stack, np.int32) == whole).all()
    assert jax.block_until_ready([stack]) == [stack] and (jax.device_get(stack) == whole).all()
    assert repr(stack) == "StageArray(shape=(4, 2), dtype=float32, rows=3+1)"
    stack.delete()
    assert stack.is_deleted() and parts[1].is_deleted()
