"""Rows as aligned columns."""

from __future__ import annotations

import pytest

from hlorewrite.util.tables import numbers_right, table, units_in_headings

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


@pytest.mark.parametrize(("column", "heading", "cells"), [
    (["26.3 MiB", "12 B", "0", "-"], "sent MiB", ["26.3", "<0.001", "0", "-"]),
    (["518 us", "4.26 ms"], "sent ms", ["0.518", "4.26"]),
    (["0 B", "2.0 KiB"], "sent KiB", ["0", "2.0"]),
    (["518 us", "12 B of 3"], "sent", ["518 us", "12 B of 3"]),
    (["3", "4"], "sent", ["3", "4"]),
])
def test_a_column_of_quantities_has_one_unit_in_its_heading(column: list[str], heading: str, cells: list[str]) -> None:
    rows = units_in_headings([["op", "sent"], *(["a", cell] for cell in column), ["no such op"]])
    assert [row[1] for row in rows[:-1]] == [heading, *cells] and rows[-1] == ["no such op"]


def test_a_table_without_headings_keeps_its_units() -> None:
    rows = [["step", "4.26 ms"], ["exposed", "518 us"]]
    assert units_in_headings(rows) == rows
