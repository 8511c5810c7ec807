"""Remarks of decorated steps name the cluster that was named, or say that one is assumed."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from pipeline_steps import batch, mlp_loss, train_step, weights

import hlorewrite
from hlorewrite.passmanager.base import PassContext
from hlorewrite.pipelines.decorator import lowered as pipelined_lowered

ASSUMED = "on h100:1x8 (assumed, no cluster is named)"


def fused(topology: str) -> str:
    """The remark about two sums that share a call."""
    def step(w: jax.Array, v: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return lax.psum(x.T @ (x @ w), "data"), lax.psum(x.T @ (x @ v), "data")

    mesh = Mesh(np.array(jax.devices("cpu")[:8]), ("data",))
    made = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("data")), out_specs=P(), check_vma=False))
    arrays = jnp.ones((8, 8)), jnp.ones((8, 8)), jnp.ones((16, 8))
    report = hlorewrite.optimize("comm", topology=topology, keep="always")(made).lower(*arrays).report
    (remark,) = [one.sentence for one in report.remarks if one.rule == "all-reduce-fusion" and one.kind == "applied"]
    return remark


def test_on_cpu_the_cluster_is_assumed_and_said_to_be() -> None:
    assert fused("").endswith(ASSUMED)
    assert fused("h200:2x4").endswith("on h200:2x4")


@pytest.mark.parametrize("topology", ["", "h200:1x8"])
def test_the_cluster_of_a_pipeline_is_that_of_its_passes(topology: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters, run = list[str](), pipelined_lowered.run_passes

    def recorded(module: object, passes: object, ctx: PassContext) -> bool:
        clusters.append(ctx.topology)
        return run(module, passes, ctx)  # type: ignore[arg-type]

    monkeypatch.setattr(pipelined_lowered, "run_passes", recorded)
    hlorewrite.pipeline(train_step(mlp_loss), meshes=[(2,), (2,)], schedule="1f1b", microbatches=4,
                        topology=topology).lower(weights(2), *batch())
    assert clusters == [topology, topology]
