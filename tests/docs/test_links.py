"""Links between files of the repository: the file is there, and so is the heading."""

from __future__ import annotations

import pytest
from run_page import ROOT, pages
from words.pages import dead_links

PAGES = [path.relative_to(ROOT).as_posix() for path in [*pages(), ROOT / "CHANGELOG.md"]]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert not list(dead_links(ROOT / page, (ROOT / page).read_text(encoding="utf-8")))
