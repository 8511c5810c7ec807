"""Expands two short forms of the rule language: families of rules, and ``sole`` ops.

A family is a rule whose name begins with ``$op-``. It stands for one rule for each kind of reduction: ``reduces($op)``
is that kind, and ``$op`` in the place of an op is the op that combines two elements, ``stablehlo.add`` for a sum. In
the name and the doc lines ``$op`` is that op's name.

``sole %r = ...`` says that nothing but the match reads the op, and that it runs as often as the root.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from hlorewrite.ops.reducers import OP_OF_KIND
from hlorewrite.rules.syntax import ast

EXACT_KINDS = ("max", "min", "and", "or")
"""Reductions whose result does not depend on the order of their operands, for floating-point numbers too."""


def expanded(file: ast.File) -> ast.File:
    """A file without short forms.

    Args:
      file: a syntax tree, as parsed.

    Returns:
      A tree of the same items, with each family replaced by its rules. The conditions of ``sole`` ops come first in
      ``where``, with the source position of their op.

    Example:
      >>> from hlorewrite.rules.syntax.parser import parse
      >>> family = parse('rule $op-twice { match { root %s = $op(%a, %a); } types any; floats $op; '
      ...                'rewrite { %t = $op(%a, %a); replace %s with %t; } }')
      >>> [rule.name for rule in expanded(family).items]
      ['add-twice', 'multiply-twice', 'maximum-twice', 'minimum-twice', 'and-twice', 'or-twice']
    """
    rules = (rule for item in file.items for rule in (_members(item) if isinstance(item, ast.Rule) else (item,)))
    return replace(file, items=tuple(_with_conditions(r) if isinstance(r, ast.Rule) else r for r in rules))


def variable_of(rule: ast.Rule) -> str | None:
    """The ``op`` of a family named ``$op-...``; None for a separate rule."""
    return rule.name[1:].partition("-")[0] if rule.name.startswith("$") else None


def as_written(file: ast.File) -> dict[str, ast.Rule | ast.Linear]:
    """The rules and facts of a file by name, as written: a family stands under the name of each of its rules."""
    return {member.name: item for item in file.items if isinstance(item, ast.Rule | ast.Linear)
            for member in (_members(item) if isinstance(item, ast.Rule) else (item,))}


# ---- families


def _members(rule: ast.Rule) -> Iterator[ast.Rule]:
    variable = variable_of(rule)
    if variable is None:
        yield rule
        return
    for kind, op in OP_OF_KIND.items():
        yield _member(rule, variable, kind, op)


def _member(rule: ast.Rule, variable: str, kind: str, op: str) -> ast.Rule:
    short = op.removeprefix("stablehlo.")

    def changed(node: Any) -> Any:
        if isinstance(node, ast.OpPattern) and node.names == (f"${variable}",):
            return replace(node, names=(op,))
        if isinstance(node, ast.Create) and node.op == f"${variable}":
            return replace(node, op=op)
        if isinstance(node, ast.Floats) and node.names == (f"${variable}",):
            return replace(node, names=("exact" if kind in EXACT_KINDS else "reassociates",))
        if isinstance(node, ast.Reduces) and isinstance(node.kind, ast.Literal):  # its variable is changed already
            return replace(node, kind=kind)
        return ast.Literal(kind, span=node.span) if node == ast.AttributeVariable(variable) else node
    docs = tuple(re.sub(rf"\${variable}\b", short, line) for line in rule.docs)
    return replace(_everywhere(rule, changed), name=short + rule.name[len(variable) + 1:], docs=docs)


def _everywhere(node: Any, changed: Callable[[Any], Any]) -> Any:
    """A tree with each node changed, from the leaves up."""
    if isinstance(node, tuple):
        return tuple(_everywhere(part, changed) for part in node)
    if not isinstance(node, ast.SyntaxNode):
        return node
    new = {f.name: _everywhere(getattr(node, f.name), changed) for f in fields(node)}
    return changed(replace(node, **new))


# ---- ops that only the match reads


def _with_conditions(rule: ast.Rule) -> ast.Rule:
    patterns = [s for s in rule.match.statements if isinstance(s, ast.OpPattern)]
    soles = [p for p in patterns if p.sole and len(p.results) == 1]
    root = next((p for p in patterns if p.root), None)
    if root is None or not soles:
        return rule
    conditions = [_condition("one_use", (p,), "is read elsewhere too") for p in soles]
    conditions += [_condition("same_block", (p, root), "runs in another region") for p in soles]
    match = replace(rule.match, statements=tuple(replace(s, sole=False) if s in soles else s
                                                 for s in rule.match.statements))
    where = rule.where or ast.Block("where", (), span=rule.match.span)
    return replace(rule, match=match, where=replace(where, statements=(*conditions, *where.statements)))


def _condition(native: str, patterns: Sequence[ast.OpPattern], what: str) -> ast.Condition:
    span, first = patterns[0].span, patterns[0]
    called = ast.Call(native, tuple(ast.ValueRef(p.results[0], span=span) for p in patterns), span=span)
    name = first.names[0].rpartition(".")[2].replace("_", "-") if len(first.names) == 1 else "op"
    return ast.Condition(called, f"the {name} %{first.results[0]} {what}", span=span)
