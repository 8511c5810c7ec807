"""The prose of a file: what a person reads in Markdown, Python and rule files, without code, with line numbers.

Code inside of prose (``names``, `names`, fields of f-strings) is replaced by a mark of the same length, so that a
pattern does not match in it and line numbers stay right.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CODE = "¤"
_SPAN = re.compile(r"(`{1,2})(?!`).+?\1", re.DOTALL)
_URL = re.compile(r"\]\([^)\s]*\)|https?://\S+")
_PREFIX = re.compile(r"(?i)^([rbuf]*)('''|\"\"\"|'|\")")
_WORDS = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z(]")


@dataclass(frozen=True)
class Passage:
    """Consecutive lines of prose.

    Attributes:
      line: number of the first line, from 1.
      text: the lines; code in them is replaced by marks.
      kind: ``page`` and ``comment`` (also docstrings) consist of sentences, whose beginnings and lengths can be judged;
        a ``heading`` is one of a page; a ``string`` is an error, a remark, help, or a part of one.
    """

    line: int
    text: str
    kind: str


def passages(path: Path) -> list[Passage]:
    """The prose of a file, in its order.

    Args:
      path: a ``.md``, ``.py``, ``.hlopat`` or ``.ipynb`` file; any other gives nothing.
    """
    text = path.read_text("utf-8")
    readers = {".md": _of_markdown, ".py": _of_python, ".hlopat": _of_rules, ".ipynb": _of_notebook}
    reader = readers.get(path.suffix)
    return [] if reader is None else [Passage(one.line, _without_code(one.text), one.kind) for one in reader(text)]


def _without_code(text: str) -> str:
    def mark(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", CODE, match.group())

    return _URL.sub(mark, _SPAN.sub(mark, text))


# ---- Markdown


def _of_notebook(text: str) -> Iterator[Passage]:
    """The Markdown cells of a notebook in which each line of text has its own line, as Jupyter writes them."""
    kept, markdown, source = [], False, False
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith('"cell_type"'):
            markdown = "markdown" in bare
        kept.append(json.loads(bare.rstrip(",")).rstrip("\n") if source and markdown and bare.startswith('"') else "")
        source = bare == '"source": [' or (source and bare.startswith('"'))
    return _of_markdown("\n".join(kept))


def _of_markdown(text: str) -> Iterator[Passage]:
    """Paragraphs, list items, and one passage for each table cell; code blocks and comments are left out."""
    lines: list[str] = []
    begin, fence, comment, heading = 1, "", False, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        bare = line.strip()
        opens = re.match(r"(`{3,}|~{3,})", bare)
        starts_block = bool(re.match(r"([-*] |\d+\. |#+ )", bare))
        hidden = bool(fence or opens) or comment or not bare or bare.startswith(("<!--", "|"))
        if lines and (hidden or starts_block or heading):
            yield Passage(begin, "\n".join(lines), "heading" if heading else "page")
            lines = []
        if bare.startswith("|") and not fence and not comment:
            yield from (Passage(number, cell, "page") for cell in re.split(r"(?<!\\)\|", bare) if cell.strip())
        if not hidden:
            begin = begin if lines else number
            heading = bare.startswith("#")
            lines.append(re.sub(r"^\s*([-*] |\d+\. |#+ )", "", line))
        if opens and not comment:
            fence = "" if fence and bare.startswith(fence) else fence or opens.group()
        comment = not fence and (comment or bare.startswith("<!--")) and "-->" not in bare


# ---- Python


def _of_python(text: str) -> Iterator[Passage]:
    docstrings, lines = _docstring_lines(text), text.splitlines()
    comments: list[tuple[int, str]] = []
    for kind, row, string in _tokens(text):
        if kind == tokenize.COMMENT:
            if comments and (comments[-1][0] != row - 1 or lines[row - 1].strip()[0] != "#"):
                yield from _of_comments(comments)
                comments = []
            comments.append((row, string.lstrip("#: ")))
        elif row in docstrings:
            yield from _of_docstring(row, string)
        elif _WORDS.search(prose := _of_string(string)):
            yield Passage(row, prose, "string")
    yield from _of_comments(comments)


def _tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """(kind, line, text) of comments and strings; an f-string is one, as before Python 3.12 and as after."""
    lines = text.splitlines(keepends=True)
    begin, depth = (0, 0), 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            begin, depth = (begin if depth else token.start), depth + 1
        elif name == "FSTRING_END":
            depth -= 1
            if not depth:
                (first, left), (last, right) = begin, token.end
                inside = lines[first - 1:last]
                inside[-1] = inside[-1][:right]
                yield tokenize.STRING, first, "".join(inside)[left:]
        elif name in ("COMMENT", "STRING") and not depth:
            yield token.type, token.start[0], token.string


def _of_comments(comments: list[tuple[int, str]]) -> Iterator[Passage]:
    if comments and not comments[0][1].startswith(("noqa", "type:", "pyright:", "!")):
        yield Passage(comments[0][0], "\n".join(line for _, line in comments), "comment")


def _docstring_lines(text: str) -> set[int]:
    """Lines on which a string starts that stands alone: docstrings, also of attributes."""
    return {node.value.lineno for node in _inner_statements(ast.parse(text)) if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)}


def _inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements of a tree; they are few of its nodes."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        inner = getattr(node, part, None)
        for each in inner if isinstance(inner, list) else ():
            yield each
            yield from _inner_statements(each)


def _of_docstring(row: int, literal: str) -> Iterator[Passage]:
    """Paragraphs of a docstring, and each argument of its sections; doctests and tables are left out."""
    lines: list[str] = []
    begin, example, table = row, False, False
    for number, line in enumerate([*_of_string(literal, fields=False).split("\n"), ""], row):
        bare = line.strip()
        example = bool(bare) and (example or bare.startswith((">>>", "...")))
        labelled = re.match(r"([-*] |\w+: |[A-Z]\w+:$|``[^`]+``: )", bare)
        starts = bool(labelled) and (line.startswith(" ") or bare[:1] in "-*")
        if lines and (example or starts or not bare):
            yield Passage(begin, "\n".join(lines), "comment")
            lines = []
        table = (table and bool(bare)) or bare.startswith("====")
        if bare and not example and not table and not re.fullmatch(r"[A-Z]\w+:", bare):
            begin = begin if lines else number
            lines.append(re.sub(r"^\s*([-*] |\w+: |``[^`]+``: )", "", line) if starts else bare)


def _of_string(literal: str, fields: bool = True) -> str:
    """A literal without its quotes; what an f-string computes is replaced by marks."""
    prefix = _PREFIX.match(literal)
    body = literal if prefix is None else literal[prefix.end():-len(prefix.group(2))]
    if not fields or prefix is None or "f" not in prefix.group(1).lower():
        return body
    shown, depth = "", 0
    for char in body.replace("{{", CODE * 2).replace("}}", CODE * 2):
        depth += (char == "{") - (char == "}" and depth > 0)
        shown += CODE if (depth or char == "}") and char != "\n" else char
    return shown


# ---- rules


def _of_rules(text: str) -> Iterator[Passage]:
    """Comments that follow one another; an empty comment line separates paragraphs."""
    lines: list[str] = []
    begin = 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        comment = re.match(r"\s*/{2,3}\s?(.*)", line)
        said = comment.group(1).strip("- ") if comment else ""
        if said:
            begin = begin if lines else number
            lines.append(said)
        elif lines:
            yield Passage(begin, "\n".join(lines), "comment")
            lines = []
