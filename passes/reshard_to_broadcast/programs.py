"""The transfers of an ``mpmd`` program whose layouts differ get a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.ir.binding import ir
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passes.common.pass_remarks import tell
from hlorewrite.passes.reshard_to_broadcast.transfer import PLAN, plan_attribute, plan_transfer
from hlorewrite.passmanager.base import Pass, PassContext

_WORTH = 1 - 1e-3


@dataclass(frozen=True)
class ProgramTransferPlans(Pass):
    """Gives transfers between layouts a plan that sends each slice once.

    Attributes:
      topology: the cluster.
      strategy: as for ``plan_reshard``.
      order: as for ``plan_reshard``.
    """

    name: ClassVar[str] = "reshard-to-broadcast"
    topology: str = ""
    strategy: str = "auto"
    order: str = "optimal"

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Annotates transfers in place; tells whether the module changed."""
        view = ctx.view(module)
        changed = False
        for op in view.ops("mpmd.transfer"):
            changed = self._one(op, view, ctx) or changed
        return changed

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        found = plan_transfer(op, view, self.topology or ctx.topology, self.strategy, self.order)
        if found is None:
            tell(ctx, "missed", self.name, "the transfer needs no plan: each device gets its tile from the one at its "
                 "place", view, op)
            return False
        if isinstance(found, str):
            tell(ctx, "blocked", self.name, f"the transfer gets no plan: {found}", view, op)
            return False
        plan = found.plan
        if plan.makespan_s >= found.direct_s * _WORTH and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"the transfer gets no plan: a copy to each receiver takes "
                 f"{found.direct_s * 1e6:.0f} us, the best plan {plan.makespan_s * 1e6:.0f} us", view, op)
            return False
        attribute = plan_attribute(plan, view.module.context)
        if PLAN in op.attributes and op.attributes[PLAN] == attribute:
            return False
        tell(ctx, "applied", self.name, f"the transfer is planned as {plan.strategy}: {plan.makespan_s * 1e6:.0f} us, "
             f"{found.direct_s * 1e6:.0f} us with a copy to each receiver", view, op)
        ctx.editor(view.module, self.name).set_attribute(op, PLAN, attribute)
        ctx.count("transfers planned")
        return True
