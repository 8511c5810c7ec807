"""Cuts the rewritten view of a mesh into fragments again.

Unchanged fragments are recognised and kept. All others are rewritten: their operands, their results and the types of
both follow from the view.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from hlorewrite.ir import Loop, element_bytes, ir, users
from hlorewrite.pipelines.mpmd import mesh_view_emit
from hlorewrite.pipelines.mpmd.fragment_assignment import CannotCut, FragmentAssignment, ViewFragment, assign_fragments
from hlorewrite.pipelines.mpmd.mesh_view import PARTS, SEND, MeshView, ProgramPosition
from hlorewrite.pipelines.mpmd.mesh_view_emit import FragmentEmitter, Interface
from hlorewrite.pipelines.mpmd.program import Carry, FragmentCall, Program, Step
from hlorewrite.pipelines.mpmd.types import MeshTensor


@dataclass(frozen=True)
class CutCall:
    """A fragment call of a cut view.

    Attributes:
      place: the original call; for a new fragment the place it is put before.
      is_new: whether it is a new fragment.
      function: its function; None when the original one still serves.
      operands: numbers of the values it reads.
      results: numbers of the values it makes.
    """

    place: ProgramPosition
    is_new: bool
    function: ir.Operation | None
    operands: tuple[int, ...]
    results: tuple[int, ...]


@dataclass
class MeshCut:
    """The outcome for one mesh.

    Attributes:
      mesh: its name.
      calls: its fragment calls.
      types: types of numbers that are new or changed.
      sent: transfer -> number it sends, where that changed.
      fed: fragment call in the global view -> numbers it reads.
      carries: position in ``Program.carries`` -> what it became.
      new_carries: carries that were not there.
      results: position in ``Program.results`` -> number.
    """

    mesh: str
    calls: list[CutCall] = field(default_factory=list)
    types: dict[int, MeshTensor] = field(default_factory=dict)
    sent: dict[ProgramPosition, int] = field(default_factory=dict)
    fed: dict[ProgramPosition, tuple[int, ...]] = field(default_factory=dict)
    carries: dict[int, Carry] = field(default_factory=dict)
    new_carries: list[Carry] = field(default_factory=list)
    results: dict[int, int] = field(default_factory=dict)


def cut_view(program: Program, view: MeshView, pristine: MeshView, scratch: ir.Block,
             fresh: Callable[[], int]) -> MeshCut:
    """Cuts a rewritten view.

    Args:
      program: the program the view was made of.
      view: the view after a pass.
      pristine: the view before it.
      scratch: a block for new functions; the caller takes them out of it.
      fresh: gives numbers for new values.

    Returns:
      The mesh's fragment calls and what passes between them.

    Raises:
      CannotCut: the rewritten view is not a program any more; the sentence says why.
    """
    return _Cutter(program, view, pristine, scratch, fresh).cut()


class _Cutter:
    def __init__(self, program: Program, view: MeshView, pristine: MeshView, scratch: ir.Block,
                 fresh: Callable[[], int]) -> None:
        self.program = program
        self.view = view
        self.before = assign_fragments(pristine, program)
        self.after = assign_fragments(view, program)
        self.pristine = pristine
        self.scratch = scratch
        self.fresh = fresh
        self.sizes = dict(view.local.axes)
        self.steps = {"before": program.before, "body": program.body, "after": program.after}
        self.numbers = dict(self.after.numbers)
        self.value_of = dict(self.after.values)
        self.loop = None if self.after.loop is None else Loop(self.after.loop)
        self.result = MeshCut(view.mesh)

    def cut(self) -> MeshCut:
        outputs = self._outputs(self.after)
        for fragment in self.after.fragments:
            for value in outputs[id(fragment)]:
                self._number(value)
        self._number_carries()
        self._type_values()
        self._write_fragments(outputs)
        self._write_ends()
        return self.result

    # ---- what passes between fragments

    def _outputs(self, homes: FragmentAssignment) -> dict[int, list[ir.Value]]:
        """Values each fragment makes that another fragment reads, in the order they are read."""
        outputs: dict[int, dict[ir.Value, None]] = {id(fragment): {} for fragment in homes.fragments}

        def note(value: ir.Value, reader: ViewFragment | None) -> None:
            home = homes.of_value(value)
            if home is not None and home is not reader:
                outputs[id(home)][value] = None

        for fragment in homes.fragments:
            for value in mesh_view_emit.read_outside(fragment, homes):
                note(value, fragment)
        for value in self._handed_on(homes):
            note(value, None)
        return {key: list(values) for key, values in outputs.items()}

    def _handed_on(self, homes: FragmentAssignment) -> list[ir.Value]:
        """What the loop carries, what is sent, what is returned."""
        loop = None if homes.loop is None else Loop(homes.loop)
        carried = [] if loop is None else [*list(loop.op.operands)[1:], *list(loop.yields)[1:]]
        return [*carried, *(value for _, operands in homes.sends for value in operands), *homes.returned]

    def _number(self, value: ir.Value) -> int:
        if value not in self.numbers:
            number = self.fresh()
            self.numbers[value] = number
            self.value_of[number] = value
        return self.numbers[value]

    def _known(self, value: ir.Value) -> int:
        if value not in self.numbers:
            raise CannotCut("a value that passes between fragments is made by none of them")
        return self.numbers[value]

    def _number_carries(self) -> None:
        if self.loop is None:
            return
        old = len(self.view.carries)
        for position in range(1, len(self.loop.op.results)):
            first, following = (self._known(value) for value in (self.loop.op.operands[position],
                                                                 self.loop.yields[position]))
            inside, after = (self._number(value) for value in (self.loop.body.arguments[position],
                                                               self.loop.op.results[position]))
            if position <= old:
                index = self.view.carries[position - 1]
                self.result.carries[index] = Carry(first, inside, following, after,
                                                   self.program.carries[index].is_sum)
            else:
                self.result.new_carries.append(Carry(first, inside, following, after, self._is_sum(position)))

    def _is_sum(self, position: int) -> bool:
        """Whether each micro-batch only adds to a carried value: it goes to one addition after the other."""
        assert self.loop is not None
        value: ir.Value = self.loop.body.arguments[position]
        # Ends: each step goes to a reader after it in the block.
        while True:
            readers = users(value)
            if len(readers) != 1:
                return False
            op, operand = readers[0]
            if op.name == "stablehlo.return":
                return operand == position
            if op.name == "stablehlo.optimization_barrier":
                value = op.results[operand]
            elif op.name == "stablehlo.add":
                value = op.results[0]
            else:
                return False

    # ---- types

    def _type_values(self) -> None:
        bases = self._bases()
        fixed = self._fixed()
        differences = mesh_view_emit.Differences(self.view)
        axes = {number: () if number in fixed else differences.axes(self.value_of[number], base)
                for number, base in bases.items()}
        for group in self._carried_together():
            along = {axis for number in group for axis in axes[number]}
            merged = tuple(name for name, _ in self.view.local.axes if name in along)
            if merged and any(number in fixed for number in group):
                raise CannotCut("an unreduced sum would have to be carried in a value of fixed type")
            if len({(bases[number].shape, bases[number].spec) for number in group}) > 1:
                raise CannotCut("a carried value would have to change its sharding")
            axes.update(dict.fromkeys(group, merged))
        for number, base in bases.items():
            self.result.types[number] = mesh_view_emit.with_leading(base, axes[number], self.sizes)

    def _fixed(self) -> set[int]:
        """Numbers whose type others know: arguments, results, and what comes from or goes to other meshes."""
        fixed = {step.result for step in self.program.steps if not isinstance(step, FragmentCall)} - self.view.loose
        fixed |= {number for place in self._opaque() for number in self._call(place).results}
        fixed |= {self._known(value) for numbers, operands in self.after.sends for value in operands
                  if numbers[0] >= 0 or ProgramPosition(PARTS[numbers[1]], numbers[2]) not in self.view.loose_sends}
        return fixed | set(self.program.arguments) | {self._known(value) for value in self.after.returned}

    def _opaque(self) -> list[ProgramPosition]:
        return [self.view.places[number] for number in sorted(self.view.opaque)]

    def _call(self, place: ProgramPosition) -> FragmentCall:
        step = self.steps[place.part][place.position]
        assert isinstance(step, FragmentCall)
        return step

    def _bases(self) -> dict[int, MeshTensor]:
        """A type for each number of the mesh whose tiles have the value's shape."""
        types = self.program.types
        bases = {number: types[number] for number in self.value_of if number < len(types)}
        known = {value: bases[number] for value, number in self.numbers.items() if number in bases}
        for value, kind in self._wanted():
            if self.numbers[value] not in bases:
                bases[self.numbers[value]] = known[value] = kind
        pending = [number for number in sorted(self.value_of) if number not in bases]
        for number in pending:
            value = self.value_of[number]
            base = mesh_view_emit.nearest_base(value, known, self.view)
            if base is None:
                element = ir.RankedTensorType(value.type).element_type
                base = mesh_view_emit.whole_tiles(value, self.view.mesh, int(element_bytes(element)))
            bases[number] = known[value] = base
        for carry in self.result.new_carries:
            like = next((bases[n] for n in (carry.first, carry.next) if n < len(types)), bases[carry.first])
            bases.update({n: like for n in (carry.first, carry.inside, carry.next, carry.after) if n >= len(types)})
        return bases

    def _wanted(self) -> list[tuple[ir.Value, MeshTensor]]:
        """Values whose type is known from who takes them."""
        types = self.program.types
        typed = [(value, types[self.program.results[position]])
                 for position, value in zip(self.view.results, self.after.returned, strict=True)]
        for numbers, operands in self.after.sends:
            wanted = self._sent_before(numbers)
            typed += [(value, types[number]) for value, number in zip(operands, wanted, strict=True)]
        for position, index in enumerate(self.view.carries, 1):
            assert self.loop is not None
            carry = self.program.carries[index]
            typed += [(self.loop.op.operands[position], types[carry.first]),
                      (self.loop.yields[position], types[carry.next])]
        return typed

    def _sent_before(self, numbers: list[int]) -> tuple[int, ...]:
        """What a transfer, or a fragment in the global view, read before the pass."""
        if numbers[0] >= 0:
            return self._call(self.view.places[numbers[0]]).operands
        step = self.steps[PARTS[numbers[1]]][numbers[2]]
        assert not isinstance(step, FragmentCall)
        return (step.operand,)

    def _carried_together(self) -> list[set[int]]:
        """Numbers that must have one type: those of each carry, and of carries that share a number."""
        groups: list[set[int]] = []
        for carry in [*self.result.carries.values(), *self.result.new_carries]:
            mine = {carry.first, carry.inside, carry.next, carry.after}
            for other in [each for each in groups if each & mine]:
                groups.remove(other)
                mine |= other
            groups.append(mine)
        return groups

    # ---- fragments

    def _write_fragments(self, outputs: dict[int, list[ir.Value]]) -> None:
        old_outputs = self._outputs(self.before)
        old = {fragment.number: fragment for fragment in self.before.fragments}
        now = FragmentEmitter(self.view, self.after, self.scratch)
        then = FragmentEmitter(self.pristine, self.before, self.scratch)
        for fragment in self.after.fragments:
            if fragment.number < 0:
                self._write_new(fragment, outputs[id(fragment)], now)
                continue
            place = self.view.places[fragment.number]
            call = self._call(place)
            was = old[fragment.number]
            touched = {*mesh_view_emit.read_outside(was, self.before), *old_outputs[id(was)]}
            used = {number for number, value in self.before.values.items() if value in touched}
            operands, interface = self._interface(call, used, fragment, outputs[id(fragment)])
            results = tuple(self.numbers[value] for value in interface.outputs)
            where = ir.Location.unknown() if not fragment.ops else fragment.ops[0].location
            function = now.emit(call.callee, fragment, interface, self._types(operands), self._types(results), where)
            if self._is_unchanged(call, was, then, function, operands, results):
                function.erase()
                self.result.calls.append(CutCall(place, False, None, call.operands, call.results))
            else:
                self.result.calls.append(CutCall(place, False, function, operands, results))

    def _types(self, numbers: tuple[int, ...]) -> list[MeshTensor]:
        return [self.result.types[number] for number in numbers]

    def _interface(self, call: FragmentCall, used: set[int], fragment: ViewFragment,
                   made: list[ir.Value]) -> tuple[tuple[int, ...], Interface]:
        """A fragment's operands and results: the old ones that still exist, then the new ones."""
        reads = dict.fromkeys(mesh_view_emit.read_outside(fragment, self.after))
        operands: list[int] = []
        inputs: list[ir.Value] = []
        for number in call.operands:
            value = self.value_of.get(number)
            if value is not None and (value in reads or number not in used):
                operands.append(number)
                inputs.append(value)
        for value in reads:
            if value not in inputs:
                operands.append(self._known(value))
                inputs.append(value)
        kept = [self.value_of[number] for number in call.results
                if self.value_of[number] in made or number not in used]
        return tuple(operands), Interface(tuple(inputs), (*kept, *(value for value in made if value not in kept)))

    def _is_unchanged(self, call: FragmentCall, was: ViewFragment, then: FragmentEmitter, function: ir.Operation,
                      operands: tuple[int, ...], results: tuple[int, ...]) -> bool:
        if operands != call.operands or results != call.results:
            return False
        values = self.before.values
        interface = Interface(tuple(values[n] for n in call.operands), tuple(values[n] for n in call.results))
        types = [[self.program.types[n] for n in side] for side in (call.operands, call.results)]
        original = then.emit(call.callee, was, interface, types[0], types[1], function.location)
        same = str(original.get_asm(use_local_scope=True)) == str(function.get_asm(use_local_scope=True))
        original.erase()
        return same

    def _write_new(self, fragment: ViewFragment, made: list[ir.Value], now: FragmentEmitter) -> None:
        place = self._behind(fragment)
        reads = mesh_view_emit.read_outside(fragment, self.after)
        operands = tuple(self._known(value) for value in reads)
        results = tuple(self.numbers[value] for value in made)
        function = now.emit(f"{'reduce' if fragment.part == 'after' else 'prepare'}_{self.view.mesh}", fragment,
                            Interface(tuple(reads), tuple(made)), self._types(operands), self._types(results),
                            fragment.ops[0].location)
        self.result.calls.append(CutCall(place, True, function, operands, results))

    def _behind(self, fragment: ViewFragment) -> ProgramPosition:
        """The step before which a new fragment is put: the next one of this mesh, or the end of the part."""
        positions: list[tuple[int, int]] = [(each.order, self.view.places[each.number].position)
                                            for each in self.after.fragments
                                            if each.part == fragment.part and each.number >= 0]
        for part, order, target, numbers in self.after.marks:
            if part == fragment.part:
                positions.append((order, self._position(target, numbers, part)))
        later = [position for order, position in positions if order > fragment.order]
        return ProgramPosition(fragment.part, min(later, default=len(self.steps[fragment.part])))

    def _position(self, target: str, numbers: list[int], part: str) -> int:
        """The position of the step a mark stands for."""
        if target == SEND:
            return self.view.places[numbers[0]].position if numbers[0] >= 0 else numbers[2]
        return next(i for i, step in enumerate(self.steps[part]) if numbers[0] in _made_by(step))

    # ---- what leaves the mesh

    def _write_ends(self) -> None:
        for numbers, operands in self.after.sends:
            given = tuple(self._known(value) for value in operands)
            if numbers[0] >= 0:
                self.result.fed[self.view.places[numbers[0]]] = given
            else:
                self.result.sent[ProgramPosition(PARTS[numbers[1]], numbers[2])] = given[0]
        for position, value in zip(self.view.results, self.after.returned, strict=True):
            self.result.results[position] = self._known(value)


def _made_by(step: Step) -> tuple[int, ...]:
    return step.results if isinstance(step, FragmentCall) else (step.result,)


__all__ = ["CannotCut", "CutCall", "MeshCut", "cut_view"]
