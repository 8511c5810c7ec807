"""Documentation of rules, from their doc lines and their checks."""

from __future__ import annotations

from dataclasses import replace

from hlorewrite.rules.proofs import how_known
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import expression, print_file


def document(item: ast.Rule | ast.Linear, file: str, written: ast.Rule | ast.Linear | None = None) -> str:
    """One rule as a section of Markdown: equation, remarks, conditions with their sentences, the rule itself.

    Args:
      item: a rule or linearity fact.
      file: the file it is in.
      written: the rule as the file has it, where that is shorter; see ``syntax.expand``.

    Returns:
      Text that starts with a heading and ends in a blank line.

    Example:
      >>> from hlorewrite.rules.syntax.parser import parse
      >>> print(document(parse('/// x -> x' '\\n' 'rule a { match { root %r = stablehlo.negate(%x); } '
      ...                      'rewrite { replace %r with %x; } }').items[0], "a.hlopat").splitlines()[0])
      ### `a`
    """
    docs = list(item.docs)
    bare = replace(written or item, docs=(), comments=(), trailing="")
    equation = docs[0] if docs else ""
    lines = [f"### `{item.name}`", "", equation, ""]
    more = "\n".join(docs[1:]).strip("\n")
    lines += [more, ""] if more else []
    floats = ", ".join(item.floats.names) if item.floats else "not said"
    lines += [f"In `{file}`, line {item.name_span.line}. How it is known: {how_known(item)}. "
              f"What it does to floats: {floats}.", ""]
    rows = [(block.keyword, expression(s.expression), s.sentence) for block in item.blocks[1:]
            for s in block.statements if isinstance(s, ast.Condition | ast.Let)]
    if rows:
        lines += ["| kind | condition | text when it fails |", "|---|---|---|"]
        lines += [f"| {kind} | `{_cell(text)}` | {_cell(sentence) or 'the predicate’s own sentence'} |"
                  for kind, text, sentence in rows]
        lines.append("")
    return "\n".join([*lines, "```", print_file(ast.File((bare,))).rstrip(), "```", "", ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
