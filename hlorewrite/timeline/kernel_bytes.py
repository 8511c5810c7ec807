"""Bytes that a kernel moves through memory, the part of its operands that its result needs, and the elements it writes.

A fusion reads only the part of a parameter that its root needs: a slice, the rows that a gather takes, nothing of a
buffer that it updates in place. Going back from the root, :func:`hlorewrite.cost.kernels.work.needed_elements` gives
the number of operand elements that the needed elements of each result depend on. The bytes of several readers are added
up, but never exceed the whole parameter.
"""

from hlorewrite.cost.kernels.work import (
    IN_PLACE,
    NOTHING_WRITTEN,
    SAME_BYTES,
    SCATTER,
    UPDATE,
    WHOLE,
    OpSizes,
    WrittenElements,
    needed_elements,
    scattered,
)
from hlorewrite.hlo.parse import Computation, HloInstruction
from hlorewrite.hlo.shapes import shape_bytes, shape_elements

_HOLDS_UPDATE = {UPDATE: 1, SCATTER: 2}
"""The index of the operand that an op writes into its first operand."""


def fusion_bytes(fused: Computation) -> int:
    """Bytes a fusion reads and writes.

    Args:
      fused: the computation it calls.

    Returns:
      Bytes of one execution.

    Example:
      >>> from hlorewrite.hlo.parse import parse_hlo
      >>> module = parse_hlo('''HloModule m
      ... ENTRY %fused (p: f32[8,128], i: s32[]) -> f32[1,128] {
      ...   %p = f32[8,128]{1,0} parameter(0)
      ...   %i = s32[] parameter(1)
      ...   %zero = s32[] constant(0)
      ...   ROOT %row = f32[1,128]{1,0} dynamic-slice(%p, %i, %zero), dynamic_slice_sizes={1,128}
      ... }''')
      >>> fusion_bytes(module.computations["fused"])
      1028
    """
    instructions = fused.instructions
    results = _results(fused)
    needed: dict[str, float] = {each.name: shape_elements(each.shape) for each in results}
    written = sum(shape_bytes(_written(fused, each)[0]) for each in results)
    in_place = _updated_in_place(fused, results)
    read = 0.0
    for name in reversed(instructions):
        if name not in needed:
            continue
        instruction, count = instructions[name], needed[name]
        if instruction.opcode == "parameter":
            read += count / max(shape_elements(instruction.shape), 1) * shape_bytes(instruction.shape)
        for place, operand in enumerate(instruction.operands):
            if operand in instructions:
                size = shape_elements(instructions[operand].shape)
                more = _needs(fused, instruction, place, count, size, name in in_place)
                needed[operand] = min(size, needed.get(operand, 0.0) + more)
    return round(read) + written


def fusion_elements(fused: Computation) -> WrittenElements:
    """Elements a fusion writes.

    Args:
      fused: the computation it calls.
    """
    rows = [_elements(fused, each) for each in _results(fused)]
    return WrittenElements(*(max(column) for column in zip(*rows, strict=True))) if rows else NOTHING_WRITTEN


def instruction_elements(computation: Computation, instruction: HloInstruction) -> WrittenElements:
    """Elements that an instruction outside of fusions writes; none if its kernel is not XLA's own.

    Args:
      computation: the computation that it is in.
      instruction: the kernel; not a fusion.
    """
    return NOTHING_WRITTEN if instruction.opcode in WHOLE else _elements(computation, instruction)


def instruction_bytes(computation: Computation, instruction: HloInstruction) -> int:
    """Bytes that an instruction outside of fusions reads and writes.

    Args:
      computation: the computation that it is in.
      instruction: the kernel; not a fusion.

    Returns:
      Bytes of one execution.
    """
    read, count = 0.0, shape_elements(instruction.shape)
    for place, operand in enumerate(instruction.operands):
        made = computation.instructions.get(operand)
        if made is not None:
            size = shape_elements(made.shape)
            share = min(size, _needs(computation, instruction, place, count, size, True)) / max(size, 1)
            read += share * shape_bytes(made.shape)
    return round(read) + shape_bytes(_written(computation, instruction)[0])


def _results(fused: Computation) -> list[HloInstruction]:
    """The instructions that compute the results of a fusion."""
    root = fused.instructions.get(fused.root)
    if root is None:
        return []
    names = root.operands if root.opcode == "tuple" else (root.name,)
    return [fused.instructions[name] for name in dict.fromkeys(names) if name in fused.instructions]


def _elements(computation: Computation, made: HloInstruction) -> WrittenElements:
    shape, kind = _written(computation, made)
    elements = shape_elements(shape)
    return scattered(elements, shape_bytes(shape)) if kind == SCATTER else WrittenElements(elements)


def _written(computation: Computation, made: HloInstruction) -> tuple[str, str]:
    """The shape that is written for a result, and the opcode that writes it; for an update in place, the update's."""
    source = _source(computation, made)
    if source is not None and source.opcode in IN_PLACE:
        return _update(computation, source).shape, source.opcode
    return made.shape, made.opcode


def _updated_in_place(fused: Computation, results: list[HloInstruction]) -> set[str]:
    """The in-place updates among a fusion's results."""
    made = [_source(fused, each) for each in results]
    return {each.name for each in made if each is not None and each.opcode in IN_PLACE}


def _source(computation: Computation, made: HloInstruction | None) -> HloInstruction | None:
    """The instruction that computes a value, looking through changes of shape."""
    left = len(computation.instructions)
    # Ends: ``left`` falls; in a damaged text an instruction may read itself.
    while made is not None and made.opcode in SAME_BYTES and made.operands and left:
        made, left = computation.instructions.get(made.operands[0]), left - 1
    return made


def _update(computation: Computation, update: HloInstruction) -> HloInstruction:
    place = _HOLDS_UPDATE[update.opcode]
    name = update.operands[place] if place < len(update.operands) else ""
    return computation.instructions.get(name, update)


def _needs(computation: Computation, reader: HloInstruction, place: int, count: float, size: int,
           in_place: bool) -> float:
    """The number of an operand's elements that ``count`` elements of the reader's result depend on."""
    update = shape_elements(_update(computation, reader).shape) if reader.opcode in IN_PLACE else 0
    return needed_elements(OpSizes(reader.opcode, shape_elements(reader.shape), update), place, count, size,
                           in_place=in_place)
