"""Ops that can be applied to the unscattered sum, and the dimension along which it is scattered.

A reduce-scatter is an all-reduce followed by taking the device's own part: ``RS(x) = own(AR(x))``. A linear op that
commutes with taking a part along one dimension can be applied to the whole before the sum: elementwise ops whose other
operands are splats, and ops that move elements without touching that dimension.
"""

from collections.abc import Iterable

from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint
from hlorewrite.analysis.linearity import FactContext, JointlyLinear, LinearityFacts, NotLinear
from hlorewrite.ir import defining_op, ir, owner_op
from hlorewrite.ops.attributes import splat_number
from hlorewrite.ops.dims import dim_factor
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.ops.table import MOVES

LIFTED = {"stablehlo.add", "stablehlo.subtract", "stablehlo.negate", "stablehlo.multiply", "stablehlo.divide",
          "stablehlo.convert", "stablehlo.select"}
"""Elementwise ops that can be applied to whole sums if their other operands are splats."""
SCATTER = "stablehlo.scatter"
_BY_PLACE = ("stablehlo.while", "stablehlo.optimization_barrier")


class ScatterFacts:
    """The declared facts that can be lifted to the unscattered sum.

    Args:
      declared: the declared linearity facts.
    """

    def __init__(self, declared: LinearityFacts) -> None:
        self.declared = declared

    def linear_in(self, op: ir.Operation, position: int, context: FactContext) -> JointlyLinear | NotLinear:
        """Whether an op is linear in an operand and can be applied to the unscattered sum."""
        if op.name == SCATTER:
            return _added_into(op, position)
        if op.name not in LIFTED | MOVES:
            return NotLinear(f"{op.name} is not done on sums that are not scattered yet")
        answer = self.declared.linear_in(op, position, context)
        if isinstance(answer, NotLinear) or op.name in MOVES:
            return answer
        for other in range(len(op.operands)):
            if other in answer.operands:
                continue
            if not is_scalar(op.operands[other]) and splat_of(op.operands[other]) is None:
                return NotLinear(f"{op.name} has another operand that is not one number everywhere", illegal=True)
        return answer


def _added_into(op: ir.Operation, position: int) -> JointlyLinear | NotLinear:
    """``scatter-add(RS(w) + u, i, s) = RS(w) + scatter-add(u, i, s)``, so ``w`` stays as it is."""
    if position != 0 or reduction_kind(op) != "sum" or len(op.results) != 1:
        return NotLinear(f"{op.name} only adds to sums that are not scattered yet")
    return JointlyLinear(frozenset({0}), "scatter-sum", regroups=True)


def is_scalar(value: ir.Value) -> bool:
    """Whether a value is a tensor without dimensions."""
    return isinstance(value.type, ir.RankedTensorType) and value.type.rank == 0


def splat_of(value: ir.Value) -> ir.Operation | None:
    """The op that fills a value with one number: a broadcast of a scalar or a constant; None for others."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name == "stablehlo.broadcast_in_dim" and is_scalar(op.operands[0]):
        return op
    return op if splat_number(op) is not None else None


class ScatterDimensions:
    """The dimension along which each deferred value is scattered.

    Args:
      flow: the flow of the class.
      touched: the places whose values are not scattered yet, and those where they are to be.

    Attributes:
      by_value: value -> dimension.
      conflicts: uses that would have to be scattered along two dimensions, or along none: by ops, loops, and the
        terminators of loops and branches.
    """

    def __init__(self, flow: DeferralGraph, touched: Iterable[ProgramPoint]) -> None:
        self.flow = flow
        deferred = set(touched)
        self.by_value: dict[ir.Value, int] = {}
        self.conflicts: list[tuple[ir.Operation, int]] = []
        pending = [ProgramPoint(value) for value in flow.sources if ProgramPoint(value) in deferred]
        for place in pending:
            owner = defining_op(place.value)
            assert owner is not None
            self.by_value[place.value] = ir.IntegerAttr(owner.attributes["scatter_dimension"]).value
        # Ends: a place is added when its dimension becomes known, once.
        for place in pending:
            for target in flow.edges.get(place, ()):
                if target not in deferred:
                    continue
                dimension = self._along(place.value, target.value)
                known = self.by_value.get(target.value)
                if dimension is None or (known is not None and known != dimension):
                    self.conflicts += links(place.value, target.value)
                elif known is None:
                    self.by_value[target.value] = dimension
                    pending.append(target)

    def _along(self, value: ir.Value, target: ir.Value) -> int | None:
        """The scattered dimension of a value computed from a scattered one."""
        dimension = self.by_value[value]
        op = defining_op(target)
        if op is None or op.name not in MOVES:
            return dimension
        position = next(place for place, operand in enumerate(op.operands) if operand == value)
        factor = dim_factor(op, dimension, position)
        return None if isinstance(factor, str) else factor.result


def links(value: ir.Value, target: ir.Value) -> list[tuple[ir.Operation, int]]:
    """The uses of a value that another one is made from: by an op, as a loop's initial value, or at the end of a
    region.

    Args:
      value: the value that is read.
      target: a result of the reader or of the op around it, or an argument of a loop's body.

    Returns:
      (op, operand position) of each; a use at another position of the same loop, branch or barrier does not count.
    """
    block = target.owner if isinstance(target, ir.BlockArgument) else None
    maker = owner_op(target) if block is None else block.owner.operation
    place = ir.BlockArgument(target).arg_number if block is not None else ir.OpResult(target).result_number
    uses = []
    for use in value.uses:
        op, position = use.owner.operation, use.operand_number
        if op.name == "stablehlo.return" and op.block.owner.operation == maker:
            if position == place:
                uses.append((op, position))
        elif op == maker and (position == place or op.name not in _BY_PLACE):
            uses.append((op, position))
    return uses
