"""What communication costs beside compute, by the cost model: the passes that change what runs beside what ask this."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.cost.compute_clock import ComputeClock
from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import TABLE
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.spmd.groups import device_count, groups_of
from hlorewrite.spmd.types import tensor_bytes

OVERLAPPED = "hlorewrite.overlapped"
"""A unit attribute of loops whose collectives stand where compute hides them: comm-shift leaves those in place."""


class OverlapModel:
    """Times of the kernels and collectives of one module.

    Args:
      view: the module.
      ctx: names the cluster, if the pass does not.
      topology: the cluster; empty for that of the run.
    """

    def __init__(self, view: View, ctx: PassContext, topology: str = "") -> None:
        self.view = view
        self.times = CollectiveTimes(topology or ctx.topology, device_count(view) or 1)
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
                calls[kind, tuple(map(tuple, groups.rows))] += sum(tensor_bytes(value.type) for value in op.operands)
        return sum(self.times.seconds(kind, int(bytes_ * share), rows) for (kind, rows), bytes_ in calls.items())

    def compute(self, ops: Sequence[ir.Operation]) -> float:
        """Seconds of the kernels among some ops of one block, with all they hold."""
        if not ops:
            return 0.0
        kernels = set(self.clock.kernels(ops[0].block))
        return sum(self.clock.seconds(op) for op in ops if op in kernels)
