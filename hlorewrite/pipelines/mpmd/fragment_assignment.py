"""The fragment of each op of a mesh's view, and the values that pass between fragments."""

from dataclasses import dataclass, field

from hlorewrite.errors import HlorewriteError
from hlorewrite.ir import Loop, defining_op, ir, nested_ops, op_key, terminator, users
from hlorewrite.pipelines.mpmd.mesh_view import BEGIN, END, SEND, VALUES, MeshView, mark_of
from hlorewrite.pipelines.mpmd.program import Program

_REPEATABLE = {"stablehlo.constant", "stablehlo.iota", "stablehlo.broadcast_in_dim", "stablehlo.reshape",
               "stablehlo.complex", "stablehlo.convert"}


class CannotCut(HlorewriteError):
    """A rewritten view cannot be written as fragments again."""


@dataclass
class ViewFragment:
    """What is to become one fragment.

    Attributes:
      part: ``before``, ``body`` or ``after``.
      number: the number of the original fragment in the view's ``places``; -1 for a new one.
      order: its place among the ops of its block.
      ops: its ops, in the order of the block, without marks and barrier.
      barrier: the barrier its original results pass; None when it has none.
    """

    part: str
    number: int
    order: int
    ops: list[ir.Operation] = field(default_factory=list)
    barrier: ir.Operation | None = None


@dataclass
class FragmentAssignment:
    """A view, sorted into fragments.

    Attributes:
      fragments: the fragments, in the order of their blocks, those before the loop first.
      arguments: the arguments of the manual computation.
      loop: the loop; None when the view has none.
      sends: (numbers of the mark, operands) of everything that is passed to elsewhere, in order.
      order: place of each mark of a send or receive in its block, by the mark's numbers.
      returned: the results of the manual computation.
      values: value of each program number that the view still holds.
      numbers: the other way round; of several numbers of one value the first.
      home: op key -> the fragment of a top-level op.
    """

    fragments: list[ViewFragment]
    arguments: list[ir.Value]
    loop: ir.Operation | None
    sends: list[tuple[list[int], list[ir.Value]]]
    marks: list[tuple[str, int, str, list[int]]]
    returned: list[ir.Value]
    values: dict[int, ir.Value]
    numbers: dict[ir.Value, int]
    home: dict[int, ViewFragment]

    def of_value(self, value: ir.Value) -> ViewFragment | None:
        """The fragment that makes a value; None for what comes from elsewhere, and for what may be repeated."""
        op = defining_op(value)
        return None if op is None else self.home.get(op_key(op))


def is_repeatable(value: ir.Value) -> bool:
    """Whether a value is made of constants alone, cheaply, so that each fragment can make its own."""
    op = defining_op(value)
    return op is not None and op.name in _REPEATABLE and all(is_repeatable(each) for each in op.operands)


def assign_fragments(view: MeshView, program: Program) -> FragmentAssignment:
    """Sorts a view into fragments.

    Args:
      view: the view of a mesh, rewritten or not.
      program: the program it was made of.

    Returns:
      The fragments, and what passes between them.

    Raises:
      CannotCut: an op of the loop's body belongs to no fragment.
    """
    return _Sorter(view, program).sort()


class _Sorter:
    """Finds the fragment of every op."""

    def __init__(self, view: MeshView, program: Program) -> None:
        self.view = view
        self.program = program
        main = next(op.operation for op in view.module.mlir.body.operations if op.operation.name == "func.func")
        manual = next(op.operation for op in main.regions[0].blocks[0].operations
                      if op.operation.name == "sdy.manual_computation")
        self.block = manual.regions[0].blocks[0]
        top = [op.operation for op in self.block.operations]
        self.loop = self._find_loop(top)
        self.inside = [] if self.loop is None else [op.operation for op in Loop(self.loop).body.operations]
        self.top = top
        self.position: dict[int, int] = {}
        self.part: dict[int, str] = {}
        late = "before"
        for place, op in enumerate(top):
            if self.loop is not None and op == self.loop:
                late = "after"
            self.position[op_key(op)], self.part[op_key(op)] = place, late
        for place, op in enumerate(self.inside):
            self.position[op_key(op)], self.part[op_key(op)] = place, "body"
        self.home: dict[int, ViewFragment] = {}
        self.fragments: list[ViewFragment] = []
        self.sends: list[tuple[list[int], list[ir.Value]]] = []
        self.marks: list[tuple[str, int, str, list[int]]] = []
        self.values: dict[int, ir.Value] = {}

    def _find_loop(self, top: list[ir.Operation]) -> ir.Operation | None:
        """The loop over micro-batches: the one outside fragments."""
        within = False
        for op in top:
            mark = mark_of(op)
            if mark is not None and mark[0] in (BEGIN, END):
                within = mark[0] == BEGIN
            elif op.name == "stablehlo.while" and not within:
                return op
        return None

    def sort(self) -> FragmentAssignment:
        strays = self._ranges(self.top) + self._ranges(self.inside)
        self._number_values()
        self._settle(strays)
        for fragment in self.fragments:
            fragment.ops.sort(key=lambda op: self.position[op_key(op)])
        self.fragments.sort(key=lambda each: (("before", "body", "after").index(each.part), each.order))
        numbers: dict[ir.Value, int] = {}
        for number, value in sorted(self.values.items()):
            numbers.setdefault(value, number)
        return FragmentAssignment(self.fragments, list(self.block.arguments), self.loop, sends=self.sends,
                                  marks=self.marks, returned=list(terminator(self.block).operands), values=self.values,
                                  numbers=numbers, home=self.home)

    def _ranges(self, ops: list[ir.Operation]) -> list[ir.Operation]:
        """Puts ops between marks into their fragments; returns those that are outside."""
        strays: list[ir.Operation] = []
        current: ViewFragment | None = None
        for op in ops:
            mark = mark_of(op)
            part, place = self.part[op_key(op)], self.position[op_key(op)]
            if mark is not None and mark[0] == BEGIN:
                current = ViewFragment(part, mark[1][0], place)
                self.fragments.append(current)
            elif mark is not None and mark[0] == END:
                current = None
            elif mark is not None:
                self.marks.append((part, place, mark[0], mark[1]))
                if mark[0] == SEND:
                    self.sends.append((mark[1], list(op.operands)))
                else:
                    self.values[mark[1][0]] = op.results[0]
            elif current is None:
                strays.append(op)
            elif VALUES in op.attributes and op.name == "stablehlo.optimization_barrier":
                current.barrier = op
                self.home[op_key(op)] = current
                listed = ir.DenseI64ArrayAttr(op.attributes[VALUES])
                self.values.update(zip(listed, op.results, strict=True))
            else:
                current.ops.append(op)
                self.home[op_key(op)] = current
        return strays

    def _number_values(self) -> None:
        self.values.update(zip(self.view.arguments, self.block.arguments, strict=False))
        if self.loop is None:
            return
        body = Loop(self.loop).body
        for position, index in enumerate(self.view.carries, 1):
            carry = self.program.carries[index]
            self.values[carry.inside] = body.arguments[position]
            self.values[carry.after] = self.loop.results[position]
        self.values.update((n, body.arguments[0]) for n in self.program.indices
                           if self.program.types[n].mesh == self.view.mesh)

    # ---- ops outside all fragments

    def _settle(self, strays: list[ir.Operation]) -> None:
        """Ops outside fragments go to the first fragment that reads them."""
        machinery = self._machinery()
        for op in reversed(strays):
            if op_key(op) in machinery or (len(op.results) == 1 and is_repeatable(op.results[0])
                                           and not self._is_handed_on(op)):
                continue
            fragment = self._first_reader(op) or self._neighbour(op) or self._own(op)
            fragment.ops.append(op)
            self.home[op_key(op)] = fragment

    def _machinery(self) -> set[int]:
        """The loop, its counter and the ends of the blocks."""
        machinery = {op_key(terminator(self.block))}
        if self.loop is None:
            return machinery
        loop = Loop(self.loop)
        step = defining_op(loop.yields[0])
        machinery |= {op_key(self.loop), op_key(terminator(loop.body))}
        if step is not None:
            machinery.add(op_key(step))
        return machinery

    def _top_level(self, op: ir.Operation) -> ir.Operation:
        """The op of one of our two blocks that contains an op."""
        # Ends: each step goes to the op around.
        while op_key(op) not in self.position:
            parent = op.parent
            assert parent is not None
            op = parent.operation
        return op

    def _readers(self, op: ir.Operation) -> list[ir.Operation]:
        return [self._top_level(reader) for result in op.results for reader, _ in users(result)]

    def _is_handed_on(self, op: ir.Operation) -> bool:
        """Whether a value goes into the loop, to its next iteration, to another mesh, or out of the program."""
        return any(op_key(reader) not in self.home and (
            reader.name in ("stablehlo.return", "sdy.return") or mark_of(reader) is not None
            or (self.loop is not None and reader == self.loop
                and any(operand == result for result in op.results for operand in list(self.loop.operands)[1:])))
            for reader in self._readers(op))

    def _first_reader(self, op: ir.Operation) -> ViewFragment | None:
        """The first fragment that reads an op, when nothing but fragments of its part does, and who called."""
        part = self.part[op_key(op)]
        homes = [self.home.get(op_key(reader)) for reader in self._readers(op) if reader.name != "sdy.return"]
        if not homes or any(each is None or each.part != part for each in homes):
            return None
        return min((each for each in homes if each is not None), key=lambda each: each.order)

    def _neighbour(self, op: ir.Operation) -> ViewFragment | None:
        """A neighbouring fragment that has an op's operands and may absorb the op.

        What is sent away waits for no other fragment; what only leaves the program may be made by the next one.
        """
        part, place = self.part[op_key(op)], self.position[op_key(op)]
        own = [each for each in self.fragments if each.part == part and each.number >= 0]
        leaves = all(reader.name == "sdy.return" for reader in self._readers(op))
        if part == "after" and leaves:
            behind = [each for each in own if each.order > place]
            if behind:
                return behind[0]
        earlier = [each for each in own if each.order < place]
        if earlier and self._available(op, earlier[-1]) and (part != "after" or leaves):
            return earlier[-1]
        if part != "body":
            return None
        behind = [each for each in own if each.order > place]
        if not behind:
            raise CannotCut(f"{op.name} belongs to no fragment of the loop")
        return behind[0]

    def _available(self, op: ir.Operation, fragment: ViewFragment) -> bool:
        """Whether a fragment can have all that an op reads: made before it, or by it."""
        for inner in nested_ops(op):
            for value in inner.operands:
                maker = defining_op(value)
                if maker is None or op_key(maker) not in self.position or is_repeatable(value):
                    continue
                if self.part[op_key(maker)] != fragment.part or self.home.get(op_key(maker)) is fragment:
                    continue
                if self.position[op_key(maker)] > fragment.order:
                    return False
        return True

    def _own(self, op: ir.Operation) -> ViewFragment:
        """A separate fragment for an op, or the one already made for its neighbour."""
        part, place = self.part[op_key(op)], self.position[op_key(op)]
        between = [p for where, p, _, _ in self.marks if where == part]
        between += [each.order for each in self.fragments if each.part == part and each.number >= 0]
        nearest = min((p for p in between if p > place), default=1 << 60)
        for each in self.fragments:
            if each.number < 0 and each.part == part and place < each.order < nearest:
                each.order = place
                return each
        made = ViewFragment(part, -1, place)
        self.fragments.append(made)
        return made


__all__ = ["CannotCut", "FragmentAssignment", "ViewFragment", "assign_fragments", "is_repeatable"]
