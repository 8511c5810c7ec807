"""What is reported as saved on steps as Keras, NNX and Levanter lower them is what two whole compilations show."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import version as jaxlib_version

from hlorewrite.jaxbridge.baseline.measured import Measured, compiled
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import miscompile_workarounds, private
from hlorewrite.jaxbridge.xla.compile_for import devices_of_target
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.named import named_pipeline

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                reason="the CUDA compiler is not installed (extra: aot)")
WIDTH, MICRO_BATCHES = 64, 4


def shardings() -> tuple[NamedSharding, NamedSharding]:
    """Replicated, and split along the batch."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    return NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))


def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.mean(x ** 2)


def lowered(step: Callable[..., list[jax.Array]]) -> jax.stages.Lowered:
    whole, split = shardings()
    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32, sharding=whole)] * 3
    data = jax.ShapeDtypeStruct((MICRO_BATCHES, 32, WIDTH), jnp.float32, sharding=split)
    return jax.jit(step, out_shardings=whole, donate_argnums=0).lower(weights, data)


def keras_like() -> jax.stages.Lowered:
    """One batch a step, flat lists of variables, momentum: XLA alone sends each gradient once."""
    def step(weights: list[jax.Array], data: jax.Array) -> list[jax.Array]:
        grads = jax.grad(loss)(weights, data.reshape(-1, WIDTH))
        return [w - 0.1 * g for w, g in zip(weights, grads, strict=True)]
    return lowered(step)


def nnx_like() -> jax.stages.Lowered:
    """Micro-batches in a scan that carries the sum of gradients."""
    def step(weights: list[jax.Array], data: jax.Array) -> list[jax.Array]:
        def micro_batch(total: list, x: jax.Array) -> tuple[list, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(weights, x)), None
        total, _ = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, weights), data)
        return [w - 0.1 * g for w, g in zip(weights, total, strict=True)]
    return lowered(step)


def levanter_like() -> jax.stages.Lowered:
    """The same with a running mean, and the gradients constrained to the layout of the parameters."""
    whole, _ = shardings()

    def step(weights: list[jax.Array], data: jax.Array) -> list[jax.Array]:
        def micro_batch(mean: list, x: jax.Array) -> tuple[list, None]:
            grads = jax.lax.with_sharding_constraint(jax.grad(loss)(weights, x), whole)
            return jax.tree.map(lambda m, g: m + g / MICRO_BATCHES, mean, grads), None
        mean, _ = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, weights), data)
        return [w - 0.1 * g for w, g in zip(weights, mean, strict=True)]
    return lowered(step)


@pytest.mark.parametrize("lower", [keras_like, nnx_like, levanter_like])
def test_what_is_reported_is_what_two_compilations_show(lower: Callable[[], jax.stages.Lowered]) -> None:
    place = DeviceSet("gpu", tuple(devices_of_target(parse_target("h200:1x8"), 8, "test")),
                      {"xla_gpu_autotune_level": 0})
    module = clone_of(private.module_of(lower()), "step")
    made, _ = rewrite_step(module.clone(), StepOptions(as_passes(named_pipeline("comm"))), place)
    comparison = made.report.comparison
    if made.bytecode is None:  # nothing is reported as saved, though the module before the passes may send more
        assert made.report.after == made.report.before
    if comparison is None:  # no pass changed anything: on the step of Keras
        assert lower is keras_like
        return
    assert comparison.kept == (made.bytecode is not None)
    whole = (compiled(module, place, {}),
             compiled(made.module, place, miscompile_workarounds.options(jaxlib_version.__version_info__, "gpu")))
    assert figures(comparison.alone) == figures(whole[0])
    assert comparison.ours is not None
    if comparison.kept:
        assert figures(comparison.ours) == figures(whole[1])
        assert comparison.ours.step_s is not None and comparison.alone.step_s is not None
        assert comparison.ours.step_s <= comparison.alone.step_s * 1.002


def figures(side: Measured) -> tuple[int, int, int]:
    """What the comparison reports."""
    return side.calls, side.bytes, side.temp
