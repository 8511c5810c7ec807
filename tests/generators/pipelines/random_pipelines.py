"""Random models with random optimizers, cuts, schedules and results: pipelined steps against ``jax.jit``.

Usage: ``python tests/generators/pipelines/random_pipelines.py FIRST COUNT [PROCESSES]`` runs COUNT seeds on eight CPU
devices of one process, or of two. Values after two steps have to be those of ``jax.jit``; each mesh holds at most 1.1
times its layers' share of the state; nothing is refused.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path[:0] = [str(Path(__file__).resolve().parents[3])]

# ruff: noqa: E402
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import hlorewrite

WIDTH, ROWS = 8, 32
_leaves = jax.tree.leaves
NORMS: dict[str, Callable[[Any], jax.Array]] = {
    "sum of squares": lambda g: jnp.sqrt(sum(jnp.sum(x * x) for x in _leaves(g))),
    "square": lambda g: optax.tree.norm(g),
    "vdot": lambda g: jnp.sqrt(sum(jnp.vdot(x, x) for x in _leaves(g))),
    "norm of ravel": lambda g: jnp.sqrt(sum(jnp.linalg.norm(x.ravel()) ** 2 for x in _leaves(g))),
    "one vector": lambda g: jnp.linalg.norm(jnp.concatenate([x.ravel() for x in _leaves(g)])),
    "ravel_pytree": lambda g: jnp.linalg.norm(jax.flatten_util.ravel_pytree(g)[0]),
    "norms stacked": lambda g: jnp.linalg.norm(jnp.stack([jnp.linalg.norm(x) for x in _leaves(g)])),
    "largest": lambda g: jnp.max(jnp.stack([jnp.max(jnp.abs(x)) for x in _leaves(g)])),
    "tensordot": lambda g: jnp.sqrt(sum(jnp.tensordot(x, x, axes=x.ndim) for x in _leaves(g))),
}


def _clip(norm: Callable[[Any], jax.Array], how: str) -> optax.GradientTransformation:
    def update(g: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        size = norm(g)
        if how == "where":
            return jax.tree.map(lambda x: jnp.where(size < 0.05, x, x * (0.05 / size)), g), state
        return jax.tree.map(lambda x: x * jnp.minimum(1.0, 0.05 / size), g), state

    return optax.GradientTransformation(lambda params: (), update)


def _per_layer(g: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
    def clipped(x: jax.Array) -> jax.Array:
        size = jnp.sqrt(jnp.sum(x * x, axis=tuple(range(min(1, x.ndim - 1), x.ndim)), keepdims=True))
        return x * jnp.minimum(1.0, 0.05 / (size + 1e-6))

    return jax.tree.map(clipped, g), state


BASES: dict[str, Callable[[], Any]] = {
    "adamw": lambda: optax.adamw(1e-2), "sgd": lambda: optax.sgd(1e-2, momentum=0.9), "lion": lambda: optax.lion(1e-3),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=4), "lamb": lambda: optax.lamb(1e-2),
    "adagrad": lambda: optax.adagrad(1e-2), "amsgrad": lambda: optax.amsgrad(1e-2),
    "novograd": lambda: optax.novograd(1e-2), "sm3": lambda: optax.sm3(1e-2), "nadam": lambda: optax.nadam(1e-2),
    "plain sgd": lambda: optax.sgd(1e-2), "adam": lambda: optax.adam(1e-2), "rmsprop": lambda: optax.rmsprop(1e-2),
    "scheduled": lambda: optax.adamw(optax.warmup_cosine_decay_schedule(1e-3, 1e-2, 2, 10)),
    "hyperparameters": lambda: optax.inject_hyperparams(optax.adamw)(optax.cosine_decay_schedule(1e-2, 100)),
}
BY_PLACE = frozenset(BASES) - {"adafactor", "novograd", "sm3"}
"""Optimizers whose state is as large on each mesh as its parameters say."""


def random_optimizer(choose: Random) -> tuple[Any, bool]:
    """An optimizer, and whether its state lies by place with its parameters."""
    name = choose.choice(list(BASES))
    chain = [BASES[name]()]
    clip = choose.choice(["none", "optax", "global", "global", "block", "layer", "adaptive", "values"])
    if clip == "global":
        chain.insert(0, _clip(NORMS[choose.choice(list(NORMS))], choose.choice(["minimum", "where"])))
    elif clip != "none":
        chain.insert(0, {"optax": optax.clip_by_global_norm(0.05), "block": optax.clip_by_block_rms(0.05),
                         "adaptive": optax.adaptive_grad_clip(0.05),
                         "values": optax.clip(0.01),
                         "layer": optax.GradientTransformation(lambda params: (), _per_layer)}[clip])
    made = optax.chain(*chain)
    around = choose.choice(["none"] * 4 + ["several steps", "if finite"])
    if around == "several steps":
        return optax.MultiSteps(made, 2).gradient_transformation(), name in BY_PLACE
    return (optax.apply_if_finite(made, 3), name in BY_PLACE) if around == "if finite" else (made, name in BY_PLACE)


RESULTS: dict[str, Callable[[Any, Any, jax.Array], Any]] = {
    "loss": lambda p, g, loss: loss,
    "twice": lambda p, g, loss: (loss, loss, {"mean": loss / 2}),
    "given": lambda p, g, loss: (loss, p["embed"], g["embed"], g["embed"]),
    "metrics": lambda p, g, loss: jnp.stack([loss, optax.tree.norm(g), optax.tree.norm(p)]),
    "norms": lambda p, g, loss: jnp.stack([jnp.linalg.norm(x) for x in _leaves(g)]),
    "largest": lambda p, g, loss: jnp.argmax(jnp.array([jnp.max(jnp.abs(x)) for x in _leaves(g)])),
    "sorted": lambda p, g, loss: jnp.sort(jnp.stack([jnp.mean(x) for x in _leaves(p)])),
    "dictionary": lambda p, g, loss: {"loss": loss, "mean": [jnp.mean(x) for x in _leaves(g)]},
    "histogram": lambda p, g, loss: jnp.bincount(jnp.concatenate([x.ravel() > 0 for x in _leaves(g)]), length=2),
    "rows": lambda p, g, loss: jnp.concatenate([x.reshape(-1, x.shape[-1])[0] for x in _leaves(g)]),
}


@dataclass(frozen=True)
class RandomPipeline:
    """A step and how it is split.

    Attributes:
      step: of (state, batch).
      state: parameters, the optimizer's state, and a copy of the parameters if the step keeps one.
      batch: inputs and targets.
      options: of ``hlorewrite.pipeline``.
      by_place: whether the optimizer's state lies with its parameters by place.
      told: what the step's callbacks were given so far.
    """

    step: Callable[..., Any]
    state: Any
    batch: Any
    options: dict[str, Any]
    by_place: bool
    told: list[float]


def random_pipeline(seed: int) -> RandomPipeline:
    """The model of a seed."""
    choose, numbers = Random(seed), np.random.RandomState(seed)
    stages, chunks = choose.choice([(2, 1), (2, 1), (3, 1), (4, 1), (4, 2), (6, 2)])
    form, layers = choose.choice(["stack", "list"]), choose.choice([each for each in (4, 6, 8) if each >= stages])
    edges = sorted(choose.sample(range(1, layers), stages - 1))
    cut: Any = stages if choose.random() < 0.5 else tuple(edges)
    starts = edges if isinstance(cut, tuple) else _equal(layers, stages)
    copy, losses = choose.choice(["none", "none", "average", "same"]), choose.random() < 0.3
    told, tells = list[float](), choose.choice(["", "", "", "loss", "layer", "update"])

    def tell(value: jax.Array, where: str) -> None:
        if where == tells:
            jax.debug.callback(lambda each: told.append(float(each)), value)

    tied, bias, microbatches = choose.random() < 0.4, choose.random() < 0.5, 8 if stages == 6 else choose.choice([4, 8])
    weights = numbers.randn(layers, WIDTH, WIDTH).astype("f4") * 0.4
    biases = numbers.randn(layers, WIDTH).astype("f4") * 0.1
    params = {"embed": numbers.randn(WIDTH, WIDTH).astype("f4") * 0.4,
              "w": weights if form == "stack" else list(weights)}
    if bias:
        params["b"] = biases if form == "stack" else list(biases)
    if not tied:
        params["head"] = numbers.randn(WIDTH, WIDTH).astype("f4") * 0.4

    def layer(x: jax.Array, own: Any) -> jax.Array:
        tell(jnp.mean(x), "layer")
        return jnp.tanh(x @ own["w"] + (own["b"] if bias else 0.0)) + x

    def loss(p: Any, part: Any) -> jax.Array:
        x = part[0] @ p["embed"]
        own = {name: p[name] for name in ("w", "b") if name in p}
        if form == "stack":
            x, _ = lax.scan(lambda x, w: (layer(hlorewrite.stage_layers(x, cut), w), None), x, own)
        else:
            for number in range(layers):
                x = hlorewrite.stage(x, starts.index(number) + 1) if number in starts else x
                x = layer(x, jax.tree.map(lambda leaf, n=number: leaf[n], own, is_leaf=lambda x: isinstance(x, list)))
        value = jnp.mean((x @ (p["embed"].T if tied else p["head"]) - part[1]) ** 2)
        tell(value, "loss")
        return value

    optimizer, by_place = random_optimizer(choose)
    result, flat = RESULTS[choose.choice(list(RESULTS))], choose.random() < 0.3

    def step(state: Any, batch: Any) -> Any:
        p, memory, average = state
        gradient = functools.partial(jax.value_and_grad(loss), p)
        (value, grads), each = _each_loss(gradient, batch, microbatches) if losses else (
            hlorewrite.mean_over_microbatches(gradient, batch, microbatches), ())
        updates, memory = optimizer.update(grads, memory, p)
        new = optax.apply_updates(p, updates)
        tell(optax.tree.norm(new), "update")
        average = new if copy == "same" else jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, average, new) \
            if copy == "average" else average
        made = (result(p, grads, value), each)
        return (new, memory, average, *made) if flat else ((new, memory, average), made)

    def called(state: Any, batch: Any) -> Any:
        out = step(state, batch)
        return (out[:3], out[3:]) if flat else out

    size = choose.choice([1, 2])
    options = {"meshes": [(size,)] * (stages // chunks), "axes": ("data",),
               "schedule": choose.choice(["interleaved-1f1b", "dualpipe-v"] if stages == 4 and chunks == 2 else
                                         ["dualpipe-v"] if chunks == 2 else  # interleaving wants m = 3k on 3 meshes
                                         ["1f1b", "gpipe", "eager-1f1b", "zb-h1", "zb-h2"])}
    if choose.random() < 0.7:
        options["donate_argnums"] = 0
    if choose.random() < 0.3:
        options["passes"] = ""
    state = (params, jax.tree.map(np.array, optimizer.init(params)),
             jax.tree.map(np.array, params) if copy != "none" else ())
    batch = tuple(numbers.randn(ROWS, WIDTH).astype("f4") for _ in range(2))
    return RandomPipeline(called, state, batch, options, by_place, told)


def _each_loss(gradient: Callable[[Any], Any], batch: Any, microbatches: int) -> tuple[Any, tuple[jax.Array, ...]]:
    """The mean loss and gradients, the loss of each micro-batch, and which is the largest."""
    parts = jax.tree.map(lambda x: jnp.swapaxes(x.reshape(-1, microbatches, x.shape[-1]), 0, 1), batch)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype),
                         jax.eval_shape(gradient, jax.tree.map(lambda x: x[0], parts)))

    def body(total: Any, part: Any) -> tuple[Any, jax.Array]:
        made = gradient(part)
        return jax.tree.map(jnp.add, total, made), made[0]

    total, each = lax.scan(body, zeros, parts)
    return jax.tree.map(lambda x: x / microbatches, total), (each, jnp.argmax(each))


def _equal(layers: int, stages: int) -> list[int]:
    """The layers with which the second, third, ... stage begins; the first ones are a layer longer."""
    each, rest = divmod(layers, stages)
    return [each * stage + min(stage, rest) for stage in range(1, stages)]


def check(seed: int) -> str:
    """Runs a seed; what is wrong with it, or nothing."""
    made = random_pipeline(seed)
    pipelined = hlorewrite.pipeline(made.step, **made.options)
    lowered = pipelined.lower(made.state, made.batch)
    said = _misplaced(made, lowered) if made.by_place else ""
    state, expected = made.state, made.state
    jitted = jax.jit(made.step)
    for _ in range(2):
        made.told.clear()
        state, result = pipelined(state, made.batch)
        told = sorted(made.told)
        made.told.clear()
        with jax.default_device(jax.local_devices()[0]):
            expected, wanted = jax.tree.map(np.asarray, jitted(expected, made.batch))
        jax.effects_barrier()
        if jax.process_count() == 1 and (len(told) != len(made.told) or not np.allclose(
                told, sorted(made.told), rtol=1e-3, atol=3e-5)):
            said += f" callbacks are given {told} and not {sorted(made.told)}"
    got = pipelined.fetch((state, result))
    for (path, value), want in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves((expected, wanted)),
                                   strict=True):
        if not np.allclose(value, want, rtol=1e-3, atol=3e-5):
            said += f" {jax.tree_util.keystr(path)} differs by {np.abs(np.asarray(value) - want).max()}"
    return said


def _misplaced(made: RandomPipeline, lowered: Any) -> str:
    """Meshes with more than 1.1 times the state of their parameters, or whose state moves."""
    parameters = len(jax.tree.leaves(made.state[0]))
    from hlorewrite.pipelines.mpmd.rows import row_parts

    program = lowered.data()
    groups = row_parts(lowered.module)[0]
    own: dict[str, int] = {}
    numbers: dict[str, int] = {}
    for number, group in enumerate(groups[:len(jax.tree.leaves(made.state))]):
        for place in group.positions:
            kind = program.types[program.arguments[place]]
            if number < parameters:
                own[kind.mesh] = own.get(kind.mesh, 0) + kind.bytes
            elif math.prod(kind.shape) == 1:
                numbers[kind.mesh] = numbers.get(kind.mesh, 0) + kind.bytes
    total = sum(each.nbytes for each in jax.tree.leaves(made.state) if each.size > 1)
    share = total / sum(each.nbytes for each in jax.tree.leaves(made.state[0]))
    said = ""
    for each in lowered.state():
        most = 1.1 * share * own.get(each.mesh, 0) + numbers.get(each.mesh, 0) + 64
        if max(each.before, each.after) > most:
            said += f" {each.mesh} holds {each.before} bytes before and {each.after} after, its share is {most:.0f}"
    return said


def main() -> int:
    """Runs seeds; in several processes each is started with its number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("processes", type=int, nargs="?", default=1)
    parser.add_argument("--process", type=int, default=-1)
    parser.add_argument("--port", type=int, default=0)
    given = parser.parse_args()
    if given.processes > 1 and given.process < 0:
        return _start(given)
    devices = 8 // given.processes
    jax.config.update("jax_num_cpu_devices", devices if given.processes == 1 else 2)
    if given.processes > 1:
        from hlorewrite.jaxbridge.processes.join import join

        join(f"127.0.0.1:{given.port}", processes=given.processes, process=given.process, timeout_s=120)
    wrong = 0
    for seed in range(given.first, given.first + given.count):
        try:
            if given.processes > 1 and not _fits(seed):
                continue
            said = check(seed)
        except Exception as error:
            said = f"{type(error).__name__} {error}"
            if given.processes > 1:
                print(seed, said, flush=True)
                raise
        wrong += bool(said)
        print(seed, said.strip() or "ok", flush=True)
    print(f"{given.count} seeds, {wrong} wrong", flush=True)
    return int(wrong > 0)


def _fits(seed: int) -> bool:
    """Whether the meshes of a seed are all devices of two processes: then both have a part."""
    meshes = random_pipeline(seed).options["meshes"]
    return sum(math.prod(mesh) for mesh in meshes) == 4


def _start(given: argparse.Namespace) -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = [str(given.first), str(given.count), str(given.processes), "--port", str(port)]
    started = [subprocess.Popen([sys.executable, __file__, *arguments, "--process", str(process)],
                                stdout=None if process == 0 else subprocess.DEVNULL)
               for process in range(given.processes)]
    return max(each.wait() for each in started)


if __name__ == "__main__":
    sys.exit(main())
