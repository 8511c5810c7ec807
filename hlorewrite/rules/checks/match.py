"""Checks a ``match`` block: ops, operands, attributes, regions; binds its names."""

from collections.abc import Sequence

from hlorewrite.errors import did_you_mean
from hlorewrite.rules.checks.expressions import Problem, Scope
from hlorewrite.rules.dialects import DIALECTS, OpSignature, op_names, signature
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.pattern_graph import unreachable


def check_match(block: ast.Block, scope: Scope, kinds: Sequence[str]) -> list[Problem]:
    """The problems of a match block.

    Args:
      block: the block.
      scope: receives the names the block binds.
      kinds: the known kinds of reduction.
    """
    patterns = [s for s in block.statements if isinstance(s, ast.OpPattern)]
    problems: list[Problem] = []
    for pattern in _with_nested(patterns):
        problems += _bind_results(pattern, scope)
    for pattern in _with_nested(patterns):
        problems += _check_op(pattern, scope, kinds)
    roots = [p for p in patterns if p.root]
    nested_roots = [p for p in _with_nested(patterns) if p.root and p not in patterns]
    if len(roots) != 1 or nested_roots:
        problems.append(Problem(f"a match block has one `root` op, but this one has {len(roots) + len(nested_roots)}",
                                "mark the op the rule is tried on with `root`, outside regions", block.span))
    elif not problems:
        problems += [Problem(f"`%{p.results[0]}` is not connected to the root op",
                             "let it share a value with an op that is", p.span) for p in unreachable(patterns)]
    return problems


def _with_nested(patterns: Sequence[ast.OpPattern]) -> list[ast.OpPattern]:
    nested: list[ast.OpPattern] = []
    for pattern in patterns:
        nested.append(pattern)
        for region in pattern.regions:
            if isinstance(region, ast.BlockPattern):
                nested += _with_nested(region.body)
    return nested


def _bind_results(pattern: ast.OpPattern, scope: Scope) -> list[Problem]:
    problems = []
    for result in pattern.results:
        if f"%{result}" in scope.types:
            problems.append(Problem(f"two ops are named `%{result}`", "rename one", pattern.span))
        scope.bind(f"%{result}", "Op" if len(pattern.results) == 1 else "Value")
    if len(pattern.results) == 1:
        scope.op_names[pattern.results[0]] = pattern.names
    return problems


def check_op_name(name: str, span: ast.Span) -> list[Problem]:
    """Whether this jaxlib has an op."""
    if signature(name) is not None:
        return []
    dialect = name.split(".")[0]
    if dialect not in DIALECTS:
        return [Problem(f"there is no dialect `{dialect}` for rules", did_you_mean(dialect, DIALECTS), span)]
    known = op_names(dialect)
    hint = did_you_mean(name, known)
    return [Problem(f"there is no op `{name}`", hint if "did you" in hint else f"see the ops of `{dialect}`", span)]


def _check_op(pattern: ast.OpPattern, scope: Scope, kinds: Sequence[str]) -> list[Problem]:
    problems: list[Problem] = []
    for name in pattern.names:
        problems += check_op_name(name, pattern.span)
    problems += _check_operands(pattern.operands, scope, pattern.span)
    for op in (s for s in map(signature, pattern.names) if s is not None):
        problems += _check_arity(pattern, op)
        problems += check_attribute_names(op, [(a.name, a.span) for a in pattern.attributes])
        for region in pattern.regions:
            problems += check_region_name(op, region.region, region.span)
    for attribute in pattern.attributes:
        if isinstance(attribute.value, ast.AttributeVariable):
            problems += _bound(scope, f"${attribute.value.name}", "Attr", attribute.span)
    for region in pattern.regions:
        problems += _check_region(region, scope, kinds)
    for name in pattern.types:
        problems += _bound(scope, f"${name}", "Type", pattern.span)
    return problems


def _bound(scope: Scope, name: str, kind: str, span: ast.Span) -> list[Problem]:
    sentence = scope.bind(name, kind)
    return [Problem(sentence, "use another name", span)] if sentence else []


def _check_operands(operands: Sequence[ast.Operand], scope: Scope, span: ast.Span) -> list[Problem]:
    problems: list[Problem] = []
    spreads = [o for o in operands if isinstance(o, ast.Spread)]
    if len(spreads) > 1:
        problems.append(Problem("a list contains at most one `...`", "name the other operands", spreads[1].span))
    indexed = [o for o in operands if isinstance(o, ast.Indexed)]
    if indexed and not (operands[0] == ast.Spread(None) and len(indexed) == len(operands) - 1):
        problems.append(Problem("`[@i] = %x` follows `...` alone", "write `(..., [@i] = %x)`", indexed[0].span))
    for operand in operands:
        problems += _check_operand(operand, scope)
    return problems


def _check_operand(operand: ast.Operand, scope: Scope) -> list[Problem]:
    if isinstance(operand, ast.Spread):
        return _bound(scope, f"%{operand.name}", "Values", operand.span) if operand.name else []
    if isinstance(operand, ast.Indexed):
        problems = _check_operand(operand.value, scope)
        if isinstance(operand.position, str):
            problems += _bound(scope, f"@{operand.position}", "Int", operand.span)
        return problems
    if operand.index is not None:
        if scope.types.get(f"%{operand.name}") != "Op":
            return [Problem(f"`%{operand.name}` is not an op of this match block, so it has no results to choose from",
                            "name the op in a separate statement", operand.span)]
        return _bound(scope, f"@{operand.index}", "Int", operand.span) if isinstance(operand.index, str) else []
    return _bound(scope, f"%{operand.name}", "Value", operand.span)


def _check_arity(pattern: ast.OpPattern, op: OpSignature) -> list[Problem]:
    given = sum(isinstance(o, ast.ValueRef) for o in pattern.operands)
    open_ended = given != len(pattern.operands)
    most, fewest = op.most_operands, op.fewest_operands
    if (most is None or given <= most) and (open_ended or given >= fewest):
        return []
    count = f"{fewest}" if most == fewest else f"at least {fewest}" if most is None else f"{fewest} to {most}"
    names = ", ".join(("..." if many else "") + name for name, many in op.operands)
    return [Problem(f"`{op.name}` has {count} operand{'' if count == '1' else 's'} ({names}), {given} given",
                    "use `...` for operands that do not matter", pattern.span)]


def check_attribute_names(op: OpSignature, named: Sequence[tuple[str, ast.Span]]) -> list[Problem]:
    """Whether an op has attributes of these names; names with a dot belong to other dialects and are free."""
    return [Problem(f"`{op.name}` has no attribute `{name}`", did_you_mean(name, op.attributes), span)
            for name, span in named if "." not in name and name not in op.attributes]


def check_region_name(op: OpSignature, name: str, span: ast.Span) -> list[Problem]:
    """Whether an op has a region of this name."""
    if name in op.regions and not op.varying_regions:
        return []
    if op.varying_regions:
        return [Problem(f"`{op.name}` has a varying number of regions, which patterns cannot name",
                        "write a native predicate", span)]
    return [Problem(f"`{op.name}` has no region `{name}`", did_you_mean(name, op.regions), span)]


def _check_region(region: ast.Reduces | ast.BlockPattern, scope: Scope, kinds: Sequence[str]) -> list[Problem]:
    if isinstance(region, ast.BlockPattern):
        return (_check_operands(region.arguments, scope, region.span)
                + _check_operands(region.yields or (), scope, region.span))
    if isinstance(region.kind, ast.AttributeVariable):
        return _bound(scope, f"${region.kind.name}", "Kind", region.span)
    return check_kind(region.kind, kinds, region.span)


def check_kind(kind: str, kinds: Sequence[str], span: ast.Span) -> list[Problem]:
    """Whether a kind of reduction is known."""
    return [] if kind in kinds else [Problem(f"`{kind}` is not a kind of reduction", did_you_mean(kind, kinds), span)]
