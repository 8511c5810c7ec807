"""What communication costs concurrently with compute, by the cost model: the passes that change what runs concurrently
with what ask this."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.cost.compute_clock import KERNELS, ComputeClock
from hlorewrite.errors import UsageError
from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import ALL_GATHER, REDUCING, TABLE
from hlorewrite.ir.types import tensor_bytes
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.spmd.groups import device_count, groups_of

OVERLAPPED = "hlorewrite.overlapped"
"""A unit attribute of loops whose collectives stand where compute hides them: comm-shift leaves those in place."""

CROWDED = "hlorewrite.crowded"
"""A unit attribute of loops whose collectives, each in a call of its own, fill most of an iteration."""
_CROWDED_SHARE = 0.8
"""XLA's scheduler leaves gaps between calls, so it does not hide more than this share of an iteration's compute."""


class OverlapModel:
    """Times of the kernels and collectives of one module.

    Args:
      view: the module.
      ctx: names the cluster, if the pass does not.
      name: of the pass.
      topology: the cluster; empty for that of the run.

    Raises:
      UsageError: no cluster is named, and the pass is to decide by time.
    """

    def __init__(self, view: View, ctx: PassContext, name: str, topology: str = "") -> None:
        spec = topology or ctx.topology
        if not spec and not ctx.ignore_cost:
            raise UsageError(f"{name} decides by predicted time, and no cluster is named",
                             hint='add --topology=h200:1x8, or topology="h200:1x8" in Python')
        self.view = view
        self.times = CollectiveTimes(spec, device_count(view) or 1)
        self.clock = ComputeClock(view, self.times.topology)

    @property
    def spec(self) -> str:
        """The cluster, as remarks name it."""
        return self.times.topology.spec

    def collective(self, op: ir.Operation) -> float:
        """Seconds of one collective by itself."""
        return self.together([op])

    def together(self, ops: Iterable[ir.Operation], share: float = 1) -> float:
        """Seconds of collectives, those of a kind and of equal groups in one call.

        Args:
          ops: the collectives.
          share: of their bytes.
        """
        calls: dict[tuple[str, tuple[tuple[int, ...], ...]], int] = defaultdict(int)
        for op in ops:
            groups = groups_of(op, self.view)
            if not isinstance(groups, str):
                kind = next(row.kind for row in TABLE if row.op == op.name)
                calls[kind, tuple(map(tuple, groups.rows))] += max(
                    sum(tensor_bytes(value.type) for value in side) for side in (op.operands, op.results))
        return sum(self.times.seconds(kind, int(bytes_ * share), rows) for (kind, rows), bytes_ in calls.items())

    def compute(self, ops: Sequence[ir.Operation]) -> float:
        """Seconds of the kernels among some ops of one block, with all they hold."""
        return sum(self.clock.seconds(op) for op in ops if op.name in KERNELS)

    def crowded(self, block: ir.Block) -> bool:
        """Whether the collectives of a loop's body, each in a call of its own, fill most of its compute."""
        ops = [each.operation for each in block.operations]
        calls = sum(self.collective(op) for op in ops if op.name in (*REDUCING, ALL_GATHER.op))
        return calls > _CROWDED_SHARE * self.compute(ops)
