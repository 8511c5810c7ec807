"""A decorated step that was lowered for described GPUs simulates its own schedule, and that of the user's module."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.target import device_topology, parse_target


def lowered_for(devices: list, **options: Any):
    """Gradients averaged in every iteration of a loop, lowered for some devices."""
    mesh = Mesh(np.array(devices), ("data",))

    def step(w: jax.Array, batches: jax.Array) -> jax.Array:
        def turn(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
            return total + lax.pmean(jnp.tanh(batch).T @ batch, "data"), None
        return w - lax.scan(turn, jnp.zeros_like(w), batches)[0]

    sharded = jax.shard_map(step, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=P(), check_vma=False)
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))
                 for shape, spec in (((256, 256), P()), ((8, 512, 256), P(None, "data")))]
    return hlorewrite.optimize(jax.jit(sharded), **options).lower(*arguments)


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None, reason="needs jax-cuda13-plugin")
def test_both_modules_are_compiled_and_simulated() -> None:
    target = parse_target("h200:1x8")
    lowered = lowered_for(private.described_gpu_devices("h200", target.description, 1, 8))
    options = {"xla_gpu_autotune_level": "0"}
    ours, xla = (lowered.timeline(original=alone, compiler_options=options) for alone in (False, True))
    assert ours.topology == xla.topology == "h200:1x8" and ours.complete and xla.complete
    assert sum(one.trips or 0 for one in ours.collectives) == 1
    assert sum(one.trips or 0 for one in xla.collectives) == 8
    assert ours.exposed_s < xla.exposed_s and ours.memory_bytes and "exposed" in str(ours)
    named = lowered.timeline("b200:1x8", slowdown=0.0, compiler_options=options)
    assert (named.topology, named.slowdown) == ("b200:1x8", 0.0)


def test_a_step_for_cpus_is_refused() -> None:
    with pytest.raises(UsageError, match="lowered for cpu"):
        lowered_for(jax.devices("cpu")[:8]).timeline()


@dataclass(frozen=True)
class NamedDevice:
    """What a topology is read off."""

    device_kind: str
    process_index: int


@pytest.mark.parametrize(("kind", "per_process", "count", "spec"), [
    ("NVIDIA H200 141GB HBM3e", 8, 16, "h200:2x8"), ("NVIDIA H100 80GB HBM3", 1, 16, "h100:2x8"),
    ("NVIDIA H100 80GB HBM3", 4, 8, "h100:2x4"), ("NVIDIA A100-SXM4-80GB", 2, 2, "a100:1x2"), ("cpu", 8, 8, None)])
def test_topology_of_devices(kind: str, per_process: int, count: int, spec: str | None) -> None:
    devices = [NamedDevice(kind, number // per_process) for number in range(count)]
    found = device_topology(devices)
    assert (found and found.spec) == spec


def test_the_pipeline_time_on_cpus_and_on_described_gpus() -> None:
    """On CPU nothing runs concurrently with a collective, so the modules are those of ``comm``; no such cluster is an
    error."""
    def texts(**options: Any) -> str:
        return lowered_for(jax.devices("cpu")[:8], keep="always", **options).as_text()

    plain = texts(passes="comm")
    assert texts(passes="time") == texts(passes="time", topology="h200:1x8") == plain
    with pytest.raises(UsageError, match="h2000"):
        texts(passes="time", topology="h2000:1x8")


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None, reason="needs jax-cuda13-plugin")
def test_the_pipeline_time_takes_the_cluster_of_the_devices() -> None:
    target = parse_target("h200:1x8")
    devices = private.described_gpu_devices("h200", target.description, 1, 8)
    text = lowered_for(devices, passes="comm,peel-last-micro-batch{min-gain=0}", keep="always").as_text()
    assert "hlorewrite.peeled" in text
