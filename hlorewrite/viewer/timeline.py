"""A step's timeline as the page draws it, from trace events as Perfetto and chrome://tracing read them.

Each process is a mesh, each of its threads a row of spans, and each counter a curve. The simulator writes such files,
and so may a run that measures.
"""

from typing import Any

MOST_SPANS = 200_000
MOST_TRACKS = 128
_STEP = {"forward": 1}


def timeline_of(events: list[Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """Reads trace events.

    Args:
      events: the list ``traceEvents``; events of other kinds, and damaged ones, are passed over.

    Returns:
      The timeline (None when there is no span) and messages about what was left out. Times are microseconds.

    Example:
      >>> timeline, _ = timeline_of([{"ph": "X", "name": "F0", "ts": 0, "dur": 5, "pid": 0, "tid": 0}])
      >>> timeline["tracks"][0]["name"], timeline["spans"]["length"]
      ('process 0', [5.0])
    """
    events = [event | {"pid": _hashable(event.get("pid")), "tid": _hashable(event.get("tid"))}
              for event in events if isinstance(event, dict)]
    spans = [event for event in events if event.get("ph") == "X" and _number(event.get("ts")) and
             _number(event.get("dur"))]
    if not spans:
        return None, ["The timeline contains no span."] if events else []
    notes = []
    processes = sorted({event["pid"] for event in spans}, key=_order)
    if len(processes) > MOST_TRACKS:
        notes.append(f"The first {MOST_TRACKS} of {len(processes)} meshes of the timeline are shown.")
        shown = set(processes[:MOST_TRACKS])
        spans = [event for event in spans if event["pid"] in shown]
    if len(spans) > MOST_SPANS:
        notes.append(f"The first {MOST_SPANS} of {len(spans)} spans of the timeline are shown.")
    spans = sorted(spans, key=lambda event: event["ts"])[:MOST_SPANS]
    names = _names(events)
    tracks, places = _tracks(spans, names)
    strings: dict[str, int] = {}
    columns: dict[str, list[Any]] = {"row": [], "start": [], "length": [], "name": [], "kind": [], "batch": []}
    for event in spans:
        track, row = places[event.get("pid"), event.get("tid")]
        columns["row"].append(row)
        columns["start"].append(round(float(event["ts"]), 3))
        columns["length"].append(round(float(event["dur"]), 3))
        columns["name"].append(strings.setdefault(str(event.get("name", "")), len(strings)))
        columns["kind"].append(strings.setdefault(_kind(event, track["rows"][row - track["first"]]), len(strings)))
        batch = _facts(event).get("microbatch")
        columns["batch"].append(batch if isinstance(batch, int) else -1)
    return {"tracks": tracks, "strings": list(strings), "spans": columns, "links": _links(spans, places),
            "counters": _counters(events, tracks)}, notes


def _names(events: list[dict[str, Any]]) -> dict[tuple[str, Any, Any], str]:
    names = {}
    for event in events:
        if event.get("ph") == "M" and event.get("name") in ("process_name", "thread_name"):
            thread = event.get("tid") if event["name"] == "thread_name" else None
            names[event["name"], event.get("pid"), thread] = str(_facts(event).get("name", ""))
    return names


def _tracks(spans: list[dict[str, Any]], names: dict[tuple[str, Any, Any], str]
            ) -> tuple[list[dict[str, Any]], dict[tuple[Any, Any], tuple[dict[str, Any], int]]]:
    """Processes with their rows, and (process, thread) -> (track, row counted over all tracks)."""
    threads: dict[Any, set[Any]] = {}
    for event in spans:
        threads.setdefault(event.get("pid"), set()).add(event.get("tid"))
    tracks, places, row = [], {}, 0
    for process in sorted(threads, key=_order):
        track = {"pid": process, "name": names.get(("process_name", process, None), f"process {process}"),
                 "first": row, "rows": []}
        for thread in sorted(threads[process], key=_order):
            track["rows"].append(names.get(("thread_name", process, thread), f"thread {thread}"))
            places[process, thread] = (track, row)
            row += 1
        tracks.append(track)
    return tracks, places


def _kind(event: dict[str, Any], row: str) -> str:
    """What a span is, for its colour: a task on a compute row, what the row is for on others."""
    if row.lower() in ("compute", "computation"):
        name = str(event.get("name", ""))
        return str(_facts(event).get("task") or ("update" if name.startswith("update") else "compute"))
    return row


def _links(spans: list[dict[str, Any]], places: dict[tuple[Any, Any], tuple[dict[str, Any], int]]) -> list[list[int]]:
    """[transfer, task that waits for it]: the same task of the next stage on the way."""
    tasks: dict[tuple[Any, Any, Any], int] = {}
    sends: list[tuple[int, dict[str, Any]]] = []
    for number, event in enumerate(spans):
        facts = _facts(event)
        if not {"task", "stage", "microbatch"} <= facts.keys() or not isinstance(facts["stage"], int):
            continue
        track, row = places[event.get("pid"), event.get("tid")]
        if row == track["first"]:
            tasks[str(facts["task"]), facts["stage"], str(facts["microbatch"])] = number
        else:
            sends.append((number, facts))
    links = []
    for number, facts in sends:
        step = _STEP.get(str(facts["task"]), -1)
        names = {str(facts["task"]), *(() if step > 0 else ("backward", "input gradient"))}
        targets = [tasks[key] for name in sorted(names)
                   if (key := (name, facts["stage"] + step, str(facts["microbatch"]))) in tasks]
        links += [[number, targets[0]]] if targets else []
    return links


def _counters(events: list[dict[str, Any]], tracks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    order = {track["pid"]: number for number, track in enumerate(tracks)}
    series: dict[tuple[int, str], list[list[float]]] = {}
    for event in events:
        values = [value for value in _facts(event).values() if _number(value)]
        if event.get("ph") == "C" and event.get("pid") in order and values and _number(event.get("ts")):
            series.setdefault((order[event["pid"]], str(event.get("name", ""))), []).append(
                [round(float(event["ts"]), 3), round(float(values[0]))])
    return [{"track": track, "name": name, "points": sorted(points)}
            for (track, name), points in sorted(series.items())]


def _facts(event: dict[str, Any]) -> dict[str, Any]:
    facts = event.get("args")
    return facts if isinstance(facts, dict) else {}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)


def _order(value: Any) -> tuple[bool, float, str]:
    return (not _number(value), float(value) if _number(value) else 0.0, str(value))
