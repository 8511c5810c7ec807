"""rotate-collectives: collectives of one iteration run concurrently with the compute of the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.loops import trip_count
from hlorewrite.ir import (
    ALL_GATHER,
    COLLECTIVE_PERMUTE,
    REDUCING,
    Editor,
    Effects,
    Loop,
    Module,
    ir,
    op_key,
    tensor_bytes,
)
from hlorewrite.ir.view import View, nested_ops
from hlorewrite.passes.common.loop_copies.copies import ChannelHandles
from hlorewrite.passes.common.loop_copies.rematerialize_splats import fill_again, read_outside
from hlorewrite.passes.common.overlap_model import CROWDED, OVERLAPPED, OverlapModel
from hlorewrite.passes.common.pass_support import tell, with_inlined
from hlorewrite.passes.rotate_collectives.emit import hoist_filling, rotate
from hlorewrite.passes.rotate_collectives.gain import ends_of_iteration, iteration_times, late_gathers
from hlorewrite.passes.rotate_collectives.split import BodySplit, behind, delayed, in_front, separate_barriers
from hlorewrite.passmanager.base import Pass, PassContext

ROTATED = "hlorewrite.rotated"
"""A unit attribute of loops that a second run leaves alone, as well as the loops around that hold copies of their
halves."""
_MOST_TRIED = 64
"""The most collectives of one loop that are tried one by one if not all can be rotated."""
_LEAST_SHARE = 0.5
"""The share of an iteration's compute that the half that hides the collectives must hold."""
_AHEAD = (ALL_GATHER.op, COLLECTIVE_PERMUTE.op)
"""What can run during the previous iteration."""
Splitter = Callable[[Loop, Sequence[ir.Operation]], BodySplit]


@dataclass(frozen=True)
class RotateCollectives(Pass):
    """Software pipelining: reductions run an iteration later, gathers an iteration earlier, permutes either way.

    The body is cut into ``U``, then ``V``, where ``U`` reads nothing that ``V`` makes in the same iteration. Then

        (U; V)^m = U; (V; U)^(m-1); V

    for m of one or more, and the same halves run in the same order. ``V`` is what depends on reductions (and the
    accumulation they end in), or ``U`` is what gathers depend on (slices of parameters, the counter): either way the
    collectives of one half run concurrently with the compute of the other, which is of another iteration. In a ring,
    ``V`` is a permute of a sum, which the next iteration adds to at its end, or ``U`` is a permute of a value that the
    iteration reads. A barrier of ``jax.checkpoint`` that ties gathers to what the layer computes is divided; both parts
    keep one.

    Legal when the trip count is a constant of two or more, the condition has no effects, and not both halves
    contain ops with effects. Copies get new channel handles. Executed bytes stay as they are. Values that ``U``
    gives to ``V`` are carried, and one copy of each half is outside the loop. Carried values are copied once, and
    both are taken from the memory budget. Pays when the loop takes at least ``min_gain`` less time, by a simulation of
    an iteration before and after. Gathers that compute of the same iteration hides stay there, unless the
    collectives fill most of an iteration: such a loop is marked, and ``all-reduce-fusion{crowded=true}`` merges its
    calls.

    Attributes:
      min_gain: the smallest share of the loop's time to be gained.
      outer: also rotate loops that contain loops. Their halves contain whole passes over the layers, of which a second
        one is then kept in memory.
      topology: the cluster to estimate times for; by default the one the run names.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> RotateCollectives().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "rotate-collectives"
    beside_compute: ClassVar[bool] = True
    min_gain: float = 0.01
    outer: bool = False
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        kinds = (*REDUCING, ALL_GATHER.op, COLLECTIVE_PERMUTE.op)
        if not ctx.view(module).ops("stablehlo.while") or not ctx.view(module).ops(*kinds):
            return False
        return with_inlined(module, ctx, kinds, lambda inlined, view: self._on(inlined, view, ctx))

    def _on(self, module: Module, view: View, ctx: PassContext) -> bool:
        changed = False
        done = {op_key(op) for op in view.ops("stablehlo.while") if _holds_rotated(op)}
        for kinds, splitter in ((REDUCING, behind), ((COLLECTIVE_PERMUTE.op,), delayed), (_AHEAD, in_front)):
            loops = [loop for loop in _loops_of(view, kinds)
                     if op_key(loop.op) not in done and (self.outer or not _holds_loops(loop.op))]
            if not loops:
                continue
            model, effects = OverlapModel(view, ctx, self.name, self.topology), Effects(view)
            able = (CollectiveLoop(loop.op, tuple(_movable(loop, splitter, model))) for loop in loops)
            fitting = [self._fitting(loop, splitter, model, effects, ctx) for loop in able if loop.collectives]
            editor = ctx.editor(module, self.name)
            channels = ChannelHandles(view, editor)
            for chosen in fitting:  # the model contains ops that were rebuilt
                if chosen is not None:
                    _rotate(chosen, splitter, editor, channels)
                    ctx.count("loops rotated")
                    changed = True
        return changed

    def _fitting(self, candidate: CollectiveLoop, splitter: Splitter, model: OverlapModel, effects: Effects,
                 ctx: PassContext) -> CollectiveLoop | None:
        """A loop with the collectives around which it can be rotated, if that pays."""
        op, loop = candidate.op, Loop(candidate.op)

        def tried(collectives: Sequence[ir.Operation]) -> tuple[BodySplit, str]:
            split = splitter(loop, collectives)
            return split, _refusal(op, split, model, effects)

        fitting, (split, reason) = list(candidate.collectives), tried(candidate.collectives)
        if reason and 1 < len(fitting) <= _MOST_TRIED:
            fitting = [each for each in fitting if not tried([each])[1]]
            split, reason = tried(fitting) if fitting else (split, reason)
        if reason:
            tell(ctx, "missed", self.name, f"it stays as it is: {reason}", model.view, op)
            return None
        if splitter is in_front and not ctx.ignore_cost:
            fitting = late_gathers(loop, fitting, model)
            if not fitting:
                tell(ctx, "unprofitable", self.name, "it stays as it is: compute of the same iteration hides its "
                                                     f"gathers, according to the model of {model.spec}", model.view, op)
                return None
            split = splitter(loop, fitting)
        ahead = list[ir.Operation]()
        if splitter is not in_front and not ctx.ignore_cost:
            ahead = _moving_later(loop, model, effects)
            ends = ends_of_iteration(loop, fitting, model) if splitter is behind else []
            other, refused = tried(ends) if ends else (split, "there are none")
            if not refused and (iteration_times(loop, other, model, ends, ahead).after
                                < iteration_times(loop, split, model, fitting, ahead).after):
                fitting, split = ends, other
        if not self._pays(CollectiveLoop(op, tuple(fitting)), split, ahead, model, ctx,
                          may_hide=splitter is not delayed):
            return None
        size = sum(tensor_bytes(value.type) for value in (*split.handed, *split.passed))
        if not ctx.take_memory(size):
            tell(ctx, "missed", self.name, f"it stays as it is: the values that one iteration passes to the next take "
                                           f"{size} bytes, but only {ctx.memory_left} are left of the memory budget",
                 model.view, op)
            return None
        return CollectiveLoop(op, tuple(fitting), not ctx.ignore_cost and model.crowded(loop.body))

    def _pays(self, chosen: CollectiveLoop, split: BodySplit, ahead: Sequence[ir.Operation], model: OverlapModel,
              ctx: PassContext, *, may_hide: bool) -> bool:
        op, collectives = chosen.op, chosen.collectives
        trips = trip_count(op) or 1
        times = iteration_times(Loop(op), split, model, collectives, ahead)
        before, after = times.before, times.after
        some = f"{len(collectives)} collectives take" if len(collectives) > 1 else "a collective takes"
        new, old = f"{after * 1e6:.0f}", f"{before * 1e6:.0f}"
        longer = f"{new} instead of {old} us" if new != old else f"{new} us, as before"
        what = (f"an iteration, of which {some} {model.together(collectives) * 1e6:.0f} us, would take {longer}, "
                f"according to the model of {model.spec}")
        pays = (trips - 1) * (before - after) > self.min_gain * trips * before or (may_hide and times.hides)
        if not pays and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"it stays as it is: {what}", model.view, op)
            return False
        tell(ctx, "applied", self.name, f"rotated: {what}", model.view, op)
        return True


@dataclass(frozen=True)
class CollectiveLoop:
    """A loop, the collectives directly in its body, and whether these fill most of an iteration."""

    op: ir.Operation
    collectives: tuple[ir.Operation, ...]
    crowded: bool = False


def _rotate(chosen: CollectiveLoop, splitter: Splitter, editor: Editor, channels: ChannelHandles) -> None:
    loop = Loop(chosen.op)
    fillings = [*read_outside(loop, editor), *hoist_filling(loop, editor)]
    if splitter is in_front:
        separate_barriers(loop, chosen.collectives, editor)
    made = rotate(chosen.op, splitter(loop, chosen.collectives), editor, channels)
    fill_again(made, fillings, editor)
    with editor.context:
        for name in (OVERLAPPED, ROTATED, *([CROWDED] if chosen.crowded else [])):
            editor.set_attribute(made, name, ir.UnitAttr.get())


def _movable(candidate: CollectiveLoop, splitter: Splitter, model: OverlapModel) -> Iterator[ir.Operation]:
    """The collectives that may leave their iteration; permutes only if most compute neither makes nor needs them.

    All compute of an iteration may need a permute: the activations of a pipeline's previous stage, keys and values of
    ring attention that it asks for first. Then the permute can only run ahead. Or it may send what most compute makes,
    such as the gradients of keys and values. Then it can only run later.
    """
    loop = Loop(candidate.op)
    most = _LEAST_SHARE * model.compute(_ops_of(loop.body))
    for op in candidate.collectives:
        if op.name == COLLECTIVE_PERMUTE.op:
            beside = in_front(loop, [op]).second if splitter is in_front else behind(loop, [op]).first
            if model.compute(beside) < most:
                continue
        yield op


def _moving_later(loop: Loop, model: OverlapModel, effects: Effects) -> list[ir.Operation]:
    """The collectives of a loop that later run ahead, if the loop is first rotated around others."""
    candidate = CollectiveLoop(loop.op, tuple(op for op in _ops_of(loop.body) if op.name in _AHEAD))
    gathers = list(_movable(candidate, in_front, model))
    if not gathers or _refusal(loop.op, in_front(loop, gathers), model, effects):
        return []
    return late_gathers(loop, gathers, model)


def _loops_of(view: View, kinds: Sequence[str]) -> list[CollectiveLoop]:
    """The loops with collectives of some kinds, inner ones before those around them."""
    by_loop: dict[int, list[ir.Operation]] = {}
    for op in view.ops(*kinds):
        around = op.parent
        if around is not None and around.operation.name == "stablehlo.while":
            by_loop.setdefault(op_key(around.operation), []).append(op)
    loops = reversed(view.ops("stablehlo.while"))
    return [CollectiveLoop(op, tuple(by_loop[op_key(op)])) for op in loops if op_key(op) in by_loop]


def _holds_loops(op: ir.Operation) -> bool:
    return any(inner.name == op.name for inner in nested_ops(op)[1:])


def _holds_rotated(op: ir.Operation) -> bool:
    """Whether a loop, or one in it, was rotated by an earlier run."""
    return any(ROTATED in inner.attributes for inner in nested_ops(op))


def _refusal(op: ir.Operation, split: BodySplit, model: OverlapModel, effects: Effects) -> str:
    """Why a loop cannot be rotated around a split, or would gain nothing; empty when it can."""
    trips, loop = trip_count(op), Loop(op)
    if trips is None:
        return "its trip count is unknown"
    if trips < 2:
        return f"it runs {'once' if trips else 'not at all'}"
    if name := effects.first(_ops_of(loop.condition), collectives=True):
        return f"its condition runs {name}, and would do so once less"
    if not split.reads_first:
        return "its collectives already run in another iteration than the compute"
    if all(effects.first(half) for half in (split.first, split.second)):
        return "both halves contain ops with effects, whose order would change"
    one, other = model.compute(split.first), model.compute(split.second)
    if max(one, other) < _LEAST_SHARE * (one + other):
        return "neither half contains enough compute"
    return ""


def _ops_of(block: ir.Block) -> list[ir.Operation]:
    return [each.operation for each in block.operations]
