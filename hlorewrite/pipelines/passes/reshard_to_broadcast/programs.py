"""The transfers of an ``mpmd`` program whose layouts differ get a plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import View
from hlorewrite.passes.common.op_by_op import OpByOp
from hlorewrite.passes.common.pass_remarks import tell
from hlorewrite.passmanager.base import PassContext
from hlorewrite.pipelines.passes.reshard_to_broadcast.transfer import PLAN, plan_attribute, plan_transfer
from hlorewrite.pipelines.reshard import SolverBudget

_WORTH = 1 - 1e-3


@dataclass(frozen=True)
class ProgramTransferPlans(OpByOp):
    """Gives transfers between layouts a plan that sends each slice once.

    Attributes:
      topology: the cluster.
      strategy: as for ``plan_reshard``.
      order: as for ``plan_reshard``.
      budget: of the solver, for all transfers of the program.
    """

    name: ClassVar[str] = "reshard-to-broadcast"
    op_name: ClassVar[str] = "mpmd.transfer"
    topology: str = ""
    strategy: str = "auto"
    order: str = "optimal"
    budget: SolverBudget = field(default_factory=SolverBudget)

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        planned = plan_transfer(op, view, self.topology or ctx.topology, self.strategy, self.order,
                                self.budget)
        if planned is None:
            tell(ctx, "missed", self.name, "the transfer needs no plan: each device gets its tile from the one at its "
                 "place", view, op)
            return False
        if isinstance(planned, str):
            tell(ctx, "blocked", self.name, f"the transfer gets no plan: {planned}", view, op)
            return False
        plan = planned.plan
        if plan.makespan_s >= planned.direct_s * _WORTH and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"the transfer gets no plan: a copy to each receiver takes "
                 f"{planned.direct_s * 1e6:.0f} us, the best plan {plan.makespan_s * 1e6:.0f} us on {planned.cluster}",
                 view, op)
            return False
        attribute = plan_attribute(plan, view.module.context)
        if PLAN in op.attributes and op.attributes[PLAN] == attribute:
            return False
        tell(ctx, "applied", self.name, f"the transfer is planned as {plan.strategy}: {plan.makespan_s * 1e6:.0f} us, "
             f"{planned.direct_s * 1e6:.0f} us with a copy to each receiver, on {planned.cluster}", view, op, plan.note)
        ctx.editor(view.module, self.name).set_attribute(op, PLAN, attribute)
        ctx.count("transfers planned")
        return True
