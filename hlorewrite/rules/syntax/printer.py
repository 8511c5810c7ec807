"""Prints rule files in canonical form; a parsed file loses only its layout.

Each statement starts a new line, but a block with one short statement stays on one line.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hlorewrite.rules.syntax import ast

WIDTH = 110
# How strongly operators bind; a looser operand of a tighter operator gets brackets.
_STRENGTH = {"or": 1, "and": 2, "not": 3, "==": 4, "!=": 4, "<=": 4, ">=": 4, "<": 4, ">": 4, "+": 5, "-": 5, "*": 6,
             "/": 6, "negative": 7}


def print_file(file: ast.File) -> str:
    """The text of a file.

    Args:
      file: a syntax tree.

    Returns:
      Text that parses to an equal tree, ending in one newline (empty for an empty file).

    Example:
      >>> from hlorewrite.rules.syntax.parser import parse
      >>> print(print_file(parse('rule a { match { root %r = stablehlo.negate(%x); } '
      ...                        'where { one_use(%r); } rewrite { replace %r with %x; } }')), end="")
      rule a {
        match { root %r = stablehlo.negate(%x); }
        where { one_use(%r); }
        rewrite { replace %r with %x; }
      }
    """
    parts: list[str] = []
    for i, item in enumerate(file.items):
        together = i > 0 and _short(item) and _short(file.items[i - 1]) and type(item) is type(file.items[i - 1])
        if i > 0 and not together:
            parts.append("")
        parts += _item(item)
    if file.dangling:
        parts += ([""] if parts else []) + _comments(file.dangling, "")
    # Ends: each round drops a line.
    while parts and not parts[-1]:
        parts.pop()
    return "".join(line + "\n" for line in parts)


def _short(item: ast.Item) -> bool:
    return isinstance(item, ast.Import | ast.Native) and not item.comments and not item.docs


def _comments(lines: Sequence[str], indent: str) -> list[str]:
    return [f"{indent}{line}" if line else "" for line in lines]


def _framed(node: ast.Commented, lines: list[str], indent: str) -> list[str]:
    """A node's lines with its comments before and next to them."""
    if node.trailing:
        lines = [*lines[:-1], f"{lines[-1]}  {node.trailing}"]
    return _comments(node.comments, indent) + lines


# ---- items


def _item(item: ast.Item) -> list[str]:
    docs = [f"/// {line}".rstrip() for line in item.docs]
    return _framed(item, docs + _ITEM_PRINTERS[type(item)](item), "")


def _import(item: ast.Import) -> list[str]:
    return [f"import {quoted(item.path)};"]


def _native(item: ast.Native) -> list[str]:
    parameters = ", ".join(f"{'...' if p.variadic else ''}{p.name}: {p.type}" for p in item.parameters)
    result = f" -> {item.result}" if item.result else ""
    return [f"native {item.kind} {item.name}({parameters}){result};"]


def _rule(rule: ast.Rule) -> list[str]:
    head = f"rule {rule.name}"
    head += f" benefit({rule.benefit})" if rule.benefit is not None else ""
    head += f" recursive({rule.recursive})" if rule.recursive is not None else ""
    head += " commutes" if rule.commutes else ""
    head += f" tags({', '.join(rule.tags)})" if rule.tags else ""
    before, behind = (rule.match, rule.where, rule.types), (rule.legal, rule.cost, rule.rewrite)
    body = [line for block in before if block for line in _block(block, "  ")]
    body += _floats(rule.floats) + [line for block in behind if block for line in _block(block, "  ")]
    return [head + " {", *body, *_comments(rule.dangling, "  "), "}"]


def _linear(fact: ast.Linear) -> list[str]:
    head = f"linear {fact.name}" + (" commutes" if fact.commutes else "")
    linear = f"  in {', '.join(map(operand, fact.operands.operands))};"
    lines = _block(fact.match, "  ") + _framed(fact.operands, [linear], "  ")
    lines += _framed(fact.kinds, [f"  kinds {', '.join(fact.kinds.names)};"], "  ")
    lines += (_block(fact.types, "  ") if fact.types else []) + _floats(fact.floats)
    lines += _block(fact.legal, "  ") if fact.legal else []
    return [head + " {", *lines, *_comments(fact.dangling, "  "), "}"]


def _floats(floats: ast.Floats | None) -> list[str]:
    return _framed(floats, [f"  floats {', '.join(floats.names)};"], "  ") if floats else []


def _meaning(meaning: ast.Meaning) -> list[str]:
    head = f"meaning {meaning.op}({', '.join(map(operand, meaning.operands))})"
    if meaning.expression is not None:
        return [f"{head} {{ {meaning.form} {expression(meaning.expression)}; }}"]
    by = f" by {', '.join(map(operand, meaning.selectors))}" if meaning.selectors else ""
    return [f"{head} {{ {meaning.form} {', '.join(map(operand, meaning.data))}{by}; }}"]


_ITEM_PRINTERS: dict[type, Callable[[Any], list[str]]] = {
    ast.Import: _import, ast.Native: _native, ast.Meaning: _meaning, ast.Rule: _rule, ast.Linear: _linear}


def _block(block: ast.Block, indent: str) -> list[str]:
    if block.keyword == "types" and not block.statements:
        return _framed(block, [f"{indent}types any;"], indent)
    body = [line for s in block.statements for line in _statement(s, indent + "  ")]
    body += _comments(block.dangling, indent + "  ")
    lines = [f"{indent}{block.keyword} {{", *body, f"{indent}}}"]
    bare = not any(s.comments or s.trailing for s in block.statements) and not block.dangling
    if not body and bare:
        lines = [f"{indent}{block.keyword} {{ }}"]
    one_line = f"{indent}{block.keyword} {{ {''.join(body).strip()} }}"
    if len(body) == 1 and bare and len(one_line) <= WIDTH:
        lines = [one_line]
    return _framed(block, lines, indent)


# ---- statements


def _statement(node: Any, indent: str) -> list[str]:
    if isinstance(node, ast.OpPattern):
        lines = _op_pattern(node, indent)
    elif isinstance(node, ast.Create):
        lines = _create(node, indent)
    elif isinstance(node, ast.At):
        body = [line for s in node.body for line in _statement(s, indent + "  ")]
        lines = [f"{indent}{node.side} %{node.anchor} {{", *body, *_comments(node.dangling, indent + "  "),
                 f"{indent}}}"]
    elif isinstance(node, ast.Condition | ast.Let):
        lines = _check(node, indent)
    else:
        lines = [indent + _ACTION_PRINTERS[type(node)](node)]
    return _framed(node, lines, indent)


def _check(node: ast.Condition | ast.Let, indent: str) -> list[str]:
    head = f"let {', '.join(node.names)} = " if isinstance(node, ast.Let) else ""
    head += expression(node.expression)
    if not node.sentence:
        return [f"{indent}{head};"]
    one_line = f"{indent}{head} : {quoted(node.sentence)};"
    if len(one_line) <= WIDTH:
        return [one_line]
    return [f"{indent}{head}", f"{indent}  : {quoted(node.sentence)};"]


def _filled(pieces: Sequence[str], indent: str) -> list[str]:
    """Joins pieces with blanks, on as many lines as needed; later lines are indented further."""
    lines = [indent + pieces[0]]
    for piece in pieces[1:]:
        joined = "" if piece.startswith("|") else " "
        if len(lines[-1]) + len(joined) + len(piece) <= WIDTH:
            lines[-1] += joined + piece
        else:
            lines.append(f"{indent}    {piece}")
    return lines


def _listed(prefix: str, items: Sequence[str], suffix: str) -> list[str]:
    """A bracketed list as pieces that can be on different lines."""
    if not items:
        return [prefix + suffix]
    ended = [item + "," for item in items[:-1]] + [items[-1] + suffix]
    return [prefix + ended[0], *ended[1:]]


def _op_pattern(node: ast.OpPattern, indent: str) -> list[str]:
    head = ("root " if node.root else "sole " if node.sole else "") + ", ".join("%" + r for r in node.results) + " = "
    pieces = [head + node.names[0], *("|" + name for name in node.names[1:])]
    first, *more = _listed("(", list(map(operand, node.operands)), ")")
    pieces = [*pieces[:-1], pieces[-1] + first, *more]
    if node.attributes:
        pieces += _listed("{", [f"{a.name} = {_attribute_value(a.value)}" for a in node.attributes], "}")
    types = _types(tuple("$" + t for t in node.types))
    if all(isinstance(r, ast.Reduces) for r in node.regions):
        pieces += [f"{r.region} reduces({_kind(r.kind)})" for r in node.regions if isinstance(r, ast.Reduces)]
        return _ended(_filled([*pieces, *types], indent), ";")
    lines = _filled(pieces, indent)
    for region in node.regions:
        if isinstance(region, ast.Reduces):
            lines.append(f"{indent}  {region.region} reduces({_kind(region.kind)})")
        else:
            lines += _block_pattern(region, indent + "  ")
    return _ended(lines, "".join(f" {t}" for t in types) + ";")


def _ended(lines: list[str], end: str) -> list[str]:
    return [*lines[:-1], lines[-1] + end]


def _block_pattern(region: ast.BlockPattern, indent: str) -> list[str]:
    head = f"{indent}{region.region} ^({', '.join(map(operand, region.arguments))}) {{"
    body = [line for p in region.body for line in _statement(p, indent + "  ")]
    if region.yields is not None:
        body.append(f"{indent}  yield({', '.join(map(operand, region.yields))});")
    body += _comments(region.dangling, indent + "  ")
    if not body:
        return [head + " }"]
    if len(body) == 1 and not region.dangling and not region.body:
        return [f"{head} {body[0].strip()} }}"]
    return [head, *body, indent + "}"]


def _create(node: ast.Create, indent: str) -> list[str]:
    head = ", ".join("%" + r for r in node.results) + f" = {node.op}("
    pieces = _listed(head, list(map(operand, node.operands)), ")")
    if node.attributes:
        pieces += _listed("{", [f"{a.name} = {expression(a.value)}" for a in node.attributes], "}")
    pieces += [f"{r.region} reduces({_kind(r.kind)})" for r in node.regions]
    pieces += _types(tuple(expression(t) for t in node.types))
    pieces += [f"like %{node.like}"] if node.like else []
    return _ended(_filled(pieces, indent), ";")


def _assignments(attributes: tuple[ast.Assignment, ...]) -> str:
    return "{" + ", ".join(f"{a.name} = {expression(a.value)}" for a in attributes) + "}"


_ACTION_PRINTERS: dict[type, Callable[[Any], str]] = {
    ast.Replace: lambda n: f"replace {operand(n.old)} with {', '.join(map(operand, n.new))};",
    ast.Erase: lambda n: f"erase {', '.join('%' + name for name in n.names)};",
    ast.SetAttributes: lambda n: f"set %{n.op} {_assignments(n.attributes)};",
    ast.SetOperand: lambda n: f"set %{n.op}[{_index(n.position)}] = {operand(n.value)};",
}


def _types(names: tuple[str, ...]) -> list[str]:
    if not names:
        return []
    return [f"-> {names[0]}"] if len(names) == 1 else _listed("-> (", names, ")")


# ---- expressions


def quoted(text: str) -> str:
    """Text in double quotes, as rule files write it."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


def _index(index: int | str) -> str:
    return str(index) if isinstance(index, int) else f"@{index}"


def _kind(kind: ast.AttributeVariable | str) -> str:
    return kind if isinstance(kind, str) else f"${kind.name}"


def operand(node: Any) -> str:
    """An operand: a value, a spread, an indexed value or a name."""
    if isinstance(node, ast.Spread):
        return "..." if node.name is None else f"...%{node.name}"
    if isinstance(node, ast.Indexed):
        return f"[{_index(node.position)}] = {operand(node.value)}"
    if isinstance(node, ast.Name):
        return node.name
    return f"%{node.name}" + ("" if node.index is None else f"#{_index(node.index)}")


def _attribute_value(value: ast.AttributeVariable | ast.Literal | ast.Mlir) -> str:
    if isinstance(value, ast.AttributeVariable):
        return f"{'?' if value.optional else ''}${value.name}"
    return expression(value)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return repr(value)


def expression(node: Any, around: int = 0) -> str:
    """An expression, with the brackets it needs and no others.

    Args:
      node: the expression.
      around: the binding strength of the operator around it.
    """
    if isinstance(node, ast.Binary):
        strength = _STRENGTH[node.operator]
        compares = strength == _STRENGTH["=="]
        left = expression(node.left, strength + (1 if compares else 0))
        text = f"{left} {node.operator} {expression(node.right, strength + 1)}"
        return f"({text})" if strength < around else text
    if isinstance(node, ast.Unary):
        strength = _STRENGTH["not" if node.operator == "not" else "negative"]
        inner = expression(node.operand, strength)
        text = f"not {inner}" if node.operator == "not" else f"-{inner}"
        return f"({text})" if strength < around else text
    if isinstance(node, ast.Call):
        return f"{node.function}({', '.join(expression(a) for a in node.arguments)})"
    if isinstance(node, ast.ListOf):
        return f"[{', '.join(expression(i) for i in node.items)}]"
    if isinstance(node, ast.Literal):
        return _literal(node.value)
    if isinstance(node, ast.Mlir):
        return f"`{node.text}`"
    if isinstance(node, ast.AttributeVariable):
        return f"${node.name}"
    if isinstance(node, ast.Position):
        return f"@{node.name}"
    return operand(node)
