"""Random JAX steps on eight devices: what XLA computes of them stays, on each device, and so does what they call."""

from __future__ import annotations

import os
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from generators.structure.random_blocks import random_blocks
from generators.structure.random_effects import HostLog, random_calling_step
from generators.structure.random_jax import random_step
from generators.structure.random_updates import random_update

import hlorewrite

PROGRAMS = 300 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 3
PIPELINES = (("comm", ""), ("time", "h200:1x8"))
CALLING = (("comm", ""), ("time", "h200:1x8"), ("comm-shift,peel-last-micro-batch", ""),
           ("comm-shift,rotate-collectives", ""), ("sink-reductions", ""), ("hoist-collectives,collective-cse", ""),
           ("sequence-parallel", ""))
TOLERANCE = 2e-3  # gradients of gradients of sines; a wrong gradient is off by its own size
BF16_TOLERANCE = 4e-2


def _shards(values: Any) -> list[np.ndarray]:
    """What each device holds of each output."""
    return [np.asarray(shard.data) for value in jax.tree.leaves(values) for shard in value.addressable_shards]


def _compare(before: np.ndarray, after: np.ndarray) -> None:
    tolerance = BF16_TOLERANCE if before.dtype == jnp.bfloat16 else TOLERANCE
    before, after = before.astype(np.float32), after.astype(np.float32)
    if np.isfinite(before).all():
        np.testing.assert_allclose(after, before, rtol=tolerance, atol=tolerance * max(1, np.abs(before).max()))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_steps(seed: int) -> None:
    """Original and rewritten, compiled by XLA for eight devices, on the same inputs."""
    step, arguments = random_step(random.Random(seed))
    expected = _shards(jax.jit(step)(*arguments))
    passes, topology = PIPELINES[seed % len(PIPELINES)]
    rewritten = hlorewrite.optimize(step, passes=passes, keep="always", topology=topology)
    for before, after in zip(expected, _shards(rewritten(*arguments)), strict=True):
        _compare(before, after)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_infinities_and_not_a_numbers(seed: int) -> None:
    """One element of one device is no number: the same elements of the results are."""
    rng = random.Random(seed)
    step, (data, *others) = random_step(rng)
    data[rng.randrange(data.shape[0]), rng.randrange(data.shape[1]), rng.randrange(data.shape[2])] = rng.choice(
        (np.nan, np.inf, -np.inf, -0.0))
    expected = _shards(jax.jit(step)(data, *others))
    rewritten = hlorewrite.optimize(step, passes="comm", keep="always")
    for before, after in zip(expected, _shards(rewritten(data, *others)), strict=True):
        np.testing.assert_array_equal(np.isfinite(after), np.isfinite(before))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_callbacks(seed: int) -> None:
    """Each callback runs as often on each device as in the original, with the same values."""
    log = HostLog()
    step, arguments = random_calling_step(random.Random(seed), log)
    try:
        expected, said = log.of(jax.jit(step), arguments)
    except NotImplementedError as unsupported:
        pytest.skip(f"JAX does not compile this step: {unsupported}")
    passes, topology = CALLING[seed % len(CALLING)]
    result, again = log.of(hlorewrite.optimize(step, passes=passes, keep="always", topology=topology), arguments)
    for before, after in zip(_shards(expected), _shards(result), strict=True):
        _compare(before, after)
    assert [call[:2] for call in again] == [call[:2] for call in said]
    np.testing.assert_allclose([call[2] for call in again], [call[2] for call in said], rtol=5e-3, atol=5e-3)


@pytest.mark.filterwarnings("ignore:.*shards no optimizer state")
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_updates(seed: int) -> None:
    """Optimizers whose state is sharded compute what they computed of whole tensors."""
    step, arguments = random_update(random.Random(seed))
    sharded = hlorewrite.optimize(step, shard_update="data")(*arguments)
    for before, after in zip(jax.tree.leaves(jax.jit(step)(*arguments)), jax.tree.leaves(sharded), strict=True):
        _compare(np.asarray(before), np.asarray(after))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_blocks(seed: int) -> None:
    """Tensor-parallel blocks between which devices keep shards."""
    rng = random.Random(seed)
    run, arguments = random_blocks(rng)
    rewritten = hlorewrite.optimize(run, passes=f"sequence-parallel{{extra={rng.choice((0.004, 0.3))}}}",
                                    keep="always")
    for before, after in zip(_shards(jax.jit(run)(*arguments)), _shards(rewritten(*arguments)), strict=True):
        _compare(before, after)
