"""A program of several meshes under a schedule: one flat list of actions that read and write numbered slots.

The list is in the global order of ``schedules.sequence``: tasks by tick, then the transfers of that tick. Every process
that keeps this order meets the others in the same transfers, so none can wait for another forever.

Carried values become slots too. A value that micro-batches only add to (``hlorewrite.sums``) is a cell: each call adds
to the result of the call before it, whichever micro-batch that was, because a + g1 + g2 = a + g2 + g1. For any other
value, micro-batch k reads the result of k-1, so a schedule that runs k before k-1 is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlorewrite.errors import PlanError
from hlorewrite.pipelines.actions.fit import steps_by_task
from hlorewrite.pipelines.mpmd.program import Carry, FragmentCall, Program, Transfer
from hlorewrite.pipelines.schedules import ROW, Schedule, Task, ticks
from hlorewrite.util.reachability import reachable

OUTSIDE = -1
"""The micro-batch of actions before or after the loop."""


@dataclass(frozen=True)
class Copy:
    """A copy of a value that the loop will write over and another action still needs.

    Attributes:
      operand: number of the value.
    """

    operand: int


Step = FragmentCall | Transfer | Copy


@dataclass(frozen=True)
class Action:
    """One execution of a step.

    Attributes:
      step: the step.
      microbatch: the micro-batch; ``OUTSIDE`` around the loop.
      reads: slots of its operands.
      writes: slots of its results.
    """

    step: Step
    microbatch: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True)
class ProgramOrder:
    """All actions of one run.

    Attributes:
      actions: the actions, in the global order.
      values: number of the value each slot holds, shape [slots].
      arguments: slot of each argument.
      indices: slot -> micro-batch, for slots that hold a micro-batch's index.
      results: slot of each result.
    """

    actions: tuple[Action, ...]
    values: tuple[int, ...]
    arguments: tuple[int, ...]
    indices: dict[int, int]
    results: tuple[int, ...]


def order_program(program: Program, schedule: Schedule | None) -> ProgramOrder:
    """Orders a program by a schedule.

    Args:
      program: the program.
      schedule: a schedule that passes :func:`hlorewrite.pipelines.schedules.check`; None for a program without a loop.

    Returns:
      The actions.

    Raises:
      PlanError: the schedule is for other stages, meshes, micro-batches or halves of the backward than the program, or
        runs something before what it reads; the message names stage and micro-batch.
    """
    return _OrderBuilder(program, schedule).build()


class _OrderBuilder:
    """Walks the global order once, keeping what each carried value is at the moment."""

    def __init__(self, program: Program, schedule: Schedule | None) -> None:
        self.program, self.schedule = program, schedule
        self.slots: dict[tuple[int, int], int] = {}
        self.values: list[int] = []
        self.actions: list[Action] = []
        self.defined: set[int] = set()
        self.inside = {carry.inside: carry for carry in program.carries}
        self.after = {carry.after: carry for carry in program.carries}
        self.made = {value: step for step in program.body for value in _results(step)}
        self.thread: dict[int, int] = {}
        self.cell: dict[int, int] = {}

    def build(self) -> ProgramOrder:
        """All actions."""
        program = self.program
        arguments = tuple(self.slot(value, OUTSIDE) for value in program.arguments)
        self.defined.update(arguments)
        indices = {self.slot(value, k): k for value in program.indices for k in range(program.iterations)}
        self.defined.update(indices)
        for step in program.before:
            self.emit(step, OUTSIDE)
        if self.schedule is not None:
            self.enter_loop()
            for step, microbatch in self.loop_order(self.schedule):
                self.emit(step, microbatch)
        for step in program.after:
            self.emit(step, OUTSIDE)
        results = tuple(self.read(value, OUTSIDE) for value in program.results)
        return ProgramOrder(tuple(self.actions), tuple(self.values), arguments, indices, results)

    # ---- slots

    def slot(self, value: int, microbatch: int) -> int:
        """The slot of a value in a micro-batch."""
        key = value, microbatch
        if key not in self.slots:
            self.slots[key] = self.fresh(value)
        return self.slots[key]

    def fresh(self, value: int) -> int:
        """A new slot."""
        self.values.append(value)
        return len(self.values) - 1

    def read(self, value: int, microbatch: int) -> int:
        """The slot that holds a value for its current reader."""
        if microbatch == OUTSIDE:
            carry = self.after.get(value)
            if carry is None:
                return self.slot(value, OUTSIDE)
            return self.carried(carry, self.program.iterations)
        if value in self.thread:
            return self.cell[self.thread[value]]
        carry = self.inside.get(value)
        if carry is not None:
            return self.carried(carry, microbatch)
        in_loop = (value in self.made and not self.hoisted(value)) or value in self.program.indices
        return self.slot(value, microbatch if in_loop else OUTSIDE)

    def carried(self, carry: Carry, microbatch: int) -> int:
        """The slot of a carried value at the start of a micro-batch."""
        if carry.inside in self.cell:
            return self.cell[carry.inside]
        # Ends: each round goes one micro-batch back.
        while microbatch and carry.next in self.inside:  # a carry that forwards another one, or itself
            carry, microbatch = self.inside[carry.next], microbatch - 1
            if carry.inside in self.cell:
                return self.cell[carry.inside]
        return self.slot(carry.inside, OUTSIDE) if microbatch == 0 else self.read(carry.next, microbatch - 1)

    def emit(self, step: Step, microbatch: int) -> None:
        """Appends an action."""
        operands = (step.operand,) if isinstance(step, Transfer | Copy) else step.operands
        reads = tuple(self.read(value, microbatch) for value in operands)
        for value, slot in zip(operands, reads, strict=True):
            if slot not in self.defined:
                raise self.too_early(step, value, microbatch)
        writes = []
        for value in _results(step):
            if microbatch != OUTSIDE and value in self.thread_ends:
                slot = self.cell[self.thread_ends[value]] = self.fresh(value)
            else:
                slot = self.slot(value, OUTSIDE if self.hoisted(value) else microbatch)
            writes.append(slot)
        self.defined.update(writes)
        self.actions.append(Action(step, microbatch, reads, tuple(writes)))

    # ---- the loop

    def enter_loop(self) -> None:
        """Gives every carried value its first slot, a copy if another reader needs the original."""
        self.thread_ends: dict[int, int] = {}
        readers = _readers(self.program)
        for carry in self.program.carries:
            chain = _chain(self.program, carry, self.made, readers) if carry.is_sum else None
            first = self.slot(carry.first, OUTSIDE)
            if readers.get(carry.inside) and not self.exclusive(carry, readers):
                copy = self.fresh(carry.first)
                self.actions.append(Action(Copy(carry.first), OUTSIDE, (first,), (copy,)))
                self.defined.add(copy)
                first = copy
            self.slots[carry.inside, OUTSIDE] = first
            if chain is not None:
                self.cell[carry.inside] = first
                self.thread.update((value, carry.inside) for value in chain[:-1])
                self.thread_ends.update((value, carry.inside) for value in chain[1:])
        for step in self.program.body:
            if isinstance(step, Transfer) and self.hoisted(step.result):
                self.emit(step, OUTSIDE)

    def exclusive(self, carry: Carry, readers: Mapping[int, Sequence[object]]) -> bool:
        """Whether the loop may overwrite a carry's first value: true for the last carry that begins with it, after
        copies were made for the others.
        """
        program, value = self.program, carry.first
        if value in program.arguments and program.arguments.index(value) not in program.donated:
            return False
        used = [operand for step in (*program.body, *program.after) for operand in _operands(step)]
        sharing = [other for other in program.carries if other.first == value]
        return value not in used and value not in program.results and sharing[-1] is carry and \
            all(readers.get(other.inside) for other in sharing)

    def hoisted(self, value: int) -> bool:
        """Whether a value is sent in the loop and is the same for all micro-batches: it is sent once, before."""
        step = self.made.get(value)
        if not isinstance(step, Transfer) or step.operand in self.inside or step.operand in self.program.indices:
            return False
        return step.operand not in self.made or self.hoisted(step.operand)

    def loop_order(self, schedule: Schedule) -> list[tuple[Step, int]]:
        """The loop's steps with their micro-batches in the global order."""
        tick, count, block = ticks(schedule), schedule.microbatches, schedule.microbatches * schedule.stages
        steps = steps_by_task(self.program, schedule)
        placed: dict[tuple[int, int], tuple[int, int]] = {}
        keyed: list[tuple[tuple[int, int, int, int], int, int]] = []
        for task in (task for order in schedule.orders for task in order):
            number = ROW[task.kind] * block + task.stage * count + task.microbatch
            for index in steps.get((task.kind, task.stage), ()):
                placed[index, task.microbatch] = tick[number], number
                keyed.append(((tick[number], 1, number, index), index, task.microbatch))
        body = self.program.body
        index_of = {id(step): index for index, step in enumerate(body)}
        for index, step in enumerate(body):
            if not isinstance(step, Transfer) or self.hoisted(step.result):
                continue
            root = step
            # Ends: each step goes to an operand.
            while isinstance(root, Transfer) and root.operand in self.made:
                root = self.made[root.operand]
            for microbatch in range(count):
                if isinstance(root, FragmentCall):
                    at, number = placed[index_of[id(root)], microbatch]
                    keyed.append(((at, 2, number, index), index, microbatch))
                else:  # of a carried value: before its first reader
                    readers = [placed[i, microbatch] for i, other in enumerate(body)
                               if isinstance(other, FragmentCall) and step.result in other.operands]
                    if readers:
                        at, number = min(readers)
                        keyed.append(((at, 0, number, index), index, microbatch))
        return [(body[index], microbatch) for _, index, microbatch in sorted(keyed)]

    def too_early(self, step: Step, value: int, microbatch: int) -> PlanError:
        """Why a step cannot run where the schedule puts it."""
        where = None if isinstance(step, Copy) else step.where or None
        name = self.schedule.name if self.schedule else "the text"
        if microbatch != OUTSIDE and value in self.inside and isinstance(step, FragmentCall):
            return PlanError(f"schedule {name} runs {Task(step.task, step.stage, microbatch).words} before that of "
                             f"micro-batch {microbatch - 1}, but a value carried to the next one is not a plain sum",
                             location=where, hint='use a schedule that keeps their order, such as "1f1b"')
        maker = self.made.get(value)
        # Ends: each step goes to an operand.
        while isinstance(maker, Transfer):
            maker = self.made.get(maker.operand)
        what = Task(step.task, step.stage, microbatch).words if isinstance(step, FragmentCall) and \
            microbatch != OUTSIDE else "a transfer" if isinstance(step, Transfer) else f"@{step.callee}" \
            if isinstance(step, FragmentCall) else "a copy"
        by = f"what {Task(maker.task, maker.stage, microbatch).words} makes later" if \
            isinstance(maker, FragmentCall) and microbatch != OUTSIDE else "a value that is made later"
        return PlanError(f"with schedule {name} {what} would read {by}", location=where,
                         hint="a stage reads values of earlier stages in forward passes, of later ones in "
                               "backward passes")


def _results(step: Step) -> tuple[int, ...]:
    return step.results if isinstance(step, FragmentCall) else (step.result,) if isinstance(step, Transfer) else ()


def _operands(step: FragmentCall | Transfer) -> tuple[int, ...]:
    return step.operands if isinstance(step, FragmentCall) else (step.operand,)


def _readers(program: Program) -> dict[int, list[FragmentCall | Transfer | Carry]]:
    """Who reads each value in the loop: steps, and the carries that forward it."""
    readers: dict[int, list[FragmentCall | Transfer | Carry]] = {}
    for step in program.body:
        for value in _operands(step):
            readers.setdefault(value, []).append(step)
    for carry in program.carries:
        readers.setdefault(carry.next, []).append(carry)
    return readers


def _chain(program: Program, carry: Carry, made: dict[int, FragmentCall | Transfer],
           readers: dict[int, list[FragmentCall | Transfer | Carry]]) -> list[int] | None:
    """The values of a sum within a micro-batch, first to last; None when they cannot be distinguished from others.

    Each is read by one call alone, the last one by the carry alone.
    """
    kind = program.types[carry.inside]
    path = [carry.next]
    # Ends: each step goes to an operand.
    while path[-1] != carry.inside:
        step = made.get(path[-1])
        if not isinstance(step, FragmentCall) or len(readers.get(path[-1], ())) != 1:
            return None
        before = [value for value in step.operands if value == carry.inside] or [
            value for value in step.operands
            if program.types[value] == kind and _reaches(value, carry.inside, made)]
        if len(before) != 1:
            return None
        path.append(before[0])
    if len(path) < 2 or len(readers.get(carry.inside, ())) != 1:
        return None
    return path[::-1]


def _reaches(value: int, start: int, made: dict[int, FragmentCall | Transfer]) -> bool:
    """Whether a value is computed from another one."""
    return start in reachable([value], lambda each: _operands(made[each]) if each in made else ())


# ---- the slots that die with each action, and so the buffers that a fragment may overwrite


@dataclass(frozen=True)
class Liveness:
    """Lives of the slots of one run.

    Attributes:
      dead: per action the slots that are not read after it, results of the program excepted; shape [actions].
      donated: fragment -> positions of operands that no call of it leaves alive: their buffers are donated to it.
      given: slots of arguments that the caller donated and that no fragment takes: they are deleted after the run's
        last reader.
    """

    dead: tuple[tuple[int, ...], ...]
    donated: dict[str, frozenset[int]]
    given: frozenset[int]


def liveness(program: Program, order: ProgramOrder) -> Liveness:
    """Lives of the slots.

    A fragment is compiled once, so an operand is donated to it only if it dies with every call: accumulators and what a
    forward keeps for its backward do, weights do in the update. The micro-batch's index never dies.

    Args:
      program: the program.
      order: its actions.

    Returns:
      The lives.
    """
    last: dict[int, int] = {}
    for position, action in enumerate(order.actions):
        last.update(dict.fromkeys((*action.reads, *action.writes), position))
    mine = {slot for place, slot in enumerate(order.arguments) if place not in program.donated}
    kept = mine | set(order.indices) | set(order.results)
    dead: list[list[int]] = [[] for _ in order.actions]
    for slot, position in last.items():
        if slot not in order.indices and slot not in order.results:
            dead[position].append(slot)
    donated: dict[str, set[int]] = {}
    for action, dying in zip(order.actions, dead, strict=True):
        if isinstance(action.step, FragmentCall):
            here = {place for place, slot in enumerate(action.reads)
                    if slot in dying and slot not in kept and action.reads.count(slot) == 1}
            known = donated.setdefault(action.step.callee, here)
            known &= here
    taken = {action.reads[place] for action in order.actions if isinstance(action.step, FragmentCall)
             for place in donated[action.step.callee]}
    given = {order.arguments[place] for place in program.donated} - taken - set(order.results)
    return Liveness(tuple(tuple(sorted(each)) for each in dead),
                    {name: frozenset(places) for name, places in donated.items()}, frozenset(given))
