"""Checks what a rule or fact declares: its element types and its float class, and the meanings of unknown ops."""

from collections.abc import Iterator, Mapping
from typing import Any

from hlorewrite.errors import did_you_mean
from hlorewrite.rules.checks.expressions import Problem
from hlorewrite.rules.dialects import signature
from hlorewrite.rules.syntax import ast

FLOAT_CLASSES = ("exact", "reassociates", "rescales", "widens")
"""What a rule may do to floating-point numbers.

``exact``: each result is bit for bit what it was. ``reassociates``: the same numbers are added or multiplied in
another order. ``rescales``: numbers are rounded before they are added instead of after, or the other way round.
``widens``: a sum is taken in a type that represents more.
"""
REGROUPING = frozenset({"reassociates", "rescales"})
"""The classes in which a rewrite may newly overflow or underflow a type of narrow range."""


def check_declared(item: ast.Rule | ast.Linear, natives: Mapping[str, ast.Native]) -> list[Problem]:
    """The problems of a rule's or fact's ``types`` and ``floats``.

    Args:
      item: the rule or fact.
      natives: the declared natives.
    """
    problems: list[Problem] = []
    if item.types is None:
        problems.append(Problem(f"`{item.name}` does not state its element types",
                                f"add `types {_relation(item)}`, or `types any;` if they do not matter",
                                item.name_span))
    if item.floats is None:
        problems.append(Problem(f"`{item.name}` does not state its effect on floating-point numbers",
                                "add `floats exact;` if each result is bit for bit the same, or "
                                "`floats reassociates;`, `rescales`, `widens`", item.name_span))
    else:
        problems += _check_floats(item.floats)
    for statement in item.types.statements if item.types else ():
        if not isinstance(statement, ast.Condition):
            problems.append(Problem("`types` contains only relations of element types", "move this to `legal`",
                                    statement.span))
            continue
        problems += [Problem(f"`{_spelled(part)}` says nothing about element types",
                             "call a `native relation`, such as `same(%a, %r)`, and move the rest to `legal`",
                             statement.span) for part in _others(statement.expression, natives)]
    return problems


def _relation(item: ast.Rule | ast.Linear) -> str:
    """A relation to suggest to the user: all operands and the root have one element type."""
    root = next((s for s in item.match.statements if isinstance(s, ast.OpPattern) and s.root), None)
    if root is None:
        return "{ same(%x, %r); }"
    values = [f"%{o.name}" for o in root.operands if isinstance(o, ast.ValueRef) and o.name != "_"]
    return f"{{ same({', '.join([*values, f'%{root.results[0]}'])}); }}"


def _check_floats(floats: ast.Floats) -> list[Problem]:
    problems = [Problem(f"there is no class of floats `{name}`", did_you_mean(name, FLOAT_CLASSES), floats.span)
                for name in floats.names if name not in FLOAT_CLASSES]
    if "exact" in floats.names and len(floats.names) > 1:
        problems.append(Problem("an exact rule does nothing else to floats", "leave out `exact`", floats.span))
    return problems


def _others(node: Any, natives: Mapping[str, ast.Native]) -> Iterator[Any]:
    """The parts of an expression that are not a relation: other calls, values, numbers."""
    if isinstance(node, ast.Binary) and node.operator in ("and", "or"):
        yield from _others(node.left, natives)
        yield from _others(node.right, natives)
    elif isinstance(node, ast.Unary) and node.operator == "not":
        yield from _others(node.operand, natives)
    elif not isinstance(node, ast.Call) or (node.function in natives and natives[node.function].kind != "relation"):
        yield node


def _spelled(node: Any) -> str:
    from hlorewrite.rules.syntax.printer import expression
    return expression(node)


# ---- meanings


def check_meaning(meaning: ast.Meaning, natives: Mapping[str, ast.Native]) -> list[Problem]:
    """The problems of a declared meaning of an op.

    Args:
      meaning: the declaration.
      natives: the declared natives.
    """
    problems: list[Problem] = []
    if signature(meaning.op) is None:
        problems.append(Problem(f"there is no op `{meaning.op}`", "name an op of this jaxlib", meaning.span))
    names = {o.name for o in meaning.operands}
    used = [*meaning.data, *meaning.selectors, *_values(meaning.expression)]
    problems += [Problem(f"`%{value.name}` is not an operand of {meaning.op} here",
                         did_you_mean(str(value.name), [str(n) for n in names]), value.span)
                 for value in used if value.name not in names]
    problems += [Problem(f"`{_spelled(part)}` is not known to the prover",
                         f"use {', '.join(SCALAR_FUNCTIONS)}, numbers and + - * /", meaning.span)
                 for part in _unknown(meaning.expression)]
    return problems


SCALAR_FUNCTIONS = ("max", "min", "convert")
"""Functions that the expression of a meaning may call."""


def _values(node: Any) -> Iterator[ast.ValueRef]:
    if isinstance(node, ast.ValueRef):
        yield node
    for part in ast.parts_of(node):
        yield from _values(part)


def _unknown(node: Any) -> Iterator[Any]:
    if node is None:
        return
    known = (isinstance(node, ast.ValueRef) or (isinstance(node, ast.Literal) and type(node.value) is int)
             or (isinstance(node, ast.Call) and node.function in SCALAR_FUNCTIONS)
             or (isinstance(node, ast.Unary) and node.operator == "-")
             or (isinstance(node, ast.Binary) and node.operator in ("+", "-", "*", "/")))
    if not known:
        yield node
        return
    for part in ast.parts_of(node):
        yield from _unknown(part)
