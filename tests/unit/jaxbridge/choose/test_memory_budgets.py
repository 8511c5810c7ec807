"""Memory budgets of steps: how they are written, ``auto``, and what is not possible."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.cost import topology
from hlorewrite.cost.cluster.topology_file import SHIPPED
from hlorewrite.errors import UsageError
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline import memory_grant as granting
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.step.notices import HlorewriteWarning
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet

GIB = 1 << 30

ARGUMENTS = (jax.ShapeDtypeStruct((64, 64), jnp.float32), jax.ShapeDtypeStruct((4, 32, 64), jnp.float32))


def accumulating() -> Any:
    """Gradients averaged in a loop over micro-batches."""
    def local(w: jax.Array, batches: jax.Array) -> jax.Array:
        def micro_batch(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
            return total + jax.lax.pmean(batch.T @ jnp.tanh(batch @ w), "data"), None
        return w - jax.lax.scan(micro_batch, jnp.zeros_like(w), batches)[0]

    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=P(), check_vma=False))


def test_the_budget_auto_is_what_the_original_leaves_free_of_the_described_device(tmp_path: Path) -> None:
    """It is spent and shown; a plan records it, and replays it."""
    plan = tmp_path / "step.plan"
    for said in ("made and written", "replayed"):
        report = hlorewrite.optimize(accumulating(), passes="comm-shift", memory_budget="auto",
                                     topology="h200:1x8", plan=plan).lower(*ARGUMENTS).report
        assert report.plan.startswith(said)
        assert report.budget.startswith("memory budget 106.67 GiB: 80% of 140.35 GiB of one GPU of h200:1x8, less ")
        assert report.rounding is not None and report.rounding.changed
    spent = json.loads(plan.read_text())["decision"]["memory"]
    assert 0 < 0.95 * 0.8 * topology("h200:1x8").memory_bytes - int(spent) < 1e6


@pytest.mark.parametrize(("state", "temporaries", "left"), [(70, 0.01, 0.95 * (112 - 70) - 0.01), (0, 100, 6.4),
                                                            (70, 40, 0), (113, 0, 0)])
def test_arguments_are_counted_once(state: float, temporaries: float, left: float, tmp_path: Path,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a device of 140 GiB, sizes in GiB."""
    cluster = tmp_path / "round.toml"
    shipped = (SHIPPED / "h200.toml").read_text()
    cluster.write_text(re.sub(r"(?m)^memory_bytes *=.*$", f"memory_bytes = {float(140 * GIB)}", shipped))
    alone = Measured(1, 1, 1, int(temporaries * GIB), 0.0, "", memory=int((state + temporaries) * GIB))
    monkeypatch.setattr(granting, "scheduled", lambda *_: (alone, None))
    module = parse("module {}", name="step.mlir")
    grant = granting.granted("auto", module, DeviceSet("gpu"), f"{cluster}:1x8")
    assert grant.bytes == pytest.approx(left * GIB, rel=1e-6)


@pytest.mark.parametrize(("budget", "cluster", "sentence"), [
    ("auto", "", 'memory_budget="auto" needs to know the devices; name the cluster'),
    ("8TiB", "h200:1x8", "a memory budget of 8.00 TiB is more than one GPU of h200:1x8 has"),
])
def test_a_step_whose_budget_is_not_possible_runs_as_it_came(budget: str, cluster: str, sentence: str) -> None:
    step = hlorewrite.optimize(accumulating(), passes="comm-shift", memory_budget=budget, topology=cluster)
    with pytest.warns(HlorewriteWarning, match=sentence):
        assert not step.lower(*ARGUMENTS).report.changed


@pytest.mark.parametrize(("budget", "sentence"), [("8", "has no unit"), (-1, "is negative"), ("many", "many")])
def test_budgets_that_cannot_be(budget: str | int, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        hlorewrite.optimize(lambda x: x, memory_budget=budget)
