"""Rows as aligned columns of text."""

import re
from collections.abc import Sequence

_QUANTITY = re.compile(r"(-?[\d.]+) (us|ms|s|B|KiB|MiB|GiB|TiB)")
_SIZES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_WITHOUT_UNIT = ("0", "-", "")
_SIDE_BY_SIDE = {"after": "before", "exposed": "step", "communication": "step", "predicted step": "step",
                 "measured": "predicted"}
"""Heading of a column -> that of the column whose unit it shares."""


def table(rows: Sequence[Sequence[str]], align: str = "", *, widths: Sequence[int] = (), gap: str = "  ") -> list[str]:
    """Lines of aligned columns. Columns of times and of sizes have their unit in the heading (``units_in_headings``).

    Args:
      rows: the cells; the first row may contain headings, and it has a cell for each column. A row with fewer cells
        ends in text that spans the remaining columns.
      align: one character a column: ``<`` to the left, ``>`` to the right. Columns beyond it are aligned to the left.
      widths: the minimum width of each column; 0 beyond it.
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
    rows = units_in_headings(rows)
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


def units_in_headings(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows with one unit for each column of times or sizes, in its heading: that of the largest cell.

    Columns that are read side by side (``before`` and ``after``, ``step`` and ``exposed``, columns of one heading) have
    the same unit.

    Args:
      rows: the cells; the first row contains headings. Other columns stay as they are, and so does a row with fewer
        cells.

    Example:
      >>> units_in_headings([["op", "total"], ["a", "4.26 ms"], ["b", "518 us"], ["c", "0.2 us"], ["d", "-"]])
      [['op', 'total ms'], ['a', '4.26'], ['b', '0.518'], ['c', '<0.001'], ['d', '-']]
      >>> units_in_headings([["op", "before", "after"], ["a", "1.0 KiB", "256 B"]])
      [['op', 'before KiB', 'after KiB'], ['a', '1.0', '0.250']]
    """
    changed = [list(row) for row in rows]
    if not changed:
        return changed
    full = [row for row in changed[1:] if len(row) == len(changed[0])]
    largest: dict[str, str] = {}
    units = [_unit_of(heading, [row[at] for row in full]) for at, heading in enumerate(changed[0])]
    for heading, unit in zip(changed[0], units, strict=True):
        key = _SIDE_BY_SIDE.get(heading, heading)
        largest[key] = max(largest.get(key, ""), unit, key=lambda one: _SIZES.get(one, 0.0))
    for at, (heading, own) in enumerate(zip(list(changed[0]), units, strict=True)):
        if own:
            unit = largest[_SIDE_BY_SIDE.get(heading, heading)]
            changed[0][at] = f"{heading} {unit}"
            for row in full:
                row[at] = _in_unit(row[at], unit)
    return changed


def _unit_of(heading: str, cells: Sequence[str]) -> str:
    """The unit of the largest cell of a column; empty for a column of anything else."""
    matches = [_QUANTITY.fullmatch(cell) for cell in cells]
    units = {match[2] for match in matches if match}
    if not heading or _QUANTITY.fullmatch(heading) or any(
            not match and cell not in _WITHOUT_UNIT for match, cell in zip(matches, cells, strict=True)):
        return ""
    return max(units, key=_SIZES.__getitem__, default="")


def _in_unit(cell: str, unit: str) -> str:
    """The number of a cell in a larger unit, with three digits, and at most three after the point."""
    match = _QUANTITY.fullmatch(cell)
    if match is None or match[2] == unit:
        return match[1] if match else cell
    value = float(match[1]) * _SIZES[match[2]] / _SIZES[unit]
    if abs(value) < 0.001:
        return "<0.001" if value else "0"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def numbers_right(rows: Sequence[Sequence[str]]) -> str:
    """The alignment for ``table`` that puts columns of numbers to the right.

    Args:
      rows: the cells; the first row contains headings.

    Returns:
      One character a column: ``>`` where all cells below the heading are numbers, with or without a unit, else ``<``.

    Example:
      >>> numbers_right([["rule", "ms"], ["fold", "0.1"], ["cse", "12"]])
      '<>'
    """
    return "".join(">" if len(column) > 1 and all(map(_is_number, column[1:])) else "<"
                   for column in zip(*rows, strict=True))


def _is_number(cell: str) -> bool:
    return cell.replace(".", "").isdigit() or _QUANTITY.fullmatch(cell) is not None
