"""What a user wrote in addition to ops goes through XLA's partitioner, or the module stays as it is."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compute_on import compute_on
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_for import devices_of_target
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.metadata import lost_annotation
from hlorewrite.jaxbridge.xla.partition import NotExposed, expose_collectives
from hlorewrite.jaxbridge.xla.target import parse_target

needs_cuda_compiler = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                         reason="the CUDA compiler is not installed (extra: aot)")


def scheduling_group(w: jax.Array, x: jax.Array) -> jax.Array:
    with set_xla_metadata(_scheduling_group_id=3):
        y = x @ w
    return y.T @ y


def stream(w: jax.Array, x: jax.Array) -> jax.Array:
    with set_xla_metadata(_xla_stream_annotation="1", inlineable="false"):
        y = jax.jit(lambda a, b: a @ b)(x, w)
    return y.T @ y


def host_compute(w: jax.Array, x: jax.Array) -> jax.Array:
    y = x @ on_host(lambda a: a * 2.0)(w)
    return y.T @ y


def on_host(function: Callable[[jax.Array], jax.Array]) -> Callable[[jax.Array], jax.Array]:
    """Since JAX 0.11 the memory of results is given."""
    if "out_memory_spaces" not in inspect.signature(compute_on).parameters:
        return compute_on("device_host")(jax.jit(function))
    made: Any = compute_on(compute_type="device_host", out_memory_spaces=jax.memory.Space.Device)
    return made(function)


def host_memory(w: jax.Array, x: jax.Array) -> jax.Array:
    mesh = make_mesh()
    y = x @ w
    for kind in ("pinned_host", "device"):
        y = jax.device_put(y, NamedSharding(mesh, P("data"), memory_kind=kind))
    return y.T @ y


def make_mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))


def lowered(step: Callable[[jax.Array, jax.Array], jax.Array]) -> Module:
    split, whole = NamedSharding(make_mesh(), P("data")), NamedSharding(make_mesh(), P())
    traced = jax.jit(step, in_shardings=(whole, split), out_shardings=whole).trace(
        jax.ShapeDtypeStruct((64, 64), jnp.float32), jax.ShapeDtypeStruct((128, 64), jnp.float32))
    return clone_of(private.module_of(traced.lower(lowering_platforms=("cuda",))), step.__name__)


@pytest.mark.parametrize(("step", "annotation"), [
    (scheduling_group, '_scheduling_group_id = "3"'), (stream, '_xla_stream_annotation = "1"'),
    (stream, 'inlineable = "false"')])
def test_annotations_survive_both_partitioners(step: Callable[..., jax.Array], annotation: str):
    module = lowered(step)
    assert annotation in module.text()
    assert annotation in expose_collectives(module).text()


@pytest.mark.parametrize(("step", "lost"), [(host_compute, '_xla_compute_type = "host"'),
                                            (host_memory, '_xla_buffer_placement = "pinned_host"')])
def test_what_the_cpu_pipeline_drops_is_refused_with_the_line(step: Callable[..., jax.Array], lost: str):
    with pytest.raises(NotExposed, match=rf"it loses {re.escape(lost)} of .*test_metadata.py:\d+"):
        expose_collectives(lowered(step))


@needs_cuda_compiler
@pytest.mark.parametrize(("step", "form"), [(host_compute, "DEVICE_TYPE_HOST"), (host_memory, "@MoveToHost")])
def test_the_gpu_pipeline_keeps_what_is_about_the_host(step: Callable[..., jax.Array], form: str):
    place = DeviceSet("gpu", tuple(devices_of_target(parse_target("h200:1x8"), 8, "test")))
    assert form in expose_collectives(lowered(step), place).text()


def test_a_lost_annotation_is_named():
    module = lowered(scheduling_group)
    bare = lowered(lambda w, x: (x @ w).T @ (x @ w))
    assert lost_annotation(module, module) == lost_annotation(bare, module) == ""
    assert re.match(r"it loses _scheduling_group_id = .3. of .*test_metadata.py:", lost_annotation(module, bare))
