"""Arguments and results of a program that hold some rows of the step's: a stack that is cut into one part per stage."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.ir import Module, View, ir

ROWS = "hlorewrite.rows"
"""Attribute of an argument or result: number of the step's argument or result, first row, end."""


@dataclass(frozen=True)
class RowParts:
    """Where one argument or result of a step is in its program.

    Attributes:
      positions: the positions of the program's arguments or results that hold it.
      edges: the first row of each, and the number of rows; empty if one holds all of it.
    """

    positions: tuple[int, ...]
    edges: tuple[int, ...] = ()


def rows_attribute(number: int, low: int, high: int) -> ir.Attribute:
    """The attribute of a part: rows low to high of the step's argument or result."""
    return ir.DenseI64ArrayAttr.get([number, low, high])


def row_parts(module: Module) -> tuple[list[RowParts], list[RowParts]]:
    """Where the arguments and the results of the step are among those of its program.

    Args:
      module: a program.

    Returns:
      One entry for each argument of the step, and one for each result.
    """
    main = View(module).functions["main"]
    type_ = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    return _grouped(main, "arg_attrs", len(type_.inputs)), _grouped(main, "res_attrs", len(type_.results))


def _grouped(main: ir.Operation, name: str, count: int) -> list[RowParts]:
    rows: Sequence[ir.Attribute] = list(ir.ArrayAttr(main.attributes[name])) if name in main.attributes else []
    groups: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for position in range(count):
        row = ir.DictAttr(rows[position]) if rows else None
        if row is None or ROWS not in row:
            groups["whole", position] = [(position, 0, 0)]
        else:
            number, low, high = ir.DenseI64ArrayAttr(row[ROWS])
            groups.setdefault(("part", number), []).append((position, low, high))
    return [RowParts(tuple(place for place, _, _ in group), () if kind == "whole" else
                     (*(low for _, low, _ in group), group[-1][2])) for (kind, _), group in groups.items()]
