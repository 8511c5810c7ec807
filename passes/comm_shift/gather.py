"""The part of comm-shift that moves loop-invariant all-gathers before loops, within the same memory budget."""

from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import ALL_GATHER
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.types import tensor_bytes
from hlorewrite.ir.view import View
from hlorewrite.passes.hoist_collectives import HoistCollectives
from hlorewrite.passmanager.base import PassContext


@dataclass(frozen=True)
class _GatherHoist(HoistCollectives):
    """Hoisting under comm-shift's name; a loop that may not run at all keeps its gathers."""

    name: ClassVar[str] = "comm-shift"
    limit_name: ClassVar[str] = "what is left of memory-budget is"
    draws: ClassVar[bool] = False  # comm-shift does, for its sums and gathers together
    unknown_trips: bool = False


def hoist_gathers(view: View, editor: Editor, ctx: PassContext, budget: int) -> tuple[bool, int]:
    """Moves all-gathers whose operands do not change out of their loops, as far as memory allows.

    Args:
      view: the view of the module.
      editor: its editor.
      ctx: where remarks go.
      budget: bytes that gathered values may add to what is live during loops, all together.

    Returns:
      (whether anything moved, bytes of the budget that are left).
    """
    left, changed = budget, False
    varying: set[int] = set()
    pending, paid = view.ops(ALL_GATHER.op), False
    # Ends: each round moves every gather that is left one loop further out.
    while pending:
        moved: list[ir.Operation] = []
        for op in pending:
            grows = _growth(op)
            outside = _GatherHoist(most_bytes=left + (grows if paid else 0)).hoist(op, view, editor, ctx, varying)
            if outside is not None:
                left -= 0 if paid else grows
                moved.append(outside)
        changed = changed or bool(moved)
        pending, paid = moved, True  # what has left one loop may leave the next for the same bytes
    return changed, left


def _growth(op: ir.Operation) -> int:
    """How many bytes a gather's results are larger than its operands."""
    return sum(tensor_bytes(r.type) for r in op.results) - sum(tensor_bytes(o.type) for o in op.operands)
