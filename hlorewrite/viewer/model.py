"""Everything the page shows, as plain data: a small head that is painted at once, and parts that may be large."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hlorewrite.cost.cluster.topology import Topology
from hlorewrite.cost.collective_kinds import KINDS
from hlorewrite.cost.traffic import CollectiveTraffic, traffic_matrix
from hlorewrite.passmanager.trace import format as form
from hlorewrite.viewer import outcomes
from hlorewrite.viewer.outcomes import CollectiveOutcome, CollectiveRow, Groups, Side
from hlorewrite.viewer.reading import Trace
from hlorewrite.viewer.timeline import timeline_of

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray


MOST_HELD = 12
"""Lines of one loop that the picture of loops names; the others are added up."""

_TYPE = re.compile(r"tensor<[^<>]*>")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(\w+)>")
_EMPTY = Side(1, (), (), (), 0)


def page_data(trace: Trace, topology: Topology | None = None) -> dict[str, Any]:
    """The contents of the page of a trace.

    Args:
      trace: what could be read.
      topology: predict times on it, whatever the run predicted.

    Returns:
      ``head``, and for each part of the page that there is something for: ``collectives``, ``rewrites``, ``nests``,
      ``traffic``, ``timeline``.
    """
    notes = list(trace.notes)
    sides = [_side(trace, name, notes) for name in (form.BEFORE, form.AFTER)]
    if topology is not None:
        sides = [_timed(side, topology, notes) for side in sides]
    before, after = (side or _EMPTY for side in sides)
    fates = outcomes.outcomes_of(before, after, trace.lines.get(form.REMARKS, [])) if sides[0] and sides[1] else []
    data: dict[str, Any] = {}
    if fates:
        data["collectives"] = _collectives(before, after, fates)
    if before.collectives or after.collectives:
        data["nests"] = [_nests(side) if side else None for side in sides]
    if sides[0] and sides[1] and (traffic := traffic_of(before, after)):
        data["traffic"] = traffic
    elif max(before.devices, after.devices) > MOST_DEVICES:
        notes.append(f"The traffic of {before.devices} devices is too large for a picture.")
    if rewrites := [row for row in trace.lines.get(form.REWRITES, []) if "rule" in row]:
        data["rewrites"] = _rewrites(rewrites, before)
    events = trace.objects.get(form.TIMELINE, {}).get("traceEvents")
    timeline, said = timeline_of(events if isinstance(events, list) else [])
    notes += said
    if timeline:
        data["timeline"] = timeline | {"simulation": trace.objects.get(form.SIMULATION)}
    topo = topology.spec if topology else trace.manifest.get("topology")
    if streams := [(side, drawn) for side in ("before", "after") if (drawn := _streams(trace, side))]:
        data["streams"] = [{"side": side, "timeline": drawn} for side, drawn in streams]
    if sources := _sources(trace):
        data["sources"] = sources
    data["head"] = _head(trace, sides, fates, notes) | {"topology": topo, "parts": sorted(data)}
    return data


def _side(trace: Trace, name: str, notes: list[str]) -> Side | None:
    content = trace.objects.get(name)
    if content is None:
        return None
    side = outcomes.side_of(content)
    if side.damaged:
        notes.append(f"{name}: {side.damaged} collectives are damaged, and left out.")
    return side


def _timed(side: Side | None, topology: Topology, notes: list[str]) -> Side | None:
    """The side with times of another cluster."""
    from hlorewrite.cost.collectives.models import collective_model
    if side is None or topology.gpus < side.devices:
        if side is not None:
            notes.append(f"{topology.spec} has fewer GPUs than the {side.devices} devices of the module: "
                         "its times are not shown.")
        return side
    model, known = collective_model(topology), {}

    def time(one: CollectiveRow) -> float | None:
        key = (one.kind, one.payload_bytes, one.groups)
        if key not in known:
            known[key] = model.collective_time(*key) if one.kind in KINDS else None
        return known[key]

    return replace(side, collectives=tuple(replace(one, time_s=time(one)) for one in side.collectives))


# ---- the head


def _head(trace: Trace, sides: list[Side | None], fates: list[CollectiveOutcome], notes: list[str]) -> dict[str, Any]:
    manifest = trace.manifest
    said = [f"{remark[:1].upper()}{remark[1:]}." for side in sides[-1:] if side for remark in side.remarks]
    compiled = [trace.objects.get(form.COMPILED[side]) for side in ("before", "after")]
    return {
        "run": {key: manifest.get(key) for key in ("command", "input", "pipeline", "hlorewrite", "version")},
        "notes": [*notes, *dict.fromkeys(said)],
        "decision": decision_of(trace), "sides": [_totals(side) for side in sides],
        "memory": [_memory(each) for each in compiled],
        "steps": [_step(each) for each in compiled],
        "fates": {fate: count for fate in outcomes.FATES if (count := sum(each.fate == fate for each in fates))},
        "timing": _timing(trace), "rules": _rules(trace), "missed_left_out":
        (manifest.get("summary") or {}).get("missed_left_out", 0) if isinstance(manifest.get("summary"), dict) else 0,
    }


def _totals(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    by_kind: dict[str, list[int]] = {}
    by_axis: dict[str, list[int]] = {}
    for one in side.collectives:
        axes = ", ".join(one.axes) or f"groups of {max((len(group) for group in one.groups), default=0)}"
        for table, key in ((by_kind, one.kind), (by_axis, axes)):
            row = table.setdefault(key, [0, 0, 0])
            for place, amount in enumerate((1, one.trips, one.executed_bytes)):
                row[place] += amount
    return {"devices": side.devices, "bytes": side.executed_bytes, "time_s": side.time_s,
            "collectives": len(side.collectives), "calls": sum(one.trips for one in side.collectives),
            "by_kind": by_kind, "by_axis": by_axis}


def _memory(compiled: dict[str, Any] | None) -> dict[str, Any] | None:
    """Bytes of one device, as XLA's compiler says; None when it was not compiled."""
    memory = (compiled or {}).get("memory")
    names = ("argument", "output", "temp", "alias")
    if not isinstance(memory, dict) or not all(isinstance(memory.get(name), int) for name in names):
        return None
    total = memory["argument"] + memory["output"] + memory["temp"] - memory["alias"]
    return {"total": total, **{name: memory[name] for name in names}, "target": (compiled or {}).get("target")}


def _step(compiled: dict[str, Any] | None) -> dict[str, Any] | None:
    """Step and exposed seconds by the simulated schedule; None when it was not compiled for described GPUs."""
    step = (compiled or {}).get("timeline")
    names = ("step_s", "exposed_s", "slowdown")
    if not isinstance(step, dict) or not all(isinstance(step.get(name), int | float) for name in names):
        return None
    return {name: step[name] for name in names} | {"complete": step.get("complete") is True}


def _timing(trace: Trace) -> dict[str, Any] | None:
    timing = trace.objects.get(form.TIMING)
    if timing is None:
        return None
    steps, passes, rules = (outcomes.rows_of(timing, name) for name in ("steps", "passes", "rules"))
    return {"steps": [[str(row.get("step", "?")), _rounded(row.get("milliseconds"))] for row in steps],
            "passes": passes, "rules": rules}


def _rounded(value: Any) -> float:
    return round(float(value), 3) if isinstance(value, int | float) else 0.0


def _rules(trace: Trace) -> list[dict[str, Any]]:
    names = ("rule", "location", "equation", "docs", "text")
    return [{name: str(row.get(name, "")) for name in names}
            for row in outcomes.rows_of(trace.objects.get(form.RULES, {}), "rules")]


def _nests(side: Side) -> dict[str, Any]:
    """Loops and branches, and what each holds: collectives of one line, kind and axes together, largest first."""
    held: dict[tuple[int, str, str, str, int], list[int]] = {}
    for one in side.collectives:
        row = held.setdefault((one.nest, one.kind, one.source, ", ".join(one.axes), one.trips), [0, 0, 0])
        row[0] += 1
        row[1] += one.payload_bytes
        row[2] += one.executed_bytes
    shown: list[list[Any]] = []
    rest: dict[int, list[int]] = {}
    for (nest, kind, source, axes, trips), row in sorted(held.items(), key=lambda item: -item[1][2]):
        many = rest.setdefault(nest, [0, 0, 0])
        if many[0] < MOST_HELD:
            shown.append([nest, kind, source, axes, trips, *row])
            many[0] += 1
        else:
            many[1] += row[0]
            many[2] += row[2]
    return {"nests": [[nest.parent, nest.op, nest.source, nest.trips, nest.trips_known] for nest in side.nests],
            "held": shown, "rest": [[nest, count, size] for nest, (_, count, size) in rest.items() if count]}


# ---- large parts: texts are written once, rows refer to them


class Strings:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, text: object) -> int:
        """The number of a text."""
        return self.numbers.setdefault(str(text), len(self.numbers))

    @property
    def texts(self) -> list[str]:
        """All texts, by number."""
        return list(self.numbers)


def _collectives(before: Side, after: Side, fates: list[CollectiveOutcome]) -> dict[str, Any]:
    strings, groups = Strings(), {}
    for side in (before, after):
        for one in side.collectives:
            groups.setdefault(one.groups, len(groups))

    def row(side: Side, one: CollectiveRow) -> list[Any]:
        path = " › ".join(f"{op} {source}{f' ×{trips}' if op in ('while', 'fragment') else ''}"
                          for op, source, trips in side.path(one.nest))
        return [strings.of(one.kind), strings.of(one.source), groups[one.groups], strings.of(", ".join(one.axes)),
                one.payload_bytes, one.trips, int(one.trips_known), one.time_s,
                strings.of(path), strings.of(one.text), strings.of(one.argument), strings.of(_short(one.type))]

    return {
        "sides": [[row(side, one) for one in side.collectives] for side in (before, after)],
        "groups": [[list(group) for group in rows] for rows in groups],
        "fates": [[outcomes.FATES.index(fate.fate), -1 if fate.before is None else fate.before, list(fate.after),
                   fate.share,
                   [[strings.of(why.get(name, "")) for name in
                     ("kind", "rule", "sentence", "culprit", "culprit_location", "help")] for why in fate.why]]
                  for fate in fates],
        "names": outcomes.FATES, "strings": strings.texts}


def _short(type_: str) -> str:
    """``f32[8,2048]`` for ``tensor<8x2048xf32>``; other types as they are."""
    match = _TENSOR.fullmatch(type_)
    return f"{match[2]}[{match[1].rstrip('x').replace('x', ',')}]" if match else type_


def _rewrites(rows: list[dict[str, Any]], before: Side) -> dict[str, Any]:
    """Rewrites; each with the tensor it is about, and the argument when a collective at its line has that type."""
    strings = Strings()
    names = ("pass", "rule", "rule_location", "location", "before", "after")
    arguments: dict[tuple[str, str], list[str]] = {}
    for one in before.collectives:
        arguments.setdefault((one.source, one.type), []).append(one.argument)

    def about(row: dict[str, Any]) -> tuple[str, str]:
        found = _TYPE.findall(str(row.get("before", "")).partition("\n//")[0])
        type_ = found[-1] if found else ""
        waiting = arguments.get((str(row.get("location", "")), type_), [])
        return waiting.pop(0) if waiting else "", _short(type_)

    return {"rows": [[*(strings.of(row.get(name, "")) for name in names), _rounded(row.get("milliseconds")),
                      *(strings.of(text) for text in about(row))] for row in rows], "strings": strings.texts}


def _streams(trace: Trace, side: str) -> dict[str, Any] | None:
    """The streams of the compiled step of one side; None when it was not compiled for described GPUs."""
    step = trace.objects.get(form.COMPILED[side], {}).get("timeline")
    events = step.get("traceEvents") if isinstance(step, dict) else None
    drawn, _ = timeline_of(events if isinstance(events, list) else [])
    return drawn | {"beside": True} if drawn else None


def _sources(trace: Trace) -> dict[str, list[tuple[int, str]]]:
    """Lines of the user's program by ``file:line``; what is not such a thing is left out."""
    lines = trace.objects.get(form.SOURCES, {}).get("lines")
    if not isinstance(lines, dict):
        return {}
    return {place: kept for place, rows in lines.items() if isinstance(rows, list) and (kept := [
        (row[0], row[1]) for row in rows if isinstance(row, list) and len(row) == 2
        and isinstance(row[0], int) and isinstance(row[1], str)])}


# ---- what a run decided: XLA alone next to the other ways to compile the step, as the command that ran printed it


_NUMBERS = ("step_s", "exposed_s", "calls", "executed_bytes", "wire_bytes", "temp_bytes", "memory_bytes", "room_bytes")
_MOST = 1e30
"""No number of a decision is larger than this; a damaged one may be infinite."""
_TEXTS = ("devices", "chosen", "reason", "saving")


def decision_of(trace: Trace) -> dict[str, Any] | None:
    """The decision of a trace; everything in it but texts and numbers is ignored.

    Args:
      trace: what could be read.

    Returns:
      ``devices``, ``chosen``, ``reason``, ``saving`` and ``rows``, XLA alone first; None if none was written.
    """
    content = trace.objects.get(form.DECISION)
    rows = outcomes.rows_of(content or {}, "rows")
    if content is None or not rows:
        return None
    return {**{name: str(content.get(name) or "") for name in _TEXTS}, "rows": [_row(row) for row in rows]}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    known, fits = {name: _number(row.get(name)) for name in _NUMBERS}, row.get("fits")
    return {"name": str(row.get("name", "?")), **{name: str(row.get(name) or "") for name in ("verdict", "why")},
            "fits": fits if isinstance(fits, bool) else None, **known}


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST:
        return value
    return None


# ---- who sends how much to whom, before and after, small enough for a page


MOST_CELLS = 128
"""Rows of the picture; with more devices, several neighbours share a row."""
MOST_DEVICES = 8192


def traffic_of(before: Side, after: Side) -> dict[str, Any] | None:
    """The communication matrices of both sides and the groups after them.

    Args:
      before: what the module communicated.
      after: what it communicates now.

    Returns:
      ``devices``, ``step`` (devices to a row), for each side the cells that are not 0 as ``[row, column, bytes]``, and
      ``classes``: collectives of one kind over the same groups, with executed bytes of both sides. None when nothing
      is sent, or when there are more than ``MOST_DEVICES``.
    """
    devices = max(before.devices, after.devices)
    if devices < 2 or devices > MOST_DEVICES or not (before.collectives or after.collectives):
        return None
    step = -(-devices // MOST_CELLS)
    sides = [_cells(side.collectives, devices, step) for side in (before, after)]
    return {"devices": devices, "step": step, "before": sides[0], "after": sides[1],
            "classes": _classes(before.collectives, after.collectives)}


def _cells(collectives: Iterable[CollectiveRow], devices: int, step: int) -> list[list[int]]:
    import numpy as np
    transfers = [CollectiveTraffic(one.kind, one.payload_bytes, one.groups, one.trips)
                 for one in _merged(collectives) if one.kind in KINDS]
    matrix = traffic_matrix(transfers, devices)
    if step > 1:
        rows = -(-devices // step)
        wide = np.zeros((rows * step, rows * step))
        wide[:devices, :devices] = matrix
        matrix = wide.reshape(rows, step, rows, step).sum(axis=(1, 3))
    return [[int(i), int(j), round(float(matrix[i, j]))] for i, j in np.argwhere(matrix > 0)]


def _merged(collectives: Iterable[CollectiveRow]) -> list[CollectiveRow]:
    """One for all of equal kind and groups: traffic is linear in bytes, and there may be thousands."""
    merged: dict[tuple[str, Groups], CollectiveRow] = {}
    for one in collectives:
        known = merged.get((one.kind, one.groups))
        size = one.executed_bytes + (known.payload_bytes if known else 0)
        merged[one.kind, one.groups] = replace(one, payload_bytes=size, trips=1)
    return list(merged.values())


def _classes(before: Iterable[CollectiveRow], after: Iterable[CollectiveRow]) -> list[dict[str, Any]]:
    classes: dict[tuple[str, Groups], dict[str, Any]] = {}
    for number, side in enumerate((before, after)):
        for one in side:
            entry = classes.setdefault((one.kind, one.groups), {
                "kind": one.kind, "axes": list(one.axes), "groups": [list(group) for group in one.groups],
                "bytes": [0, 0], "calls": [0, 0]})
            entry["bytes"][number] += one.executed_bytes
            entry["calls"][number] += one.trips
    return list(classes.values())
