"""Modules compiled up to the generation of code: the figures are those of the whole compilation."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.errors import InputError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_for import compile_for, devices_of_target
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet, compile_no_codegen, device_set
from hlorewrite.jaxbridge.xla.target import parse_target

needs_cuda_compiler = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                         reason="the CUDA compiler is not installed (extra: aot)")
TARGETS = ["cpu:8", pytest.param("h200:1x8", marks=needs_cuda_compiler)]


@pytest.fixture(scope="module")
def auto_sharded() -> Module:
    """Gradients of one layer summed over micro-batches; rows of the batch are split over eight devices."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    split, whole = NamedSharding(mesh, P(None, "data")), NamedSharding(mesh, P())

    def step(w: jax.Array, batches: jax.Array) -> jax.Array:
        def micro_batch(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
            return total + jax.grad(lambda w: jnp.mean(jnp.tanh(batch @ w) ** 2))(w), None
        return w - jax.lax.scan(micro_batch, jnp.zeros_like(w), batches)[0]

    jitted = jax.jit(step, in_shardings=(whole, split), out_shardings=whole, donate_argnums=0)
    return clone_of(private.module_of(jitted.lower(jnp.zeros((64, 64)), jnp.zeros((4, 32, 64)))), "step")


def place_of(target: str) -> DeviceSet:
    if target.startswith("cpu"):
        return DeviceSet("cpu")
    return DeviceSet("gpu", tuple(devices_of_target(parse_target(target), 8, "test")))


@pytest.mark.parametrize("target", TARGETS)
def test_bytes_calls_and_temporaries_are_those_of_the_whole_compilation(target: str, auto_sharded: Module):
    before = auto_sharded.text()
    made = compile_no_codegen(auto_sharded, place_of(target), partitioned=True)
    whole = compile_for(auto_sharded, parse_target(target))
    assert made.temp == whole.memory.temp > 0
    assert [(c.kind, c.bytes, c.trips) for c in made.collectives] == \
        [(c.kind, c.bytes, c.trips) for c in whole.collectives]
    assert "is_scheduled=true" in made.hlo
    assert made.partitioned is not None
    assert auto_sharded.text() == before
    assert compile_no_codegen(auto_sharded, place_of(target)).partitioned is None


@needs_cuda_compiler
def test_no_kernel_is_generated_for_gpus(auto_sharded: Module):
    """The flag that stops XLA exists and does: the whole compilation takes many times as long."""
    with pytest.raises(Exception, match=r"less bytes|parse|cache|Cache"):
        _compile_with_flags(auto_sharded)


@needs_cuda_compiler
def test_passes_that_the_user_switched_off_stay_off(auto_sharded: Module):
    """XLA alone moves the reduction out of the loop by a pass; newer versions run without another one besides."""
    place = place_of("h200:1x8")
    made = [compile_no_codegen(auto_sharded, place, flags=flags) for flags in (
        {}, {"xla_disable_hlo_passes": "while-loop-all-reduce-code-motion"})]
    assert [sum(c.trips for c in each.collectives) for each in made] == [1, 4]


def _compile_with_flags(module: Module) -> None:
    import tempfile
    from pathlib import Path

    from hlorewrite.jaxbridge.xla.compile_no_codegen import _no_kernels
    with tempfile.TemporaryDirectory() as folder:
        options = private.compile_options(8, shardy=True, outputs=[True], inputs=[True, True],
                                          overrides=_no_kernels(Path(folder), ""))
        private.compile_module(place_of("h200:1x8").devices, module.mlir, options, load=False)


def test_a_module_that_xla_refuses_is_refused_in_one_line():
    bad = parse("func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }", name="bad.mlir")
    with pytest.raises(InputError, match="XLA cannot compile the module"):
        compile_no_codegen(bad, DeviceSet("cpu"))


@pytest.mark.parametrize(("hosts", "kind", "topology"), [
    ([0] * 8, "NVIDIA H200", "h200:1x8"), ([0, 0, 1, 1], "NVIDIA H100 80GB HBM3", "h100:2x2"),
    ([0, 0, 1], "NVIDIA H200", ""), ([0], "cpu", ""), ([], "NVIDIA H200", "")])
def test_the_cluster_is_that_of_the_devices(hosts: list[int], kind: str, topology: str):
    devices = tuple(SimpleNamespace(device_kind=kind, process_index=host) for host in hosts)
    assert DeviceSet("gpu", devices).topology == topology


def test_jax_platforms_by_their_names():
    assert device_set("cuda", ["a"], {"x": 1}) == DeviceSet("gpu", ("a",), {"x": 1})
    assert device_set("cpu", ["a"], {}) == DeviceSet("cpu")  # as many as a step needs can be made
    assert device_set("tpu", ["a"], {}).platform == "tpu"
