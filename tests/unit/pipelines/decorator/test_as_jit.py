"""What ``jax.jit`` does a pipelined step does too: contexts, methods, options, aliases; or one line says why not."""

from __future__ import annotations

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh

import hlorewrite
from hlorewrite.errors import InputError, UsageError

WEIGHTS, ROWS = [jnp.eye(4), 2 * jnp.eye(4)], jnp.ones((4, 4)) * 0.3


def loss_of(p, x):
    z = hlorewrite.stage(jnp.tanh(x @ p[0]), 1)
    return jnp.mean((z @ p[1]) ** 2)


def step_of(gradient):
    def step(p, x):
        loss, grads = hlorewrite.mean_over_microbatches(lambda r: gradient(p, r), x, 2)
        return [a - 0.1 * b for a, b in zip(p, grads, strict=True)], loss

    return step


STEP = step_of(jax.value_and_grad(loss_of))
pipelined = functools.partial(hlorewrite.pipeline, meshes=[(1,), (1,)])


def check_same(step, p=None, x=ROWS, **options):
    p = WEIGHTS if p is None else p
    expected = jax.jit(step)(p, x)
    for got, want in zip(jax.tree.leaves(pipelined(step, **options)(p, x)), jax.tree.leaves(expected), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


def test_contexts_are_part_of_the_key_and_reach_the_threads_that_compile():
    def step(p, x):
        p, loss = STEP(p, x)
        return p, loss.astype(float)

    made = pipelined(step)
    assert made(WEIGHTS, ROWS)[1].dtype == jnp.float32
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made(WEIGHTS, ROWS)[1].dtype == jnp.float64
        check_same(step, [np.eye(4), np.eye(4)], np.ones((4, 4)))
    count = len(made._known)
    with jax.default_matmul_precision("highest"):
        made(WEIGHTS, ROWS)
    assert len(made._known) == count + 1
    made(WEIGHTS, ROWS)
    assert len(made._known) == count + 1


@pytest.mark.parametrize("wide", [False, True])
def test_stacked_layers_whatever_the_width_of_counters(wide):
    def loss(p, x):
        return jnp.mean(lax.scan(lambda x, w: (jnp.tanh(hlorewrite.stage_layers(x, 2) @ w), None), x, p)[0] ** 2)

    def step(p, x):
        loss_value, grads = hlorewrite.mean_over_microbatches(lambda r: jax.value_and_grad(loss)(p, r), x, 2)
        return p - 0.1 * grads, loss_value

    with jax.enable_x64(wide):
        check_same(step, np.stack([np.eye(4), 2 * np.eye(4)]), np.ones((4, 4)) * 0.3)


def test_the_mesh_in_effect_is_not_the_pipelines():
    mesh, made = Mesh(np.array(jax.devices()[:4]), ("data",)), pipelined(STEP)
    with jax.set_mesh(mesh):
        assert len(made.lower(WEIGHTS, ROWS).data().meshes) == 2
        value = float(made(*made(WEIGHTS, ROWS)[:1], ROWS)[1])
        assert jax.sharding.get_abstract_mesh() == mesh.abstract_mesh
        with pytest.raises(UsageError, match=r"cannot run inside jax\.jit"):
            jax.jit(lambda: made(WEIGHTS, ROWS))()
    assert value == float(made(*made(WEIGHTS, ROWS)[:1], ROWS)[1])
    assert len(made._known) == 1


def test_a_step_without_jit_runs_op_by_op():
    concrete = []

    def gradient(p, x):
        concrete.append(not isinstance(x, jax.core.Tracer))
        return jax.value_and_grad(loss_of)(p, x)

    made, state, expected = pipelined(step_of(gradient)), WEIGHTS, WEIGHTS
    for number in range(3):
        expected, want = jax.jit(STEP)(expected, ROWS)
        concrete.clear()
        with jax.disable_jit(number != 1):
            state, got = made(state, ROWS)
        assert any(concrete) == (number != 1)
        np.testing.assert_allclose(float(got), float(want), rtol=1e-5)


def test_complex_constants():
    def loss(p, x):
        z = hlorewrite.stage(jnp.tanh(x @ p[0]), 1)
        return jnp.mean(jnp.abs(z * (p[1][0] + 1j * p[1][1])) ** 2)

    check_same(step_of(jax.value_and_grad(loss)))


def test_methods_and_static_arguments():
    class ScaledTrainer:
        rate = 0.5

        @functools.partial(hlorewrite.pipeline, meshes=[(1,), (1,)], static_argnums=(0, 3), keep_unused=True)
        def step(self, p, x, scale=2):
            p, loss = STEP(p, x)
            return p, loss * self.rate * scale

    trainer = ScaledTrainer()
    np.testing.assert_allclose(float(trainer.step(WEIGHTS, ROWS, 3)[1]), float(STEP(WEIGHTS, ROWS)[1]) * 1.5, rtol=1e-5)
    with pytest.raises(UsageError, match="static argument 3 is a list, which cannot be hashed"):
        trainer.step(WEIGHTS, ROWS, [3])


def test_options_of_jit_that_a_pipeline_cannot_follow():
    for name in ("in_shardings", "device", "compiler_options"):
        with pytest.raises(UsageError, match=f"{name} is for one program, and a pipeline has one for each mesh"):
            pipelined(STEP, **{name: None})
    with pytest.raises(UsageError, match='no option "donate_argnumbers"; did you mean'):
        pipelined(STEP, donate_argnumbers=0)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_value_returned_twice_is_copied(devices):
    def step(state, x):
        p, loss = STEP(state[0], x)
        return (p, p), loss

    made = hlorewrite.pipeline(step, meshes=[(devices,), (devices,)], donate_argnums=0)
    state, expected = (WEIGHTS, [a + 1 for a in WEIGHTS]), (WEIGHTS, [a + 1 for a in WEIGHTS])
    state = jax.tree.map(jnp.array, state)
    for _ in range(3):
        (state, loss), (expected, want) = made(state, ROWS), jax.jit(step)(expected, ROWS)
        assert state[0][0] is not state[1][0]
        np.testing.assert_allclose(float(loss), float(want), rtol=1e-5)


@pytest.mark.parametrize("devices", [1, 2])
def test_donated_arguments_that_share_a_buffer_are_refused_before_the_call(devices):
    def step(state, x):
        p, loss = STEP(state[0], x)
        return (p, [0.9 * a + 0.1 * b for a, b in zip(state[1], p, strict=True)]), loss

    made = hlorewrite.pipeline(step, meshes=[(devices,), (devices,)], donate_argnums=0)
    (p, _), _ = made((jax.tree.map(jnp.array, WEIGHTS), [a + 1 for a in WEIGHTS]), ROWS)
    for other in (p, [jax.device_put(leaf, leaf.sharding) for leaf in p]):
        with pytest.raises(UsageError, match="arguments 0 and 2 share one buffer, which is donated"):
            made((p, other), ROWS)
    state, _ = made((p, jax.tree.map(jnp.copy, p)), ROWS)
    made(state, ROWS)
    with pytest.raises(UsageError, match="was donated to an earlier step"):
        made(state, ROWS)


@pytest.mark.parametrize("options", [{"stages": "auto", "topology": "h200:1x8"}, {}])
def test_one_mesh_needs_no_marks(options):
    def loss(p, x):
        return jnp.mean((jnp.tanh(x @ p[0]) @ p[1]) ** 2)

    step = step_of(jax.value_and_grad(loss))
    made = hlorewrite.pipeline(step, meshes=[(1,)], **options)
    np.testing.assert_allclose(float(made(WEIGHTS, ROWS)[1]), float(jax.jit(step)(WEIGHTS, ROWS)[1]), rtol=1e-5)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zb-h1"])
@pytest.mark.parametrize("devices", [(0,), (0, 1)])
def test_all_stages_on_the_same_devices(schedule, devices):
    mesh = Mesh(np.array([jax.devices()[number] for number in devices]), ("data",))
    made = hlorewrite.pipeline(STEP, meshes=[mesh, mesh], schedule=schedule, donate_argnums=0)
    state, expected = jax.tree.map(jnp.array, WEIGHTS), WEIGHTS
    for _ in range(2):
        (state, loss), (expected, want) = made(state, ROWS), jax.jit(STEP)(expected, ROWS)
    np.testing.assert_allclose(float(loss), float(want), rtol=1e-5)


def test_marks_and_one_mesh_say_how_to_run_all_stages_on_it():
    with pytest.raises(InputError, match=r"and 1f1b on 1 mesh runs 1; pass one mesh for each stage \(it may be the "
                                         r"same jax.sharding.Mesh\), or remove the marks"):
        hlorewrite.pipeline(STEP, meshes=[(1,)])(WEIGHTS, ROWS)


def test_meshes_that_share_some_devices_are_refused():
    meshes = [Mesh(np.array(jax.devices()[first:first + 2]), ("data",)) for first in (0, 1)]
    with pytest.raises(UsageError, match=r"shares .* but not all of its devices, with another mesh"):
        hlorewrite.pipeline(STEP, meshes=meshes)(WEIGHTS, ROWS)


def test_a_stage_that_passes_values_on():
    def loss(p, x):
        z = hlorewrite.stage(hlorewrite.stage(hlorewrite.stage(jnp.tanh(x @ p[0]), 1), 2), 3)
        return jnp.mean((z @ p[1]) ** 2)

    step = step_of(jax.value_and_grad(loss))
    made = hlorewrite.pipeline(step, meshes=[(1,)] * 4)
    lowered = made.lower(WEIGHTS, ROWS)
    assert sum("computes nothing: values bypass it" in str(each) for each in lowered.remarks) == 2
    np.testing.assert_allclose(float(made(WEIGHTS, ROWS)[1]), float(jax.jit(step)(WEIGHTS, ROWS)[1]), rtol=1e-5)
