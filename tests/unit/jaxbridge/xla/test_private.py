"""Every private name of jax and jaxlib that the bridge touches: a new JAX that lacks one breaks here, by its name."""

from __future__ import annotations

import inspect
import os
import re
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import compiler, config, core, distributed, sharding_impls, source_info_util, tree_util, util, xla_bridge
from jax._src.export import _export
from jax._src.interpreters import pxla
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax, xla_client

from hlorewrite.jaxbridge.xla import private
from hlorewrite.pipelines.runtime.compile_once import ExecutableStore, shared_executables


@pytest.mark.parametrize(("owner", "name"), [
    (xla_bridge, "_topology_factories"), (xla_client, "make_cpu_client"), (xla_client, "CompileOptions"),
    (xla_client, "DeviceAssignment"), (xla_client, "make_c_api_device_topology"),
    (xla_client, "load_pjrt_plugin_dynamically"), (xla_client, "HloSharding"), (xla_client.HloSharding, "from_proto"),
    (xla_client.HloSharding, "v3_to_v2_sharding"), (xla_client.HloSharding, "tile_assignment_devices"),
    (xla_client.HloSharding, "tile_assignment_dimensions"), (xla_client.HloSharding, "replicate_on_last_tile_dim"),
    (xla_client.HloSharding, "subgroup_types"), (xla_client.HloSharding, "tuple_elements"),
    (xla_client.hlo, "hlo_module_from_text"), (xla_client.hlo.HloModule, "as_serialized_hlo_module_proto"),
    (xla_client.hlo.HloModule, "from_serialized_hlo_module_proto"), (xla_client.hlo.HloModule, "spmd_output_sharding"),
    (xla_client.hlo.HloModule, "spmd_parameters_shardings"), (_jax, "DeviceList"), (_jax, "pjit"), (_jax, "ArrayImpl"),
    (_jax.mlir, "hlo_to_stablehlo"), (_jax.LoadedExecutable, "execute_sharded"),
    (_jax.LoadedExecutable, "get_compiled_memory_stats"), (_jax.LoadedExecutable, "get_parameter_shardings"),
    (_jax.ExecuteResults, "disassemble_into_single_device_arrays"), (core, "trace_state_clean"), (core, "Tracer"),
    (core, "abstract_token"), (tree_util, "dispatch_registry"), (sharding_impls, "GSPMDSharding"),
    (sharding_impls, "physical_sharding"), (pxla, "JitGlobalCppCacheKeys"), (pxla, "cc_shard_arg"),
    (pxla, "ExecuteReplicated"), (pxla, "MeshExecutableFastpathData"), (distributed, "global_state"),
    (distributed.global_state, "coordinator_address"), (compiler, "compile_or_get_cached"),
    (util, "register_cache"), (_jax, "PjitFunction"), (compiler, "backend_compile_and_load"),
    (pxla, "_cached_compilation"), (_jax.ArrayImpl, "block_until_ready"), (_jax.ArrayImpl, "_value"),
    (_jax.ArrayImpl, "_single_device_array_to_np_array_did_copy"), (pxla.ExecuteReplicated, "__call__"),
    (pxla.MeshExecutable, "call"), (_jax.Client, "deserialize_executable"),
    (xla_client, "batched_copy_array_to_devices_with_sharding"), (xla_client, "ArrayCopySemantics"),
    (jax.sharding.NamedSharding, "_internal_device_list"), (pxla, "batched_device_put"), (config, "trace_context"),
    (config, "config_states"), (config.config_ext, "unset"), (_export, "serialization_registry"),
    (source_info_util, "user_frame"), (source_info_util, "current_name_stack"), (source_info_util, "user_context"),
])
def test_it_is_there(owner: object, name: str):
    assert hasattr(owner, name)


def test_another_thread_has_the_options_of_this_one():
    def seen(values: dict[str, object]) -> tuple[object, object]:
        with private.configured(values):
            return jnp.zeros(1, float).dtype, private.trace_context()

    with jax.enable_x64(True), jax.default_matmul_precision("highest"), ThreadPoolExecutor(1) as pool:
        given = private.own_configuration()
        assert set(given) == {"jax_enable_x64", "jax_default_matmul_precision"}
        assert pool.submit(seen, given).result() == (jnp.float64, private.trace_context())
        assert pool.submit(seen, {}).result()[0] == jnp.float32


def test_xla_flags_of_one_compilation():
    options = xla_client.CompileOptions()
    assert private.disabled_passes(options) == ""
    options.executable_build_options.debug_options.xla_disable_hlo_passes = "cse"
    assert private.disabled_passes(options) == "cse"
    assert private.xla_flags(options) == {}
    private.add_xla_flags(options, {"xla_disable_hlo_passes": "dce"})
    assert private.xla_flags(options) == {"xla_disable_hlo_passes": "dce"}
    assert private.disabled_passes(options) == "dce"


def test_jax_hands_modules_to_one_function_with_these_parameters():
    function = private.compile_function()
    assert function is not None
    seen = []
    try:
        private.set_compile_function(lambda *args, **named: (seen.append(args[1]), function(*args, **named))[1])
        jax.jit(lambda x: x * 3 + 41)(2.0)
    finally:
        private.set_compile_function(function)
    assert len(seen) == 1


@pytest.mark.parametrize("devices", [1, 2])
def test_arrays_are_copied_from_device_to_device(devices: int):
    """The same as by ``jax.device_put``; also of another sharding, or to devices that have a part."""
    values = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    first, second, shifted = (NamedSharding(Mesh(np.array(jax.devices()[at:at + devices]), ("x",)), PartitionSpec("x"))
                              for at in (0, devices, 1))
    given = jax.device_put(values, first)
    for target in (first, second, shifted):
        for array in (given, jax.device_put(values, second)):
            made = private.device_copier(first, target, always=True)(array)
            assert made.sharding == target and np.array_equal(np.asarray(made), values)
            for shard in made.addressable_shards:
                assert np.array_equal(np.asarray(shard.data), values[shard.index])
    made = private.device_copier(first, first, always=True)(given)
    given.delete()
    assert np.array_equal(np.asarray(made), values)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        private.device_copier(first, second, always=False)(given)


def test_an_executable_is_read_for_another_device():
    store = ExecutableStore()
    results = []
    with shared_executables():
        for device in jax.devices()[:2]:
            given = jax.device_put(np.ones((8, 8), np.float32), device)
            lowered = jax.jit(lambda x: jnp.tanh(x @ x) * 2).lower(given)
            with store.of("twice"):
                compiled = lowered.compile()
            results.append(compiled(given))
    assert store.read == 1
    assert [each.device for each in results] == jax.devices()[:2]
    assert results[0].tolist() == results[1].tolist()


def test_a_lowering_lends_its_envelope_to_other_arrays():
    """Of another module, on other devices; the lowering it comes from stays on its own."""
    halves = [NamedSharding(Mesh(np.array(jax.devices()[at:at + 2]), ("x",)), PartitionSpec("x")) for at in (0, 2)]
    shell = jax.jit(lambda: np.int8(0)).lower()
    given = np.arange(8.0, dtype=np.float32)
    inputs = [jax.ShapeDtypeStruct((8,), np.float32, sharding=halves[0])]
    lowered = jax.jit(lambda x: (jnp.tanh(x), x.sum(keepdims=True) + x), in_shardings=halves[0],
                      out_shardings=halves[0]).lower(*inputs)
    module = private.parsed_beside(shell, lowered.as_text())
    for sharding in halves:
        arrays = [jax.ShapeDtypeStruct((8,), np.float32, sharding=sharding)] * 2
        made = private.with_signature(shell, module, arrays[:1], arrays).compile()
        for _ in range(2):  # the second call is dispatched by C++
            results = made(jax.device_put(given, sharding))
            assert isinstance(results, tuple) and [each.sharding for each in results] == [sharding] * 2
            np.testing.assert_allclose(results[1], given + given.sum())
        with pytest.raises(TypeError):
            made(given[:4])
    assert shell.compile()() == 0


def test_arrays_are_made_of_tiles_on_the_host():
    sharding = NamedSharding(Mesh(np.array(jax.devices()[:4][::-1]).reshape(2, 2), ("x", "y")), PartitionSpec("y"))
    values = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    tiles = [values[index] for index in sharding.addressable_devices_indices_map((2, 3)).values()]
    made = private.host_placer((2, 3), np.dtype(np.float32), sharding)(tiles)
    assert made.sharding == sharding and np.array_equal(np.asarray(made), values)
    for shard in made.addressable_shards:
        assert np.array_equal(np.asarray(shard.data), values[shard.index])


def test_objects_carry_what_the_bridge_reads():
    jitted = jax.jit(lambda x: jnp.sin(x))
    for name in ("_jit_info", "_fun", "clear_cache", "trace", "lower", "eval_shape"):
        assert hasattr(jitted, name)
    for name in ("static_argnums", "static_argnames"):
        assert hasattr(private.jit_options(jitted), name)
    traced = jitted.trace(1.0)
    assert hasattr(traced, "_consts")
    assert hasattr(traced.jaxpr, "is_high")
    lowered = traced.lower()
    for name in ("_hlo", "_executable", "_platforms", "_compiler_options_kvs", "_device_list", "_donated_invars",
                 "compile_args", "stablehlo"):
        assert hasattr(lowered._lowering, name)
    for name in ("unordered_effects", "ordered_effects", "host_callbacks", "mut", "kept_var_idx", "num_devices",
                 "in_layouts", "out_layouts"):
        assert name in lowered._lowering.compile_args
    for name in ("args_info", "out_tree", "_no_kwargs", "_in_types", "_out_types"):
        assert hasattr(lowered, name)
    assert hasattr(jnp.zeros(1), "_arrays")
    compiled = lowered.compile()
    for name in ("unsafe_call", "_mut", "_in_shardings", "in_avals", "_out_shardings", "_kept_var_idx",
                 "_dispatch_in_layouts", "xla_executable", "shard_const_args"):
        assert hasattr(compiled._executable, name)
    assert hasattr(compiled._params, "const_args")
    for name in ("ordered_effects", "has_unordered_effects", "has_host_callbacks"):
        assert hasattr(compiled._executable.unsafe_call, name)


def test_arguments_that_jax_leaves_out_are_not_kept():
    assert private.kept_arguments(jax.jit(lambda a, b, c: (a, c)).lower(1.0, 2.0, 3.0).compile()) == [0, 2]


def test_a_lowering_takes_and_returns_other_shapes():
    """As far as JAX checks them: the module is that of the function."""
    lowered = jax.jit(lambda unused, a, b: (a + 1, b * 2)).lower(0.0, jnp.ones(3), jnp.ones(2))
    assert private.tokens_of(lowered) == 0
    changed = private.with_shapes(private.lowering_key(lowered), {0: (5, 3)}, {1: (7, 2)}).compile_args
    assert [aval.shape for aval in changed["global_in_avals"]] == [(5, 3), (2,)]
    assert [aval.shape for aval in changed["all_args_info"].in_avals] == [(), (5, 3), (2,)]
    assert [aval.shape for aval in changed["global_out_avals"]] == [(3,), (7, 2)]
    unchanged = private.lowering_key(lowered).compile_args
    assert [aval.shape for aval in unchanged["global_in_avals"]] == [(3,), (2,)]


def test_a_lowering_is_the_same_object_while_jax_keeps_it():
    jitted = jax.jit(lambda x: jnp.sin(x))
    assert private.lowering_key(jitted.lower(1.0)) is private.lowering_key(jitted.lower(2.0))
    assert private.lowering_key(jitted.lower(1.0)) is not private.lowering_key(jitted.lower(1))


def test_no_other_file_of_the_bridge_touches_private_names():
    from pathlib import Path

    import hlorewrite.jaxbridge as package
    folder = Path(inspect.getfile(package)).parent
    touching = [path.name for path in sorted(folder.rglob("*.py"))
                if re.search(r"jax\._src|from jaxlib import _jax|jaxlib\._jax", path.read_text())]
    assert touching == ["private.py"]


def test_clients_are_used_again() -> None:
    """Each starts dozens of threads: a process that compiles a thousand steps would come to an end of them."""
    first = private.cpu_client(3)
    assert private.cpu_client(3) is first and private.cpu_client(5) is not first
    child = os.fork()
    if child == 0:
        os._exit(private.cpu_client.cache_info().currsize)  # a forked process has none of their threads
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_operands_of_a_scan_and_the_names_of_its_equations():
    def step(c, xs):
        with jax.named_scope("outer"):
            return jax.lax.scan(lambda a, x: (a + x * c, None), 1.0, xs)[0]

    equation = next(each for each in jax.make_jaxpr(step)(2.0, jnp.ones(3)).jaxpr.eqns if each.primitive.name == "scan")
    assert private.scan_operands(equation) == (1, 1)

    def again(x):
        with private.as_equation(equation):
            return jnp.sin(x)

    made, = jax.make_jaxpr(again)(1.0).jaxpr.eqns
    assert "outer" in str(made.source_info.name_stack) and private.line_of(made) == private.line_of(equation)
