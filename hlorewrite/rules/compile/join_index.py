"""Conditions on two ops that share an operand, and an index that yields only pairs which may satisfy them.

The readers of one value form quadratically many pairs. If a rule requires that a key is equal for both ops, or that one
op's result can be read at the other (``only_if_equal``, ``only_if_available``), partners are looked up.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hlorewrite.ir.binding import ir
from hlorewrite.rules.compile.checks import NativeFunction
from hlorewrite.rules.compile.environment import CONTEXT, Environment
from hlorewrite.rules.register import NATIVES, PartnerKey
from hlorewrite.rules.syntax import ast

Candidates = Callable[[Environment], Iterator[ir.Operation]]


@dataclass(frozen=True)
class PairCondition:
    """A rule's requirements on two ops.

    Attributes:
      first: the name of one op.
      second: the name of the other.
      key: the function whose value is equal for both; None without such a requirement.
      available: whether the results of the first can be read at the second.
    """

    first: str
    second: str
    key: PartnerKey | None = None
    available: bool = False


def pair_conditions(rule: ast.Rule, natives: Mapping[str, NativeFunction]) -> list[PairCondition]:
    """The conditions of a rule that hold only for pairs that an index can find.

    Args:
      rule: the rule.
      natives: the natives it may call.
    """
    found: list[PairCondition] = []
    for block in (rule.where, rule.legal):
        for statement in block.statements if block else ():
            call = statement.expression if isinstance(statement, ast.Condition) else None
            if not isinstance(call, ast.Call) or len(call.arguments) != 2:
                continue
            function = natives[call.function].function
            names = [each.name for each in call.arguments if isinstance(each, ast.ValueRef) and each.index is None]
            if len(names) == 2 and (function in NATIVES.keys or function in NATIVES.availability):
                found.append(PairCondition(names[0], names[1], NATIVES.keys.get(function),
                                           function in NATIVES.availability))
    return found


def together(conditions: Sequence[PairCondition], wanted: Sequence[str], known: Sequence[str]) -> PairCondition | None:
    """Combines the conditions on one op and another; None when the other need not follow it.

    Args:
      conditions: those of the rule.
      wanted: the names of the results of the op that is looked for; one stands for the op.
      known: the names of the results of the known op.
    """
    if len(wanted) != 1 or len(known) != 1:
        return None
    op, other = wanted[0], known[0]
    key = next((each.key for each in conditions if each.key and {each.first, each.second} == {op, other}), None)
    available = any(each.available and (each.first, each.second) == (op, other) for each in conditions)
    return PairCondition(op, other, key or _any_key, True) if available else None


def indexed(every: Candidates, condition: PairCondition | None, names: frozenset[str], known: int, shared: int
            ) -> Candidates:
    """Looks up candidates in an index; returns one that does not match if the index contains none.

    Args:
      every: all candidates.
      condition: the requirement on them; None keeps all.
      names: the op names they may have.
      known: the slot of the op that is known.
      shared: the slot of the value that both read.
    """
    if condition is None or condition.key is None:
        return every
    key, pattern = condition.key, object()

    def candidates(env: Environment) -> Iterator[ir.Operation]:
        context = env[CONTEXT]
        if context.every_partner:
            yield from every(env)
            return
        index = context.readers(pattern, names, key)
        found = None
        for found in index.before(env[shared], env[known]):
            yield found
        other = index.other(env[shared], env[known]) if found is None else None
        if other is not None:
            yield other
    return candidates


def _any_key(context: object, op: ir.Operation) -> str:
    return op.name
