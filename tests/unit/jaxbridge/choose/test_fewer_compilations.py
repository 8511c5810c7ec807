"""What is not compiled to judge a step, and that it changes no choice."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import version as jaxlib_version

from hlorewrite.hlo.xla_hazards import MISCOMPILATIONS
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.measured import Measured, scheduled
from hlorewrite.jaxbridge.choose import miscompile_policy, selection, speculate
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_for import devices_of_target
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.target import parse_target

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                reason="the CUDA compiler is not installed (extra: aot)")
STEP = StepOptions(as_passes("comm-shift"))
OFF = "xla_disable_hlo_passes"


def gpus() -> DeviceSet:
    return DeviceSet("gpu", tuple(devices_of_target(parse_target("h200:1x8"), 8, "test")))


def accumulating(table: bool) -> Module:
    """A data-parallel step that adds gradients up over micro-batches: of an embedding, or of two layers."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))

    def loss(params: dict, batch: jax.Array) -> jax.Array:
        x = params["first"][batch] if table else batch @ params["first"]
        return jnp.mean((jnp.tanh(x) @ params["second"]) ** 2)

    def step(params: dict, batches: jax.Array) -> dict:
        def micro_batch(total: dict, batch: jax.Array) -> tuple[dict, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, batch)), None
        total = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), batches)[0]
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, total)

    shape = jax.ShapeDtypeStruct((256, 256), jnp.float32, sharding=whole)
    data = jax.ShapeDtypeStruct((4, 32, *(() if table else (256,))), jnp.int32 if table else jnp.float32,
                                sharding=split)
    lowered = jax.jit(step, out_shardings=whole).lower({"first": shape, "second": shape}, data)
    return clone_of(private.module_of(lowered), "step")


@pytest.fixture
def compiled_with(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passes of XLA that each compilation of the judge leaves out."""
    seen: list[str] = []

    def counted(module: Module, place: DeviceSet, flags: dict, partitioned: bool = False,
                dumps: Path | None = None) -> tuple[Measured, bytes | None]:
        seen.append(str(flags.get(OFF, "")))
        return scheduled(module, place, flags, partitioned, dumps)

    monkeypatch.setattr(speculate, "scheduled", counted)
    return seen


def figures(made: Measured) -> tuple[int, int, int, int]:
    return made.calls, made.bytes, made.wire, made.temp


def test_code_motion_on_candidates_leaves_no_bound(compiled_with: list[str]):
    """A step that is not protected may send less than its module says."""
    made, _ = rewrite_step(accumulating(table=False), StepOptions(as_passes("comm-shift"), protect=False), gpus())
    assert len(compiled_with) == 2 and made.report.comparison is not None
    assert made.report.comparison.ours is not None


@pytest.mark.skipif(not MISCOMPILATIONS["X"].affects(jaxlib_version.__version_info__),
                    reason="this XLA compiles the step rightly")
def test_a_step_that_xla_miscompiles_is_compiled_alone_once(compiled_with: list[str]):
    module, place = accumulating(table=True), gpus()
    made, _ = rewrite_step(module.clone(), STEP, place)
    comparison = made.report.comparison
    protected = "while-loop-all-reduce-code-motion"
    assert compiled_with == [protected, protected]
    assert comparison is not None and comparison.kept
    assert figures(comparison.alone) == figures(scheduled(module, place, {OFF: protected})[0])


def test_a_step_that_only_looks_so_is_compared_with_xla_alone(compiled_with: list[str],
                                                              monkeypatch: pytest.MonkeyPatch):
    module, place = accumulating(table=False), gpus()
    expected, _ = rewrite_step(module.clone(), STEP, place)
    compiled_with.clear()
    monkeypatch.setattr(miscompile_policy, "adds_scatters_up", lambda _: True)
    made, _ = rewrite_step(module.clone(), STEP, place)
    assert "" in compiled_with and compiled_with[0] != ""
    assert made.report.comparison is not None and expected.report.comparison is not None
    assert figures(made.report.comparison.alone) == figures(expected.report.comparison.alone)
    assert (made.how, made.bytecode) == (expected.how, expected.bytecode)


def test_no_folder_is_made_where_the_step_is_manual(compiled_with: list[str], monkeypatch: pytest.MonkeyPatch):
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    step = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P()))
    module = clone_of(private.module_of(step.lower(jnp.ones((8, 4)))), "step")
    made = []
    folder = tempfile.TemporaryDirectory
    monkeypatch.setattr(selection.tempfile, "TemporaryDirectory", lambda **given: made.append(1) or folder(**given))
    rewrite_step(module, StepOptions(as_passes("cse")), DeviceSet("cpu"))
    assert len(made) == len(compiled_with) > 0  # one for each compilation
