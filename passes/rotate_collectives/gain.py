"""The gain of a rotation, and the gathers that it moves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlorewrite.ir import COLLECTIVES, Loop, defining_op, ir, op_key, tensor_bytes
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.rotate_collectives.split import BodySplit, reached_from
from hlorewrite.timeline.stream_tasks import StreamTask, block_time

_MOSTLY = 0.5
"""The share of rotated collectives that may stay exposed if only XLA's scheduler gains from the rotation."""
_UNSEEN = 0.02
"""How much longer a rotated iteration may be by the model, within the model's error (``bench/predictions``)."""

_LEAST_AFTER = 0.1
"""The last share of an iteration's compute that counts as nearly nothing: sums of gradients are written back there."""
_MOST_HANDED = 0.02
"""The share of an iteration that copying the values between the halves may take, if only XLA's scheduler gains from the
rotation. At a tenth, a Megatron step with sequence parallelism takes 251 ms instead of 221."""


def late_gathers(loop: Loop, gathers: Sequence[ir.Operation], model: OverlapModel) -> list[ir.Operation]:
    """The gathers that compute would wait for if all gathers stayed in their iteration.

    A carried result is copied once an iteration, since its buffer is still read when the next one arrives. So gathers
    that their own iteration's compute hides stay in it: those of parameters that the layer reads last. If the loop's
    collectives fill most of an iteration, all gathers move.

    Args:
      loop: the loop in whose body the gathers are.
      gathers: the gathers, in program order.
      model: the model of the module.

    Returns:
      Those that should run during the previous iteration, in program order.
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


def ends_of_iteration(loop: Loop, reductions: Sequence[ir.Operation], model: OverlapModel) -> list[ir.Operation]:
    """The reductions after which an iteration computes nearly nothing, such as those of gradients.

    The rest of the iteration waits for all others; a rotation would only move that wait into the other half.

    Args:
      loop: the loop in whose body the reductions are.
      reductions: the reductions, in program order.
      model: the model of the module.

    Returns:
      Some of them, in program order; none if it would be all of them.
    """
    most = _LEAST_AFTER * model.compute(_ops(loop))
    ends = [op for op in reductions if _computes_at_most(most, loop, op, model)]
    return ends if len(ends) < len(reductions) else []


def _computes_at_most(most: float, loop: Loop, collective: ir.Operation, model: OverlapModel) -> bool:
    """Whether what depends on a collective takes at most some seconds; the walk ends where it takes more."""
    taken = 0.0
    for node in reached_from(loop, [collective]):
        if not isinstance(node, ir.BlockArgument):
            taken += model.compute([node])
            if taken > most:
                return False
    return True


@dataclass(frozen=True)
class IterationTimes:
    """The time of an iteration of a loop as it is, and rotated.

    Attributes:
      before: seconds as it is.
      after: seconds rotated.
      waited: seconds for which the rotated iteration waits for the collectives that it is rotated around.
      sent: seconds of these collectives.
      handed: seconds to copy the values that one half passes to the other.
    """

    before: float
    after: float
    waited: float
    sent: float
    handed: float

    @property
    def hides(self) -> bool:
        """Whether the rotated iteration hides most of these collectives and takes about as long as before.

        The times are those of a schedule that XLA can reach. Its scheduler falls short of it if a collective and the
        compute that hides it are in one iteration: on 24 steps it left a fourth of the hidden time exposed. That gain
        does not suffice if the halves pass much to each other, such as all activations of a layer without
        rematerialisation: XLA copies some of them, and a Megatron step took 1.4 times as long.
        """
        return (self.waited <= _MOSTLY * self.sent and self.after <= (1 + _UNSEEN) * self.before
                and self.handed <= _MOST_HANDED * self.before)


def iteration_times(loop: Loop, split: BodySplit, model: OverlapModel, rotated: Sequence[ir.Operation],
                    ahead: Sequence[ir.Operation] = ()) -> IterationTimes:
    """The time of an iteration of a loop as it is, and rotated.

    Args:
      loop: the loop.
      split: its halves.
      model: the model of the module.
      rotated: the collectives that the loop is rotated around; where the collectives fill most of an iteration, they
        share calls afterwards.
      ahead: gathers that run for the next iteration in either case.

    Returns:
      The times. In the rotated one, the second half belongs to the previous iteration, and buffers of transfers are
      copied.
    """
    before = model.tasks(_ops(loop), ahead=ahead)
    ops = [*split.second, *split.first]
    carried = _over_the_seam(loop, split)
    copied = _copied(split)
    after = model.tasks(ops, copied, ahead, carried)
    keys = set(map(op_key, rotated))
    places = [place for place, op in enumerate(ops, start=len(copied)) if op_key(op) in keys]
    if model.crowded(loop.body):
        share = model.together(rotated) / (sum(model.collective(op) for op in rotated) or 1.0)
        for place in places:
            after[place] = replace(after[place], seconds=after[place].seconds * share)
    made = block_time(after)
    waited = sum(made.waited.get(place, 0.0) for place in places)
    sent = sum(after[place].seconds for place in places)
    handed = 2 * sum(tensor_bytes(value.type) for value in split.passed) / model.clock.memory_bytes_per_s
    return IterationTimes(block_time(before).seconds, made.seconds, waited, sent, handed)


def _over_the_seam(loop: Loop, split: BodySplit) -> dict[ir.Value, ir.Operation]:
    """The ops of the second half by the arguments of the next iteration that they make."""
    late = {op_key(op): op for op in split.second}
    made = ((argument, defining_op(value)) for argument, value in zip(loop.body.arguments, loop.yields, strict=True))
    return {argument: late[op_key(op)] for argument, op in made if op is not None and op_key(op) in late}


def _copied(split: BodySplit) -> list[ir.Value]:
    """The values that one half passes to the other and XLA copies: buffers of transfers.

    A transfer in flight holds its buffer while the next one is written. XLA overwrites all other values in place, since
    it schedules their readers first (seen in compiled loops of XLA 0.10 to 0.12).
    """
    sent = {value for op in split.second if op.name in COLLECTIVES for value in op.operands}
    return [value for value in split.passed
            if value in sent or ((maker := defining_op(value)) is not None and maker.name in COLLECTIVES)]


def _ops(loop: Loop) -> list[ir.Operation]:
    return [each.operation for each in loop.body.operations]
