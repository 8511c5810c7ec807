"""Checks what a rule file means: names, kinds, arity, ops and attributes, unbound variables."""

from collections.abc import Iterable, Mapping, Sequence

from hlorewrite.errors import RuleCheckError, did_you_mean
from hlorewrite.ops.reducers import OP_OF_KIND
from hlorewrite.rules.checks.declared import check_declared, check_meaning
from hlorewrite.rules.checks.expressions import ExpressionChecker
from hlorewrite.rules.checks.match import check_match
from hlorewrite.rules.checks.rewrite import check_rewrite
from hlorewrite.rules.checks.scope import TYPES, Problem, Scope
from hlorewrite.rules.checks.short_forms import check_short_forms
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.diagnose import excerpt
from hlorewrite.rules.syntax.expand import expanded

KINDS = tuple(OP_OF_KIND)


def check(file: ast.File, natives: Mapping[str, ast.Native] | None = None,
          taken: Iterable[str] = ()) -> list[Problem]:
    """All problems of a file.

    Args:
      file: a syntax tree.
      natives: the natives other files declare for it.
      taken: names of rules in files that are loaded with it.

    Returns:
      The problems, in the order of the file; empty when there is none.

    Example:
      >>> from hlorewrite.rules.syntax.parser import parse
      >>> [p.what for p in check(parse('rule a { match { root %r = stablehlo.negate(%x); } '
      ...                              'types any; floats exact; rewrite { replace %r with %y; } }'))]
      ['the value `%y` is not bound']
    """
    known = dict(natives or {})
    problems: list[Problem] = []
    names = set(taken)
    for item in file.items:
        if isinstance(item, ast.Native):
            problems += _check_native(item, known)
            known[item.name] = item
    problems += [problem for item in file.items for problem in check_short_forms(item, known)]
    file = expanded(file)
    for item in file.items:
        if isinstance(item, ast.Meaning):
            problems += check_meaning(item, known)
        if isinstance(item, ast.Rule | ast.Linear):
            if item.name in names:
                problems.append(Problem(f"there are two rules named `{item.name}`", "rename one", item.name_span))
            names.add(item.name)
            problems += _check_rule(item, known) if isinstance(item, ast.Rule) else _check_linear(item, known)
    return sorted(dict.fromkeys(problems), key=lambda p: (p.span.line, p.span.column))


def raise_first(problems: Sequence[Problem], text: str, name: str) -> None:
    """Raises the first problem as an error with the source line; does nothing when there is none.

    Raises:
      RuleCheckError: with file, line, column and caret.
    """
    if not problems:
        return
    first, more = problems[0], len(problems) - 1
    span = first.span
    length = span.end_column - span.column if span.end_line == span.line else 1
    hint = first.hint + (f" (and {more} more to correct)" if more else "")
    raise RuleCheckError(first.what, location=f"{name}:{span.line}:{span.column}", hint=hint,
                         excerpt=excerpt(text, span.line, span.column, length))


def _check_native(native: ast.Native, known: Mapping[str, ast.Native]) -> list[Problem]:
    problems = []
    old = known.get(native.name)
    if old is not None and _shape(old) != _shape(native):
        problems.append(Problem(f"`{native.name}` is declared twice, differently", "import the first one or rename",
                                native.span))
    for parameter in native.parameters:
        if not parameter.type[0].isupper():
            problems.append(Problem(f"`{parameter.type}` is not a type", did_you_mean(parameter.type.title(), TYPES),
                                    parameter.span))
    if any(p.variadic for p in native.parameters[:-1]):
        problems.append(Problem("only the last parameter can be variadic", "move it to the end", native.span))
    if native.kind == "relation" and any(p.type != "Value" for p in native.parameters):
        problems.append(Problem("a relation is about the element types of values", "give its parameters type Value",
                                native.span))
    if native.kind != "analysis" and native.result is not None:
        problems.append(Problem(f"a {native.kind} returns True or a message, so it declares no result type",
                                "declare an `analysis`", native.span))
    if native.kind == "analysis" and native.result is None:
        problems.append(Problem("an analysis has a result type", "add `-> Type`", native.span))
    return problems


def _shape(native: ast.Native) -> tuple[object, ...]:
    return native.kind, native.parameters, native.result


def _check_rule(rule: ast.Rule, natives: Mapping[str, ast.Native]) -> list[Problem]:
    scope = Scope()
    problems = check_match(rule.match, scope, KINDS)
    expressions = ExpressionChecker(scope, natives)
    problems += check_declared(rule, natives)
    for block in (rule.where, rule.types, rule.legal, rule.cost):
        for statement in block.statements if block else ():
            if isinstance(statement, ast.Condition | ast.Let):
                problems += expressions.check_statement(statement)
    problems += check_rewrite(rule.rewrite, scope, expressions, KINDS)
    return problems


def _check_linear(fact: ast.Linear, natives: Mapping[str, ast.Native]) -> list[Problem]:
    scope = Scope()
    problems = check_match(fact.match, scope, KINDS)
    if len(fact.match.statements) != 1:
        problems.append(Problem("a linear fact is about one op", "keep the root op only", fact.match.span))
    problems += _check_linear_operands(fact)
    for kind in fact.kinds.names:
        if kind not in KINDS and kind != "any":
            problems.append(Problem(f"`{kind}` is not a kind of reduction", did_you_mean(kind, (*KINDS, "any")),
                                    fact.kinds.span))
    expressions = ExpressionChecker(scope, natives)
    problems += check_declared(fact, natives)
    for block in (fact.types, fact.legal):
        for statement in block.statements if block else ():
            if isinstance(statement, ast.Condition | ast.Let):
                problems += expressions.check_statement(statement)
    return problems


def _check_linear_operands(fact: ast.Linear) -> list[Problem]:
    root = fact.match.statements[0]
    if not isinstance(root, ast.OpPattern):
        return []
    spreads = {o.name for o in root.operands if isinstance(o, ast.Spread) and o.name}
    values = {o.name for o in root.operands if isinstance(o, ast.ValueRef)}
    problems = []
    for named in fact.operands.operands:
        wanted = spreads if isinstance(named, ast.Spread) else values
        sign = "...%" if isinstance(named, ast.Spread) else "%"
        if named.name not in wanted:
            problems.append(Problem(f"`{sign}{named.name}` is not an operand of the op",
                                    did_you_mean(str(named.name), wanted), named.span))
    return problems
