"""Links between files of the repository: the file is there, and so is the heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from links import local_links, outside_fences
from run_page import ROOT, pages

PAGES = [path.relative_to(ROOT).as_posix() for path in [*pages(), ROOT / "CHANGELOG.md"]]


def headings(path: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    anchors: set[str] = set()

    def collect(line: str) -> str:
        match = re.match(r"#+ (.*)", line)
        if match:
            bare = re.sub(r"[^\w\- ]", "", match.group(1).strip().lower())
            anchors.add(bare.replace(" ", "-"))
        return line

    outside_fences(path.read_text(encoding="utf-8"), collect)
    return anchors


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    origin = ROOT / page
    for target in local_links(origin.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        if name.startswith("reference/"):
            continue  # a generated page; the site's own check has it
        there = (origin.parent / name).resolve() if name else origin
        assert there.exists(), f"{page}: {target}"
        if anchor:
            assert anchor in headings(there), f"{page}: {target}: no such heading"
