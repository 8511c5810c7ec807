"""comm-shift: moves reductions out of loops and branches, to where their results are needed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from hlorewrite.analysis.deferral_graph.builder import DeferralGraphBuilder
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph
from hlorewrite.analysis.deferral_graph.path_regressions import PathRegression
from hlorewrite.analysis.deferral_graph.placement import ReductionPlacement, place
from hlorewrite.analysis.groups import device_count, refuse_placed_ops
from hlorewrite.analysis.linearity import LinearityFacts, WithinRange
from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.ir import ALL_REDUCE, REDUCE_SCATTER, Editor, Module, ir, is_floating, op_key
from hlorewrite.ir.inline import contains_any, inline_calls, is_private
from hlorewrite.ir.view import View
from hlorewrite.passes.comm_shift.deferral_plan import (
    DeferralPlan,
    ReductionClass,
    flow_builder,
    planned,
    reduction_classes,
)
from hlorewrite.passes.comm_shift.deferral_rewrite import Deferral, Slots, add_slots
from hlorewrite.passes.comm_shift.in_place import accumulate_in_place
from hlorewrite.passes.comm_shift.remarks import RemarkEmitter
from hlorewrite.passes.comm_shift.scatter import ScatterStage, private_callees
from hlorewrite.passes.comm_shift.scatter_facts import ScatterFacts
from hlorewrite.passes.common.zero_iter_args import drop_carried_zeros
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.options import Size
from hlorewrite.rules.library import shipped_facts

if TYPE_CHECKING:
    from hlorewrite.cost.collective_times import CollectiveTimes

MOVABLE = (ALL_REDUCE.op, REDUCE_SCATTER.op)
_MOST_ROUNDS = 16
_WIRE_TYPES = ("bf16", "f16", "f32")


@dataclass
class _Settled:
    """Classes that need no new plan, by their keys.

    Attributes:
      stay: the flow of a class that was found to stay in place.
      after: the flow of a class after its latest placement.
    """

    stay: dict[tuple[object, ...], DeferralGraph] = field(default_factory=dict)
    after: dict[tuple[object, ...], DeferralGraph] = field(default_factory=dict)

    def keep_apart_from(self, placement: ReductionPlacement | None) -> None:
        """Forgets the flows that change when a placement is carried out; all of them if loops were rebuilt."""
        self.after.clear()
        changed = {place.value for place in placement.touched} if placement else set()
        self.stay = {key: flow for key, flow in self.stay.items() if placement and not flow.meets(changed)}


@dataclass(frozen=True)
class CommShift(Pass):
    """Moves reductions out of loops and branches, to the cheapest place before their results are needed.

    Every value a reduction reaches is kept as ``v = AR(w) + u`` through the ops that are linear in it; a minimum cut
    over that flow, weighted by executed bytes, says where to reduce. Executed bytes are never more than before,
    whatever branches are taken and however often loops run, if at least once.

    Attributes:
      exact: keep the order of every floating-point sum; only integer sums, maxima and minima move.
      narrow_range: also move sums of f16 and 8-bit floats, which may then overflow or underflow where they did not.
      wire_dtype: element type the moved reductions travel in, such as ``bf16``; lossy, so never chosen by itself.
      memory_budget: bytes that a device may spend on local sums of deferred reduce-scatters; by default 2 % of its
        arguments.
      topology: weigh by time on this cluster (``h200:1x8``) instead of by executed bytes; by default the one the run
        names, if any.
      expected: move also what sends less only in expectation (branches equally likely, loops with unknown trip counts
      run eight times), and may send more on some path.
    """

    name: ClassVar[str] = "comm-shift"
    by_mesh: ClassVar[bool] = True
    across_meshes: ClassVar[bool] = True
    exact: bool = False
    narrow_range: bool = False
    wire_dtype: str | None = None
    memory_budget: Size | None = None
    topology: str = ""
    expected: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        if self.wire_dtype is not None and self.wire_dtype not in _WIRE_TYPES:
            raise UsageError(f'comm-shift cannot send in "{self.wire_dtype}"',
                             hint=did_you_mean(self.wire_dtype, _WIRE_TYPES))
        view = ctx.view(module)
        emitter = RemarkEmitter(self.name, ctx)
        refuse_placed_ops(view)
        emitter.started(view)
        if not view.ops(*MOVABLE):
            emitter.nothing_to_do(view)
            return False
        facts = shipped_facts()
        if not _calls_to_inline(view):
            attempt = _Attempt(self, view, ctx.editor(module, self.name), facts, emitter, ctx)
            changed = attempt.to_the_end()
            if changed or not attempt.blocked_calls:
                emitter.done(view)
                return changed
        return self._on_a_copy(module, ctx, facts)

    def _on_a_copy(self, module: Module, ctx: PassContext, facts: LinearityFacts) -> bool:
        """Works on a copy with calls inlined; it takes the module's place only when something moved."""
        copy = module.clone()
        view = View(copy)
        editor = Editor(view, self.name)
        emitter = RemarkEmitter(self.name, ctx)
        inline_calls(editor, contains_any(MOVABLE, view))
        changed, left = False, None
        # Ends: each round inlines all calls of some function.
        while True:
            attempt = _Attempt(self, view, editor, facts, emitter, ctx, left=left)
            changed |= attempt.to_the_end()
            wanted, left = attempt.blocked_calls, attempt.left
            if not inline_calls(editor, lambda function: op_key(function) in wanted):  # noqa: B023
                break
        emitter.done(view)
        if changed:
            module.mlir = copy.mlir
            ctx.forget_view()
        return changed


def _times(spec: str, view: View) -> CollectiveTimes | None:
    """Times on the named cluster; None when none is named."""
    if not spec:
        return None
    from hlorewrite.cost.collective_times import CollectiveTimes
    return CollectiveTimes(spec, device_count(view) or 1)


def _calls_to_inline(view: View) -> bool:
    """Whether a reduction is inside a called function."""
    if not view.ops("func.call"):
        return False
    holds = contains_any(MOVABLE, view)
    return any(is_private(function) and holds(function) for function in view.functions.values())


class _Attempt:
    """All rounds over one module; each round carries out one placement.

    Attributes:
      left: remaining bytes of the memory budget; None before the first request.
      blocked_calls: keys of private functions that a reduction was passed to.
    """

    def __init__(self, options: CommShift, view: View, editor: Editor, facts: LinearityFacts,
                 emitter: RemarkEmitter, ctx: PassContext, *, left: int | None = None) -> None:
        self.options = options
        self.view = view
        self.editor = editor
        self.facts = facts if options.narrow_range else WithinRange(facts)
        scattering = ScatterFacts(facts)
        self.scatter_facts = scattering if options.narrow_range else WithinRange(scattering)
        self.emitter = emitter
        self.ctx = ctx
        self.times = _times(options.topology or ctx.topology, view)
        self.left = left
        self.blocked_calls: set[int] = set()

    def to_the_end(self) -> bool:
        """Defers until nothing moves any more; returns whether anything moved."""
        reduced = self._all_reduces()
        budget = self.options.memory_budget
        if self.ctx.memory_left is not None:
            budget = min(self.ctx.memory_left, self.ctx.memory_left if budget is None else budget)
        stage = ScatterStage(self.view, self.editor, self.scatter_facts, self.emitter, budget, self.left,
                             expected=self.options.expected)
        had = stage.left
        scattered = not self.options.exact and stage.run()
        if scattered:
            accumulate_in_place(self.view, self.editor)
            drop_carried_zeros(self.view, self.editor)
        self.blocked_calls |= stage.blocked_calls
        self.left = stage.left
        self.ctx.take_memory(had - self.left)
        self.ctx.memory_refused |= stage.refused
        return reduced or scattered

    def _all_reduces(self) -> bool:
        changed = False
        settled = _Settled()
        for _ in range(_MOST_ROUNDS):
            for reductions in [c for c in self._classes() if c.key not in settled.stay]:
                if not self._is_allowed(reductions):
                    settled.stay[reductions.key] = DeferralGraph([])
                elif not self._is_least(reductions, settled) and self._defer(reductions, settled):
                    changed = True
                    break  # the module changed: read it again
            else:
                break
        return changed

    def _classes(self) -> list[ReductionClass]:
        return reduction_classes(self.view, lambda op, why: self.emitter.ill_formed(self.view, op, why))

    def _is_allowed(self, reductions: ReductionClass) -> bool:
        if not self.options.exact or reductions.kind not in ("sum", "product"):
            return True
        floating = [v for v in reductions.sources if is_floating(ir.RankedTensorType(v.type).element_type)]
        for value in floating:
            self.emitter.kept_exact(self.view, value)
        return not floating

    def _place(self, flow: DeferralGraph, reductions: ReductionClass) -> ReductionPlacement:
        """Chooses a placement by executed bytes, or by microseconds on the named cluster."""
        if self.times is None:
            return place(flow, expected=self.options.expected)
        times, rows = self.times, reductions.groups.rows

        def microseconds(size: int) -> float:
            return times.seconds(ALL_REDUCE.kind, max(1, size), rows) * 1e6

        return place(flow, microseconds, bound=microseconds, expected=self.options.expected)

    def _is_least(self, reductions: ReductionClass, settled: _Settled) -> bool:
        """Whether the all-reduces of a class are where the latest placement put them, according to its flow.

        Each cut of the flow after the cheapest cut also cuts the whole flow, so none is cheaper.
        """
        flow = settled.after.pop(reductions.key, None)
        if flow is None or set(flow.sources) != set(reductions.sources):
            return False
        flow.sources[:] = reductions.sources
        self._stays(reductions, flow, {}, settled)
        return True

    def _stays(self, reductions: ReductionClass, flow: DeferralGraph, only_expected: dict[ir.Value, PathRegression],
               settled: _Settled) -> None:
        self.emitter.stays(self.view, flow, only_expected)
        self.blocked_calls |= private_callees(self.view, flow)
        settled.stay[reductions.key] = flow

    def _defer(self, reductions: ReductionClass, settled: _Settled) -> bool:
        """Defers a class if that is cheaper, and records which classes stay settled."""
        started = time.perf_counter()
        plan = self._plan(reductions)
        if not plan.placement.moves or plan.placement.after >= plan.placement.before:
            self._stays(reductions, plan.flow, plan.placement.only_expected, settled)
            return False
        slots: Slots = {}
        if plan.parts.slots:
            wanted = [(op, position) for (_, position), op in plan.parts.slots.items()]
            slots = add_slots(self.editor, wanted, reductions.kind)
            reductions = next(c for c in self._classes() if c.key == reductions.key)
            builder = flow_builder(self.view, self.facts, reductions, plan.builder)
            del plan, wanted  # together with its replacement it would be the peak memory of the pass
            plan = self._plan(reductions, builder)
            del builder
        flow, placement, parts, refusals = plan.flow, plan.placement, plan.parts, plan.builder.refusals
        del plan  # the findings of its builder are no longer needed
        deferral = Deferral(self.editor, flow, placement, parts, slots, self.options.wire_dtype)
        self.emitter.before(self.view, flow, placement, made_at=deferral.made_at())
        settled.keep_apart_from(None if slots else placement)
        flow.release()  # the module grows now
        self.emitter.moved(self.view, deferral.run(), (time.perf_counter() - started) * 1e3)
        left = deferral.flow_after()
        if left is not None and refusals.holds_for(left):
            settled.after[reductions.key] = left
        return True

    def _plan(self, reductions: ReductionClass, builder: DeferralGraphBuilder | None = None) -> DeferralPlan:
        builder = builder or flow_builder(self.view, self.facts, reductions)
        return planned(builder, reductions, lambda flow: self._place(flow, reductions))
