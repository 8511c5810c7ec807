"""Rows as aligned columns of text."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], align: str = "", *, widths: Sequence[int] = (), gap: str = "  ") -> list[str]:
    """Lines of aligned columns.

    Args:
      rows: the cells; the first row may hold headings, and it has a cell for each column. A row with fewer cells ends
        in text that spans the remaining columns.
      align: one character a column: ``<`` to the left, ``>`` to the right. Columns beyond it are aligned to the left.
      widths: the least width of each column; 0 beyond it.
      gap: text between two columns.

    Returns:
      A line for each row, without blanks at its end.

    Raises:
      ValueError: a row has more cells than the first.

    Example:
      >>> print("\\n".join(table([["rule", "applied"], ["fold", "12"], ["cse", "does not apply"][:2]], "<>")))
      rule         applied
      fold              12
      cse   does not apply
      >>> table([["name", "n"], ["a", "7"], ["no number follows"]], widths=[6])
      ['name    n', 'a       7', 'no number follows']
    """
    columns = len(rows[0]) if rows else 0
    if any(len(row) > columns for row in rows):
        raise ValueError("a row has more cells than the first")
    sizes = [*widths, *[0] * columns][:columns]
    for row in rows:
        for i, cell in enumerate(row if len(row) == columns else row[:-1]):
            sizes[i] = max(sizes[i], len(cell))
    sides = align.ljust(columns, "<")
    return [gap.join(_padded(row, sizes, sides)).rstrip() for row in rows]


def _padded(row: Sequence[str], sizes: Sequence[int], sides: str) -> list[str]:
    if len(row) < len(sizes):
        return [*_padded(row[:-1], sizes[:len(row) - 1], sides), *row[-1:]]
    return [cell.rjust(size) if side == ">" else cell.ljust(size)
            for cell, size, side in zip(row, sizes, sides, strict=False)]


def numbers_right(rows: Sequence[Sequence[str]]) -> str:
    """The alignment for ``table`` that puts columns of numbers to the right.

    Args:
      rows: the cells; the first row holds headings.

    Returns:
      One character a column: ``>`` where all cells below the heading are digits and points, else ``<``.

    Example:
      >>> numbers_right([["rule", "ms"], ["fold", "0.1"], ["cse", "12"]])
      '<>'
    """
    return "".join(">" if len(column) > 1 and all(cell.replace(".", "").isdigit() for cell in column[1:]) else "<"
                   for column in zip(*rows, strict=True))
