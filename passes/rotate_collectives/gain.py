"""What a rotation gains, and the gathers that it is for."""

from collections.abc import Sequence
from dataclasses import replace

from hlorewrite.ir import Loop, ir, op_key
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.rotate_collectives.split import BodySplit
from hlorewrite.timeline.stream_tasks import StreamTask, block_time


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
    ops = _ops(loop)
    places = {op_key(op): place for place, op in enumerate(ops)}
    moving = {places[op_key(op)] for op in gathers}
    tasks, late = model.tasks(ops), set[int]()
    while moving - late:  # Ends: each round but the last adds a gather to ``late``.
        waited = block_time(tasks).waited
        first = min((place for place in moving - late if waited.get(place)), default=None)
        if first is None:
            break
        late.add(first)
        tasks[first] = StreamTask(0.0)
    return [op for op in gathers if places[op_key(op)] in late]


def iteration_seconds(loop: Loop, split: BodySplit, model: OverlapModel, rotated: Sequence[ir.Operation],
                      ahead: Sequence[ir.Operation] = ()) -> tuple[float, float]:
    """What an iteration of a loop takes as it is, and rotated.

    Args:
      loop: the loop.
      split: its halves.
      model: of the module.
      rotated: the collectives that the loop is rotated around; where the collectives fill most of an iteration, they
        share calls afterwards.
      ahead: gathers that run for the next iteration in either case.

    Returns:
      Seconds. In the rotated one the second half is of the iteration before, and what one half gives to the other is
      copied, since both have it at the same time.
    """
    before = model.tasks(_ops(loop), ahead=ahead)
    ops = [*split.second, *split.first]
    after = model.tasks(ops, split.handed, ahead)
    if model.crowded(loop.body):
        share = model.together(rotated) / (sum(model.collective(op) for op in rotated) or 1.0)
        keys = set(map(op_key, rotated))
        for place, op in enumerate(ops, start=len(split.handed)):
            if op_key(op) in keys:
                after[place] = replace(after[place], seconds=after[place].seconds * share)
    return block_time(before).seconds, block_time(after).seconds


def _ops(loop: Loop) -> list[ir.Operation]:
    return [each.operation for each in loop.body.operations]
