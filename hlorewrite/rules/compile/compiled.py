"""A rule, compiled once: steps, checks, actions, and the ways from any matched op back to the root."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hlorewrite.analysis.linearity import has_narrow_range, regrouped
from hlorewrite.ir import defining_op, element_type, ir, is_floating
from hlorewrite.rules.checks.declared import REGROUPING
from hlorewrite.rules.compile.checks import CompiledCheck, ExpressionCompiler, Function, NativeFunction, pair_conditions
from hlorewrite.rules.compile.environment import CONTEXT, Environment, Slots
from hlorewrite.rules.compile.match import MatchCompiler, MatchStep
from hlorewrite.rules.compile.rewrite import Action, RewriteCompiler
from hlorewrite.rules.match_failure import MatchFailure
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.pattern_graph import Visit

Stage = Literal["where", "legal", "cost"]
_BLOCKS: tuple[tuple[str, Stage], ...] = (("where", "where"), ("types", "legal"), ("legal", "legal"), ("cost", "cost"))
"""Other element types would be wrong, so these checks count like ``legal`` ones."""
Hop = Callable[[ir.Operation], Iterable[ir.Operation | None]]
"""Maps an op to its neighbours; yields None for each op passed over, so a caller can bound the walk."""


@dataclass(frozen=True)
class PatternNode:
    """One op of a match: its possible names, and the walk from it to the root.

    Attributes:
      names: the op names it may have.
      slot: the slot that holds it.
      hops: steps towards the root; empty for the root itself.
    """

    names: tuple[str, ...]
    slot: int
    hops: tuple[Hop, ...]


@dataclass(frozen=True, eq=False)
class CompiledRule:
    """A rule, ready to run.

    Attributes:
      rule: its syntax tree.
      location: where it is written, ``file:line``.
      benefit: rules of higher benefit are tried first; by default the number of ops it matches.
      root: its root.
      nodes: its ops, the root first.
      steps: the match.
      checks: (stage, check) in order.
      exchanged: pairs of matched values, with their names, where the rewrite replaces the first with the second.
      actions: the rewrite.
      slots: where names live.
    """

    rule: ast.Rule
    location: str
    benefit: int
    root: PatternNode
    nodes: tuple[PatternNode, ...]
    steps: tuple[MatchStep, ...]
    checks: tuple[tuple[Stage, CompiledCheck], ...]
    exchanged: tuple[tuple[str, Function, Function], ...]
    actions: tuple[Action, ...]
    slots: Slots

    @property
    def in_place(self) -> bool:
        """Whether the rewrite changes ops in place, so values that stay may change."""
        return _sets(self.rule.rewrite.statements)

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name


def _sets(actions: Iterable[Any]) -> bool:
    return any(isinstance(a, ast.SetAttributes | ast.SetOperand) or (isinstance(a, ast.At) and _sets(a.body))
               for a in actions)


@dataclass
class Failure:
    """Why a match stopped.

    Attributes:
      stage: the failed block; ``match`` when the ops differ.
      answer: the sentence and the culprit.
      check: the failed check as the rule writes it.
      progress: how many steps and checks passed.
      environment: the names bound so far.
    """

    stage: Stage | Literal["match"]
    answer: MatchFailure
    check: str
    progress: int
    environment: Environment = field(repr=False)


def compile_rule(rule: ast.Rule, natives: Mapping[str, NativeFunction], file: str) -> CompiledRule:
    """Compiles a checked rule.

    Args:
      rule: its syntax tree, without problems.
      natives: the natives it may call.
      file: the file it is in, for its location.
    """
    patterns = [s for s in rule.match.statements if isinstance(s, ast.OpPattern)]
    matching = MatchCompiler(patterns, rule.commutes, pair_conditions(rule, natives))
    steps = tuple(matching.compile())
    expressions = ExpressionCompiler(matching.slots, natives, rule.name)
    checks: list[tuple[Stage, CompiledCheck]] = []
    for keyword, stage in _BLOCKS:
        block: ast.Block | None = getattr(rule, keyword)
        for statement in block.statements if block else ():
            if isinstance(statement, ast.Condition | ast.Let):
                checks.append((stage, expressions.statement(statement)))
        if keyword == "legal" and rule.floats is not None and rule.floats.names != ("exact",):
            checks.append(("legal", _float_check(rule.floats, matching.op_slot(matching.root.number))))
    exchanged = tuple(_exchanged(rule, expressions))
    actions = tuple(RewriteCompiler(expressions, rule.name).actions(rule.rewrite.statements))
    nodes = _pattern_nodes(matching)
    benefit = len(nodes) if rule.benefit is None else rule.benefit
    return CompiledRule(rule, f"{file}:{rule.name_span.line}", benefit, root=nodes[0], nodes=nodes, steps=steps,
                        checks=tuple(checks), exchanged=exchanged, actions=actions, slots=matching.slots)


def _made(actions: Iterable[Any]) -> Iterable[str]:
    """The names of ops that a rewrite creates, before its root or elsewhere."""
    for action in actions:
        yield from action.results if isinstance(action, ast.Create) else ()
        yield from _made(action.body) if isinstance(action, ast.At) else ()


def _exchanged(rule: ast.Rule, expressions: ExpressionCompiler) -> Iterable[tuple[str, Function, Function]]:
    """The matched values that a rewrite exchanges; none that it creates."""
    made = set(_made(rule.rewrite.statements))
    for action in rule.rewrite.statements:
        if isinstance(action, ast.Replace) and len(action.new) == 1 and isinstance(new := action.new[0], ast.ValueRef) \
                and new.name not in made:
            yield f"`%{action.old.name}` and `%{new.name}`", expressions.value(action.old), expressions.value(new)


def _float_check(floats: ast.Floats, root: int) -> CompiledCheck:
    """A check that the user allows what a rule does to floating-point numbers; integers are exact in every class."""
    names = ", ".join(floats.names)
    regroups = not REGROUPING.isdisjoint(floats.names)

    def allowed(env: Environment) -> bool | MatchFailure:
        op = env[root]
        floats = [element for result in op.results if is_floating(element := element_type(result))]
        if floats and not env[CONTEXT].allow_reassociation:
            return MatchFailure(f"floating-point numbers would change (the rule {names}), which is not allowed", op)
        narrow = None if env[CONTEXT].allow_narrow_range or not regroups else next(
            filter(has_narrow_range, floats), None)
        return True if narrow is None else MatchFailure(regrouped(narrow), op)
    return CompiledCheck(allowed, f"floats {names}")


# ---- from any matched op to the root


def _pattern_nodes(matching: MatchCompiler) -> tuple[PatternNode, ...]:
    visits = {v.node.number: v for v in matching.visits}
    nodes = []
    for visit in matching.visits:
        hops: list[Hop] = []
        step = visit
        # Ends: each step goes to the node a node was reached from, and the first is the root.
        while step.relation != "root":
            via = visits[step.via]
            hops.append(_hop(step, frozenset(via.node.pattern.names)))
            step = via
        nodes.append(PatternNode(visit.node.pattern.names, matching.op_slot(visit.node.number), tuple(hops)))
    return tuple(nodes)


def _hop(visit: Visit, names: frozenset[str]) -> Hop:
    """From an op of a pattern to the ops of the pattern it was reached from."""
    def readers(op: ir.Operation) -> Iterable[ir.Operation | None]:
        return (user for result in op.results for user in _readers(result, names))

    def definers(op: ir.Operation) -> Iterable[ir.Operation]:
        for operand in op.operands:
            owner = defining_op(operand)
            if owner is not None and owner.operation.name in names:
                yield owner.operation

    def sharers(op: ir.Operation) -> Iterable[ir.Operation | None]:
        return (user for operand in op.operands for user in _readers(operand, names))

    def holders(op: ir.Operation) -> Iterable[ir.Operation]:
        parent: Any = op.parent
        if parent is not None and parent.operation.name in names:
            yield parent.operation

    return {"operand": readers, "result": definers, "shared": sharers}.get(visit.relation, holders)


def _readers(value: ir.Value, names: frozenset[str]) -> Iterable[ir.Operation | None]:
    for use in value.uses:
        op = use.owner.operation
        yield op if op.name in names else None
