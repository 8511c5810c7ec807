"""Linearity facts: which ops are jointly linear in which operands, under which conditions.

A fact says ``op(AR(a) + p, AR(b) + q) = AR(op(a, b)) + op(p, q)`` for the operands after ``in``, all others fixed, for
reductions of the kinds it lists (``+`` stands for that reduction). Facts of an op are tried in the order of the files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hlorewrite.analysis.linearity import FactContext, JointlyLinear, NotLinear
from hlorewrite.ir.binding import ir
from hlorewrite.rules.apply.matcher import search
from hlorewrite.rules.checks.declared import REGROUPING
from hlorewrite.rules.compile.checks import CompiledCheck, ExpressionCompiler, NativeFunction
from hlorewrite.rules.compile.environment import Environment, Slots
from hlorewrite.rules.compile.match import MatchCompiler, MatchStep
from hlorewrite.rules.dialects import signature
from hlorewrite.rules.match_failure import MatchFailure
from hlorewrite.rules.syntax import ast


@dataclass(frozen=True, eq=False)
class CompiledFact:
    """A fact, ready to run.

    Attributes:
      fact: its syntax tree.
      location: where it is written, ``file:line``.
      names: the ops it is about.
      kinds: the reductions that it is true for; empty for all.
      steps: the match of the op.
      checks: its legality.
      linear: the linear operands: positions in the pattern, or the slot of a spread.
      slots: where names live.
      operands: the slot of the op's operands in the matched order.
      root: the slot of the op.
      everywhere: the linear positions if the fact is true for every op of this name; empty otherwise.
      places: the linear positions if the pattern lists each operand; None with a spread.
    """

    fact: ast.Linear
    location: str
    names: tuple[str, ...]
    kinds: frozenset[str]
    steps: tuple[MatchStep, ...]
    checks: tuple[CompiledCheck, ...]
    linear: tuple[str, ...]
    slots: Slots
    operands: int
    root: int
    everywhere: frozenset[int]
    places: frozenset[int] | None

    @property
    def name(self) -> str:
        """The fact's name."""
        return self.fact.name

    @property
    def regroups(self) -> bool:
        """Whether it changes how floats round, other than by a wider type."""
        return self.fact.floats is not None and not REGROUPING.isdisjoint(self.fact.floats.names)

    def linear_operands(self, op: ir.Operation, position: int,
                        context: FactContext) -> frozenset[int] | MatchFailure | None:
        """The operands that an op is jointly linear in, including the one in question.

        Args:
          op: the op.
          position: the operand that carries a deferred reduction.
          context: answers what the checks ask.

        Returns:
          Operand positions; a failure when a check does not hold; None when the fact is not about this op and operand.
        """
        if position in self.everywhere:
            return self.everywhere
        refused: list[MatchFailure] = []
        candidates: list[frozenset[int]] = []

        def accept(env: Environment) -> bool:
            positions = self._positions(env, op)
            if position not in positions:
                return False
            for check in self.checks:
                answer = check.run(env)
                if answer is not True:
                    refused.append(answer)
                    return False
            candidates.append(positions)
            return True

        env = self.slots.empty(context)
        env[self.root] = op
        search(self.steps, env, accept)
        if candidates:
            return candidates[0]
        return refused[0] if refused else None

    def _positions(self, env: Environment, op: ir.Operation) -> frozenset[int]:
        """Positions in the op, for whichever operand order matched."""
        count = len(env[self.operands])
        swapped = self.fact.commutes and count == 2 and env[self.operands] != tuple(op.operands)
        if self.places is not None:
            return frozenset(1 - place for place in self.places) if swapped else self.places
        positions: set[int] = set()
        pattern = self.fact.match.statements[0]
        assert isinstance(pattern, ast.OpPattern)
        for i, operand in enumerate(pattern.operands):
            if isinstance(operand, ast.Spread):
                behind = len(pattern.operands) - 1 - i
                positions.update(range(i, count - behind) if f"...{operand.name}" in self.linear else ())
            elif isinstance(operand, ast.ValueRef) and operand.name in self.linear:
                place = _from_end(i, pattern.operands, count)
                positions.add(1 - place if swapped else place)
        return frozenset(positions)


def _from_end(place: int, operands: tuple[ast.Operand, ...], count: int) -> int:
    spread = next((i for i, o in enumerate(operands) if isinstance(o, ast.Spread)), None)
    return place if spread is None or place < spread else count - (len(operands) - place)


def compile_fact(fact: ast.Linear, natives: Mapping[str, NativeFunction], file: str) -> CompiledFact:
    """Compiles a checked fact.

    Args:
      fact: its syntax tree, without problems.
      natives: the natives it may call.
      file: the file it is in.
    """
    patterns = [s for s in fact.match.statements if isinstance(s, ast.OpPattern)]
    matching = MatchCompiler(patterns, fact.commutes)
    steps = tuple(matching.compile())
    expressions = ExpressionCompiler(matching.slots, natives, fact.name)
    legal = fact.legal.statements if fact.legal else ()
    checks = tuple(expressions.statement(s) for s in (*type_checks(patterns[0], fact.types), *legal)
                   if isinstance(s, ast.Condition | ast.Let))
    root = matching.op_slot(matching.root.number)
    linear = tuple(f"...{o.name}" if isinstance(o, ast.Spread) else o.name for o in fact.operands.operands)
    kinds = frozenset() if "any" in fact.kinds.names else frozenset(fact.kinds.names)
    return CompiledFact(fact, f"{file}:{fact.name_span.line}", patterns[0].names, kinds=kinds, steps=steps,
                        checks=checks, linear=linear, slots=matching.slots,
                        operands=matching.slots.slot(f"operands of {root}"), root=root,
                        everywhere=frozenset() if checks else _everywhere(patterns[0], linear),
                        places=_places(patterns[0], linear))


_EVERY: tuple[int, ...] = ()
_ONE_ELEMENT_TYPE: dict[str, tuple[int, ...]] = {f"stablehlo.{name}": _EVERY for name in (
    "add", "subtract", "negate", "multiply", "divide", "maximum", "minimum", "clamp", "and", "or", "reshape",
    "transpose", "broadcast_in_dim", "slice", "reverse", "concatenate", "pad", "triangular_solve")}
_ONE_ELEMENT_TYPE |= {"stablehlo.select": (1, 2), "stablehlo.dynamic_slice": (0,), "stablehlo.gather": (0,),
                      "stablehlo.dynamic_update_slice": (0, 1)}
_WITH_REDUCER: dict[str, tuple[int, ...]] = {"stablehlo.reduce": _EVERY, "stablehlo.reduce_window": _EVERY,
                                             "stablehlo.scatter": (0, 2)}
"""Operands (all, if none is listed) that have the result's element type in every module the verifier accepts; with a
reducer, wherever `reduces` matches it."""


def type_checks(pattern: ast.OpPattern, types: ast.Block | None) -> list[ast.Condition]:
    """The relations to check on an op's element types, without those that hold for every op of the pattern.

    Args:
      pattern: the op's pattern.
      types: what the fact says about element types.
    """
    statements = [s for s in types.statements if isinstance(s, ast.Condition)] if types else []
    return [s for s in statements if not _follows(pattern, s.expression)]


def _follows(pattern: ast.OpPattern, relation: ast.Expression) -> bool:
    if not isinstance(relation, ast.Call) or relation.function not in ("same", "parts"):
        return False
    if relation.function == "parts":
        return all(name in ("stablehlo.real", "stablehlo.imag", "stablehlo.complex") for name in pattern.names)
    table = _ONE_ELEMENT_TYPE | (_WITH_REDUCER if pattern.regions else {})
    asked = {getattr(a, "name", None) for a in relation.arguments} - {pattern.results[0]}
    return all(name in table and asked <= _named(pattern, table[name]) for name in pattern.names)


def _named(pattern: ast.OpPattern, positions: tuple[int, ...]) -> set[str | None]:
    return {getattr(operand, "name", None) for i, operand in enumerate(pattern.operands)
            if not positions or i in positions}


def _everywhere(pattern: ast.OpPattern, linear: tuple[str, ...]) -> frozenset[int]:
    """The linear positions of a pattern that matches every op of its name; empty for others."""
    names = [o.name for o in pattern.operands if isinstance(o, ast.ValueRef) and o.index is None]
    plain = len(names) == len(pattern.operands) == len(set(names)) and "_" not in names
    fixed = all(s is not None and s.fewest_operands == s.most_operands for s in map(signature, pattern.names))
    if not plain or not fixed or pattern.attributes or pattern.regions or len(pattern.results) != 1:
        return frozenset()
    return frozenset(i for i, name in enumerate(names) if name in linear)


def _places(pattern: ast.OpPattern, linear: tuple[str, ...]) -> frozenset[int] | None:
    """The linear positions of a pattern that lists each operand; None for one with a spread."""
    if any(isinstance(operand, ast.Spread) for operand in pattern.operands):
        return None
    return frozenset(i for i, operand in enumerate(pattern.operands)
                     if isinstance(operand, ast.ValueRef) and operand.name in linear)


class Facts:
    """Facts by op; implements ``analysis.linearity.LinearityFacts``.

    Args:
      facts: compiled facts, in the order in which they are tried.
    """

    def __init__(self, facts: Iterable[CompiledFact]) -> None:
        self._by_op: dict[str, list[CompiledFact]] = {}
        for fact in facts:
            for name in fact.names:
                self._by_op.setdefault(name, []).append(fact)

    def for_op(self, name: str) -> tuple[CompiledFact, ...]:
        """The facts about an op."""
        return tuple(self._by_op.get(name, ()))

    def linear_in(self, op: ir.Operation, position: int, context: FactContext) -> JointlyLinear | NotLinear:
        """Whether an op is linear in an operand, and in which others jointly with it.

        Args:
          op: the op.
          position: the operand that carries a deferred reduction.
          context: the kind of reduction, and what is known about values.

        Returns:
          The operand positions and the fact's name, or why not: ``illegal`` when a condition of a fact about this op
          and operand does not hold.
        """
        facts = self._by_op.get(op.name)
        if facts is None:
            return NotLinear(f"{op.name} is not linear")
        refused: tuple[CompiledFact, MatchFailure] | None = None
        for fact in facts:
            if fact.kinds and context.kind not in fact.kinds:
                continue
            answer = fact.linear_operands(op, position, context)
            if isinstance(answer, frozenset):
                return JointlyLinear(answer, fact.name, fact.regroups)
            if answer is not None:
                refused = refused or (fact, answer)
        if refused is not None:
            return NotLinear(refused[1].sentence, refused[1].culprit, illegal=True)
        return self._no_fact(op, facts, context)

    def _no_fact(self, op: ir.Operation, facts: list[CompiledFact], context: FactContext) -> NotLinear:
        kinds: set[str] = set().union(*(fact.kinds for fact in facts))
        if kinds and all(fact.kinds for fact in facts) and context.kind not in kinds:
            return NotLinear(f"{op.name} does not commute with a {context.kind} reduction")
        return NotLinear(f"{op.name} is not linear in this operand")
