"""Finds values that matter only in calls in which a predicate holds, so a branch may read them.

Libraries that accumulate gradients compute the update in each call, and mask it in all calls but each k-th one:
``where(last, new, old)``, ``last * update``, or ``cond(last, new, old)``. Masked values do not depend on the sum in
the other calls, so it need not be reduced in them.
"""

from dataclasses import dataclass

from hlorewrite.ir import BRANCHES, COLLECTIVES, defining_op, element_count, ir, makers_of, op_key, users
from hlorewrite.ops.attributes import splat_number
from hlorewrite.ops.table import SPREADS
from hlorewrite.passes.common.value_numbers import is_function
from hlorewrite.passes.partial_state.calls_as_loop import CallsAsLoop
from hlorewrite.util.reachability import postorder, reachable

_MOST_OPS = 64
_SPREAD = (*SPREADS, "stablehlo.convert")


@dataclass(frozen=True)
class Mask:
    """The condition under which a value matters.

    Attributes:
      predicate: an ``i1`` scalar.
      holds: the predicate's value then.
    """

    predicate: ir.Value
    holds: bool


class Masks:
    """Finds the values of a step that matter only if a predicate holds.

    Args:
      loop: the step.

    Attributes:
      hidden: values that are computed from masked uses, up to the masks.
    """

    def __init__(self, loop: CallsAsLoop) -> None:
        self.loop = loop
        self.hidden: set[ir.Value] = set()
        self._known: dict[ir.Value, frozenset[Mask] | None] = {}

    def of_use(self, op: ir.Operation, position: int) -> Mask | None:
        """The mask that hides everything computed from a use; None if there is none.

        Args:
          op: the reader, which is in the block of the value.
          position: the position of the operand.
        """
        step = self._step(op, position, op.block)
        if isinstance(step, Mask) or step is None:
            return step
        found: set[Mask] = set()
        for value in step:
            masks = self._of(value)
            if masks is None:
                return None
            found |= masks
        return found.pop() if len(found) == 1 else None

    def hidden_by(self, op: ir.Operation, position: int) -> dict[ir.Value, None]:
        """The values computed from a masked use, up to the masks."""
        def leads_to(reader: ir.Operation, place: int, home: ir.Block) -> list[ir.Value]:
            step = self._step(reader, place, home)
            return [value for value in step if value not in self.hidden] if isinstance(step, list) else []

        return dict.fromkeys(reachable(leads_to(op, position, op.block), lambda value: [
            each for reader, place in users(value) for each in leads_to(reader, place, _block(value))]))

    def _of(self, root: ir.Value) -> frozenset[Mask] | None:
        """All masks that hide the values computed from a value; None if it matters in each call."""
        pending = [root]
        # Ends: a value is entered once, and its readers follow it.
        while pending:
            value = pending[-1]
            if value in self._known:
                pending.pop()
                continue
            steps = [self._step(op, position, _block(value)) for op, position in users(value)]
            inner = [result for step in steps if isinstance(step, list) for result in step]
            open_values = [result for result in inner if result not in self._known]
            if open_values and None not in steps:
                pending += open_values
                continue
            pending.pop()
            masks = [self._known[result] for result in inner] if None not in steps else [None]
            if any(each is None for each in masks):
                self._known[value] = None
                continue
            self._known[value] = frozenset({step for step in steps if isinstance(step, Mask)}.union(
                *(each for each in masks if each is not None)))
        return self._known[root]

    def _step(self, op: ir.Operation, position: int, home: ir.Block) -> Mask | list[ir.Value] | None:
        """The outcome of one use: a mask, results that depend on the value, or None if it matters in each call."""
        if op in (self.loop.returned, self.loop.end):
            return None
        if op.block != home:  # read in a region
            around, inside = _op_around(op, home)
            if around.name in BRANCHES:
                return _of_branch(around, inside)  # None for an unknown branch
            return None  # runs a number of times that may depend on it
        if op.name == "stablehlo.return":
            parent = op.block.owner.operation
            return [parent.results[position]] if parent.name in BRANCHES else None
        mask = mask_of(op, position)
        if mask is not None:
            return mask
        return list(op.results) if op.name in BRANCHES or is_function(op) else None


def mask_of(op: ir.Operation, position: int) -> Mask | None:
    """The condition under which an op's result depends on one of its operands; None if it always does.

    Only predicates computed from few scalars count, such as counters of calls: others may depend on the sums.
    """
    mask = None
    if op.name == "stablehlo.select" and position > 0:
        scalar = _scalar(op.operands[0])
        mask = Mask(scalar, position == 1) if scalar is not None else None
    elif op.name == "stablehlo.multiply" and op.operands[0] != op.operands[1]:
        mask = _indicator(op.operands[1 - position])
    return _known_early(mask)


def _known_early(mask: Mask | None) -> Mask | None:
    """A mask whose predicate is computed from scalars."""
    return None if mask is None or cone_of_numbers(mask.predicate) is None else mask


def cone_of_numbers(value: ir.Value) -> list[ir.Operation] | None:
    """The ops that a scalar is computed from, operands first, if all of them yield scalars; else None."""
    def makers(op: ir.Operation) -> list[ir.Operation] | None:
        if len(op.regions) or not is_function(op) or op.name in COLLECTIVES or \
                any(element_count(each.type) != 1 for each in op.results):
            return None
        return makers_of(op.operands)

    return postorder(makers_of([value]), makers, op_key, _MOST_OPS)


def _scalar(value: ir.Value) -> ir.Value | None:
    """The ``i1`` scalar that a value repeats in each element."""
    # Ends: each step goes to an operand.
    while (maker := defining_op(value)) is not None and maker.name in SPREADS:
        value = maker.operands[0]
    kind = ir.RankedTensorType(value.type)
    return value if not list(kind.shape) and str(kind.element_type) == "i1" else None


def _indicator(value: ir.Value) -> Mask | None:
    """The predicate for which a value is 1, and 0 otherwise."""
    holds = True
    # Ends: each step goes to an operand.
    while (maker := defining_op(value)) is not None:
        if maker.name in _SPREAD:
            value = maker.operands[0]
        elif maker.name == "stablehlo.subtract" and _is_one(maker.operands[0]):
            value, holds = maker.operands[1], not holds
        else:
            break
        scalar = _scalar(value) if str(ir.RankedTensorType(value.type).element_type) == "i1" else None
        if scalar is not None:
            return Mask(scalar, holds)
    return None


def _is_one(value: ir.Value) -> bool:
    # Ends: each step goes to an operand.
    while (maker := defining_op(value)) is not None and maker.name in _SPREAD:
        value = maker.operands[0]
    return maker is not None and splat_number(maker) == 1


def _of_branch(op: ir.Operation, inside: ir.Block) -> Mask | None:
    """The condition under which a branch is taken."""
    taken = next(number for number, region in enumerate(op.regions) if region.blocks[0] == inside)
    if op.name == "stablehlo.if":
        return _known_early(Mask(op.operands[0], taken == 0))
    maker = defining_op(op.operands[0])
    if maker is None or maker.name != "stablehlo.convert" or len(op.regions) != 2:
        return None
    scalar = _scalar(maker.operands[0])
    return _known_early(Mask(scalar, taken == 1)) if scalar is not None else None


def _block(value: ir.Value) -> ir.Block:
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def _op_around(op: ir.Operation, home: ir.Block) -> tuple[ir.Operation, ir.Block]:
    """The op of a block that contains another op, and its block that contains that."""
    # Ends: each step goes to the block around.
    while True:
        inside = op.block
        op = inside.owner.operation
        if op.block == home:
            return op, inside
