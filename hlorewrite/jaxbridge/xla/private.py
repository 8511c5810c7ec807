"""Every private name of jax and jaxlib that this package touches, in one place.

``tests/unit/jaxbridge/xla/test_private.py`` names each, so that a new JAX breaks one test and one file. Works with jax
0.10.2 to 0.12.x.
"""

import copy
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxlib import version as jaxlib_version

from hlorewrite.errors import UsageError
from hlorewrite.ir.binding import ir
from hlorewrite.util.releases import missing_private_name, same_release

try:
    from jax._src import (
        compiler,
        config,
        core,
        distributed,
        sharding_impls,
        source_info_util,
        tree_util,
        util,
        xla_bridge,
    )
    from jax._src.export import _export
    from jax._src.interpreters import pxla
    from jaxlib import _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue]
except ImportError as gone:
    raise UsageError(missing_private_name(gone, jax.__version_info__),
                     hint="install jax 0.10.2 to 0.12; reading and rewriting files needs no jax") from gone

_PMAP = "jax._src.pmap"
"""The module that defines the result type of ``jax.pmap``."""

# ---- what of a thread's configuration is part of jit's key


def trace_context() -> Any:
    """Everything that ``jax.jit`` keeps programs apart by besides arguments: precision, x64, ambient mesh, ..."""
    return config.trace_context()


def own_configuration() -> dict[str, Any]:
    """The options of JAX that context managers of this thread have set."""
    given = {name: state.get_local() for name, state in config.config_states.items()}
    return {name: value for name, value in given.items() if value is not config.config_ext.unset}


@contextmanager
def configured(values: Mapping[str, Any]) -> Iterator[None]:
    """Runs the body with another thread's options of JAX.

    Args:
      values: what ``own_configuration`` gave there.
    """
    with ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(config.config_states[name](value))
        yield


def line_of(equation: Any) -> str:
    """The user's line that an equation of a jaxpr comes from, as ``file:line``; empty if it is not known."""
    frame = source_info_util.user_frame(equation.source_info.traceback)
    return f"{os.path.basename(frame.file_name)}:{frame.start_line}" if frame is not None else ""


@contextmanager
def as_equation(equation: Any) -> Iterator[None]:
    """What the body traces has the source line, the names and the options of an equation of a jaxpr."""
    info = equation.source_info
    names = source_info_util.current_name_stack() + info.name_stack
    with source_info_util.user_context(info.traceback, name_stack=names), equation.ctx.manager:
        yield


def scan_operands(equation: Any) -> tuple[int, int]:
    """(how many operands of a ``scan`` equation are constants, how many it carries); the rest are sliced."""
    if "ft_in" in equation.params:  # from 0.12 on
        constants, carried, _ = equation.params["ft_in"].unpack()
        return len(constants), len(carried)
    return equation.params["num_consts"], equation.params["num_carry"]


# ---- clients and devices


@functools.lru_cache(maxsize=4)
def cpu_client(devices: int) -> Any:
    """A CPU client with any number of devices; JAX's own backend is left alone.

    A client starts dozens of threads, and holds its devices in reference cycles that only Python's garbage collector
    frees. So a few clients are reused.
    """
    return xla_client.make_cpu_client(num_devices=devices)


os.register_at_fork(after_in_child=cpu_client.cache_clear)  # the threads of a client are those of the parent


def described_gpu_devices(name: str, description: str, hosts: int, gpus: int) -> list[Any]:
    """Compile-only devices of described GPUs; raises ``NotImplementedError`` without the CUDA plug-in."""
    topology = _cuda_topology()(name, target_config=description, topology=f"1x{hosts}x{gpus}")
    return list(topology._make_compile_only_devices())


@functools.cache
def _cuda_topology() -> Callable[..., Any]:
    """What makes a topology of the CUDA plug-in.

    JAX registers the plug-in while it looks for backends, unless cuDNN is missing. Compilation for described GPUs does
    not need cuDNN, so the library is then loaded here; after JAX has looked, so that it is not loaded twice.
    """
    _check_plugin()
    with quiet_plugins():
        jax.devices("cpu")
    if "cuda" in xla_bridge._topology_factories:
        return xla_bridge._topology_factories["cuda"]
    found = _cuda_plugin()
    if found is None:
        raise NotImplementedError("cuda")
    path = importlib.import_module(f"jax_plugins.xla_{found}")._get_library_path()
    api = xla_client.load_pjrt_plugin_dynamically("cuda", str(path))
    return functools.partial(xla_client.make_c_api_device_topology, api)


def _cuda_plugin() -> str | None:
    """The CUDA plug-in that is installed: ``cuda13``, ``cuda12`` or none."""
    if importlib.util.find_spec("jax_plugins") is None:
        return None
    return next((cuda for cuda in ("cuda13", "cuda12") if importlib.util.find_spec(f"jax_plugins.xla_{cuda}")), None)


class OtherPlugin(Exception):
    """The compiler of the CUDA plug-in is of another release than jaxlib: modules of one need not suit the other.

    Attributes:
      plugin: the package and its version.
      package: its name.
      jaxlib: the release of jaxlib.
    """

    def __init__(self, package: str, version: str, jaxlib: str) -> None:
        super().__init__(f"{package} {version}, jaxlib {jaxlib}")
        self.plugin, self.package, self.jaxlib = f"{package} {version}", package, jaxlib


def _check_plugin() -> None:
    """Raises ``OtherPlugin`` where the CUDA plug-in is of another release than jaxlib."""
    found, wanted = _cuda_plugin(), ".".join(jaxlib_version.__version__.split(".")[:3])
    for package in (f"jax-{found}-plugin", f"jax-{found}-pjrt") if found else ():
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:  # built by the user
            continue
        if not same_release(version, wanted):
            raise OtherPlugin(package, version, wanted)


@contextmanager
def quiet_plugins() -> Iterator[None]:
    """Keeps JAX from printing a traceback for a plug-in that finds no driver; errors of ours say it in a sentence."""
    log = logging.getLogger("jax._src.xla_bridge")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def client_devices(client: Any) -> list[Any]:
    """All devices of a client."""
    return list(client.devices())


# ---- compiling a module without tracing anything


def compile_options(devices: int, *, shardy: bool, outputs: Sequence[bool], inputs: Sequence[bool],
                    overrides: Mapping[str, str | bool | int]) -> Any:
    """XLA's options for one SPMD module.

    Args:
      devices: partitions.
      shardy: the module carries ``sdy`` shardings.
      outputs: for each output, whether XLA may choose its sharding.
      inputs: the same for inputs.
      overrides: XLA flags for this compilation alone, without dashes.
    """
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = 1, devices
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    build = options.executable_build_options
    build.num_partitions = devices
    build.device_assignment = options.device_assignment
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = shardy
    build.allow_spmd_sharding_propagation_to_output = list(outputs) or [True]
    build.allow_spmd_sharding_propagation_to_parameters = list(inputs) or [True]
    options.env_option_overrides = list(overrides.items())
    return options


def compile_module(devices: Sequence[Any], module: ir.Module, options: Any, *, load: bool) -> Any:
    """An XLA executable of an MLIR module: only to inspect, or loaded and ready to run."""
    client = devices[0].client
    device_list = _jax.DeviceList(tuple(devices))
    if load or client.platform == "cpu":  # the CPU client has no compiler that does not load
        return client.compile_and_load(module, device_list, options)
    return client.compile(module, device_list, options)


def hlo_text(executable: Any) -> str:
    """Optimised HLO."""
    return "\n".join(module.to_string() for module in executable.hlo_modules())


def memory_stats(executable: Any) -> tuple[int, int, int, int]:
    """(argument, output, temporary, aliased) bytes on one device."""
    stats = executable.get_compiled_memory_stats()
    return (stats.argument_size_in_bytes, stats.output_size_in_bytes, stats.temp_size_in_bytes,
            stats.alias_size_in_bytes)


# ---- running a loaded executable


def execute(executable: Any, arguments: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """Runs an executable on its local devices.

    Args:
      executable: loaded, of a single process.
      arguments: global arrays, one for each parameter.

    Returns:
      For each output, what each device holds of it, in the order of the devices.
    """
    devices = executable.local_devices()
    shardings = executable.get_parameter_shardings() or [None] * len(arguments)
    placed = [_placed(value, sharding, devices) for value, sharding in zip(arguments, shardings, strict=True)]
    results = executable.execute_sharded(placed)
    parts = results.disassemble_into_single_device_arrays()
    order = {device.id: place for place, device in enumerate(devices)}
    return [[np.asarray(part) for part in sorted(output, key=lambda a: order[next(iter(a.devices())).id])]
            for output in parts]


def _placed(value: np.ndarray, sharding: Any, devices: Sequence[Any]) -> jax.Array:
    if sharding is None:
        where: Any = jax.sharding.SingleDeviceSharding(devices[0])
    else:
        where = _jax_sharding(sharding, devices)
    return jax.make_array_from_callback(value.shape, where, lambda index: value[index])


def _jax_sharding(sharding: Any, devices: Sequence[Any]) -> Any:
    return sharding_impls.GSPMDSharding(_jax.DeviceList(tuple(devices)), sharding)


def single_device_arrays(array: jax.Array) -> Sequence[jax.Array]:
    """Each local device's part of an array, in the order of its sharding.

    ``addressable_data`` gives the first device's copy for every index of a replicated array, and ``addressable_shards``
    makes objects that cost tens of microseconds.
    """
    return array._arrays  # pyright: ignore[reportAttributeAccessIssue]


def device_copier(source: jax.sharding.Sharding, target: jax.sharding.Sharding,
                  always: bool) -> Callable[[jax.Array], jax.Array]:
    """Copies arrays from device to device, in a tenth of the host's time that ``jax.device_put`` takes to do the same.

    Args:
      source: the sharding of the arrays; the devices of both are those of this process.
      target: the sharding to have: the same tiles on as many devices, in the same order.
      always: whether what stays on its device is copied too.

    Returns:
      The function. Arrays of another sharding go by ``jax.device_put``.
    """
    semantics = [xla_client.ArrayCopySemantics.ALWAYS_COPY if always else xla_client.ArrayCopySemantics.REUSE_INPUT]
    devices, shardings = [target._internal_device_list], [target]
    copy_arrays = xla_client.batched_copy_array_to_devices_with_sharding

    def copy_array(array: jax.Array) -> jax.Array:
        if array.is_deleted() or array.sharding != source:  # the copy of a deleted array ends the process
            return jax.device_put(array, target, may_alias=not always)
        return copy_arrays([array], devices, shardings, semantics)[0]

    return copy_array


def host_placer(shape: tuple[int, ...], dtype: np.dtype, sharding: jax.sharding.NamedSharding
                ) -> Callable[[Sequence[np.ndarray]], jax.Array]:
    """Makes arrays of tiles that are on the host, in a third of the time that ``make_array_from_callback`` takes.

    Args:
      shape: the shape of the whole array.
      dtype: the dtype of its elements.
      sharding: its sharding.

    Returns:
      A function of the tiles of this process's devices, in the order of the sharding. The array may keep them.
    """
    aval, devices = core.ShapedArray(shape, dtype), list(sharding.addressable_devices_indices_map(shape))
    return lambda tiles: pxla.batched_device_put(aval, sharding, tiles, devices)


# ---- lowerings of jax.jit


def lowering_key(lowered: jax.stages.Lowered) -> Any:
    """The object JAX keeps for one signature of one jitted function; the same while its lowering is cached."""
    return lowered._lowering


def module_of(lowered: jax.stages.Lowered) -> ir.Module:
    """JAX's own module. It belongs to JAX's lowering cache and must never be changed."""
    return lowered._lowering.stablehlo()


def with_module(lowered: jax.stages.Lowered, bytecode: bytes) -> Any:
    """A lowering like another one, with another module; the original and JAX's caches stay as they are."""
    old: Any = lowered._lowering
    lowering: Any = copy.copy(old)
    lowering._hlo = parsed_beside(lowered, bytecode)
    lowering._executable = None
    return lowering


def with_signature(lowered: jax.stages.Lowered, module: ir.Module, inputs: Sequence[jax.ShapeDtypeStruct],
                   outputs: Sequence[jax.ShapeDtypeStruct]) -> jax.stages.Lowered:
    """A lowering whose compiled function takes and returns any arrays; JAX traces and lowers nothing for it.

    Args:
      lowered: the lowering of a function without effects, whose arguments are not donated; it stays as it is.
      module: what is compiled.
      inputs: shapes and shardings of the arguments of the module; they have the platform of the lowering.
      outputs: the same for results, which are returned as a tuple. There is an argument or a result.
    """
    old: Any = lowered._lowering
    arguments, info = dict(old.compile_args), old.compile_args["all_args_info"]
    avals = {each: core.update_aval_with_sharding(core.ShapedArray(each.shape, each.dtype), each.sharding)
             for each in {*inputs, *outputs}}
    for side, arrays in (("in", inputs), ("out", outputs)):
        arguments[f"global_{side}_avals"] = tuple(avals[each] for each in arrays)
        arguments[f"{side}_shardings"] = tuple(each.sharding for each in arrays)
        arguments[f"{side}_layouts"] = (None,) * len(arrays)
    devices = (*outputs, *inputs)[0].sharding._internal_device_list
    arguments["kept_var_idx"], arguments["num_devices"] = set(range(len(inputs))), len(devices)
    arguments["all_args_info"] = info._replace(in_avals=arguments["global_in_avals"],
                                               debug_info=info.debug_info._replace(arg_names=None))
    made: Any = copy.copy(old)
    made.compile_args, made._hlo, made._device_list, made._executable = arguments, module, devices, None
    made._donated_invars = (False,) * len(inputs)
    args_info = tuple(jax.stages.ArgInfo(aval, False) for aval in arguments["global_in_avals"]), {}
    return jax.stages.Lowered(made, args_info, jax.tree.structure(tuple(outputs)))


def parsed_beside(lowered: jax.stages.Lowered, source: bytes | str) -> ir.Module:
    """A module, from bytecode or text, in the context of a lowering's own."""
    lowering: Any = lowered._lowering
    return ir.Module.parse(source, lowering._hlo.context)


def with_shardings(lowering: Any, inputs: Mapping[int, Any], outputs: Mapping[int, Any]) -> Any:
    """A lowering whose compiled function takes and returns some arrays with other shardings.

    Args:
      lowering: the lowering; it stays as it is.
      inputs: the new shardings, by position among the arguments of its module.
      outputs: the same for results, by position among the results of its module.
    """
    arguments = dict(lowering.compile_args)
    for key, changed in (("in_shardings", inputs), ("out_shardings", outputs)):
        tokens = len(arguments["ordered_effects"])
        arguments[key] = tuple(changed.get(place + tokens, sharding) for place, sharding in enumerate(arguments[key]))
    made: Any = copy.copy(lowering)
    made.compile_args, made._executable = arguments, None
    return made


def with_shapes(lowering: Any, inputs: Mapping[int, Sequence[int]], outputs: Mapping[int, Sequence[int]]) -> Any:
    """A lowering whose compiled function takes and returns some arrays with other shapes.

    Args:
      lowering: the lowering; it stays as it is.
      inputs: the new shapes, by position among the arguments of its module.
      outputs: the same for results, by position among the results of its module.
    """
    arguments = dict(lowering.compile_args)
    tokens = len(arguments["ordered_effects"])
    kept = sorted(arguments["kept_var_idx"])
    info = arguments["all_args_info"]
    every = list(info.in_avals)
    for place, shape in inputs.items():
        every[kept[place - tokens]] = _with_shape(every[kept[place - tokens]], shape)
    arguments["all_args_info"] = info._replace(in_avals=tuple(every))
    for key, changed in (("global_in_avals", inputs), ("global_out_avals", outputs)):
        arguments[key] = tuple(_with_shape(aval, changed[place + tokens]) if place + tokens in changed else aval
                               for place, aval in enumerate(arguments[key]))
    made: Any = copy.copy(lowering)
    made.compile_args, made._executable = arguments, None
    return made


def _with_shape(aval: Any, shape: Sequence[int]) -> Any:
    return core.ShapedArray(tuple(shape), aval.dtype, weak_type=aval.weak_type)


def tokens_of(lowered: jax.stages.Lowered) -> int:
    """How many tokens the module of a lowering takes and returns before all else."""
    return len(lowered._lowering.compile_args["ordered_effects"])


def leaves_of_arguments(lowered: jax.stages.Lowered) -> dict[int, int]:
    """Position among the arguments of a lowering's module -> leaf among the arguments of the function."""
    lowering: Any = lowered._lowering
    tokens, constants = len(lowering.compile_args["ordered_effects"]), len(lowering.const_args)
    return {place + tokens: kept - constants for place, kept in enumerate(sorted(lowering.compile_args["kept_var_idx"]))
            if kept >= constants}


def shardings_of(lowered: jax.stages.Lowered) -> list[Any]:
    """The shardings that a lowering was given for arguments and results; some of a private class mean none."""
    arguments = lowered._lowering.compile_args
    return [*arguments["in_shardings"], *arguments["out_shardings"]]


def lowered_fields(lowered: jax.stages.Lowered) -> dict[str, Any]:
    """Arguments of the constructor of ``jax.stages.Lowered`` besides the lowering."""
    return {"args_info": lowered.args_info, "out_tree": lowered.out_tree, "no_kwargs": lowered._no_kwargs,
            "in_types": lowered._in_types, "out_types": lowered._out_types}


def platform_of(lowered: jax.stages.Lowered) -> str:
    """``cpu``, ``cuda``, ``rocm``, ... as the lowering was made for."""
    return str(lowering_key(lowered)._platforms[0])


def compiler_options_of(lowered: jax.stages.Lowered) -> dict[str, Any]:
    """The ``compiler_options`` the user gave to ``jax.jit``."""
    return dict(lowering_key(lowered)._compiler_options_kvs)


def devices_of(lowered: jax.stages.Lowered) -> Sequence[Any]:
    """The devices a lowering will run on; empty when it was lowered for an abstract mesh."""
    return tuple(lowering_key(lowered)._device_list or ())


def has_effects(lowered: jax.stages.Lowered) -> bool:
    """Whether running it prints, calls back or changes references, so that running it twice would be visible."""
    arguments = lowered._lowering.compile_args
    return bool(arguments["unordered_effects"] or arguments["ordered_effects"] or arguments["host_callbacks"]
                or (arguments["mut"] is not None))


def changes_references(lowered: jax.stages.Lowered) -> bool:
    """Whether a step changes mutable references that it takes or closes over."""
    return lowered._lowering.compile_args["mut"] is not None


def closes_over_references(traced: jax.stages.Traced) -> bool:
    """Whether a traced function reads mutable references from outside; ahead-of-time compilation lacks those."""
    return bool(traced._consts) or traced.jaxpr.is_high


# ---- exports


def is_written_by_export(kind: type) -> bool:
    """Whether ``jax.export`` can write nodes of a type: those that were registered.

    Example:
      >>> import collections
      >>> is_written_by_export(collections.OrderedDict), is_written_by_export(set)
      (True, False)
    """
    return kind in _export.serialization_registry


@contextmanager
def recorded_traces() -> Iterator[list[jax.stages.Traced]]:
    """Collects what is traced and then lowered in this block by this thread, whichever library asks for it."""
    found: list[jax.stages.Traced] = []
    thread, lower = threading.get_ident(), jax.stages.Traced.lower

    def recorded(traced: jax.stages.Traced, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        if threading.get_ident() == thread:
            found.append(traced)
        return lower(traced, *args, **kwargs)
    jax.stages.Traced.lower = recorded  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield found
    finally:
        jax.stages.Traced.lower = lower  # pyright: ignore[reportAttributeAccessIssue]


# ---- calls


def jit_options(jitted: Any) -> Any | None:
    """What ``jax.jit`` was given; None when an object is not a jitted function."""
    return getattr(jitted, "_jit_info", None)


def is_pmapped(fun: Any) -> bool:
    """Whether a function is what ``jax.pmap`` returned: a plain function that carries a ``lower``.

    Example:
      >>> is_pmapped(jax.pmap(lambda x: x)), is_pmapped(jax.jit(lambda x: x)), is_pmapped(len)
      (True, False, False)
    """
    return getattr(getattr(fun, "lower", None), "__module__", "") == _PMAP


def user_function(jitted: Any) -> Callable[..., Any]:
    """The function inside a jitted one."""
    return jitted._fun


def takes_other_leaves(args: Any) -> bool:
    """Whether all classes among arguments can hold leaves that are not arrays, as ``jax.stages.Lowered`` makes them."""
    tree = jax.tree.structure(args)
    try:
        tree.unflatten([jax.stages.ArgInfo(core.ShapedArray((), jnp.float32), False)] * tree.num_leaves)
    except Exception:  # whatever a user's class raises
        return False
    return True


def being_traced(args: Any) -> bool:
    """Whether a call happens inside a transformation (jit, grad, vmap, shard_map from outside)."""
    return not core.trace_state_clean() or any(map(is_tracer, jax.tree.leaves(args)))


def is_tracer(value: Any) -> bool:
    """Whether a value is a placeholder inside a transformation."""
    return isinstance(value, core.Tracer)


def dispatcher(jitted: Any, miss: Callable[..., tuple[Any, jax.stages.Compiled | None, list[Any]]]) -> Any:
    """A function with jit's own C++ dispatch: same cache key, same fast path, another executable.

    Args:
      jitted: the ``jax.jit`` function whose options decide the key (static arguments, donation, shardings).
      miss: a method, called with the arguments of a signature that has no fast path yet; returns the outputs, what was
        compiled for them (None: do not remember) and the leaves of the dynamic arguments. It is held weakly: Python's
        collector does not see through the C++ object, so an owner of both would never be freed.

    Returns:
      The callable; it has ``_clear_cache``.
    """
    options, method = jitted._jit_info, weakref.WeakMethod(miss)

    def cache_miss(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        call = method()
        assert call is not None, "the owner of the dispatcher makes the call"
        outputs, compiled, leaves = call(*args, **kwargs)
        return outputs, None if compiled is None else _fast_path(compiled, outputs, leaves), False

    return _jax.pjit(jitted.__name__, jitted._fun, cache_miss, options.static_argnums, options.static_argnames,
                     pxla.JitGlobalCppCacheKeys(), tree_util.dispatch_registry, pxla.cc_shard_arg)


def clear_with_caches(cache: Any) -> None:
    """Lets ``jax.clear_caches`` call ``cache.cache_clear``; the cache is held weakly.

    Args:
      cache: an object with ``cache_clear``, ``cache_info`` and ``cache_keys``.
    """
    util.register_cache(cache, "hlorewrite.optimize")


def _fast_path(compiled: jax.stages.Compiled, outputs: Any, leaves: list[Any]) -> Any:
    """What C++ needs to run an executable without Python; None if Python is needed (effects, references)."""
    executable: Any = compiled._executable
    run = getattr(executable, "unsafe_call", None)
    if (not isinstance(run, pxla.ExecuteReplicated) or run.ordered_effects or run.has_unordered_effects
            or run.has_host_callbacks or executable._mut):
        return None
    flat, tree = tree_util.dispatch_registry.flatten(outputs, None)
    if not all(isinstance(leaf, _jax.ArrayImpl) for leaf in flat):
        return None
    constants = executable.shard_const_args(compiled._params.const_args)
    shardings = [_physical(s, a) for s, a in zip(executable._in_shardings, executable.in_avals, strict=True)]
    kept = [i in executable._kept_var_idx for i in range(len(constants) + len(leaves))]
    return pxla.MeshExecutableFastpathData(
        executable.xla_executable, tree, shardings, executable._out_shardings, [leaf.aval for leaf in flat],
        [leaf._committed for leaf in flat], kept, executable._dispatch_in_layouts, constants)


def kept_arguments(compiled: jax.stages.Compiled) -> list[int] | None:
    """Positions of the flat arguments that the executable takes, as JAX leaves out what is unused.

    Returns:
      The positions; None if constants of the function are arguments too.
    """
    executable: Any = compiled._executable
    return None if compiled._params.const_args else sorted(executable._kept_var_idx)


def _physical(sharding: Any, aval: Any) -> Any:
    if aval is not core.abstract_token and jnp.issubdtype(aval.dtype, jax.dtypes.extended):
        return sharding_impls.physical_sharding(aval, sharding)
    return sharding


# ---- several processes


def distributed_client() -> Any:
    """The client of the distributed runtime's key-value store; None when it is not initialised."""
    return distributed.global_state.client


def coordinator_address() -> str | None:
    """Where process 0 serves the distributed runtime; None when it is not initialised."""
    return distributed.global_state.coordinator_address


# ---- what a stack shows

# Names of functions of JAX by which a process is seen to compile, to wait for devices, or to call compiled code.
COMPILING_FUNCTIONS = frozenset({"backend_compile_and_load", "compile_or_get_cached", "_cached_compilation"})
WAITING_FUNCTIONS = frozenset({"block_until_ready", "_value", "_single_device_array_to_np_array_did_copy"})
CALLING_FUNCTIONS = frozenset({"__call__", "cache_miss", "call", "reraise_with_filtered_traceback"})


def is_jitted(function: Any) -> bool:
    """Whether an object is a function of ``jax.jit``, whose compiled code C++ calls without a Python frame."""
    return isinstance(function, _jax.PjitFunction)


def is_outstanding(value: Any) -> bool:
    """Whether an object is an array that is not computed yet; runs no code of the object's own class."""
    return type(value) is _jax.ArrayImpl and not value.is_deleted() and not value.is_ready()


# ---- what XLA's partitioner leaves


def hlo_to_stablehlo(hlo_module: bytes) -> bytes:
    """A serialized ``HloModuleProto`` as StableHLO bytecode."""
    return _jax.mlir.hlo_to_stablehlo(hlo_module)


def hlo_text_to_proto(text: str) -> bytes:
    """HLO text as a serialized ``HloModuleProto``."""
    hlo: Any = xla_client.hlo  # pyright: ignore[reportPrivateImportUsage]
    return hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def printed_hlo(text: str) -> str:
    """HLO text in any form that XLA's parser reads, as XLA prints it.

    Raises:
      Exception: an error of jaxlib's own type; XLA's parser refuses the text.
    """
    hlo: Any = xla_client.hlo  # pyright: ignore[reportPrivateImportUsage]
    return hlo.hlo_module_from_text(text).to_string()


def spmd_facts(hlo_module: bytes) -> tuple[list[Any], list[Any], str]:
    """Shardings of parameters and outputs that the partitioner settled on, as ``HloSharding``, and the HLO text."""
    hlo: Any = xla_client.hlo  # pyright: ignore[reportPrivateImportUsage]
    module = hlo.HloModule.from_serialized_hlo_module_proto(hlo_module)
    make = xla_client.HloSharding.from_proto
    parameters = [_tiled(make(sharding)) for sharding in module.spmd_parameters_shardings or []]
    output = make(module.spmd_output_sharding) if module.spmd_output_sharding is not None else None
    outputs = [] if output is None else list(output.tuple_elements()) or [output]
    return parameters, [_tiled(sharding) for sharding in outputs], module.to_string()


def _tiled(sharding: Any) -> Any:
    """A sharding as tiles of devices: 0.11 names mesh axes, and aborts when such a sharding is asked for its tiles."""
    return xla_client.HloSharding.v3_to_v2_sharding(sharding)


# ---- the hand-over of a module to the compiler

# Every jit of every framework, ahead-of-time compilation and profiler-guided recompilation call this function as an
# attribute of its module, before the key of the persistent cache is computed.
_COMPILE = "compile_or_get_cached"
_COMPILE_TAKES = ("backend", "computation", "devices", "compile_options", "host_callbacks", "executable_devices")


def compile_function() -> Callable[..., Any] | None:
    """The function that JAX passes a module to when it compiles; None when this version of JAX has no such function."""
    function = getattr(compiler, _COMPILE, None)
    if function is None or tuple(inspect.signature(function).parameters)[:len(_COMPILE_TAKES)] != _COMPILE_TAKES:
        return None
    return function


def set_compile_function(function: Callable[..., Any]) -> None:
    """Makes JAX pass modules to another function with the same parameters."""
    setattr(compiler, _COMPILE, function)


def write_executable(client: Any, executable: Any) -> bytes | None:
    """A loaded executable in XLA's own form; None if it cannot be written out."""
    try:
        return executable.serialize() if hasattr(executable, "serialize") else client.serialize_executable(executable)
    except (jax.errors.JaxRuntimeError, NotImplementedError):
        return None


def read_executable(client: Any, written: bytes, devices: Any, options: Any) -> Any | None:
    """The executable for any devices of the same number and kind; None if it cannot be read for them."""
    try:
        return client.deserialize_executable(written, devices, options)
    except (jax.errors.JaxRuntimeError, NotImplementedError, TypeError):
        return None


def disabled_passes(options: Any) -> str:
    """The XLA passes a compilation leaves out, comma-separated."""
    given = dict(options.env_option_overrides).get("xla_disable_hlo_passes")
    return str(given or options.executable_build_options.debug_options.xla_disable_hlo_passes)


def xla_flags(options: Any) -> dict[str, Any]:
    """The XLA flags of one compilation in addition to those of the environment, without dashes."""
    return dict(options.env_option_overrides)


def add_xla_flags(options: Any, flags: Mapping[str, str | bool | int]) -> None:
    """Sets XLA flags for one compilation; JAX makes compile options for each."""
    options.env_option_overrides = [*options.env_option_overrides, *flags.items()]
