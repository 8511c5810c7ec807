"""Traces values through loops, branches, calls, manual computations and barriers; no other code does.

Analyses ask here which value of another block a value comes from, as compilers ask MLIR's ``RegionBranchOpInterface``.
They draw their own conclusions from it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.view import View, ancestors, called_function, nested_ops, terminator
from hlorewrite.util.reachability import reachable

WHILE, CALL, FUNCTION = "stablehlo.while", "func.call", "func.func"
MANUAL, BARRIER = "sdy.manual_computation", "stablehlo.optimization_barrier"
BRANCHES = ("stablehlo.case", "stablehlo.if")


@dataclass(frozen=True)
class Loop:
    """A ``stablehlo.while``: position i is its operand, its arguments in both regions, its yield and its result."""

    op: ir.Operation

    @property
    def condition(self) -> ir.Block:
        """The block that decides whether to go on."""
        return self.op.regions[0].blocks[0]

    @property
    def body(self) -> ir.Block:
        """The block that computes the next carried values."""
        return self.op.regions[1].blocks[0]

    @property
    def predicate(self) -> ir.Value:
        """What the condition returns."""
        return terminator(self.condition).operands[0]

    @property
    def yields(self) -> ir.OpOperandList:
        """The next carried values."""
        return terminator(self.body).operands

    def carried(self, position: int) -> tuple[ir.Value, ir.Value]:
        """The values at a position: its start, and its next value."""
        return self.op.operands[position], self.yields[position]

    def keeps(self, position: int) -> bool:
        """Whether each iteration yields its argument at a position unchanged."""
        return self.yields[position] == self.body.arguments[position]

    def tests(self, position: int) -> bool:
        """Whether the condition reads a position."""
        return next(iter(self.condition.arguments[position].uses), None) is not None


def region_op(value: ir.Value) -> ir.Operation:
    """The op that owns the region of a block argument."""
    block = value.owner
    assert isinstance(block, ir.Block)
    return block.owner.operation


def decision(op: ir.Operation) -> ir.Value | None:
    """The values that decide how often a loop runs, or which branch is taken; None for other ops."""
    if op.name in BRANCHES:
        return op.operands[0]
    return Loop(op).predicate if op.name == WHILE else None


def returned(op: ir.Operation, position: int, view: View) -> list[ir.Value] | None:
    """The value of a result of a branch, a call, a manual computation or a barrier, in each region.

    Args:
      op: any op.
      position: the number of the result.
      view: the module.

    Returns:
      The values, one of which it is in each execution; None for other ops, and for functions outside the module.
    """
    if op.name == BARRIER:
        return [op.operands[position]]
    if op.name in BRANCHES or op.name == MANUAL:
        return [terminator(region.blocks[0]).operands[position] for region in op.regions]
    callee = view.callee(op) if op.name == CALL else None
    if callee is None or len(callee.regions[0].blocks) != 1:
        return None
    return [terminator(callee.regions[0].blocks[0]).operands[position]]


def around(ops: Iterable[ir.Operation], view: View) -> Iterator[ir.Operation]:
    """The ops around some ops, the ops around the calls of their functions, and so on outwards; each once."""
    def outer(op: ir.Operation) -> list[ir.Operation]:
        return view.calls_of(op) if op.name == FUNCTION else list(islice(ancestors(op), 1))
    return (op for op in reachable([each for op in ops for each in ancestors(op)], outer, op_key) if op.name != CALL)


def called_functions(function: ir.Operation, view: View, *, skip: Iterable[int] = ()) -> Iterator[ir.Operation]:
    """A function and those that are called in it, directly or through others, each once.

    Args:
      function: the ``func.func``.
      view: the module.
      skip: the keys of ops whose calls do not count.
    """
    skipped = frozenset(skip)

    def callees(each: ir.Operation) -> list[ir.Operation]:
        names = (called_function(op) for op in nested_ops(each) if op_key(op) not in skipped)
        return [view.functions[name] for name in names if name in view.functions]
    return reachable([function], callees, op_key)
