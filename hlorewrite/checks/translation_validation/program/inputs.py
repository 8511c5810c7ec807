"""Inputs of a program: its arguments, and a device's part of a value inside a manual region."""

from collections.abc import Sequence

from hlorewrite.analysis.mesh import Mesh, mesh_of
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.translation_validation.value_graph.graph import SymbolicValue
from hlorewrite.checks.translation_validation.verdict import NotRead
from hlorewrite.ir.binding import ir, sdy

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
