"""partial-state: gradients that are accumulated across calls of a step stay local sums between them."""

from dataclasses import dataclass, replace
from typing import ClassVar

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ForcingUse, ProgramPoint
from hlorewrite.analysis.deferral_graph.placement import place
from hlorewrite.analysis.linearity import WithinRange
from hlorewrite.analysis.parameter_provenance import at_the_same_place, continues, result_paths
from hlorewrite.ir import Module, View, argument_path, ir, is_floating, is_static_tensor, owner_op, tensor_bytes
from hlorewrite.passes.comm_shift.deferral_plan import (
    DeferralPlan,
    ReductionClass,
    flow_builder,
    planned,
    reduction_classes,
)
from hlorewrite.passes.comm_shift.deferral_rewrite import Deferral, add_slots
from hlorewrite.passes.common.pass_support import tell, with_inlined
from hlorewrite.passes.common.shard_index import partition_groups
from hlorewrite.passes.common.steps.manual_step import ManualStep, step_of
from hlorewrite.passes.partial_state.calls_as_loop import CallsAsLoop, StatePlace, calls_as_loop
from hlorewrite.passes.partial_state.emit import as_step
from hlorewrite.passes.partial_state.masked_reads import read_in_branches
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.rules.library import shipped_facts

_BEGINS_ANEW = "it restarts at a value other than zero"


@dataclass(frozen=True)
class PartialState(Pass):
    """Keeps gradients that a step accumulates across its calls as local sums, and reduces them where they are read.

    A step that adds up gradients from call to call, and updates parameters in every k-th call only, reduces the
    gradient in each call. Here each device keeps its own sum, and the reduction moves to where the sum is read:

        s' = s + AR(g); if last: p' = f(p, s')    becomes    w' = w + g; if last: p' = f(p, AR(w')),    s = AR(w)

    The calls are taken as the iterations of a loop that carries the state, and the flow of ``comm-shift`` decides
    through what the sum may travel. It is kept only where fewer bytes are expected to be sent. The argument and the
    result that hold the sum get one more dimension, the first, of one element for each device along the axis, and are
    sharded over it: their sum along that dimension is the original argument or result. Where an update is
    computed in each call and hidden by a predicate, it reads the sum in a branch, and zeros in the other calls.

    Legal where all that is done to the sum is linear, as in ``comm-shift``; where it starts over at zero; where
    argument and result are replicated along the axis, of one type, and of one name or place.

    Source: the loops over micro-batches of Comm-Shift, with calls of the step for iterations; PyTorch's
    ``DistributedDataParallel.no_sync`` does the same, by hand.

    Attributes:
      axis: the mesh axis over which gradients are summed.

    Example:
      >>> str(PartialState("data"))
      'partial-state{axis=data}'
    """

    name: ClassVar[str] = "partial-state"
    changes_signature: ClassVar[bool] = True
    axis: str

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed.

        Raises:
          InputError: the module has no manual computation that is its step, or its mesh no such axis.
        """
        copy = module.clone()
        if not with_inlined(copy, ctx, None, lambda inlined, view: self._on(inlined, view, ctx)):
            ctx.forget_view()
            return False
        module.mlir = copy.mlir
        ctx.forget_view()
        return True

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        step = step_of(view, self.axis, self.name)
        carried = _carried(step)
        if not carried:
            tell(ctx, "blocked", self.name, f'no argument that is replicated over "{self.axis}" has a result of its '
                 "name and type", view, step.op)
            return False
        editor = ctx.editor(module, self.name)
        loop = calls_as_loop(step, carried, editor)
        plan = self._plan(step, loop)
        if plan is not None and read_in_branches(loop, plan.flow, editor):
            plan = self._plan(step, loop)
        kept = [each for each in carried if plan and ProgramPoint(loop.argument(each)) in plan.placement.deferred]
        if plan is None or not kept:
            self._stays(step, loop, plan, ctx)
            return False
        self._applied(step, kept, ctx)
        slots = add_slots(editor, [(op, position) for (_, position), op in plan.parts.slots.items()], "sum")
        if slots:
            plan = self._plan(step, loop) or plan
        Deferral(editor, plan.flow, plan.placement, plan.parts, slots).run()
        as_step(step, loop, kept, editor)
        return True

    def _plan(self, step: ManualStep, loop: CallsAsLoop) -> DeferralPlan | None:
        """The plan for the sums that reach state; None if none does."""
        state = {ProgramPoint(argument) for argument in loop.arguments}
        for reductions in reduction_classes(step.view, lambda op, why: None):
            if reductions.kind == "sum" and _along(step, reductions):
                builder = flow_builder(step.view, WithinRange(shipped_facts()), reductions)
                flow = builder.build(list(reductions.sources))
                reaching = [value for value in reductions.sources if state & set(flow.reachable([ProgramPoint(value)]))]
                if reaching:
                    return _without_new_starts(builder, replace(reductions, sources=tuple(reaching)), loop)
        return None

    def _applied(self, step: ManualStep, kept: list[StatePlace], ctx: PassContext) -> None:
        held = sum(tensor_bytes(step.op.operands[each.argument].type) for each in kept)
        names = ", ".join(_name(step, each) for each in kept)
        tell(ctx, "applied", self.name, f'{names}: local sums between calls, added up over "{self.axis}" where they '
             "are read", step.view, step.op)
        ctx.count("arguments kept as local sums", len(kept))
        ctx.count("bytes kept as local sums", held)

    def _stays(self, step: ManualStep, loop: CallsAsLoop, plan: DeferralPlan | None, ctx: PassContext) -> None:
        """Reports for each piece of state why its sum is needed in each call."""
        if plan is None:
            tell(ctx, "blocked", self.name, f'no sum over "{self.axis}" is added to state', step.view, step.op)
            return
        reached = set(plan.flow.reachable([ProgramPoint(value) for value in plan.flow.sources]))
        for each in loop.carried:
            new_value = ProgramPoint(loop.end.operands[each.argument])
            starts_over = next((use for use in plan.flow.forcing_uses.get(new_value, ())
                                if use.reader == loop.end and use.sentence == _BEGINS_ANEW), None)
            use = starts_over or (_first_use(plan.flow, ProgramPoint(loop.argument(each)))
                                  if ProgramPoint(loop.argument(each)) in reached else None)
            if use is not None:
                kind = "blocked" if starts_over else "unprofitable"
                tell(ctx, kind, self.name, f"{_name(step, each)} is added to, but its sum is needed in each call: "
                     f"{use.sentence}", step.view, use.reader)


def _without_new_starts(builder: DeferralGraphBuilder, reductions: ReductionClass, loop: CallsAsLoop) -> DeferralPlan:
    """The plan in which sums held in state start over only at zero."""
    # Ends: each round refuses a use that was not refused before, and the step has finitely many.
    while True:
        plan = planned(builder, reductions, lambda flow: place(flow, expected=True))
        anew = [(loop.end, position) for (_, position), op in plan.parts.slots.items() if op == loop.op]
        if not builder.refuse(anew, _BEGINS_ANEW):
            return plan


def _carried(step: ManualStep) -> list[StatePlace]:
    """Arguments of a step, paired with the results of the same name, or of the same place in unnamed state.

    Both are replicated along the axis and of one type. A wrong pair costs only bytes: for any local sums of an
    argument, the local sums of a result add up to the original result.
    """
    paths = result_paths(step.function, len(step.function.regions[0].blocks[0].operations[-1].operands))
    results = [result for result in range(len(step.op.results)) if step.may_shard_result(result)]
    found: list[StatePlace] = []
    for position, argument in enumerate(step.block.arguments):
        if not _is_sum(argument.type) or not step.may_shard_argument(position):
            continue
        outside = step.op.operands[position]
        name = argument_path(outside.location)
        alike = [each for each in results if step.op.results[each].type == outside.type
                 and at_the_same_place(name, paths[step.result_of_step(each)])]
        result = next((each for each in alike if continues(name, paths[step.result_of_step(each)])),
                      alike[0] if alike else None)
        if result is not None:
            results.remove(result)
            found.append(StatePlace(position, result))
    return found


def _is_sum(type_: ir.Type) -> bool:
    return is_static_tensor(type_) and is_floating(ir.RankedTensorType(type_).element_type)


def _along(step: ManualStep, reductions: ReductionClass) -> bool:
    """Whether a class adds over the axis of the step, and over no other."""
    groups = partition_groups(owner_op(reductions.sources[0]), step.view) if reductions.sources else ""
    if isinstance(groups, str):
        return False
    return {frozenset(row) for row in groups.rows} == step.mesh.groups_along((step.axis,))


def _first_use(flow: DeferralGraph, start: ProgramPoint) -> ForcingUse | None:
    """The nearest use in every call that needs the sum of an argument."""
    for reached in flow.reachable([start]):
        if reached.branch is None:
            for use in flow.forcing_uses.get(reached, ()):
                return use
    return None


def _name(step: ManualStep, each: StatePlace) -> str:
    return argument_path(step.op.operands[each.argument].location) or f"argument {step.argument_of_step(each.argument)}"
