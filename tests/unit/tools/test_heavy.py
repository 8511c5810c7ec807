"""The table of heavy tests: its rows are tests there are, and something of each kind is left in `make test`."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest
from heavy import HEAVY, OTHERS, HeavyTests, is_heavy

TESTS = Path(__file__).resolve().parents[2]


@functools.cache
def functions(file: str) -> set[str]:
    """The names of those that a file of tests defines."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", HEAVY, ids=lambda row: f"{row.file} {row.test}")
def test_rows_are_tests(row: HeavyTests) -> None:
    """A test that was renamed would run in `make test` again, and nothing would say so."""
    names = functions(row.file)
    assert not row.test or row.test in names
    assert row.stays != OTHERS or row.but or row.only or len(names) > 1


def test_parameters() -> None:
    """By the beginning of their text; other files and functions are not concerned."""
    assert is_heavy("docs/test_pages.py", "test_what_the_page_shows_is_what_happens[README.md]")
    assert not is_heavy("docs/test_pages.py", "test_what_the_page_shows_is_what_happens[docs/faq.md]")
    assert not is_heavy("docs/test_pages.py", "test_commands_that_are_spoken_of_exist[README.md]")
    assert is_heavy("e2e/test_pipeline_example.py", "test_pipeline_gpt[eager-1f1b-options0]")
    assert not is_heavy("e2e/test_other.py", "test_pipeline_gpt[eager-1f1b-options0]")


@pytest.mark.parametrize("page", [page for row in HEAVY for page in row.but if page.endswith(".md")])
def test_pages_that_are_named_exist(page: str) -> None:
    assert (TESTS.parent / page).exists()
