"""Links between files of the repository, turned into links between pages of the site."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent.parent
_FENCE = re.compile(r"^\s*(```|~~~)")
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\((?P<target>[^)\s]+)\)")
LANGUAGES = {".hlopat": "hlopat", ".py": "python", ".mlir": "mlir", ".toml": "toml", ".lark": "text", ".json": "json"}


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """Changes the lines of a page that are not in code blocks."""
    out, fenced = [], False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            fenced = not fenced
        out.append(line if fenced else change(line))
    return "".join(out)


def local_links(text: str) -> list[str]:
    """The targets of a page's links that lead to files, without those in code.

    Example:
      >>> local_links("[a](b.md#c) and [d](https://e.f) and `[g](h)`")
      ['b.md#c']
    """
    targets: list[str] = []

    def collect(line: str) -> str:
        bare = re.sub(r"`[^`]*`", "", line)
        targets.extend(m.group("target") for m in _LINK.finditer(bare))
        return line

    outside_fences(text, collect)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def links_with_lines(text: str) -> list[tuple[int, str]]:
    """As ``local_links``, each with its line.

    Example:
      >>> links_with_lines("text\\n[a](b.md#c)")
      [(2, 'b.md#c')]
    """
    found: list[tuple[int, str]] = []
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= bool(_FENCE.match(line))
        found += [] if fenced else [(number, target) for target in local_links(line)]
    return found


def headings(text: str) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them.

    Example:
      >>> sorted(headings("# A page\\n\\n## `types`, floats"))
      ['a-page', 'types-floats']
    """
    anchors: set[str] = set()

    def collect(line: str) -> str:
        match = re.match(r"#+ (.*)", line)
        if match:
            bare = re.sub(r"[^\w\- ]", "", match.group(1).strip().lower())
            anchors.add(bare.replace(" ", "-"))
        return line

    outside_fences(text, collect)
    return anchors


class Links:
    """Rewrites the links of staged pages.

    Args:
      pages: repository path to path in the site, for every file that is a page.

    Attributes:
      sources: repository paths that pages link to and that are not pages; each gets a page that shows it.
    """

    def __init__(self, pages: dict[str, str]) -> None:
        self.pages = pages
        self.sources: set[str] = set()

    def rewritten(self, text: str, origin: str) -> str:
        """The text of a page with its links made right for the site.

        Args:
          text: Markdown.
          origin: where the page stands in the repository.

        Returns:
          Markdown for the place ``pages`` gives the page.
        """
        return outside_fences(text, lambda line: _LINK.sub(lambda m: self._link(m, origin), line))

    def _link(self, match: re.Match[str], origin: str) -> str:
        target, hash_, anchor = match.group("target").partition("#")
        if not target or ":" in target:
            return match.group(0)
        path = os.path.normpath(PurePosixPath(origin).parent / target)
        if match.group("picture"):
            there = os.path.relpath(path, "docs")
        elif path in self.pages:
            there = self.pages[path]
        elif (ROOT / path).is_file():
            self.sources.add(path)
            there = source_page(path)
        elif (ROOT / path).is_dir():
            return match.group("text")
        else:
            return match.group(0)  # a generated page; Sphinx complains when there is none
        here = PurePosixPath(self.pages[origin]).parent
        return f"{match.group('picture')}[{match.group('text')}]({os.path.relpath(there, here)}{hash_}{anchor})"


def source_page(path: str) -> str:
    """Where the page stands that shows a file of the repository."""
    return f"source/{path.replace('.', '-')}.md"
