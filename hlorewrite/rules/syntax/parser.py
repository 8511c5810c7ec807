"""Parses rule files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

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
    from hlorewrite.rules.syntax.comments import Comment, attach
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
