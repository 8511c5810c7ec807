"""Steps that change flax NNX objects or Equinox modules train as with their own jit, or are refused in one line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from framework_steps import batch, equinox_model, equinox_step, eqx, network, nnx, nnx_step

import hlorewrite
from hlorewrite import optimize
from hlorewrite.errors import UsageError

STEPS = 4


def losses(step: Callable[..., Any], *args: Any) -> list[float]:
    return [float(step(*args)) for _ in range(STEPS)]


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(UsageError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- NNX


def test_the_route_that_the_error_names_trains_as_nnx_jit() -> None:
    """The functional form, as the hint writes it, compiles to other collectives and gives the same losses."""
    wanted = losses(nnx.jit(nnx_step), *network(), *batch())
    graph, state = nnx.split(network())

    @optimize
    def pure(state: Any, xs: jax.Array, ys: jax.Array) -> tuple[Any, jax.Array]:
        model, optimizer = nnx.merge(graph, state)
        value = nnx_step(model, optimizer, xs, ys)
        return nnx.state((model, optimizer)), value

    assert pure.lower(state, *batch()).report.changed
    actual = []
    for _ in range(STEPS):
        state, value = pure(state, *batch())
        actual.append(float(value))
    np.testing.assert_allclose(actual, wanted, rtol=1e-5)
    assert len(set(actual)) == STEPS


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, nnx.remat], ids=["plain", "jax.jit", "nnx.remat"])
def test_updates_of_arguments_that_are_not_returned_are_refused(wrap: Callable[..., Any]) -> None:
    step = optimize(wrap(nnx_step))
    said = refusal(lambda: step(*network(), *batch()))
    assert "nnx_step updates a flax NNX object among its arguments (Linear) and does not return the update" in said
    refusal(lambda: step.lower(*network(), *batch()))
    refusal(lambda: step.trace(*network(), *batch()))


def scaled(layer: Any, x: jax.Array) -> jax.Array:
    layer.kernel[...] = layer.kernel[...] * 0.5
    return layer(x).sum()


class Layer(nnx.Linear):
    @optimize
    def scale(self, x: jax.Array) -> jax.Array:
        return scaled(self, x)

    def read(self, x: jax.Array) -> jax.Array:
        return self(x).sum()


def layer() -> Layer:
    return Layer(6, 3, rngs=nnx.Rngs(0))


def bump(variable: Any) -> jax.Array:
    variable[...] = variable[...] + 1
    return variable[...]


def only_the_model(model: Any, optimizer: Any, xs: jax.Array, ys: jax.Array) -> tuple[Any, jax.Array]:
    value = nnx_step(model, optimizer, xs, ys)
    return model, value


@pytest.mark.parametrize("call", [
    lambda: layer().scale(jnp.ones((2, 6))),
    lambda: optimize(lambda held, x: scaled(held["layer"], x))({"layer": layer()}, jnp.ones((2, 6))),
    lambda: optimize(lambda state, x: scaled(nnx.merge(nnx.graphdef(layer()), state), x))(
        nnx.state(layer()), jnp.ones((2, 6))),
    lambda: optimize(scaled)(layer(), x=jnp.ones((2, 6))),
    lambda: optimize(bump)(nnx.Variable(jnp.ones(()))),
    lambda: optimize(lambda rngs: rngs.dropout())(nnx.Rngs(dropout=0)),
    lambda: optimize(only_the_model)(*network(), *batch()),
    lambda: optimize(scaled, on_error="fallback")(layer(), jnp.ones((2, 6))),
    lambda: nnx.jit(optimize(scaled))(layer(), jnp.ones((2, 6))),
], ids=["method", "in a dict", "state", "keyword", "variable", "random numbers", "half returned", "fallback",
        "inside nnx.jit"])
def test_each_form_of_lost_update_is_refused(call: Callable[[], Any]) -> None:
    assert "does not return the update" in refusal(call)


def test_the_kill_switch_does_not_lose_updates_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOREWRITE", "0")
    refusal(lambda: optimize(scaled)(layer(), jnp.ones((2, 6))))


SHARED = layer()


@pytest.mark.parametrize("make", [
    lambda held: optimize(lambda x: scaled(held, x)),
    lambda held: optimize(lambda x: held(x).sum()),
    lambda held: optimize(lambda x: jax.vmap(lambda row: SHARED(row).sum())(x).sum()),
    lambda held: optimize(functools.partial(scaled, held)),
    lambda held: optimize(held.read),
    lambda held: optimize(held),
    lambda held: functools.partial(optimize(lambda m, x: m(x).sum(), static_argnums=0), held),
    lambda held: functools.partial(optimize(lambda x, *, m: m(x).sum(), static_argnames="m"), m=held),
], ids=["updated", "read", "global in an inner function", "partial", "bound method", "the object itself",
        "static", "static by name"])
def test_objects_that_a_step_closes_over_are_refused(make: Callable[[Any], Any]) -> None:
    """Their values would be constants: later updates would not be seen."""
    assert "would be constants of the compiled step" in refusal(lambda: make(layer())(jnp.ones((2, 6))))


@pytest.mark.parametrize("change", [lambda leaf: leaf, lambda leaf: leaf + 0], ids=["as it is", "computed on"])
def test_objects_that_are_returned_train(change: Callable[[Any], Any]) -> None:
    wanted = losses(nnx.jit(nnx_step), *network(), *batch())
    model, optimizer = network()

    @optimize
    def step(model: Any, optimizer: Any, xs: jax.Array, ys: jax.Array) -> tuple[Any, Any, jax.Array]:
        value = nnx_step(model, optimizer, xs, ys)
        return *jax.tree.map(change, (model, optimizer)), value

    actual = []
    for _ in range(STEPS):
        model, optimizer, value = step(model, optimizer, *batch())
        actual.append(float(value))
    np.testing.assert_allclose(actual, wanted, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*contains no collective")
def test_what_loses_nothing_runs() -> None:
    held = layer()
    assert float(optimize(lambda m, x: m(x).sum())(held, jnp.ones((2, 6)))) == float(held(jnp.ones((2, 6))).sum())
    frozen = nnx.state(held)
    kernel = optimize(lambda x: x * frozen["kernel"][...])(jnp.float32(2))
    np.testing.assert_array_equal(kernel, 2 * held.kernel[...])
    counter, bumped = nnx.Variable(jnp.ones(()), ref=True), optimize(bump)
    assert [float(bumped(counter)) for _ in range(3)] == [2, 3, 4]


def test_a_pipeline_refuses_alike() -> None:
    def step(model: Any, x: jax.Array) -> jax.Array:
        value, _ = hlorewrite.mean_over_microbatches(lambda rows: (jnp.mean(rows), jnp.mean(rows)), x, 2)
        return value + scaled(model, x)

    pipelined = hlorewrite.pipeline(step, meshes=[(1,), (1,)])
    assert "does not return the update" in refusal(lambda: pipelined.lower(layer(), jnp.ones((8, 6))))
    assert "jitted by flax" in refusal(lambda: hlorewrite.pipeline(nnx.jit(step), meshes=[(1,), (1,)]).lower(
        layer(), jnp.ones((8, 6))))


# ---- Equinox


def test_the_equinox_route_that_the_error_names_trains_as_filter_jit() -> None:
    def train(step: Callable[..., Any], model: Any, state: Any) -> list[float]:
        losses = []
        for _ in range(STEPS):
            model, state, value = step(model, state, *batch())
            losses.append(float(value))
        return losses

    model, state = equinox_model()
    wanted = train(eqx.filter_jit(equinox_step), model, state)
    arrays, static = eqx.partition(model, eqx.is_array)

    @optimize
    def pure(arrays: Any, state: Any, xs: jax.Array, ys: jax.Array) -> tuple[Any, Any, jax.Array]:
        model, new_state, value = equinox_step(eqx.combine(arrays, static), state, xs, ys)
        return eqx.filter(model, eqx.is_array), new_state, value

    assert pure.lower(arrays, state, *batch()).report.changed
    np.testing.assert_allclose(train(pure, arrays, state), wanted, rtol=1e-5)
    assert len(set(wanted)) == STEPS


# ---- references of JAX


@pytest.mark.filterwarnings("ignore:.*contains no collective")
@pytest.mark.parametrize("closed", [False, True])
def test_references_of_jax_are_updated(closed: bool) -> None:
    total = jax.new_ref(jnp.zeros(3))

    def add(ref: Any, x: jax.Array) -> jax.Array:
        ref[...] += x
        return ref[...].sum()

    step = optimize(lambda x: add(total, x)) if closed else functools.partial(optimize(add), total)
    assert [float(step(jnp.ones(3))) for _ in range(3)] == [3, 6, 9]
