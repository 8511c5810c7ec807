"""Evaluates a program symbolically: each op to nodes of the graph, or to parts that wait for reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.view import terminator
from hlorewrite.validate.nodes.graph import Label
from hlorewrite.validate.nodes.values import SymbolicValue
from hlorewrite.validate.program import collectives, control, inputs, loops
from hlorewrite.validate.program.linear import part_by_part
from hlorewrite.validate.program.regions import RegionEncoder
from hlorewrite.validate.program.state import ProgramState

Handler = Callable[[ProgramState, ir.Operation, Sequence[SymbolicValue]], list[SymbolicValue]]


def evaluate(state: ProgramState, function: ir.Operation) -> list[int]:
    """Evaluates an entry function.

    Args:
      state: the program.
      function: the function.

    Returns:
      The nodes of its results.

    Raises:
      NotRead: the program holds what is given no meaning.
    """
    state.run_block = lambda block, arguments: _run_block(state, block, arguments)
    block = function.regions[0].blocks[0]
    results = state.run_block(block, inputs.function_arguments(state, function))
    return [state.reduced(value, end) for value, end in zip(results, terminator(block).operands, strict=True)]


def _run_block(state: ProgramState, block: ir.Block, arguments: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    env = state.env
    env.update(zip(block.arguments, arguments, strict=False))
    for view in block.operations:
        op = view.operation
        name = op.name
        if name in _TERMINATORS:
            return [env[operand] for operand in op.operands]
        state.enter(op)
        values = [env[operand] for operand in op.operands]
        handler = _HANDLERS.get(name)
        made = handler(state, op, values) if handler is not None else _plain(state, op, values)
        env.update(zip(op.results, made, strict=True))
    return []


def _constant(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    return [state.constant(op)]


def _plain(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """An op that computes its results from its operands on each process by itself."""
    name = op.name
    if control.has_effects(op):
        return control.effect(state, op)
    if name in COLLECTIVES:
        return _unknown_collective(state, op)
    regions, captured = (), ()
    if len(op.regions):
        encoder = RegionEncoder(state)
        regions, captured = encoder.regions(op), tuple(encoder.captured)
        if encoder.odd:
            args = [state.node_of(operand) for operand in op.operands] + list(captured)
            return [state.graph.node(("opaque", name, state.attributes_of(op), regions, number), state.type_of(result),
                                     tuple(args)) for number, result in enumerate(op.results)]
    attributes = state.attributes_of(op)
    if len(op.results) == 1:
        label, type_ = (name, attributes, regions, 0), state.type_of(op.results[0])
        if all(type(value) is int for value in values):
            return [state.op_node(label, type_, (*values, *captured))]  # type: ignore[arg-type]
        parts = part_by_part(state, op, values, lambda args: state.op_node(label, type_, args + captured))
        if parts is not None:
            return [parts]
    args = (*(state.node_of(operand) for operand in op.operands), *captured)
    made: list[SymbolicValue] = []
    for number, result in enumerate(op.results):
        label: Label = (name, attributes, regions, number)
        made.append(state.op_node(label, state.type_of(result), args) if number == 0 and len(op.results) == 1
                    else state.graph.node(label, state.type_of(result), args))
    return made


def _unknown_collective(state: ProgramState, op: ir.Operation) -> list[SymbolicValue]:
    state.execute(op, None)
    args = [state.node_of(operand) for operand in op.operands]
    return [collectives.opaque(state, op, args, state.type_of(result), number)
            for number, result in enumerate(op.results)]


_TERMINATORS = frozenset({"stablehlo.return", "func.return", "sdy.return", "mpmd.return"})
_HANDLERS: dict[str, Handler] = {
    **collectives.HANDLERS, "stablehlo.constant": _constant, "stablehlo.while": loops.loop,
    "stablehlo.case": control.branches, "stablehlo.if": control.branches, "func.call": control.call,
    "stablehlo.optimization_barrier": control.barrier, "sdy.manual_computation": inputs.manual_region}
