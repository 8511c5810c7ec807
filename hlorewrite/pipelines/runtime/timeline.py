"""Times of a pipelined step: how long each fragment and transfer takes, and when they run.

Two separate measurements, as each disturbs the other:

* `measured_times`: one call at a time. Its operands are ready and nothing else runs. The clock stops when all its
  results are ready on this process's devices, so the time includes dispatch but no overlap. Transfers between processes
  begin together, after a barrier. Each time is the median over all micro-batches and repetitions, in the slowest
  process.
* `timeline`: one step as it really runs, with all calls launched without waiting. A thread for each mesh waits for the
  results in the order of the calls and records when they are ready: each call's end, some tens of microseconds late.
  Starts cannot be observed. A call is assumed to start once it has been launched, the calls that made its operands have
  ended, and the previous call on the same mesh (for a transfer, between the same meshes) has ended. Buffers are not
  donated in this step, because nothing can wait for a donated result.
"""

import json
import queue
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from hlorewrite.pipelines.actions.order import OUTSIDE
from hlorewrite.pipelines.mpmd.program import FragmentCall, Transfer
from hlorewrite.pipelines.runtime.driver import DriverInstruction, PipelineDriver
from hlorewrite.pipelines.runtime.transfers import transfer_names
from hlorewrite.pipelines.schedules import KINDS
from hlorewrite.util.write import write_file

_ROWS = ("compute", "send", "all-reduce")
_BARRIER_S = 600


@dataclass(frozen=True)
class TimelineCall:
    """One call in a timeline.

    Attributes:
      name: ``F0``, ``B3 stage 2``, the fragment's name outside the loop, or the transfer's.
      mesh: number of the mesh it runs on, of a transfer the one that sends.
      row: 0 computation, 1 transfers.
      start_s: seconds after the step's first call was launched.
      end_s: when its results were ready.
      stage: the stage of a fragment; -1 for a transfer.
      microbatch: -1 outside the loop.
    """

    name: str
    mesh: int
    row: int
    start_s: float
    end_s: float
    stage: int
    microbatch: int


# ---- one call at a time


def measured_times(driver: PipelineDriver, arguments: Sequence[jax.Array | None],
                   repeats: int = 3) -> dict[str, dict[str, float]]:
    """Seconds of each fragment and transfer alone; on every process the same figures.

    Args:
      driver: the compiled program.
      arguments: placed arrays; they are copied, none is donated.
      repeats: how many measured steps, after one that warms up.

    Returns:
      ``{"fragments": {name: seconds}, "transfers": {"transfer 0": seconds}}``, transfers numbered in the order of the
      program's text; what ``hlorewrite pipeline simulate PROGRAM --times`` reads.
    """
    names = _names(driver)
    samples: dict[tuple[str, str], list[float]] = {}
    for turn in range(repeats + 1):
        slots = driver.filled([None if array is None else jnp.copy(array) for array in arguments])
        for step in driver.instructions:
            given = [slots[slot] for slot in step.reads]
            if step.hold.spans and driver.watch is not None:
                _meet(driver, f"{names[id(step.action.step)][1]}/{step.action.microbatch}/{turn}", step)
            begin = time.perf_counter()
            made = step.function(*given)
            jax.block_until_ready([each for each in made if each is not None])
            end = time.perf_counter()
            driver.store(slots, step, made)
            key = names.get(id(step.action.step))
            if turn and key is not None:
                samples.setdefault(key, []).append(end - begin)
    medians = {key: statistics.median(times) for key, times in samples.items()}
    rows: dict[str, dict[str, float]] = {"fragments": {}, "transfers": {}}
    for mine in _everyone(driver, [[kind, name, seconds] for (kind, name), seconds in medians.items()], "times"):
        for kind, name, seconds in mine:
            rows[kind][name] = max(rows[kind].get(name, 0.0), seconds)
    return {kind: dict(sorted(each.items())) for kind, each in rows.items()}


def write_times(times: dict[str, dict[str, float]], path: str) -> None:
    """Writes measured times as JSON.

    Raises:
      OutputError: the file cannot be written.
    """
    write_file(path, (json.dumps(times, indent=1) + "\n").encode())


# ---- a step as it runs


def timeline(driver: PipelineDriver, arguments: Sequence[jax.Array | None]) -> list[TimelineCall]:
    """Runs one step and notes when each call's results were ready.

    Args:
      driver: the compiled program; its fragments are compiled a second time, without donation.
      arguments: placed arrays; none is donated.

    Returns:
      The calls of this process in the order they were launched.
    """
    instructions = driver.undonated()
    _run_noted(driver, instructions, arguments)  # the first run opens connections
    if driver.watch is not None:
        _meet(driver, "timeline", None)
    dispatched, ended = _run_noted(driver, instructions, arguments)
    starts = _starts(driver, instructions, dispatched, ended)
    begin = dispatched[0] if dispatched else 0.0
    names, meshes = _names(driver), list(driver.program.meshes)
    several = driver.schedule is not None and driver.schedule.stages > driver.schedule.meshes
    spans = []
    for step, start, end in zip(instructions, starts, ended, strict=True):
        action = step.action
        if isinstance(action.step, FragmentCall):
            call = action.step
            name = call.callee if action.microbatch == OUTSIDE else f"{call.task}{action.microbatch}" + (
                f" stage {call.stage}" if several else "")
            spans.append(TimelineCall(name, meshes.index(call.mesh), 0, start_s=start - begin, end_s=end - begin,
                                      stage=call.stage, microbatch=action.microbatch))
        elif isinstance(action.step, Transfer):
            mesh = driver.program.types[action.step.operand].mesh
            name = names[id(action.step)][1] + (f" {action.microbatch}" if action.microbatch != OUTSIDE else "")
            spans.append(TimelineCall(name, meshes.index(mesh), 1, start_s=start - begin, end_s=end - begin, stage=-1,
                                      microbatch=action.microbatch))
    return spans


def write_timeline(driver: PipelineDriver, spans: Sequence[TimelineCall], path: str) -> None:
    """Writes a timeline as trace JSON; with several processes all call it, and the first one writes.

    Each process counts from its own first call, right after a common barrier. Clocks of hosts are not synchronized in
    any other way.

    Args:
      driver: the program.
      spans: this process's calls.
      path: the file, for ``ui.perfetto.dev`` or ``chrome://tracing``.

    Raises:
      OutputError: the file cannot be written.
    """
    rows = [[each.name, each.mesh, each.row, each.start_s, each.end_s, each.stage, each.microbatch] for each in spans]
    everyone = [TimelineCall(*row) for mine in _everyone(driver, rows, "timeline") for row in mine]
    if driver.watch is None or driver.watch.process == min(driver.watch.stages):
        text = json.dumps({"displayTimeUnit": "ms", "traceEvents": trace_events(driver, everyone)},
                          separators=(",", ":"))
        write_file(path, text.encode() + b"\n")


def trace_events(driver: PipelineDriver, spans: Sequence[TimelineCall]) -> list[dict[str, Any]]:
    """The events of a timeline in Chrome's trace format, meshes and rows as the simulator writes them; microseconds."""
    names: list[dict[str, Any]] = []
    for number, mesh in enumerate(driver.program.meshes):
        names.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"mesh {mesh}"}})
        names += [{"ph": "M", "name": "thread_name", "pid": number, "tid": row, "args": {"name": text}}
                  for row, text in enumerate(_ROWS)]
    events = []
    # A mesh over several processes has one row: its calls last from the first start to the last end.
    merged: dict[tuple[str, int, int, int, int], tuple[float, float]] = {}
    for each in spans:
        key = each.name, each.mesh, each.row, each.stage, each.microbatch
        start, end = merged.get(key, (each.start_s, each.end_s))
        merged[key] = min(start, each.start_s), max(end, each.end_s)
    for (name, mesh, row, stage, microbatch), (start, end) in merged.items():
        event: dict[str, Any] = {"ph": "X", "name": name, "pid": mesh, "tid": row, "ts": round(start * 1e6, 3),
                                 "dur": round((end - start) * 1e6, 3)}
        if stage >= 0:
            event["args"] = {"task": KINDS.get(name[0], name) if microbatch != OUTSIDE else name, "stage": stage,
                             "microbatch": microbatch}
        events.append(event)
    return names + sorted(events, key=lambda event: (event["ts"], event["pid"], event["tid"]))


def _run_noted(driver: PipelineDriver, instructions: Sequence[DriverInstruction],
               arguments: Sequence[jax.Array | None]) -> tuple[list[float], list[float]]:
    """Runs all instructions without waiting; returns when each was launched and when its results were ready."""
    dispatched, ended = [0.0] * len(instructions), [0.0] * len(instructions)
    queues: dict[Any, queue.SimpleQueue[Any]] = {}
    threads = []

    def note(waiting: queue.SimpleQueue[Any]) -> None:
        # Ends: at the entry None, which is put in when all instructions have been started.
        while (entry := waiting.get()) is not None:
            number, made = entry
            jax.block_until_ready(made)
            ended[number] = time.perf_counter()

    slots = driver.filled(arguments)
    try:
        for number, step in enumerate(instructions):
            lane = _lane(driver, step)
            if lane not in queues:
                queues[lane] = queue.SimpleQueue()
                threads.append(threading.Thread(target=note, args=(queues[lane],), daemon=True))
                threads[-1].start()
            dispatched[number] = time.perf_counter()
            made = driver.run_one(step, slots)
            queues[lane].put((number, [each for each in made if each is not None]))
    finally:
        for waiting in queues.values():
            waiting.put(None)
        for thread in threads:
            thread.join()
    return dispatched, ended


def _lane(driver: PipelineDriver, step: DriverInstruction) -> Any:
    """The lane of a call; calls of a lane run one after another. A mesh has one, and so has each pair of meshes with
    transfers.
    """
    action = step.action.step
    if isinstance(action, FragmentCall):
        return action.mesh
    types = driver.program.types
    return (types[action.operand].mesh, types[action.result].mesh) if isinstance(action, Transfer) else \
        (types[action.operand].mesh,)


def _starts(driver: PipelineDriver, instructions: Sequence[DriverInstruction], dispatched: Sequence[float],
            ended: Sequence[float]) -> list[float]:
    ready: dict[int, float] = {}
    free: dict[Any, float] = {}
    starts = []
    for step, handed, end in zip(instructions, dispatched, ended, strict=True):
        lane = _lane(driver, step)
        start = max([handed, free.get(lane, 0.0), *(ready.get(slot, 0.0) for slot in step.reads)])
        starts.append(min(start, end))
        free[lane] = end
        ready.update(dict.fromkeys(step.writes, end))
    return starts


# ---- names, and the other processes


def _names(driver: PipelineDriver) -> dict[int, tuple[str, str]]:
    """Kind and name of each step of the program, by identity."""
    transfers = transfer_names(driver.program)
    return {id(step): ("fragments", step.callee) if isinstance(step, FragmentCall) else
            ("transfers", transfers[position]) for position, step in enumerate(driver.program.steps)}


def _meet(driver: PipelineDriver, topic: str, step: DriverInstruction | None) -> None:
    """Waits until the processes of a call, or all, have come."""
    watch = driver.watch
    assert watch is not None, "only several processes meet"
    members = sorted(watch.stages)
    if step is not None:
        action = step.action.step
        types = driver.program.types
        names = (action.mesh,) if isinstance(action, FragmentCall) else tuple(
            types[value].mesh for value in ((action.operand, action.result) if isinstance(action, Transfer) else
                                            (action.operand,)))
        members = sorted({process for name in names for process in driver.meshes.processes(name)})
    key = f"{watch.room}/meet/{topic}/{driver.turn(topic)}".replace("/pipeline/", "/meetings/")
    watch.store.wait_at_barrier(key, _BARRIER_S * 1000, members)


def _everyone(driver: PipelineDriver, mine: list[Any], topic: str) -> list[list[Any]]:
    """What each process has to say, in the order of their numbers."""
    watch = driver.watch
    if watch is None:
        return [mine]
    room = f"{watch.room}/{topic}/{driver.turn(topic)}".replace("/pipeline/", "/figures/")
    watch.store.key_value_set(f"{room}/{watch.process}", json.dumps(mine))
    return [json.loads(watch.store.blocking_key_value_get(f"{room}/{process}", _BARRIER_S * 1000))
            for process in sorted(watch.stages)]
