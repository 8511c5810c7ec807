"""The page of a simulated step: its time, how much of it is exposed, and at which lines; alone, or next to another
one."""

from collections.abc import Sequence
from typing import Any

from hlorewrite.cost import topology
from hlorewrite.cost.cluster.capacity import usable_bytes
from hlorewrite.page.decision import CHOSEN
from hlorewrite.page.run_page import PageSection, PageTable
from hlorewrite.timeline.result import CollectiveExposure, StepTimeline
from hlorewrite.util.sizes import format_bytes, format_seconds, step_saving, told_apart

MOST_EXPOSED = 50
"""Collectives that the page lists; ``--json`` has all."""
_HEADS = ("collective", "line", "tensor", "runs", "payload", "each", "exposed")


def step_decision(name: str, step: StepTimeline, before: tuple[str, StepTimeline] | None = None) -> dict[str, Any]:
    """A step, or two, in the form of ``opt --json``: the answer and a row for each.

    Args:
      name: the name of the input.
      step: what was simulated.
      before: the name and step to compare it with; None if there is none.

    Example:
      >>> slow, fast = (StepTimeline(s, 1.0, 1.0, 0.5, 0.2, (), topology="h200:1x8") for s in (2.0, 1.5))
      >>> step_decision("new", fast)["saving"]
      '1.5 s a step on h200:1x8, of which 500 ms exposed'
      >>> step_decision("new", fast, ("old", slow))["saving"]
      "0.75 of old's step: 1.5 s, not 2 s"
      >>> step_decision("new", slow, ("old", fast))["saving"]
      ''
    """
    made = {"devices": step.topology, "chosen": name, "reason": ""}
    alone = (f"{format_seconds(step.step_s)} a step on {step.topology}, of which {format_seconds(step.exposed_s)} "
             "exposed")
    if before is None:
        return made | {"saving": alone, "rows": [_row(name, step, "")]}
    other = before[1].step_s
    times = told_apart(step.step_s, other, format_seconds, 3)
    saving = step_saving(step.step_s, other, before[0]) if step.step_s < other else ""
    reason = "" if saving else f"{name} takes {times[0]} a step, and {before[0]} {times[1]}"
    return made | {"saving": saving, "reason": reason,
                   "rows": [_row(*before, "before"), _row(name, step, "after") | {"verdict": CHOSEN}]}


def step_section(name: str, step: StepTimeline, decision: dict[str, Any]) -> PageSection:
    """The section of a step.

    Args:
      name: the name of the input.
      step: what was simulated.
      decision: what ``step_decision`` made of it.
    """
    exposed = sorted((one for one in step.collectives if one.exposed_s > 0), key=lambda one: -one.exposed_s)
    table = PageTable("What is exposed, by collective", _HEADS, tuple(map(_exposed, exposed[:MOST_EXPOSED])),
                      left_out=len(exposed[MOST_EXPOSED:]), numbers=_HEADS[3:], folded=False)
    return PageSection(name, decision["saving"] or decision["reason"], decision, tables=(table,))


def _row(name: str, step: StepTimeline, why: str) -> dict[str, Any]:
    sent = [(one.trips or 0, one.payload_bytes) for one in step.collectives]
    room = usable_bytes(int(topology(step.topology).memory_bytes)) if step.topology else None
    least = "" if step.complete else f"at least: {len(step.unknown)} parts have no known time"
    memory = step.memory_bytes
    return {"name": name, "step_s": step.step_s, "exposed_s": step.exposed_s, "calls": sum(trips for trips, _ in sent),
            "executed_bytes": sum(trips * size for trips, size in sent), "memory_bytes": memory, "room_bytes": room,
            "fits": memory <= room if memory is not None and room is not None else None, "verdict": "",
            "why": ", ".join(filter(None, (why, least)))}


def _exposed(one: CollectiveExposure) -> Sequence[str]:
    return (one.kind, one.source, one.tensor, "unknown" if one.trips is None else str(one.trips),
            format_bytes(one.payload_bytes, 1), format_seconds(one.time_s), format_seconds(one.exposed_s))
