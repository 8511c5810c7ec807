"""collective-cse: removes collectives whose result is already available, and collectives that no op reads."""

from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar

from hlorewrite.ir import BRANCHES, COLLECTIVES, MAY_HAVE_EFFECTS, Module, View, ancestors, ir, op_key
from hlorewrite.ir.inline import contains_any, erase_dead_functions
from hlorewrite.passes.common.pass_support import tell
from hlorewrite.passes.common.value_numbers import Number, ValueNumbers
from hlorewrite.passmanager.base import Pass, PassContext

_Result = tuple[ir.Operation, int]
"""An op and the position of a result."""


@dataclass(frozen=True)
class CollectiveCse(Pass):
    """Merges equal collectives, also inside called functions, and removes those that no op reads.

    Two collectives compute the same when they are equal except for their channel and their operands have equal value
    numbers. The one that stays must run whenever the other does: it is before it, in the same block or around it.
    XLA merges collectives only where their operands are one instruction.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> CollectiveCse().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "collective-cse"

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        if not view.ops(*COLLECTIVES):
            return False
        dead = self._remove_dead(view, ctx)
        merged = self._merge(view, ctx)
        if merged:
            self._remove_dead(view, ctx)
        return dead or merged

    def _remove_dead(self, view: View, ctx: PassContext) -> bool:
        """Removes collectives, and calls that contain nothing but some, whose results no op reads."""
        editor = ctx.editor(view.module, self.name)
        removed = 0
        # Ends: each round but the last removes an op.
        while True:
            holds, effects = contains_any(COLLECTIVES, view), contains_any(MAY_HAVE_EFFECTS, view)
            before = removed
            for op in reversed(view.ops(*COLLECTIVES, "func.call")):
                if op.name == "func.call":
                    callee = view.callee(op)
                    if callee is None or not holds(callee) or effects(callee):
                        continue
                if len(op.results) == 0 or any(next(iter(r.uses), None) is not None for r in op.results):
                    continue
                tell(ctx, "applied", self.name, "no op reads it: it is removed", view, op)
                editor.erase(op)
                removed += 1
            if removed == before:
                break
        if removed:
            erase_dead_functions(editor)
        ctx.count("dead collectives", removed)
        return removed > 0

    def _merge(self, view: View, ctx: PassContext) -> bool:
        """Makes the readers of a collective read an equal one before it."""
        candidates = _in_order(view)
        if len(candidates) < 2:
            return False
        numbers = ValueNumbers(view)
        first: dict[Number, _Result] = {}
        others: dict[tuple[Number, ir.Block], _Result] = {}
        replaced: list[tuple[ir.Operation, ir.Value, ir.Value, ir.Operation]] = []
        for op in candidates:
            for position, result in enumerate(op.results):
                number = numbers.of(result)
                if number not in first:  # most numbers have one
                    first[number] = op, position
                    continue
                maker, which = _visible(op, number, first, others) or (None, 0)
                if maker is None:
                    others[number, op.block] = op, position
                elif next(iter(result.uses), None) is not None:
                    replaced.append((op, result, maker.results[which], maker))
        editor = ctx.editor(view.module, self.name)
        for op, result, value, maker in replaced:
            tell(ctx, "applied", self.name, f"its result is that of {maker.name} at {view.place(maker)}", view, op)
            editor.replace(result, value)
        ctx.count("collectives merged", len(replaced))
        return bool(replaced)


def _visible(op: ir.Operation, number: Number, first: dict[Number, _Result],
             others: dict[tuple[Number, ir.Block], _Result]) -> _Result | None:
    """The innermost of the results with a number that can be read at an op."""
    block_of_first = first[number][0].block
    for block in (op.block, *(outer.block for outer in takewhile(_reads_around, ancestors(op)))):
        if block == block_of_first:
            return first[number]
        if (number, block) in others:
            return others[number, block]
    return None


def _reads_around(op: ir.Operation) -> bool:
    """Whether the regions of an op may capture values; those of functions and manual regions may not."""
    return op.name in ("stablehlo.while", *BRANCHES)


def _in_order(view: View) -> list[ir.Operation]:
    """Collectives, and calls of functions that contain some, in program order."""
    calls = view.ops("func.call")
    holds = contains_any(COLLECTIVES, view)
    wanted = {op_key(op): op for op in view.ops(*COLLECTIVES)}
    for call in calls:
        callee = view.callee(call)
        if callee is not None and holds(callee):
            wanted[op_key(call)] = call
    if len(wanted) < 2:
        return []
    ops: list[ir.Operation] = []
    names = {*COLLECTIVES, "func.call"}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in names and op_key(op) in wanted:
            ops.append(wanted[op_key(op)])
        return ir.WalkResult.ADVANCE

    view.module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return ops
