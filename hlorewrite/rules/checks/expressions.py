"""Checks expressions: names of a rule and their kinds, calls of natives, types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hlorewrite.errors import did_you_mean
from hlorewrite.rules.syntax import ast

# ---- the names of a rule and the kind of each


# Types of natives' parameters and answers; other capitalised names are opaque and match themselves only.
TYPES = ("Any", "Attr", "Bool", "Float", "Int", "Ints", "Kind", "Op", "String", "Type", "Value", "Values")
_SIGILS = {"%": "value", "$": "attribute", "@": "position", "": "name"}
# Implicit conversions: from an op to its only result, from an integer to a number.
_ACCEPTED = {("Op", "Value"), ("Int", "Float"), ("Kind", "String"), ("String", "Kind"), ("Ints", "Attr")}


def accepts(wanted: str, given: str) -> bool:
    """Whether a value of one type may be passed where another type is expected."""
    return wanted == given or "Any" in (wanted, given) or (given, wanted) in _ACCEPTED


@dataclass
class Scope:
    """Names with their sigils (``%x``, ``$g``, ``@i``, ``n``) and their types.

    Attributes:
      types: the type of each name.
      op_names: for names of ops, the op names they may have.
      used: the names that were read.
    """

    types: dict[str, str] = field(default_factory=dict)
    op_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def bind(self, name: str, kind: str) -> str | None:
        """Gives a name a type; returns a sentence when it already has another."""
        if name == "%_":
            return None
        old = self.types.setdefault(name, kind)
        if old != kind and {old, kind} != {"Op", "Value"}:
            return f"`{name}` is a {old} and is used as a {kind}"
        return None

    def missing(self, name: str) -> tuple[str, str] | None:
        """A sentence and a hint when a name is not bound."""
        if name == "%_":
            return "`%_` matches anything and cannot be read", "give the value a name"
        self.used.add(name)
        if name in self.types:
            return None
        sigil = name[0] if name[0] in "%$@" else ""
        same = [n for n in self.types if (n[0] if n[0] in "%$@" else "") == sigil]
        return f"the {_SIGILS[sigil]} `{name}` is not bound", did_you_mean(name, same)


@dataclass(frozen=True)
class Problem:
    """Something wrong in a rule file."""

    what: str
    hint: str
    span: ast.Span


# ---- expressions


_COMPARISONS = frozenset({"==", "!=", "<=", ">=", "<", ">"})


class ExpressionChecker:
    """Finds types and problems of expressions.

    Args:
      scope: the names that are bound; ``let`` adds to it.
      natives: the declared natives.
    """

    def __init__(self, scope: Scope, natives: Mapping[str, ast.Native]) -> None:
        self.scope = scope
        self.natives = natives
        self.problems: list[Problem] = []

    def check_statement(self, statement: ast.Condition | ast.Let) -> list[Problem]:
        """The problems of a check or ``let``; a ``let`` binds its names."""
        self.problems = []
        kind = self.type_of(statement.expression)
        if isinstance(statement, ast.Condition) and not accepts("Bool", kind):
            self._report(f"a check is true or false, but this is of type {kind}", "compare it with something",
                         statement.span)
        if isinstance(statement, ast.Let):
            self._bind(statement, kind)
        return self.problems

    def _bind(self, statement: ast.Let, kind: str) -> None:
        for name in statement.names:
            if name in self.scope.types:
                self._report(f"`{name}` is bound already", "use another name", statement.span)
            self.scope.bind(name, kind if len(statement.names) == 1 else "Any")

    def type_in(self, node: Any) -> tuple[str, list[Problem]]:
        """The type of an expression outside checks, with its problems."""
        self.problems = []
        return self.type_of(node), self.problems

    def type_of(self, node: Any) -> str:
        """The type of an expression; problems are collected on the way."""
        if isinstance(node, ast.Literal):
            return _literal_type(node.value)
        if isinstance(node, ast.Mlir):
            return "Any"
        if isinstance(node, ast.ListOf):
            kinds = {self.type_of(item) for item in node.items}
            return "Ints" if kinds <= {"Int"} else "Any"
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Unary):
            return self._operator(node.operator, (node.operand,), node.span)
        if isinstance(node, ast.Binary):
            return self._operator(node.operator, (node.left, node.right), node.span)
        return self._variable(node)

    def _variable(self, node: Any) -> str:
        if isinstance(node, ast.ValueRef):
            return self._value(node)
        sigil = {ast.AttributeVariable: "$", ast.Position: "@", ast.Name: ""}[type(node)]
        return self._lookup(f"{sigil}{node.name}", node.span)

    def _value(self, node: ast.ValueRef) -> str:
        kind = self._lookup(f"%{node.name}", node.span)
        if node.index is None:
            return kind
        if isinstance(node.index, str):
            self._lookup(f"@{node.index}", node.span)
        if kind not in ("Op", "Any"):
            self._report(f"`%{node.name}` is not an op, so it has no results to choose from", "leave out the `#`",
                         node.span)
        return "Value"

    def _lookup(self, name: str, span: ast.Span) -> str:
        missing = self.scope.missing(name)
        if missing is not None:
            self._report(*missing, span)
            return "Any"
        return self.scope.types[name]

    def _operator(self, operator: str, operands: tuple[Any, ...], span: ast.Span) -> str:
        kinds = [self.type_of(o) for o in operands]
        if operator in ("not", "and", "or"):
            wanted, result = "Bool", "Bool"
        elif operator in ("==", "!="):
            wanted, result = "Any", "Bool"
        elif operator in _COMPARISONS:
            wanted, result = "Float", "Bool"
        else:
            wanted = "Float"
            result = "Int" if operator != "/" and all(k == "Int" for k in kinds) else "Float"
        for kind in kinds:
            if not accepts(wanted, kind):
                self._report(f"`{operator}` needs {'truth values' if wanted == 'Bool' else 'numbers'}, "
                             f"but this is of type {kind}", "call a native that returns one", span)
        return result

    def _call(self, node: ast.Call) -> str:
        native = self.natives.get(node.function)
        given = [self._argument(a) for a in node.arguments]
        if native is None:
            self._report(f"there is no predicate or analysis `{node.function}`",
                         did_you_mean(node.function, self.natives) + "; natives are declared with `native` or imported",
                         node.span)
            return "Any"
        self._check_arguments(native, given, node)
        return "Bool" if native.kind != "analysis" else native.result or "Any"

    def _argument(self, argument: Any) -> str:
        if isinstance(argument, ast.Spread):
            return "..." + self._lookup(f"%{argument.name}", argument.span)
        return self.type_of(argument)

    def _check_arguments(self, native: ast.Native, given: list[str], node: ast.Call) -> None:
        parameters = list(native.parameters)
        variadic = parameters.pop() if parameters and parameters[-1].variadic else None
        if len(given) < len(parameters) or (variadic is None and len(given) > len(parameters)):
            names = ", ".join(("..." if p.variadic else "") + p.name for p in native.parameters)
            self._report(f"`{native.name}({names})` is given {len(given)} "
                         f"argument{'' if len(given) == 1 else 's'}", "pass the arguments that it declares", node.span)
            return
        wanted = parameters + [variadic] * (len(given) - len(parameters)) if variadic else parameters
        for parameter, kind, argument in zip(wanted, given, node.arguments, strict=True):
            single = "Value" if kind == "...Values" else kind.removeprefix("...")
            if parameter is not None and not accepts(parameter.type, single):
                self._report(f"`{native.name}` expects {parameter.name} of type {parameter.type}, "
                             f"but this is of type {single}", "pass something else", argument.span)

    def _report(self, what: str, hint: str, span: ast.Span) -> None:
        self.problems.append(Problem(what, hint, span))


def _literal_type(value: Any) -> str:
    kinds: dict[type, str] = {bool: "Bool", int: "Int", float: "Float", str: "String", tuple: "Ints"}
    return kinds[type(value)]
