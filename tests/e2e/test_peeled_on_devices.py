"""A step whose number of micro-batches is a value at run time, peeled: what eight CPU devices compute."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.ir.load import load
from hlorewrite.ir.module import Format
from hlorewrite.ir.save import emit
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline


def gradients(weights: jax.Array, x: jax.Array) -> jax.Array:
    """Averaged over the devices."""
    return jax.lax.pmean(jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(weights), "data")


def counted_up(weights: jax.Array, batches: jax.Array, n: jax.Array) -> jax.Array:
    """``fori_loop`` up to n."""
    return jax.lax.fori_loop(0, n, lambda i, total: total + gradients(weights, batches[i]), jnp.zeros_like(weights))


def counted_down(weights: jax.Array, batches: jax.Array, n: jax.Array) -> jax.Array:
    """``while_loop`` from n down to zero."""
    return jax.lax.while_loop(lambda c: c[1] > 0, lambda c: (c[0] + gradients(weights, batches[c[1] - 1]), c[1] - 1),
                              (jnp.zeros_like(weights), n))[0]


@pytest.mark.parametrize("form", [counted_up, counted_down])
def test_as_often_as_an_argument_says(form, tmp_path: Path) -> None:
    mesh = Mesh(np.array(jax.devices()[:8]), ("data",))
    specs = (P(), P(None, "data"), P())
    step = jax.jit(partial(jax.shard_map, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(form))
    random = np.random.default_rng(3)
    values = (random.standard_normal((4, 4), np.float32), random.standard_normal((5, 16, 4), np.float32))
    placed = [jax.device_put(value, NamedSharding(mesh, spec)) for value, spec in zip(values, specs, strict=False)]
    counts = [jax.device_put(np.int32(n), NamedSharding(mesh, P())) for n in (0, 1, 2, 5)]
    path = tmp_path / "step.export"
    path.write_bytes(jax.export.export(step, platforms=("cpu",))(*placed, counts[0]).serialize())
    module = load(str(path))
    pipeline = parse_pipeline("comm-shift,peel-last-micro-batch")
    assert run_passes(module, pipeline, PassContext(ignore_cost=True, topology="h200:1x8"))
    assert "hlorewrite.peeled" in module.text()
    peeled = jax.jit(jax.export.deserialize(bytearray(emit(module, Format.EXPORT))).call)
    for n in counts:
        np.testing.assert_allclose(peeled(*placed, n), step(*placed, n), rtol=1e-5, atol=1e-6)
