"""Simulates the schedule of a compiled step: one call, from HLO text to its timeline."""

from collections.abc import Mapping, Sequence

from hlorewrite.analysis.loops import trip_count
from hlorewrite.cost import CollectiveModel, Topology
from hlorewrite.cost.kernels.rates import timeline_constants
from hlorewrite.errors import InputError, UsageError
from hlorewrite.hlo.collectives import CollectiveSources, collective_kind, executed_collectives
from hlorewrite.hlo.parse import HloText, is_scheduled, parse_hlo
from hlorewrite.hlo.readers import Readers
from hlorewrite.ir import Module, View
from hlorewrite.timeline.engine import Engine, ProgramOutcome
from hlorewrite.timeline.lower import Lowering
from hlorewrite.timeline.program import ScheduledProgram
from hlorewrite.timeline.result import CollectiveExposure, StepTimeline, UnknownTime
from hlorewrite.timeline.tensors import TensorNames


def simulate(text: str, topology: Topology, *, slowdown: float | None = None, model: CollectiveModel | None = None,
             kernel_times: Mapping[str, float] | None = None, trips: Mapping[str, int] | None = None,
             line_trips: Mapping[str, int] | None = None, memory_bytes: int | None = None, name: str = "",
             record: bool = False) -> StepTimeline:
    """Simulates one step of a compiled module.

    Args:
      text: scheduled HLO of XLA:GPU, as ``Compiled.as_text()`` prints it.
      topology: the cluster.
      slowdown: compute during a collective takes 1 + this times as long; by default the published mean.
      model: times of collectives; the topology's by default.
      kernel_times: measured seconds by instruction name.
      trips: trip counts by the name of a ``while``, for loops that do not state theirs.
      line_trips: the same, by the user's line.
      memory_bytes: the memory of one device in bytes, if known.
      name: the name of the file, for messages.
      record: whether to record events with their times, for a trace or a page.

    Returns:
      The timeline.

    Raises:
      InputError: the text is not scheduled HLO of XLA:GPU, or it has a collective in a form that cannot be simulated.
      UsageError: the topology has fewer GPUs than the module has devices.

    Example:
      >>> from hlorewrite.cost import topology
      >>> step = simulate('''HloModule m, is_scheduled=true, num_partitions=8
      ... ENTRY %main (p: f32[1048576]) -> f32[8388608] {
      ...   %p = f32[1048576]{0} parameter(0)
      ...   %s = (f32[1048576]{0}, f32[8388608]{0}) all-gather-start(%p), replica_groups=[1,8]<=[8], dimensions={0}
      ...   ROOT %d = f32[8388608]{0} all-gather-done(%s)
      ... }''', topology("h200:1x8"))
      >>> step.compute_s, step.exposed_s == step.communication_s == step.step_s
      (0.0, True)
    """
    return ScheduledStep(text, topology, model=model, kernel_times=kernel_times, trips=trips, line_trips=line_trips,
                         memory_bytes=memory_bytes, name=name).at(slowdown, record=record)


class ScheduledStep:
    """A compiled step, read once and simulated at several slowdowns.

    Args:
      text: scheduled HLO of XLA:GPU.
      topology: the cluster.
      model: times of collectives; the topology's by default.
      kernel_times: measured seconds by instruction name.
      trips: trip counts by the name of a ``while``.
      line_trips: the same, by the user's line.
      memory_bytes: the memory of one device in bytes, if known.
      name: the name of the file, for messages.

    Raises:
      InputError: the text is not scheduled HLO of XLA:GPU, or it has a collective in a form that cannot be simulated.
      UsageError: the topology has fewer GPUs than the module has devices.
    """

    def __init__(self, text: str, topology: Topology, *, model: CollectiveModel | None = None,
                 kernel_times: Mapping[str, float] | None = None, trips: Mapping[str, int] | None = None,
                 line_trips: Mapping[str, int] | None = None, memory_bytes: int | None = None, name: str = "") -> None:
        self.module = parse_hlo(text)
        self.topology, self.memory_bytes = topology, memory_bytes
        check_scheduled(self.module, text, name)
        if topology.gpus < self.module.devices:
            raise UsageError(f"{name or 'the module'} runs on {self.module.devices} devices, but {topology.spec} has "
                             f"{topology.gpus} GPUs", hint="name a larger topology")
        lowering = Lowering(self.module, topology, model=model, measured=kernel_times, trips=trips,
                            line_trips=line_trips)
        self.program: ScheduledProgram = lowering.program()
        self.unused_times: Sequence[str] = lowering.kernels.unused
        readers = Readers(self.module)
        self._sources, self._tensors = CollectiveSources(self.module, readers), TensorNames(self.module, readers)
        self._check_complete(name)
        self._labels: list[tuple[str, str]] | None = None

    def at(self, slowdown: float | None = None, *, record: bool = False) -> StepTimeline:
        """Simulates the step.

        Args:
          slowdown: compute during a collective takes 1 + this times as long; by default the published mean.
          record: whether to record events with their times.

        Returns:
          The timeline.
        """
        slowdown = float(timeline_constants()["overlap_slowdown"]) if slowdown is None else slowdown
        engine = Engine(self.program, slowdown, record=record)
        done = engine.run()
        collectives = self._collectives(done)
        totals = done.totals
        return StepTimeline(
            step_s=done.seconds, compute_s=totals.compute_s,
            communication_s=sum(each.communication_s for each in collectives),
            waited_s=sum(waited for _, waited, _ in totals.transfers.values()), slowdown=slowdown,
            collectives=collectives, unknown=self._unknown(engine, done), notes=self._notes(engine),
            memory_bytes=self.memory_bytes, topology=self.topology.spec, devices=self.module.devices,
            kernels=totals.kernels, trace=done if record else None)

    def _check_complete(self, name: str) -> None:
        """Refuses a schedule that lacks a collective of the module, since its times would be too small.

        Loop conditions are exempt, since a loop with known trip count does not run its condition.
        """
        known = {one.sends for one in self.program.transfers} | self.program.untimed
        if all((computation.name, one.name) in known for computation in self.module.computations.values()
               for one in computation.instructions.values() if collective_kind(one.opcode)):
            return
        lost = [(run, one, kind) for run, one, kind in executed_collectives(self.module)
                if (run.computation.name, one.name) not in known and not run.in_condition]
        if lost:
            run, one, kind = lost[0]
            source = self._sources.of(run.computation, one)
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise InputError(
                f"the simulated schedule lacks the {kind} {one.name}{f' of {source}' if source != '?' else ''}{more}: "
                f"the form in which {run.computation.name} is called is not known", location=name or None,
                hint="`hlorewrite report` counts it; please report the HLO")

    def _collectives(self, done: ProgramOutcome) -> tuple[CollectiveExposure, ...]:
        listed = []
        for number, (one, (source, tensor)) in enumerate(zip(self.program.transfers, self._named(), strict=True)):
            runs, waited, lost = done.totals.transfers.get(number, (None, 0.0, 0.0))
            listed.append(CollectiveExposure(one.name, one.kind, source, tensor=tensor, payload_bytes=one.payload_bytes,
                                             groups=one.groups, trips=runs, time_s=one.seconds, stream=one.stream,
                                             exposed_s=waited + lost, waited_s=waited))
        return tuple(listed)

    def _named(self) -> list[tuple[str, str]]:
        """(source line, tensor) of each transfer."""
        if self._labels is None:
            computations = self.module.computations
            self._labels = []
            for one in self.program.transfers:
                computation = computations[one.computation]
                instruction = computation.instructions[one.name]
                source = self._sources.of(computation, instruction)
                if source == "?" and one.sends != (one.computation, one.name):
                    inner = computations[one.sends[0]]
                    source = self._sources.of(inner, inner.instructions[one.sends[1]])
                self._labels.append((source, self._tensors.of(computation, instruction)))
        return self._labels

    def _unknown(self, engine: Engine, done: ProgramOutcome) -> tuple[UnknownTime, ...]:
        listed = []
        for number, gap in enumerate(self.program.gaps):
            instruction = self.module.computations[gap.computation].instructions[gap.name]
            listed.append(UnknownTime(gap.what, gap.name, self.module.source(instruction), gap.detail,
                                      done.totals.gaps.get(number), engine.turn_s.get(number)))
        return tuple(listed)

    def _notes(self, engine: Engine) -> tuple[str, ...]:
        notes = list(self.program.notes)
        if self.unused_times:
            notes.append(f"measured times of {len(self.unused_times)} names that are not instructions of the module: "
                         f"{', '.join(self.unused_times[:3])}{', ...' if len(self.unused_times) > 3 else ''}")
        notes += [f"{name} does not settle into a period; its last simulated iteration is repeated"
                  for name in sorted(engine.not_periodic)]
        return tuple(notes)


def check_scheduled(module: HloText, text: str, name: str = "") -> None:
    """Refuses HLO that has no schedule of XLA:GPU.

    Args:
      module: the parsed text.
      text: the text.
      name: the name of the file, for messages.

    Raises:
      InputError: it is not scheduled, or another backend scheduled it.
    """
    where = name or None
    other = _backend(text)
    if other:
        raise InputError(f"this HLO is {other}'s; only schedules of XLA:GPU are read", location=where,
                         hint="compile the step for described GPUs: hlorewrite timeline STEP.mlir --target h200:1x8")
    if not is_scheduled(module.header):
        raise InputError("this HLO is not scheduled", location=where,
                         hint="pass the text after optimisations: Compiled.as_text(), or the file of an XLA dump whose "
                              "name ends in gpu_after_optimizations.txt")


def _backend(text: str) -> str:
    """The backend that made this HLO, if that is certain and not XLA:GPU; empty otherwise."""
    if "operation_queue_id" in text or "fusion_backend_config" in text:
        return ""
    if '"outer_dimension_partitions"' in text or '"__ynn_fusion"' in text or "__onednn$" in text:
        return "XLA:CPU"
    return "XLA:TPU" if ":T(8,128)" in text or "tpu_custom_call" in text else ""


# ---- trip counts by the user's line, from the StableHLO module that was compiled


def line_trips(module: Module) -> dict[str, int]:
    """The trip count of the loops on each line.

    Args:
      module: the module; it is not changed.

    Returns:
      Trip counts by source line, for lines whose loops all have the same one.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> line_trips(parse("func.func @main() { return }"))
      {}
    """
    view = View(module)
    counts: dict[str, set[int | None]] = {}
    for loop in view.ops("stablehlo.while"):
        counts.setdefault(view.source(loop), set()).add(trip_count(loop))
    return {line: count for line, found in counts.items() if len(found) == 1 and (count := found.pop()) is not None}
