"""Rows as aligned columns."""

from __future__ import annotations

import pytest

from hlorewrite.util.tables import numbers_right, table

ROWS = [["name", "n", "what"], ["a", "10", ""], ["bbbbb", "2", "long text"]]


@pytest.mark.parametrize(("align", "lines"), [
    ("", ["name   n   what", "a      10", "bbbbb  2   long text"]),
    ("<>", ["name    n  what", "a      10", "bbbbb   2  long text"]),
    (">>>", [" name   n       what", "    a  10", "bbbbb   2  long text"])])
def test_alignment(align: str, lines: list[str]) -> None:
    """To the left where nothing is said; no blanks at the end of a line."""
    assert table(ROWS, align) == lines


def test_least_widths_and_another_gap() -> None:
    """A cell that is wider widens its column."""
    rows = [["a", "b", " c"], ["wider", "1", " x"]]
    assert table(rows, "<>", widths=(3, 4), gap="") == ["a       b c", "wider   1 x"]


def test_a_short_row_ends_in_text() -> None:
    """Which neither is aligned nor widens a column."""
    assert table([["a", "b", "c"], ["x", "a long sentence about x"], ["1", "2", "3"]], "<>>") == [
        "a  b  c", "x  a long sentence about x", "1  2  3"]
    with pytest.raises(ValueError, match="more cells"):
        table([["a"], ["1", "2"]])


def test_no_rows() -> None:
    """No lines."""
    assert table([]) == [] and table([["a", "b"]], ">") == ["a  b"]


def test_columns_of_numbers() -> None:
    """A heading alone is text, as is a column with an empty cell."""
    assert numbers_right(ROWS) == "<><" and numbers_right([["n"]]) == "<"
    assert numbers_right([["n"], ["1.5"], [""]]) == "<"
