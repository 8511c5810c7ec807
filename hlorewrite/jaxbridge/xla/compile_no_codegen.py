"""A module as XLA will run it, without machine code: schedule, collectives and memory in a tenth of the time.

Nine tenths of a compilation for GPUs is the generation of kernels. Communication, its order and memory are
fixed before: HLO passes, the schedule and the assignment of buffers are finished by then, and XLA writes all
of it to its dump folder. The compilation is made to fail at this point:

* on GPU the file named as cache of kernels is not such a cache, which XLA notices before it emits the first kernel;
* on CPU the module has one more output, of a custom call that nothing implements.

Where some version of XLA does not fail, it compiles to the end, and the answer is the same.
"""

import ctypes
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxlib import version as jaxlib_version

from hlorewrite.errors import InputError
from hlorewrite.hlo.collectives import HloCollective, collectives
from hlorewrite.hlo.proto import hlo_module_of
from hlorewrite.hlo.xla_hazards import GPU_PLATFORMS
from hlorewrite.ir import Module, ir, terminator
from hlorewrite.jaxbridge.xla import miscompile_workarounds
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.jaxbridge.xla.platform_passes import legal_module
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd, free_shardings, main_function
from hlorewrite.jaxbridge.xla.target import device_topology

UNKNOWN_CALL = "hlorewrite.stop"
"""A custom call that XLA refuses to compile."""
_PARTITIONED = "after_spmd-partitioning"
"""XLA's name for the dump of its partitioner's program. GPUs also dump the output of the passes after it, where
computation on the host has become calls that cannot be written back."""
_HLO, _BUFFERS = "after_optimizations.txt", "buffer-assignment.txt"
_ALLOCATION = re.compile(r"^allocation \d+: size (\d+), (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class DeviceSet:
    """The target that a step is compiled for.

    Attributes:
      platform: ``cpu`` or ``gpu``.
      devices: real or described devices; empty for CPU devices, which can be created in any number.
      flags: XLA flags the step is compiled with, without dashes.
    """

    platform: str
    devices: tuple[Any, ...] = ()
    flags: Mapping[str, str | bool | int] = field(default_factory=dict)

    @property
    def topology(self) -> str:
        """The cluster of the devices, as ``h200:2x8``; empty if it is not known."""
        found = device_topology(self.devices)
        return found.spec if found is not None else ""


def device_set(platform: str, devices: Sequence[Any], flags: Mapping[str, Any]) -> DeviceSet:
    """The target that JAX compiles a step for.

    Args:
      platform: as JAX names it: ``cpu``, ``cuda``, ``rocm``, ...
      devices: the step's devices.
      flags: XLA flags given with the step, without dashes.

    Example:
      >>> device_set("cuda", [], {}).platform
      'gpu'
    """
    if platform == "cpu":  # any number of CPU devices can be made, also of those other processes hold
        return DeviceSet("cpu", (), flags)
    return DeviceSet("gpu" if platform in GPU_PLATFORMS else platform, tuple(devices), flags)


@dataclass(frozen=True)
class WithoutCode:
    """A module before its code would be generated.

    Attributes:
      hlo: the scheduled HLO.
      temp: bytes of temporaries on one device.
      memory: bytes of arguments, results and temporaries on one device.
      collectives: what it communicates.
      partitioned: what XLA's partitioner made of it, a serialized ``HloProto``; None when that was not asked for.
      seconds: what it took, wall-clock.
    """

    hlo: str
    temp: int
    memory: int
    collectives: tuple[HloCollective, ...]
    partitioned: bytes | None
    seconds: float


def compile_no_codegen(module: Module, place: DeviceSet, *, flags: Mapping[str, str | bool | int] | None = None,
                 partitioned: bool = False, dumps: Path | None = None, every_pass: bool = False) -> WithoutCode:
    """Compiles a module up to code generation.

    Args:
      module: any StableHLO module; it is not changed.
      place: what for.
      flags: further XLA flags of this compilation.
      partitioned: also keep what XLA's partitioner made of the module.
      dumps: an empty folder for XLA's dumps, where another thread reads them (``program_so_far``); by default one that
        is removed.
      every_pass: ``flags`` say what else XLA dumps of each pass.

    Returns:
      What XLA would run.

    Raises:
      InputError: XLA refuses the module before that point.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
      >>> compile_no_codegen(module, DeviceSet("cpu")).collectives
      ()
    """
    from hlorewrite.jaxbridge.xla import private

    spmd = for_spmd(legal_module(module, place.platform))
    stopping = spmd.module if place.platform == "gpu" else with_output_of_unknown_call(spmd.module)
    devices = place.devices or private.client_devices(private.cpu_client(spmd.devices))
    outputs, inputs = free_shardings(stopping)
    with nullcontext(str(dumps)) if dumps else tempfile.TemporaryDirectory(prefix="hlorewrite-") as name:
        folder = Path(name)
        overrides = {**place.flags, **_dump_flags(folder, partitioned), **(flags or {})} if every_pass else \
            {**place.flags, **(flags or {}), **_dump_flags(folder, partitioned)}
        if place.platform == "gpu":
            overrides |= _no_kernels(folder, str(overrides.get(miscompile_workarounds.FLAG, "")))
        options = private.compile_options(spmd.devices, shardy=spmd.shardy, outputs=outputs, inputs=inputs,
                                          overrides=overrides)
        give_back_freed_memory()
        started, message = time.perf_counter(), ""
        try:
            with own_compilation():
                private.compile_module(devices[:spmd.devices], stopping.mlir, options, load=False)
        except Exception as error:  # expected, see above; of jaxlib's own type, which differs between versions
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
        hlo, buffers = _whole(folder)
        if hlo is None or buffers is None:
            raise InputError(f"XLA cannot compile the module ({message or 'no dump'})", location=module.name,
                             hint="compile the step without hlorewrite to see the whole message")
        text = hlo.read_text()
        allocated = [(int(size), kind) for size, kind in _ALLOCATION.findall(buffers.read_text())]
        return WithoutCode(text, sum(size for size, kind in allocated if "preallocated-temp" in kind),
                           sum(size for size, kind in allocated if "thread-local" not in kind),
                           tuple(collectives(text)), partitioned_dump(folder) if partitioned else None,
                           time.perf_counter() - started)


def with_output_of_unknown_call(module: Module) -> Module:
    """A copy with one more output, last, that comes from a custom call that nothing implements."""
    copy = module.clone()
    main = main_function(copy)
    end = terminator(main.regions[0].blocks[0])
    type_ = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    with copy.context, ir.Location.unknown():
        pair = ir.RankedTensorType.get([2], ir.F32Type.get())
        call = ir.Operation.create("stablehlo.custom_call", results=[pair], ip=ir.InsertionPoint(end),
                                   attributes={"call_target_name": ir.StringAttr.get(UNKNOWN_CALL)})
        ir.Operation.create("func.return", operands=[*end.operands, call.results[0]], ip=ir.InsertionPoint(end))
        end.erase()
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(list(type_.inputs), [*type_.results, pair]))
        if "res_attrs" in main.attributes:
            main.attributes["res_attrs"] = ir.ArrayAttr.get([*ir.ArrayAttr(main.attributes["res_attrs"]),
                                                             ir.DictAttr.get({})])
    return copy


def _dump_flags(folder: Path, partitioned: bool) -> dict[str, str | bool | int]:
    """Optimised HLO and buffers as text, and the partitioner's program; of the rest as little as XLA can be made to."""
    return {**partitioner_flags(folder), "xla_dump_hlo_as_text": True, "xla_dump_buffer_assignment_analysis": False,
            **({} if partitioned else {"xla_dump_hlo_pass_re": "", "xla_dump_hlo_as_proto": False})}


def partitioner_flags(folder: Path) -> dict[str, str | bool | int]:
    """XLA flags that write the partitioner's result to an empty folder; ``partitioned_dump`` reads it."""
    return {"xla_dump_to": str(folder), "xla_dump_hlo_as_proto": True, "xla_dump_hlo_as_text": False,
            "xla_dump_full_hlo_config": False, "xla_dump_hlo_pass_re": "spmd-partitioning"}


def partitioned_dump(folder: Path) -> bytes | None:
    """The partitioner's program for a module.

    Args:
      folder: the folder that was named in ``partitioner_flags``.

    Returns:
      A serialized ``HloProto``; None if XLA wrote none.
    """
    found = [name for name in os.listdir(folder) if _PARTITIONED in name and name.endswith(".pb")]
    return (folder / max(found)).read_bytes() if found else None


def program_so_far(folder: Path) -> bytes | None:
    """The partitioner's program for a module whose compilation may not have ended.

    XLA writes it after about a quarter of what ``compile_no_codegen`` takes.

    Args:
      folder: where the compilation dumps.

    Returns:
      A serialized ``HloProto``; None as long as a part of it is missing.
    """
    dump = partitioned_dump(folder)
    return None if dump is None or hlo_module_of(dump) is None else dump


def _no_kernels(folder: Path, disabled: str) -> dict[str, str | bool | int]:
    """Flags that end a compilation for GPUs where it would generate kernels; no kernel is tried out before.

    Even where none is to be tried out, XLA's autotuner asks all its backends for each matrix product, and newer
    versions generate a kernel for it, which takes three times as long as all the rest. It chooses tiles, which change
    neither communication nor buffers.
    """
    cache = folder / "no-cache-of-kernels"
    cache.write_bytes(b"\xff\xff")
    stopped = {"xla_gpu_kernel_cache_file": str(cache), "xla_gpu_autotune_level": 0,
               **miscompile_workarounds.without_pass("autotuner", disabled)}
    if jaxlib_version.__version_info__ >= (0, 11):  # they always compile in parallel, and read the cache
        return stopped
    # What comes before kernels is so little that a pool of threads costs more than it saves.
    return {**stopped, "xla_gpu_enable_llvm_module_compilation_parallelism": True,
            "xla_gpu_force_compilation_parallelism": 1}


def _whole(folder: Path) -> tuple[Path | None, Path | None]:
    """The dumps of HLO and buffers that belong to the whole module: the largest, next to those of small modules XLA
    makes."""
    names = sorted(os.listdir(folder))
    found = [[folder / name for name in names if name.endswith(ending)] for ending in (_HLO, _BUFFERS)]
    hlo, buffers = (max(paths, key=lambda path: path.stat().st_size) if len(paths) > 1 else next(iter(paths), None)
                    for paths in found)
    return hlo, buffers


# ---- memory that was freed, given back to the system


def give_back_freed_memory() -> None:
    """Gives freed memory back to the system, where the C library can (glibc).

    MLIR and XLA free what a compilation took, but the C library keeps most of it in pieces that the next compilation
    does not fit into: a step of 70 billion parameters, compiled in seven ways, peaked at 1.54 GiB instead of 1.39.

    Example:
      >>> give_back_freed_memory()
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)
