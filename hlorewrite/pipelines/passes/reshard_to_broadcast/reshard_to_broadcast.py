"""reshard-to-broadcast: values that several devices need from one are sent as multicasts."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from hlorewrite.ir import ALL_GATHER, Editor, Module, View, inline_calls, ir, symbol_name, users
from hlorewrite.passes.common.broadcasts.chain import require_chain_options
from hlorewrite.passes.common.pass_support import OpByOp, tell
from hlorewrite.passes.legalize_for_cpu import LegalizeForCpu
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.options import Size
from hlorewrite.pipelines.passes.reshard_to_broadcast.forms import Gathers, MaskedSums, Permutes, Target
from hlorewrite.pipelines.passes.reshard_to_broadcast.transfer import PLAN, plan_attribute, plan_transfer
from hlorewrite.pipelines.reshard import SolverBudget


@dataclass(frozen=True)
class ReshardToBroadcast(Pass):
    """Multicasts values that several devices need from one, if the cost model says that it pays.

    In SPMD modules: a gather of which each device reads one shard, a stack of layers gathered and read one layer at a
    time, a sum to which one device contributes, and permutes of one value to several devices. In programs of several
    meshes (the mpmd dialect): a transfer between layouts that differ gets a plan in the attribute hlorewrite.reshard.

    Attributes:
      target: gpu writes collective_broadcast; cpu, which has none, masked sums and chains of permutes.
      topology: the cluster to estimate times for; by default the one the run names, else servers of eight H100s.
      strategy: the strategy of transfers between meshes: auto, broadcast, send-recv, trees, all-gather or
        global-all-gather.
      order: the order of transfers between meshes: optimal, size or naive.
      chain_bytes: on cpu, payload from which a broadcast is a chain of permutes.
      chunks: on cpu, chunks of a chain.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> ReshardToBroadcast().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "reshard-to-broadcast"
    target: Target = "gpu"
    topology: str = ""
    strategy: Literal["auto", "broadcast", "send-recv", "trees", "all-gather", "global-all-gather"] = "auto"
    order: Literal["optimal", "size", "naive"] = "optimal"
    chain_bytes: Size = 1 << 22
    chunks: int = 8

    def __post_init__(self) -> None:
        require_chain_options(self.name, self.chain_bytes, self.chunks)

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        readers = _called_with_gathers(ctx.view(module))
        if not readers:
            return self._rewrite(module, ctx)
        # JAX puts ``W[i]`` into a separate function. The inlined copy is kept only if something is found.
        inlined = module.clone()
        inline_calls(Editor(View(inlined)), lambda function: symbol_name(function) in readers)
        changed = self._rewrite(inlined, ctx)
        if changed:
            module.mlir = inlined.mlir
        ctx.forget_view()
        return changed

    def _rewrite(self, module: Module, ctx: PassContext) -> bool:
        legalizer = LegalizeForCpu(chain_bytes=self.chain_bytes, chunks=self.chunks)
        # Gathers come last: what they become may be a masked sum.
        steps = [kind(topology=self.topology, target=self.target, legalizer=legalizer)
                 for kind in (MaskedSums, Permutes, Gathers)]
        changed = self._plan_transfers(module, ctx)
        rewritten = False
        for step in steps:
            rewritten = step.run(module, ctx) or rewritten
        if rewritten and self.target == "cpu":
            legalizer.run(module, ctx)
        return changed or rewritten

    def _plan_transfers(self, module: Module, ctx: PassContext) -> bool:
        if not ctx.view(module).ops("mpmd.transfer"):
            return False  # the planner, and numpy's and scipy's solvers with it, is loaded for programs that need it
        from hlorewrite.pipelines.reshard import SolverBudget
        budget = SolverBudget() if ctx.solver_effort is None else SolverBudget(ctx.solver_effort)
        return ProgramTransferPlans(self.topology, self.strategy, self.order, budget).run(module, ctx)


def _called_with_gathers(view: View) -> set[str]:
    """The functions that are given a gathered value."""
    calls = [user for op in view.ops(ALL_GATHER.op) for result in op.results for user, _ in users(result)
             if user.name == "func.call"]
    return {ir.FlatSymbolRefAttr(call.attributes["callee"]).value for call in calls}


# ---- the transfers of an ``mpmd`` program whose layouts differ get a plan


_WORTH = 1 - 1e-3


@dataclass(frozen=True)
class ProgramTransferPlans(OpByOp):
    """Gives transfers between layouts a plan that sends each slice once.

    Attributes:
      topology: the cluster.
      strategy: as for ``plan_reshard``.
      order: as for ``plan_reshard``.
      budget: the budget of the solver, for all transfers of the program.
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
            tell(ctx, "missed", self.name, "the transfer needs no plan: each device gets its tile from its "
                 "counterpart", view, op)
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
             f"{planned.direct_s * 1e6:.0f} us with a copy to each receiver, on {planned.cluster}", view, op,
             advice=plan.note)
        ctx.editor(view.module, self.name).set_attribute(op, PLAN, attribute)
        ctx.count("transfers planned")
        return True
