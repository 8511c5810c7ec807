"""Reductions of a stacked tensor, and the elementwise ops between the loop that stacks and the reduction."""

from collections.abc import Mapping
from dataclasses import dataclass

from hlorewrite.analysis.groups import groups_of
from hlorewrite.ir import Loop, View, defining_op, ir, op_key, owner_op, users
from hlorewrite.ops.attributes import splat_number
from hlorewrite.passes.common.shard_index import scalar_behind
from hlorewrite.passes.common.stacked_rows import RowStack, row_stacks

ELEMENTWISE = ("stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.divide", "stablehlo.negate",
               "stablehlo.convert", "stablehlo.maximum", "stablehlo.minimum", "stablehlo.and", "stablehlo.or")
"""Ops whose result at an index depends only on their operands at that index."""
_MOST_OPS = 16


@dataclass(frozen=True)
class Sinking:
    """A reduction that can go into the loop that stacks what it reduces.

    Attributes:
      reduction: an all-reduce after the loop.
      loop: the ``while``.
      stack: the stacked tensor.
      steps: the elementwise ops between, from the loop to the reduction, each with the position of the operand that
        leads back to the loop.
      start: another tensor that the ops read and that the loop can fill in place; None if there is none.
    """

    reduction: ir.Operation
    loop: ir.Operation
    stack: RowStack
    steps: tuple[tuple[ir.Operation, int], ...]
    start: ir.Value | None

    def beside(self) -> list[ir.Value]:
        """The values that the ops read next to the stacked tensor."""
        return [value for op, position in self.steps for other, value in enumerate(op.operands) if other != position]


class SinkingFinder:
    """Finds the reductions of a module that can go into loops.

    Args:
      view: the module.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._stacks: dict[int, Mapping[int, RowStack]] = {}
        self._places: dict[ir.Block, dict[int, int]] = {}

    def find(self, reduction: ir.Operation) -> Sinking | None:
        """How a reduction can move into a loop; None when it reduces no stacked tensor, or cannot move."""
        if len(reduction.operands) != 1 or isinstance(groups_of(reduction, self.view), str):
            return None
        path = self._path(reduction.operands[0], reduction, 0)
        if path is None:
            return None
        result, steps = path
        loop = owner_op(result)
        stack = self._stacked(loop)[ir.OpResult(result).result_number]
        if reduction.results[0].type != result.type:
            return None
        found = Sinking(reduction, loop, stack, tuple(steps), None)
        whole = [value for value in found.beside() if not fills(value)]
        needed = [*whole, *(scalar_behind(value) for value in found.beside() if _varies(value))]
        if not all(self._stands_before(value, loop) for value in needed):
            return None
        start = next((value for value in whole if value.type == result.type), None)
        return Sinking(reduction, loop, stack, tuple(steps), start)

    def _path(self, value: ir.Value, reader: ir.Operation, depth: int
              ) -> tuple[ir.Value, list[tuple[ir.Operation, int]]] | None:
        """The path from a stacked result of a loop to a value that only ``reader`` reads."""
        op = defining_op(value)
        if op is None or op.block != reader.block or len(users(value)) != 1 or depth > _MOST_OPS:
            return None
        if op.name == "stablehlo.while":
            return (value, []) if ir.OpResult(value).result_number in self._stacked(op) else None
        if op.name not in ELEMENTWISE:
            return None
        for position, operand in enumerate(op.operands):
            if (path := self._path(operand, op, depth + 1)) is not None:
                return path[0], [*path[1], (op, position)]
        return None

    def _stacked(self, loop: ir.Operation) -> Mapping[int, RowStack]:
        key = op_key(loop)
        if key not in self._stacks:
            self._stacks[key] = row_stacks(Loop(loop))
        return self._stacks[key]

    def _stands_before(self, value: ir.Value, loop: ir.Operation) -> bool:
        """Whether a value is defined before a loop, so the loop may read it."""
        op = defining_op(value)
        if op is None or op.block != loop.block:
            return True
        if loop.block not in self._places:
            self._places[loop.block] = {op_key(each.operation): place
                                        for place, each in enumerate(loop.block.operations)}
        places = self._places[loop.block]
        return places[op_key(op)] < places[op_key(loop)]


def fills(value: ir.Value) -> bool:
    """Whether a value is a splat: a constant or the broadcast of one element."""
    op = defining_op(value)
    return op is not None and (splat_number(op) is not None or scalar_behind(value) != value)


def _varies(value: ir.Value) -> bool:
    """Whether a value is the broadcast of an element that is not a constant."""
    maker = defining_op(scalar_behind(value))
    return fills(value) and (maker is None or splat_number(maker) is None)
