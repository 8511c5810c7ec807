"""Finds the parameters of the step that a collective belongs to.

A gathered or scattered parameter is found backwards: the operand is made from it by moves and conversions. A gradient
is found forwards: the first kernel that reads it, or sums of it, together with a parameter of its shape is the update
of that parameter. Both searches follow values into and out of loops through tuples, and visit a bounded number of
values.
"""

import re
from math import prod

from hlorewrite.hlo.parse import INDEX, Computation, HloInstruction, HloText
from hlorewrite.hlo.readers import Readers
from hlorewrite.hlo.shapes import arrays

_MOST_VALUES = 64
_MOST_NAMED = 2
_MOVES = frozenset(("copy", "bitcast", "convert", "reshape", "transpose", "slice", "dynamic-slice", "broadcast",
                    "optimization-barrier", "parameter", "constant", "concatenate", "get-tuple-element", "pad",
                    "copy-start", "copy-done"))
_KERNELS = frozenset(("fusion", "add", "subtract", "multiply", "divide"))
_PRODUCTS = frozenset(("dot", "convolution", "custom-call", "reduce", "gather", "scatter"))
_OP_NAME = re.compile(r'\bop_name="((?:[^"\\]|\\.)*)"')
_STATE = re.compile(r"opt|mu\b|nu\b|mean|square|moment|velocity|ema|grad|acc", re.IGNORECASE)

Place = tuple[Computation, str]


class TensorNames:
    """Names for what collectives send.

    Args:
      module: the module.
      readers: the readers of its values.
    """

    def __init__(self, module: HloText, readers: Readers | None = None) -> None:
        self._module, self._readers = module, readers or Readers(module)
        self._origins: dict[tuple[str, str], tuple[str, ...]] = {}
        self._plain: dict[str, bool] = {}
        self._masks: dict[str, list[int]] = {}
        self._taken_at: dict[tuple[str, str], dict[str, int]] = {}
        self._elements: dict[tuple[str, str], dict[int, list[str]]] = {}

    def of(self, computation: Computation, instruction: HloInstruction) -> str:
        """The parameters that a collective belongs to, else the type that it sends.

        Args:
          computation: what it is in.
          instruction: the collective, or the start of one.

        Returns:
          The first few names, as in the user's program; a type such as ``f32[8,2048]`` if none is known.
        """
        found = dict.fromkeys(name for operand in instruction.operands for name in self._origin(computation, operand))
        named = list(found) or self._forward(computation, instruction)
        if named:
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            return ", ".join(named[:_MOST_NAMED]) + more
        operand = computation.instructions.get(next(iter(instruction.operands), ""))
        return (operand.shape if operand is not None else instruction.shape).split("{")[0]

    # ---- backwards: parameters a value is made of by moving alone

    def _origin(self, computation: Computation, name: str) -> tuple[str, ...]:
        key = (computation.name, name)
        if key not in self._origins:
            self._origins[key] = ()
            self._origins[key] = self._search_origin(computation, name)
        return self._origins[key]

    def _search_origin(self, computation: Computation, name: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        todo: list[tuple[Computation, str, int | None]] = [(computation, name, None)]
        seen = set[tuple[str, str, int | None]]()
        while todo and len(seen) < _MOST_VALUES:  # Ends: each value is taken once, and a bounded number of them.
            where, value, element = todo.pop()
            made = where.instructions.get(value)
            if made is None or (where.name, value, element) in seen:
                continue
            seen.add((where.name, value, element))
            if made.opcode == "parameter":
                label = self._label(where, made) if element is None else ""
                found |= {label: None} if label else {}
                loop = self._readers.loop_of(where.name)
                if loop is not None and element is not None:
                    todo.append((loop[0], next(iter(loop[1].operands), ""), element))
            elif made.opcode == "get-tuple-element":
                index = INDEX.search(made.attributes)
                todo += [(where, made.operands[0], int(index.group(1)))] if index and made.operands else []
            elif made.opcode == "tuple" and element is not None:
                todo += [(where, made.operands[element], None)] if element < len(made.operands) else []
            elif made.opcode in _MOVES or (made.opcode == "fusion" and element is None and self._moves(made)):
                todo += [(where, operand, None) for operand in made.operands]
        return tuple(found)

    def _moves(self, fusion: HloInstruction) -> bool:
        """Whether a fusion only moves and converts elements."""
        name = next(iter(fusion.called("calls")), "")
        if name not in self._plain:
            fused = self._module.computations.get(name)
            self._plain[name] = fused is not None and all(each.opcode in _MOVES for each in fused.instructions.values())
        return self._plain[name]

    def _label(self, computation: Computation, parameter: HloInstruction) -> str:
        if computation.name != self._module.entry:
            return ""
        name = _OP_NAME.search(parameter.attributes)
        return name.group(1).replace("\\'", "'") if name and arrays(parameter.shape)[:1] != () else ""

    # ---- forwards: the parameter whose update reads a gradient

    def _forward(self, computation: Computation, instruction: HloInstruction) -> list[str]:
        named: dict[str, None] = {}
        todo: list[tuple[Place, HloInstruction]] = [((computation, instruction.name), reader) for reader in
                                                    self._readers.of(computation, instruction.name)]
        seen = set[tuple[str, str]]()
        for (where, value), reader in todo:  # Ends: readers of a value are added once, of a bounded number of values.
            if len(seen) >= _MOST_VALUES:
                break
            label = self._updated(where, reader, value) if reader.opcode in _KERNELS else ""
            if label:
                named[label] = None
                continue
            for there, name in self._goes_on(where, reader, value):
                if (there.name, name) not in seen:
                    seen.add((there.name, name))
                    todo += [((there, name), each) for each in self._readers.of(there, name)]
        return list(named)

    def _updated(self, where: Computation, reader: HloInstruction, value: str) -> str:
        """The parameter of the value's shape that a kernel reads together with it; the most weight-like one of
        several."""
        dims, beside = _dims(where, value), 0
        for mask in self._results(reader):
            beside |= mask if mask & _places(reader, value) else 0
        labels = [label for place, operand in enumerate(reader.operands)
                  if beside >> place & 1 and operand != value and _dims(where, operand) == dims
                  for label in self._origin(where, operand)] if dims else []
        return min(labels, key=_unlike_weight, default="")

    def _results(self, reader: HloInstruction) -> list[int]:
        """For each result of a kernel, a bit set of the operands it depends on: a fusion may update many parameters."""
        every = (1 << len(reader.operands)) - 1
        if reader.opcode != "fusion":
            return [every]
        name = next(iter(reader.called("calls")), "")
        if name not in self._masks:
            fused = self._module.computations.get(name)
            self._masks[name] = [every] if fused is None else _dependences(fused)
        return self._masks[name]

    def _goes_on(self, where: Computation, reader: HloInstruction, value: str) -> list[Place]:
        """The values that a value becomes in one of its readers."""
        opcode = reader.opcode
        if opcode == "tuple":
            return self._through_tuple(where, reader, value)
        if opcode.endswith("-done") or opcode in _MOVES:
            return [(where, reader.name)]
        if opcode == "fusion":
            fused = self._module.computations.get(next(iter(reader.called("calls")), ""))
            if fused is None or any(each.opcode in _PRODUCTS for each in fused.instructions.values()):
                return []
            masks, places = self._results(reader), _places(reader, value)
            made = [reader] if len(masks) == 1 else [
                each for each in self._readers.of(where, reader.name)
                if (at := INDEX.search(each.attributes)) and int(at.group(1)) < len(masks)
                and masks[int(at.group(1))] & places]
            stacks = any(each.opcode == "dynamic-update-slice" for each in fused.instructions.values())
            return [(where, each.name) for each in made if self._moves(reader)
                    or _continues(_dims(where, value), _dims(where, each.name), stacks)]
        return [(where, reader.name)] if opcode in _KERNELS else []

    def _through_tuple(self, where: Computation, made: HloInstruction, value: str) -> list[Place]:
        """Elements of a loop's result, or of its body's parameter, that a value of its tuple becomes."""
        index = self._places_in(where, made)[value]
        loops: list[tuple[Computation, str]] = []
        around = self._readers.loop_of(where.name)
        if around is not None and where.root == made.name:
            loops.append((around[0], around[1].name))
        for reader in self._readers.of(where, made.name):
            if reader.opcode == "while":
                body = self._module.computations.get(next(iter(reader.called("body")), ""))
                parameter = next((each.name for each in body.instructions.values() if each.opcode == "parameter"),
                                 "") if body is not None else ""
                loops += [(body, parameter)] if body is not None else []
        return [(there, reader) for there, name in loops for reader in self._taken(there, name).get(index, ())]

    def _places_in(self, where: Computation, made: HloInstruction) -> dict[str, int]:
        """The first index of each value in a tuple; tuples have thousands of operands."""
        key = where.name, made.name
        if key not in self._taken_at:
            self._taken_at[key] = {operand: place for place, operand in reversed([*enumerate(made.operands)])}
        return self._taken_at[key]

    def _taken(self, where: Computation, name: str) -> dict[int, list[str]]:
        """The instructions that take each element of a tuple."""
        taken = self._elements.get((where.name, name))
        if taken is None:
            taken = self._elements[where.name, name] = {}
            for reader in self._readers.of(where, name):
                if reader.opcode == "get-tuple-element" and (at := INDEX.search(reader.attributes)):
                    taken.setdefault(int(at.group(1)), []).append(reader.name)
        return taken


def _places(reader: HloInstruction, value: str) -> int:
    """A bit set of the operands at which a reader takes a value."""
    return sum(1 << place for place, operand in enumerate(reader.operands) if operand == value)


def _dependences(fused: Computation) -> list[int]:
    """For each result of a fusion, a bit set of the parameters it depends on."""
    masks: dict[str, int] = {}
    for instruction in fused.instructions.values():
        if instruction.opcode == "parameter" and instruction.literal.strip().isdigit():
            masks[instruction.name] = 1 << int(instruction.literal)
        else:
            mask = 0
            for operand in instruction.operands:
                mask |= masks.get(operand, 0)
            masks[instruction.name] = mask
    root = fused.instructions.get(fused.root)
    results = root.operands if root is not None and root.opcode == "tuple" else (fused.root,)
    return [masks.get(name, 0) for name in results]


def _dims(computation: Computation, name: str) -> tuple[int, ...]:
    """Sizes of an array; empty for a scalar, a tuple or an unknown name."""
    made = computation.instructions.get(name)
    shapes = arrays(made.shape) if made is not None else ()
    return shapes[0][1] if len(shapes) == 1 else ()


def _continues(dims: tuple[int, ...], made: tuple[int, ...], stacks: bool) -> bool:
    """Whether a kernel's result may still be the value it reads: it has as many elements, or is a stack of such values.

    A one-dimensional value may be many tensors that XLA joined for one call, so anything may be a part of it.
    """
    return len(dims) == 1 or prod(made) == prod(dims) or (stacks and prod(made[1:]) == prod(dims))


def _unlike_weight(label: str) -> tuple[bool, bool, int, str]:
    """Sort key of names by how likely they are a weight: those that say parameter first, optimizer states last."""
    return "param" not in label.lower(), bool(_STATE.search(label)), len(label), label
