"""No call and no function has more than six positional arguments."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from syntax_nodes import all_nodes

from tools.positional import check, too_many


def test_the_project() -> None:
    assert check() == []


@pytest.mark.parametrize(("source", "lines"), [
    ("f(1, 2, 3, 4, 5, 6)", []), ("f(1, 2, 3, 4, 5, 6, 7)", [1]), ("f(1, 2, 3, 4, 5, 6, seventh=7)", []),
    ("f(1, 2, 3, 4, 5, 6, *rest)", []), ('f(1, "a", "b", "c", "d", "e", "f")', []),
    ("def f(a, b, c, d, e, f, g): pass", [1]), ("def f(a, b, c, d, e, f, *, g): pass", []),
    ("class A:\n    def f(self, a, b, c, d, e, f): pass", []),
    ("class A:\n    def f(self, a, b, c, d, e, f, g): pass", [2])])
def test_what_is_too_many(source: str, lines: list[int]) -> None:
    assert [line for line, _ in too_many(source)] == lines


def test_a_file_that_has_none_any_more_leaves_the_list(tmp_path: Path) -> None:
    folder = tmp_path / "hlorewrite" / "tune"
    folder.mkdir(parents=True)
    (folder / "choice.py").write_text("f(1)\n")
    assert check(tmp_path) == ["hlorewrite/tune/choice.py has none any more: take it out of LEFT"]


def test_nodes_are_those_of_a_walk() -> None:
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    walked = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert [*map(id, all_nodes(tree))] == [*map(id, walked)]
