"""The editors' grammar of rule files: the same as the parser's, on every shipped file, token by token."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from lark import Lark, Token

from hlorewrite.rules.library import SHIPPED, shipped_names
from hlorewrite.rules.syntax.parser import grammar_text, keywords, parse

ROOT = Path(__file__).resolve().parents[3]
VSCODE = ROOT / "tools" / "editors" / "vscode"
_spec = importlib.util.spec_from_file_location("textmate", ROOT / "tools" / "editors" / "textmate.py")
assert _spec and _spec.loader
textmate = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = textmate
_spec.loader.exec_module(textmate)

SCOPES = {"VALUE": "variable.other.value", "ATTRIBUTE": "variable.parameter.attribute",
          "POSITION": "variable.language.position", "OP_NAME": "support.function.op", "STRING": "string.quoted",
          "MLIR": "string.interpolated", "DOC": "comment.block.documentation", "RULE_NAME": "entity.name.function",
          "INT": "constant.numeric", "FLOAT": "constant.numeric"}
KEYWORD_SCOPES = ("keyword.declaration", "keyword.control", "keyword.operator.logical", "storage.modifier",
                  "constant.language")


def scopes_of(line: str, grammar: dict) -> list[str]:
    """The scope of each character of a line, as an editor computes it: at each place the first pattern that matches
    earliest wins. The grammar has no pattern that runs over a line's end."""
    rules = [grammar["repository"][item["include"][1:]] for item in grammar["patterns"]]
    scopes, at = [""] * len(line), 0
    while at < len(line):
        matches = [(match, rule) for rule in rules
                   if (match := re.compile(rule.get("match") or rule["begin"]).search(line, at)) and match.group()]
        if not matches:
            break
        match, rule = min(matches, key=lambda pair: pair[0].start())
        end = match.end()
        if "begin" in rule:
            inner = re.compile(rf"(?:{rule['patterns'][0]['match']}|(?!{rule['end'].split('|')[0]}).)*")
            end = min(inner.match(line, end).end() + 1, len(line))
        scopes[match.start():end] = [rule.get("name", "")] * (end - match.start())
        for group, capture in rule.get("captures", {}).items():
            start, stop = match.span(int(group))
            scopes[start:stop] = [capture["name"]] * (stop - start)
        at = end
    return scopes


def tokens_of(text: str) -> list[Token]:
    """The tokens as the parser sees them: a word is a keyword only where the grammar has one."""
    parser = Lark(grammar_text(), parser="lalr", start="file", propagate_positions=True)
    return list(parser.parse_interactive(text).iter_parse())


def test_the_file_is_what_the_language_makes_it() -> None:
    assert textmate.main(["--check"]) == 0, "run: python tools/editors/textmate.py"


def test_every_reserved_word_is_coloured_once() -> None:
    groups = [rule["match"] for rule in textmate.grammar()["repository"].values()
              if rule.get("match", "").startswith(r"\b(?:")]
    for word in keywords():
        assert sum(re.fullmatch(pattern, word) is not None for pattern in groups) == 1, word


@pytest.mark.parametrize("name", shipped_names())
def test_an_editor_sees_what_the_parser_sees(name: str) -> None:
    grammar = json.loads(textmate.TARGET.read_text())
    text = (SHIPPED / name).read_text()
    scopes = [scopes_of(line, grammar) for line in text.splitlines()]
    tokens = tokens_of(text)
    assert len(tokens) > 100
    for token in tokens:
        wanted = KEYWORD_SCOPES if token.type.lower() == token.value else (SCOPES.get(token.type, ""),)
        styles = scopes[token.line - 1][token.column - 1:token.column - 1 + len(token.value.split("\n")[0])]
        assert all(scope.startswith(wanted) for scope in styles), (name, token.line, token, set(styles))


def test_a_comment_with_a_quote_and_a_string_with_slashes_are_told_apart() -> None:
    grammar = textmate.grammar()
    line = 'one_use(%r) : "read // twice \\" so"; // don\'t "touch'
    scopes = scopes_of(line, grammar)
    assert scopes[line.index("// twice")].startswith("string") and scopes[line.index("so")].startswith("string")
    assert all(scope.startswith("comment") for scope in scopes[line.index("// don"):])


def test_the_extension_names_files_that_exist() -> None:
    package = json.loads((VSCODE / "package.json").read_text())
    contributes = package["contributes"]
    paths = [contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"],
             contributes["snippets"][0]["path"]]
    for path in paths:
        json.loads((VSCODE / path).read_text())
    assert contributes["grammars"][0]["scopeName"] == textmate.grammar()["scopeName"]
    configuration = json.loads((VSCODE / paths[0]).read_text())
    for pattern in (configuration["wordPattern"], *configuration["indentationRules"].values()):
        re.compile(pattern)


@pytest.mark.parametrize(("name", "item"), [("rule", "name-of-the-rule"), ("linear", "name-of-the-fact"),
                                            ("native", "name")])
def test_snippets_are_rules(name: str, item: str) -> None:
    """What a snippet inserts, with its placeholders taken as they are, parses."""
    snippet = json.loads((VSCODE / "snippets" / "hlopat.json").read_text())[name]
    text = re.sub(r"\$\{\d+:([^}]*)\}|\$\{\d+\|(\w+)[^}]*\}|\$\d+", lambda m: m.group(1) or m.group(2) or "",
                  "\n".join(snippet["body"]))
    assert parse(text).items[0].name == item
