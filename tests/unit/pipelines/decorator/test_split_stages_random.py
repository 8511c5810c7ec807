"""Random models, random placements: split steps compute what they compute unsplit."""

from __future__ import annotations

from random import Random

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from pipeline_steps import batch, check_same, weights

import hlorewrite

SCHEDULES = {1: ("1f1b", "gpipe", "eager-1f1b", "zb-h1", "zb-h2"), 2: ("interleaved-1f1b", "dualpipe-v")}


def random_layer(choose: Random, params):
    """A part of a stage: (x, everything made so far) -> x."""
    kind = choose.choice(["dense", "dense", "gated", "scan", "norm", "skip", "shared"])
    w, v = choose.choice(params), choose.choice(params)  # any stage may read any weight
    back = choose.randrange(4)

    def layer(weight, x, past):
        if kind == "dense":
            return jnp.tanh(x @ weight[w])
        if kind == "gated":
            return x + jax.nn.sigmoid(x @ weight[w]) * (x @ weight[v].T)
        if kind == "scan":
            return lax.scan(lambda h, m: (jnp.tanh(h @ m), None), x, jnp.stack([weight[w], weight[v]]))[0]
        if kind == "norm":
            return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-3) * weight[w][0]
        if kind == "skip":
            return x + past[min(back, len(past) - 1)]
        return x @ (weight[w] * weight[v])

    return jax.checkpoint(layer) if choose.random() < 0.25 else layer


def random_step(seed: int):
    """A step of random layers, with the number of its stages and a random update."""
    choose = Random(seed)
    stages, count = choose.choice([2, 3, 4]), choose.choice([2, 3, 5])
    layers = [[random_layer(choose, range(count)) for _ in range(choose.randint(1, 3))] for _ in range(stages)]
    aux = [choose.random() < 0.3 for _ in range(stages)]
    whole, clip, stacked = choose.random() < 0.15, choose.random() < 0.4, choose.random() < 0.3

    def loss(params, x, y):
        extra, past = 0.0, [x]
        for i, stage in enumerate(layers):
            x = hlorewrite.stage(x, i)
            for layer in stage:
                x = layer(params, x, past)
                past.append(x)
            if aux[i]:
                extra += 0.01 * jnp.mean(x ** 2)
        return jnp.mean((x - y) ** 2) + extra

    def step(params, moments, xs, ys):
        def body(total, part):
            value, grads = jax.value_and_grad(jax.checkpoint(loss) if whole else loss)(params, *part)
            return jax.tree.map(jnp.add, total, (value, grads)), value if stacked else None

        zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        (value, grads), values = lax.scan(body, zeros, (xs, ys))
        if clip:
            norm = jnp.sqrt(sum(jnp.sum(g * g) for g in grads))
            grads = [g * jnp.minimum(1.0, 0.1 / norm) for g in grads]
        moments = [0.9 * m + g for m, g in zip(moments, grads, strict=True)]
        return [p - 0.1 * m for p, m in zip(params, moments, strict=True)], moments, value, values

    return step, stages, count, choose


def check_seed(seed: int) -> None:
    """Splits the step of a seed for a random schedule and compares."""
    step, stages, count, choose = random_step(seed)
    chunks = 2 if stages == 4 and choose.random() < 0.4 else 1
    meshes = ",".join(["(2)"] * (stages // chunks))
    params = weights(count)
    check_same(step, (params, [jnp.zeros_like(p) for p in params], *batch(8, 2)), meshes,
               choose.choice(SCHEDULES[chunks]), tolerance=2e-5, locations=choose.random() < 0.8,
               shared=choose.choice(["once", "every-micro-batch"]))


@pytest.mark.parametrize("seed", range(6))
def test_random_models(seed):
    check_seed(seed)
