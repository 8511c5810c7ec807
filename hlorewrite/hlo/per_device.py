"""What each device computes before XLA's partitioner and after it, as two programs that can be compared."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.parse import INDEX, Computation, HloInstruction, HloText, custom_call_target
from hlorewrite.hlo.shapes import arrays, result_shapes, tuple_parts
from hlorewrite.hlo.tiles import Tiles, shardings, tiles_of

# ---- before the partitioner and after it

# The program before is of whole values. Written for each device, it gathers the arguments, computes everything, and
# takes its own parts of the results. The partitioner may do anything else that gives every device these parts. Copies
# of an argument on several devices are equal, so both programs read them from the first of these devices.


_ENTRY, _BODY = "every_device", "program"
_FIRST_CHANNEL = 1 << 20
_DEVICE_IDS = ("partition-id", "replica-id")
_CONSTRAINTS = ("Sharding", "xla.sdy.FuncResultSharding")


def per_device_pair(before: HloText, shardings_from: HloText, after: HloText) -> tuple[HloText, HloText] | None:
    """The programs of each device.

    Args:
      before: the program that the partitioner reads.
      shardings_from: the same with the shardings that were chosen for its arguments and results.
      after: the program that the partitioner leaves.

    Returns:
      The programs before and after, with the signature of a device; None if the program before reads what differs
      between devices, has custom calls of Shardy's own, or a sharding is of another form or cuts unevenly.
    """
    whole = _without_constraints(before)
    held = _signature(shardings_from, before.partitions)
    if whole is None or held is None or before.replicas != 1:
        return None
    arguments, results = held
    own = [each.shape for each in after.parameters()]
    if not _fits([each.shape for each in before.parameters()], arguments, own):
        return None
    first, second = _Wrapper(whole, own), _Wrapper(after, own)
    gathered = [first.gathered(value, each) for value, each in zip(first.arguments(arguments), arguments, strict=True)]
    parts = [first.own_part(value, each) for value, each in zip(first.called(gathered), results, strict=True)]
    same = second.called(second.arguments(arguments))
    return first.program(parts, before.header), second.program(same, after.header)


def _without_constraints(module: HloText) -> HloText | None:
    """A program of whole values, in which a constraint on a sharding is its operand."""
    computations = {}
    for name, computation in module.computations.items():
        made = dict(computation.instructions)
        for each in made.values():
            target = custom_call_target(each)
            if target in _CONSTRAINTS:
                made[each.name] = each._replace(opcode="copy", attributes="", literal=f"%{each.operands[0]}")
            elif collective_kind(each.opcode) or each.opcode in _DEVICE_IDS or target.startswith(("xla.sdy.", "SPMD")):
                return None
        computations[name] = Computation(name, made, computation.root)
    return replace(module, computations=computations)


def _signature(module: HloText, count: int) -> tuple[list[Tiles], list[Tiles]] | None:
    """The parts of arguments and results; None if a sharding is of another form."""
    entry = module.computations[module.entry]
    given = module.parameters()
    root = entry.instructions[entry.root]
    shapes = result_shapes(root.shape)
    texts = [*((each.shape, (shardings(each) or [""])[0]) for each in given),
             *zip(shapes, shardings(root) or [""] * len(shapes), strict=False)]
    plain = [(text, arrays(shape)) for shape, text in texts]
    found = [tiles_of(text, len(held[0][1]), count) if len(held) == 1 else None for text, held in plain]
    known = [each for each in found if each is not None]
    return (known[:len(given)], known[len(given):]) if len(known) == len(given) + len(shapes) else None


def _fits(whole: Sequence[str], tiles: Sequence[Tiles], own: Sequence[str]) -> bool:
    """Whether the parts of arguments have the shapes that the partitioned program takes."""
    if not len(whole) == len(tiles) == len(own):
        return False
    for shape, each, part in zip(whole, tiles, own, strict=True):
        (element, sizes), = arrays(shape)
        if any(size % parts for size, parts in zip(sizes, each.parts, strict=True)):
            return False
        if arrays(part) != ((element, tuple(n // parts for n, parts in zip(sizes, each.parts, strict=True))),):
            return False
    return True


@dataclass
class _Wrapper:
    """An entry that calls the entry of a program.

    Attributes:
      module: the program.
      shapes: the shapes of the new entry's arguments.
    """

    module: HloText
    shapes: Sequence[str]
    made: dict[str, HloInstruction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = [self._add(shape, "parameter", literal=str(at)) for at, shape in enumerate(self.shapes)]

    def _add(self, shape: str, opcode: str, operands: Sequence[str] = (), attributes: str = "", *, literal: str = ""
             ) -> str:
        name = f"v{len(self.made)}"
        shown = literal or ", ".join(f"%{each}" for each in operands)
        self.made[name] = HloInstruction(name, shape, opcode, tuple(operands), attributes, shown)
        return name

    def _over(self, groups: Sequence[Sequence[int]]) -> str:
        text = ",".join("{" + ",".join(map(str, group)) + "}" for group in groups)
        return f", channel_id={_FIRST_CHANNEL + len(self.made)}, replica_groups={{{text}}}"

    def arguments(self, tiles: Sequence[Tiles]) -> list[str]:
        """The arguments, each part as the first device that holds it has it."""
        return [self._of_first(name, each) for name, each in zip(self.names, tiles, strict=True)]

    def _of_first(self, name: str, tiles: Tiles) -> str:
        last = len(tiles.parts)
        if tiles.devices.shape[last] == 1:
            return name
        return self._add(self.made[name].shape, "collective-broadcast", [name], self._over(tiles.along(last)))

    def gathered(self, name: str, tiles: Tiles) -> str:
        """A whole argument."""
        (element, sizes), = arrays(self.made[name].shape)
        shape = list(sizes)
        for dim, parts in enumerate(tiles.parts):
            if parts > 1:
                shape[dim] *= parts
                attributes = f"{self._over(tiles.along(dim))}, dimensions={{{dim}}}, use_global_device_ids=true"
                name = self._add(_shape(element, shape), "all-gather", [name], attributes)
        return name

    def called(self, values: Sequence[str]) -> list[str]:
        """The results of the program."""
        entry = self.module.computations[self.module.entry]
        shape = entry.instructions[entry.root].shape
        made = self._add(shape, "call", values, f", to_apply=%{_BODY}")
        if not shape.startswith("("):
            return [made]
        return [self._add(part, "get-tuple-element", [made], f", index={at}")
                for at, part in enumerate(tuple_parts(shape))]

    def own_part(self, value: str, tiles: Tiles) -> str:
        """A device's part of a whole result."""
        if set(tiles.parts) <= {1}:
            return value
        (element, sizes), = arrays(self.made[value].shape)
        shape = list(sizes)
        number = self._add("s32[]", "convert", [self._add("u32[]", "partition-id")])
        zero = self._add("s32[]", "constant", literal="0")
        for dim, parts in reversed(list(enumerate(tiles.parts))):  # the last that was gathered first
            if parts > 1:
                shape[dim] //= parts
                start = self._start([place * shape[dim] for place in tiles.place(dim)], number)
                taken = f", dynamic_slice_sizes={{{','.join(map(str, shape))}}}"
                starts = [start if d == dim else zero for d in range(len(shape))]
                value = self._add(_shape(element, shape), "dynamic-slice", [value, *starts], taken)
        return value

    def _start(self, starts: Sequence[int], number: str) -> str:
        """The start of a device, from those of all."""
        table = self._add(f"s32[{len(starts)}]{{0}}", "constant", literal=f"{{{', '.join(map(str, starts))}}}")
        return self._add("s32[]", "reshape", [self._add("s32[1]{0}", "dynamic-slice", [table, number],
                                                        ", dynamic_slice_sizes={1}")])

    def program(self, results: Sequence[str], header: str) -> HloText:
        """The program with this entry."""
        shapes = [self.made[each].shape for each in results]
        entry = self.module.computations[self.module.entry]
        root = self._add(f"({', '.join(shapes)})", "tuple", results) if entry.instructions[entry.root].shape.startswith(
            "(") else results[0]
        others = {name: each for name, each in self.module.computations.items() if name != entry.name}
        body = Computation(_BODY, entry.instructions, entry.root)
        return replace(self.module, header=header, entry=_ENTRY, computations={
            **others, _BODY: body, _ENTRY: Computation(_ENTRY, self.made, root)})


def _shape(element: str, sizes: Sequence[int]) -> str:
    order = ",".join(str(dim) for dim in reversed(range(len(sizes))))
    return f"{element}[{','.join(map(str, sizes))}]{{{order}}}"


# ---- a program that is one manual computation, before the partitioner reads it

# JAX writes ``jax.shard_map`` over all axes as a call between two custom calls, which take the local part of each
# argument and put the results together. If nothing else happens in the entry, the called computation is the program of
# each device, and the partitioner has to leave one that computes the same. Releases before 0.12 name the shardings of
# the parts in the attributes of the custom call, later ones before it.


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
