"""A simulated step to look at: a Gantt chart, and a trace that Perfetto and chrome://tracing open."""

import json
from collections import defaultdict
from typing import Any

from hlorewrite.errors import HlorewriteError
from hlorewrite.pipelines.schedules import KINDS, Task
from hlorewrite.pipelines.simulate.simulation import Simulation
from hlorewrite.util.optional_dependencies import install

# ---- a Gantt chart

# Needs the ``viz`` extra.
#
# The background is transparent and text mid-grey, so that the chart reads on light and dark pages.


INK = "#7f7f7f"
COLOURS = {"F": "#4477aa", "B": "#228833", "I": "#66ccee", "W": "#ccbb44", "all-reduce": "#ee6677", "update": "#aa3377",
           "send": "#bbbbbb"}
LABELS = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient", "all-reduce": "all-reduce",
          "update": "update", "send": "transfer"}
_MOST_LABELS = 400
_MOST_BARS = 200_000


def draw_gantt(simulation: Simulation, title: str | None = None) -> Any:
    """One row per mesh: its tasks, and below them what it sends and reduces.

    Args:
      simulation: the simulation.
      title: what it shows; by default schedule, time and bubble.

    Returns:
      A matplotlib figure, for :func:`hlorewrite.cost.training.plots.save`.

    Raises:
      HlorewriteError: matplotlib is not installed, or there are too many tasks to draw.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise HlorewriteError("pictures need matplotlib", hint=install("viz")) from None
    schedule = simulation.schedule
    tasks = sum(len(order) for order in schedule.orders)
    if tasks > _MOST_BARS:
        raise HlorewriteError(f"{tasks} tasks are too many for a chart", hint="write a trace instead, with --trace")
    figure = Figure(figsize=(12.0, 1.6 + 0.55 * schedule.meshes), layout="constrained")
    figure.patch.set_alpha(0.0)
    axes = figure.add_subplot()
    scale, unit = _scale(simulation.iteration_time_s)
    spans = _spans(simulation)
    gap = 0.001 * simulation.iteration_time_s  # between neighbouring tasks, so that each can be seen
    for kind, colour in COLOURS.items():
        for (mesh, which), bars in sorted(spans.items()):
            if which == kind:
                high = 0.2 if kind == "send" else 0.62
                low = mesh + (0.33 if kind == "send" else -0.31)
                axes.broken_barh([(start * scale, (end - start - min(gap, (end - start) / 5)) * scale)
                                  for start, end in bars], (low, high),
                                 facecolors=colour, linewidth=0)
    if tasks <= _MOST_LABELS:
        _write_labels(axes, simulation, scale)
    _style(axes, simulation, title, unit, scale)
    _legend(figure, {kind for _, kind in spans})
    return figure


def _spans(simulation: Simulation) -> dict[tuple[int, str], list[tuple[float, float]]]:
    """(start, end) of everything by (mesh, kind)."""
    times = simulation.times
    spans: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for mesh, order in enumerate(simulation.schedule.orders):
        for task, number in zip(order, simulation.schedule.numbers[mesh].tolist(), strict=True):
            spans[mesh, task.kind].append((times.start[number], times.end[number]))
            if times.sent[number] >= 0:
                spans[mesh, "send"].append((times.sent[number], times.arrived[number]))
        if times.updates[mesh][1] > times.updates[mesh][0]:
            spans[mesh, "update"].append(times.updates[mesh])
    for mesh, _, start, end in times.reductions:
        spans[mesh, "all-reduce"].append((start, end))
    return spans


def _write_labels(axes: Any, simulation: Simulation, scale: float) -> None:
    """The micro-batch on each task wide enough for it."""
    times, least = simulation.times, simulation.iteration_time_s / 130
    for mesh, order in enumerate(simulation.schedule.orders):
        for task, number in zip(order, simulation.schedule.numbers[mesh].tolist(), strict=True):
            start, end = times.start[number], times.end[number]
            if end - start >= least:
                late = simulation.schedule.stages_of(mesh).index(task.stage)
                axes.text((start + end) / 2 * scale, mesh, str(task.microbatch), ha="center", va="center",
                          fontsize=7, color="black" if task.kind in "IW" else "white",
                          fontstyle="italic" if late else "normal")


def _style(axes: Any, simulation: Simulation, title: str | None, unit: str, scale: float) -> None:
    meshes = simulation.schedule.meshes
    axes.patch.set_alpha(0.0)
    axes.set_ylim(meshes - 0.4, -0.5)
    axes.set_xlim(0, simulation.iteration_time_s * scale * 1.005)
    if meshes <= 32:
        axes.set_yticks(range(meshes), [f"stage {mesh}" for mesh in range(meshes)])
    axes.set_xlabel(unit)
    axes.set_title(title or f"{simulation.schedule.name}: {simulation.iteration_time_s * scale:.4g} {unit}, "
                            f"bubble {simulation.bubble_ratio:.1%}", fontsize=11)
    axes.tick_params(colors=INK, which="both")
    for spine in axes.spines.values():
        spine.set_color(INK)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_color(INK)


def _legend(figure: Any, kinds: set[str]) -> None:
    from matplotlib.patches import Patch
    shown = [Patch(color=COLOURS[kind], label=LABELS[kind]) for kind in COLOURS if kind in kinds]
    figure.legend(handles=shown, frameon=False, labelcolor=INK, loc="outside lower center", ncols=len(shown))


def _scale(seconds: float) -> tuple[float, str]:
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return scale, unit
    return 1e6, "us"


# ---- a trace that Perfetto and chrome://tracing open

# Each mesh is a process with three rows: computation, what it sends, gradient reductions; memory is a counter.


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
