"""A timeline as text for a terminal."""

from collections.abc import Sequence

from hlorewrite.timeline.result import CollectiveExposure, StepTimeline, UnknownTime
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table

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
