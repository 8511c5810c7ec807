"""Deferred reductions: where the result of a reduction may travel before it is reduced.

Keep every candidate value as a pair, ``v = AR(w) + u`` with ``w`` local to each device and ``u`` whatever the program
held there without the reduction. A jointly linear op maps pairs to pairs; a loop, a branch and an optimisation barrier
forward them. Any other reader needs the value reduced. This module builds that flow as a graph over SSA values, for one
class of reductions (same groups, same kind). ``placement`` cuts it where it is cheapest.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlorewrite.analysis.block_frequency import times_of_block
from hlorewrite.analysis.deferral_graph import graph
from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ForcingUse, Need, ProgramPoint
from hlorewrite.analysis.linearity import FlowContext, JointlyLinear, LinearityFacts, NotLinear
from hlorewrite.analysis.uniform import Varying
from hlorewrite.ir import BRANCHES, Loop, ir, is_static_tensor, op_key
from hlorewrite.ops.table import TERMINATORS

_LOOP = "stablehlo.while"
_BARRIER = "stablehlo.optimization_barrier"
_NO_FACTS = TERMINATORS | {_LOOP, _BARRIER, "func.call"}


class DeferralGraphBuilder:
    """Builds the flow of one class of reductions; its results hold as long as the module does not change.

    Args:
      facts: the declared linearity facts.
      context: uniformity over the class's groups, and its kind of reduction.

    Attributes:
      refusals: the uses that flows leave out.
    """

    def __init__(self, facts: LinearityFacts, context: FlowContext) -> None:
        self.facts = facts
        self.context = context
        self.refusals = graph.Refusals()
        self._executions: dict[ir.Block, float] = {}
        self._with_token: dict[int, bool] = {}
        self._trips_vary: dict[int, Varying | None] = {}
        self._answers: dict[tuple[int, int], JointlyLinear | NotLinear] = {}
        self._linear: dict[JointlyLinear, JointlyLinear] = {}

    def without_refusals(self) -> DeferralGraphBuilder:
        """A builder for the same module that refuses nothing, and shares what the two find out."""
        builder = DeferralGraphBuilder(self.facts, self.context)
        builder._executions, builder._with_token, builder._trips_vary = (
            self._executions, self._with_token, self._trips_vary)
        builder._answers, builder._linear = self._answers, self._linear
        return builder

    def with_slots(self, context: FlowContext) -> DeferralGraphBuilder:
        """A builder for the module after its loops and branches have gained results that hold the identity.

        Only control-flow ops and their terminators were rebuilt, and no fact is about these. More results change no
        other value, so an op that is linear stays linear. The reason why an op is not linear is computed again, since
        it may name an op that is gone.

        Args:
          context: uniformity of the module as it is now.

        Returns:
          A builder without refusals.
        """
        builder = DeferralGraphBuilder(self.facts, context)
        builder._answers = {use: answer for use, answer in self._answers.items() if isinstance(answer, JointlyLinear)}
        return builder

    def build(self, sources: list[ir.Value]) -> DeferralGraph:
        """The flow from the results of some all-reduces.

        Args:
          sources: results of all-reduces of one class.

        Returns:
          The graph. Where an op is linear in either of two candidates but not in both (a product), it is taken as
          linear in the one that carries more bytes.
        """
        flow = DeferralGraph(list(sources))
        rivals = self._trace(flow, [ProgramPoint(value) for value in sources])
        # Ends: each round refuses a use that was not refused before, and the module has finitely many.
        while rivals:
            self.refusals.decide(flow, rivals)
            rivals = self._trace_again(flow, [op for op, _ in rivals.values()])
        return flow

    def refuse(self, uses: Iterable[tuple[ir.Operation, int]], sentence: str) -> int:
        """Treats uses as forcing the reduction from now on, whether the reader is an op, a loop, a branch or a
        terminator.

        Args:
          uses: (op, operand position) of each.
          sentence: why.

        Returns:
          How many of them were not refused before. A caller that rebuilds after refusing must stop at 0, since nothing
          would change.
        """
        return self.refusals.ask(uses, sentence)

    def _trace(self, flow: DeferralGraph, starts: list[ProgramPoint]) -> graph.Rivals:
        """Adds places and all places that their pairs travel to; returns the products of two candidates on the way."""
        rivals: graph.Rivals = {}
        pending = list(starts)
        known = {place: place for place in [*flow.executions, *pending]}
        # Ends: a place is added once.
        while pending:
            place = pending.pop()
            flow.executions[place] = self._times(place)
            targets: list[ProgramPoint] = []
            for op, position in graph.uses_in(place):
                for target in self._step(flow, place, op, position, rivals):
                    same = known.get(target)  # one object for each place
                    if same is None:
                        same = known[target] = target
                        pending.append(target)
                    targets.append(same)
            if targets:
                flow.edges[place] = targets
        return rivals

    def _trace_again(self, flow: DeferralGraph, ops: list[ir.Operation]) -> graph.Rivals:
        """Retraces the operands of ops with newly refused uses, and drops places that nothing leads to."""
        places: dict[ProgramPoint, None] = {}
        for op in ops:
            flow.joint.pop(op_key(op), None)
            places |= dict.fromkeys(graph.places_to(operand, op)[-1] for operand in op.operands)
        again = [place for place in places if place in flow.executions]
        for place in again:
            flow.edges.pop(place, None)
            flow.forcing_uses.pop(place, None)
        rivals = self._trace(flow, again)
        reached = set(flow.reachable([ProgramPoint(value) for value in flow.sources]))
        for table in (flow.edges, flow.forcing_uses, flow.executions):
            for place in [place for place in table if place not in reached]:
                del table[place]
        return rivals

    # ---- one use

    def _step(self, flow: DeferralGraph, place: ProgramPoint, op: ir.Operation, position: int,
              rivals: graph.Rivals) -> list[ProgramPoint]:
        """The places that one use of a place leads to; if there are none, records that the use forces the reduction."""
        crossed = graph.blocks_between(place, op)
        barrier = self._cannot_enter(crossed)
        if barrier is not None:
            flow.forcing_uses.setdefault(place, []).append(barrier)
            return []
        if crossed and crossed[0].owner.operation.name in BRANCHES:
            return [ProgramPoint(place.value, (crossed[0],))]  # read inside a branch: it may be reduced there instead
        targets = self._targets(flow, op, position, rivals)
        if isinstance(targets, ForcingUse):
            flow.forcing_uses.setdefault(place, []).append(targets)
            return []
        too_odd = next((value for value in targets if not is_static_tensor(value.type)), None)
        if too_odd is not None:
            dynamic = ForcingUse(f"{too_odd.type} has no static shape", op, illegal=True, need="shape")
            flow.forcing_uses.setdefault(place, []).append(dynamic)
            return []
        return [ProgramPoint(value) for value in targets]

    def _targets(self, flow: DeferralGraph, op: ir.Operation, position: int,
                 rivals: graph.Rivals) -> list[ir.Value] | ForcingUse:
        key = op_key(op)
        refused = self.refusals.sentence((key, position))
        if refused is not None:
            return ForcingUse(refused, op, need="rival")
        if op.name in _NO_FACTS:
            return self._through_control_flow(op, position)
        if op.name == "stablehlo.custom_call" and _is_sent(op):
            return ForcingUse("it is sent to another mesh", op, need="mesh")
        answer = self._linear_in(op, position)
        if isinstance(answer, NotLinear):
            return _not_linear(op, answer)
        again = self._read_again(op, position, answer)
        if again is not None:
            return again
        known = flow.joint.setdefault(key, answer)
        if known.operands != answer.operands:
            rivals[key] = (op, [known, answer])
        return list(op.results)

    def _through_control_flow(self, op: ir.Operation, position: int) -> list[ir.Value] | ForcingUse:
        if op.name == "stablehlo.return":
            return self._through_yield(op, position)
        if op.name == _LOOP:
            return self._through_loop(op, position, op)
        if op.name == _BARRIER:
            return [op.results[position]]
        if op.name == "func.call":
            return ForcingUse("it is passed to a function", op, need="call")
        return ForcingUse("it is a result of the program", op, need="result")

    def _linear_in(self, op: ir.Operation, position: int) -> JointlyLinear | NotLinear:
        use = (op_key(op), position)
        if use not in self._answers:
            answer = self.facts.linear_in(op, position, self.context)
            if isinstance(answer, JointlyLinear):
                answer = self._linear.setdefault(answer, answer)  # one object for each fact, not for each use
            self._answers[use] = answer
        return self._answers[use]

    def _read_again(self, op: ir.Operation, position: int, answer: JointlyLinear) -> ForcingUse | None:
        """Why an op that reads one value twice (``x * x``) needs it reduced; None if it is jointly linear in both.

        One of the uses would need the value reduced, so the other gains nothing from the pair.
        """
        operands = list(op.operands)
        if len(operands) == len(answer.operands):
            return None
        value = operands[position]
        for other, operand in enumerate(operands):
            if other == position or other in answer.operands or operand != value:
                continue
            there = self._linear_in(op, other)
            if isinstance(there, NotLinear):
                return _not_linear(op, there)
            return ForcingUse(graph.RIVALS, op, need="rival")
        return None

    def _cannot_enter(self, crossed: list[ir.Block]) -> ForcingUse | None:
        """Why a reduction cannot travel into the regions around a use; None when all members enter them together."""
        for block in crossed:
            parent = block.owner.operation
            if parent.name == _LOOP:
                reason, need = self._why_trips_vary(Loop(parent)), "trip count"
                what = "devices of a group may run the loop around its reader a different number of times"
            elif parent.name in BRANCHES:
                reason, need = self.context.varying(parent.operands[0]), "branch"
                what = "the branch taken differs between devices of a group"
            else:
                return ForcingUse(f"it is read inside a region of {parent.name}", parent, need="region")
            if reason is not None:
                return ForcingUse(f"{what}: {reason.sentence}", parent, reason.culprit, True, need)
        return None

    def _through_yield(self, end: ir.Operation, position: int) -> list[ir.Value] | ForcingUse:
        block = end.block
        parent = block.owner.operation
        if parent.name == _LOOP:
            if block == Loop(parent).condition:
                return ForcingUse("it decides whether the loop continues", parent, need="condition")
            return self._through_loop(parent, position, end)
        if parent.name not in BRANCHES:
            return ForcingUse(f"it is returned by a region of {parent.name}", parent, need="region")
        reason = self.context.varying(parent.operands[0])
        if reason is not None:
            return ForcingUse(f"the branch taken differs between devices of a group: {reason.sentence}", parent,
                              reason.culprit, True, "branch")
        return [parent.results[position]]

    def _through_loop(self, op: ir.Operation, position: int, reader: ir.Operation) -> list[ir.Value] | ForcingUse:
        loop = Loop(op)
        reason = self._why_trips_vary(loop)
        if reason is not None:
            return ForcingUse(f"devices of a group may run the loop a different number of times: {reason.sentence}",
                              reader, reason.culprit, True, "trip count")
        if self._carries_token(op):
            return ForcingUse("the loop carries a token, so its effects are ordered", reader, op, True, "token")
        if loop.tests(position):
            return ForcingUse("the loop's condition reads it", reader, op, True, "condition")
        return [loop.body.arguments[position], op.results[position]]

    def _why_trips_vary(self, loop: Loop) -> Varying | None:
        key = op_key(loop.op)
        if key not in self._trips_vary:
            self._trips_vary[key] = self.context.varying(loop.predicate)
        return self._trips_vary[key]

    def _carries_token(self, loop: ir.Operation) -> bool:
        key = op_key(loop)
        if key not in self._with_token:
            self._with_token[key] = any("token" in str(operand.type) for operand in loop.operands)
        return self._with_token[key]

    # ---- how often a place is passed

    def _times(self, place: ProgramPoint) -> float:
        if place.branch is not None:
            return self._block_times(place.branch)
        owner = place.value.owner
        return self._block_times(owner if isinstance(owner, ir.Block) else owner.operation.block)

    def _block_times(self, block: ir.Block) -> float:
        known = self._executions.get(block)
        if known is not None:
            return known
        parent = block.owner.operation
        if parent.name in ("func.func", "sdy.manual_computation", "builtin.module"):
            times = 1.0
        else:
            times = self._block_times(parent.block) * times_of_block(block)[0]
        self._executions[block] = times
        return times


def _not_linear(op: ir.Operation, answer: NotLinear) -> ForcingUse:
    """A use that cannot take the pair, because of a fact or the lack of one."""
    need: Need = "differs" if answer.illegal and answer.culprit is not None else "not linear"
    return ForcingUse(answer.sentence, op, answer.culprit, answer.illegal, need)


def _is_sent(op: ir.Operation) -> bool:
    """Whether an op of a mesh's view of a program (``mesh_view``) sends values to another mesh."""
    return ir.StringAttr(op.attributes["call_target_name"]).value == "hlorewrite.send"
