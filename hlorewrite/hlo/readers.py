"""Who reads a value, in parsed HLO."""

from hlorewrite.hlo.parse import Computation, HloInstruction, HloText


class Readers:
    """Readers of values and callers of loop bodies, found when first asked for.

    Args:
      module: the module.

    Example:
      >>> from hlorewrite.hlo.parse import parse_hlo
      >>> module = parse_hlo('''HloModule m
      ... ENTRY %main (p: f32[4]) -> f32[4] {
      ...   %p = f32[4]{0} parameter(0)
      ...   %n = f32[4]{0} negate(%p)
      ...   ROOT %a = f32[4]{0} add(%n, %p)
      ... }''')
      >>> [each.name for each in Readers(module).of(module.computations["main"], "p")]
      ['n', 'a']
    """

    def __init__(self, module: HloText) -> None:
        self._module = module
        self._places: dict[str, dict[str, list[int]]] = {}
        self._order: dict[str, list[HloInstruction]] = {}
        self._loops: dict[str, tuple[Computation, HloInstruction]] | None = None

    def of(self, computation: Computation, name: str) -> list[HloInstruction]:
        """The instructions that read a value, in program order."""
        order = self.order(computation)
        return [order[place] for place in self.places(computation).get(name, ())]

    def order(self, computation: Computation) -> list[HloInstruction]:
        """The instructions of a computation by place."""
        if computation.name not in self._order:
            self._order[computation.name] = list(computation.instructions.values())
        return self._order[computation.name]

    def places(self, computation: Computation) -> dict[str, list[int]]:
        """The places of the instructions that read each value, by the value's name."""
        if computation.name not in self._places:
            index = self._places[computation.name] = {}
            for place, other in enumerate(self.order(computation)):
                for name in other.operands:
                    index.setdefault(name, []).append(place)
        return self._places[computation.name]

    def loop_of(self, body: str) -> tuple[Computation, HloInstruction] | None:
        """The loop that has a computation as its body, and what the loop is in."""
        if self._loops is None:
            self._loops = {}
            for computation in self._module.computations.values():
                for instruction in computation.instructions.values():
                    if instruction.opcode == "while":
                        self._loops |= dict.fromkeys(instruction.called("body"), (computation, instruction))
        return self._loops.get(body)
