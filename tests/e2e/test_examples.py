"""Every example: same values as plain jax.jit on eight CPU devices, and the reductions leave the loop."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import jax
import numpy as np
import pytest

import hlorewrite
from hlorewrite.hlo.collectives import collectives, executed_bytes
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.target import parse_target


def compare(step: Any, arguments: tuple, tolerance: float = 2e-5) -> Any:
    """Runs both on the same arguments; returns the report."""
    optimized = hlorewrite.optimize(step, check="first_call")
    report = optimized.lower(*arguments).report
    expected = step(*jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, arguments))
    made = optimized(*arguments)
    assert jax.tree.structure(made) == jax.tree.structure(expected)
    for new, old in zip(jax.tree.leaves(made), jax.tree.leaves(expected), strict=True):
        scale = max(1e-6, float(np.abs(np.asarray(old)).max(initial=0)))
        np.testing.assert_allclose(np.asarray(new), np.asarray(old), atol=tolerance * scale, rtol=0)
        assert new.dtype == old.dtype
    return report


# MultiSteps decides in each micro-batch whether to update; what is sent less on one side of that branch may be sent more
# on the other, so by default its reductions stay.
@pytest.mark.parametrize(("name", "needs", "share"), [
    ("optax_accumulate", "optax", 4), ("optax_multisteps", "optax", 1), ("flax_nnx", "flax", 4),
    ("equinox_mlp", "equinox", 4)])
def test_example(name: str, needs: str, share: int):
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    step, arguments = importlib.import_module(name).make_step()
    report = compare(step, arguments)
    before, after = (sum(side.values()) for side in (report.executed_bytes_before, report.executed_bytes_after))
    assert before >= share * after * 0.99


def test_the_gpt_step_reduces_each_gradient_once():
    gpt = importlib.import_module("gpt")
    cfg = gpt.SIZES["tiny"]
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    tokens = np.random.default_rng(0).integers(0, cfg.vocab, (cfg.micro_batches, cfg.batch, cfg.seq + 1), np.int32)
    report = compare(gpt.make_step(cfg, mesh), (gpt.init_state(cfg), tokens), tolerance=1e-4)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(gpt.init_state(cfg)["params"]))
    assert report.executed_bytes_before == {"all_reduce": cfg.micro_batches * (size + 4)}
    assert report.executed_bytes_after == {"all_reduce": size + 4}


def trained(state: dict) -> dict:
    """A state of AdamW whose second moments are not zero.

    From zero, the first update divides a gradient by its own magnitude: an element near zero then shows its rounding,
    which depends on the CPU, as a large error of the parameter.
    """
    return {**state, "square": jax.tree.map(lambda leaf: leaf + 1e-4, state["square"]), "count": state["count"] + 100}


@pytest.mark.parametrize(("layout", "share"), [("dp", 4), ("dp_tp", 1.2), ("fsdp", 1)])
def test_auto_sharded_gpt_keeps_its_values_and_communicates_no_more(layout: str, share: float):
    gpt, auto_gpt = importlib.import_module("gpt"), importlib.import_module("auto_gpt")
    cfg = gpt.SIZES["tiny"]
    mesh = auto_gpt.make_mesh(layout)
    state, tokens = auto_gpt.shardings(cfg, mesh)
    data = np.random.default_rng(0).integers(0, cfg.vocab, (cfg.micro_batches, cfg.batch, cfg.seq + 1), np.int32)
    arguments = (jax.device_put(trained(gpt.init_state(cfg)), state), jax.device_put(data, tokens))
    report = compare(auto_gpt.make_step(cfg, mesh), arguments)
    assert report.exposed
    before, after = (sum(side.values()) for side in (report.executed_bytes_before, report.executed_bytes_after))
    assert before >= share * after


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                    reason="the CUDA compiler is not installed (extra: aot)")
@pytest.mark.parametrize("name", ["gpt", "auto_gpt"])
def test_the_step_for_eight_described_h200s_reduces_each_gradient_once(name: str):
    gpt, module = importlib.import_module("gpt"), importlib.import_module(name)
    target = parse_target("h200:1x8")
    devices = private.described_gpu_devices("h200", target.description, 1, 8)
    mesh = jax.sharding.Mesh(np.array(devices), ("data",))
    cfg = gpt.SIZES["tiny"]
    step, arguments = module.make_step(cfg, mesh), module.arguments(cfg, mesh)
    before, after = (f.lower(*arguments).compile() for f in (step, hlorewrite.optimize(step)))
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(gpt.init_state(cfg)["params"]))
    assert executed_bytes(collectives(after.as_text())) == {"all-reduce": size + 4}
    assert executed_bytes(collectives(before.as_text()))["all-reduce"] > 4 * size
    old, new = (m.argument_size_in_bytes + m.output_size_in_bytes + m.temp_size_in_bytes - m.alias_size_in_bytes
                for m in (before.memory_analysis(), after.memory_analysis()))
    assert new <= 1.02 * old
