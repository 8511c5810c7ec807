"""XLA's compilation of one module: calls, bytes, memory. The figures are the same with and without code generation."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hlorewrite.cost import topology
from hlorewrite.errors import HlorewriteError, InputError
from hlorewrite.hlo.collectives import HloCollective
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.xla.compile_for import described
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet, compile_no_codegen
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.jaxbridge.xla.platform_passes import legal_module
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd, free_shardings
from hlorewrite.timeline.latency_profile import latency_profile
from hlorewrite.timeline.result import unknown_line
from hlorewrite.timeline.simulate import ScheduledStep

Flags = Mapping[str, str | bool | int]


@dataclass(frozen=True)
class Measured:
    """One module as XLA runs it on one device.

    Attributes:
      calls: executions of collectives in a step.
      bytes: executed bytes of all collectives.
      wire: bytes that these send over the links of the device.
      temp: bytes of temporaries.
      seconds: wall-clock time of the compilation; not compared, since it differs from run to run.
      hlo: the scheduled HLO.
      trips_known: whether every loop around a collective has a known trip count; a loop without one counts once.
      step_s: predicted time of a step; None if it was not predicted, or a part of it has no known time.
      exposed_s: seconds that communication adds to it.
      exposed_at: the same, by line of the program.
      untimed: why there is no predicted time; empty if there is one, or none was requested.
      memory: bytes of arguments, results and temporaries.
      capacity: memory of one device of the topology, in bytes; 0 if it is not known.
      counted_s: the predicted step, in which parts without a known time take none; None if nothing was predicted.
      plain_s: the same, if collectives did not slow compute down.
      compute_s: all kernels of the step, each alone.
      unknown: parts without a known time, and how often they run; modules that lack the same parts are compared by the
        rest.
      cpu_s: CPU time of the thread that compiled it; not compared.
      profile: its predicted times as a profile for XLA's scheduler; empty if nothing was predicted.
    """

    calls: int
    bytes: int
    wire: int
    temp: int
    seconds: float
    hlo: str = field(repr=False)
    trips_known: bool = True
    step_s: float | None = None
    exposed_s: float | None = None
    exposed_at: Mapping[str, float] = field(default_factory=dict)
    untimed: str = ""
    memory: int = 0
    capacity: int = 0
    counted_s: float | None = None
    plain_s: float | None = None
    compute_s: float = 0.0
    unknown: tuple[str, ...] = ()
    cpu_s: float = 0.0
    profile: str = field(default="", repr=False)

    @property
    def waits(self) -> float:
        """The share of the step for which compute waits for communication; 0 if no step was predicted."""
        return (self.plain_s - self.compute_s) / self.counted_s if self.counted_s and self.plain_s is not None else 0.0

    def as_json(self) -> dict[str, object]:
        """The figures."""
        return {"calls": self.calls, "executed_bytes": self.bytes, "wire_bytes": self.wire,
                "temp_bytes": self.temp, "seconds": round(self.seconds, 3), "trips_known": self.trips_known,
                "step_s": self.step_s, "exposed_s": self.exposed_s}


def timed(made: Measured, cluster: str) -> Measured:
    """Predicts the time of a step from its schedule.

    Args:
      made: what XLA runs.
      cluster: the topology; empty if it is not known.

    Returns:
      ``made`` with its times, or with the reason why there are none: a step with unknown parts has no ``step_s``.
    """
    if not cluster:
        return replace(made, untimed="the topology of the devices is not known")
    try:
        made = replace(made, capacity=int(topology(cluster).memory_bytes))
        schedule = ScheduledStep(made.hlo, topology(cluster))
        step, plain = schedule.at(), schedule.at(0.0)
    except HlorewriteError as error:
        return replace(made, untimed=error.what)
    made = replace(made, counted_s=step.step_s, plain_s=plain.step_s, compute_s=step.compute_s,
                   profile=latency_profile(schedule.module, schedule.program))
    if not step.complete:
        lacking = tuple(sorted(f"{each.what} {each.detail} {each.runs}" for each in step.unknown))
        return replace(made, untimed=unknown_line(step.unknown[0]), unknown=lacking)
    return replace(made, step_s=step.step_s, exposed_s=step.exposed_s, exposed_at=step.exposed_at)


def scheduled(module: Module, place: DeviceSet, flags: Flags, partitioned: bool = False,
              dumps: Path | None = None) -> tuple[Measured, bytes | None]:
    """Compiles a module up to code generation.

    Args:
      module: any module; it is not changed.
      place: what for.
      flags: further XLA flags.
      partitioned: also keep the program XLA's partitioner made.
      dumps: an empty folder for XLA's dumps; by default one that is removed.

    Returns:
      The program that XLA would run, also as a serialized ``HloProto`` if that was asked for.

    Raises:
      InputError: XLA refuses the module.
    """
    begun = time.thread_time()
    made = compile_no_codegen(module, place, flags=flags, partitioned=partitioned, dumps=dumps)
    measured = _measured(made.collectives, made.temp, made.seconds, made.hlo, made.memory)
    return replace(measured, cpu_s=time.thread_time() - begun), made.partitioned


def compiled(module: Module, place: DeviceSet, flags: Flags) -> Measured:
    """Compiles a module to the end.

    Args:
      module: any module; it is not changed.
      place: what for.
      flags: further XLA flags.

    Returns:
      What XLA runs.

    Raises:
      InputError: XLA refuses the module.
    """
    from hlorewrite.jaxbridge.xla import private

    spmd = for_spmd(legal_module(module, place.platform))
    devices = (place.devices or private.client_devices(private.cpu_client(spmd.devices)))[:spmd.devices]
    outputs, inputs = free_shardings(spmd.module)
    options = private.compile_options(spmd.devices, shardy=spmd.shardy, outputs=outputs, inputs=inputs,
                                      overrides={**place.flags, **flags})
    started = time.perf_counter()
    try:
        with own_compilation():
            executable = private.compile_module(devices, spmd.module.mlir, options, load=False)
    except Exception as error:  # jaxlib's own type, which differs between versions
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"XLA cannot compile the module ({first})", location=module.name) from None
    made = described(executable, "", spmd.devices, time.perf_counter() - started)
    return _measured(made.collectives, made.memory.temp, made.compile_s, made.hlo, made.memory.total)


def _measured(collectives: Sequence[HloCollective], temp: int, seconds: float, hlo: str, memory: int) -> Measured:
    return Measured(sum(c.trips for c in collectives), sum(c.executed_bytes for c in collectives),
                    int(sum(c.wire_bytes for c in collectives)), temp, seconds, hlo,
                    all(c.trips_known for c in collectives), memory=memory)
