"""``optimize`` around what another library jitted, partials and methods: their own semantics, fewer bytes."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from framework_steps import accumulated, batch, equinox_model, equinox_step, eqx, network, nnx, nnx_step

from hlorewrite import optimize
from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.decorator.optimize import HlorewriteWarning
from hlorewrite.jaxbridge.hook.scoped import OptimizedCallable

STEPS = 5


def fresh(fun: Any) -> Any:
    """The same function as another object: JAX keeps what it compiled by the function."""
    return types.FunctionType(fun.__code__, fun.__globals__, fun.__name__, fun.__defaults__, fun.__closure__)


def rewritten_to_a_quarter(step: Any) -> bool:
    """Whether all that was compiled sends little more than a quarter (the loss is sent in each micro-batch or once)."""
    return bool(step.records) and all(r.bytes_after <= 0.3 * r.bytes_before for r in step.records)


def test_nnx_jit_trains_as_without() -> None:
    """The updates that ``nnx.jit`` copies back arrive."""
    def train(step: Callable[..., Any]) -> list[float]:
        model, optimizer = network()
        return [float(step(model, optimizer, *batch())) for _ in range(STEPS)]
    wanted, step = train(nnx.jit(fresh(nnx_step))), optimize(nnx.jit(fresh(nnx_step)), passes="comm")
    np.testing.assert_allclose(train(step), wanted, rtol=1e-5)
    assert len(set(wanted)) == STEPS
    assert rewritten_to_a_quarter(step)


@pytest.mark.parametrize("donate", ["none", "all"])
def test_filter_jit_trains_as_without(donate: str) -> None:
    def train(step: Callable[..., Any]) -> list[float]:
        (model, state), losses = equinox_model(), []
        for _ in range(STEPS):
            model, state, value = step(model, state, *batch())
            losses.append(float(value))
        return losses
    jitted = functools.partial(eqx.filter_jit, donate=donate)
    wanted = train(jitted(fresh(equinox_step)))
    step = optimize(jitted(fresh(equinox_step)), passes="comm")
    np.testing.assert_allclose(train(step), wanted, rtol=1e-5)
    assert rewritten_to_a_quarter(step)


class Trainer:
    """A class with a jitted method, as trainers have."""

    rate = 0.1

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, params: jax.Array, xs: jax.Array, ys: jax.Array) -> jax.Array:
        _, grads = accumulated(lambda p, x, y: jnp.mean((x @ p - y) ** 2), params, xs, ys)
        return params - self.rate * grads


def test_a_method_and_a_partial_of_a_jitted_function() -> None:
    """Static arguments stay static: the inner ``jax.jit`` keeps its options."""
    params, trainer = jnp.ones((6, 3)), Trainer()
    wanted = Trainer().step(params, *batch())
    for step in (optimize(functools.partial(Trainer.step, trainer), passes="comm"),
                 optimize(Trainer().step, passes="comm")):
        assert isinstance(step, OptimizedCallable)
        np.testing.assert_allclose(step(params, *batch()), wanted, rtol=1e-5, atol=1e-6)
        assert rewritten_to_a_quarter(step)
    decorated = optimize("comm")(functools.partial(jax.jit(nnx_less), 2.0))
    np.testing.assert_allclose(decorated(params, *batch()), nnx_less(2.0, params, *batch()), rtol=1e-5, atol=1e-6)


def nnx_less(scale: float, params: jax.Array, xs: jax.Array, ys: jax.Array) -> jax.Array:
    return scale * accumulated(lambda p, x, y: jnp.mean((x @ p - y) ** 2), params, xs, ys)[1]


def test_a_class_that_checks_its_leaves() -> None:
    """``jmp.DynamicLossScale`` is one: it holds arrays or nothing. A lowering would put descriptions into it."""
    @jax.tree_util.register_pytree_node_class
    class LossScale:
        def __init__(self, scale: Any) -> None:
            if not isinstance(scale, jax.Array):
                raise TypeError(f"a loss scale is an array, not {type(scale).__name__}")
            self.scale = scale

        def tree_flatten(self) -> tuple[tuple[Any], None]:
            return (self.scale,), None

        @classmethod
        def tree_unflatten(cls, _: None, leaves: tuple[Any]) -> LossScale:
            return cls(*leaves)

    def step(scale: LossScale, params: jax.Array, xs: jax.Array, ys: jax.Array) -> tuple[LossScale, jax.Array]:
        _, grads = accumulated(lambda p, x, y: scale.scale * jnp.mean((x @ p - y) ** 2), params, xs, ys)
        return LossScale(scale.scale * 2), params - grads / scale.scale

    made = optimize(jax.jit(step), passes="comm")
    scale, params = LossScale(jnp.float32(2)), jnp.ones((6, 3))
    wanted = jax.jit(fresh(step))(scale, params, *batch())
    for _ in range(2):
        new, result = made(scale, params, *batch())
        assert float(new.scale) == 4
        np.testing.assert_allclose(result, wanted[1], rtol=1e-5, atol=1e-6)
    assert [record.outcome for record in made.records] == ["rewritten"]


def test_what_was_compiled_before_is_named() -> None:
    jitted, params = functools.partial(jax.jit(nnx_less), 1.0), jnp.ones((6, 3))
    jitted(params, *batch())
    with pytest.warns(HlorewriteWarning, match="it was compiled before it was optimized"):
        optimize(jitted)(params, *batch())


@pytest.mark.parametrize(("make", "said"), [
    (lambda: optimize(nnx.jit(nnx_step), donate_argnums=0), "nnx_step is jitted already, so donate_argnums cannot"),
    (lambda: optimize(nnx.jit(nnx_step), check="first_call"), "so check cannot be given here"),
    (lambda: optimize(nnx.jit(nnx_step)).lower(), "cannot be lowered rewritten"),
])
def test_what_cannot_be_supported_is_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
