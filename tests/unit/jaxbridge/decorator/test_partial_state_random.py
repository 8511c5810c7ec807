"""Random steps that accumulate across calls: with local sums they compute what they compute without."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.jaxbridge.decorator.state.new_state import is_partial

CALLS, SIDE = 7, 8
SEEDS = range(24)

ACCUMULATED: dict[str, Callable[..., jax.Array]] = {
    "sum": lambda a, g, c: a + g, "decayed": lambda a, g, c: 0.9 * a + g, "mean": lambda a, g, c: a + (g - a) / (c + 1),
    "scaled": lambda a, g, c: a - 2 * g, "product": lambda a, g, c: a + g * a,
    "maximum": lambda a, g, c: jnp.maximum(a, g), "twice": lambda a, g, c: a + g + g}
STARTED_OVER: dict[str, Callable[..., jax.Array]] = {
    "never": lambda last, t: t, "where": lambda last, t: jnp.where(last, 0.0, t),
    "product": lambda last, t: (1 - last) * t,
    "branch": lambda last, t: jax.lax.cond(last, jnp.zeros_like, lambda t: t, t),
    "at one": lambda last, t: jnp.where(last, 1.0, t), "at half": lambda last, t: jnp.where(last, 0.5 * t, t)}
UPDATES: dict[str, Callable[..., jax.Array]] = {
    "branch": lambda last, p, t, f: jax.lax.cond(last, lambda p, t: p - 0.1 * f(t), lambda p, t: p, p, t),
    "where": lambda last, p, t, f: jnp.where(last, p - 0.1 * f(t), p),
    "product": lambda last, p, t, f: p - 0.1 * last * f(t), "each call": lambda last, p, t, f: p - 0.01 * f(t),
    "none": lambda last, p, t, f: p}
FUNCTIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "itself": lambda t: t, "tanh": jnp.tanh, "by its norm": lambda t: t / (jnp.linalg.norm(t) + 1e-3),
    "by its size": lambda t: t * jnp.abs(t)}


@dataclass(frozen=True)
class RandomStep:
    """One to three parameters, each with a sum of its own.

    Attributes:
      seed: of the choices; steps of even seeds have their reductions written out.
    """

    seed: int

    def jitted(self, mesh: Any) -> Any:
        """The step."""
        draw = random.Random(self.seed)
        tensors = range(draw.randint(1, 3))
        choices = [tuple(draw.choice(list(table.values())) for table in (ACCUMULATED, STARTED_OVER, UPDATES, FUNCTIONS))
                   for _ in tensors]
        every, reads_new = draw.randint(2, 4), draw.random() < 0.3
        by_hand = self.seed % 2 == 0

        def step(state: Any, x: jax.Array) -> Any:
            params, totals, calls = state
            last, moved, kept = calls == every - 1, [], []
            for p, a, (accumulated, over, update, function) in zip(params, totals, choices, strict=True):
                g = jax.grad(lambda p: jnp.mean(jnp.tanh(x @ p) ** 2))(p)
                total = accumulated(a, jax.lax.pmean(g, "data") if by_hand else g, calls)
                moved.append(update(last, p, total, function))
                kept.append(over(last, total))
            if reads_new:
                moved[0] = moved[0] + 0.01 * jnp.where(last, kept[-1], 0.0)
            return moved, kept, jnp.where(last, 0, calls + 1)
        if by_hand:
            return jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("data")), out_specs=P(), check_vma=False))
        return jax.jit(step, out_shardings=NamedSharding(mesh, P()))

    def arguments(self, mesh: Any) -> tuple[Any, jax.Array]:
        """State, and a batch."""
        draw = np.random.default_rng(self.seed)
        count = random.Random(self.seed).randint(1, 3)
        params = [jnp.asarray(0.3 * draw.normal(size=(SIDE, SIDE)), jnp.float32) for _ in range(count)]
        state = params, [jnp.zeros((SIDE, SIDE)) for _ in range(count)], jnp.int32(0)
        rows = draw.normal(size=(32, SIDE)).astype(np.float32)
        return jax.device_put(state, NamedSharding(mesh, P())), jax.device_put(rows, NamedSharding(mesh, P("data")))


def kept_apart(step: RandomStep) -> bool:
    """Runs a step with and without local sums; whether there are any."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    plain = step.jitted(mesh)
    partial = hlorewrite.optimize(plain, partial_state="data")
    expected, x = step.arguments(mesh)
    found = expected
    for call in range(CALLS):
        expected, found = plain(expected, x + call), partial(found, x + call)
        for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(partial.whole(found)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
    return any(map(is_partial, jax.tree.leaves(found, is_leaf=is_partial)))


@pytest.mark.filterwarnings("ignore:.*keeps no local sums")
@pytest.mark.parametrize("part", ["few", "many"])
def test_random_steps(part: str) -> None:
    seeds = SEEDS[:4] if part == "few" else SEEDS[4:]
    kept = sum(kept_apart(RandomStep(seed)) for seed in seeds)
    assert part == "few" or len(seeds) // 4 < kept < len(seeds)
