"""Layers that read one mask, rotated around the gathers of their weights: what eight CPU devices compute."""

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
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline


def step(weights: jax.Array, batches: jax.Array) -> jax.Array:
    """Micro-batches in one loop, layers in another; 16 heads read the same mask."""
    def micro_batch(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
        mask = jnp.broadcast_to(jnp.arange(8)[:, None] >= jnp.arange(8)[None, :], (16, 8, 8))

        def layer(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, None]:
            full = jax.lax.all_gather(weight, "data", tiled=True)
            return jnp.tanh(jnp.where(mask, x @ full, -1.0)), None

        return total + jax.lax.pmean(jax.lax.scan(layer, x, weights)[0], "data"), None

    return jax.lax.scan(micro_batch, jnp.zeros((16, 8, 8)), batches)[0]


@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize("layers", [2, 5])
def test_the_same_bits(layers: int, micro_batches: int, tmp_path: Path) -> None:
    mesh = Mesh(np.array(jax.devices()[:8]), ("data",))
    specs = (P(None, "data"), P(None, "data"))
    compiled = jax.jit(partial(jax.shard_map, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)(step))
    random = np.random.default_rng(5)
    values = (random.standard_normal((layers, 8, 8), np.float32),
              random.standard_normal((micro_batches, 128, 8, 8), np.float32))
    placed = [jax.device_put(value, NamedSharding(mesh, spec)) for value, spec in zip(values, specs, strict=True)]
    path = tmp_path / "step.export"
    path.write_bytes(jax.export.export(compiled, platforms=("cpu",))(*placed).serialize())
    module = load(str(path))
    assert run_passes(module, parse_pipeline("rotate-collectives"), PassContext(ignore_cost=True, topology="h200:1x8"))
    barriers = [op for op in View(module).ops("stablehlo.optimization_barrier") if len(op.operands) == 1]
    assert [str(op.operands[0].type) for op in barriers] == ["tensor<8x8xi1>"]
    rotated = jax.jit(jax.export.deserialize(bytearray(emit(module, Format.EXPORT))).call)
    np.testing.assert_array_equal(rotated(*placed), compiled(*placed))
