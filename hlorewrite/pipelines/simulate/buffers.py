"""The buffers of a program's step: what each device holds from when to when, as the driver makes and releases them.

A buffer is there from the start of the fragment or transfer that writes it to the end of the last one that reads it:
at a sender until the transfer is over, at a receiver while it waits for its reader. A fragment writes over an operand
that is donated to it and as large as a result. Arguments that the caller keeps, and results, stay until the end.
"""

from collections.abc import Mapping

import numpy as np

from hlorewrite.pipelines.actions.liveness import liveness
from hlorewrite.pipelines.actions.order import ProgramOrder
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program
from hlorewrite.pipelines.mpmd.types import device_bytes

Spans = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Starts, ends and bytes of buffers, each of shape [buffers]."""


def program_buffers(program: Program, order: ProgramOrder, times: Mapping[int, tuple[float, float]],
                    end: float) -> dict[str, Spans]:
    """The buffers of one step.

    Args:
      program: the program.
      order: its actions.
      times: start and end of each action, by its position in the order.
      end: when the step is over, seconds.

    Returns:
      The buffers of one device of each mesh, by the mesh's name.
    """
    lives = liveness(program, order)
    kept = {slot for place, slot in enumerate(order.arguments) if place not in program.donated} | set(order.results)
    sizes = {slot: device_bytes(kind, program.meshes[kind.mesh]) for slot, number in enumerate(order.values)
             if (kind := program.types[number]).mesh}
    born = dict.fromkeys(order.arguments, 0.0)
    dies = dict.fromkeys(kept, end)
    for position, action in enumerate(order.actions):
        start, stop = times[position]
        born.update((slot, start) for slot in action.writes)
        for slot in (*action.reads, *action.writes):
            dies[slot] = max(stop, dies.get(slot, 0.0))
    for position, action in enumerate(order.actions):
        if isinstance(action.step, FragmentCall):
            free = [sizes.get(slot) for slot in action.writes]
            for place in sorted(lives.donated[action.step.callee]):
                if sizes.get(action.reads[place]) in free:  # a result is written over it
                    free.remove(sizes[action.reads[place]])
                    dies[action.reads[place]] = times[position][0]
    held: dict[str, list[tuple[float, float, float]]] = {name: [] for name in program.meshes}
    for slot, start in born.items():
        if slot in sizes:
            held[program.types[order.values[slot]].mesh].append((start, dies.get(slot, start), sizes[slot]))
    return {name: (found[:, 0], found[:, 1], found[:, 2]) for name, spans in held.items()
            for found in [np.array(spans).reshape(-1, 3)]}
