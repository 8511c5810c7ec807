"""Deferred reductions: where the result of a reduction may travel before it is reduced.

Keep every candidate value as a pair, ``v = AR(w) + u`` with ``w`` local to each device and ``u`` whatever the program
held there without the reduction. A jointly linear op maps pairs to pairs; a loop, a branch and an optimisation barrier
forward them. Any other reader needs it reduced. This module builds that flow as a graph over SSA
values, for one class of reductions (same groups, same kind); ``placement`` cuts it where it is cheapest.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.spmd.executions import times_of_block
from hlorewrite.spmd.flow.graph import Flow, ForcingUse, Need
from hlorewrite.spmd.flow.places import BRANCHES, Place, blocks_between, places_to, uses_in
from hlorewrite.spmd.linearity import FactContext, JointlyLinear, LinearityFacts, NotLinear
from hlorewrite.spmd.loops import Loop
from hlorewrite.spmd.types import is_static_tensor, tensor_bytes

_LOOP = "stablehlo.while"
_BARRIER = "stablehlo.optimization_barrier"
_NO_FACTS = frozenset({"stablehlo.return", _LOOP, _BARRIER, "func.call", "func.return", "sdy.return"})
_RIVALS = "it meets another reduced value there, and the op is linear in either, not in both"

_Rivals = dict[int, tuple[ir.Operation, list[JointlyLinear]]]
"""Op key -> an op that is linear in either of two candidates, not in both, and its choices."""


class FlowBuilder:
    """Builds the flow of one class of reductions; what it found out holds while the module stays as it is.

    Args:
      facts: the declared linearity facts.
      context: uniformity over the class's groups, and its kind of reduction.
    """

    def __init__(self, facts: LinearityFacts, context: FactContext) -> None:
        self.facts = facts
        self.context = context
        self._executions: dict[ir.Block, float] = {}
        self._with_token: dict[int, bool] = {}
        self._refused: dict[tuple[int, int], str] = {}
        self._answers: dict[tuple[int, int], JointlyLinear | NotLinear] = {}
        self._decided: _Rivals = {}
        self._asked_to_refuse = False

    def with_slots(self, context: FactContext) -> FlowBuilder:
        """A builder for the module after loops and branches got results that hold the identity.

        Only ops that control flow, and their terminators, were made anew, and no fact is about these. Further results
        change no other value, so an op that is linear stays linear. Why an op is not linear is found again: the reason
        may name an op that is gone.

        Args:
          context: uniformity of the module as it is now.

        Returns:
          A builder that has refused nothing.
        """
        builder = FlowBuilder(self.facts, context)
        builder._answers = {use: answer for use, answer in self._answers.items() if isinstance(answer, JointlyLinear)}
        return builder

    def build(self, sources: list[ir.Value]) -> Flow:
        """The flow from the results of some all-reduces.

        Args:
          sources: results of all-reduces of one class.

        Returns:
          The graph. Where an op is linear in either of two candidates but not in both (a product), it is taken as
          linear in the one that carries more bytes.
        """
        flow = Flow(list(sources))
        rivals = self._trace(flow, [Place(value) for value in sources])
        # Ends: each round refuses a use that was not refused before, and the module has finitely many.
        while rivals:
            self._decided.update(rivals)
            if not self._refuse(self._losers(flow, rivals), _RIVALS):
                self._refuse(((op, position) for op, choices in rivals.values() for choice in choices
                              for position in choice.operands), _RIVALS)
            rivals = self._trace_again(flow, [op for op, _ in rivals.values()])
        return flow

    def refuse(self, uses: Iterable[tuple[ir.Operation, int]], sentence: str) -> int:
        """Takes uses as needs from now on, whatever reads there: an op, a loop, a branch, a terminator.

        Args:
          uses: (op, operand position) of each.
          sentence: why.

        Returns:
          How many of them were not refused before. Who builds anew after refusing must stop at 0: nothing would change.
        """
        added = self._refuse(uses, sentence)
        self._asked_to_refuse |= added > 0
        return added

    def holds_for(self, later: Flow) -> bool:
        """Whether a builder that starts anew would find a flow that begins where the built one is reduced.

        Args:
          later: the part of the built flow after these places, with their reductions as its sources.

        Returns:
          False where a use was refused on request, or where of two factors the other one would carry more bytes.
        """
        if self._asked_to_refuse:
            return False
        weight = self._origin_bytes(later) if self._decided else {}
        for op, choices in self._decided.values():
            winner = next((choice for choice in choices if not any(
                (op_key(op), position) in self._refused for position in choice.operands)), None)
            if any(_carried(op, choice, weight) for choice in choices) and _winner(op, choices, weight) is not winner:
                return False
        return True

    def _refuse(self, uses: Iterable[tuple[ir.Operation, int]], sentence: str) -> int:
        before = len(self._refused)
        self._refused.update({(op_key(op), position): sentence for op, position in uses})
        return len(self._refused) - before

    def _trace(self, flow: Flow, starts: list[Place]) -> _Rivals:
        """Adds places and all that their pairs travel to; returns the products of two candidates on the way."""
        rivals: _Rivals = {}
        pending = list(starts)
        seen = {*flow.executions, *pending}
        # Ends: a place is added once.
        while pending:
            place = pending.pop()
            flow.executions[place] = self._times(place)
            for op, position in uses_in(place):
                for start, target in self._step(flow, place, op, position, rivals):
                    flow.edges.setdefault(start, []).append(target)
                    if target not in seen:
                        seen.add(target)
                        pending.append(target)
        return rivals

    def _trace_again(self, flow: Flow, ops: list[ir.Operation]) -> _Rivals:
        """Follows the operands of some ops anew, of which uses are refused now, and drops what nothing leads to."""
        places: dict[Place, None] = {}
        for op in ops:
            flow.joint.pop(op_key(op), None)
            places |= dict.fromkeys(places_to(operand, op)[-1] for operand in op.operands)
        again = [place for place in places if place in flow.executions]
        for place in again:
            flow.edges.pop(place, None)
            flow.forcing_uses.pop(place, None)
        rivals = self._trace(flow, again)
        reached = set(flow.reachable([Place(value) for value in flow.sources]))
        for table in (flow.edges, flow.forcing_uses, flow.executions):
            for place in [place for place in table if place not in reached]:
                del table[place]
        return rivals

    # ---- one use

    def _step(self, flow: Flow, place: Place, op: ir.Operation, position: int,
              rivals: _Rivals) -> list[tuple[Place, Place]]:
        """The edges that one use of a place gives; records that it forces the reduction when it gives none."""
        crossed = blocks_between(place, op)
        barrier = self._cannot_enter(crossed)
        if barrier is not None:
            flow.forcing_uses.setdefault(place, []).append(barrier)
            return []
        if crossed and crossed[0].owner.operation.name in BRANCHES:
            return [(place, Place(place.value, (crossed[0],)))]  # read inside a branch: it may be reduced there instead
        targets = self._targets(flow, op, position, rivals)
        if isinstance(targets, ForcingUse):
            flow.forcing_uses.setdefault(place, []).append(targets)
            return []
        too_odd = next((value for value in targets if not is_static_tensor(value.type)), None)
        if too_odd is not None:
            dynamic = ForcingUse(f"{too_odd.type} has no static shape", op, illegal=True, need="shape")
            flow.forcing_uses.setdefault(place, []).append(dynamic)
            return []
        return [(place, Place(value)) for value in targets]

    def _targets(self, flow: Flow, op: ir.Operation, position: int,
                 rivals: _Rivals) -> list[ir.Value] | ForcingUse:
        key = op_key(op)
        if (key, position) in self._refused:
            return ForcingUse(self._refused[key, position], op, need="rival")
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
            self._answers[use] = self.facts.linear_in(op, position, self.context)
        return self._answers[use]

    def _read_again(self, op: ir.Operation, position: int, answer: JointlyLinear) -> ForcingUse | None:
        """Why an op that reads one value twice (``x * x``) needs it reduced; None where it is linear in both jointly.

        One of the uses would need the value reduced, and then nothing is gained by the pair in the other.
        """
        operands = list(op.operands)
        if len(operands) == len(answer.operands):
            return None
        value = operands[position]
        for other, operand in enumerate(operands):
            if other == position or other in answer.operands or operand != value:
                continue
            there = self._linear_in(op, other)
            return _not_linear(op, there) if isinstance(there, NotLinear) else ForcingUse(_RIVALS, op, need="rival")
        return None

    def _cannot_enter(self, crossed: list[ir.Block]) -> ForcingUse | None:
        """Why a reduction cannot travel into the regions around a use; None when all members enter them alike."""
        for block in crossed:
            parent = block.owner.operation
            if parent.name == _LOOP:
                decides, need = Loop(parent).predicate, "trip count"
                what = "devices of a group may run the loop around its reader a different number of times"
            elif parent.name in BRANCHES:
                decides, need = parent.operands[0], "branch"
                what = "the branch taken differs between devices of a group"
            else:
                return ForcingUse(f"it is read inside a region of {parent.name}", parent, need="region")
            reason = self.context.varying(decides)
            if reason is not None:
                return ForcingUse(f"{what}: {reason.sentence}", parent, reason.culprit, True, need)
        return None

    def _through_yield(self, end: ir.Operation, position: int) -> list[ir.Value] | ForcingUse:
        block = end.block
        parent = block.owner.operation
        if parent.name == _LOOP:
            if block == Loop(parent).condition:
                return ForcingUse("it decides whether the loop goes on", parent, need="condition")
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
        reason = self.context.varying(loop.predicate)
        if reason is not None:
            return ForcingUse(f"devices of a group may run the loop a different number of times: {reason.sentence}",
                              reader, reason.culprit, True, "trip count")
        if self._carries_token(op):
            return ForcingUse("the loop carries a token, so its effects are ordered", reader, op, True, "token")
        if next(iter(loop.condition.arguments[position].uses), None) is not None:
            return ForcingUse("the loop's condition reads it", reader, op, True, "condition")
        return [loop.body.arguments[position], op.results[position]]

    def _carries_token(self, loop: ir.Operation) -> bool:
        key = op_key(loop)
        if key not in self._with_token:
            self._with_token[key] = any("token" in str(operand.type) for operand in loop.operands)
        return self._with_token[key]

    # ---- products of two candidates

    def _losers(self, flow: Flow, rivals: _Rivals) -> list[tuple[ir.Operation, int]]:
        """Operand positions that give way where an op is linear in one candidate or another, not in both."""
        weight = self._origin_bytes(flow)
        losers: list[tuple[ir.Operation, int]] = []
        for op, choices in rivals.values():
            winner = _winner(op, choices, weight)
            losers += [(op, position) for choice in choices if choice is not winner
                       for position in sorted(choice.operands - winner.operands)]
        return losers

    def _origin_bytes(self, flow: Flow) -> dict[ir.Value, int]:
        """For each value, the bytes of the largest reduction whose pair reaches it."""
        weight: dict[ir.Value, int] = {}
        seen: set[Place] = set()
        for source in sorted(flow.sources, key=lambda value: -tensor_bytes(value.type)):
            pending = [Place(source)] if source not in weight else []
            # Ends: a place is added once; what lies after one that larger reductions reach, they reach too.
            for place in pending:
                weight.setdefault(place.value, tensor_bytes(source.type))
                fresh = [target for target in dict.fromkeys(flow.edges.get(place, ())) if target not in seen]
                seen.update(fresh)
                pending += fresh
        return weight

    # ---- how often a place is passed

    def _times(self, place: Place) -> float:
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


def _carried(op: ir.Operation, choice: JointlyLinear, weight: dict[ir.Value, int]) -> int:
    """The most bytes that an operand of a choice carries."""
    return max(weight.get(op.operands[position], 0) for position in choice.operands)


def _winner(op: ir.Operation, choices: list[JointlyLinear], weight: dict[ir.Value, int]) -> JointlyLinear:
    """The choice that carries the most bytes; among equals that of the first operand."""
    return max(choices, key=lambda choice: (_carried(op, choice, weight), -min(choice.operands)))


def _not_linear(op: ir.Operation, answer: NotLinear) -> ForcingUse:
    """The use of an op that a fact, or the lack of one, keeps from taking the pair."""
    need: Need = "differs" if answer.illegal and answer.culprit is not None else "not linear"
    return ForcingUse(answer.sentence, op, answer.culprit, answer.illegal, need)


def _is_sent(op: ir.Operation) -> bool:
    """Whether an op of a mesh's view of a program (``mesh_view``) sends values to another mesh."""
    return ir.StringAttr(op.attributes["call_target_name"]).value == "hlorewrite.send"
