"""Checks a ``rewrite`` block."""

from collections.abc import Sequence
from typing import Any

from hlorewrite.rules.checks.expressions import ExpressionChecker
from hlorewrite.rules.checks.match import check_attribute_names, check_kind, check_op_name, check_region_name
from hlorewrite.rules.checks.scope import Problem, Scope, accepts
from hlorewrite.rules.dialects import signature
from hlorewrite.rules.syntax import ast


def check_rewrite(block: ast.Block, scope: Scope, expressions: ExpressionChecker,
                  kinds: Sequence[str]) -> list[Problem]:
    """The problems of a rewrite block.

    Args:
      block: the block.
      scope: the names bound by match and checks; created ops add theirs.
      expressions: checks expressions in that scope.
      kinds: the known kinds of reduction.
    """
    return _RewriteChecker(scope, expressions, kinds).actions(block.statements)


class _RewriteChecker:
    def __init__(self, scope: Scope, expressions: ExpressionChecker, kinds: Sequence[str]) -> None:
        self.scope = scope
        self.expressions = expressions
        self.kinds = kinds
        self.erased: set[str] = set()

    def actions(self, statements: Sequence[Any]) -> list[Problem]:
        problems: list[Problem] = []
        for statement in statements:
            problems += self._action(statement)
        return problems

    def _action(self, node: Any) -> list[Problem]:
        if isinstance(node, ast.Create):
            return self._create(node)
        if isinstance(node, ast.Let):
            return self.expressions.check_statement(node)
        if isinstance(node, ast.Replace):
            problems = self._value(node.old) + [p for v in node.new for p in self._value(v)]
            if node.old.index is None and self.scope.types.get(f"%{node.old.name}") == "Op":
                self.erased.add(node.old.name)
            return problems
        if isinstance(node, ast.Erase):
            return [p for name in node.names for p in self._erase(name, node.span)]
        if isinstance(node, ast.SetAttributes):
            return self._op(node.op, node.span) + self._assignments(self.scope.op_names.get(node.op, ()),
                                                                    node.attributes)
        if isinstance(node, ast.SetOperand):
            position = [] if isinstance(node.position, int) else self._expression(
                ast.Position(node.position, span=node.span))
            return self._op(node.op, node.span) + position + self._value(node.value)
        return self._op(node.anchor, node.span) + self.actions(node.body)

    def _erase(self, name: str, span: ast.Span) -> list[Problem]:
        problems = self._op(name, span)
        if name in self.erased:
            problems.append(Problem(f"`%{name}` is gone already", "`replace` erases the op it replaces", span))
        self.erased.add(name)
        return problems

    def _create(self, node: ast.Create) -> list[Problem]:
        problems = check_op_name(node.op, node.span)
        problems += [p for operand in node.operands for p in self._value(operand)]
        problems += self._assignments((node.op,), node.attributes)
        problems += [p for region in node.regions for p in self._region(node.op, region)]
        for wanted in node.types:
            kind, type_problems = self.expressions.type_in(wanted)
            problems += type_problems
            if not accepts("Type", kind):
                problems.append(Problem(f"`->` needs a type, but this is of type {kind}", "write `-> type(%x)`",
                                        wanted.span))
        problems += self._op(node.like, node.span) if node.like else []
        problems += self._results(node)
        return problems

    def _results(self, node: ast.Create) -> list[Problem]:
        problems: list[Problem] = []
        for result in node.results:
            if f"%{result}" in self.scope.types:
                problems.append(Problem(f"`%{result}` is bound already", "give the new op another name", node.span))
            self.scope.bind(f"%{result}", "Op" if len(node.results) == 1 else "Value")
        if len(node.results) == 1:
            self.scope.op_names[node.results[0]] = (node.op,)
        op = signature(node.op)
        if op is not None and op.regions and not node.types and not node.like:
            problems.append(Problem(f"the result type of `{node.op}` is not inferred",
                                    "write `-> type(%x)` or `like %op`", node.span))
        return problems

    def _region(self, op: str, region: ast.Reduces) -> list[Problem]:
        known = signature(op)
        problems = check_region_name(known, region.region, region.span) if known else []
        if isinstance(region.kind, str):
            return problems + check_kind(region.kind, self.kinds, region.span)
        return problems + self._expression(region.kind)

    def _assignments(self, op_names: Sequence[str], assignments: Sequence[ast.Assignment]) -> list[Problem]:
        problems: list[Problem] = []
        for op in (s for s in map(signature, op_names) if s is not None):
            problems += check_attribute_names(op, [(a.name, a.span) for a in assignments])
        return problems + [p for a in assignments for p in self._expression(a.value)]

    def _expression(self, node: Any) -> list[Problem]:
        return self.expressions.type_in(node)[1]

    def _value(self, node: Any) -> list[Problem]:
        if isinstance(node, ast.Spread):
            node = ast.ValueRef(str(node.name), span=node.span)
        kind, problems = self.expressions.type_in(node)
        if not accepts("Value", kind) and not accepts("Values", kind):
            problems.append(Problem(f"a value is needed, but this is of type {kind}", "write `%x`", node.span))
        return problems

    def _op(self, name: str, span: ast.Span) -> list[Problem]:
        kind, problems = self.expressions.type_in(ast.ValueRef(name, span=span))
        if kind not in ("Op", "Any"):
            problems.append(Problem(f"an op is needed, `%{name}` is of type {kind}",
                                    "name the op, not its result", span))
        return problems
