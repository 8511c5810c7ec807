"""Products of two candidates: an op that is linear in either of two pairs, but not in both, is treated as linear in
one."""

from collections.abc import Iterable

from hlorewrite.analysis.deferral_graph.graph import DeferralGraph, ProgramPoint
from hlorewrite.analysis.linearity import JointlyLinear
from hlorewrite.ir import ir, op_key, tensor_bytes

RIVALS = "it meets another reduced value there, and the op is linear in each of them, but not in both at once"

Rivals = dict[int, tuple[ir.Operation, list[JointlyLinear]]]
"""Op key -> an op that is linear in either of two candidates but not in both, and its choices."""


class Refusals:
    """Uses that force the reduction although a fact allows them; a flow is built for one set of these."""

    def __init__(self) -> None:
        self._refused: dict[tuple[int, int], str] = {}
        self._decided: Rivals = {}
        self._asked = False

    def sentence(self, use: tuple[int, int]) -> str | None:
        """Why a use, by op key and operand position, is refused; None when it is not."""
        return self._refused.get(use) if self._refused else None

    def ask(self, uses: Iterable[tuple[ir.Operation, int]], sentence: str) -> int:
        """Refuses uses if asked; returns how many of them were not refused before."""
        added = self._refuse(uses, sentence)
        self._asked |= added > 0
        return added

    def decide(self, flow: DeferralGraph, rivals: Rivals) -> None:
        """For each product of two candidates, refuses the factor that carries fewer bytes."""
        self._decided.update(rivals)
        if not self._refuse(_losers(flow, rivals), RIVALS):
            self._refuse(((op, position) for op, choices in rivals.values() for choice in choices
                          for position in choice.operands), RIVALS)

    def holds_for(self, later: DeferralGraph) -> bool:
        """Whether a new builder would find the part of the flow that begins where the built one is reduced.

        Args:
          later: the part of the built flow after these places, with their reductions as its sources.

        Returns:
          False if the caller asked to refuse a use, or if the other of two factors would carry more bytes.
        """
        if self._asked:
            return False
        weight = _origin_bytes(later) if self._decided else {}
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


def _losers(flow: DeferralGraph, rivals: Rivals) -> list[tuple[ir.Operation, int]]:
    """Operand positions that give way if an op is linear in one candidate or another, but not in both."""
    weight = _origin_bytes(flow)
    losers: list[tuple[ir.Operation, int]] = []
    for op, choices in rivals.values():
        winner = _winner(op, choices, weight)
        losers += [(op, position) for choice in choices if choice is not winner
                   for position in sorted(choice.operands - winner.operands)]
    return losers


def _origin_bytes(flow: DeferralGraph) -> dict[ir.Value, int]:
    """For each value, the bytes of the largest reduction whose pair reaches it."""
    weight: dict[ir.Value, int] = {}
    seen: set[ProgramPoint] = set()
    for source in sorted(flow.sources, key=lambda value: -tensor_bytes(value.type)):
        pending = [ProgramPoint(source)] if source not in weight else []
        # Ends: a place is added once; what is after one that larger reductions reach, they reach too.
        for place in pending:
            weight.setdefault(place.value, tensor_bytes(source.type))
            fresh = [target for target in dict.fromkeys(flow.edges.get(place, ())) if target not in seen]
            seen.update(fresh)
            pending += fresh
    return weight


def _carried(op: ir.Operation, choice: JointlyLinear, weight: dict[ir.Value, int]) -> int:
    """The most bytes that an operand of a choice carries."""
    return max(weight.get(op.operands[position], 0) for position in choice.operands)


def _winner(op: ir.Operation, choices: list[JointlyLinear], weight: dict[ir.Value, int]) -> JointlyLinear:
    """The choice that carries the most bytes; among equals, the one of the first operand."""
    return max(choices, key=lambda choice: (_carried(op, choice, weight), -min(choice.operands)))
