"""reshard-to-broadcast: values that several devices need from one are sent as multicasts."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from hlorewrite.analysis.block_frequency import executed_times
from hlorewrite.analysis.deferral_graph.path_regressions import path_regression
from hlorewrite.analysis.groups import device_count
from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.ir import Editor, Module, View, collectives, inline_calls, ir, symbol_name, tensor_bytes, users
from hlorewrite.passes.common.broadcasts.chain import require_chain_options
from hlorewrite.passes.common.pass_support import OpByOp, tell
from hlorewrite.passes.common.shard_index import partition_groups
from hlorewrite.passes.gather_to_broadcast import GatherToBroadcast
from hlorewrite.passes.legalize_for_cpu import LegalizeForCpu
from hlorewrite.passes.masked_sum_to_broadcast import MaskedSumToBroadcast
from hlorewrite.passes.permutes_to_broadcast import Permute, PermutesToBroadcast
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.options import Size
from hlorewrite.pipelines.passes.reshard_to_broadcast import layers
from hlorewrite.pipelines.passes.reshard_to_broadcast.transfer import PLAN, plan_attribute, plan_transfer
from hlorewrite.pipelines.reshard import SolverBudget

# ---- the hand-written forms of a multicast in SPMD modules, each weighed for a target before it is rewritten


Target = Literal["gpu", "cpu"]

SWITCH_SECONDS = {"gpu": 2e-5, "cpu": 0.0}
"""Cost of a branch chosen at run time, in addition to its ops: XLA:GPU copies the index to the host and waits for it.
The figure is assumed, about that of two launches."""


@dataclass(frozen=True)
class BroadcastTimes:
    """Times of broadcasts on a target.

    Attributes:
      times: times of collectives on the cluster.
      target: ``gpu`` has ``collective_broadcast``; ``cpu`` says it with a sum or a chain of permutes.
      legalizer: writes it for ``cpu``.

    Example:
      >>> gpu = BroadcastTimes(CollectiveTimes("h200:1x8", 8), "gpu", LegalizeForCpu())
      >>> everyone = [range(8)]
      >>> gpu.broadcast(1 << 26, everyone) < gpu.masked_sum(1 << 26, everyone)
      True
    """

    times: CollectiveTimes
    target: Target
    legalizer: LegalizeForCpu

    def broadcast(self, payload: int, rows: Sequence[Sequence[int]]) -> float:
        """Seconds of a broadcast as the target carries it out.

        Args:
          payload: bytes of the value.
          rows: groups, the source first.

        Returns:
          Seconds.
        """
        if self.target == "gpu":
            return self.times.seconds(collectives.COLLECTIVE_BROADCAST.kind, payload, rows)
        members = max(map(len, rows))
        form = self.legalizer.form
        chain = form == "chain" or (form == "auto" and payload >= self.legalizer.chain_bytes)
        if members > 2 and not chain:
            return self.masked_sum(payload, rows)
        chunks = 1 if members <= 2 else self.legalizer.chunks
        pairs = [pair for row in rows for pair in itertools.pairwise(row)]
        step = self.times.seconds(collectives.COLLECTIVE_PERMUTE.kind, -(-payload // chunks), pairs)
        return (chunks + max(members - 2, 0)) * step

    def masked_sum(self, payload: int, rows: Sequence[Sequence[int]]) -> float:
        """Seconds of an all-reduce to which one device contributes."""
        return self.times.seconds(collectives.ALL_REDUCE.kind, payload, rows)


REWRITE = "reshard-to-broadcast"


@dataclass(frozen=True)
class _ForTarget:
    """What each form is weighed by.

    Attributes:
      topology: the cluster.
      target: the platform.
      legalizer: how broadcasts are said on ``cpu``.
    """

    topology: str = ""
    target: Target = "gpu"
    legalizer: LegalizeForCpu = field(default_factory=LegalizeForCpu)


@dataclass(frozen=True)
class Gathers(_ForTarget, GatherToBroadcast):
    """Gathers from whose result each device reads one shard, and stacks that are read one layer at a time."""

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        if not layers.reads_at_run_time(op):
            return super()._one(op, view, ctx)
        stack = layers.stack_of(op, view)
        if isinstance(stack, str):
            tell(ctx, "blocked", REWRITE, f"the gather stays: {stack}", view, op)
            return False
        times = CollectiveTimes(self.topology or ctx.topology, sum(map(len, stack.groups.rows)))
        weigh = BroadcastTimes(times, self.target, self.legalizer)
        chosen = [(read, *_cheapest(weigh, stack, read)) for read in stack.reads]
        after = sum(seconds * executed_times(read.op)[0] for read, _, seconds in chosen)
        before = executed_times(op)[0] * times.seconds(collectives.ALL_GATHER.kind, tensor_bytes(op.results[0].type),
                                                       stack.groups.rows)
        if after >= before and not ctx.ignore_cost:
            tell(ctx, "unprofitable", REWRITE, f"the gather stays: sending single layers takes {after * 1e6:.0f} us, "
                 f"gathering all {stack.layers} takes {before * 1e6:.0f} us on {times.cluster}", view, op)
            return False
        worse = path_regression([(op.block, -tensor_bytes(op.results[0].type)),
                            *((read.op.block, _layer_bytes(stack)) for read in stack.reads)])
        if worse is not None and not ctx.ignore_cost:
            tell(ctx, "unprofitable", REWRITE, "the gather stays: single layers would send more on "
                 f"{worse.words(view)}", view, op)
            return False
        forms = ", ".join(sorted({form for _, form, _ in chosen}))
        tell(ctx, "applied", REWRITE, f"one layer of {stack.layers} is sent where it is read: {forms}", view, op)
        editor = ctx.editor(view.module, REWRITE)
        for read, form, _ in chosen:
            layers.emit_layer(editor, stack, read, form)
        editor.erase(op)
        ctx.count("stacks read layer by layer")
        return True


def _layer_bytes(stack: layers.Stack) -> int:
    return tensor_bytes(stack.op.operands[0].type) // stack.held


def _cheapest(weigh: BroadcastTimes, stack: layers.Stack, read: layers.LayerRead) -> tuple[str, float]:
    """How one layer is sent, and the seconds of one sending."""
    payload = _layer_bytes(stack)
    rows = stack.groups.rows
    if read.layer is not None:
        return "broadcast", weigh.broadcast(payload, rows)
    forms = {"masked-sum": weigh.masked_sum(payload, rows)}
    if read.everywhere:  # groups in different branches would run different collectives
        forms["switch"] = weigh.broadcast(payload, rows) + SWITCH_SECONDS[weigh.target]
    return min(forms.items(), key=lambda item: item[1])


@dataclass(frozen=True)
class MaskedSums(_ForTarget, MaskedSumToBroadcast):
    """Masked sums, except those that would become masked sums again, or slower chains, on ``cpu``."""

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        groups = partition_groups(op, view)
        if self.target == "cpu" and not ctx.ignore_cost and not isinstance(groups, str):
            times = CollectiveTimes(self.topology or ctx.topology, sum(map(len, groups.rows)))
            weigh, payload = BroadcastTimes(times, self.target, self.legalizer), tensor_bytes(op.operands[0].type)
            if weigh.broadcast(payload, groups.rows) >= weigh.masked_sum(payload, groups.rows):
                tell(ctx, "missed", self.name, "the reduction stays: no chain of permutes is faster on "
                     f"{times.cluster}", view, op)
                return False
        return super()._one(op, view, ctx)


@dataclass(frozen=True)
class Permutes(_ForTarget, PermutesToBroadcast):
    """Permutes of one value to several devices, if one broadcast is faster."""

    def _one(self, permutes: Sequence[Permute], view: View, ctx: PassContext) -> bool:
        fans, first = _fans(permutes), permutes[0][0]
        count = device_count(view) or 1 + max(max(row) for row in fans)
        if any(len(row) > 2 for row in fans) and not ctx.ignore_cost:
            times = CollectiveTimes(self.topology or ctx.topology, count)
            payload = tensor_bytes(first.operands[0].type)
            before = sum(times.seconds(collectives.COLLECTIVE_PERMUTE.kind, payload, pairs) for _, pairs in permutes)
            after = BroadcastTimes(times, self.target, self.legalizer).broadcast(payload, _padded(fans, count))
            if after >= before:
                tell(ctx, "unprofitable", self.name, f"the {len(permutes)} permutes stay: they take "
                     f"{before * 1e6:.0f} us, one broadcast {after * 1e6:.0f} us on {times.cluster}", view, first)
                return False
        return super()._one(permutes, view, ctx)


def _fans(permutes: Sequence[Permute]) -> list[tuple[int, ...]]:
    """Each device that sends, before those it sends to."""
    targets: dict[int, dict[int, None]] = {}
    for _, pairs in permutes:
        for source, target in pairs:
            targets.setdefault(source, {})[target] = None
    return [(source, *(t for t in receivers if t != source)) for source, receivers in targets.items()]


def _padded(fans: Sequence[tuple[int, ...]], count: int) -> list[tuple[int, ...]]:
    """The fans, with the devices that do not participate spread over them as in the broadcast's groups."""
    spare = sorted(set(range(count)) - {device for row in fans for device in row})
    each = max(count // len(fans), max(map(len, fans)))
    rows = []
    for row in fans:
        missing = each - len(row)
        rows.append((*row, *spare[:missing]))
        spare = spare[missing:]
    return rows


# ---- the pass


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
        budget = SolverBudget() if ctx.solver_effort is None else SolverBudget(ctx.solver_effort)
        return ProgramTransferPlans(self.topology, self.strategy, self.order, budget).run(module, ctx)


def _called_with_gathers(view: View) -> set[str]:
    """The functions that are given a gathered value."""
    calls = [user for op in view.ops(collectives.ALL_GATHER.op) for result in op.results for user, _ in users(result)
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
