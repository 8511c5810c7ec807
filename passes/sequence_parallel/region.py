"""The values that may be sharded together with the result of an all-reduce, and the ops between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import COLLECTIVES, Loop, decision, ir, is_static_tensor, op_key
from hlorewrite.ir.view import ancestors, defining_op, terminator, users
from hlorewrite.ops.dims import DimFactor, dim_factor, repeats_whole

BARRIER = "stablehlo.optimization_barrier"
_TRANSPARENT = ("func.func", "sdy.manual_computation")


@dataclass(frozen=True)
class ShardRead:
    """An operand that a member reads sharded.

    Attributes:
      op: the member's op, or the end of the loop that carries it.
      position: of the operand.
      dimension: the sharded one.
    """

    op: ir.Operation
    position: int
    dimension: int


@dataclass(frozen=True)
class RegionMember:
    """What is either computed on shards or whole: an all-reduce, an op, a carried value or a value after a barrier.

    Attributes:
      op: the op.
      values: what it computes that is sharded when it works on shards; none where it gives partial sums.
      reads: operands that it then reads sharded.
      position: of a carried value or of a value after a barrier.
      reduces: whether it is an all-reduce, which becomes a reduce-scatter.
    """

    op: ir.Operation
    values: tuple[ir.Value, ...]
    reads: tuple[ShardRead, ...]
    position: int | None = None
    reduces: bool = False

    @property
    def gives_partial_sums(self) -> bool:
        """Whether its results are summed over the group when it works on shards."""
        return not self.values


@dataclass
class Region:
    """Members that follow from one all-reduce sharded along one dimension.

    Attributes:
      dims: value to its sharded dimension; of values that members make, and of those they read.
      members: in the order they were found.
      maker: value to the member that makes it.
      reader: (key of an op, operand position) to the member that reads it sharded.
      refused: key of an op to why it works on whole values, for all-reduces and what reads members.
    """

    dims: dict[ir.Value, int] = field(default_factory=dict)
    members: list[RegionMember] = field(default_factory=list)
    maker: dict[ir.Value, int] = field(default_factory=dict)
    reader: dict[tuple[int, int], int] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)

    def add(self, member: RegionMember) -> None:
        """Adds a member."""
        for value in member.values:
            self.maker[value] = len(self.members)
        for read in member.reads:
            self.reader[op_key(read.op), read.position] = len(self.members)
        self.members.append(member)

    def readers(self, value: ir.Value) -> list[tuple[ir.Operation, int, int | None]]:
        """What reads a value: op, operand position, and the member that reads it sharded; None where it cannot."""
        return [(op, position, self.reader.get((op_key(op), position))) for op, position in users(value)]


class RegionFinder:
    """Follows a sharded dimension from an all-reduce through what reads it, and through their other operands.

    Args:
      reductions: key of an op to the op, for the all-reduces of the group that may become reduce-scatters.
      size: members of a group.
      uniformity: over these groups. Only a value that is equal on all members has shards.
    """

    def __init__(self, reductions: Mapping[int, ir.Operation], size: int, uniformity: Uniformity) -> None:
        self.reductions = reductions
        self.size = size
        self.uniformity = uniformity
        self._region = Region()
        self._joined: set[tuple[int, int | None]] = set()
        self._pending: list[ir.Value] = []

    def region(self, reduction: ir.Operation, dimension: int) -> Region:
        """What may be sharded when the result of an all-reduce is.

        Args:
          reduction: the all-reduce.
          dimension: of its result.

        Returns:
          The region; without members when that dimension cannot be sharded.
        """
        self._region, self._joined, self._pending = Region(), set(), []
        self._join_reduction(reduction, dimension)
        # Ends: a value is added once, when it gets its dimension.
        while self._pending:
            value = self._pending.pop()
            self._to_maker(value)
            if value in self._region.maker:
                for op, position in users(value):
                    self._to_reader(op, position, self._region.dims[value])
        return self._region

    # ---- steps

    def _to_maker(self, value: ir.Value) -> None:
        dimension, op = self._region.dims[value], defining_op(value)
        if op is None:
            argument = ir.BlockArgument(value)
            owner = argument.owner.owner.operation
            if owner.name == "stablehlo.while" and argument.owner == Loop(owner).body:
                self._join_carried(owner, argument.arg_number, dimension)
        elif op.name == "stablehlo.while":
            self._join_carried(op, ir.OpResult(value).result_number, dimension)
        elif op.name == BARRIER:
            self._join_barrier(op, ir.OpResult(value).result_number, dimension)
        elif op_key(op) in self.reductions:
            self._join_reduction(op, dimension)
        else:
            self._join_op(op, dimension, None)

    def _to_reader(self, op: ir.Operation, position: int, dimension: int) -> None:
        parent = op.parent
        if op.name == "stablehlo.while":
            self._join_carried(op, position, dimension)
        elif op.name == BARRIER:
            self._join_barrier(op, position, dimension)
        elif op.name == "stablehlo.return" and parent is not None and parent.operation.name == "stablehlo.while":
            if op.block == Loop(parent.operation).body:
                self._join_carried(parent.operation, position, dimension)
        elif op.name not in COLLECTIVES:
            self._join_op(op, dimension, position)

    def _join_reduction(self, op: ir.Operation, dimension: int) -> None:
        if self._new(op, None):
            self._join(RegionMember(op, (op.results[0],), (), reduces=True), dict.fromkeys(op.results, dimension))

    def _join_op(self, op: ir.Operation, dimension: int, position: int | None) -> None:
        if not self._new(op, None):
            return
        factor = dim_factor(op, dimension, position)
        if isinstance(factor, str):
            self._region.refused[op_key(op)] = factor
            return
        read = [k for k, d in enumerate(factor.operands) if d is not None and not _repeated(op.operands[k], d)]
        dims = {op.operands[k]: factor.operands[k] for k in read}
        if any(dims[op.operands[k]] != factor.operands[k] for k in read):
            self._region.refused[op_key(op)] = "reads one value along two dimensions"
            return
        values = () if factor.result is None else tuple(op.results)
        self._join(RegionMember(op, values, _sharded_reads(op, factor)), {
            **{value: d for value, d in dims.items() if d is not None},
            **{value: factor.result for value in values if factor.result is not None}})

    def _join_barrier(self, op: ir.Operation, position: int, dimension: int) -> None:
        if self._new(op, position):
            self._join(RegionMember(op, (op.results[position],), (ShardRead(op, position, dimension),), position),
                       {op.operands[position]: dimension, op.results[position]: dimension})

    def _join_carried(self, op: ir.Operation, position: int, dimension: int) -> None:
        if not self._new(op, position):
            return
        loop, end = Loop(op), terminator(Loop(op).body)
        if loop.tests(position):
            return  # the condition reads it whole
        around = {value: dimension for value in (op.operands[position], end.operands[position])
                  if not _repeated(value, dimension)}
        values = (loop.body.arguments[position], op.results[position])
        reads = tuple(ShardRead(each, position, dimension) for each in (op, end))
        self._join(RegionMember(op, values, reads, position),
                   {**around, **dict.fromkeys(values, dimension)})

    # ---- conditions

    def _new(self, op: ir.Operation, position: int | None) -> bool:
        """Whether an op, or a position of it, is new; each is visited once."""
        key = (op_key(op), position)
        fresh = key not in self._joined
        self._joined.add(key)
        return fresh

    def _join(self, member: RegionMember, dims: Mapping[ir.Value, int]) -> None:
        """Adds a member, unless a condition does not hold."""
        why = self._obstacle(member, dims)
        if why:
            self._region.refused[op_key(member.op)] = why
            return
        for value, dimension in dims.items():
            if value not in self._region.dims:
                self._region.dims[value] = dimension
                self._pending.append(value)
        self._region.add(member)

    def _obstacle(self, member: RegionMember, dims: Mapping[ir.Value, int]) -> str:
        """Why a member cannot work on shards; empty when it can."""
        for value, dimension in dims.items():
            if not is_static_tensor(value.type):
                return "has a value without a static shape"
            size = ir.RankedTensorType(value.type).shape[dimension]
            if size == 0 or size % self.size:
                return f"has a dimension {dimension} of size {size}, which {self.size} devices do not divide evenly"
            if self._region.dims.get(value, dimension) != dimension:
                return "needs the same value sharded along another dimension"
        for value in member.values or tuple(member.op.results):
            reason = self.uniformity.varying(value)
            if reason is not None:
                return f"gives each device of a group a value of its own: {reason.sentence}"
        return self._runs_apart(member.op)

    def _runs_apart(self, op: ir.Operation) -> str:
        """Why the members of a group may not all run a collective at an op; empty when they do."""
        for outer in (op, *ancestors(op)):
            decides = decision(outer)
            if decides is None and (outer == op or outer.name in _TRANSPARENT):
                continue
            if decides is None:
                return f"stands in {outer.name}"
            reason = self.uniformity.varying(decides)
            if reason is not None:
                return f"runs on some devices of a group only: {reason.sentence}"
        return ""


def _repeated(value: ir.Value, dimension: int) -> bool:
    maker = defining_op(value)
    return maker is not None and repeats_whole(maker, dimension)


def _sharded_reads(op: ir.Operation, factor: DimFactor) -> tuple[ShardRead, ...]:
    return tuple(ShardRead(op, k, dimension) for k, dimension in enumerate(factor.operands) if dimension is not None)
