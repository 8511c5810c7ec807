"""Evaluates a program symbolically: each op to nodes of the graph, or to parts that wait for reductions."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hlorewrite.checks.translation_validation.program import collectives, control, inputs, loops, through_all_gather
from hlorewrite.checks.translation_validation.program.linear import part_by_part
from hlorewrite.checks.translation_validation.program.regions import RegionEncoder
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.translation_validation.value_graph.graph import Label
from hlorewrite.checks.translation_validation.value_graph.pending_reduction import PendingReduction, SymbolicValue
from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.view import terminator
from hlorewrite.ops.table import TERMINATORS

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
    state.on_parts = through_all_gather.part
    state.run_block = lambda block, arguments: _run_block(state, block, arguments)
    block = function.regions[0].blocks[0]
    results = state.run_block(block, inputs.function_arguments(state, function))
    nodes = [state.reduced(value, end) for value, end in zip(results, terminator(block).operands, strict=True)]
    state.env.clear()  # handles of MLIR take more memory than the nodes, and only evaluation reads them
    state.decoded.clear()
    return nodes


@dataclass(frozen=True, slots=True)
class DecodedOp:
    """What is read of an op once, however often it is evaluated.

    Attributes:
      op: the op.
      key: its key.
      name: its name.
      operands: what it reads.
      results: what it makes.
      handler: what evaluates it; None for an op on each process by itself, without regions and effects.
      label: the label of its node, in that case.
      type: the type of its only result, in that case.
    """

    op: ir.Operation
    key: int
    name: str
    operands: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    handler: Handler | None
    label: Label
    type: str


def _decoded(state: ProgramState, block: ir.Block) -> Iterable[DecodedOp]:
    """The ops of a block; they are kept where a loop or a call may run the block again."""
    handles: dict[ir.Value, ir.Value] = {}
    decoded = (_decode(state, view.operation, handles) for view in block.operations)
    if not state.depth and not state.calls:
        return decoded
    known = state.decoded.get(block)
    if known is None:
        known = state.decoded[block] = list(decoded)
    return known


def _decode(state: ProgramState, op: ir.Operation, handles: dict[ir.Value, ir.Value]) -> DecodedOp:
    """Reads an op; ``handles`` keeps one handle of each value, since each access makes a new one."""
    name = sys.intern(op.name)
    results = tuple([handles.setdefault(result, result) for result in op.results])
    handler = _HANDLERS.get(name)
    if handler is None and name not in TERMINATORS:
        if control.has_effects(op, name):
            handler = _effect
        elif name in COLLECTIVES:
            handler = _unknown_collective
        elif len(results) != 1 or len(op.regions):
            handler = _structured
    simple = handler is None and name not in TERMINATORS
    label: Label = (name, state.attributes_of(op), (), 0) if simple else ()
    label = state.graph.shared(label)
    operands = tuple([handles.setdefault(operand, operand) for operand in op.operands])
    type_ = state.type_of(results[0]) if simple else ""
    return DecodedOp(op, op_key(op), name, operands, results, handler, label, type_)


def _run_block(state: ProgramState, block: ir.Block, arguments: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    env = state.env
    env.update(zip(block.arguments, arguments, strict=False))
    for each in _decoded(state, block):
        values = [env[operand] for operand in each.operands]
        if each.name in TERMINATORS:
            return values
        state.enter(each.op, each.key)
        if each.handler is not None:
            env.update(zip(each.results, each.handler(state, each.op, values), strict=True))
        else:
            env[each.results[0]] = _plain(state, each, values)
    return []


def _plain(state: ProgramState, each: DecodedOp, values: list[SymbolicValue]) -> SymbolicValue:
    """An op that computes one result from its operands on each process by itself."""
    for value in values:
        if type(value) is PendingReduction:
            break
    else:
        return state.op_node(each.label, each.type, tuple(values))  # type: ignore[arg-type]
    parts = part_by_part(state, each.op, values, lambda args, type_: state.op_node(each.label, type_, args))
    if parts is not None:
        return parts
    return state.op_node(each.label, each.type, tuple(state.node_of(operand) for operand in each.operands))


def _constant(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    return [state.constant(op)]


def _effect(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    return control.effect(state, op)


def _structured(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """An op with regions, or with several results."""
    encoder = RegionEncoder(state)
    regions = encoder.regions(op)
    captured, attributes = tuple(encoder.captured), state.attributes_of(op)
    args = (*(state.node_of(operand) for operand in op.operands), *captured)
    if encoder.odd:
        return control.effect(state, op)
    if len(op.results) == 1:
        label, type_ = (op.name, attributes, regions, 0), state.type_of(op.results[0])
        parts = None
        if any(isinstance(value, PendingReduction) for value in values):
            parts = part_by_part(state, op, values, lambda args, type_: state.op_node(label, type_, args + captured))
        return [state.op_node(label, type_, args) if parts is None else parts]
    return [state.graph.node((op.name, attributes, regions, number), state.type_of(result), args)
            for number, result in enumerate(op.results)]


def _unknown_collective(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]
                        ) -> list[SymbolicValue]:
    state.execute(op, None)
    args = [state.node_of(operand) for operand in op.operands]
    return [collectives.opaque(state, op, args, state.type_of(result), number)
            for number, result in enumerate(op.results)]


_HANDLERS: dict[str, Handler] = {
    **collectives.HANDLERS, "stablehlo.constant": _constant, "stablehlo.while": loops.loop,
    "stablehlo.case": control.branches, "stablehlo.if": control.branches, "func.call": control.call,
    "stablehlo.optimization_barrier": control.barrier, "sdy.manual_computation": inputs.manual_region}
