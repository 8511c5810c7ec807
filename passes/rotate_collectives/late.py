"""Gathers that arrive late in their own iteration."""

from __future__ import annotations

from collections.abc import Sequence

from hlorewrite.ir.binding import ir
from hlorewrite.passes.common.block_graph import BlockGraph
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.spmd.loops import Loop


def late_gathers(loop: Loop, gathers: Sequence[ir.Operation], model: OverlapModel) -> list[ir.Operation]:
    """The gathers that compute would wait for if all stayed in their iteration.

    A carried result is copied once an iteration, since its buffer is still read when the next one arrives. So gathers
    that compute of their own iteration hides stay in it: those of parameters that the layer reads last. Where the
    collectives of the loop fill most of an iteration, all of them go.

    Args:
      loop: the loop in whose body the gathers stand.
      gathers: in program order.
      model: of the module.

    Returns:
      Those that should run concurrently with the iteration before, in program order.
    """
    if model.crowded(loop.body):
        return list(gathers)
    timings = BlockGraph(model.view, loop.body, list(gathers), model.clock).timings()
    late, free = set[int](), 0.0
    for number in sorted(range(len(gathers)), key=lambda each: timings[each].needed):
        end = free + model.collective(gathers[number])
        if end > timings[number].needed:
            late.add(number)
        else:
            free = end
    return [op for number, op in enumerate(gathers) if number in late]
