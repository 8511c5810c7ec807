"""The page of passes at a glance holds every pass, with what the passes say about themselves."""

from __future__ import annotations

from pass_table import GROUPS, missing, pass_table
from run_page import ROOT


def test_every_pass_has_a_row() -> None:
    assert not missing()


def test_the_page_shows_the_tables() -> None:
    page = (ROOT / "docs" / "passes.md").read_text("utf-8")
    for group in GROUPS:
        assert f"## {group}\n\n{pass_table(group)}" in page, "write what tools/docs/pass_table.py prints into the page"


def test_each_row_says_how_to_run_the_pass() -> None:
    assert all(row.count("|") == 7 and not row.endswith("|  |") for group in GROUPS
               for row in pass_table(group).replace("\\|", "").splitlines())
