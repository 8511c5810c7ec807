"""Converts the report of a step to data of a plan file, and back."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hlorewrite.checks.reference.rounding.static.summation_order import SummationOrders
from hlorewrite.errors import PlanMismatch
from hlorewrite.jaxbridge.baseline.comparison import WayRow, XlaComparison
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.step.report import RewriteReport, StepCollective
from hlorewrite.lockfile.document import PlanDocument
from hlorewrite.lockfile.remarks import remarks_of, short_place, short_places


def report_data(report: RewriteReport) -> dict[str, Any]:
    """The figures of a report; source lines without folders."""
    rounding = report.rounding
    return {"after": [_collective_data(each) for each in report.after],
            "before": [_collective_data(each) for each in report.before], "budget": report.budget,
            "changed": report.changed, "comparison": _comparison_data(report.comparison), "digest": report.digest,
            "exposed": report.exposed, "pipeline": short_places(report.pipeline), "proof": report.proof,
            "rewrites": report.rewrites, "rounding": None if rounding is None else rounding.as_dict()}


def report_of(document: PlanDocument, name: str) -> RewriteReport:
    """The report of a run that replays a plan.

    Args:
      document: the plan.
      name: its file.

    Raises:
      PlanMismatch: the plan does not contain a report.
    """
    remarks, data = remarks_of(document, name), document.report
    try:
        return RewriteReport(str(data["pipeline"]), bool(data["changed"]), bool(data["exposed"]),
                             _collectives(data["before"]), _collectives(data["after"]), remarks,
                             int(data["rewrites"]), str(data["digest"]), proof=str(data["proof"]),
                             comparison=_comparison(data["comparison"]), plan=f"replayed from {name}",
                             orders=None if data["rounding"] is None else SummationOrders.of_dict(data["rounding"]),
                             budget=str(data["budget"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PlanMismatch("is not a complete plan", location=name) from None


def _collective_data(one: StepCollective) -> dict[str, Any]:
    return {"bytes": one.bytes, "kind": one.kind, "source": short_place(one.source), "trips": one.trips,
            "wire": str(one.wire)}


def _collectives(data: list[Mapping[str, Any]]) -> tuple[StepCollective, ...]:
    return tuple(StepCollective(str(one["kind"]), int(one["bytes"]), int(one["trips"]), str(one["source"]),
                                Fraction(str(one["wire"])))
                 for one in data)


def _comparison_data(comparison: XlaComparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {"against": comparison.against, "devices": comparison.devices, "partitioner": comparison.partitioner,
            "name": comparison.name, "rewritten": _measured_data(comparison.ours) if comparison.ours else None,
            "tried": [_row_data(row) for row in comparison.tried], "with_code": comparison.with_code,
            "xla_alone": _measured_data(comparison.alone)}


def _comparison(data: Mapping[str, Any] | None) -> XlaComparison | None:
    if data is None:
        return None
    ours = _measured(data["rewritten"]) if data["rewritten"] is not None else None
    return XlaComparison(str(data["devices"]), _measured(data["xla_alone"]), ours, str(data["partitioner"]),
                         str(data["against"]), bool(data["with_code"]), name=str(data["name"]),
                         tried=tuple(map(_row, data["tried"])))


def _row_data(row: WayRow) -> dict[str, Any]:
    return {"flags": row.shown_flags, "measured": _measured_data(row.measured) if row.measured else None,
            "name": row.name, "why": row.why}


def _row(data: Mapping[str, Any]) -> WayRow:
    measured = _measured(data["measured"]) if data["measured"] is not None else None
    return WayRow(str(data["name"]), measured, str(data["why"]), flags=tuple(data["flags"].items()))


def _measured_data(one: Measured) -> dict[str, Any]:
    """The figures that are the same in every run; not how long XLA took, nor its program."""
    return {"bytes": one.bytes, "calls": one.calls, "capacity": one.capacity, "counted_s": one.counted_s,
            "exposed_s": one.exposed_s, "memory": one.memory, "plain_s": one.plain_s, "step_s": one.step_s,
            "temp": one.temp, "trips_known": one.trips_known, "unknown": list(one.unknown), "untimed": one.untimed,
            "wire": one.wire}


def _measured(data: Mapping[str, Any]) -> Measured:
    return Measured(int(data["calls"]), int(data["bytes"]), int(data["wire"]), int(data["temp"]), 0.0, "",
                    bool(data["trips_known"]), _seconds(data["step_s"]), _seconds(data["exposed_s"]),
                    untimed=str(data["untimed"]), memory=int(data["memory"]), capacity=int(data["capacity"]),
                    counted_s=_seconds(data["counted_s"]), plain_s=_seconds(data["plain_s"]),
                    unknown=tuple(map(str, data["unknown"])))


def _seconds(value: object) -> float | None:
    return None if value is None else float(str(value))
