"""What each device computes in a program that is one manual computation, before the partitioner reads it.

JAX writes ``jax.shard_map`` over all axes as a call between two custom calls, which take the local part of each
argument and put the results together. If nothing else happens in the entry, the called computation is the program of
each device, and the partitioner has to leave one that computes the same. Releases before 0.12 name the shardings of the
parts in the attributes of the custom call, later ones before it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from hlorewrite.hlo.parse import INDEX, Computation, HloInstruction, HloText, custom_call_target
from hlorewrite.hlo.per_device.tiles import shardings
from hlorewrite.hlo.shapes import tuple_parts

_TO_LOCAL, _TO_GLOBAL = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
_SHARDING, _RESULT = "Sharding", "xla.sdy.FuncResultSharding"
_MANUAL = re.compile(r"\{mesh\[[^\]]*\], manual\}")
_IN_MESH, _AXIS = re.compile(r"<(@[^<>]*)>"), re.compile(r'"([^"]+)"')
_STRUCTURE = ("parameter", "tuple", "get-tuple-element")


def manual_program(module: HloText) -> HloText | None:
    """The program of each device.

    Args:
      module: a program that no pass has partitioned yet.

    Returns:
      The module with the body of the manual computation as its entry; None if the entry does anything else, reshards an
      argument or a result, or leaves an axis to the partitioner.
    """
    entry = module.computations[module.entry]
    made = list(entry.instructions.values())
    calls = {target: [each for each in made if custom_call_target(each) == target]
             for target in (_TO_LOCAL, _TO_GLOBAL)}
    bodies = [each for each in made if each.opcode == "call"]
    if len(bodies) != 1 or any(len(each) != 1 for each in calls.values()):
        return None
    (to_local,), (to_global,), (body,) = calls[_TO_LOCAL], calls[_TO_GLOBAL], bodies
    known = {to_local.name, body.name, to_global.name}
    others = [each for each in made if each.name not in known and each.opcode not in _STRUCTURE
              and custom_call_target(each) not in (_SHARDING, _RESULT)]
    if others or _entered(module, to_local) != [each.name for each in module.parameters()]:
        return None
    root = entry.instructions[entry.root]
    if root is not to_global and not _returns(entry, root, to_global):
        return None
    if not _in_order(entry, body.operands, to_local) or not _in_order(entry, to_global.operands, body):
        return None
    name, = body.called("to_apply")
    rest = {key: each for key, each in module.computations.items() if key != module.entry}
    return replace(module, computations=rest, entry=name)


def _entered(module: HloText, to_local: HloInstruction) -> list[str]:
    """The parameters whose local parts are taken as they are sharded; an empty name for another value."""
    entry = module.computations[module.entry]
    attributes = to_local.attributes.replace(r'\"', '"')
    if "xla.sdy.in_shardings=" not in attributes:
        manual = _all_manual(to_local)
        return [_argument(entry, name) if manual else "" for name in to_local.operands]
    wanted = _named(to_local, "in_shardings")
    if len(wanted) != len(to_local.operands) or not _takes_all_axes(module.header, attributes, wanted):
        return []
    taken = [entry.instructions[name] for name in to_local.operands]
    return [_held_so(value, sharding) for value, sharding in zip(taken, wanted, strict=True)]


def _named(instruction: HloInstruction, key: str) -> list[str]:
    """The shardings that an instruction names in an attribute of Shardy's."""
    attributes = instruction.attributes.replace(r'\"', '"')
    return _IN_MESH.findall(attributes.partition(f"xla.sdy.{key}=")[2].partition(">]>")[0] + ">")


def _returns(entry: Computation, root: HloInstruction, to_global: HloInstruction) -> bool:
    """Whether the entry returns what was put together, sharded as it was put together."""
    values = list(root.operands if root.opcode == "tuple" else (root.name,))
    wanted, named = _named(to_global, "out_shardings"), 0
    for at, value in enumerate(values):
        source = entry.instructions[_source(entry, value)[0]]
        if custom_call_target(source) == _RESULT:
            if _named(source, "sharding") != wanted[at:at + 1]:
                return False
            values[at], named = source.operands[0], named + 1
    same = named == len(values) or shardings(root) in ([], shardings(to_global))
    return same and _in_order(entry, values, to_global)


def _held_so(value: HloInstruction, sharding: str) -> str:
    """A parameter that is sharded so; empty for another value."""
    own = value.attributes.replace(r'\"', '"').partition('xla.sdy.sharding="#sdy.sharding')[2]
    return value.name if value.opcode == "parameter" and own.startswith(f"<{sharding}>") else ""


def _takes_all_axes(header: str, attributes: str, shardings: Sequence[str]) -> bool:
    """Whether the manual axes are those of the mesh."""
    meshes = {each.partition(",")[0] for each in shardings}
    axes = _AXIS.findall(attributes.partition("manual_axes{")[2].partition("}")[0])
    if len(meshes) != 1:
        return False
    mesh = header.partition(f"{meshes.pop().removeprefix('@')} = #sdy.mesh<[")[2].partition("]")[0]
    return bool(axes) and axes == _AXIS.findall(mesh)


def _all_manual(to_local: HloInstruction) -> bool:
    """Whether all axes are manual in each part."""
    return all(_MANUAL.fullmatch(each) for each in shardings(to_local) or [""])


def _argument(entry: Computation, name: str) -> str:
    """The parameter that a value is, if its sharding is the parameter's; empty for others."""
    value = entry.instructions.get(name)
    if value is None or custom_call_target(value) != _SHARDING:
        return ""
    source = entry.instructions.get(value.operands[0])
    same = source is not None and bool(shardings(value)) and shardings(source) == shardings(value)
    return source.name if source is not None and same and source.opcode == "parameter" else ""


def _in_order(entry: Computation, values: Sequence[str], made: HloInstruction) -> bool:
    """Whether values are all results of an instruction, in their order, and nothing else."""
    parts = range(len(tuple_parts(made.shape))) if made.shape.startswith("(") else (-1,)
    return [_source(entry, each) for each in values] == [(made.name, at) for at in parts]


def _source(entry: Computation, name: str) -> tuple[str, int]:
    """The instruction that a value comes from, and which of its results it is; -1 for its only one."""
    value = entry.instructions[name]
    # Ends: an operand comes before its reader.
    while (index := INDEX.search(value.attributes)) and value.opcode == "get-tuple-element":
        whole = entry.instructions[value.operands[0]]
        if whole.opcode != "tuple":
            return whole.name, int(index[1])
        value = entry.instructions[whole.operands[int(index[1])]]
    return value.name, -1
