"""The source of an all-gather in a loop: a value from outside the loop, or a slice of one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hlorewrite.ir import WHILE, Loop, ancestors, defining_op, ir, is_static_tensor, region_op
from hlorewrite.ops.dims import dim_factor
from hlorewrite.ops.table import SLICES

_BARRIER = "stablehlo.optimization_barrier"
_CONVERT, _RESHAPE = "stablehlo.convert", "stablehlo.reshape"
_TRANSPOSE = "stablehlo.transpose"
STEPS = (_CONVERT, _RESHAPE, _TRANSPOSE, *SLICES)
"""Ops that commute with an all-gather, except for barriers."""
_MOST_STEPS = 32


@dataclass(frozen=True)
class GatherSource:
    """Where the operand of an all-gather comes from.

    Attributes:
      root: the value outside the loops.
      dimension: the dimension of the root along which shards are gathered.
      loops: the loops between the root and the gather, innermost first.
      converts: element types the root is converted to, in order.
      steps: slices, reshapes and transposes from the root to the gather, in order, each with the gathered dimension of
        its result.
    """

    root: ir.Value
    dimension: int
    loops: tuple[ir.Operation, ...]
    converts: tuple[ir.Type, ...]
    steps: tuple[tuple[ir.Operation, int], ...]

    @property
    def slices(self) -> Iterator[ir.Operation]:
        """The slices among the steps."""
        return (op for op, _ in self.steps if op.name in SLICES)


def source_of(gather: ir.Operation, dimension: int, is_equal: Callable[[ir.Value], bool]) -> GatherSource | str:
    """Follows the operand of an all-gather out of loops that do not change it.

    With ``AG`` along a dimension that a slice takes whole, and equal indices i on all members of a group,
    ``AG(slice(w, i)) = slice(AG(w), i)``; converts, reshapes that keep the dimension, transposes and
    barriers commute with ``AG`` as well.

    Args:
      gather: the all-gather.
      dimension: the dimension along which it gathers.
      is_equal: whether a value is equal on all members of each of its groups.

    Returns:
      The source outside as many loops as possible, or why the gather has to stay in its loop.
    """
    walk = _Walk(gather, dimension)
    best, reason = walk.found(), ""
    for _ in range(_MOST_STEPS):
        reason = walk.step(is_equal)
        if reason:
            break
        here = walk.found()
        if len(here.loops) > len(best.loops):
            best = here
        if not any(outer.name == "stablehlo.while" for outer in _above(here.root)):
            break
    return best if best.loops else reason or "the gathered value is made in its loop"


class _Walk:
    """A walk from the operand of a gather to its source."""

    def __init__(self, gather: ir.Operation, dimension: int) -> None:
        self.gather = gather
        self.value = gather.operands[0]
        self.dimension = dimension
        self.converts: list[ir.Type] = []
        self.steps: list[tuple[ir.Operation, int]] = []

    def found(self) -> GatherSource:
        """The source if the walk ends here."""
        return GatherSource(self.value, self.dimension, tuple(_loops_between(self.gather, self.value)),
                            tuple(reversed(self.converts)), tuple(reversed(self.steps)))

    def step(self, is_equal: Callable[[ir.Value], bool]) -> str:
        """Goes one step up, or returns why it cannot."""
        if isinstance(self.value, ir.BlockArgument):
            return self._out_of_loop(self.value)
        op = defining_op(self.value)
        if op is None or op.name not in (_BARRIER, *STEPS):
            return f"the gathered value is made by {'an argument' if op is None else op.name} in its loop"
        if op.name == _BARRIER:
            self.value = op.operands[list(op.results).index(self.value)]
            return ""
        if op.name == _CONVERT:
            self.converts.append(ir.RankedTensorType(self.value.type).element_type)
        else:
            factor = dim_factor(op, self.dimension)
            before = None if isinstance(factor, str) else factor.operands[0]
            if before is None:
                return f"a {op.name.partition('.')[2]} changes the dimension along which it gathers"
            if op.name in SLICES and not all(is_equal(index) for index in list(op.operands)[1:]):
                return "the index of a slice of it may differ between the devices of a group"
            self.steps.append((op, self.dimension))
            self.dimension = before
        self.value = op.operands[0]
        return "" if is_static_tensor(self.value.type) else "its size is not known"

    def _out_of_loop(self, argument: ir.BlockArgument) -> str:
        owner, position = region_op(argument), argument.arg_number
        if owner.name != WHILE or argument.owner != Loop(owner).body:
            return "the gathered value is an argument of its function or region"
        if not Loop(owner).keeps(position):
            return "the gathered value changes from iteration to iteration"
        self.value = owner.operands[position]
        return ""


def _above(value: ir.Value) -> Iterator[ir.Operation]:
    """The ops around the definition of a value."""
    maker = defining_op(value)
    around = ir.BlockArgument(value).owner.owner.operation if maker is None else maker
    if maker is None:
        yield around
    yield from ancestors(around)


def _loops_between(gather: ir.Operation, value: ir.Value) -> list[ir.Operation]:
    """The loops around a gather but not around a value, as far as the gather may leave them."""
    maker = defining_op(value)
    block = ir.BlockArgument(value).owner if maker is None else maker.block
    loops, inner = [], gather
    # Ends: each round goes to the op around.
    while inner.block != block:
        outer = inner.parent
        if outer is None or outer.operation.name != "stablehlo.while" or inner.block != Loop(outer.operation).body:
            return []
        inner = outer.operation
        loops.append(inner)
    return loops
