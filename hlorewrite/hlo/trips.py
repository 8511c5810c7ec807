"""Trip count of a ``while`` of optimised HLO: from XLA's own count, or from its counter, condition and start.

XLA writes ``known_trip_count`` if its analysis finds one, but its own passes may lose it (the collective pipeliner
does). The count is then read off the loop: a condition that compares an element of the loop's tuple with a bound, a
body that adds a constant to this element, and the element's value before the loop. XLA:GPU puts comparison and addition
into fusions and copies scalars, so values are followed through both; a bound may be an element that the body passes on
unchanged, and a start may come from a loop around that passes it on unchanged.
"""

import re
from dataclasses import dataclass

from hlorewrite.hlo.parse import INDEX, Computation, HloInstruction, HloText

_STATED = re.compile(r'"known_trip_count\\?":\s*\{\s*\\?"n\\?":\s*\\?"?(\d+)')
"""Older texts print the whole configuration as a string, its quotes escaped."""
_DIRECTION = re.compile(r"\bdirection=(\w+)")
_SAME = frozenset(("copy", "bitcast", "convert", "reshape", "copy-start", "copy-done", "optimization-barrier"))
_CALLS = frozenset(("fusion", "call"))
_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}
_DEEPEST = 200


@dataclass(frozen=True)
class Affine:
    """An integer: a constant, or an element of the computation's tuple parameter plus a constant.

    Attributes:
      constant: what is added.
      element: which element; None for a constant alone.
    """

    constant: int
    element: int | None = None


@dataclass(frozen=True)
class _Frame:
    """A computation being read, and what its parameters are: None for a loop's, which is one tuple."""

    computation: Computation
    arguments: tuple[Affine | None, ...] | None = None


class TripCounts:
    """Trip counts of the loops of one module.

    Args:
      module: parsed HLO.

    Example:
      >>> from hlorewrite.hlo.parse import parse_hlo
      >>> module = parse_hlo('''HloModule m
      ... %condition (c: (s32[])) -> pred[] {
      ...   %c = (s32[]) parameter(0)
      ...   %i = s32[] get-tuple-element(%c), index=0
      ...   %seven = s32[] constant(7)
      ...   ROOT %less = pred[] compare(%i, %seven), direction=LT
      ... }
      ... %body (b: (s32[])) -> (s32[]) {
      ...   %b = (s32[]) parameter(0)
      ...   %j = s32[] get-tuple-element(%b), index=0
      ...   %two = s32[] constant(2)
      ...   %next = s32[] add(%j, %two)
      ...   ROOT %t = (s32[]) tuple(%next)
      ... }
      ... ENTRY %main (z: f32[]) -> (s32[]) {
      ...   %z = f32[] parameter(0)
      ...   %zero = s32[] constant(0)
      ...   %start = (s32[]) tuple(%zero)
      ...   ROOT %loop = (s32[]) while(%start), condition=%condition, body=%body
      ... }''')
      >>> entry = module.computations["main"]
      >>> TripCounts(module).of(entry, entry.instructions["loop"])
      4
    """

    def __init__(self, module: HloText) -> None:
        self._module = module
        self._callers: dict[str, list[tuple[Computation, HloInstruction]]] | None = None

    def of(self, computation: Computation, loop: HloInstruction) -> int | None:
        """How often a loop runs its body each time it is reached.

        Args:
          computation: the computation the loop is in.
          loop: its ``while``.

        Returns:
          The count; None when neither XLA nor the loop itself says.
        """
        stated = stated_trip_count(loop)
        return self._counted(computation, loop) if stated is None else stated

    def _counted(self, computation: Computation, loop: HloInstruction) -> int | None:
        condition, body = self._called(loop, "condition"), self._called(loop, "body")
        if condition is None or body is None:
            return None
        compared = self._comparison(_Frame(condition), condition.root, _DEEPEST)
        if compared is None:
            return None
        direction, left, right = compared
        for counter, limit, way in ((left, right, direction), (right, left, _MIRRORED.get(direction, ""))):
            step = None if counter.element is None else self._step(body, counter.element)
            if counter.element is None or not step:
                continue
            start = self._start(computation, loop, Affine(0, counter.element), body)
            bound = self._start(computation, loop, limit, body) if self._invariant(body, limit) else None
            if start is not None and bound is not None:
                return _turns(start + counter.constant, bound, step, way)
        return None

    def _called(self, instruction: HloInstruction, key: str) -> Computation | None:
        return self._module.computations.get(next(iter(instruction.called(key)), ""))

    # ---- the loop

    def _step(self, body: Computation, element: int) -> int | None:
        """What the body adds to an element; 0 when it passes it on unchanged, None when it does something else."""
        value = self._element(_Frame(body), body.root, element, _DEEPEST)
        return value.constant if value is not None and value.element == element else None

    def _invariant(self, body: Computation, value: Affine) -> bool:
        return value.element is None or self._step(body, value.element) == 0

    def _start(self, computation: Computation, loop: HloInstruction, value: Affine, body: Computation) -> int | None:
        """The constant a value of the loop's tuple is before the first iteration."""
        if value.element is None:
            return value.constant
        tuple_before = loop.operands[0] if loop.operands else ""
        before = self._element(_Frame(computation), tuple_before, value.element, _DEEPEST)
        made = self._constant(computation, before, len(self._module.computations))
        return None if made is None else made + value.constant

    def _constant(self, computation: Computation, value: Affine | None, left: int) -> int | None:
        """A value as a number; one that comes from the tuple of a loop around is followed there if unchanged."""
        # Ends: ``left`` falls, and there are no more loops around than computations.
        while value is not None and value.element is not None and left:
            left -= 1
            callers = self._loops_around().get(computation.name, [])
            if len(callers) != 1 or not self._invariant(computation, Affine(0, value.element)):
                return None
            outer, loop = callers[0]
            before = self._element(_Frame(outer), loop.operands[0], value.element, _DEEPEST)
            value = None if before is None else Affine(before.constant + value.constant, before.element)
            computation = outer
        return value.constant if value is not None and value.element is None else None

    def _loops_around(self) -> dict[str, list[tuple[Computation, HloInstruction]]]:
        """By the name of a body: the loops that have it."""
        if self._callers is None:
            self._callers = {}
            for computation in self._module.computations.values():
                for instruction in computation.instructions.values():
                    if instruction.opcode == "while":
                        for name in instruction.called("body"):
                            self._callers.setdefault(name, []).append((computation, instruction))
        return self._callers

    # ---- values

    def _value(self, frame: _Frame, name: str, left: int) -> Affine | None:
        """A scalar; ``left`` bounds how far it is followed, for in a damaged text a value may read itself."""
        made = frame.computation.instructions.get(name)
        if made is None or not left:
            return None
        if made.opcode == "constant":
            return Affine(int(made.literal)) if re.fullmatch(r"\s*-?\d+\s*", made.literal) else None
        if made.opcode == "parameter":
            return _argument(frame, made)
        if made.opcode in _SAME and made.operands:
            return self._value(frame, made.operands[0], left - 1)
        if made.opcode == "get-tuple-element" and made.operands:
            index = INDEX.search(made.attributes)
            return self._element(frame, made.operands[0], int(index.group(1)), left - 1) if index else None
        if made.opcode in _CALLS:
            inner = self._inside(frame, made, left)
            return None if inner is None else self._value(inner, inner.computation.root, left - 1)
        if made.opcode in ("add", "subtract") and len(made.operands) == 2:
            return _sum(self._value(frame, made.operands[0], left - 1), self._value(frame, made.operands[1], left - 1),
                        -1 if made.opcode == "subtract" else 1)
        return None

    def _element(self, frame: _Frame, name: str, index: int, left: int) -> Affine | None:
        """An element of a tuple."""
        made = frame.computation.instructions.get(name)
        if made is None or not left:
            return None
        if made.opcode == "parameter":
            return Affine(0, index) if frame.arguments is None else None
        if made.opcode == "tuple":
            return self._value(frame, made.operands[index], left - 1) if index < len(made.operands) else None
        if made.opcode in _SAME and made.operands:
            return self._element(frame, made.operands[0], index, left - 1)
        if made.opcode in _CALLS:
            inner = self._inside(frame, made, left)
            return None if inner is None else self._element(inner, inner.computation.root, index, left - 1)
        if made.opcode == "while" and made.operands:  # a loop that forwards the element
            body = self._called(made, "body")
            if body is not None and self._step(body, index) == 0:
                return self._element(frame, made.operands[0], index, left - 1)
        return None

    def _comparison(self, frame: _Frame, name: str, left: int) -> tuple[str, Affine, Affine] | None:
        """(direction, left side, right side) of the comparison that decides whether a loop runs another iteration."""
        made = frame.computation.instructions.get(name)
        if made is None or not left:
            return None
        if made.opcode in _CALLS:
            inner = self._inside(frame, made, left)
            return None if inner is None else self._comparison(inner, inner.computation.root, left - 1)
        if made.opcode in _SAME and made.operands:
            return self._comparison(frame, made.operands[0], left - 1)
        direction = _DIRECTION.search(made.attributes)
        if made.opcode != "compare" or direction is None or len(made.operands) != 2:
            return None
        sides = [self._value(frame, operand, left - 1) for operand in made.operands]
        return None if sides[0] is None or sides[1] is None else (direction.group(1), sides[0], sides[1])

    def _inside(self, frame: _Frame, call: HloInstruction, left: int) -> _Frame | None:
        called = self._called(call, "calls") or self._called(call, "to_apply")
        if called is None:
            return None
        return _Frame(called, tuple(self._value(frame, operand, left - 1) for operand in call.operands))


def stated_trip_count(loop: HloInstruction) -> int | None:
    """XLA's own count of a loop; None when it wrote none."""
    stated = _STATED.search(loop.attributes)
    return int(stated.group(1)) if stated else None


def _argument(frame: _Frame, parameter: HloInstruction) -> Affine | None:
    number = parameter.literal.strip()
    if frame.arguments is None or not number.isdigit() or int(number) >= len(frame.arguments):
        return None
    return frame.arguments[int(number)]


def _sum(left: Affine | None, right: Affine | None, sign: int) -> Affine | None:
    if left is None or right is None:
        return None
    if left.element is not None and right.element is not None:
        return None
    if right.element is not None and sign < 0:
        return None
    element = right.element if left.element is None else left.element
    return Affine(left.constant + sign * right.constant, element)


def _turns(start: int, bound: int, step: int, direction: str) -> int | None:
    """Iterations of ``for (i = start; i DIRECTION bound; i += step)``; None when it need not end."""
    if direction in ("LE", "GE"):
        bound, direction = bound + (1 if direction == "LE" else -1), {"LE": "LT", "GE": "GT"}[direction]
    if direction == "NE":
        distance = bound - start
        return distance // step if distance % step == 0 and distance // step >= 0 else None
    if (direction, step > 0) not in (("LT", True), ("GT", False)):
        return None
    return max(0, -((start - bound) // step))
