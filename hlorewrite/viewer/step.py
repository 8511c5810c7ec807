"""The page of one simulated step: its times, its collectives, and its streams as lanes."""

from collections.abc import Sequence
from typing import Any

from hlorewrite.timeline.result import StepTimeline, unknown_line
from hlorewrite.version import VERSION
from hlorewrite.viewer.page import render
from hlorewrite.viewer.timeline import timeline_of

_LEAD = "The timeline of each stream of one GPU. Point at a span to see what runs concurrently with it."


def step_page(name: str, at: Sequence[StepTimeline], events: list[Any]) -> bytes:
    """The page as HTML.

    Args:
      name: the name of the input.
      at: the same step at different slowdowns; the streams are those of the last.
      events: its trace events.

    Returns:
      UTF-8.
    """
    return render(step_data(name, at, events), f"{name} · hlorewrite")


def step_data(name: str, at: Sequence[StepTimeline], events: list[Any]) -> dict[str, Any]:
    """The contents of the page, as plain data.

    Args:
      name: the name of the input.
      at: the same step at different slowdowns.
      events: trace events of the last.

    Returns:
      ``head``, ``step`` and, when anything runs, ``timeline``.
    """
    last = at[-1]
    timeline, notes = timeline_of(events)
    notes += [f"Unknown: {unknown_line(one)}." for one in last.unknown]
    notes += [f"{note[:1].upper()}{note[1:]}." for note in last.notes]
    data: dict[str, Any] = {"step": {
        "at": [{key: one.as_json()[key] for key in ("slowdown", "step_s", "compute_s", "communication_s", "exposed_s",
                                                    "bound_s")} for one in at],
        "memory_bytes": last.memory_bytes, "collectives": _collectives(at)}}
    if timeline:
        lead = f"{_LEAD} Compute during a collective is {last.slowdown:.0%} slower."
        data["timeline"] = timeline | {"title": "Streams", "lead": lead, "beside": True}
    run = {"command": "timeline", "input": name, "pipeline": None, "hlorewrite": VERSION, "version": None}
    none = [None, None]
    data["head"] = {"run": run, "notes": notes, "decision": None, "sides": none, "memory": none, "steps": none,
                    "fates": {}, "timing": None, "rules": [], "missed_left_out": 0, "topology": last.topology,
                    "parts": sorted(data)}
    return data


def _collectives(at: Sequence[StepTimeline]) -> list[dict[str, Any]]:
    """Collectives with their exposed time at each slowdown, most exposed first."""
    keys = ("name", "kind", "source", "tensor", "stream", "payload_bytes", "trips", "time_s", "communication_s")
    rows = []
    for place, one in enumerate(at[-1].collectives):
        content = one.as_json()
        rows.append({key: content[key] for key in keys}
                    | {"exposed_s": [each.collectives[place].exposed_s for each in at]})
    return sorted(rows, key=lambda row: -row["exposed_s"][-1])
