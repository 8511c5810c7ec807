"""Finds the loops in which a value of HLO changes from iteration to iteration.

Each computation is read once: a value depends on elements of the computation's parameters, kept as bits. Of a loop's
tuple, an element that the body passes on unchanged is the same in every iteration; another depends on whatever its next
value depends on, which is closed under iterations. A query follows the bits outwards, loop by loop.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hlorewrite.hlo.parse import INDEX, Computation, HloInstruction, HloText

MOVES = frozenset(("copy", "bitcast", "optimization-barrier", "copy-start", "copy-done"))
"""Ops whose result is their operand."""
_OPAQUE = frozenset(("rng", "infeed", "outfeed", "send", "recv", "rng-get-and-update-state"))
_EFFECT = "custom_call_has_side_effect=true"
_CALLED = ("calls", "to_apply", "called_computations", "branch_computations", "true_computation", "false_computation")

Parts = int | tuple[int, ...]
"""The parameter elements that a value depends on, as bits; for a tuple, those of each element."""


@dataclass(frozen=True)
class LoopSummary:
    """A loop, seen from the surrounding computation.

    Attributes:
      outer: the computation it is in.
      loop: its ``while``.
      same: elements of its tuple that the body passes on unchanged, as bits.
      closed: for each element, the elements whose initial values its value in any iteration depends on.
      opaque: elements of unknown value.
    """

    outer: Computation
    loop: HloInstruction
    same: int
    closed: tuple[int, ...]
    opaque: int


class LoopVariance:
    """Reads a module and answers for its values.

    Args:
      module: parsed HLO.

    Example:
      >>> from hlorewrite.hlo.parse import parse_hlo
      >>> module = parse_hlo('''HloModule m
      ... ENTRY %main (p: f32[4]) -> f32[4] {
      ...   %p = f32[4]{0} parameter(0)
      ...   ROOT %n = f32[4]{0} negate(%p)
      ... }''')
      >>> LoopVariance(module).varies_in(module.computations["main"], "n")
      frozenset()
    """

    def __init__(self, module: HloText) -> None:
        self._module = module
        self._values: dict[str, dict[str, Parts]] = {}
        self._loops: dict[str, list[LoopSummary]] = {}
        self._bits: dict[str, int] = {}
        self._open: set[str] = set()
        if module.entry in module.computations:
            self._read(module.entry)

    def loops_around(self, computation: str) -> list[LoopSummary]:
        """The loops around a computation, the innermost first, up to a computation that several loops share."""
        around: list[LoopSummary] = []
        # Ends: HLO has no recursion, and reading a module refuses one: each step goes to a caller not yet in the list.
        while (summary := self.loop_of(computation)) is not None and len(around) <= len(self._module.computations):
            around.append(summary)
            computation = summary.outer.name
        return around

    def loop_of(self, body: str) -> LoopSummary | None:
        """The one loop that has a computation as its body."""
        found = self._loops.get(body, [])
        return found[0] if len(found) == 1 else None

    def varies_in(self, computation: Computation, name: str) -> frozenset[str] | None:
        """The loops around a value in which it changes.

        Args:
          computation: the computation that it is in.
          name: the value.

        Returns:
          Names of loop bodies; None when that cannot be said: the value is in a computation that is called.
        """
        value = self._values.get(computation.name, {}).get(name)
        if value is None:
            return None
        bits, varying = _all(value), set[str]()
        # Ends: each step goes to the computation around a loop, and HLO has no recursion.
        while computation.name != self._module.entry:
            summary = self.loop_of(computation.name)
            if summary is None:
                return None
            opaque = 1 << len(summary.closed)
            if bits & (opaque | ~summary.same):
                varying.add(computation.name)
            outer = self._values[summary.outer.name].get(summary.loop.operands[0], 0)
            closed = _closure(bits, summary.closed)
            bits = self._bits[summary.outer.name] if closed & (opaque | summary.opaque) else _picked(outer, closed)
            computation = summary.outer
        return frozenset(varying)

    # ---- reading

    def _read(self, name: str) -> Parts:
        """What each value of a computation depends on; the last bit marks unknown dependences."""
        computation = self._module.computations[name]
        self._open.add(name)
        values = self._values[name] = {}
        parameters = [i for i in computation.instructions.values() if i.opcode == "parameter"]
        width = _tuple_width(computation, parameters)
        self._bits[name] = 1 << max(width, len(parameters))
        for instruction in computation.instructions.values():
            if instruction.opcode == "parameter":
                number = int(instruction.literal) if instruction.literal.strip().isdigit() else 0
                values[instruction.name] = tuple(1 << i for i in range(width)) if width else 1 << number
            else:
                values[instruction.name] = self._value(computation, instruction, values)
        self._open.discard(name)
        return values.get(computation.root, 0)

    def _value(self, computation: Computation, instruction: HloInstruction, values: dict[str, Parts]) -> Parts:
        operands = [values.get(operand, 0) for operand in instruction.operands]
        opcode = instruction.opcode
        if opcode == "tuple":
            return tuple(map(_all, operands))
        if opcode == "get-tuple-element" and operands:
            at, whole = INDEX.search(instruction.attributes), operands[0]
            return whole[int(at.group(1))] if at and isinstance(whole, tuple) and int(at.group(1)) < len(whole) \
                else _all(whole)
        if opcode in MOVES and len(operands) == 1:
            return operands[0]
        if opcode == "while" and operands:
            return self._loop(computation, instruction, operands[0])
        bits = 0
        for operand in operands:
            bits |= _all(operand)
        if opcode in _OPAQUE or _EFFECT in instruction.attributes:
            bits |= self._bits[computation.name]
        if opcode not in ("fusion", "reduce", "scatter", "sort", "map"):
            for name in instruction.called(*_CALLED):
                if name in self._module.computations and name not in self._values:
                    self._read(name)
        return bits

    def _loop(self, computation: Computation, loop: HloInstruction, before: Parts) -> Parts:
        body = self._module.computations.get(next(iter(loop.called("body")), ""))
        if body is None or body.name in self._open:
            return _all(before) | self._bits[computation.name]
        root = self._read(body.name) if body.name not in self._values else self._values[body.name].get(body.root, 0)
        if not isinstance(root, tuple):
            return _all(before) | self._bits[computation.name]
        same = sum(1 << i for i, bits in enumerate(root)
                   if bits == 1 << i and element_of(body, _operand(body, i)) == i)
        opaque = sum(1 << i for i, bits in enumerate(root) if bits & (1 << len(root)))
        summary = LoopSummary(computation, loop, same, _closed(root), opaque)
        self._loops.setdefault(body.name, []).append(summary)
        hidden = 1 << len(root)
        return tuple(self._bits[computation.name] if bits & (hidden | opaque) else _picked(before, bits)
                     for bits in summary.closed)


def element_of(body: Computation, name: str) -> int | None:
    """The index of the element of a loop's tuple that a value holds unchanged; None if it holds none.

    Args:
      body: the loop's body.
      name: the value.
    """
    for _ in range(len(body.instructions)):
        made = body.instructions.get(name)
        if made is None or not made.operands:
            return None
        if made.opcode == "get-tuple-element":
            source, at = body.instructions.get(made.operands[0]), INDEX.search(made.attributes)
            return int(at.group(1)) if at and source is not None and source.opcode == "parameter" else None
        if made.opcode not in MOVES:
            return None
        name = made.operands[0]
    return None


def _operand(body: Computation, index: int) -> str:
    root = body.instructions.get(body.root)
    return root.operands[index] if root is not None and root.opcode == "tuple" and index < len(root.operands) else ""


def _tuple_width(computation: Computation, parameters: list[HloInstruction]) -> int:
    """Number of elements of the tuple that is the only parameter; 0 if the parameter is not a tuple."""
    if len(parameters) != 1 or not parameters[0].shape.startswith("("):
        return 0
    indices = [int(at.group(1)) for each in computation.instructions.values()
               if each.opcode == "get-tuple-element" and each.operands == (parameters[0].name,)
               and (at := INDEX.search(each.attributes))]
    root = computation.instructions.get(computation.root)
    return max([*(index + 1 for index in indices), len(root.operands) if root is not None
                and root.opcode == "tuple" else 0, 1])


def _all(parts: Parts) -> int:
    if isinstance(parts, int):
        return parts
    bits = 0
    for part in parts:
        bits |= part
    return bits


def _set_bits(bits: int) -> Iterator[int]:
    """The places of the bits that are set, from the lowest."""
    while bits:  # Ends: the lowest bit is dropped in each round.
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _picked(parts: Parts, elements: int) -> int:
    """What some elements of a tuple depend on."""
    if isinstance(parts, int):
        return parts if elements else 0
    bits = 0
    for index in _set_bits(elements & (1 << len(parts)) - 1):
        bits |= parts[index]
    return bits


def _closed(root: tuple[int, ...]) -> tuple[int, ...]:
    """The elements each depends on over any number of iterations, itself included."""
    closed = [bits | 1 << index for index, bits in enumerate(root)]
    changed = True
    while changed:  # Ends: each round adds bits, and there are finitely many.
        before = tuple(closed)
        closed = [_closure(bits, before) | bits for bits in before]
        changed = tuple(closed) != before
    return tuple(closed)


def _closure(bits: int, closed: tuple[int, ...]) -> int:
    made = bits & (1 << len(closed))
    for index in _set_bits(bits & (1 << len(closed)) - 1):
        made |= closed[index]
    return made
