"""Fragments with the same ops, compiled once: the same values, fewer compilations, nothing more kept."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlorewrite
from hlorewrite.pipelines.mpmd.program import FragmentCall
from hlorewrite.pipelines.runtime import fragments as fragments_module

WIDTH, VOCAB, MICROBATCHES = 16, 32, 4


def layer(p, x):
    """A layer with attention: enough ops to be worth a fragment of its own."""
    h = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * p["norm"]
    scores = jax.nn.softmax((h @ p["q"]) @ jnp.swapaxes(h @ p["k"], -1, -2))
    x = x + scores @ (h @ p["v"])
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


def loss_fn(params, tokens):
    """An embedding before the first layer, a head after the last one."""
    x = params["embed"][tokens]
    for index, p in enumerate(params["layers"]):
        x = layer(p, hlorewrite.stage(x, index))
    logits = jax.nn.log_softmax(x @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[..., None], -1))


def step(params, tokens):
    loss, grads = hlorewrite.mean_over_microbatches(
        lambda rows: jax.value_and_grad(loss_fn)(params, rows), tokens, MICROBATCHES)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


def arguments(layers):
    keys = iter(jax.random.split(jax.random.key(0), 1 + 6 * layers))

    def normal(*shape):
        return 0.1 * jax.random.normal(next(keys), shape)

    made = [{name: normal(WIDTH, WIDTH) for name in ("q", "k", "v", "up", "down")} | {"norm": jnp.ones(WIDTH)}
            for _ in range(layers)]
    return ({"embed": normal(VOCAB, WIDTH), "layers": made},
            jax.random.randint(jax.random.key(1), (16, 8), 0, VOCAB))


def run(pipelined, args):
    """The results of two steps, and the driver."""
    params, tokens = args
    params, _ = pipelined(jax.tree.map(jnp.copy, params), tokens)
    params, loss = pipelined(jax.tree.map(jnp.copy, params), tokens)
    return jax.tree.map(np.asarray, (params, loss)), next(iter(pipelined._known.values())).driver


def fragments(driver):
    return [each.action.step for each in driver.instructions if isinstance(each.action.step, FragmentCall)]


@pytest.mark.parametrize("schedule, meshes", [
    ("1f1b", [(1,)] * 4), ("gpipe", [(1,)] * 4), ("zb-h1", [(1,)] * 4), ("1f1b", [(2,)] * 4)])
def test_values_are_those_of_whole_fragments_with_fewer_compilations(schedule, meshes):
    args = arguments(4)
    known = {}
    for shared in (True, False):
        pipelined = hlorewrite.pipeline(step, meshes=meshes, schedule=schedule, share_fragments=shared,
                                        donate_argnums=0)
        known[shared] = run(pipelined, args)
    for mine, whole in zip(*(jax.tree.leaves(known[shared][0]) for shared in (True, False)), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=1e-5, atol=1e-7)  # other fusions, other rounding
    _, loss = jax.jit(step)(jax.jit(step)(*args)[0], args[1])
    np.testing.assert_allclose(known[True][0][1], loss, rtol=1e-5)
    with_parts, whole = known[True][1], known[False][1]
    assert len(fragments(with_parts)) > len(fragments(whole))
    assert kernels(with_parts) < kernels(whole)


def kernels(driver):
    """Fusions and calls of libraries in the different executables."""
    texts = {each.as_text() for each in driver._fragments._known.values()}
    bodies = {text[text.index("ENTRY"):] for text in texts}
    return sum(body.count(" fusion(") + body.count(" custom-call(") for body in bodies)


def test_as_many_buffers_are_donated():
    args = arguments(4)
    counts = {}
    for shared in (True, False):
        driver = hlorewrite.pipeline(step, meshes=[(1,)] * 4, share_fragments=shared,
                                     donate_argnums=0).lower(*args).compile().driver
        counts[shared] = sum(len(driver.liveness.donated[call.callee]) for call in {
            call.callee: call for call in fragments(driver)}.values())
    assert counts[True] >= counts[False] > 0


def test_what_is_shared_is_one_compilation_of_xla():
    args = arguments(4)
    drivers = [hlorewrite.pipeline(step, meshes=[(1,)] * 4, share_fragments=shared, donate_argnums=0).lower(
        *args).compile().driver for shared in (True, False)]
    read = [driver._fragments._store.read for driver in drivers]
    added = len({call.callee for call in fragments(drivers[0])}) - len({call.callee for call in fragments(drivers[1])})
    assert added > 0
    # Forwards and backwards of the first and the last stage, and updates: the layer in each is read.
    assert read[0] - read[1] >= 4


def residual_step(params, rows):
    def loss(params, x):
        for index, w in enumerate(params):
            x = hlorewrite.stage(x[:, 0] if index == 0 else x, index)
            for _ in range(5):
                x = x + jnp.tanh(x @ w) @ w
        return jnp.mean(x ** 2)

    value, grads = hlorewrite.mean_over_microbatches(
        lambda part: jax.value_and_grad(loss)(params, part), rows, MICROBATCHES)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def test_what_one_fragment_could_take_over_all_keep_if_it_is_small(monkeypatch):
    """The first stage cuts its input out of the batch and needs it no more; the others keep theirs for the backward."""
    args = [0.1 * jnp.eye(WIDTH)] * 4, jax.random.normal(jax.random.key(0), (16, 2, WIDTH))
    (values, driver), (others, apart) = (run_with(monkeypatch, share, args) for share in (fragments_module.KEPT, 0.0))
    jax.tree.map(np.testing.assert_array_equal, values, others)
    assert driver.compilations == apart.compilations - 1
    assert driver.liveness.donated == apart.liveness.donated


def run_with(monkeypatch, share, args):
    monkeypatch.setattr(fragments_module, "KEPT", share)
    return run(hlorewrite.pipeline(residual_step, meshes=[(1,)] * 4, donate_argnums=0), args)


def test_it_is_the_default_on_cpu():
    args = arguments(2)
    counts = [len(fragments(hlorewrite.pipeline(step, meshes=[(1,)] * 2, share_fragments=shared).lower(
        *args).compile().driver)) for shared in (None, True, False)]
    assert counts[0] == counts[1] > counts[2]


def test_the_program_that_is_shown_has_whole_fragments():
    args = arguments(2)
    texts = [hlorewrite.pipeline(step, meshes=[(1,)] * 2, share_fragments=shared).lower(*args).program()
             for shared in (True, False)]
    assert texts[0] == texts[1]
