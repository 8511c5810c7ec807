"""Checks families of rules and ``sole`` ops as written; their expansions are checked like any rule."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hlorewrite.rules.checks.scope import Problem
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.expand import variable_of


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
