"""Small pieces of Markdown that the generated pages share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def fence(language: str, text: str) -> str:
    """A code block.

    Example:
      >>> fence("mlir", "a")
      '```mlir\\na\\n```\\n'
    """
    return f"```{language}\n{text.rstrip()}\n```\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty when there are no rows.

    Example:
      >>> print(table(("a", "b"), [("1", "x|y")]), end="")
      | a | b |
      |---|---|
      | 1 | x\\|y |
    """
    lines = [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines]) + "\n"


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def toctree(pages: Iterable[str], *, caption: str = "", hidden: bool = False) -> str:
    """A list of pages for the navigation."""
    options = [f":caption: {caption}"] if caption else []
    options += [":hidden:"] if hidden else []
    return fence("{toctree}", "\n".join([":maxdepth: 1", *options, "", *pages]))
