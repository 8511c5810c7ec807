"""Predicts the time of a block whose collectives overlap with compute; passes that change the overlap compare it before
and after.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from hlorewrite.analysis.groups import device_count, device_groups
from hlorewrite.cost import Topology
from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.errors import UsageError
from hlorewrite.ir import ALL_GATHER, COLLECTIVES, REDUCING, ir, kind_of, op_key, tensor_bytes, timed_kind
from hlorewrite.ir.view import View, defining_op, nested_ops
from hlorewrite.passmanager.base import PassContext
from hlorewrite.timeline.stream_tasks import StreamTask

SEPARATE = "hlorewrite.separate_streams"
"""A unit attribute of modules that will be compiled with a separate stream for collectives that use network ports
alone."""

OVERLAPPED = "hlorewrite.overlapped"
"""A unit attribute of loops whose collectives are placed where compute hides them: comm-shift leaves them in place."""

HALF = "hlorewrite.half"
"""A unit attribute of collectives of one half of a batch, which overlap with compute of the other: passes leave them
alone."""

CROWDED = "hlorewrite.crowded"
"""A unit attribute of loops whose collectives, each in a separate call, fill most of an iteration."""
_CROWDED_SHARE = 0.8
"""XLA's scheduler leaves gaps between calls, so it does not hide more than this share of an iteration's compute."""


def uses_ports_alone(op: ir.Operation, view: View, topology: Topology) -> bool:
    """Whether no two members of a group are on one host, so a collective sends nothing over links within hosts.

    Args:
      op: the collective.
      view: the module.
      topology: the cluster; devices fill its hosts in order.
    """
    rows = device_groups(op, view)
    if isinstance(rows, str) or all(len(row) == 1 for row in rows):
        return False
    return all(len({member // topology.gpus_per_host for member in row}) == len(row) for row in rows)


class OverlapModel:
    """Times of the kernels and collectives of one module.

    Args:
      view: the module.
      ctx: names the cluster, if the pass does not.
      name: the name of the pass.
      topology: the cluster; empty for that of the run.

    Raises:
      UsageError: no cluster is named, but the pass decides by time.
    """

    def __init__(self, view: View, ctx: PassContext, name: str, topology: str = "") -> None:
        spec = topology or ctx.topology
        if not spec and not ctx.ignore_cost:
            raise UsageError(f"{name} decides by predicted time, and no cluster is named",
                             hint='add --topology=h200:1x8, or topology="h200:1x8" in Python')
        self.view = view
        self.times = CollectiveTimes(spec, device_count(view) or 1)
        self.clock = KernelClock(view, self.times.topology)
        self.separate = SEPARATE in view.module.operation.attributes

    @property
    def spec(self) -> str:
        """The cluster, as remarks name it."""
        return self.times.topology.spec

    def collective(self, op: ir.Operation) -> float:
        """Seconds of one collective by itself."""
        return self.together([op])

    def together(self, ops: Iterable[ir.Operation], share: float = 1) -> float:
        """Seconds of collectives, with one call for all of equal kind and groups.

        Args:
          ops: the collectives.
          share: the share of their bytes that is sent.
        """
        calls: dict[tuple[str, tuple[tuple[int, ...], ...]], int] = defaultdict(int)
        for op in ops:
            rows = device_groups(op, self.view)
            if not isinstance(rows, str):
                calls[kind_of(op.name), rows] += max(
                    sum(tensor_bytes(value.type) for value in side) for side in (op.operands, op.results))
        return sum(self.times.seconds(timed_kind(kind), int(bytes_ * share), rows)
                   for (kind, rows), bytes_ in calls.items())

    def compute(self, ops: Sequence[ir.Operation]) -> float:
        """Seconds of the kernels among some ops with one block, regions included."""
        return sum(self.clock.seconds(op) for op in ops)

    def tasks(self, ops: Sequence[ir.Operation], copied: Sequence[ir.Value] = (), ahead: Iterable[ir.Operation] = (),
              carried: Mapping[ir.Value, ir.Operation] | None = None) -> list[StreamTask]:
        """Converts ops with one block to tasks, with the values between them as dependences.

        Args:
          ops: the ops of the block, in some order. An op that reads a result of a later one reads that of another
            iteration.
          copied: such values that must be copied before they are read, since the iteration overwrites them.
          ahead: collectives that run for the next iteration.
          carried: the ops among these that make the arguments of the block, for the arguments that they make.

        Returns:
          The copies, then a task for each op.
        """
        places = {op_key(op): len(copied) + place for place, op in enumerate(ops)}
        copies = {value: place for place, value in enumerate(copied)}
        moved = [StreamTask(self.clock.rates.seconds(2 * tensor_bytes(value.type), ())) for value in copied]
        given = {places[op_key(op)] for op in ahead}
        seam = {argument: places[op_key(op)] for argument, op in (carried or {}).items()}
        return [*moved, *(self._task(op, [source for source in self._sources(op, places, copies, seam)
                                          if source not in given]) for op in ops)]

    def crowded(self, block: ir.Block) -> bool:
        """Whether the collectives of a loop's body, each in a separate call, fill most of its compute."""
        ops = [each.operation for each in block.operations]
        calls = sum(self.collective(op) for op in ops if op.name in (*REDUCING, ALL_GATHER.op))
        return calls > _CROWDED_SHARE * self.compute(ops)

    def transfer(self, op: ir.Operation, seconds: float, sources: Sequence[int] = ()) -> StreamTask:
        """A collective, or a part of one, as a task on its stream.

        Args:
          op: the collective.
          seconds: the time that sending takes.
          sources: the tasks that it waits for.
        """
        return StreamTask(seconds, tuple(sources), True, int(self.separate and uses_ports_alone(
            op, self.view, self.times.topology)))

    def _task(self, op: ir.Operation, sources: Sequence[int]) -> StreamTask:
        if op.name in COLLECTIVES:
            return self.transfer(op, self.collective(op), sources)
        return StreamTask(self.clock.seconds(op), tuple(sources))

    def _sources(self, op: ir.Operation, places: dict[int, int], copies: dict[ir.Value, int],
                 seam: dict[ir.Value, int]) -> list[int]:
        """The tasks that make the values an op reads, also inside its regions: earlier ops, or copies."""
        inner = nested_ops(op) if len(op.regions) and op.name not in COLLECTIVES else (op,)
        read = {value for each in inner for value in each.operands}
        makers = (defining_op(value) for value in read)
        made = {places.get(op_key(maker), -1) for maker in makers if maker is not None}
        made |= {seam[value] for value in read if value in seam}
        own = places[op_key(op)]
        return sorted({place for place in made if 0 <= place < own} | {
            copies[value] for value in read if value in copies and self._is_later(value, places, own)})

    def _is_later(self, value: ir.Value, places: dict[int, int], own: int) -> bool:
        """Whether a value is an argument, or made after the op that reads it."""
        maker = defining_op(value)
        return maker is None or places.get(op_key(maker), own) >= own
