"""The values that may be divided together along one dimension, and the ops between them.

Passes that compute on parts of values use this to follow a dimension: for shards of a group of devices
(``sequence-parallel``), or for halves that one device computes one after the other (``interleave-halves``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hlorewrite.ir import COLLECTIVES, Loop, ir, is_static_tensor, op_key
from hlorewrite.ir.regions import BARRIER, WHILE
from hlorewrite.ir.view import defining_op, terminator, users
from hlorewrite.ops.attributes import shape_of
from hlorewrite.ops.dims import DimFactor, dim_factor, repeats_whole


@dataclass(frozen=True)
class DividedRead:
    """An operand that a member reads in parts.

    Attributes:
      op: the member's op, or the terminator of the loop that carries it.
      position: the position of the operand.
      dimension: the divided dimension.
    """

    op: ir.Operation
    position: int
    dimension: int


@dataclass(frozen=True)
class RegionMember:
    """A unit computed either in parts or whole: an op, a carried value or a value after a barrier.

    Attributes:
      op: the op.
      values: its results that are divided when it works on parts; none if it gives partial sums.
      reads: the operands that it then reads in parts.
      position: the position of a carried value or of a value after a barrier.
      reduces: whether it is an all-reduce that becomes a reduce-scatter, and so makes parts of a whole operand.
    """

    op: ir.Operation
    values: tuple[ir.Value, ...]
    reads: tuple[DividedRead, ...]
    position: int | None = None
    reduces: bool = False

    @property
    def gives_partial_sums(self) -> bool:
        """Whether the results of its parts are summed."""
        return not self.values


@dataclass
class Region:
    """Members that follow from one collective divided along one dimension.

    The divided dimension of every value consists of one or several blocks of one size. Each block is divided by itself,
    and a part of a value is that part of each of its blocks. Ops keep the number of blocks, and collectives exchange
    whole blocks; rows gathered from devices, for instance, are blocks of what was gathered. A reshape that joins the
    dimension with those inside of it makes larger blocks: a batch of sequences becomes a batch of tokens.

    Attributes:
      dims: the divided dimension of each value that members make or read.
      blocks: the size of the blocks of each of these values.
      members: the members, in the order they were found.
      maker: value to the member that makes it.
      reader: (key of an op, operand position) to the member that reads it in parts.
      refused: why an op works on whole values, by its key, for collectives and readers of members.
    """

    dims: dict[ir.Value, int] = field(default_factory=dict)
    blocks: dict[ir.Value, int] = field(default_factory=dict)
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
        """The readers of a value: op, operand position, and the member that reads it in parts; None if it cannot."""
        return [(op, position, self.reader.get((op_key(op), position))) for op, position in users(value)]


class RegionFinder:
    """Follows a divided dimension from a collective through the readers of its result, and through their other
    operands.

    Each pass subclasses it to say which collectives join, and which other conditions a member must meet.

    Args:
      parts: the number of parts of the dimension.
    """

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self._region = Region()
        self._joined: set[tuple[int, int | None]] = set()
        self._pending: list[ir.Value] = []

    def region(self, collective: ir.Operation, dimension: int) -> Region:
        """The values that may be divided together with the result of a collective.

        Args:
          collective: the collective.
          dimension: the dimension of its result.

        Returns:
          The region; without members when that dimension cannot be divided.
        """
        self._region, self._joined, self._pending = Region(), set(), []
        self._region.blocks[collective.results[0]] = self.block(collective, dimension)
        self._join_collective(collective, dimension, None)
        # Ends: a value is added once, when it gets its dimension.
        while self._pending:
            value = self._pending.pop()
            self._to_maker(value)
            if value in self._region.maker:
                for op, position in users(value):
                    self._to_reader(op, position, self._region.dims[value])
        return self._region

    def block(self, collective: ir.Operation, dimension: int) -> int:
        """The size of a block of the first collective's result.

        Args:
          collective: that collective.
          dimension: the dimension of its result.
        """
        return ir.RankedTensorType(collective.results[0].type).shape[dimension]

    def collective_member(self, op: ir.Operation, dimension: int, position: int | None) -> RegionMember | str:
        """The form of a collective that works on parts.

        Args:
          op: the collective.
          dimension: the divided dimension.
          position: the position of the operand whose dimension it is; None when it is the result's.

        Returns:
          The member, or the end of a sentence that says why it works on whole values; empty if no remark is needed.
        """
        raise NotImplementedError

    def obstacle(self, member: RegionMember) -> str:
        """Other reasons why a member cannot work on parts; empty if there are none."""
        raise NotImplementedError

    def uneven(self, dimension: int, size: int, block: int) -> str:
        """Why a dimension of blocks cannot be divided evenly, as the end of a sentence about an op."""
        raise NotImplementedError

    # ---- steps

    def _to_maker(self, value: ir.Value) -> None:
        dimension, op = self._region.dims[value], defining_op(value)
        if op is None:
            argument = ir.BlockArgument(value)
            owner = argument.owner.owner.operation
            if owner.name == WHILE and argument.owner == Loop(owner).body:
                self._join_carried(owner, argument.arg_number, dimension)
        elif op.name == WHILE:
            self._join_carried(op, ir.OpResult(value).result_number, dimension)
        elif op.name == BARRIER:
            self._join_barrier(op, ir.OpResult(value).result_number, dimension)
        elif op.name in COLLECTIVES:
            self._join_collective(op, dimension, None)
        else:
            self._join_op(op, dimension, None)

    def _to_reader(self, op: ir.Operation, position: int, dimension: int) -> None:
        parent = op.parent
        if op.name == WHILE:
            self._join_carried(op, position, dimension)
        elif op.name == BARRIER:
            self._join_barrier(op, position, dimension)
        elif op.name == "stablehlo.return" and parent is not None and parent.operation.name == WHILE:
            if op.block == Loop(parent.operation).body:
                self._join_carried(parent.operation, position, dimension)
        elif op.name in COLLECTIVES:
            self._join_collective(op, dimension, position)
        else:
            self._join_op(op, dimension, position)

    def _join_collective(self, op: ir.Operation, dimension: int, position: int | None) -> None:
        if (op_key(op), None) in self._joined:
            return
        member = self.collective_member(op, dimension, position)
        if not member:
            return
        self._new(op, None)
        if isinstance(member, str):
            self._region.refused[op_key(op)] = member
            return
        self._join(member, {**{each.op.operands[each.position]: each.dimension for each in member.reads},
                            **dict.fromkeys(member.values, dimension)})

    def _join_op(self, op: ir.Operation, dimension: int, position: int | None) -> None:
        if not self._new(op, None):
            return
        factor = dim_factor(op, dimension, position, self._pieces(op, dimension, position))
        if isinstance(factor, str):
            self._region.refused[op_key(op)] = factor
            return
        read = [k for k, d in enumerate(factor.operands) if d is not None and not _repeated(op.operands[k], d)]
        dims = {op.operands[k]: factor.operands[k] for k in read}
        if any(dims[op.operands[k]] != factor.operands[k] for k in read):
            self._region.refused[op_key(op)] = "reads one value along two dimensions"
            return
        values = () if factor.result is None else tuple(op.results)
        self._join(RegionMember(op, values, divided_reads(op, factor)), {
            **{value: d for value, d in dims.items() if d is not None},
            **{value: factor.result for value in values if factor.result is not None}})

    def _join_barrier(self, op: ir.Operation, position: int, dimension: int) -> None:
        if self._new(op, position):
            self._join(RegionMember(op, (op.results[position],), (DividedRead(op, position, dimension),), position),
                       {op.operands[position]: dimension, op.results[position]: dimension})

    def _join_carried(self, op: ir.Operation, position: int, dimension: int) -> None:
        if not self._new(op, position):
            return
        loop, end = Loop(op), terminator(Loop(op).body)
        if loop.tests(position):
            return  # the condition reads the whole value
        around = {value: dimension for value in (op.operands[position], end.operands[position])
                  if not _repeated(value, dimension)}
        values = (loop.body.arguments[position], op.results[position])
        reads = tuple(DividedRead(each, position, dimension) for each in (op, end))
        self._join(RegionMember(op, values, reads, position),
                   {**around, **dict.fromkeys(values, dimension)})

    # ---- conditions

    def _new(self, op: ir.Operation, position: int | None) -> bool:
        """Whether an op, or one of its positions, is new; each is visited once."""
        key = (op_key(op), position)
        fresh = key not in self._joined
        self._joined.add(key)
        return fresh

    def _pieces(self, op: ir.Operation, dimension: int, position: int | None) -> int:
        """The number of contiguous pieces that parts of a value consist of, for a known value of an op."""
        known = self._region.blocks
        value = next(each for each in op.results if each in known) if position is None else op.operands[position]
        return self.parts * max(1, shape_of(value)[dimension] // max(1, known[value]))

    def _join(self, member: RegionMember, dims: Mapping[ir.Value, int]) -> None:
        """Adds a member, unless a condition does not hold."""
        why = self._obstacle(member, dims)
        if why:
            self._region.refused[op_key(member.op)] = why
            return
        blocks = self._blocks(member.op, dims)
        for value, dimension in dims.items():
            if value not in self._region.dims:
                self._region.dims[value], self._region.blocks[value] = dimension, blocks[value]
                self._pending.append(value)
        self._region.add(member)

    def _obstacle(self, member: RegionMember, dims: Mapping[ir.Value, int]) -> str:
        """Why a member cannot work on parts; empty when it can."""
        if not all(is_static_tensor(value.type) for value in dims):
            return "has a value without a static shape"
        blocks = self._blocks(member.op, dims)
        for value, dimension in dims.items():
            size = shape_of(value)[dimension]
            if size == 0 or blocks[value] % self.parts:
                return self.uneven(dimension, size, blocks[value])
            if self._region.dims.get(value, dimension) != dimension:
                return "needs the same value divided along another dimension"
            if self._region.blocks.get(value, blocks[value]) != blocks[value]:
                return "needs the same value divided in other blocks"
        return self.obstacle(member)

    def _blocks(self, op: ir.Operation, dims: Mapping[ir.Value, int]) -> dict[ir.Value, int]:
        """The sizes of the blocks of values that an op makes or reads, of which one is known."""
        known = next(value for value in dims if value in self._region.blocks)
        block, size = self._region.blocks[known], shape_of(known)[dims[known]]
        if op.name != "stablehlo.reshape":
            return dict.fromkeys(dims, block)
        return {value: block * shape_of(value)[dimension] // max(1, size) for value, dimension in dims.items()}


def _repeated(value: ir.Value, dimension: int) -> bool:
    maker = defining_op(value)
    return maker is not None and repeats_whole(maker, dimension)


def divided_reads(op: ir.Operation, factor: DimFactor) -> tuple[DividedRead, ...]:
    return tuple(DividedRead(op, k, dimension) for k, dimension in enumerate(factor.operands) if dimension is not None)
