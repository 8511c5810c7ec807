"""Evaluates a program symbolically: each op to nodes of the graph, or to parts that wait for reductions."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hlorewrite.analysis.groups import Rows
from hlorewrite.analysis.mesh import Mesh, mesh_of
from hlorewrite.checks.translation_validation.program import collectives, control, dynamic_selection, loops, sorts
from hlorewrite.checks.translation_validation.program.linear import part_by_part
from hlorewrite.checks.translation_validation.program.sorts import RegionEncoder
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.translation_validation.verdict import NotRead
from hlorewrite.checks.value_graph.graph import Label, PendingReduction, SymbolicValue, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import array, op_label
from hlorewrite.checks.value_graph.per_process_constants import numbers_in
from hlorewrite.ir import COLLECTIVES, ir, op_key, sdy, terminator
from hlorewrite.ops.dims import reshaped
from hlorewrite.ops.table import SAME, SLICES, TERMINATORS

# ---- inputs of a program: its arguments, and a device's part of a value inside a manual region


Places = tuple[object, ...]


def function_arguments(state: ProgramState, function: ir.Operation) -> list[SymbolicValue]:
    """The arguments of an entry function."""
    block = function.regions[0].blocks[0]
    texts = list(ir.ArrayAttr(function.attributes["arg_attrs"])) if "arg_attrs" in function.attributes else []
    nodes: list[SymbolicValue] = []
    for number, argument in enumerate(block.arguments):
        attributes = ir.DictAttr(texts[number]) if texts else None
        label = ("source", ("argument", number), _given(state, attributes), False)
        nodes.append(state.graph.node(label, state.type_of(argument)))
    return nodes


def _given(state: ProgramState, attributes: ir.DictAttr | None) -> Places | None:
    """What of an argument each process gets; None when nothing is said about it."""
    if attributes is None:
        return None
    if "sdy.sharding" in attributes:
        return _held(state, attributes["sdy.sharding"])
    if "mhlo.sharding" in attributes and str(attributes["mhlo.sharding"]) == '"{replicated}"':
        return tuple(process // state.space.partitions for process in range(state.space.size))
    return None


def _held(state: ProgramState, sharding: ir.Attribute) -> Places | None:
    """The part of a sharded value that each process holds: its replica, and its place along the axes that are used."""
    attribute = sdy.TensorShardingAttr(sharding)
    mesh = mesh_of(state.view, attribute.mesh_or_ref)
    if mesh is None or set(mesh.device_ids) != set(range(state.space.partitions)):
        return None
    used = [axis for dimension in attribute.dimension_shardings
            for axis in sdy.DimensionShardingAttr(dimension).axes] + list(attribute.unreduced_axes)
    names = {sdy.AxisRefAttr(axis).name for axis in used}
    places = mesh.coordinates([name for name, _ in mesh.axes if name in names])
    count = state.space.partitions
    return tuple((process // count, places[process % count]) for process in range(state.space.size))


def described(state: ProgramState, shardings: Sequence[ir.Attribute]) -> tuple[object, ...]:
    """Shardings as text, with the meshes they name."""
    meshes: list[Mesh | None] = [mesh_of(state.view, sdy.TensorShardingAttr(each).mesh_or_ref) for each in shardings]
    return tuple((str(each), mesh) for each, mesh in zip(shardings, meshes, strict=True))


def manual_region(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """A region that each device runs on its own parts; outside of it, values are whole.

    Inside another one, a part differs where what it is cut from does; otherwise it is cut from one value that all
    devices share.
    """
    block = op.regions[0].blocks[0]
    shardings = [list(sdy.TensorShardingPerValueAttr(op.attributes[name]).shardings)
                 for name in ("in_shardings", "out_shardings")]
    axes = str(op.attributes["manual_axes"])
    if len(shardings[0]) != len(block.arguments):
        raise NotRead("a manual region takes values without shardings", state.view.source(op))
    nested = state.manual > 0
    state.manual += 1
    arguments: list[SymbolicValue] = []
    for operand, argument, sharding in zip(op.operands, block.arguments, shardings[0], strict=True):
        label = ("source", ("part", described(state, [sharding]), axes, nested), _held(state, sharding), nested)
        arguments.append(state.graph.node(label, state.type_of(argument), (state.node_of(operand),)))
    results = state.run_block(block, arguments)
    state.manual -= 1
    ends = list(block.operations)[-1].operation
    nodes = [state.reduced(value, end) for value, end in zip(results, ends.operands, strict=True)]
    return [state.graph.node(("joined", described(state, [sharding]), axes), state.type_of(result), (node,))
            for sharding, result, node in zip(shardings[1], op.results, nodes, strict=True)]


# ---- the program


Handler = Callable[[ProgramState, ir.Operation, Sequence[SymbolicValue]], list[SymbolicValue]]


def evaluate(state: ProgramState, function: ir.Operation) -> list[int]:
    """Evaluates an entry function.

    Args:
      state: the program.
      function: the function.

    Returns:
      The nodes of its results.

    Raises:
      NotRead: the program contains what is given no meaning.
    """
    state.on_parts = part
    state.run_block = lambda block, arguments: _run_block(state, block, arguments)
    block = function.regions[0].blocks[0]
    results = state.run_block(block, function_arguments(state, function))
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
    if state.forms is not None and name == "stablehlo.custom_call" and "called_computations" in op.attributes and (
            str(op.attributes["call_target_name"]) == '"TopK"'):
        handler = _top_k
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
    return DecodedOp(op, op_key(op), name, operands=operands, results=results, handler=handler, label=label, type=type_)


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


def _top_k(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    args = tuple(state.node_of(operand) for operand in op.operands)
    found = sorts.top_elements(state, op, args[0]) if len(args) == 1 else None
    label: Label = (op.name, state.attributes_of(op), (), 0)
    return [state.op_node(label, state.type_of(op.results[0]), args)] if found is None else found


def _structured(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue]) -> list[SymbolicValue]:
    """An op with regions, or with several results."""
    encoder = RegionEncoder(state)
    regions = encoder.regions(op)
    captured, attributes = tuple(encoder.captured), state.attributes_of(op)
    args = (*(state.node_of(operand) for operand in op.operands), *captured)
    if encoder.odd:
        return control.effect(state, op)
    if state.forms is not None and op.name == "stablehlo.sort":
        found = sorts.sorted_values(state, op, [state.node_of(operand) for operand in op.operands])
        if found is not None:
            return found
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
    "sdy.manual_computation": manual_region, **dict.fromkeys(SAME, control.kept)}


# ---- slices, reshapes and transposes of gathered values, done on the shards


_CONVERT = "stablehlo.convert"
_OPS = frozenset({"stablehlo.dynamic_slice", "stablehlo.reshape", "stablehlo.transpose"})


def part(state: ProgramState, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
    """The node of an op on a gathered or a chosen value; None for anything else."""
    found = dynamic_selection.part(state, label, type_, args) if label[0] in SLICES else None
    return _of_gathered(state, label, type_, args) if found is None and label[0] in _OPS else found


def _of_gathered(state: ProgramState, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
    """The node of an op on a gathered value, as the gathered value of the op; None for anything else."""
    graph, converts, node = state.graph, [], args[0]
    # Ends: each round goes to an operand.
    while graph.labels[node][0] == _CONVERT:
        converts.append((graph.labels[node], _element(graph.types[node])))
        node = graph.args[node][0]
    if graph.labels[node][0] != "all_gather":
        return None
    rows: Rows = graph.labels[node][1]  # type: ignore[assignment]
    along: int = graph.labels[node][2]  # type: ignore[assignment]
    shard = graph.args[node][0]
    after = _along_after(state, label, type_, (node, *args[1:]), rows, along)
    known, own = shape_and_element(type_), shape_and_element(graph.types[shard])
    if after is None or known is None or own is None:
        return None
    shape = tuple(own[0][along] if d == after else size for d, size in enumerate(known[0]))
    if label[0] == "stablehlo.dynamic_slice":
        label = op_label(str(label[0]), (("slice_sizes", array(shape)),))
    inner = state.op_node(label, tensor_type(shape, own[1]), (shard, *args[1:]))
    made = collectives.gathered(state, rows, after, tensor_type(known[0], own[1]), inner)
    for convert, element in reversed(converts):
        made = state.op_node(convert, tensor_type(known[0], element), (made,))
    return made


def _element(type_: str) -> str:
    known = shape_and_element(type_)
    return "" if known is None else known[1]


def _along_after(state: ProgramState, label: Label, type_: str, args: tuple[int, ...], rows: Rows, along: int
                 ) -> int | None:
    """The dimension of the result along which shards lie; None if the op does not keep shards apart."""
    full, known = shape_and_element(state.graph.types[args[0]]), shape_and_element(type_)
    if full is None or known is None:
        return None
    if label[0] == "stablehlo.transpose":
        return numbers_in(dict(label[1])["permutation"]).index(along)  # type: ignore[call-overload]
    if label[0] == "stablehlo.dynamic_slice":
        members = state.space.members(rows)
        alike = known[0][along] == full[0][along] and all(state.same.same(start, members) for start in args[1:])
        return along if alike else None
    return reshaped(full[0], known[0], along)
