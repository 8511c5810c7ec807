"""Random loops whose devices may run them a different number of times, by XLA alone and rewritten.

Usage: ``python trips_worker.py BEGIN END``. A process of its own: a loop that XLA does not end stops all of it.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import hlorewrite

DEVICES = 8
PIPELINES = ("comm-shift", "inline,comm-shift", "comm-shift,rules", "rules,comm-shift", "collective-cse,comm-shift",
             "comm-shift,peel-last-micro-batch,comm-shift")
Fn = Callable[..., Any]


def unequal_bounds(own: Any, lengths: Any) -> dict[str, Any]:
    """Numbers of iterations that differ between devices, from the device's id and from data."""
    table = jnp.array([3, 0, 2, 5, 1, 4, 2, 0])
    return {"id": own, "next id": own + 1, "half": own // 2, "backwards": DEVICES - own, "remainder": (own * 3) % 5,
            "chosen": jnp.where(own > 3, 4, 1), "table": table[own],
            "float id": (own.astype(jnp.float32) * 0.5).astype(jnp.int32), "argument": lengths[0],
            "argument and id": lengths[0] + own % 2, "clamped": jnp.clip(own, 1, 6),
            "at least one": jnp.maximum(lengths[0], 1)}


def equal_bounds(own: Any, lengths: Any) -> dict[str, Any]:
    """Numbers of iterations that are equal, so that a loop may contain any collective."""
    return {"number": 4, "agreed": lax.pmax(lengths[0], "d"), "id cancels": own // DEVICES + 3,
            "sum of ids": lax.psum(own, "d") // 7}


def hoisted(x: Any, w: Any) -> dict[str, Fn]:
    """Collectives of what does not change in a loop, directly and through calls, branches, inner loops and sorts."""
    def inner(_: Any) -> Any:
        return lax.fori_loop(0, 3, lambda j, c: c + x * w[0], jnp.zeros_like(x))
    return {"mean": lambda i: lax.pmean(x, "d"), "sum": lambda i: lax.psum(x * 2, "d"),
            "called": lambda i: jax.jit(lambda v: lax.psum(v + 1, "d"))(x),
            "sorted": lambda i: lax.pmean(jnp.sort(x), "d"),
            "maximum": lambda i: lax.pmax(x, "d"), "product": lambda i: lax.pmean(w @ x, "d"),
            "branch": lambda i: lax.psum(jnp.where(w[0, 0] > 0, x, -x), "d"),
            "half of it": lambda i: lax.psum(x[: x.shape[0] // 2], "d").sum(),
            "gathered": lambda i: lax.all_gather(x, "d").sum(0), "inner loop": lambda i: lax.pmean(inner(i), "d")}


def changing(x: Any, w: Any) -> dict[str, Fn]:
    """Collectives of what changes; only loops of equal trips may hold them."""
    return {"by turn": lambda i: lax.pmean(x * i, "d"), "turned": lambda i: lax.psum(jnp.sin(x + i), "d"),
            "called": lambda i: jax.jit(lambda v, k: lax.pmean(v * k, "d"))(x, i)}


def accumulated(rng: random.Random, x: Any, w: Any, own: Any, lengths: Any) -> tuple[str, Any]:
    """One loop, and what it is made of."""
    unequal = rng.random() < 0.75
    bounds = (unequal_bounds if unequal else equal_bounds)(own, lengths)
    bound = rng.choice(sorted(bounds))
    terms = hoisted(x, w) if unequal else {**hoisted(x, w), **changing(x, w)}
    term = rng.choice(sorted(terms))
    form = rng.choice(("add", "add", "mean", "scaled", "while"))
    start = rng.choice((jnp.zeros_like(x), x))

    def step(i: Any, c: Any) -> Any:
        new = terms[term](i)
        return c * 0.5 + new if form == "scaled" else c + (new / 4 if form == "mean" else new)
    if form == "while":
        result = lax.while_loop(lambda s: s[0] < bounds[bound], lambda s: (s[0] + 1, step(s[0], s[1])), (0, start))[1]
    else:
        result = lax.fori_loop(0, bounds[bound], step, start)
    return f"{bound} × {term} × {form}", result


def main(begin: int, end: int) -> int:
    """Prints each program whose values differ; returns how many did."""
    mesh = jax.make_mesh((DEVICES,), ("d",), axis_types=(AxisType.Auto,))
    x, w = np.linspace(-1, 2, DEVICES * 4, dtype=np.float32), np.linspace(-0.5, 1, 16, dtype=np.float32).reshape(4, 4)
    lengths = np.array([2, 0, 3, 1, 4, 2, 0, 5], np.int32)
    wrong = moved = 0
    for seed in range(begin, end):
        names: list[str] = []

        def program(x: Any, w: Any, lengths: Any, seed: int = seed, names: list[str] = names) -> tuple[Any, ...]:
            rng, results = random.Random(seed), []
            names.clear()
            for _ in range(3):
                name, result = accumulated(rng, x, w, lax.axis_index("d"), lengths)
                names.append(name)
                results.append(result)
            return tuple(results)
        step = jax.jit(jax.shard_map(program, mesh=mesh, in_specs=(P("d"), P(), P("d")), out_specs=P("d"),
                                     check_vma=False))
        expected = step(x, w, lengths)
        rewritten = hlorewrite.optimize(step, passes=PIPELINES[seed % len(PIPELINES)], keep="always")
        actual = rewritten(x, w, lengths)
        moved += "0 rewrites" not in str(rewritten.lower(x, w, lengths).report)
        for name, one, other in zip(names, expected, actual, strict=True):
            if not np.allclose(one, other, rtol=1e-4, atol=1e-4):
                wrong += 1
                print(f"seed {seed}, {PIPELINES[seed % len(PIPELINES)]}, {name}: {one} and not {other}", flush=True)
    print(f"{end - begin} programs, {wrong} wrong", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
