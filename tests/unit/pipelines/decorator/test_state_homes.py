"""An optimizer's state lies with its parameter, whatever norm or branch the update has; carried results lie with it."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import lax

import hlorewrite

WIDTH, LAYERS, STAGES = 8, 8, 4


def clip(norm):
    def update(g, state, params=None):
        return jax.tree.map(lambda x: x * jnp.minimum(1.0, 0.05 / norm(g)), g), state

    return optax.chain(optax.GradientTransformation(lambda params: (), update), optax.adamw(1e-2))


def leaves_norm(of_leaf):
    return lambda g: jnp.sqrt(sum(of_leaf(x) for x in jax.tree.leaves(g)))


OPTIMIZERS = {
    "square": lambda: optax.chain(optax.clip_by_global_norm(0.05), optax.adamw(1e-2)),
    "vdot": lambda: clip(leaves_norm(lambda x: jnp.vdot(x, x))),
    "ravel": lambda: clip(leaves_norm(lambda x: jnp.linalg.norm(x.ravel()) ** 2)),
    "tensordot": lambda: clip(leaves_norm(lambda x: jnp.tensordot(x, x, axes=x.ndim))),
    "one vector": lambda: clip(lambda g: jnp.linalg.norm(jnp.concatenate([x.ravel() for x in jax.tree.leaves(g)]))),
    "adaptive": lambda: optax.chain(optax.adaptive_grad_clip(0.05), optax.adamw(1e-2)),
    "several steps": lambda: optax.MultiSteps(optax.adamw(1e-2), 2).gradient_transformation(),
    "if finite": lambda: optax.apply_if_finite(optax.adamw(1e-2), 3),
    "sort": lambda: clip(lambda g: jnp.sort(jnp.concatenate([x.ravel() for x in jax.tree.leaves(g)]))[-1]),
}


def made(optimizer, stacked):
    """(step, state, batch) of eight layers with an embedding."""
    numbers = np.random.RandomState(0)
    weights = numbers.randn(LAYERS, WIDTH, WIDTH).astype("f4") * 0.4
    params = {"w": weights if stacked else list(weights), "e": numbers.randn(WIDTH, WIDTH).astype("f4") * 0.4}

    def loss(p, part):
        x = part @ p["e"]
        if stacked:
            x, _ = lax.scan(lambda x, w: (jnp.tanh(hlorewrite.stage_layers(x, STAGES) @ w), None), x, p["w"])
        else:
            for number, w in enumerate(p["w"]):
                x = jnp.tanh((hlorewrite.stage(x, number // 2) if number % 2 == 0 else x) @ w)
        return jnp.mean(x ** 2)

    def step(state, batch):
        value, grads = hlorewrite.mean_over_microbatches(lambda r: jax.value_and_grad(loss)(state[0], r), batch, 4)
        updates, memory = optimizer.update(grads, state[1], state[0])
        return (optax.apply_updates(state[0], updates), memory), value

    memory = jax.tree.map(np.array, optimizer.init(params))
    return step, (params, memory), numbers.randn(16, WIDTH).astype("f4")


@pytest.mark.parametrize("stacked", [True, False], ids=["stacked", "list"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_stays_with_its_parameter(name, stacked):
    step, state, batch = made(OPTIMIZERS[name](), stacked)
    lowered = hlorewrite.pipeline(step, meshes=[(1,)] * STAGES, donate_argnums=0).lower(state, batch)
    sizes = {each.mesh: (each.before, each.after) for each in lowered.state()}
    moved = 3 if name != "several steps" else 4  # parameters and two moments; and the sum of gradients
    own = moved * 2 * WIDTH * WIDTH * 4
    for mesh, (before, after) in sizes.items():
        share = own + (moved * WIDTH * WIDTH * 4 if mesh == "m0" else 0)
        assert abs(before - share) < 64 and abs(after - share) < 64, sizes
    sent = [str(each) for each in lowered.remarks if "after the loop each step sends" in str(each)]
    assert bool(sent) == (name == "sort" or (name == "adaptive" and stacked)), sent
    assert all("test_state_homes.py:" in each or each.startswith("?") for each in sent)


def test_the_report_says_where_state_is():
    step, state, batch = made(optax.adamw(1e-2), False)
    report = hlorewrite.pipeline(step, meshes=[(1,)] * STAGES, donate_argnums=0).lower(state, batch).report()
    assert "state on mesh  before KiB  after KiB  on a device KiB" in report
    assert "m3                    1.5        1.5              1.5" in report


@pytest.mark.parametrize(("name", "stacked"), [("one vector", True), ("several steps", True), ("vdot", True),
                                               ("if finite", False), ("sort", False)])
def test_values_are_those_of_one_jit(name, stacked):
    step, state, batch = made(OPTIMIZERS[name](), stacked)
    pipelined, jitted = hlorewrite.pipeline(step, meshes=[(1,)] * STAGES, donate_argnums=0), jax.jit(step)
    expected = state
    for _ in range(3):
        (state, loss), (expected, want) = pipelined(state, batch), jitted(expected, batch)
    for value, other in zip(jax.tree.leaves((state, loss)), jax.tree.leaves((expected, want)), strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(other), rtol=1e-4, atol=1e-6)


def two_layers(p, x):
    z = hlorewrite.stage(jnp.tanh(x @ p[0]), 1)
    return jnp.mean((z @ p[1]) ** 2)


def test_results_lie_with_the_arguments_whose_place_they_take():
    def step(rate, state, x):
        params, average = state
        loss, grads = hlorewrite.mean_over_microbatches(lambda r: jax.value_and_grad(two_layers)(params, r), x, 2)
        params = [p - rate * g for p, g in zip(params, grads, strict=True)]
        return loss, rate * 0.9, (params, [0.9 * a + 0.1 * p for a, p in zip(average, params, strict=True)])

    weights = [jnp.eye(WIDTH), 2 * jnp.eye(WIDTH)]
    for donated in ((), (1,), (0, 1)):
        data = hlorewrite.pipeline(step, meshes=[(1,)] * 2, donate_argnums=donated).lower(
            jnp.float32(0.1), (weights, weights), jnp.ones((4, WIDTH))).data()
        places = [[data.types[each].mesh for each in values] for values in (data.arguments, data.results)]
        assert places[0][:5] == places[1][1:], donated
        assert places[0][1:5] == ["m0", "m1", "m0", "m1"]


@pytest.mark.parametrize("result", [
    lambda p, g: jnp.stack([jnp.max(jnp.abs(x)) for x in g]), lambda p, g: jnp.array([jnp.sum(x) for x in g]),
    lambda p, g: jnp.argmax(jnp.stack([jnp.linalg.norm(x) for x in g])),
    lambda p, g: jnp.sort(jnp.stack([jnp.mean(x) for x in p])), lambda p, g: jnp.concatenate([x[0] for x in g]),
    lambda p, g: jnp.full((3,), jnp.sum(g[0]) + jnp.sum(g[1])),
    lambda p, g: (jnp.linalg.norm(jnp.stack(g), axis=(1, 2)), jnp.max(jnp.concatenate(g), -1)),
    lambda p, g: jnp.bincount(jnp.concatenate([x.ravel() > 0 for x in g]), length=2)])
def test_numbers_of_several_meshes_that_meet_after_the_loop(result):
    def step(p, x):
        loss, grads = hlorewrite.mean_over_microbatches(lambda r: jax.value_and_grad(two_layers)(p, r), x, 2)
        return [a - 0.1 * b for a, b in zip(p, grads, strict=True)], loss, result(p, grads)

    p, x = [jnp.eye(4), 2 * jnp.eye(4)], jnp.ones((4, 4))
    expected = jax.jit(step)(p, x)
    for got, want in zip(jax.tree.leaves(hlorewrite.pipeline(step, meshes=[(1,), (1,)])(p, x)),
                         jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


def test_norms_and_checks_of_a_state_on_several_meshes():
    step, state, batch = made(optax.adamw(1e-2), True)
    pipelined = hlorewrite.pipeline(step, meshes=[(1,)] * STAGES)
    state, _ = pipelined(state, batch)
    summary = pipelined.summary(state)
    assert math.isclose(summary.norm, float(optax.tree.norm(jax.tree.map(np.asarray, state))), rel_tol=1e-5)
    assert summary.not_finite == () and "[0]['w']" in str(summary)
    state[0]["e"] = state[0]["e"].at[0, 0].set(jnp.nan)
    assert pipelined.summary(state).not_finite == ("[0]['e']",)
