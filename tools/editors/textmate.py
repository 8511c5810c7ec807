"""Writes the TextMate grammar of rule files from the grammar of the language.

Usage: ``python tools/editors/textmate.py [--check]``. Keywords come from
``hlorewrite/rules/syntax/hlopat.lark``, so editors colour what the
parser reserves; ``--check`` writes nothing and ends with 1 when the file would change. TextMate's
format is what VS Code, Sublime Text, JetBrains editors and GitHub read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from hlorewrite.rules.syntax.parser import keywords  # noqa: E402

TARGET = Path(__file__).resolve().parent / "vscode" / "syntaxes" / "hlopat.tmLanguage.json"

DECLARATIONS = ("import", "native", "predicate", "analysis", "relation", "meaning", "rule", "linear")
BLOCKS = ("match", "where", "legal", "cost", "rewrite", "in", "kinds", "types", "floats")
MODIFIERS = ("benefit", "recursive", "commutes", "tags", "root", "sole")
OPERATORS = ("not", "and", "or")
CONSTANTS = ("true", "false")
ORDER = ("documentation", "comment", "string", "mlir", "definition", "op", "value", "attribute", "position",
         "declaration", "block", "modifier", "word", "logic", "constant", "call", "type", "number", "operator")
"""Of two patterns that match at one place the first one wins."""


def grammar() -> dict:
    """The grammar as TextMate has it; every reserved word is in one of its groups."""
    named = (*DECLARATIONS, *BLOCKS, *MODIFIERS, *OPERATORS, *CONSTANTS)
    rest = tuple(word for word in keywords() if word not in named)
    return {
        "name": "hlopat", "scopeName": "source.hlopat", "fileTypes": ["hlopat"],
        "patterns": [{"include": f"#{name}"} for name in ORDER],
        "repository": {
            "documentation": _rule("comment.block.documentation.hlopat", r"///.*$"),
            "comment": _rule("comment.line.double-slash.hlopat", r"//.*$"),
            "string": {"name": "string.quoted.double.hlopat", "begin": '"', "end": '"|$',
                       "patterns": [_rule("constant.character.escape.hlopat", r"\\.")]},
            "mlir": _rule("string.interpolated.hlopat", r"`[^`]*`"),
            "definition": {"match": r"\b(rule|linear)\s+(\$?[a-z][a-z0-9]*(?:-[a-z0-9]+)*)",
                           "captures": {"1": {"name": "keyword.declaration.hlopat"},
                                        "2": {"name": "entity.name.function.hlopat"}}},
            "op": _rule("support.function.op.hlopat", r"\b[a-z_][a-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)+"),
            "value": _rule("variable.other.value.hlopat", r"%[A-Za-z_][A-Za-z0-9_]*"),
            "attribute": _rule("variable.parameter.attribute.hlopat", r"\??\$[A-Za-z_][A-Za-z0-9_]*"),
            "position": _rule("variable.language.position.hlopat", r"@[A-Za-z_][A-Za-z0-9_]*"),
            "declaration": _rule("keyword.declaration.hlopat", _words(DECLARATIONS)),
            "block": _rule("keyword.control.block.hlopat", _words(BLOCKS)),
            "modifier": _rule("storage.modifier.hlopat", _words(MODIFIERS)),
            "word": _rule("keyword.control.hlopat", _words(rest)),
            "logic": _rule("keyword.operator.logical.hlopat", _words(OPERATORS)),
            "constant": _rule("constant.language.boolean.hlopat", _words(CONSTANTS)),
            "call": _rule("entity.name.function.call.hlopat", r"\b[A-Za-z_][A-Za-z0-9_]*(?=\s*\()"),
            "type": _rule("support.type.hlopat", r"\b[A-Z][A-Za-z0-9_]*\b"),
            "number": _rule("constant.numeric.hlopat", r"\b[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\b"),
            "operator": _rule("keyword.operator.hlopat", r"\.\.\.|->|==|!=|<=|>=|[-+*/<>=|^#?]"),
        },
    }


def _rule(scope: str, pattern: str) -> dict[str, str]:
    return {"name": scope, "match": pattern}


def _words(words: tuple[str, ...]) -> str:
    return rf"\b(?:{'|'.join(words)})\b(?!-)"


def text() -> str:
    """The content of the grammar file."""
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


def main(words: list[str]) -> int:
    """Writes or checks the file."""
    if words == ["--check"]:
        return 0 if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text() else 1
    TARGET.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
