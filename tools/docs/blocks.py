"""The code blocks of a page, and the comments before them that say what becomes of each.

Every block of the documents is run by the tests. The language after the fence decides how:

* ``console``: lines that start with ``$ `` are commands, what follows is what they print. A line ``...`` stands for any
  lines, ``...`` within a line for any text. A command without output may print anything.
* ``python``: executed; all Python blocks of a page share their names.
* ``hlopat``: parsed and checked as a rule file.

An HTML comment before the block says more, and readers do not see it:

* ``<!-- file: PATH -->``: the block is the content of this file; ``<!-- append: PATH -->`` adds to one.
* ``<!-- output -->``: what the Python block before it prints.
* ``<!-- exit: 3 -->``: the last command of the block ends with this code.
* ``<!-- times vary -->``: durations are not compared, the rest is.
* ``<!-- versions vary -->``: the output is that of the oldest supported jaxlib, and is compared with that one's only.
* ``<!-- nightly: REASON -->``: takes long; only run with ``--run-slow``, and so is the rest of the page.
* ``<!-- not run: REASON -->``: cannot run here, or is not a program.
* ``<!-- setup`` *newline* commands or Python, as above *newline* ``-->``: run, and not shown; a line ``python`` or
  ``console`` says which.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

LANGUAGES = ("console", "python", "hlopat")
"""Languages that are run; blocks in any other one are a file, an output, or have a reason for not being run."""
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_SETUP = re.compile(r"setup\s+(python|console)\n(.*)", re.DOTALL)
_KEYS = ("file", "append", "exit", "nightly", "not run")
_FLAGS = ("output", "times vary", "versions vary")


class WrongBlock(Exception):
    """A block, or the comment before it, that cannot be run; the sentence says what to do."""


@dataclass(frozen=True)
class CodeBlock:
    """One code block.

    Attributes:
      page: the page, as messages show it.
      line: line of its first content line, from 1.
      language: what follows its fence.
      text: its content, ending in a newline.
      file: the file it is the content of; empty when it is none.
      append: whether it is added to that file.
      output: whether it is what the block before it prints.
      exit_code: of its last command.
      times_vary: whether durations in its output are not compared.
      versions_vary: whether another jaxlib than the oldest supported one prints something else.
      nightly: why it only runs with the slow tests; empty when it always runs.
      not_run: why it is not run; empty when it is.
      hidden: whether it is not shown.
    """

    page: str
    line: int
    language: str
    text: str
    file: str = ""
    append: bool = False
    output: bool = False
    exit_code: int = 0
    times_vary: bool = False
    versions_vary: bool = False
    nightly: str = ""
    not_run: str = ""
    hidden: bool = False

    @property
    def place(self) -> str:
        """``page:line``."""
        return f"{self.page}:{self.line}"


def blocks_of(path: Path, page: str) -> list[CodeBlock]:
    """The blocks of a page, in order.

    Args:
      path: the Markdown file.
      page: its name in messages.

    Returns:
      Its blocks, hidden ones among them.

    Raises:
      WrongBlock: a block has no language or no way to be run, or a comment is misspelt.
    """
    blocks: list[CodeBlock] = []
    pending: list[tuple[str, str]] = []
    for token in _flat(MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8"))):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "html_block":
            for comment in _COMMENT.findall(token.content):
                setup = _SETUP.fullmatch(comment)
                if setup:
                    blocks.append(CodeBlock(page, line + 1, setup.group(1), setup.group(2).rstrip() + "\n",
                                            hidden=True))
                elif comment:
                    pending.append(_directive(comment, f"{page}:{line}"))
        elif token.type == "code_block":
            raise WrongBlock(f"{page}:{line}: an indented code block says no language; use a fence")
        elif token.type == "fence":
            blocks.append(_with(CodeBlock(page, line + 1, token.info.split()[0] if token.info.split() else "",
                                          token.content), pending))
            pending = []
        elif pending and token.type not in ("list_item_close", "paragraph_close"):
            raise WrongBlock(f"{page}:{line}: no code block follows the comment `{pending[0][0]}`")
    return [_sound(block, blocks[i - 1] if i else None) for i, block in enumerate(blocks)
            if not block.language.startswith("{")]


def _flat(tokens: list[Token]) -> list[Token]:
    return [token for token in tokens if token.type in ("html_block", "fence", "code_block") or token.map]


def _directive(comment: str, place: str) -> tuple[str, str]:
    key, _, value = comment.partition(":")
    if comment in _FLAGS or (key in _KEYS and value.strip()):
        return (key if key in _KEYS else comment), value.strip()
    raise WrongBlock(f"{place}: unknown comment `{comment}`; known: {', '.join(_FLAGS)}, "
                     f"{', '.join(f'{key}: ...' for key in _KEYS)}, setup")


def _with(block: CodeBlock, directives: list[tuple[str, str]]) -> CodeBlock:
    for key, value in directives:
        if key in ("file", "append"):
            block = replace(block, file=value, append=key == "append")
        elif key == "exit":
            block = replace(block, exit_code=int(value))
        elif key == "nightly":
            block = replace(block, nightly=value)
        elif key == "not run":
            block = replace(block, not_run=value)
        elif key == "output":
            block = replace(block, output=True)
        elif key == "versions vary":
            block = replace(block, versions_vary=True)
        else:
            block = replace(block, times_vary=True)
    return block


def _sound(block: CodeBlock, before: CodeBlock | None) -> CodeBlock:
    if not block.language:
        raise WrongBlock(f"{block.place}: a code block says no language; write one after the fence")
    if block.output and (before is None or before.language != "python" or before.file):
        raise WrongBlock(f"{block.place}: an output follows the Python block that prints it")
    if not (block.file or block.output or block.not_run or block.language in LANGUAGES):
        raise WrongBlock(f"{block.place}: the tests do not run a `{block.language}` block; "
                         "write `<!-- file: PATH -->` before it when it is a file, or `<!-- not run: REASON -->`")
    if block.language == "console" and not block.not_run and not block.text.startswith("$ "):
        raise WrongBlock(f"{block.place}: a `console` block starts with a command, `$ ...`")
    return block


@dataclass(frozen=True)
class Command:
    """One command of a ``console`` block.

    Attributes:
      text: what is typed.
      expected: what it prints, as the page has it; empty when the page does not say.
      line: line of the page.
    """

    text: str
    expected: str
    line: int


def commands_of(block: CodeBlock) -> list[Command]:
    """The commands of a ``console`` block.

    Example:
      >>> block = CodeBlock("a.md", 1, "console", "$ echo a \\\\\\n    b\\na b\\n$ true\\n")
      >>> [(c.text, c.expected) for c in commands_of(block)]
      [('echo a \\\\\\n    b', 'a b\\n'), ('true', '')]
    """
    commands: list[Command] = []
    lines = block.text.splitlines()
    at = 0
    while at < len(lines):
        start, words = at, [lines[at].removeprefix("$ ")]
        while words[-1].endswith("\\") and at + 1 < len(lines):
            at += 1
            words.append(lines[at])
        at += 1
        printed: list[str] = []
        while at < len(lines) and not lines[at].startswith("$ "):
            printed.append(lines[at])
            at += 1
        commands.append(Command("\n".join(words), "".join(f"{line}\n" for line in printed), block.line + start))
    return commands
