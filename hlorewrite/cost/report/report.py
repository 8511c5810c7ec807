"""Communication of a module: its collectives with times on a topology, totals, the communication matrix, and its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.collectives.models import CollectiveModel, collective_model
from hlorewrite.cost.traffic import CollectiveTraffic, traffic_matrix
from hlorewrite.errors import UsageError
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE, timed_kind
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


UNCOUNTED_CALLS = "custom calls that may communicate are not counted"
UNCOUNTED_MESSAGES = "messages between devices are not counted"
MOST_PRINTED_DEVICES = 2048
"""JSON contains matrices of up to this many devices: four million numbers."""


def counted_names(found: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Messages about what is not counted.

    Args:
      found: how often each name occurs, by reason.

    Example:
      >>> counted_names({UNCOUNTED_CALLS: {"exchange": 2}})
      ['custom calls that may communicate are not counted: exchange (2)']
    """
    return [f"{why}: " + ", ".join(f"{name} ({count})" for name, count in sorted(names.items()))
            for why, names in sorted(found.items())]


@dataclass(frozen=True, slots=True)
class Executed:
    """One collective of a module and how often it runs.

    Args:
      kind: one of ``hlorewrite.cost.KINDS``.
      source: the user's line, ``?`` when the module does not say.
      groups: device numbers of each group; [source, target] pairs for collective-permute.
      axes: mesh axes the groups span, by name; empty when no mesh of the module has such groups.
      payload_bytes: the larger of operand and result, bytes of one device.
      trips: how often it runs: the product of the trip counts of the loops around it.
      trips_known: False when a loop around it has a count that is not constant; that loop counts once.
      loop: the user's line of the innermost loop around it; empty outside of loops.
      loop_depth: how many loops are around it.
      name: the instruction in optimised HLO; empty elsewhere.
    """

    kind: str
    source: str
    groups: tuple[tuple[int, ...], ...]
    axes: tuple[str, ...]
    payload_bytes: int
    trips: int
    trips_known: bool
    loop: str
    loop_depth: int
    name: str = ""

    @property
    def executed_bytes(self) -> int:
        """Payload times trips."""
        return self.payload_bytes * self.trips


@dataclass(frozen=True, slots=True)
class Line:
    """A collective with its predicted time.

    Args:
      what: the collective.
      time_s: one execution; None without a topology.
      exposed_s: what all executions add to the step, from a simulation of the schedule; None without one.
    """

    what: Executed
    time_s: float | None
    exposed_s: float | None = None

    @property
    def executed_time_s(self) -> float | None:
        """Seconds of all executions in an iteration."""
        return None if self.time_s is None else self.time_s * self.what.trips

    def as_dict(self) -> dict[str, Any]:
        """Its part of the output of ``hlorewrite report --json``."""
        what = self.what
        return {
            "kind": what.kind, "source": what.source, "groups": [list(group) for group in what.groups],
            "axes": list(what.axes), "payload_bytes": what.payload_bytes, "trips": what.trips,
            "trips_known": what.trips_known, "executed_bytes": what.executed_bytes, "loop": what.loop,
            "loop_depth": what.loop_depth, "time_s": self.time_s, "executed_time_s": self.executed_time_s,
            "exposed_s": self.exposed_s,
        }


@dataclass(frozen=True)
class CommunicationReport:
    """Everything one module communicates.

    Args:
      name: the file.
      form: ``stablehlo``, ``hlo`` or ``mpmd``.
      devices: devices the module runs on.
      lines: its collectives, in the order of the program.
      topology: the cluster that times were predicted for; None without one.
      remarks: messages about what could not be read.
    """

    name: str
    form: str
    devices: int
    lines: tuple[Line, ...]
    topology: Topology | None = None
    remarks: tuple[str, ...] = field(default=())

    @property
    def executed_bytes(self) -> int:
        """Payload times trips of all collectives."""
        return sum(line.what.executed_bytes for line in self.lines)

    @property
    def time_s(self) -> float | None:
        """Predicted time of all collectives, one after the other; None without a topology."""
        return None if self.topology is None else sum(line.executed_time_s or 0.0 for line in self.lines)

    @property
    def exposed_s(self) -> float | None:
        """The time that communication adds to the step; None when no schedule was simulated."""
        known = [line.exposed_s for line in self.lines if line.exposed_s is not None]
        return sum(known) if known else None

    def totals(self, key: Callable[[Executed], str]) -> dict[str, dict[str, Any]]:
        """Count, executed bytes and time by any property.

        Args:
          key: what to group by.

        Returns:
          By key, sorted: ``collectives``, ``executed_bytes`` and ``time_s``.
        """
        rows: dict[str, dict[str, Any]] = {}
        for line in self.lines:
            row = rows.setdefault(key(line.what), {"collectives": 0, "executed_bytes": 0, "time_s": None})
            row["collectives"] += 1
            row["executed_bytes"] += line.what.executed_bytes
            if line.executed_time_s is not None:
                row["time_s"] = (row["time_s"] or 0.0) + line.executed_time_s
        return dict(sorted(rows.items()))

    def matrix(self) -> Array:
        """The communication matrix: bytes from GPU (row) to GPU (column) of one run of the module."""
        return traffic_matrix((CollectiveTraffic(timed_kind(line.what.kind), line.what.payload_bytes, line.what.groups,
                                                 line.what.trips)
                               for line in self.lines), self.devices)

    def as_dict(self) -> dict[str, Any]:
        """The output of ``hlorewrite report --json``; the matrix of more than ``MOST_PRINTED_DEVICES`` is null."""
        printed = self.devices <= MOST_PRINTED_DEVICES
        left_out = [] if printed else [f"the matrix of {self.devices} devices is left out; --matrix FILE writes it"]
        return {
            "input": self.name, "form": self.form, "devices": self.devices,
            "topology": self.topology.spec if self.topology else None,
            "collectives": [line.as_dict() for line in self.lines],
            "totals": {
                "executed_bytes": self.executed_bytes, "time_s": self.time_s,
                "exposed_time_s": self.exposed_s,
                "by_kind": self.totals(kind_key), "by_axis": self.totals(axis_key), "by_loop": self.totals(loop_key),
            },
            "matrix_bytes": self.matrix().tolist() if printed else None, "remarks": [*self.remarks, *left_out],
        }


def kind_key(what: Executed) -> str:
    """Groups by kind."""
    return what.kind


def axis_key(what: Executed) -> str:
    """Groups by mesh axes, or by group size if there is no mesh."""
    size = max((len(group) for group in what.groups), default=0)
    return ",".join(what.axes) if what.axes else f"groups of {size}"


def loop_key(what: Executed) -> str:
    """Groups by the innermost loop."""
    return what.loop or "outside loops"


def build_report(name: str, form: str, devices: int, executed: Sequence[Executed], topology: Topology | None = None,
                 *, remarks: Sequence[str] = (), times: CollectiveModel | None = None,
                 exposed: Mapping[str, float] | None = None) -> CommunicationReport:
    """Predicts times of a module's collectives.

    Args:
      name: the file.
      form: ``stablehlo``, ``hlo`` or ``mpmd``.
      devices: devices of the module.
      executed: its collectives.
      topology: the cluster it would run on; None for bytes only.
      remarks: messages about what could not be read.
      times: another model of collective times.
      exposed: what each collective adds to the step, by its name (``hlorewrite.timeline``).

    Returns:
      The report.

    Raises:
      UsageError: the topology has fewer GPUs than the module has devices.
    """
    if topology is not None and topology.gpus < devices:
        raise UsageError(f"{name} runs on {devices} devices, but {topology.spec} has {topology.gpus} GPUs",
                         hint="name a larger topology")
    said = list(remarks)
    if not executed and not said:
        said.append("the module contains no collective; a program with automatic shardings contains none before XLA "
                    "partitions it")
    if any(not what.trips_known for what in executed):
        said.append("a loop has no constant trip count and is counted once")
    model = times or (collective_model(topology) if topology else None)
    lines = tuple(_line(what, model, (exposed or {}).get(what.name)) for what in executed)
    return CommunicationReport(name, form, devices, lines, topology, tuple(said))


def _line(what: Executed, model: CollectiveModel | None, exposed: float | None) -> Line:
    time = model.collective_time(timed_kind(what.kind), what.payload_bytes, what.groups) if model else None
    return Line(what, time, exposed)


def change(before: CommunicationReport, after: CommunicationReport) -> dict[str, Any]:
    """The difference between two reports.

    Args:
      before: the original.
      after: the rewritten.

    Returns:
      Executed bytes and time of both and their difference, in total, by kind and by axis.
    """
    def pair(old: Any, new: Any) -> dict[str, Any]:
        if old is None or new is None:
            return {"before": old, "after": new, "difference": None, "ratio": None}
        return {"before": old, "after": new, "difference": new - old, "ratio": new / old if old else None}

    def by(key: Callable[[Executed], str]) -> dict[str, Any]:
        old, new = before.totals(key), after.totals(key)
        none = {"collectives": 0, "executed_bytes": 0}
        return {name: {what: pair(old.get(name, none)[what], new.get(name, none)[what])
                       for what in ("collectives", "executed_bytes")} for name in sorted({*old, *new})}

    return {"executed_bytes": pair(before.executed_bytes, after.executed_bytes),
            "time_s": pair(before.time_s, after.time_s), "by_kind": by(kind_key), "by_axis": by(axis_key)}


# ---- a report as text for a terminal


def report_text(report: CommunicationReport) -> str:
    """Collectives, totals and remarks of one module.

    Args:
      report: what it communicates.

    Returns:
      Lines without a final newline.
    """
    lines = [f"{report.name}: {len(report.lines)} collectives on {report.devices} devices"
             + (f", times for {report.topology.spec}" if report.topology else "")]
    if report.lines:
        lines += ["", *_collectives(report)]
        for title, key in (("by kind", kind_key), ("by axis", axis_key), ("by loop", loop_key)):
            rows = [[name, str(row["collectives"]), format_bytes(row["executed_bytes"]), _time(row["time_s"])]
                    for name, row in report.totals(key).items()]
            lines += ["", *table([[title, "collectives", "executed", "time"], *rows], "<>>>")]
        total = f"total {format_bytes(report.executed_bytes)} a device"
        if report.time_s is not None:
            total += f", {format_seconds(report.time_s)} one after the other"
            exposed = report.exposed_s
            total += "; exposed time needs a schedule: `hlorewrite timeline`" if exposed is None else \
                f", {format_seconds(exposed)} exposed"
        lines += ["", total]
    lines += [f"note: {remark}" for remark in report.remarks]
    return "\n".join(lines)


def _collectives(report: CommunicationReport) -> list[str]:
    simulated = report.exposed_s is not None  # a sum over all lines: not once more in each of them
    rows = [["collective", "source", "axes", "groups", "payload", "trips", "executed", "time", "total",
             *(["exposed"] if simulated else [])]]
    for line in report.lines:
        what = line.what
        size = max((len(group) for group in what.groups), default=0)
        shape = f"{len(what.groups)} pairs" if what.kind == COLLECTIVE_PERMUTE.kind else f"{len(what.groups)}x{size}"
        trips = str(what.trips) if what.trips_known else f"{what.trips}?"
        rows.append([what.kind, what.source, ",".join(what.axes) or "-", shape, format_bytes(what.payload_bytes), trips,
                     format_bytes(what.executed_bytes), _time(line.time_s), _time(line.executed_time_s),
                     *([_time(line.exposed_s)] if simulated else [])])
    return table(rows, "<<<>>>>>>>")


def change_text(before: CommunicationReport, after: CommunicationReport) -> str:
    """The difference between two modules.

    Args:
      before: the original.
      after: the rewritten.

    Returns:
      Lines without a final newline.
    """
    changed = change(before, after)
    rows = [["executed bytes", "before", "after", "after/before"], ["all", *_pair(changed["executed_bytes"])]]
    for section in ("by_kind", "by_axis"):
        rows += [[name, *_pair(row["executed_bytes"])] for name, row in changed[section].items()]
    lines = [f"against {before.name}", *table(rows, "<>>>")]
    if changed["time_s"]["ratio"] is not None:
        old, new = changed["time_s"]["before"], changed["time_s"]["after"]
        lines.append(f"predicted communication time {format_seconds(old)} -> {format_seconds(new)} "
                     f"({changed['time_s']['ratio']:.2f}x)")
    return "\n".join(lines)


def _pair(row: dict) -> list[str]:
    ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
    return [format_bytes(row["before"]), format_bytes(row["after"]), ratio]


def _time(time: float | None) -> str:
    return "-" if time is None else format_seconds(time)
