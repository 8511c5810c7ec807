"""A simulated step as a trace that Perfetto and chrome://tracing open.

Each mesh is a process with three rows: computation, what it sends, gradient reductions; memory is a counter.
"""

import json
from typing import Any

from hlorewrite.pipelines.schedules import KINDS, Task
from hlorewrite.pipelines.simulate.simulation import Simulation

_ROWS = ("compute", "send", "all-reduce")


def trace_events(simulation: Simulation) -> list[dict[str, Any]]:
    """The events of a step in Chrome's trace format; times in microseconds.

    Args:
      simulation: the simulation.

    Returns:
      Events: names of processes and rows, then complete events in order of their start, then counters.

    Example:
      >>> from hlorewrite.pipelines.schedules import gpipe
      >>> from hlorewrite.pipelines.simulate import simulate, uniform_cost
      >>> events = trace_events(simulate(gpipe(1, 1), uniform_cost(1, 1e-3, 2e-3)))
      >>> [(event["name"], event["ts"], event["dur"]) for event in events if event["ph"] == "X"]
      [('F0', 0.0, 1000.0), ('B0', 1000.0, 2000.0)]
    """
    schedule = simulation.schedule
    names: list[dict[str, Any]] = []
    for mesh in range(schedule.meshes):
        names.append({"ph": "M", "name": "process_name", "pid": mesh, "args": {"name": f"stage {mesh}"}})
        names += [{"ph": "M", "name": "thread_name", "pid": mesh, "tid": row, "args": {"name": text}}
                  for row, text in enumerate(_ROWS)]
    events = [event for mesh in range(schedule.meshes) for event in _mesh_events(simulation, mesh)]
    for mesh, stage, start, end in simulation.times.reductions:
        events.append(_event("all-reduce" if stage < 0 else f"all-reduce of stage {stage}", mesh, 2, start, end))
    events.sort(key=lambda event: (event["ts"], event["pid"], event["tid"]))
    return names + events + _counters(simulation)


def write_trace(simulation: Simulation, path: str) -> None:
    """Writes a step as trace JSON.

    Args:
      simulation: the simulation.
      path: the file, for ``ui.perfetto.dev`` or ``chrome://tracing``.

    Raises:
      OutputError: the file cannot be written.
    """
    from hlorewrite.util.write import write_file
    write_file(path, json.dumps(trace_content(simulation), separators=(",", ":")).encode() + b"\n")


def trace_content(simulation: Simulation) -> dict[str, Any]:
    """The output of ``write_trace`` as a JSON object."""
    return {"displayTimeUnit": "ms", "traceEvents": trace_events(simulation)}


def _mesh_events(simulation: Simulation, mesh: int) -> list[dict[str, Any]]:
    times = simulation.times
    events = []
    for task, number in zip(simulation.schedule.orders[mesh], simulation.schedule.numbers[mesh].tolist(), strict=True):
        facts = {"task": KINDS[task.kind], "stage": task.stage, "microbatch": task.microbatch}
        events.append(_event(_name(simulation, task), mesh, 0, times.start[number], times.end[number], facts))
        if times.sent[number] >= 0:
            what = "activation" if task.kind == "F" else "gradient"
            events.append(_event(f"{what} {task.microbatch}", mesh, 1, times.sent[number], times.arrived[number],
                                 facts))
    start, end = times.updates[mesh]
    if end > start:
        events.append(_event("update", mesh, 0, start, end))
    return events


def _name(simulation: Simulation, task: Task) -> str:
    several = simulation.schedule.stages > simulation.schedule.meshes
    return f"{task.label} stage {task.stage}" if several else task.label


def _event(name: str, mesh: int, row: int, start: float, end: float,
           facts: dict[str, Any] | None = None) -> dict[str, Any]:
    event = {"ph": "X", "name": name, "pid": mesh, "tid": row, "ts": round(start * 1e6, 3),
             "dur": round((end - start) * 1e6, 3)}
    return event | {"args": facts} if facts else event


def _counters(simulation: Simulation) -> list[dict[str, Any]]:
    events = []
    for mesh in range(simulation.schedule.meshes):
        at, level = simulation.memory(mesh)
        if level.any():
            events += [{"ph": "C", "name": "memory", "pid": mesh, "ts": round(time * 1e6, 3), "args": {"bytes": size}}
                       for time, size in zip(at.tolist(), level.tolist(), strict=True)]
    return events
