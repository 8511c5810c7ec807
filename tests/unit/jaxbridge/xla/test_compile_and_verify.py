"""Compiling, running and comparing small modules on CPU devices, and compiling them for GPUs that are not there."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

from hlorewrite.errors import InputError, UsageError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.compile_for import compile_for
from hlorewrite.jaxbridge.xla.execute import compare_output, random_arguments, run_module, signature, verify
from hlorewrite.jaxbridge.xla.show import compilation_text, verification_text
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.jaxbridge.xla.target import parse_target

needs_cuda_compiler = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                         reason="the CUDA compiler is not installed (extra: aot)")

REDUCE = """({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32> }}) {{replica_groups = dense<{groups}> : tensor<{shape}xi64>{channel}}}"""


def per_device(groups: str = "[[0, 1], [2, 3]]", shape: str = "2x2", channel: str = "", scale: str = "1.0") -> Module:
    """A module as one device runs it: a partial sum over groups, its device number next to it."""
    reduce = REDUCE.format(groups=groups, shape=shape, channel=channel)
    return parse(f"""module {{
  func.func @main(%a: tensor<4x2xf32>, %s: tensor<f32>) -> (tensor<4x2xf32>, tensor<ui32>) {{
  %c = stablehlo.constant dense<{scale}> : tensor<4x2xf32>
  %m = stablehlo.multiply %a, %c : tensor<4x2xf32>
  %r = "stablehlo.all_reduce"(%m) {reduce} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
  %o = stablehlo.add %r, %b : tensor<4x2xf32>
  %i = stablehlo.replica_id : tensor<ui32>
  return %o, %i : tensor<4x2xf32>, tensor<ui32> }} }}""", name="partial.mlir")


@pytest.mark.parametrize("channel", ["", ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"])
def test_a_per_device_module_runs_with_each_group_summed_and_every_device_numbered(channel: str):
    module = per_device(channel=channel)
    before = module.text()
    spmd = for_spmd(module)
    assert (spmd.devices, spmd.wrapped) == (4, True)
    assert not spmd.module.verify()
    arguments, _ = signature(spmd.module)
    assert [a.shape for a in arguments] == [(16, 2), (4,)]
    values = random_arguments(arguments, 1)
    made = run_module(module, parse_target("cpu:4"), values)
    rows, scalars = values[0].reshape(4, 4, 2), values[1]
    for device in range(4):
        group = [0, 1] if device < 2 else [2, 3]
        np.testing.assert_allclose(made.shards[0][device], rows[group].sum(0) + scalars[device], rtol=1e-6)
        assert made.shards[1][device] == [device]
    assert module.text() == before


def test_equal_modules_verify_and_a_wrong_group_is_found():
    target = parse_target("cpu:4")
    assert verify(per_device(), per_device(), target).equal
    wrong = verify(per_device(), per_device(groups="[[0, 2], [1, 3]]"), target)
    assert [o.equal for o in wrong.outputs] == [False, True]
    assert "1 of 2 outputs differ" in verification_text(wrong)


def test_a_different_signature_is_refused_with_the_argument_named():
    other = parse("module { func.func @main(%a: tensor<4x3xf32>, %s: tensor<f32>) -> (tensor<4x3xf32>, tensor<ui32>) {"
                  " %i = stablehlo.replica_id : tensor<ui32> return %a, %i : tensor<4x3xf32>, tensor<ui32> } }",
                  name="other.mlir")
    with pytest.raises(UsageError, match=r"argument 0 is f32\[4,2\] in partial.mlir and f32\[4,3\] in other.mlir"):
        verify(per_device(), other, parse_target("cpu:4"))


def test_drifted_copies_and_infinities_are_seen():
    value = signature(per_device())[1][0]
    a = np.float32([1, np.inf])
    assert compare_output(value, [a, a], [a, a]).equal
    assert not compare_output(value, [a, a], [a, np.float32([2, np.inf])]).equal
    assert not compare_output(value, [a], [np.float32([1, -np.inf])]).equal
    assert not compare_output(value, [a], [np.float32([1, np.nan])]).equal


def test_random_arguments_fit_every_dtype_and_repeat():
    kinds = ["f32", "bf16", "f16", "f64", "i1", "i8", "i32", "i64", "ui8", "ui32", "i4", "complex<f32>", "f8E4M3FN"]
    text = ", ".join(f"%a{i}: tensor<3x{kind}>" for i, kind in enumerate(kinds))
    arguments, _ = signature(parse(f"func.func @main({text}) {{ return }}"))
    first, again = random_arguments(arguments, 7), random_arguments(arguments, 7)
    assert [a.dtype.name for a in first] == ["float32", "bfloat16", "float16", "float64", "bool", "int8", "int32",
                                             "int64", "uint8", "uint32", "int4", "complex64", "float8_e4m3fn"]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert (random_arguments(arguments[:1], positive=True)[0] > 0).all()


def test_the_wrong_number_of_devices_is_refused_with_the_target_to_use():
    with pytest.raises(UsageError, match=r"for 4 devices but target cpu:8 has 8; use --target cpu:4"):
        compile_for(per_device(), parse_target("cpu:8"))


def test_modules_that_cannot_run_are_refused():
    with pytest.raises(InputError, match="no function @main"):
        for_spmd(parse("module { func.func private @f() }"))
    with pytest.raises(InputError, match="static shape"):
        signature(parse("func.func @main(%a: tensor<?xf32>) { return }"))
    with pytest.raises(InputError, match="cannot compile"):
        compile_for(parse('func.func @main() -> tensor<f32> { %0 = stablehlo.custom_call @nowhere() : () -> tensor<f32>'
                          ' return %0 : tensor<f32> }'), parse_target("cpu:1"))


@needs_cuda_compiler
@pytest.mark.parametrize("target", ["h200:2x2", "b200:1x4", "a100:4x1", "h100:4"])
def test_described_gpus_compile_without_a_gpu(target: str):
    made = compile_for(per_device(), parse_target(target))
    (collective,) = made.collectives
    assert (collective.kind, collective.bytes, collective.trips, collective.loop_depth) == ("all-reduce", 32, 1, 0)
    assert collective.groups == ((0, 1), (2, 3))
    shown = json.loads(json.dumps(made.as_json()))
    assert list(shown) == ["target", "compile_s", "memory", "collectives", "executed_bytes"]
    assert list(shown["memory"]) == ["argument", "output", "temp", "alias"]
    assert list(shown["collectives"][0]) == ["kind", "bytes", "trips", "executed_bytes", "loop_depth", "groups",
                                             "source"]
    assert shown["executed_bytes"] == {"all-reduce": 32}
    assert "all-reduce" in compilation_text(made)


@needs_cuda_compiler
def test_an_unknown_xla_flag_is_a_usage_error():
    with pytest.raises(UsageError, match="option"):
        compile_for(per_device(), parse_target("h200:4"), xla_flags={"xla_no_such_flag": 1})


@needs_cuda_compiler
def test_a_plug_in_of_another_release_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of one release need not suit the compiler of another."""
    from jaxlib import version

    from hlorewrite.jaxbridge.xla import private
    ours = ".".join(version.__version__.split(".")[:3])
    private._cuda_topology.cache_clear()
    monkeypatch.setattr("importlib.metadata.version", lambda package: "0.9.1")
    module = parse("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
    with pytest.raises(UsageError) as refused:
        compile_for(module, parse_target("h200:1x1"))
    assert str(refused.value) == (f"target h200:1x1 needs the CUDA compiler of jaxlib {ours}, but jax-cuda13-plugin "
                                  f"0.9.1 is installed; pip install 'jax-cuda13-plugin=={ours}'")


def test_a_step_for_one_device_compiles_and_runs() -> None:
    """JAX leaves the collectives of a mesh of one device in functions without a mesh, and orders parameters by SPMD."""
    import jax
    import jax.numpy as jnp
    from jax import export, lax
    from jax.sharding import AxisType
    from jax.sharding import PartitionSpec as P

    mesh = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])

    @jax.jit
    @jax.shard_map(mesh=mesh, in_specs=(P(), P(), P(None, "d")), out_specs=(P(), P()), check_vma=False)
    def step(w: jax.Array, b: jax.Array, xs: jax.Array) -> tuple[jax.Array, jax.Array]:
        def micro(total: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            return total + lax.pmean(jnp.tanh(x @ w).T @ x, "d").T, lax.psum(jnp.sum(x), "d")
        total, sums = lax.scan(micro, jnp.zeros_like(w), xs)
        return w - 0.1 * total, b + sums

    made = export.export(step)(jnp.ones((4, 4)), jnp.ones(3), jnp.ones((3, 8, 4)))
    module = parse(bytes(made.serialize()))
    assert (for_spmd(module).devices, for_spmd(module).wrapped) == (1, False)
    assert verify(module, module, parse_target("cpu:1")).equal


@pytest.mark.parametrize(("count", "groups", "shape"), [((2, 2), "[[0, 1]]", "1x2"), ((4, 1), "", "0x0"),
                                                       ((1, 4), "[[0]]", "1x1")])
def test_replicas_and_partitions_become_partitions(count: tuple[int, int], groups: str, shape: str) -> None:
    """Groups of replicas reduce the devices of each partition; no groups are all replicas; ids stay what they are."""
    replicas, partitions = count
    reduce = REDUCE.format(groups=groups, shape=shape, channel="")
    module = parse(f"""module attributes {{mhlo.num_replicas = {replicas} : i32,
      mhlo.num_partitions = {partitions} : i32}} {{
  func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<ui32>, tensor<ui32>) {{
  %r = "stablehlo.all_reduce"(%a) {reduce} : (tensor<2xf32>) -> tensor<2xf32>
  %s = "stablehlo.collective_permute"(%a) <{{source_target_pairs = dense<[[0, {replicas - 1}]]> : tensor<1x2xi64>}}> :
      (tensor<2xf32>) -> tensor<2xf32>
  %i = stablehlo.replica_id : tensor<ui32>
  %j = stablehlo.partition_id : tensor<ui32>
  return %r, %s, %i, %j : tensor<2xf32>, tensor<2xf32>, tensor<ui32>, tensor<ui32> }} }}""")
    values = random_arguments(signature(for_spmd(module).module)[0], 1)
    made = run_module(module, parse_target("cpu:4"), values).shards
    rows = values[0].reshape(replicas, partitions, 2)
    for device in range(4):
        replica, partition = divmod(device, partitions)
        np.testing.assert_allclose(made[0][device], rows[:, partition].sum(0), rtol=1e-6)
        sent = rows[0, partition] if replica == replicas - 1 else np.zeros(2)
        np.testing.assert_array_equal(made[1][device], sent)
        assert (made[2][device], made[3][device]) == (replica, partition)


def test_a_module_in_a_module_is_refused() -> None:
    with pytest.raises(InputError, match="contains another module"):
        for_spmd(parse("module { module @inner { func.func @main() { return } } }"))
