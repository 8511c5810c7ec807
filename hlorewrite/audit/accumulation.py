"""Whether the result of a collective is only summed up, stacked or carried out by the loop it is in.

The result is followed through the instructions of the loop's body and through fusions, as long as the values made from
it are linear in it with loop-invariant coefficients. It leaves the loop if it is added to an element of the loop's
tuple, is written into one at an index, or replaces one that the body does not read. Any other use needs the value in
every iteration.
"""

from dataclasses import dataclass
from heapq import heappop, heappush

from hlorewrite.audit.loop_variance import MOVES, LoopVariance, element_of
from hlorewrite.hlo.parse import INDEX, Computation, HloInstruction, HloText
from hlorewrite.hlo.readers import Readers

_LINEAR = MOVES | {"convert", "reshape", "transpose", "slice", "broadcast", "negate", "get-tuple-element",
                   "concatenate", "pad", "dynamic-slice", "reverse"}
_SCALES = frozenset(("multiply", "divide"))
_SUMS = frozenset(("add", "subtract"))
ALONE, SUMMED, STACKED, NEEDED = "alone", "summed", "stacked", "needed"


@dataclass(frozen=True)
class LinearUse:
    """How a value depends on a collective's result.

    Attributes:
      form: ``alone``: linear in it; ``summed``: an element of the loop's tuple plus that; ``stacked``: such an element
        with that written into it; ``needed``: anything else.
      element: the element.
      reader: the instruction that needs it.
      scaled: a factor is between the result and this value.
    """

    form: str
    element: int = -1
    reader: HloInstruction | None = None
    scaled: bool = False


@dataclass(frozen=True)
class LeavesLoops:
    """The loops that a collective could leave.

    Attributes:
      out_of: loop bodies that only sum up the result over their iterations, or of which only the last iteration's
          result is needed.
      through: loop bodies that stack the result: the collective leaves them too, and sends the whole stack.
      scaled: a factor is between the collective and the sum.
      needed_by: the instruction that needs the result in an iteration, when no loop could be left.
    """

    out_of: tuple[str, ...]
    through: tuple[str, ...]
    scaled: bool
    needed_by: HloInstruction | None


class Accumulations:
    """Follows results of collectives through the loops of a module.

    Args:
      module: parsed HLO.
      readers: the readers of its values.
      variance: the variance of its loops.
    """

    def __init__(self, module: HloText, readers: Readers, variance: LoopVariance) -> None:
        self._module, self._readers, self._variance = module, readers, variance
        self._elements: dict[str, dict[int, list[str]]] = {}
        self._roots: dict[str, dict[str, list[int]]] = {}
        self._parts: dict[tuple[str, str], dict[int, list[str]]] = {}

    def of(self, computation: Computation, name: str) -> LeavesLoops:
        """Follows one result.

        Args:
          computation: what the collective is in.
          name: the collective; of a pair its start.

        Returns:
          The loops it could leave, the innermost first.
        """
        out_of: list[str] = []
        through: list[str] = []
        scaled, needed = False, None
        values = {name: LinearUse(ALONE)}
        # Ends: each round goes to the loop around, and HLO has no recursion.
        while (summary := self._variance.loop_of(computation.name)) is not None:
            ends = self._ends(computation, values)
            needed = next((end.reader for end in ends if end.form == NEEDED), None)
            if not ends or needed is not None or any(end.form == ALONE for end in ends):
                break
            scaled = scaled or any(end.scaled for end in ends)
            (through if any(end.form == STACKED for end in ends) else out_of).append(computation.name)
            values = self._outside(summary.outer, summary.loop, {end.element for end in ends})
            computation = summary.outer
        return LeavesLoops(tuple(out_of), tuple(through) if out_of else (), scaled, needed if not out_of else None)

    def _outside(self, outer: Computation, loop: HloInstruction, elements: set[int]) -> dict[str, LinearUse]:
        """Elements of a loop's result, as values of the computation around it."""
        start = outer.instructions.get(loop.operands[0])
        made: dict[str, LinearUse] = {}
        for index in sorted(elements):
            first = start.operands[index] if start is not None and index < len(start.operands) else ""
            carried = element_of(outer, first)
            for name in self._parts_of(outer, loop.name).get(index, ()):
                made[name] = LinearUse(ALONE) if carried is None else LinearUse(SUMMED, carried)
        return made

    def _parts_of(self, computation: Computation, name: str) -> dict[int, list[str]]:
        """By index, the elements that are read of a tuple."""
        key = computation.name, name
        if key not in self._parts:
            found = self._parts[key] = {}
            for reader in self._readers.of(computation, name):
                at = INDEX.search(reader.attributes) if reader.opcode == "get-tuple-element" else None
                if at:
                    found.setdefault(int(at.group(1)), []).append(reader.name)
        return self._parts[key]

    def _ends(self, body: Computation, start: dict[str, LinearUse]) -> list[LinearUse]:
        """How values end in one iteration of a loop: an entry for each way they leave it, and for each op that needs
        them.
        """
        values, order = dict(start), self._readers.order(body)
        queue: list[int] = []
        for name in start:
            for place in self._readers.places(body).get(name, ()):
                heappush(queue, place)
        ends: list[LinearUse] = []
        last = -1
        while queue:  # Ends: places only grow, and each is visited once.
            place = heappop(queue)
            if place == last:
                continue
            last, reader = place, order[place]
            if reader.name == body.root:
                ends += self._left(body, reader, values)
                continue
            for made, use in self._made(body, reader, values).items():
                if use.form == NEEDED:
                    return [use]
                values[made] = use
                for behind in self._readers.places(body).get(made, ()):
                    heappush(queue, behind)
        return ends

    def _left(self, body: Computation, root: HloInstruction, values: dict[str, LinearUse]) -> list[LinearUse]:
        """The ways in which values leave through the root of a body."""
        if root.opcode != "tuple":
            return [LinearUse(NEEDED, reader=root)]
        ends: list[LinearUse] = []
        places = self._root_places(body, root)
        for index in sorted(index for name in values for index in places.get(name, ())):
            use = values[root.operands[index]]
            fresh = use.form == ALONE and not self._reads(body, index)
            beside = self._in_condition(body, index) or (
                not fresh and (use.element != index or self._read_beside(body, index, values)))
            if beside:
                return [LinearUse(NEEDED, reader=root)]
            ends.append(LinearUse(SUMMED if fresh else use.form, index, None, use.scaled))
        return ends

    def _root_places(self, body: Computation, root: HloInstruction) -> dict[str, list[int]]:
        """The positions of each value in the tuple that a body returns, by the value's name."""
        if body.name not in self._roots:
            found = self._roots[body.name] = {}
            for index, operand in enumerate(root.operands):
                found.setdefault(operand, []).append(index)
        return self._roots[body.name]

    def _reads(self, body: Computation, index: int) -> list[str]:
        """Values of a body that are an element of its tuple."""
        if body.name not in self._elements:
            found = self._elements[body.name] = {}
            for each in body.instructions.values():
                element = element_of(body, each.name) if each.opcode == "get-tuple-element" else None
                if element is not None and self._readers.places(body).get(each.name):
                    found.setdefault(element, []).append(each.name)
        return self._elements[body.name].get(index, [])

    def _in_condition(self, body: Computation, index: int) -> bool:
        """Whether the condition of the loop reads an element."""
        summary = self._variance.loop_of(body.name)
        name = next(iter(summary.loop.called("condition")), "") if summary is not None else ""
        condition = self._module.computations.get(name)
        return condition is None or bool(self._reads(condition, index))

    def _read_beside(self, body: Computation, index: int, values: dict[str, LinearUse]) -> bool:
        """Whether an element is read by anything but the sum it belongs to."""
        for name in self._reads(body, index):
            for reader in self._readers.of(body, name):
                parts = [reader.name, *(each.name for each in self._readers.of(body, reader.name)
                                        if each.opcode == "get-tuple-element")]
                if reader.opcode not in MOVES and not any(part in values for part in parts):
                    return True
        return False

    # ---- one instruction

    def _made(self, body: Computation, reader: HloInstruction, values: dict[str, LinearUse]) -> dict[str, LinearUse]:
        """The forms in which an instruction of a body passes values on, by name; elements of a fusion's tuple included.
        """
        if reader.opcode in ("fusion", "call"):
            return self._fused(body, reader, values)
        carried = {operand: element for operand in reader.operands
                   if (element := element_of(body, operand)) is not None}
        fixed = {operand for operand in reader.operands if self._is_fixed(body, operand)}
        return {reader.name: _linear(reader, values, carried, fixed)}

    def _is_fixed(self, body: Computation, name: str) -> bool:
        varying = self._variance.varies_in(body, name)
        return varying is not None and body.name not in varying

    def _fused(self, body: Computation, fusion: HloInstruction, values: dict[str, LinearUse]) -> dict[str, LinearUse]:
        fused = self._module.computations.get(next(iter(fusion.called("calls", "to_apply")), ""))
        if fused is None:
            return {fusion.name: LinearUse(NEEDED, reader=fusion)}
        inside: dict[str, LinearUse] = {}
        carried: dict[str, int] = {}
        fixed = set[str]()
        for each in fused.instructions.values():
            if each.opcode == "parameter" and each.literal.strip().isdigit() \
                    and int(each.literal) < len(fusion.operands):
                operand = fusion.operands[int(each.literal)]
                element = element_of(body, operand)
                inside |= {each.name: values[operand]} if operand in values else {}
                carried |= {each.name: element} if element is not None else {}
                fixed |= {each.name} if self._is_fixed(body, operand) else set()
            elif each.opcode == "constant":
                fixed.add(each.name)
            elif any(operand in inside for operand in each.operands):
                if each.name == fused.root and each.opcode == "tuple":
                    break
                inside[each.name] = _linear(each, inside, carried, fixed)
            else:
                if each.opcode in MOVES and each.operands and each.operands[0] in carried:
                    carried[each.name] = carried[each.operands[0]]
                fixed |= {each.name} if each.operands and all(operand in fixed for operand in each.operands) else set()
        return self._results(body, fusion, fused, inside)

    def _results(self, body: Computation, fusion: HloInstruction, fused: Computation,
                 inside: dict[str, LinearUse]) -> dict[str, LinearUse]:
        root = fused.instructions.get(fused.root)
        if root is None or root.opcode != "tuple":
            use = inside.get(fused.root)
            return {} if use is None else {fusion.name: _outside_fusion(use, fusion)}
        made: dict[str, LinearUse] = {}
        for reader in self._readers.of(body, fusion.name):
            at = INDEX.search(reader.attributes)
            if reader.opcode != "get-tuple-element" or not at or int(at.group(1)) >= len(root.operands):
                return {fusion.name: LinearUse(NEEDED, reader=fusion)}
            use = inside.get(root.operands[int(at.group(1))])
            made |= {} if use is None else {reader.name: _outside_fusion(use, fusion)}
        return made


def _outside_fusion(use: LinearUse, fusion: HloInstruction) -> LinearUse:
    """Attributes a use inside a fusion to the fusion, which has the user's line."""
    return use if use.form != NEEDED or (use.reader is not None and "stack_frame_id=" in use.reader.attributes) \
        else LinearUse(NEEDED, reader=fusion)


def _linear(reader: HloInstruction, values: dict[str, LinearUse], carried: dict[str, int],
            fixed: set[str]) -> LinearUse:
    """What one plain instruction makes of values."""
    needed = LinearUse(NEEDED, reader=reader)
    uses = [values[operand] for operand in reader.operands if operand in values]
    others = [operand for operand in reader.operands if operand not in values]
    if any(use.form == NEEDED for use in uses) or not uses:
        return next((use for use in uses if use.form == NEEDED), needed)
    opcode, use = reader.opcode, uses[0]
    if opcode in _LINEAR or opcode.endswith("-done"):
        moves = opcode in MOVES or opcode.endswith("-done")
        return use if moves or all(each.form == ALONE for each in uses) else needed
    if opcode in _SCALES:
        scales = len(uses) == 1 and use.form == ALONE and others == [o for o in others if o in fixed] \
            and (opcode == "multiply" or reader.operands[0] in values)
        return LinearUse(ALONE, scaled=True) if scales else needed
    if opcode in _SUMS:
        return _sum(reader, uses, others, carried)
    if opcode == "dynamic-update-slice" and len(uses) == 1 and len(reader.operands) > 1 \
            and reader.operands[1] in values and use.form == ALONE and reader.operands[0] in carried:
        return LinearUse(STACKED, carried[reader.operands[0]], None, use.scaled)
    return needed


def _sum(reader: HloInstruction, uses: list[LinearUse], others: list[str], carried: dict[str, int]) -> LinearUse:
    """A sum of values, or of a value and something else."""
    scaled = any(use.scaled for use in uses)
    summed = [use for use in uses if use.form != ALONE]
    if len(summed) > 1 or any(use.form == STACKED for use in summed):
        return LinearUse(NEEDED, reader=reader)
    if summed:
        return LinearUse(SUMMED, summed[0].element, None, scaled)
    element = next((carried[other] for other in others if other in carried), None)
    negated = element is not None and reader.opcode == "subtract" and reader.operands[1] in carried
    if element is None or negated:
        return LinearUse(NEEDED, reader=reader) if negated else LinearUse(ALONE, scaled=scaled)
    return LinearUse(SUMMED, element, None, scaled)
