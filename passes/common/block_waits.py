"""How long compute waits for the collectives of a block, as XLA schedules it."""

from collections.abc import Sequence

from hlorewrite.ir import COLLECTIVES, ir, op_key
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.timeline.stream_tasks import BlockTime, StreamTask, awaited_by_kernels, block_time

LEFT_EXPOSED = 0.25
"""The share of the hideable time of an iteration that XLA's scheduler leaves exposed, on the 24 steps of
``bench/predictions``. With two independent halves it finds something to run."""


class BlockTimes:
    """The times of blocks as they are, each computed once.

    Args:
      model: the model of the module.
    """

    def __init__(self, model: OverlapModel) -> None:
        self.model = model
        self._known: dict[ir.Block, tuple[BlockTime, list[int]]] = {}

    def of(self, block: ir.Block) -> BlockTime:
        """The time of one run of a block."""
        return self._both(block)[0]

    def between_kernels(self, block: ir.Block) -> list[int]:
        """The places in a block of collectives that wait for a kernel of it and for which another one waits."""
        return self._both(block)[1]

    def _both(self, block: ir.Block) -> tuple[BlockTime, list[int]]:
        if block not in self._known:
            tasks = self.model.tasks([each.operation for each in block.operations])
            self._known[block] = block_time(tasks), _between_kernels(tasks)
        return self._known[block]


def waiting(block: ir.Block, times: BlockTimes) -> dict[int, float]:
    """How long compute waits for the collectives of a block as XLA schedules them, by their keys.

    Args:
      block: the block.
      times: those of the module's blocks.

    Returns:
      Seconds of one run of the block.
    """
    ops = [each.operation for each in block.operations]
    waited = times.of(block).waited
    return {op_key(op): waited.get(place, 0.0) + left_exposed(op, waited.get(place, 0.0), times.model)
            for place, op in enumerate(ops) if op.name in COLLECTIVES}


def left_exposed(op: ir.Operation, exposed: float, model: OverlapModel) -> float:
    """Seconds of a collective that XLA leaves exposed although some schedule could hide them."""
    return LEFT_EXPOSED * max(0.0, model.collective(op) - exposed)


def _between_kernels(tasks: Sequence[StreamTask]) -> list[int]:
    """The transfers that wait for a kernel of their block and for which another one waits.

    Only of these does XLA leave anything exposed that halves would hide. Others start with the block or end with it,
    such as the permutes of ring attention and the reductions of gradients.
    """
    awaited, waiters, found = awaited_by_kernels(tasks), set[int](), list[int]()
    for number, task in enumerate(tasks):
        if any(source in waiters or tasks[source].is_kernel for source in task.after):
            waiters.add(number)
        if task.transfer and number in waiters and number in awaited:
            found.append(number)
    return found
