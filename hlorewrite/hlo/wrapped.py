"""Collectives inside called computations: asynchronous ones, fusions and calls, nested to any depth.

XLA wraps a collective for which it has no ``-start`` opcode, or several that run as one, in an asynchronous computation
(``async-start ... calls=``). Newer versions also make a kernel of an all-reduce: an ``async-start`` that calls a fusion
that holds the ``all-reduce``. Kind, payload and groups then belong to an instruction one or more calls below.
"""

from dataclasses import dataclass

from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText

FUSIONS = frozenset(("fusion", "fusion-start"))
FREE = frozenset(("parameter", "constant", "get-tuple-element", "tuple", "bitcast", "partition-id", "replica-id",
                  "after-all", "optimization-barrier", "add-dependency", "domain"))
"""Opcodes that take no time."""
_PRODUCTS = frozenset(("dot", "convolution", "custom-call"))
_CALLS = ("calls", "to_apply")


@dataclass(frozen=True, slots=True)
class PlacedInstruction:
    """A collective: the instruction that says what is sent, the computation around it, and its kind."""

    computation: Computation
    instruction: HloInstruction
    kind: str


class WrappedCollectives:
    """Looks into the computations that instructions of a module call.

    Args:
      module: the module.

    Example:
      >>> from hlorewrite.hlo.parse import parse_hlo
      >>> module = parse_hlo('''HloModule m, num_partitions=8
      ... %kernel (k: f32[8]) -> f32[64] {
      ...   %k = f32[8]{0} parameter(0)
      ...   ROOT %g = f32[64]{0} all-gather(%k), replica_groups=[1,8]<=[8], dimensions={0}
      ... }
      ... %wrapped (w: f32[8]) -> f32[64] {
      ...   %w = f32[8]{0} parameter(0)
      ...   ROOT %f = f32[64]{0} fusion(%w), kind=kCustom, calls=%kernel
      ... }
      ... ENTRY %main (p: f32[8]) -> f32[64] {
      ...   %p = f32[8]{0} parameter(0)
      ...   %s = ((f32[8]{0}), f32[64]{0}) async-start(%p), calls=%wrapped
      ...   ROOT %d = f32[64]{0} async-done(%s)
      ... }''')
      >>> wrapped = WrappedCollectives(module)
      >>> start = module.computations["main"].instructions["s"]
      >>> [each.kind for each in wrapped.inside(start)], wrapped.alone(start)
      (['all-gather'], True)
    """

    def __init__(self, module: HloText) -> None:
        self._module = module
        self._inside: dict[str, tuple[PlacedInstruction, ...]] = {}
        self._alone: dict[tuple[bool, tuple[str, ...]], bool] = {}

    def inside(self, instruction: HloInstruction) -> tuple[PlacedInstruction, ...]:
        """The collectives below an instruction that is not one itself, in program order, as often as it runs them.

        Those in loops and branches are left out: the simulated program has them, with how often they run.
        """
        if not runs_called(instruction):
            return ()
        return tuple(each for name in instruction.called(*_CALLS) for each in self._below(name))

    def alone(self, instruction: HloInstruction) -> bool:
        """Whether only collectives, and what is fused into their kernels, take time below an instruction."""
        key = (instruction.opcode in FUSIONS, instruction.called(*_CALLS))
        if key not in self._alone:
            self._alone[key] = True  # what calls itself is cut there
            self._alone[key] = all(self._is_part(instruction, each) for each in self._called(instruction))
        return self._alone[key]

    def _is_part(self, instruction: HloInstruction, below: HloInstruction) -> bool:
        """Whether what an instruction calls is a collective, free, or a part of the kernel of a collective."""
        if instruction.opcode in FUSIONS and not runs_called(below):
            return below.opcode not in _PRODUCTS
        return _is_free(below) or (bool(self.inside(below)) and self.alone(below))

    def exact(self, instruction: HloInstruction) -> HloInstruction | None:
        """The one collective whose result is that of an instruction above it; None if something else is computed."""
        # Ends: each step goes to a computation below, and HLO has no recursion.
        for _ in range(len(self._module.computations)):
            work = [each for each in self._called(instruction) if each.opcode not in FREE and not _is_second(each)]
            if len(work) != 1:
                return None
            if collective_kind(work[0].opcode):
                return work[0]
            instruction = work[0]
        return None

    def _called(self, instruction: HloInstruction) -> list[HloInstruction]:
        """What an instruction runs by calling it."""
        if not runs_called(instruction):
            return []
        found = (self._module.computations.get(name) for name in instruction.called(*_CALLS))
        return [each for computation in found if computation is not None for each in computation.instructions.values()]

    def _below(self, name: str) -> tuple[PlacedInstruction, ...]:
        if name not in self._inside:
            self._inside[name] = ()  # what calls itself is cut there
            computation = self._module.computations.get(name)
            found: list[PlacedInstruction] = []
            for each in computation.instructions.values() if computation is not None else ():
                kind = collective_kind(each.opcode)
                found += [PlacedInstruction(computation, each, kind)] if computation is not None and kind else \
                    self.inside(each)
            self._inside[name] = tuple(found)
        return self._inside[name]


def runs_called(instruction: HloInstruction) -> bool:
    """Whether an instruction runs what it calls, once: no loop or branch, no reducer, no second half of a pair."""
    opcode = instruction.opcode
    return opcode in ("call", "fusion") or (opcode.endswith("-start") and collective_kind(opcode) is None)


def _is_free(instruction: HloInstruction) -> bool:
    return instruction.opcode in FREE or _is_second(instruction) or collective_kind(instruction.opcode) is not None


def _is_second(instruction: HloInstruction) -> bool:
    return instruction.opcode.endswith(("-done", "-update"))
