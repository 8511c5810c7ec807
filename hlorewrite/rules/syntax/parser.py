"""Parses rule files, and keeps their comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlorewrite.rules.syntax import ast

if TYPE_CHECKING:
    from lark import Token, Tree


def grammar_text() -> str:
    """The grammar, as shipped."""
    return (Path(__file__).parent / "hlopat.lark").read_text(encoding="utf-8")


def keywords() -> tuple[str, ...]:
    """The words the language reserves, in the order of the grammar; editors and documents colour them.

    Example:
      >>> keywords()[:4]
      ('import', 'native', 'predicate', 'analysis')
    """
    return tuple(re.findall(r'^[A-Z]+: "([a-z]+)"$', grammar_text(), re.MULTILINE))


class _Parser:
    """A parser, with the comments its lexer has passed over."""

    def __init__(self) -> None:
        from lark import Lark  # 0.06 s to import, and not needed when a file's tree is cached
        self.comments: list[Token] = []
        self._lark = Lark(grammar_text(), parser="lalr", start="file", propagate_positions=True,
                          maybe_placeholders=True, lexer_callbacks={"COMMENT": self._keep})

    def parse(self, text: str) -> Tree:
        self.comments.clear()
        return self._lark.parse(text)

    def _keep(self, token: Token) -> Token:
        self.comments.append(token)
        return token


@cache
def _parser() -> _Parser:
    return _Parser()


def parse(text: str, name: str = "<rules>") -> ast.File:
    """Parses the text of a rule file.

    Args:
      text: the text.
      name: the file's name for messages.

    Returns:
      The syntax tree, comments and doc lines included.

    Raises:
      RuleSyntaxError: with line, column, the source line, a caret and what was expected, in words.

    Example:
      >>> file = parse('''
      ... /// -(-x) -> x
      ... rule negate-twice {
      ...   match { %i = stablehlo.negate(%x); root %o = stablehlo.negate(%i); }
      ...   rewrite { replace %o with %x; }
      ... }''')
      >>> file.items[0].name, file.items[0].docs
      ('negate-twice', ('-(-x) -> x',))
    """
    from lark.exceptions import UnexpectedInput, VisitError

    from hlorewrite.rules.syntax.build import build
    from hlorewrite.rules.syntax.diagnose import syntax_error, value_error
    parser = _parser()
    try:
        tree = parser.parse(text)
    except UnexpectedInput as error:
        raise syntax_error(error, text, name, parser.parse) from None
    comments = [Comment(str(t).rstrip(), t.line or 0, t.column or 0) for t in parser.comments]
    try:
        return attach(build(tree), comments)
    except VisitError as error:
        raise value_error(error, text, name) from None


# ---- gives each comment of a rule file to the node it belongs to, so that printing keeps it


# For each type of node, the fields whose nodes start a new line.
_CHILD_FIELDS: dict[type, tuple[str, ...]] = {
    ast.File: ("items",), ast.Block: ("statements",), ast.At: ("body",), ast.BlockPattern: ("body",),
    ast.OpPattern: ("regions",), ast.Rule: ("match", "where", "types", "floats", "legal", "cost", "rewrite"),
    ast.Linear: ("match", "operands", "kinds", "types", "floats", "legal"),
}


@dataclass(frozen=True)
class Comment:
    """A comment as the lexer saw it."""

    text: str
    line: int
    column: int


def attach(file: ast.File, comments: Sequence[Comment]) -> ast.File:
    """Puts comments into the nodes before, next to or around them.

    Args:
      file: a parsed file without comments.
      comments: its comments, in the order of the file.

    Returns:
      The same file with the comments in ``comments``, ``trailing`` and ``dangling``.
    """
    return _attach(file, list(comments)) if comments else file


def _attach(node: Any, comments: list[Comment]) -> Any:
    children = [c for c in _children(node) if c.span.line]
    if not children and not hasattr(node, "dangling"):
        return _lead(node, comments)
    shares: dict[int, list[Comment]] = {}
    leading: dict[int, list[Comment]] = {}
    trailing: dict[int, Comment] = {}
    dangling: list[Comment] = []
    for comment in comments:
        inside = next((i for i, c in enumerate(children) if _contains(c.span, comment)), None)
        beside = next((i for i, c in enumerate(children) if _beside(c, comment)), None)
        following = next((i for i, c in enumerate(children) if _starts_after(c.span, comment)), None)
        if inside is not None:
            shares.setdefault(inside, []).append(comment)
        elif beside is not None and (following is None or children[following].span.line > comment.line):
            trailing[beside] = comment
        elif following is not None:
            leading.setdefault(following, []).append(comment)
        else:
            dangling.append(comment)
    fresh = {}
    for i, child in enumerate(children):
        new = _attach(child, shares[i]) if i in shares else child
        new = _lead(new, leading[i]) if i in leading else new
        fresh[id(child)] = replace(new, trailing=trailing[i].text) if i in trailing else new
    return _rebuilt(node, fresh, dangling)


def _children(node: Any) -> list[Any]:
    children: list[Any] = []
    for name in _CHILD_FIELDS.get(type(node), ()):
        value = getattr(node, name)
        children += value if isinstance(value, tuple) else [] if value is None else [value]
    return [c for c in children if isinstance(c, ast.Commented | ast.BlockPattern)]


def _rebuilt(node: Any, fresh: dict[int, Any], dangling: list[Comment]) -> Any:
    changes: dict[str, Any] = {}
    for name in _CHILD_FIELDS.get(type(node), ()):
        value = getattr(node, name)
        if isinstance(value, tuple):
            changes[name] = tuple(fresh.get(id(c), c) for c in value)
        elif value is not None:
            changes[name] = fresh.get(id(value), value)
    if dangling and hasattr(node, "dangling"):
        changes["dangling"] = _texts(dangling, 0)
    new = replace(node, **changes)
    return _lead(new, dangling) if dangling and not hasattr(node, "dangling") else new


def _lead(node: Any, comments: list[Comment]) -> Any:
    if not hasattr(node, "comments"):
        return replace(node, dangling=node.dangling + _texts(comments, 0))
    return replace(node, comments=node.comments + _texts(comments, node.span.line))


def _texts(comments: list[Comment], next_line: int) -> tuple[str, ...]:
    """The comment lines, with an empty text wherever blank lines stood between or after them."""
    lines: list[str] = []
    for i, comment in enumerate(comments):
        lines.append(comment.text)
        following = comments[i + 1].line if i + 1 < len(comments) else next_line
        if following > comment.line + 1:
            lines.append("")
    return tuple(lines)


def _contains(span: ast.Span, comment: Comment) -> bool:
    at = (comment.line, comment.column)
    return (span.line, span.column) <= at < (span.end_line, span.end_column)


def _beside(node: Any, comment: Comment) -> bool:
    return (hasattr(node, "trailing") and node.span.end_line == comment.line
            and node.span.end_column <= comment.column)


def _starts_after(span: ast.Span, comment: Comment) -> bool:
    return (span.line, span.column) > (comment.line, comment.column)
