"""Compiling any module for a real or a described mesh, and reading back what XLA made of it."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hlorewrite.errors import HlorewriteError, InputError, UsageError
from hlorewrite.hlo.collectives import HloCollective, collectives, executed_bytes
from hlorewrite.ir import COLLECTIVES, Module, View
from hlorewrite.jaxbridge.xla import miscompile_workarounds
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.platform_passes import legal_module
from hlorewrite.jaxbridge.xla.spmd_module import SpmdModule, for_spmd, free_shardings
from hlorewrite.jaxbridge.xla.target import Target
from hlorewrite.util.optional_dependencies import install

_DEVICELESS_FLAGS: dict[str, str | bool | int] = {"xla_gpu_autotune_level": 0}


@dataclass(frozen=True)
class Memory:
    """Bytes on one device, from XLA's memory analysis."""

    argument: int
    output: int
    temp: int
    alias: int

    @property
    def total(self) -> int:
        """Arguments, outputs and temporaries, what is aliased counted once."""
        return self.argument + self.output + self.temp - self.alias


@dataclass(frozen=True)
class Compilation:
    """A compiled module.

    Attributes:
      target: as the user wrote it.
      devices: how many devices it runs on.
      compile_s: XLA's wall-clock time, seconds.
      memory: bytes on one device.
      collectives: what the optimised HLO communicates.
      hlo: the optimised HLO.
      executable: XLA's executable; loaded if requested.
    """

    target: str
    devices: int
    compile_s: float
    memory: Memory
    collectives: tuple[HloCollective, ...]
    hlo: str
    executable: Any

    def as_json(self) -> dict[str, object]:
        """The output of ``hlorewrite compile --json``."""
        memory = {"argument": self.memory.argument, "output": self.memory.output, "temp": self.memory.temp,
                  "alias": self.memory.alias}
        return {"target": self.target, "compile_s": round(self.compile_s, 3), "memory": memory,
                "collectives": [c.as_json() for c in self.collectives],
                "executed_bytes": executed_bytes(self.collectives)}


def compile_for(module: Module, target: Target, *, protect: bool = False, load: bool = False,
                xla_flags: Mapping[str, str | bool | int] | None = None) -> Compilation:
    """Compiles a module for a target.

    Args:
      module: any StableHLO module; it is not changed.
      target: where to; described GPUs need no GPU.
      protect: switch off the XLA pass that miscompiles on affected versions (`miscompile_workarounds`).
      load: also load it, ready to run; not for described GPUs.
      xla_flags: XLA flags for this compilation alone, without dashes.

    Returns:
      The compilation.

    Raises:
      UsageError: the target has other devices than the module wants, or is not here.
      InputError: XLA refuses the module.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.jaxbridge.xla.target import parse_target
      >>> module = parse("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
      >>> compile_for(module, parse_target("cpu:1")).memory.argument
      16
    """
    from jaxlib import version as jaxlib_version

    spmd = for_spmd(legal_module(module, target.platform))
    devices = devices_of_target(target, spmd.devices, module.name)
    overrides = dict(_DEVICELESS_FLAGS if target.platform == "described" else {}) | dict(xla_flags or {})
    if protect:
        platform = "cpu" if target.platform == "cpu" else "gpu"
        overrides |= miscompile_workarounds.options(jaxlib_version.__version_info__, platform,
                                            str(overrides.get("xla_disable_hlo_passes", "")))
    started = time.perf_counter()
    executable = _compile(spmd, devices, overrides, load)
    seconds = time.perf_counter() - started
    return described(executable, target.text, spmd.devices, seconds)


def was_rewritten(module: Module) -> bool:
    """Whether a collective of a module was made by a rule or pass of this project, which stamps its location."""
    return any('"hlorewrite.' in str(op.location) for op in View(module).ops(*COLLECTIVES))


def rewritten_flags(module: Module, place: DeviceSet) -> Mapping[str, str | bool | int]:
    """Flags that a module is compiled with in addition to the user's: those of a rewritten one, where it was
    rewritten."""
    from jaxlib import version as jaxlib_version

    if not was_rewritten(module):
        return {}
    return miscompile_workarounds.options(jaxlib_version.__version_info__, place.platform)


def described(executable: Any, target: str, devices: int, seconds: float) -> Compilation:
    """Reads memory, HLO and collectives back from an executable."""
    from hlorewrite.jaxbridge.xla import private

    text = private.hlo_text(executable)
    return Compilation(target, devices, seconds, memory=Memory(*private.memory_stats(executable)),
                       collectives=tuple(collectives(text)), hlo=text, executable=executable)


def place_of(target: Target, module: Module) -> DeviceSet:
    """The devices of a target as a step's compilation names them.

    Args:
      target: what the user wrote.
      module: the step; it says how many devices it is for.

    Raises:
      UsageError: the target has other devices than the module wants, or is not here.
    """
    wanted = for_spmd(module).devices
    if target.platform == "cpu":
        check_count(target, wanted, module.name)
        return DeviceSet("cpu")
    devices = devices_of_target(target, wanted, module.name)
    return DeviceSet("gpu", tuple(devices), _DEVICELESS_FLAGS if target.platform == "described" else {})


def devices_of_target(target: Target, wanted: int, name: str) -> Sequence[Any]:
    """The devices of a target; as many as the module is for."""
    from hlorewrite.jaxbridge.xla import private

    check_count(target, wanted, name)
    if target.platform == "cpu":
        return private.client_devices(private.cpu_client(target.devices))[:wanted]
    if target.platform == "gpu":
        return _present_gpus(wanted, name)
    try:
        devices = private.described_gpu_devices(target.text.partition(":")[0], target.description, target.hosts,
                                                target.devices_per_host)
    except NotImplementedError:
        raise UsageError(f"target {target.text} needs XLA's CUDA compiler, which is not installed",
                         hint=f"{install('aot')} (no GPU needed)") from None
    except private.OtherPlugin as error:
        raise UsageError(f"target {target.text} needs the CUDA compiler of jaxlib {error.jaxlib}, but {error.plugin} "
                         "is installed", hint=f"pip install '{error.package}=={error.jaxlib}'") from None
    return devices[:wanted]


def check_count(target: Target, wanted: int, name: str) -> None:
    """Refuses a target of other devices than a module wants; ``gpu`` has as many as this machine."""
    if target.platform != "gpu" and target.devices != wanted and wanted != 1:
        raise UsageError(f"the module is for {wanted} devices but target {target.text} has {target.devices}",
                         location=name, hint=f"use --target {_resized(target, wanted)}")


def _present_gpus(wanted: int, name: str) -> Sequence[Any]:
    import jax

    from hlorewrite.jaxbridge.xla import private

    try:
        with private.quiet_plugins():
            gpus = jax.devices("gpu")
    except RuntimeError:
        raise UsageError("target gpu needs a GPU, but JAX sees none here",
                         hint="name a described one such as h200:1x8, or cpu:8") from None
    if len(gpus) < wanted:
        raise UsageError(f"the module is for {wanted} devices but this machine has {len(gpus)} GPUs", location=name,
                         hint=f"use a described target such as h200:1x{wanted}")
    return gpus[:wanted]


def _resized(target: Target, wanted: int) -> str:
    name = target.text.partition(":")[0]
    if target.platform == "cpu":
        return f"cpu:{wanted}"
    hosts = wanted // target.devices_per_host if wanted % target.devices_per_host == 0 else 1
    return f"{name}:{hosts}x{wanted // hosts}"


def _compile(spmd: SpmdModule, devices: Sequence[Any], overrides: Mapping[str, str | bool | int], load: bool) -> Any:
    import jax

    from hlorewrite.jaxbridge.xla import private

    outputs, inputs = free_shardings(spmd.module)
    options = private.compile_options(spmd.devices, shardy=spmd.shardy, outputs=outputs, inputs=inputs,
                                      overrides=overrides)
    try:
        return private.compile_module(devices, spmd.module.mlir, options, load=load)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise _refusal(first, spmd.module.name) from None


def _refusal(message: str, name: str) -> HlorewriteError:
    if "No such compile option" in message or "INVALID_ARGUMENT: While setting option" in message:
        return UsageError(f"XLA does not know an option passed to it ({message})", hint="check --xla-flag")
    kernel = re.search(r"No FFI handler registered for (\S+)", message)
    if kernel:
        return InputError(f"the step calls {kernel[1]}, a kernel of a library that is not loaded here", location=name,
                          hint="run where it is installed and imported, or pass the HLO that was compiled there")
    return InputError(f"XLA cannot compile the module ({message.rstrip('.')})", location=name,
                      hint="check the module with hlorewrite opt, or compile the original to see whether it differs")
