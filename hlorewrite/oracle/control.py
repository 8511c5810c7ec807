"""The inputs of a program that decide what is executed: trip counts, branches, indices."""

from __future__ import annotations

from collections.abc import Iterator

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import nested_ops

_INDEX_OPERANDS = {"stablehlo.dynamic_slice": slice(1, None), "stablehlo.dynamic_update_slice": slice(2, None),
                   "stablehlo.gather": slice(1, 2), "stablehlo.case": slice(0, 1), "stablehlo.if": slice(0, 1)}


def control_arguments(function: ir.Operation) -> frozenset[int]:
    """Numbers of the arguments of a function from which a trip count, a branch or an index may be computed.

    Everything that data flow reaches backwards counts, so this may name too many, and never too few.

    Args:
      function: a function of one block. Operands of the functions that it calls count too.

    Returns:
      Positions of arguments.
    """
    feeds: dict[ir.Value, list[ir.Value]] = {}
    pending: list[ir.Value] = []
    for op in nested_ops(function):
        pending += _decisions(op)
        for value, sources in _flows(op):
            feeds.setdefault(value, []).extend(sources)
    seen: set[ir.Value] = set()
    while pending:  # Ends: each value is read once.
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            pending += feeds.get(value, ())
    return frozenset(position for position, argument in enumerate(function.regions[0].blocks[0].arguments)
                     if argument in seen)


def _decisions(op: ir.Operation) -> list[ir.Value]:
    """Values by which an op decides what is executed or where it reads and writes."""
    if op.name == "stablehlo.while":
        return list(_last(op.regions[0]).operands)
    if op.name == "stablehlo.scatter":
        return [op.operands[(len(op.operands) - 1) // 2]]
    if op.name == "func.call":
        return list(op.operands)
    return list(op.operands)[_INDEX_OPERANDS.get(op.name, slice(0, 0))]


def _flows(op: ir.Operation) -> Iterator[tuple[ir.Value, list[ir.Value]]]:
    """(value, values it is computed from), of an op's results and of the arguments of its regions."""
    operands, results = list(op.operands), list(op.results)
    if op.name == "stablehlo.while":
        yields = list(_last(op.regions[1]).operands)
        for position, (init, following) in enumerate(zip(operands, yields, strict=True)):
            sources = [init, following]
            yield results[position], sources
            for region in op.regions:
                yield region.blocks[0].arguments[position], sources
        return
    sources = operands + [value for region in op.regions if len(region.blocks) for value in _last(region).operands]
    for value in results:
        yield value, sources


def _last(region: ir.Region) -> ir.Operation:
    operations = region.blocks[0].operations
    return operations[len(operations) - 1].operation
