"""Checks what a rule file means: names, kinds, arity, ops and attributes, unbound variables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hlorewrite.errors import RuleCheckError, did_you_mean
from hlorewrite.ops.reducers import OP_OF_KIND
from hlorewrite.rules.checks import match
from hlorewrite.rules.checks.declared import check_declared, check_meaning
from hlorewrite.rules.checks.expressions import TYPES, ExpressionChecker, Problem, Scope, accepts
from hlorewrite.rules.dialects import signature
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.diagnose import excerpt
from hlorewrite.rules.syntax.expand import expanded, variable_of

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
    problems = match.check_match(rule.match, scope, KINDS)
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
    problems = match.check_match(fact.match, scope, KINDS)
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


# ---- checks a ``rewrite`` block


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
        problems = match.check_op_name(node.op, node.span)
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
        problems = match.check_region_name(known, region.region, region.span) if known else []
        if isinstance(region.kind, str):
            return problems + match.check_kind(region.kind, self.kinds, region.span)
        return problems + self._expression(region.kind)

    def _assignments(self, op_names: Sequence[str], assignments: Sequence[ast.Assignment]) -> list[Problem]:
        problems: list[Problem] = []
        for op in (s for s in map(signature, op_names) if s is not None):
            problems += match.check_attribute_names(op, [(a.name, a.span) for a in assignments])
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


# ---- checks families of rules and ``sole`` ops as written; their expansions are checked like any rule


def check_short_forms(item: ast.Item, natives: Mapping[str, ast.Native]) -> list[Problem]:
    """The problems of a rule's or fact's short forms.

    Args:
      item: an item of a file, as parsed.
      natives: the natives the file declares and imports.

    Example:
      >>> from hlorewrite.rules.syntax.parser import parse
      >>> rule = parse('rule a { match { root %r = $op(%x, %x); } types any; floats exact; '
      ...              'rewrite { replace %r with %x; } }').items[0]
      >>> [problem.what for problem in check_short_forms(rule, {})]
      ['`$op` is an op only in a family of rules']
    """
    if isinstance(item, ast.Linear):
        named = item.name.startswith("$")
        return [Problem("a fact is about one op", "name the op", item.name_span)] if named else []
    if not isinstance(item, ast.Rule):
        return []
    return [*_variables(item), *_soles(item, natives)]


def _variables(rule: ast.Rule) -> Iterator[Problem]:
    variable = variable_of(rule)
    used = [(name, span) for name, span in _ops(rule) if name.startswith("$")]
    for name, span in used:
        if name != f"${variable}":
            yield Problem(f"`{name}` is an op only in a family of rules", f"name the rule `{name}-...`", span)
    if variable is not None and not used:
        yield Problem(f"no op of the family is `${variable}`", f"write `${variable}(%a, %b)` in place of the op "
                      "that combines two elements, or name the rule without `$`", rule.name_span)
    if rule.floats and rule.floats.names[0].startswith("$") and rule.floats.names != (f"${variable}",):
        yield Problem(f"`{rule.floats.names[0]}` is not a reduction of a family",
                      "write a class: `exact`, `reassociates`, `rescales`, `widens`", rule.floats.span)


def _ops(rule: ast.Rule) -> Iterator[tuple[str, ast.Span]]:
    for pattern in _patterns(rule.match.statements):
        yield from ((name, pattern.span) for name in pattern.names)
    yield from ((made.op, made.span) for made in _made(rule.rewrite.statements))


def _patterns(statements: Sequence[Any]) -> Iterator[ast.OpPattern]:
    for pattern in statements:
        if isinstance(pattern, ast.OpPattern):
            yield pattern
            for region in pattern.regions:
                yield from _patterns(region.body) if isinstance(region, ast.BlockPattern) else ()


def _made(actions: Sequence[Any]) -> Iterator[ast.Create]:
    for action in actions:
        if isinstance(action, ast.Create):
            yield action
        elif isinstance(action, ast.At):
            yield from _made(action.body)


def _soles(rule: ast.Rule, natives: Mapping[str, ast.Native]) -> Iterator[Problem]:
    outside = [s for s in rule.match.statements if isinstance(s, ast.OpPattern)]
    for pattern in _patterns(rule.match.statements):
        if not pattern.sole:
            continue
        if not any(pattern is other for other in outside):
            yield Problem("a `sole` op must be in the block of the root, but this one is in a region",
                          "write `one_use(...)` in `where`", pattern.span)
        elif len(pattern.results) != 1:
            yield Problem("a `sole` op has one name", "name the op, not its results", pattern.span)
        elif not {"one_use", "same_block"} <= set(natives):
            yield Problem("`sole` needs the natives `one_use` and `same_block`", 'write `import "natives.hlopat";`',
                          pattern.span)
