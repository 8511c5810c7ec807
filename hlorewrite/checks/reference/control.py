"""The inputs of a program that decide trip counts and branches, and where it reads and writes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hlorewrite.ir import ir, nested_ops
from hlorewrite.util.reachability import reachable

_DECIDING = {"stablehlo.case": slice(0, 1), "stablehlo.if": slice(0, 1)}
_INDICES = {"stablehlo.dynamic_slice": slice(1, None), "stablehlo.dynamic_update_slice": slice(2, None),
            "stablehlo.gather": slice(1, 2)}


@dataclass(frozen=True)
class ControlArguments:
    """Arguments of a function, by position.

    Everything that data flow reaches backwards counts, so each set may name too many inputs, but never too few.

    Attributes:
      looping: those from which a trip count may be computed.
      deciding: those from which a trip count or a branch may be computed.
      indexing: those from which an index may be computed.
    """

    looping: frozenset[int]
    deciding: frozenset[int]
    indexing: frozenset[int]


def control_arguments(function: ir.Operation) -> ControlArguments:
    """The arguments of a function that trip counts, branches and indices may depend on.

    Args:
      function: a function with one block, in the module that contains the functions it calls.
    """
    functions = _functions(function)
    feeds: dict[ir.Value, list[ir.Value]] = {}
    looping: list[ir.Value] = []
    deciding: list[ir.Value] = []
    indexing: list[ir.Value] = []
    for each in functions.values() or [function]:
        for op in nested_ops(each):
            looping += _trips(op, functions)
            deciding += list(op.operands)[_DECIDING.get(op.name, slice(0, 0))]
            indexing += _indices(op)
            for value, sources in _flows(op, functions):
                feeds.setdefault(value, []).extend(sources)
    arguments = list(function.regions[0].blocks[0].arguments)
    return ControlArguments(*(frozenset(position for position, argument in enumerate(arguments) if argument in reached)
                              for reached in (set(reachable(values, lambda value: feeds.get(value, ())))
                                              for values in (looping, looping + deciding, indexing))))


def _functions(function: ir.Operation) -> dict[str, ir.Operation]:
    """The functions of the module, by name, as far as each is one block."""
    module = function.parent
    found = [op.operation for op in module.regions[0].blocks[0].operations] if module else []
    return {ir.StringAttr(op.attributes["sym_name"]).value: op for op in found
            if op.name == "func.func" and len(op.regions[0].blocks) == 1}


def _trips(op: ir.Operation, functions: Mapping[str, ir.Operation]) -> list[ir.Value]:
    """Values that decide how often an op executes something; for a call of an unknown function, all its operands."""
    if op.name == "stablehlo.while":
        return list(_last(op.regions[0]).operands)
    if op.name == "func.call" and _called(op) not in functions:
        return list(op.operands)
    return []


def _indices(op: ir.Operation) -> list[ir.Value]:
    """Values that decide where an op reads and writes."""
    if op.name == "stablehlo.scatter":
        return [op.operands[(len(op.operands) - 1) // 2]]
    return list(op.operands)[_INDICES.get(op.name, slice(0, 0))]


def _flows(op: ir.Operation, functions: Mapping[str, ir.Operation]) -> Iterator[tuple[ir.Value, list[ir.Value]]]:
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
    if op.name == "func.call" and _called(op) in functions:
        body = functions[_called(op)].regions[0]
        yield from ((argument, [value]) for argument, value in zip(body.blocks[0].arguments, operands, strict=True))
        yield from ((result, [value]) for result, value in zip(results, _last(body).operands, strict=True))
        return
    sources = operands + [value for region in op.regions if len(region.blocks) for value in _last(region).operands]
    for value in results:
        yield value, sources


def _called(op: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(op.attributes["callee"]).value


def _last(region: ir.Region) -> ir.Operation:
    operations = region.blocks[0].operations
    return operations[len(operations) - 1].operation
