"""What is found out once: passes that two pipelines begin with, and the order of sums when it is asked for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.checks.reference.rounding import summation_order
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
from hlorewrite.jaxbridge.step.report import Rewritten, digest
from hlorewrite.jaxbridge.step.rewrite import clone_of, rewrite
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet

LONG = as_passes("comm-shift,cse,all-reduce-fusion")


def module_of_step() -> Module:
    """Two gradients, reduced in a loop over micro-batches; a third sum is kept from being rewritten."""
    def local(a: jax.Array, b: jax.Array, batches: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        def micro_batch(total: tuple, batch: jax.Array) -> tuple[tuple, None]:
            grads = [jax.lax.psum(batch.T @ jnp.tanh(batch @ w), "data") for w in (a, b)]
            return tuple(t + g for t, g in zip(total, grads, strict=True)), None

        first, second = jax.lax.scan(micro_batch, (jnp.zeros_like(a), jnp.zeros_like(b)), batches)[0]
        with hlorewrite.no_rewrite():
            return first, second, jax.lax.psum(batches, "data")

    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    sharded = jax.shard_map(local, mesh=mesh, in_specs=(P(), P(), P(None, "data")), out_specs=(P(), P(), P()),
                            check_vma=False)
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((16, 16), (16, 16), (4, 32, 16))]
    return clone_of(private.module_of(jax.jit(sharded).lower(*shapes)), "step")


def kept_of(made: Rewritten) -> tuple[object, ...]:
    return made.module.text(debug_info=True), made.report


def test_the_first_passes_of_a_run_give_what_they_give_alone() -> None:
    """Module, collectives, remarks, counts and digest."""
    for number in (1, 2):
        module = module_of_step()
        made = rewrite(module.clone(), LONG, shorter=LONG[:number])
        alone = rewrite(module.clone(), LONG[:number])
        assert made.shorter is not None and made.shorter.passes == LONG[:number]
        assert kept_of(made.shorter.finish()) == kept_of(alone) and alone.report.changed
        assert kept_of(made) == kept_of(rewrite(module.clone(), LONG))
        assert made.report.digest != alone.report.digest
    assert rewrite(module_of_step(), LONG).shorter is None


def test_bytes_are_equal_where_later_passes_change_nothing() -> None:
    """Equal bytes are not compiled again."""
    passes = as_passes("comm-shift,all-reduce-fusion,reduce-scatter-creation")
    made = rewrite(module_of_step(), passes, shorter=passes[:2])
    assert made.shorter is not None and made.shorter.finish().bytecode == made.bytecode
    assert made.shorter.passes != passes
    fused = rewrite(module_of_step(), passes, shorter=passes[:1])
    assert fused.shorter is not None and fused.shorter.finish().bytecode != fused.bytecode


def test_hidden_collectives_outlive_the_module_they_were_in() -> None:
    """comm-shift puts a copy in the module's place, whose values a hidden collective must not read any more."""
    for _ in range(3):
        made = rewrite(module_of_step(), as_passes("comm-shift"))
        assert made.report.changed and made.module.verify() == []
        assert sum(collective.kind == "all_reduce" for collective in made.report.after) == 3


def test_the_digest_is_made_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of the module the passes left, also where the module changes later."""
    printed: list[str] = []
    original = Module.digest

    def counted(module: Module) -> str:
        printed.append(module.name)
        return original(module)

    monkeypatch.setattr(Module, "digest", counted)
    made = rewrite(module_of_step(), LONG)
    wanted = digest(made.module.clone(), made.report.pipeline)
    assert printed == ["step"]
    rewrite(made.module, as_passes("inline"))
    assert made.report.digest == made.report.digest == wanted and len(printed) <= 3


def test_the_order_of_sums_is_compared_when_the_report_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    original = summation_order.summation_orders

    def counted(before: Module, after: Module) -> summation_order.SummationOrders:
        compared.append(after.name)
        return original(before, after)

    monkeypatch.setattr(summation_order, "summation_orders", counted)
    module = module_of_step()
    made, _ = rewrite_step(module.clone(), StepOptions(LONG, keep="always"), DeviceSet("cpu"))
    assert made.report.changed and not compared
    assert made.report.rounding == original(module, made.module) and made.report.rounding.changed
    assert "rounding: another order of sums" in str(made.report) and compared == ["step"]
