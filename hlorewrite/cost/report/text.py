"""A report as text for a terminal."""

from hlorewrite.cost.report.report import CommunicationReport, axis_key, change, kind_key, loop_key
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table


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
