"""The result of a simulated schedule: step time, compute, communication, its exposed part; and its text."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table

# ---- the result

# Results of a simulated schedule: step time, compute, communication, and its exposed part.


@dataclass(frozen=True)
class CollectiveExposure:
    """One collective of a step, over all its executions.

    Attributes:
      name: the instruction; for an asynchronous pair, the start.
      kind: ``all-reduce`` and so on.
      source: the user's line, ``?`` when the module does not say.
      tensor: parameters that it belongs to, or the type that it sends if no parameter is known.
      payload_bytes: the payload of one execution on one device, the larger of operand and result, in bytes.
      groups: device numbers of each group; for a permute, the pairs.
      trips: executions in a step; None inside a loop whose trip count is unknown.
      time_s: one execution.
      stream: the stream it runs on; ``compute`` when it is synchronous.
      exposed_s: seconds that all executions add to the step: compute waits for them or is slowed down by them.
      waited_s: the part of it in which compute waits.
    """

    name: str
    kind: str
    source: str
    tensor: str
    payload_bytes: int
    groups: tuple[tuple[int, ...], ...]
    trips: int | None
    time_s: float
    stream: str
    exposed_s: float
    waited_s: float

    @property
    def communication_s(self) -> float:
        """Seconds of all executions, hidden or not; executions in loops with unknown trip counts do not count."""
        return self.time_s * (self.trips or 0)

    def as_json(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        return {"name": self.name, "kind": self.kind, "source": self.source, "tensor": self.tensor,
                "payload_bytes": self.payload_bytes, "groups": [list(group) for group in self.groups],
                "trips": self.trips, "time_s": self.time_s, "communication_s": self.communication_s,
                "exposed_s": self.exposed_s, "waited_s": self.waited_s, "stream": self.stream}


@dataclass(frozen=True)
class UnknownTime:
    """A part of a step whose time is not known and counts as zero.

    Attributes:
      what: ``custom call`` or ``trip count``.
      name: the instruction.
      source: the user's line, or ``?``.
      detail: the target of a custom call.
      runs: how often it is reached in a step; None inside a loop with an unknown trip count.
      each_s: seconds of one iteration of a loop; None for a custom call.
    """

    what: str
    name: str
    source: str
    detail: str
    runs: int | None
    each_s: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        return {"what": self.what, "name": self.name, "source": self.source, "detail": self.detail,
                "runs": self.runs, "each_s": self.each_s}


@dataclass(frozen=True)
class StepTimeline:
    """One step of a compiled module on a cluster, simulated.

    ``step_s = compute_s + exposed_s``, and ``exposed_s`` is what communication adds to the step: the time in which
    compute waits, and the time it loses because it runs concurrently with a collective.

    Attributes:
      step_s: the time from the first kernel to the last; a lower bound while anything is unknown.
      compute_s: all kernels, each alone on its GPU.
      communication_s: all collectives, each alone.
      waited_s: the part of ``exposed_s`` in which compute waits.
      slowdown: compute during a collective takes 1 + this times as long.
      collectives: the collectives, in the order they are first reached.
      unknown: parts without a known time.
      notes: messages about how the step was read.
      memory_bytes: the memory of one device in bytes; None if it was not passed.
      topology: the cluster, ``NAME:HOSTSxGPUS``.
      devices: the number of devices of the module.
      kernels: the number of kernels that a step runs.
    """

    step_s: float
    compute_s: float
    communication_s: float
    waited_s: float
    slowdown: float
    collectives: tuple[CollectiveExposure, ...]
    unknown: tuple[UnknownTime, ...] = ()
    notes: tuple[str, ...] = ()
    memory_bytes: int | None = None
    topology: str = ""
    devices: int = 1
    kernels: int = 0
    trace: Any = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        share = self.exposed_s / self.step_s if self.step_s else 0.0
        least = "" if self.complete else "at least "
        return (f"step {least}{format_seconds(self.step_s)} on {self.topology}: "
                f"compute {format_seconds(self.compute_s)}, exposed {format_seconds(self.exposed_s)} ({share:.1%}) of "
                f"{format_seconds(self.communication_s)} communication, compute during it {self.slowdown:.0%} slower")

    @property
    def exposed_s(self) -> float:
        """The time that communication adds to the step."""
        return self.step_s - self.compute_s

    @property
    def exposed_at(self) -> dict[str, float]:
        """The seconds that the collectives of each line of the program add to the step; lines that add nothing are left
        out.
        """
        lines: dict[str, float] = {}
        for one in self.collectives:
            if one.source != "?" and one.exposed_s > 0:
                lines[one.source] = lines.get(one.source, 0.0) + one.exposed_s
        return lines

    @property
    def bound_s(self) -> float:
        """The step if all communication were hidden: the longer of compute and communication."""
        return max(self.compute_s, self.communication_s)

    @property
    def complete(self) -> bool:
        """Whether all times are known."""
        return not self.unknown

    def as_json(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        return {"step_s": self.step_s, "compute_s": self.compute_s, "communication_s": self.communication_s,
                "exposed_s": self.exposed_s, "bound_s": self.bound_s, "memory_bytes": self.memory_bytes,
                "collectives": [each.as_json() for each in self.collectives], "waited_s": self.waited_s,
                "slowdown": self.slowdown, "complete": self.complete, "topology": self.topology,
                "devices": self.devices, "kernels": self.kernels,
                "unknown": [each.as_json() for each in self.unknown], "notes": list(self.notes)}


# ---- as text for a terminal

# A timeline as text for a terminal.


_LEAST_SHARE = 1e-3


def timeline_text(name: str, at: Sequence[StepTimeline]) -> str:
    """A step at several slowdowns.

    Args:
      name: the name of the input.
      at: the same step at different slowdowns.

    Returns:
      Lines without a final newline.
    """
    first = at[0]
    memory = f", {format_bytes(first.memory_bytes)} a device" if first.memory_bytes is not None else ""
    lines = [f"{name}: {first.kernels} kernels, {sum(one.trips or 0 for one in first.collectives)} transfers a step on "
             f"{first.topology}{memory}", "", *_totals(at)]
    if first.collectives:
        lines += ["", *_collectives(at)]
    lines += _unknown(first)
    return "\n".join([*lines, *(f"note: {note}" for note in first.notes)])


def _totals(at: Sequence[StepTimeline]) -> list[str]:
    rows = [["compute during a collective", "step", "compute", "communication", "exposed", "exposed / step",
             "perfect overlap"]]
    for one in at:
        rows.append([f"{one.slowdown:.0%} slower{'' if one.complete else ', at least'}",
                     *map(format_seconds, (one.step_s, one.compute_s, one.communication_s, one.exposed_s)),
                     _share(one.exposed_s, one.step_s), format_seconds(one.bound_s)])
    return table(rows, "<>>>>>>")


def _collectives(at: Sequence[StepTimeline]) -> list[str]:
    rows = [["collective", "source", "tensor", "stream", "payload", "trips", "time", "total",
             *(f"exposed at {one.slowdown:.0%}" for one in at), "exposed / total"]]
    order = sorted(range(len(at[0].collectives)), key=lambda i: -at[-1].collectives[i].exposed_s)
    for place in order:
        one, last = at[0].collectives[place], at[-1].collectives[place]
        rows.append([one.kind, one.source, one.tensor, one.stream, format_bytes(one.payload_bytes), _trips(one),
                     format_seconds(one.time_s), format_seconds(one.communication_s) if one.trips is not None else "-",
                     *(_exposed(each.collectives[place]) for each in at),
                     "-" if last.trips is None else _share(last.exposed_s, last.communication_s)])
    return table(rows, "<<<<>>>>>" + ">" * len(at))


def _trips(one: CollectiveExposure) -> str:
    return "?" if one.trips is None else str(one.trips)


def _exposed(one: CollectiveExposure) -> str:
    return "-" if one.trips is None else format_seconds(one.exposed_s)


def _share(part: float, whole: float) -> str:
    share = part / whole if whole else 0.0
    return "<0.1 %" if 0 < share < _LEAST_SHARE else f"{share * 100:.1f} %"


def _unknown(step: StepTimeline) -> list[str]:
    return ["", *(f"unknown: {unknown_line(one)}" for one in step.unknown)] if step.unknown else []


def unknown_line(one: UnknownTime) -> str:
    """Describes an unknown time in one line."""
    where = f"{one.source}: " if one.source != "?" else ""
    if one.what == "trip count":
        each = f", {format_seconds(one.each_s)} each" if one.each_s is not None else ""
        return (f"{where}the loop {one.name} runs an unknown number of iterations{each}; it counts nothing "
                f"(add --trips {one.name}=N, or --source with the StableHLO)")
    runs = "" if one.runs is None else f", {one.runs} times a step"
    if one.what == "custom call":
        return (f"{where}{one.name} calls {one.detail or 'a target that is not named'}{runs}; its time is unknown "
                "and counts as zero (pass --kernel-times)")
    return f"{where}{one.name} is a collective whose payload or groups cannot be read{runs}; it counts as zero"
