"""A decorated step that is dropped is freed, with all it closes over, as one of ``jax.jit`` is."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import hlorewrite


class Data(np.ndarray):
    """Data of a user, which can be referred to weakly."""


def dropped(run: str, options: dict[str, Any]) -> list[weakref.ref[Any]]:
    """Makes a step that closes over data and runs it; what is left are weak references to both."""
    data = np.ones(3, np.float32).view(Data)
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))

    def local(weights: jax.Array, batches: jax.Array) -> jax.Array:
        def body(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
            return total + jax.lax.pmean(weights * batch.sum() * float(data[0]), "data"), None
        return jax.lax.scan(body, jnp.zeros_like(weights), batches)[0]

    step = hlorewrite.optimize(jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=P(),
                                                     check_vma=False)), **options)
    arguments = jnp.ones(8), jnp.ones((2, 4))
    if run == "method":
        class DroppedTrainer:
            train = step
        DroppedTrainer.train(*arguments)
    elif run == "lower":
        step.lower(*arguments).compile()
    else:
        for _ in range(3):
            step(*arguments)
    return [weakref.ref(data), weakref.ref(step)]


@pytest.mark.parametrize(("run", "options"), [
    ("call", {}), ("call", {"keep": "always"}), ("call", {"check": "first_call"}), ("call", {"on_error": "fallback"}),
    ("lower", {}), ("method", {}),
], ids=lambda each: str(each))
def test_a_dropped_step_is_freed(run: str, options: dict[str, Any]) -> None:
    left = dropped(run, options)
    jax.clear_caches()  # jax.jit keeps what it traced until then
    for _ in range(3):
        gc.collect()
    assert [each() for each in left] == [None, None]
