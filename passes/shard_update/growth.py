"""Finds the values of a step that become shards when one gradient does: values computed from it, and their other
inputs."""

from dataclasses import dataclass, field

from hlorewrite.ir import ALL_REDUCE, defining_op, ir, op_key, terminator, users
from hlorewrite.ops.dims import repeats_whole
from hlorewrite.passes.common.steps.manual_step import ManualStep
from hlorewrite.passes.shard_update.carried import (
    operand_dimensions,
    reduces_along,
    result_dimension,
    whole_reduction,
)
from hlorewrite.util.reachability import reachable


@dataclass(frozen=True)
class NoShards:
    """Why a gradient cannot be scattered.

    Attributes:
      value: the last value that could be a shard.
      sentence: the obstacle.
    """

    value: ir.Value
    sentence: str


@dataclass
class StateShards:
    """Values of which each device keeps a shard.

    Attributes:
      dims: value -> the dimension along which it is sharded.
      sums: reductions of shards to one element, by key, which an all-reduce has to complete.
      whole: values that are also read in full, or cannot be sharded; their shards are cut out where needed.
    """

    dims: dict[ir.Value, int] = field(default_factory=dict)
    sums: dict[int, ir.Operation] = field(default_factory=dict)
    whole: frozenset[ir.Value] = frozenset()

    def arguments(self) -> list[ir.BlockArgument]:
        """Those of the sharded values that are arguments of the manual computation, in order."""
        found = [ir.BlockArgument(value) for value in self.dims if isinstance(value.owner, ir.Block)]
        return sorted(found, key=lambda argument: argument.arg_number)

    def gradients(self) -> list[ir.Operation]:
        """The all-reduces among them."""
        makers = [defining_op(value) for value in self.dims]
        return [op for op in makers if op is not None and op.name == ALL_REDUCE.op]

    def reads(self, value: ir.Value, shards: int) -> list[tuple[ir.Value, int]]:
        """The values that a shard is computed from, and the dimensions along which they are sharded."""
        op = defining_op(value)
        if op is None or op.name == ALL_REDUCE.op:
            return []
        read = operand_dimensions(op, self.dims[value], shards)
        assert isinstance(read, list)
        return [(operand, dim) for operand, dim in zip(op.operands, read, strict=True) if dim is not None]


def grown(step: ManualStep, gradient: ir.Operation, dim: int, whole: frozenset[ir.Value]) -> StateShards | NoShards:
    """The shards that come with the shards of one gradient.

    Values that stand for the same element on all devices are sharded forward, to every reader, and backward, to the
    arguments; an argument that turns out to be read in full stays whole, with all values computed from it.

    Args:
      step: the step.
      gradient: an all-reduce along the axis.
      dim: the dimension to shard it along.
      whole: values that stay whole.

    Returns:
      The shards, or why the gradient has to be reduced on every device.
    """
    # Ends: each round keeps more values whole: those from which a refused value is computed.
    while True:
        attempt = _Growth(step, StateShards(whole=whole))
        refusal = attempt.run(gradient.results[0], dim)
        if refusal is None:
            return attempt.shards
        behind = attempt.behind(refusal.value)
        makers = [defining_op(value) for value in behind]
        if any(op is not None and op.name == ALL_REDUCE.op for op in makers):
            return refusal
        whole |= frozenset(behind)


@dataclass
class _Growth:
    """One attempt.

    Args:
      step: the step.
      shards: the result so far.
    """

    step: ManualStep
    shards: StateShards
    _pending: list[ir.Value] = field(default_factory=list)

    def run(self, seed: ir.Value, dim: int) -> NoShards | None:
        """Adds all inputs and readers of a value; returns an obstacle, if any."""
        refusal = self._add(seed, dim, seed)
        # Ends: a value is added once.
        while self._pending and refusal is None:
            value = self._pending.pop()
            refusal = self._backward(value) or self._forward(value)
        return refusal

    def behind(self, value: ir.Value) -> list[ir.Value]:
        """A shard and the shards that it is computed from."""
        return list(reachable([value], lambda each: [
            source for source, _ in self.shards.reads(each, self.step.shards) if source in self.shards.dims]))

    def _add(self, value: ir.Value, dim: int, because: ir.Value) -> NoShards | None:
        known = self.shards.dims.get(value)
        if known is not None:
            return None if known == dim else NoShards(because, "values sharded along different dimensions meet")
        self.shards.dims[value] = dim
        self._pending.append(value)
        return None

    def _forward(self, value: ir.Value) -> NoShards | None:
        dim = self.shards.dims[value]
        for reader, position in users(value):
            if reader == terminator(self.step.block):
                continue
            if reader.block != self.step.block:
                return NoShards(value, "it is read inside a loop or branch")
            if reduces_along(reader, position, dim):
                if not whole_reduction(reader):
                    return NoShards(value, "it is reduced along the sharded dimension to more than one element")
                self.shards.sums[op_key(reader)] = reader
                continue
            after = result_dimension(reader, position, dim, self.step.shards)
            refusal = NoShards(value, after) if isinstance(after, str) else self._add(reader.results[0], after, value)
            if refusal is not None:
                return refusal
        return None

    def _backward(self, value: ir.Value) -> NoShards | None:
        for source, dim in self.shards.reads(value, self.step.shards):
            refusal = self._add(source, dim, value) if self._may_shard(source, dim) else None
            if refusal is not None:
                return refusal
        return self._meets_other_values(value)

    def _meets_other_values(self, value: ir.Value) -> NoShards | None:
        """Returns an obstacle if a shard would mix in values that differ between devices."""
        op = defining_op(value)
        for operand in op.operands if op is not None and op.name != ALL_REDUCE.op else ():
            varying = self.step.uniformity.varying(operand) if operand not in self.shards.dims else None
            if varying is not None:
                return NoShards(value, f'it meets a value that differs along "{self.step.axis}": {varying.sentence}')
        return None

    def _may_shard(self, value: ir.Value, dim: int) -> bool:
        """Whether a value can be computed, or passed in, as shards; otherwise they are cut out of the whole."""
        op = defining_op(value)
        if value in self.shards.whole or (op is not None and repeats_whole(op, dim)):
            return False
        if op is None:
            return (value.owner == self.step.block
                    and self.step.may_shard_argument(ir.BlockArgument(value).arg_number))
        if op.block != self.step.block:
            return False
        if op.name == ALL_REDUCE.op:
            return self.step.may_scatter(op)
        return isinstance(operand_dimensions(op, dim, self.step.shards), list)
