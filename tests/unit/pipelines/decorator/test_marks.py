"""Marks are the identity under every transformation, and say forwards and backwards where values cross."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.errors import UsageError


def marks(function, *args) -> list[tuple[str, str]]:
    """(backward, stage) of the marks in a lowered function, in the order of the text."""
    text = jax.jit(function).lower(*args).as_text()
    return re.findall(r'composite "hlorewrite.stage".*?backward = (\w+), stage = (\d+)', text)


def loss(w, x):
    return jnp.sum(jnp.sin(hlorewrite.stage(jnp.tanh(x * w), 1) * w))


def unmarked(w, x):
    return jnp.sum(jnp.sin(jnp.tanh(x * w) * w))


W, X = jnp.linspace(0.1, 1, 4), jnp.linspace(-1, 1, 4)


def test_one_mark_marks_both_ways():
    assert marks(loss, W, X) == [("false", "1")]
    assert sorted(marks(jax.grad(loss), W, X)) == [("false", "1"), ("true", "1")]


def test_a_step_with_marks_runs_unsplit():
    np.testing.assert_array_equal(jax.jit(jax.grad(loss))(W, X), jax.jit(jax.grad(unmarked))(W, X))
    np.testing.assert_array_equal(loss(W, X), unmarked(W, X))


@pytest.mark.parametrize("transform", [
    lambda f: jax.jvp(f, (W, X), (X, W)),
    lambda f: jax.vjp(f, W, X)[1](jnp.float32(2)),
    lambda f: jax.linearize(f, W, X)[1](X, W),
    lambda f: jax.hessian(f)(W, X),
    lambda f: jax.vmap(jax.grad(f), (0, None))(jnp.stack([W, X]), X),
    lambda f: jax.vmap(jax.grad(f), (1, 1), out_axes=1)(jnp.stack([W, X], 1), jnp.stack([X, W], 1)),
    lambda f: jax.grad(jax.checkpoint(f))(W, X),
    lambda f: jax.jit(jax.grad(jax.checkpoint(f, policy=jax.checkpoint_policies.dots_saveable)))(W, X),
    lambda f: lax.scan(lambda c, x: (c + jax.grad(f)(W, x), None), W, jnp.stack([X, W]))[0],
    lambda f: jax.grad(lambda w: lax.scan(lambda c, x: (c + f(w, x), None), 0.0, jnp.stack([X, W]))[0])(W),
    lambda f: jax.grad(lambda w: lax.cond(w[0] > 0, f, lambda w, x: 0.0, w, X))(W),
])
def test_transformations(transform):
    for actual, expected in zip(jax.tree.leaves(transform(loss)), jax.tree.leaves(transform(unmarked)), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


def test_custom_vjp_around_and_beside_marks():
    @jax.custom_vjp
    def double(x):
        return hlorewrite.stage(2 * x, 1)

    double.defvjp(lambda x: (double(x), None), lambda _, g: (hlorewrite.stage(2 * g, 1),))
    assert jax.jit(jax.grad(lambda x: double(x)))(3.0).item() == 2.0


def test_pytrees_with_anything_in_them():
    tree = {"x": X, "n": jnp.arange(3), "flag": True, "none": None, "key": jax.random.key(0),
            "half": X.astype("bfloat16")}
    out = jax.jit(lambda t: hlorewrite.stage(t, 2))(tree)
    assert jax.tree.structure(out) == jax.tree.structure(tree)
    assert jnp.array_equal(jax.random.key_data(out["key"]), jax.random.key_data(tree["key"]))
    assert out["half"].dtype == jnp.bfloat16 and out["n"].dtype == jnp.int32
    grads = jax.grad(lambda t: jnp.sum(hlorewrite.stage(t, 1)["x"] * t["n"][1]), allow_int=True)(
        {"x": X, "n": jnp.arange(3)})
    np.testing.assert_array_equal(grads["x"], jnp.ones(4))


def test_weak_types_and_double_precision_stay():
    assert jax.jit(lambda x: hlorewrite.stage(x, 1))(2.0).weak_type
    with jax.enable_x64(True):
        assert jax.jit(lambda x: hlorewrite.stage(x, 1))(np.float64(2)).dtype == np.float64


def test_explicit_axes_keep_their_shardings():
    mesh = jax.make_mesh((2, 2), ("data", "tensor"), axis_types=(AxisType.Explicit,) * 2)
    x = jax.device_put(jnp.ones((4, 4)), NamedSharding(mesh, P("data", "tensor")))
    with jax.set_mesh(mesh):
        kinds = jax.jit(lambda x: hlorewrite.stage(x, 1)).eval_shape(x)
        out = jax.jit(jax.grad(lambda x: jnp.sum(hlorewrite.stage(x, 1) ** 2)))(x)
    assert kinds.sharding.spec == P("data", "tensor")
    np.testing.assert_array_equal(out, 2 * np.ones((4, 4)))


@pytest.mark.parametrize("check", [True, False])
def test_inside_shard_map(check):
    mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))

    def local(w, x):
        return lax.psum(loss(w, x), "data")

    def run(f):
        return jax.jit(jax.grad(jax.shard_map(f, mesh=mesh, in_specs=(P(), P("data")), out_specs=P(), check_vma=check)))

    actual = run(local)(jnp.float32(0.5), X)
    expected = run(lambda w, x: lax.psum(unmarked(w, x), "data"))(jnp.float32(0.5), X)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_stage_zero_marks_nothing():
    assert marks(lambda x: hlorewrite.stage(x, 0), X) == []


@pytest.mark.parametrize("index", [-1, 1.0, True, "1", None])
def test_what_is_no_stage(index):
    with pytest.raises(UsageError, match="is not a stage"):
        hlorewrite.stage(X, index)


def test_a_traced_index_is_no_stage():
    with pytest.raises(UsageError, match="is not a stage"):
        jax.jit(lambda x, i: hlorewrite.stage(x, i))(X, 1)
