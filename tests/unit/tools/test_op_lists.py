"""Lists of ops stand in hlorewrite/ops alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.op_lists import EXCEPTIONS, ROOT, check, op_lists

LISTED = 'A = frozenset({"stablehlo.add", "stablehlo.tanh", "chlo.erf"})\n'


def test_the_project() -> None:
    assert check(ROOT) == []


@pytest.mark.parametrize(("source", "found"), [
    (LISTED, [(1, 3)]), ('A = ("stablehlo.add", "stablehlo.tanh")', []),
    ('A = frozenset(f"stablehlo.{n}" for n in ("add", "tanh", "sine"))', [(1, 3)]),
    ('A = {f"stablehlo.{n}" for n in "add tanh sine".split()}', [(1, 3)]),
    ('A = {"stablehlo.add": 1, "stablehlo.tanh": 2, "stablehlo.sine": 3}', [(1, 3)]),
    ('A = {"stablehlo.add": f, "stablehlo.tanh": g, "stablehlo.sine": h}', []),
    ('A, B, C = "stablehlo.add", "stablehlo.tanh", "stablehlo.sine"', []),
    ('if x.name in ("stablehlo.add", "sdy.return", "func.return", "mhlo.copy"):\n    pass', [(1, 3)]),
    ('"""Text: stablehlo.add, stablehlo.tanh, stablehlo.sine."""', [])])
def test_what_is_a_list(source: str, found: list[tuple[int, int]]) -> None:
    assert list(op_lists(source)) == found


def test_a_new_list_and_an_exception_that_is_not_needed(tmp_path: Path) -> None:
    for folder in ("hlorewrite/ops", "passes", "patterns"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "passes/new.py").write_text(LISTED)
    (tmp_path / "hlorewrite/ops/table.py").write_text(LISTED)
    assert check(tmp_path, {"passes/old.py": "it was there"}) == [
        "passes/new.py:1: 3 ops in one literal; make them a row or a query of hlorewrite/ops/table.py",
        "passes/old.py has no list of ops any more: take it out of EXCEPTIONS in tools/op_lists.py"]
    assert check(tmp_path, {"passes/new.py": "a reason"}) == []


def test_each_exception_has_a_reason() -> None:
    assert all(len(reason.split()) > 4 for reason in EXCEPTIONS.values())
