"""The slots that die with each action, and so the buffers that a fragment may overwrite."""

from dataclasses import dataclass

from hlorewrite.pipelines.actions.order import ProgramOrder
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program


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
