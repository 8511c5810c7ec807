"""Steps with sharded parameters, decorated with a memory budget."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from against_xla_programs import programs
from fsdp_example import StackedModel, _step
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.jaxbridge.choose.chosen_step import replayed_step, rewrite_step
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_for import devices_of_target
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.named import named_pipeline

MODEL = StackedModel(layers=2, width=16, hidden=32, micro_batches=3, rows=1, length=2)


def by_hand() -> tuple:
    """A step that gathers each layer for each use, and its arguments on eight devices."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    sharded = (P(None, "data", None),) * 2
    step = jax.jit(jax.shard_map(lambda params, batches: _step("A", params, batches), mesh=mesh,
                                 in_specs=(sharded, P(None, "data")), out_specs=sharded, check_vma=False))
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = (MODEL.layers, MODEL.width, MODEL.hidden), (MODEL.layers, MODEL.hidden, MODEL.width)
    params = tuple(jax.device_put(0.1 * jax.random.normal(key, shape), NamedSharding(mesh, spec))
                   for key, shape, spec in zip(keys, shapes, sharded, strict=False))
    batches = jax.random.normal(keys[2], (MODEL.micro_batches, MODEL.rows * 8, MODEL.length, MODEL.width))
    return step, params, jax.device_put(batches, NamedSharding(mesh, P(None, "data")))


def by_jit() -> tuple:
    """The same step sharded by annotations: XLA's partitioner writes gathers and scatters."""
    _, params, batches = by_hand()

    def loss(params: tuple, x: jax.Array) -> jax.Array:
        h, _ = jax.lax.scan(lambda h, w: (h + jnp.tanh(h @ w[0]) @ w[1], None), x, params)
        return jnp.mean((h - x) ** 2)

    def step(params: tuple, batches: jax.Array) -> tuple:
        def micro_batch(total: tuple, x: jax.Array) -> tuple:
            x = jax.lax.with_sharding_constraint(x, NamedSharding(x_mesh, P("data")))
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, x)), None
        total, _ = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), batches)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, total)

    x_mesh = params[0].sharding.mesh
    return jax.jit(step, out_shardings=tuple(p.sharding for p in params)), params, batches


@pytest.mark.parametrize("make", [by_hand, by_jit])
def test_parameters_are_gathered_once_within_a_budget(make) -> None:
    step, params, batches = make()
    rewritten = hlorewrite.optimize(step, passes="comm", memory_budget="1MiB")
    report = rewritten.lower(params, batches).report
    assert any("gathered once before the loop" in remark.sentence for remark in report.remarks)
    assert report.comparison is not None and report.comparison.kept, report.comparison
    assert report.comparison.ours.bytes < 0.7 * report.comparison.alone.bytes
    expected, found = step(params, batches), rewritten(params, batches)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)


def test_without_a_budget_they_are_gathered_as_before() -> None:
    step, params, batches = by_hand()
    report = hlorewrite.optimize(step, passes="comm").lower(params, batches).report
    assert not any("gathered once before the loop" in remark.sentence for remark in report.remarks)


@pytest.mark.parametrize("passes", ["comm", "time"])
def test_uneven_shards_and_donated_parameters_that_are_read_after_their_update(passes: str) -> None:
    """XLA pads the shards of 50 rows on 8 devices; the old parameters are read once the new ones are made."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    whole, rows, split = (NamedSharding(mesh, spec) for spec in (P(), P(None, "data"), P("data")))

    def loss(params: dict, x: jax.Array) -> jax.Array:
        params = jax.lax.with_sharding_constraint(params, split)
        return jnp.mean((jnp.tanh(x @ params["w"]) @ params["e"].T) ** 2)

    def step(params: dict, batches: jax.Array) -> tuple[dict, dict]:
        def micro_batch(total: dict, x: jax.Array) -> tuple[dict, None]:
            grads = jax.lax.with_sharding_constraint(jax.grad(loss)(params, x), split)
            return jax.tree.map(jnp.add, total, grads), None
        total, _ = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), batches)
        new = jax.tree.map(lambda p, g: p - 0.1 * g, params, total)
        return new, jax.tree.map(lambda one, other: jnp.max(jnp.abs(one - other)), new, params)

    params = {"e": 0.1 + 0.01 * jnp.arange(50 * 24.0).reshape(50, 24) % 7, "w": jnp.full((20, 24), 0.05)}
    params = jax.device_put(params, whole)
    batches = jax.device_put(jax.random.normal(jax.random.key(0), (3, 16, 20)), rows)
    options = {"in_shardings": (whole, rows), "out_shardings": whole}
    expected = jax.jit(step, **options)(params, batches)
    rewritten = hlorewrite.optimize(jax.jit(step, donate_argnums=0, **options), passes=passes, memory_budget="1MiB",
                                    keep="always")
    assert rewritten.lower(params, batches).report.changed
    found = rewritten(params, batches)
    assert all(param.is_deleted() for param in jax.tree.leaves(params))
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6), expected, found)


def test_with_a_budget_reduce_scatters_are_made_first_and_scattered_once() -> None:
    """Without one they are left to XLA:GPU, whose schedules take less memory; none can be deferred then."""
    module = clone_of(private.module_of(programs("tiny")["gpt fsdp constrained"]()), "step")
    place = DeviceSet("gpu", tuple(devices_of_target(parse_target("h200:1x8"), 8, "test")))
    settings = StepOptions(as_passes(named_pipeline("comm")), topology="h200:1x8", memory_budget=4 << 20)
    made, _ = rewrite_step(module.clone(), settings, place)
    comparison = made.report.comparison
    assert comparison is not None and comparison.kept
    assert comparison.ours.bytes < 0.2 * comparison.alone.bytes
    again = replayed_step(module, settings, place, made.how)
    assert again.bytecode == made.bytecode, "other processes make the same of it"
