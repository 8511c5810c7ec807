"""Prints and callbacks of a pipelined step: given what jit gives them, or refused with the cause."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

import hlorewrite
from hlorewrite.errors import HlorewriteError

NUMBERS = np.random.RandomState(0)
WEIGHTS = [jnp.asarray(NUMBERS.randn(4, 4) * 0.5, "f4") for _ in range(2)]
STACK, ROWS = jnp.asarray(NUMBERS.randn(6, 4, 4) * 0.5, "f4"), jnp.asarray(NUMBERS.randn(8, 4), "f4")
TOLD: list[tuple] = []
both = jax.value_and_grad


def tell(*values):
    jax.debug.callback(lambda *given: TOLD.append(tuple(np.asarray(each, "f8") for each in given)), *values)


def nothing(p, loss, grads):
    pass


def step_of(loss_of, after=nothing, gradient=None):
    def step(p, x):
        loss, grads = hlorewrite.mean_over_microbatches(
            lambda r: gradient(p, r) if gradient else both(loss_of)(p, r), x, 2)
        after(p, loss, grads)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, grads), loss

    return step


def plain(p, x):
    return jnp.mean((hlorewrite.stage(jnp.tanh(x @ p[0]), 1) @ p[1]) ** 2)


def in_stages(p, x):
    tell(x[0])
    z = hlorewrite.stage(jnp.tanh(x @ p[0]), 1)
    tell(jnp.sum(z))
    loss = jnp.mean((z @ p[1]) ** 2)
    lax.cond(loss > 0.3, lambda: tell(loss, 2.0), lambda: tell(-loss))
    jax.vmap(lambda row: tell(row.sum()))(z[:2])
    return loss


@jax.jit
def inner(x):
    tell(x)
    return jnp.tanh(x)


def in_jit(p, x):
    return jnp.mean((hlorewrite.stage(inner(x @ p[0]), 1) @ p[1]) ** 2)


def in_layers(p, x):
    def layer(x, w):
        x = jnp.tanh(hlorewrite.stage_layers(x, (2,)) @ w)
        tell(jnp.mean(x))
        return x, None

    return jnp.mean(lax.scan(layer, x, p)[0] ** 2)


def of_gradients(p, r):
    loss, grads = both(plain)(p, r)
    tell(grads[0], grads[1][0])
    return loss, grads


def after_the_loop(p, loss, grads):
    tell(jnp.sqrt(sum(jnp.sum(g * g) for g in grads)), loss, p[1])
    tell(jnp.stack([jnp.linalg.norm(g) for g in grads]))
    tell(3)
    io_callback(lambda value: (TOLD.append((value,)), value)[1], jax.ShapeDtypeStruct((), jnp.float32), loss)


def told(step, p):
    TOLD.clear()
    p, losses = jax.tree.map(jnp.copy, p), []
    for _ in range(2):
        p, loss = step(p, ROWS)
        losses.append(float(loss))
    jax.effects_barrier()
    return list(TOLD), losses


def check_told(step, p, **options):
    (want, losses), (got, others) = told(jax.jit(step), p), told(hlorewrite.pipeline(step, **options), p)
    np.testing.assert_allclose(losses, others, rtol=1e-5)
    want, got = (sorted(each, key=lambda row: [(x.shape, x.ravel().round(3).tolist()) for x in map(np.asarray, row)])
                 for each in (want, got))
    assert len(want) == len(got)
    for one, other in zip(want, got, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


STEPS = {"stages": (step_of(in_stages), WEIGHTS), "jit": (step_of(in_jit), WEIGHTS),
         "layers": (step_of(in_layers), STACK), "gradients": (step_of(plain, gradient=of_gradients), WEIGHTS),
         "after": (step_of(plain, after_the_loop), WEIGHTS)}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("options", [{"meshes": [(1,), (1,)]},
                                     {"meshes": [(2,), (2,)], "schedule": "zb-h1", "donate_argnums": 0}],
                         ids=["1", "2"])
def test_callbacks_are_given_what_jit_gives_them(name, options):
    check_told(*STEPS[name], **options)


def test_prints_come_in_the_order_of_the_unsplit_step(capfd):
    def loss_of(p, x):
        jax.debug.print("rows {}", x[0, 0], ordered=True)
        loss = plain(p, x)
        jax.debug.print("loss {:.3f} of {}", loss, 2, ordered=True)
        return loss

    step = step_of(loss_of, lambda p, loss, grads: jax.debug.print("mean {loss:.3f}", loss=loss, ordered=True))
    printed = []
    for made in (jax.jit(step), hlorewrite.pipeline(step, meshes=[(1,), (1,)], schedule="gpipe")):
        made(WEIGHTS, ROWS)
        jax.effects_barrier()
        printed.append(capfd.readouterr().out.splitlines())
    assert printed[0] == printed[1] and [line.split()[0] for line in printed[0]] == ["rows", "loss"] * 2 + ["mean"]


def test_a_callback_changes_neither_fragments_nor_the_homes_of_state():
    quiet, telling = step_of(plain), step_of(plain, lambda p, loss, grads: tell(loss))
    lowered = [hlorewrite.pipeline(step, meshes=[(1,), (1,)], donate_argnums=0).lower(WEIGHTS, ROWS)
               for step in (quiet, telling)]
    assert [each.callee for each in lowered[0].data().body if hasattr(each, "callee")] == \
        [each.callee for each in lowered[1].data().body if hasattr(each, "callee")]
    assert lowered[0].state() == lowered[1].state()


def test_an_error_of_a_callback_reaches_the_caller():
    def fail(value):
        raise ArithmeticError(f"loss {value:.1f}")

    step = step_of(plain, lambda p, loss, grads: jax.debug.callback(fail, loss))
    with pytest.raises(ArithmeticError, match="loss 0"):
        hlorewrite.pipeline(step, meshes=[(1,), (1,)])(WEIGHTS, ROWS)


def checkpointed(p, x):
    def first(w, x):
        tell(jnp.sum(x))
        return jnp.tanh(x @ w)

    return jnp.mean((hlorewrite.stage(jax.checkpoint(first)(p[0], x), 1) @ p[1]) ** 2)


def of_unknown_length(p, loss, grads):
    lax.while_loop(lambda each: each < loss, lambda each: (tell(each), each + 1)[1], 0.0)


SCALAR = jax.ShapeDtypeStruct((), jnp.float32)
REFUSED = {"pure_callback": (lambda value: jax.pure_callback(lambda v: np.float32(0) * v, SCALAR, value)),
           "io_callback": (lambda value: io_callback(lambda v: np.float32(0) * v, SCALAR, value)),
           "ordered io_callback": (lambda value: io_callback(lambda v: np.float32(0) * v, SCALAR, value, ordered=True))}


@pytest.mark.parametrize(("step", "reason"), [
    *((step_of(lambda p, x, call=call: plain(p, x) + call(lax.stop_gradient(plain(p, x)))),
       "the step uses what a callback to Python returns") for call in REFUSED.values()),
    (step_of(checkpointed), "inside jax.checkpoint cannot run after the step"),
    (step_of(plain, of_unknown_length), "inside a loop of unknown length cannot run after the step"),
    (step_of(plain, lambda p, loss, grads: jax.debug.callback(print, loss, partitioned=True)),
     "partitioned=True calls Python for each shard")], ids=[*REFUSED, "checkpoint", "while", "partitioned"])
def test_callbacks_that_cannot_run_after_the_step_are_refused_in_one_line(step, reason):
    with pytest.raises(HlorewriteError, match=reason) as refused:
        hlorewrite.pipeline(step, meshes=[(1,), (1,)])(WEIGHTS, ROWS)
    assert str(refused.value).startswith("test_host_calls.py:") and "\n" not in str(refused.value)
