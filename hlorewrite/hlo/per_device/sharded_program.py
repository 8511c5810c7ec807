"""What each device computes before the partitioner and after it, as two programs that can be compared.

The program before is of whole values. Written for each device, it gathers the arguments, computes everything, and takes
its own parts of the results. The partitioner may do anything else that gives every device these parts. Copies of an
argument on several devices are equal, so both programs read them from the first of these devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText, custom_call_target
from hlorewrite.hlo.per_device.tiles import Tiles, shardings, tiles_of
from hlorewrite.hlo.shapes import arrays, result_shapes, tuple_parts

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
