"""The decorator: a step over several meshes returns what the step does, and leaves it where the next one needs it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from pipeline_steps import batch, difference, mlp_loss, run_on_one_device, train_step, weights

import hlorewrite
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.pipelines.schedules import custom_schedule

STEP = train_step(mlp_loss)


def flat_step(params, rows, targets):
    """A step on whole batches of shape [rows, width]."""
    loss, grads = hlorewrite.mean_over_microbatches(
        lambda part: jax.value_and_grad(mlp_loss)(params, *part), (rows, targets), 4)
    return [p - 0.1 * g for p, g in zip(params, grads, strict=True)], loss


def check(step, pipelined, args, steps=2):
    """Both for some steps, the parameters returned."""
    expected, actual = args[0], args[0]
    for _ in range(steps):
        expected, *rest = jax.jit(step)(expected, *args[1:])
        actual, *got = pipelined(actual, *args[1:])
        values = [np.asarray(x) for x in jax.tree.leaves((actual, got))]
        assert difference(jax.tree.leaves((expected, rest)), values) < 1e-5
    return actual


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1"])
@pytest.mark.parametrize("passes", ["", None])
def test_results_are_those_of_the_unsplit_step(schedule, passes):
    pipelined = hlorewrite.pipeline(STEP, meshes=[(2,), (2,)], schedule=schedule, microbatches=4, passes=passes)
    actual = check(STEP, pipelined, (weights(2), *batch()))
    assert [{d.id for d in w.sharding.device_set} for w in actual] == [{0, 1}, {2, 3}]


def test_the_decorator_form_and_the_batch_cut_by_rows():
    pipelined = hlorewrite.pipeline(meshes=[(2, 1), (1, 2)], schedule="gpipe", passes="")(flat_step)
    args = (weights(2), *(x.reshape(16, 8) for x in batch()))
    check(flat_step, pipelined, args)
    program = pipelined.lower(*args).data()
    assert pipelined.__name__ == "flat_step"
    assert [program.types[n].spec for n in program.arguments] == [((), ()), ((), ()), ((), ()), (("data",), ())]


def test_real_meshes_and_specs():
    devices = np.array(jax.devices()[:8])
    meshes = [jax.sharding.Mesh(part.reshape(2, 2), ("data", "tensor"), axis_types=(AxisType.Auto,) * 2)
              for part in (devices[4:], devices[:4])]
    pipelined = hlorewrite.pipeline(STEP, meshes=meshes, in_specs=(P(None, "tensor"), P(None, "data"), P(None, "data")),
                                    donate_argnums=0, passes="")
    args = jax.tree.map(np.asarray, (weights(2), *batch()))
    actual = check(STEP, pipelined, args)
    assert {d.id for d in actual[0].sharding.device_set} == {4, 5, 6, 7}
    assert actual[0].sharding.spec == P(None, "tensor")  # as the donated argument lies


def test_the_second_call_takes_results_as_they_are():
    pipelined = hlorewrite.pipeline(STEP, meshes=[(1,), (1,)], passes="", donate_argnums=0)
    args = (weights(2), *batch())
    params, _ = pipelined(*args)
    compiled = next(iter(pipelined._known.values()))
    placed = compiled.driver.place([*jax.tree.leaves(params), *args[1:]])
    assert all(a is b for a, b in zip(placed, params, strict=False))
    pipelined(params, *args[1:])
    assert len(pipelined._known) == 1
    assert compiled.driver.program.donated == {0, 1}


def test_keys_static_arguments_and_named_ones():
    def step(params, key, xs, ys, rate, *, scale):
        noise = 0.1 * jax.random.normal(key, xs.shape)
        new, loss = STEP(params, xs + noise, ys)
        return jax.tree.map(lambda p, n: p + rate * scale * (n - p), params, new), loss, jax.random.split(key)[0]

    pipelined = hlorewrite.pipeline(step, meshes=[(1,), (1,)], passes="", static_argnums=4)
    args = (weights(2), jax.random.key(5), *batch(), 0.5)
    expected = jax.jit(step, static_argnums=4)(*args, scale=2.0)
    actual = pipelined(*args, scale=2.0)
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    assert jnp.array_equal(jax.random.key_data(actual[2]), jax.random.key_data(expected[2]))
    assert difference(jax.tree.leaves(expected[:2]), [np.asarray(x) for x in jax.tree.leaves(actual[:2])]) < 1e-5


def test_a_schedule_of_ones_own():
    table = custom_schedule("F0 F1 B0 B1 F2 F3 B2 B3\nF0 B0 F1 B1 F2 B2 F3 B3")
    pipelined = hlorewrite.pipeline(STEP, meshes=[(1,), (1,)], schedule=table, passes="")
    check(STEP, pipelined, (weights(2), *batch()))


def test_report_and_program_text():
    lowered = hlorewrite.pipeline(STEP, meshes=[(2,), (2,)], in_specs=(P(), P(None, "data"), P(None, "data"))).lower(
        weights(2), *batch())
    assert "mpmd.fragment_call" in lowered.program() and "composite" in lowered.original_text()
    said = lowered.report()
    assert "2 stages on 2 meshes ((2),(2)), 4 micro-batches, schedule 1f1b" in said
    rows = {line.split()[0]: line.split()[1] for line in said.splitlines()[2:] if " " in line}
    assert rows["all-reduce"] == "3"  # one for each gradient, one for the loss: none in each micro-batch
    assert lowered.simulate("h200").iteration_time_s > 0


def test_accumulators_lie_as_their_parameters_do():
    specs = ([P("tensor"), P(None, "tensor")], P(None, "data"), P(None, "data"))
    pipelined = hlorewrite.pipeline(STEP, meshes=[(2, 2), (2, 2)], in_specs=specs, donate_argnums=0, passes="")
    args = (weights(2), *batch())
    lowered = pipelined.lower(*args)
    program = lowered.data()
    kinds = [program.types[n].spec for n in program.arguments[:2]]
    assert kinds == [(("tensor",), ()), ((), ("tensor",))]
    assert [program.types[n].spec for n in program.results[:2]] == kinds
    for carry in program.carries:
        assert len({program.types[n].text for n in (carry.first, carry.inside, carry.next, carry.after)}) == 1
    actual = run_on_one_device(lowered.module, jax.tree.leaves(args))
    assert difference(jax.tree.leaves(jax.jit(STEP)(*args)), actual) < 1e-5


def test_a_batch_cut_along_the_loop_is_told():
    lowered = hlorewrite.pipeline(STEP, meshes=[(2,), (2,)], passes="").lower(weights(2), *batch())
    said = [remark.sentence for remark in lowered.remarks if remark.kind == "unprofitable"]
    assert said and all('a dimension that is cut over "data"' in each for each in said)
    told = hlorewrite.pipeline(STEP, meshes=[(2,), (2,)], passes="", microbatches=4).lower(weights(2), *batch())
    assert not [remark for remark in told.remarks if remark.kind == "unprofitable"]


def constrained_step(params, xs, ys):
    """Constraints and a shard_map over the mesh the step is traced over."""
    def loss(params, x, y):
        x = lax.with_sharding_constraint(jnp.tanh(x @ params[0]), P("data"))
        x = hlorewrite.stage(x, 1)
        split = jax.shard_map(lambda x, w: lax.psum(x @ w, "tensor"), in_specs=(P("data", "tensor"), P("tensor", None)),
                              out_specs=P("data", None))
        return jnp.mean((jnp.tanh(split(x, params[1])) - y) ** 2)

    return train_step(loss)(params, xs, ys)


def test_constraints_and_shard_map_inside_a_stage():
    pipelined = hlorewrite.pipeline(constrained_step, meshes=[(2, 2), (2, 2)], passes="",
                                    in_specs=(P(), P(None, "data"), P(None, "data")))
    args = (weights(2), *batch())
    mesh = jax.make_mesh((2, 2), ("data", "tensor"), axis_types=(AxisType.Auto,) * 2)
    with jax.set_mesh(mesh):
        expected = jax.tree.leaves(jax.jit(constrained_step)(*args))
    actual = [np.asarray(x) for x in jax.tree.leaves(pipelined(*args))]
    assert difference(expected, actual) < 1e-5


def test_a_shard_map_on_unequal_meshes():
    pipelined = hlorewrite.pipeline(constrained_step, meshes=[(2, 2), (4, 1)])
    with pytest.raises(HlorewriteError, match="a shard_map is for one size of mesh, and the meshes differ"):
        pipelined.lower(weights(2), *batch())


def test_a_simulation_needs_a_cluster():
    lowered = hlorewrite.pipeline(STEP, meshes=[(1,), (1,)], passes="").lower(weights(2), *batch())
    with pytest.raises(UsageError, match="without a topology"):
        lowered.simulate()


@pytest.mark.parametrize("options, said", [
    ({"meshes": []}, "without meshes"),
    ({"meshes": [(2,), (2, 1)]}, "have shapes"),
    ({"meshes": ["(2)"]}, "neither meshes nor shapes"),
    ({"meshes": [(1,), (1,)], "schedule": "1f2b"}, 'did you mean "1f1b"'),
    ({"meshes": [(1,), (1,)], "in_shardings": None}, "in_shardings is for one program"),
    ({"meshes": [(1,), (1,)], "passes": "comm-shft"}, "unknown pass"),
])
def test_what_cannot_be_asked_for(options, said):
    with pytest.raises(HlorewriteError, match=said):
        hlorewrite.pipeline(STEP, **options)


@pytest.mark.parametrize("options, said", [
    ({"in_specs": (P(),)}, "in_specs has 1 entries, but the step takes 3 positional arguments"),
    ({"in_specs": P("model")}, 'there is no mesh axis "model"'),
    ({"in_specs": ([P(), P(), P()], P(), P())}, "in_specs\\[0\\] is not a prefix"),
    ({"in_specs": (P(), P(None, "data"), P(None, "data")), "meshes": [(3,), (3,)]}, "cannot be cut into 3"),
    ({"microbatches": 8}, "the loop runs 4 micro-batches, not 8"),
    ({"meshes": [(1,), (1,), (1,)]}, "the marks make 2 stages, and 1f1b on 3 meshes runs 3"),
])
def test_what_does_not_fit_the_step(options, said):
    pipelined = hlorewrite.pipeline(STEP, **({"meshes": [(2,), (2,)]} | options))
    with pytest.raises(HlorewriteError, match=said):
        pipelined(weights(2), *batch())


def test_not_inside_a_transformation():
    pipelined = hlorewrite.pipeline(STEP, meshes=[(1,), (1,)])
    with pytest.raises(UsageError, match=r"cannot run inside jax\.jit or another transformation"):
        jax.jit(pipelined)(weights(2), *batch())
    pipelined(weights(2), *batch())
    with pytest.raises(UsageError, match=r"cannot run inside jax\.jit or another transformation"):
        jax.jit(pipelined)(weights(2), *batch())  # compiled for these shapes by now


def test_donated_arrays_are_deleted_and_others_kept():
    def step(state, rows, targets):
        new, loss = STEP(state["params"], rows, targets)
        return {"params": new, "same": state["same"]}, loss

    pipelined = hlorewrite.pipeline(step, meshes=[(2,), (2,)], passes="", donate_argnums=0)
    state = {"params": weights(2), "same": jnp.ones(3)}
    data = batch()
    for _ in range(2):
        given = state
        state, _ = pipelined(given, *data)
        assert all(each.is_deleted() for each in given["params"])
        assert not any(each.is_deleted() for each in jax.tree.leaves((state, data)))
    assert np.asarray(state["same"]).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("rows, uncut", [(28, True), (32, False)])
def test_rows_of_a_micro_batch_that_a_mesh_does_not_divide(rows, uncut):
    pipelined = hlorewrite.pipeline(flat_step, meshes=[(4,), (4,)], passes="",
                                    in_specs=(None, P("data"), P("data")))
    lowered = pipelined.lower(weights(2), jnp.ones((rows, 8)), jnp.ones((rows, 8)))
    said = [str(each) for each in lowered.remarks if "4 does not divide the 7 rows of a micro-batch" in str(each)]
    assert len(said) == (2 if uncut else 0)
    assert not uncut or "argument 1 has 28 rows" in said[0]
