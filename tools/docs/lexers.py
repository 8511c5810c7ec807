"""Colours for the languages of the documents that Pygments does not know: rule files and MLIR."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from hlorewrite.rules.syntax.parser import keywords


class HlopatLexer(RegexLexer):
    """Rule files, ``*.hlopat``; the keywords are those of the grammar."""

    name: ClassVar[str] = "hlopat"
    aliases: ClassVar[list[str]] = ["hlopat"]
    filenames: ClassVar[list[str]] = ["*.hlopat"]
    tokens: ClassVar[dict] = {"root": [
        (r"\s+", Text),
        (r"///.*", String.Doc),
        (r"//.*", Comment.Single),
        (r'"(?:[^"\\\n]|\\.)*"', String),
        (r"`[^`\n]*`", String.Backtick),
        (r"%\w+", Name.Variable),  # numbers too: ops of remarks and rewrites are shown in these colours
        (r"\$[A-Za-z_]\w*", Name.Constant),
        (r"@[A-Za-z_]\w*", Name.Label),
        (r"[a-z_]\w*(?:\.[A-Za-z_][\w\-]*)+", Name.Function),
        (r"(rule|linear)(\s+)([a-z][a-z0-9]*(?:-[a-z0-9]+)*)", bygroups(Keyword, Text, Name.Class)),
        (words(keywords(), prefix=r"\b", suffix=r"\b"), Keyword),
        (r"[A-Za-z_]\w*", Name),
        (r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", Number),
        (r"\.\.\.|->|==|!=|<=|>=|[<>+\-*/=?|^#]", Operator),
        (r"[(){}\[\];:,]", Punctuation),
    ]}


class MlirLexer(RegexLexer):
    """MLIR text, as far as the documents need it."""

    name: ClassVar[str] = "mlir"
    aliases: ClassVar[list[str]] = ["mlir"]
    filenames: ClassVar[list[str]] = ["*.mlir"]
    tokens: ClassVar[dict] = {"root": [
        (r"\s+", Text),
        (r"//.*", Comment.Single),
        (r'"[a-z_]\w*(?:\.\w+)+"', Name.Function),
        (r'"(?:[^"\\\n]|\\.)*"', String),
        (r"[%^][\w$.-]+(?:#\d+|:\d+(?=\s*=))?", Name.Variable),
        (r"[@#!][\w$.-]+", Name.Label),
        (words(("module", "attributes", "func.func", "public", "private", "return", "dense", "loc"),
               prefix=r"\b", suffix=r"\b"), Keyword),
        (r"\btensor\b|\b(?:f|bf|i|ui|si)\d+\b|\bindex\b", Keyword.Type),
        (r"[a-z_]\w*(?:\.\w+)+", Name.Function),
        (r"[A-Za-z_]\w*", Name),
        (r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|x(?=\w)", Number),
        (r"->|[-+*/=<>?:|]", Operator),
        (r"[(){}\[\];,.']", Punctuation),
    ]}
