"""Tensors of a step whose rows belong together: a parameter, its gradient, its accumulator, the optimizer's state."""

from dataclasses import dataclass, field

from hlorewrite.ir.binding import ir
from hlorewrite.ir.regions import Loop
from hlorewrite.pipelines.passes.split_stages.graph import ops_of
from hlorewrite.pipelines.passes.split_stages.stacks.row_ops import corresponding, rows_of


@dataclass(frozen=True)
class StackCut:
    """How the rows of a stack are cut.

    Attributes:
      edges: the first row of each part, and the number of rows.
    """

    edges: tuple[int, ...]

    @property
    def parts(self) -> list[tuple[int, int]]:
        """The rows (first, end) of each part."""
        return list(zip(self.edges[:-1], self.edges[1:], strict=True))


@dataclass
class Stacks:
    """Values of the step's main block and of its micro-batch, joined where their rows belong together."""

    leader: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def find(self, value: ir.Value) -> ir.Value:
        """The value that stands for all whose rows belong together with a value's."""
        # Ends: each round goes nearer to the leader, of which there is one.
        while self.leader.setdefault(value, value) != value:
            self.leader[value] = self.leader[self.leader[value]]
            value = self.leader[value]
        return value

    def join(self, values: list[ir.Value]) -> None:
        """Says that the rows of some values belong together."""
        for each in values[1:]:
            self.leader[self.find(each)] = self.find(values[0])


def stacks_of(main: ir.Operation, loop: ir.Operation) -> Stacks:
    """The stacks of a step.

    Args:
      main: its main function, without calls.
      loop: its loop over micro-batches.
    """
    stacks = Stacks()
    for block in (main.regions[0].blocks[0], Loop(loop).body):
        for op in ops_of(block):
            for group in corresponding(op):
                stacks.join(group)
    parts = Loop(loop)
    for position, argument in enumerate(parts.body.arguments):
        if rows_of(argument):
            stacks.join([argument, parts.condition.arguments[position], loop.operands[position],
                         parts.yields[position], loop.results[position]])
    return stacks
