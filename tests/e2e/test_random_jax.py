"""Random JAX steps on eight devices through the named pipelines: what XLA computes stays, on each device."""

from __future__ import annotations

import os
import random
from typing import Any

import jax
import numpy as np
import pytest
from generators.structure.random_jax import random_step

import hlorewrite

PROGRAMS = 300 if os.environ.get("HLOREWRITE_NIGHTLY") == "1" else 3
PIPELINES = (("comm", ""), ("time", "h200:1x8"))
TOLERANCE = 2e-3  # gradients of gradients of sines; a wrong gradient is off by its own size


def _shards(values: Any) -> list[np.ndarray]:
    """What each device holds of each output."""
    return [np.asarray(shard.data) for value in jax.tree.leaves(values) for shard in value.addressable_shards]


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_steps(seed: int) -> None:
    """Original and rewritten, compiled by XLA for eight devices, on the same inputs."""
    step, arguments = random_step(random.Random(seed))
    expected = _shards(jax.jit(step)(*arguments))
    passes, topology = PIPELINES[seed % len(PIPELINES)]
    rewritten = hlorewrite.optimize(step, passes=passes, keep="always", topology=topology)
    for before, after in zip(expected, _shards(rewritten(*arguments)), strict=True):
        if np.isfinite(before).all():
            np.testing.assert_allclose(after, before, rtol=TOLERANCE, atol=TOLERANCE * max(1, np.abs(before).max()))
