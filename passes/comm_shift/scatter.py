"""The part of comm-shift that defers reduce-scatters, as far as a memory budget allows."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint
from hlorewrite.analysis.deferral_graph.placement import place
from hlorewrite.analysis.groups import Groups, groups_of
from hlorewrite.analysis.linearity import LinearityFacts, UniformContext
from hlorewrite.analysis.uniform import Uniformity
from hlorewrite.ir import BRANCHES, REDUCE_SCATTER, Editor, Loop, View, ancestors, ir, is_private, op_key, owner_op
from hlorewrite.ir.types import is_number, is_static_tensor, tensor_bytes
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.passes.comm_shift.in_place import stacked_sums
from hlorewrite.passes.comm_shift.remarks import RemarkEmitter
from hlorewrite.passes.comm_shift.scatter_deferral import ScatterDeferral, ScatterPlan, add_twins
from hlorewrite.passes.comm_shift.scatter_facts import ScatterDimensions

_OTHER_DIMENSION = "the other operand is scattered along another dimension"
DEFAULT_SHARE = 0.02
"""The default memory that the pass may add, as a share of a device's arguments."""


@dataclass(frozen=True)
class _Candidates:
    """Reduce-scatters over the same groups, in the same order of members."""

    groups: Groups
    sources: tuple[ir.Value, ...]


class ScatterStage:
    """Defers the reduce-scatters of one module.

    Args:
      view: the view of the module.
      editor: its editor.
      facts: the linearity facts that hold for unscattered sums (``ScatterFacts``).
      emitter: emits the remarks.
      budget: bytes that a device may spend on local sums; None for ``DEFAULT_SHARE`` of its arguments.
      left: the part of it that earlier stages of the same run left.
      expected: also move reductions that send less only in expectation.

    Attributes:
      blocked_calls: keys of private functions that a reduction was passed to.
      refused: whether a reduction stayed for lack of memory.
    """

    def __init__(self, view: View, editor: Editor, facts: LinearityFacts, emitter: RemarkEmitter,
                 budget: int | None, left: int | None = None, *, expected: bool = False) -> None:
        self.view = view
        self.editor = editor
        self.facts = facts
        self.emitter = emitter
        self.expected = expected
        self.blocked_calls: set[int] = set()
        self.refused = False
        self.asked = budget is not None
        whole = budget if budget is not None else int(DEFAULT_SHARE * _resident_bytes(view))
        self.left = whole if left is None else left
        self._builders: dict[tuple[object, ...], DeferralGraphBuilder] = {}
        self._stacked: dict[int, set[int]] = {}

    def run(self) -> bool:
        """Defers reductions if that pays and fits; returns whether anything changed."""
        changed = False
        tried: set[tuple[object, ...]] = set()
        # Ends: either the executed bytes of the scatters fall (they are multiples of one fraction, set by trip counts
        # and branches, which no deferral changes), or one more component of an unchanged module has been tried.
        while True:
            self._forget()
            fresh = [each for each in self._candidates() if self._key(each) not in tried]
            tried.update(map(self._key, fresh))
            moving = {each: plan for each in fresh if (plan := self._fitting(each)) is not None}
            if not moving:
                return changed
            self._defer(moving)
            changed = True

    def _forget(self) -> None:
        """Drops what is known of the module, which has changed."""
        self._builders.clear()
        self._stacked.clear()

    def _key(self, candidates: _Candidates) -> tuple[object, ...]:
        return tuple(op_key(owner_op(value)) for value in candidates.sources)

    def _candidates(self) -> list[_Candidates]:
        """One component after another: sources whose flows meet are decided together."""
        by_groups: dict[tuple[object, ...], _Candidates] = {}
        for op in self.view.ops(REDUCE_SCATTER.op):
            groups = groups_of(op, self.view)
            if isinstance(groups, str) or reduction_kind(op) != "sum" or not is_static_tensor(
                    op.results[0].type) or not is_number(op.results[0].type):
                self.emitter.ill_formed(self.view, op, groups if isinstance(groups, str) else
                                        "it is not a sum of tensors of static shape", REDUCE_SCATTER.kind)
                continue
            if not any(parent.name == "stablehlo.while" for parent in ancestors(op)):
                continue
            key = (groups.mode, groups.rows)
            before = by_groups.get(key, _Candidates(groups, ()))
            by_groups[key] = _Candidates(groups, (*before.sources, op.results[0]))
        return [part for candidates in by_groups.values() for part in self._components(candidates)]

    def _components(self, candidates: _Candidates) -> list[_Candidates]:
        flow = self._builder(candidates).build(list(candidates.sources))
        part_of: dict[ProgramPoint, list[ir.Value]] = {}
        for source in candidates.sources:
            part = [source]
            pending = [ProgramPoint(source)]
            # Ends: the targets of a place are added once.
            for reached in pending:
                other = part_of.get(reached)
                if other is None:
                    pending += flow.edges.get(reached, [])
                elif other is not part:  # the flows meet: merge the parts
                    other += part
                    part_of.update({p: other for p, owner in part_of.items() if owner is part})
                    part = other
                part_of[reached] = part
        parts = {id(part): part for part in part_of.values()}
        return [_Candidates(candidates.groups, tuple(values)) for values in parts.values()]

    def _builder(self, candidates: _Candidates) -> DeferralGraphBuilder:
        groups = candidates.groups
        key = (groups.mode, groups.rows)
        if key not in self._builders:
            context = UniformContext("sum", Uniformity(self.view, groups))
            self._builders[key] = DeferralGraphBuilder(self.facts, context)
        return self._builders[key].without_refusals()

    def _plan(self, candidates: _Candidates) -> ScatterPlan | None:
        """The plan for some reduce-scatters; None when there is none without entering branches."""
        builder = self._builder(candidates)
        while True:  # ends: each round refuses a use that was not refused before, and the module has finitely many
            flow = builder.build(list(candidates.sources))
            placement = place(flow, expected=self.expected)
            dimensions = ScatterDimensions(flow, placement.touched)
            if not dimensions.conflicts:
                break
            if not builder.refuse(dimensions.conflicts, _OTHER_DIMENSION):
                self._stay(candidates.sources, "values scattered along different dimensions meet after it")
                return None
        if any(p.branch is not None or _is_branch_result(p.value) for p in placement.touched):
            self._stay(candidates.sources, "its sum would have to enter or leave a branch before it is scattered")
            return None
        return ScatterPlan(flow, placement, dimensions, candidates.groups.size)

    def _stay(self, sources: Iterable[ir.Value], why: str) -> None:
        for value in sources:
            self.emitter.ill_formed(self.view, owner_op(value), why, REDUCE_SCATTER.kind)

    def _fitting(self, candidates: _Candidates) -> ScatterPlan | None:
        """The plan for some reduce-scatters, if it pays and fits; takes its memory, or says why they stay."""
        plan = self._plan(candidates)
        if plan is None or not plan.placement.moves or plan.placement.after >= plan.placement.before:
            if plan is not None:
                self.emitter.stays(self.view, plan.flow, plan.placement.only_expected)
                self.blocked_calls |= private_callees(self.view, plan.flow)
            return None
        if any(ProgramPoint(value) not in plan.placement.deferred for value in candidates.sources):
            self.emitter.stays(self.view, plan.flow, plan.placement.only_expected)
            self._stay([value for value in candidates.sources if ProgramPoint(value) in plan.placement.deferred],
                       "it meets another one that has to stay, and those that meet move together")
            return None
        extra = plan.extra_bytes(self._stacks_of)
        if extra > self.left:
            self.refused = True
            for value in candidates.sources:
                self.emitter.too_large(self.view, value, plan.flow, extra, self.left, self.asked)
            return None
        self.left -= extra
        return plan

    def _stacks_of(self, loop: ir.Operation) -> set[int]:
        """The positions of the stacks of a loop that start as the sums that replace them."""
        if op_key(loop) not in self._stacked:
            self._stacked[op_key(loop)] = {each.stack.position for each in stacked_sums(Loop(loop))}
        return self._stacked[op_key(loop)]

    def _defer(self, moving: Mapping[_Candidates, ScatterPlan]) -> None:
        """Defers components. Each loop is rebuilt once, with the twins of all of them: programs have hundreds."""
        extra = {each: plan.extra_bytes(self._stacks_of) for each, plan in moving.items()}
        twins = add_twins(self.editor, moving.values())
        self._forget()
        for candidates in moving:
            started = time.perf_counter()
            plan = self._plan(candidates) if twins else moving[candidates]
            assert plan is not None
            self.emitter.before(self.view, plan.flow, plan.placement, plan.parts)
            made = ScatterDeferral(self.editor, plan, twins).run()
            self.emitter.moved(self.view, made, (time.perf_counter() - started) * 1e3,
                               f"for {extra[candidates]} bytes of local sums")


def private_callees(view: View, flow: DeferralGraph) -> set[int]:
    """Keys of the private functions to which a flow's values are passed."""
    calls = [use.reader for uses in flow.forcing_uses.values() for use in uses if use.reader.name == "func.call"]
    functions = [function for call in calls if (function := view.callee(call)) is not None]
    return {op_key(function) for function in functions if is_private(function)}


def _is_branch_result(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name in BRANCHES


def _resident_bytes(view: View) -> int:
    """Bytes of a device's arguments: the least that a step holds."""
    regions = view.ops("sdy.manual_computation")
    blocks = [op.regions[0].blocks[0] for op in regions]
    if not blocks:
        blocks = [f.regions[0].blocks[0] for f in view.ops("func.func")
                  if len(f.regions[0].blocks) and "sym_visibility" not in f.attributes]
    return sum(tensor_bytes(argument.type) for block in blocks for argument in block.arguments)
