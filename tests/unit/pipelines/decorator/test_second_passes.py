"""Several gradients in a micro-batch: what one forward and one backward hold computes as jit, the rest is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlorewrite
from hlorewrite.errors import HlorewriteError

NUMBERS = np.random.RandomState(0)
WEIGHTS = [jnp.asarray(NUMBERS.randn(4, 4) * 0.5, "f4") for _ in range(2)]
ROWS = jnp.asarray(NUMBERS.randn(8, 4), "f4")
MESHES = [(1,), (1,)]
both = jax.value_and_grad


def loss_of(p, x):
    z = hlorewrite.stage(jnp.tanh(x @ p[0]), 1)
    return jnp.mean((z @ p[1]) ** 2)


def head(w, z):
    return jnp.mean((z @ w) ** 2)


def step_of(gradient):
    def step(p, x):
        loss, grads = hlorewrite.mean_over_microbatches(lambda r: gradient(p, r), x, 2)
        return [a - 0.1 * b for a, b in zip(p, grads, strict=True)], loss

    return step


def two_views(p, r):
    return both(lambda p, r: loss_of(p, r) + loss_of(p, r[:, ::-1]))(p, r)


def surgery(p, r):
    """Gradients of two losses without what they disagree about."""
    (one, a), (two, b) = both(loss_of)(p, r), both(loss_of)(p, r[:, ::-1])
    common = jnp.minimum(sum(jnp.vdot(u, v) for u, v in zip(a, b, strict=True)), 0.0)
    return one + two, [u - common * v for u, v in zip(a, b, strict=True)]


def product_with_hessian(p, r):
    value, product = jax.jvp(lambda p: both(loss_of)(p, r), (p,), ([jnp.ones((4, 4))] * 2,))
    return value[0], product[1]


def gradient_of_gradient(p, r):
    return loss_of(p, r), jax.grad(lambda p: sum(map(jnp.sum, jax.grad(loss_of)(p, r))))(p)


def two_pullbacks(p, r):
    value, pull = jax.vjp(lambda p: loss_of(p, r), p)
    return value, jax.tree.map(jnp.add, pull(jnp.ones(()))[0], pull(2 * jnp.ones(()))[0])


def for_each_row(p, r):
    """Clips the gradient of each row."""
    losses, grads = jax.vmap(lambda row: both(loss_of)(p, row[None]))(r)
    norms = jnp.sqrt(sum(jnp.sum(g * g, (1, 2)) for g in grads))
    return jnp.mean(losses), [jnp.mean(g * jnp.minimum(1, 0.1 / norms)[:, None, None], 0) for g in grads]


def penalty_of_the_head(p, r):
    def loss(p, r):
        z = hlorewrite.stage(jnp.tanh(r @ p[0]), 1)
        return head(p[1], z) + jnp.sum(jax.grad(head, 1)(p[1], z) ** 2)

    return both(loss)(p, r)


def adapted_head(p, r):
    def loss(p, r):
        z = hlorewrite.stage(jnp.tanh(r @ p[0]), 1)
        return head(p[1] - 0.1 * jax.grad(head)(p[1], z), z)

    return both(loss)(p, r)


@pytest.mark.parametrize("gradient", [two_views, surgery, product_with_hessian, gradient_of_gradient, two_pullbacks,
                                      for_each_row, penalty_of_the_head, adapted_head])
def test_gradients_of_one_forward_and_one_backward(gradient):
    step = step_of(gradient)
    got = hlorewrite.pipeline(step, meshes=MESHES, schedule="zb-h1")(WEIGHTS, ROWS)
    for value, want in zip(jax.tree.leaves(got), jax.tree.leaves(jax.jit(step)(WEIGHTS, ROWS)), strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(want), rtol=1e-4, atol=1e-6)


def adversarial(p, r):
    return both(loss_of)(p, r + 0.01 * jnp.sign(jax.grad(loss_of, argnums=1)(p, r)))


def sharpness(p, r):
    grads = jax.grad(loss_of)(p, r)
    return both(loss_of)([a + 0.05 * b for a, b in zip(p, grads, strict=True)], r)


def penalty(p, r):
    return both(lambda p, r: loss_of(p, r) + jnp.sum(jax.grad(loss_of, argnums=1)(p, r) ** 2))(p, r)


def curvature(p, r):
    grads = jax.grad(loss_of)(p, r)
    return loss_of(p, r), jax.jvp(lambda p: jax.grad(loss_of)(p, r), (p,), (grads,))[1]


@pytest.mark.parametrize(("gradient", "line"), [(adversarial, 1), (sharpness, 2), (penalty, 1), (curvature, None)])
def test_a_forward_after_a_backward_names_the_line_that_uses_the_gradient(gradient, line):
    with pytest.raises(HlorewriteError, match="goes into another forward pass here, which reaches the mark of stage 1"
                       ) as refused:
        hlorewrite.pipeline(step_of(gradient), meshes=MESHES)(WEIGHTS, ROWS)
    said = str(refused.value)
    wanted = loss_of.__code__.co_firstlineno + 1 if line is None else gradient.__code__.co_firstlineno + line
    assert f"test_second_passes.py:{wanted}:" in said.split(" a gradient")[0] and "\n" not in said


def test_two_loops_are_two_steps():
    def step(p, x):
        return step_of(both(loss_of))(step_of(both(loss_of))(p, x)[0], x)

    with pytest.raises(HlorewriteError, match=r"is in two loops over micro-batches, the second at .*; make each loop "
                                              r"a separate pipelined step"):
        hlorewrite.pipeline(step, meshes=MESHES)(WEIGHTS, ROWS)


def test_passes_as_steps_of_their_own():
    """Sharpness-aware minimisation and adversarial inputs, each pass a pipelined step."""
    def climb(p, x):
        _, grads = hlorewrite.mean_over_microbatches(lambda r: both(loss_of)(p, r), x, 2)
        return [a + 0.05 * b for a, b in zip(p, grads, strict=True)]

    def attack(p, x):
        parts = x.reshape(2, -1, 4)
        return lax.scan(lambda _, r: (0, r + 0.1 * jnp.sign(jax.grad(loss_of, 1)(p, r))), 0, parts)[1].reshape(x.shape)

    def descend(p, q, x):
        loss, grads = hlorewrite.mean_over_microbatches(lambda r: both(loss_of)(q, r), x, 2)
        return [a - 0.1 * b for a, b in zip(p, grads, strict=True)], loss

    def run(of):
        climbs, attacks, descends = map(of, (climb, attack, descend))
        p, losses = WEIGHTS, []
        for _ in range(2):
            p, loss = descends(p, climbs(p, ROWS), attacks(p, ROWS))
            losses.append(float(loss))
        return losses

    np.testing.assert_allclose(run(lambda step: hlorewrite.pipeline(step, meshes=MESHES)), run(jax.jit), rtol=1e-5)
