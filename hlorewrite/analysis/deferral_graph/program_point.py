"""The places where a value can be reduced: its definition, and the entries of branches on the way to its readers."""

from typing import NamedTuple

from hlorewrite.ir.binding import ir
from hlorewrite.ir.regions import BRANCHES


class ProgramPoint(NamedTuple):
    """A point where a value can be reduced: at its definition, or on entry to a branch that reads it.

    Tables are full of places, so this is a tuple, which Python hashes without running any Python. Blocks cannot be
    compared with None: so the branch is in a tuple of its own.

    Attributes:
      value: the value.
      entered: the block of a ``case`` or ``if`` on whose entry it is reduced; empty for its definition.
    """

    value: ir.Value
    entered: tuple[ir.Block, ...] = ()

    @property
    def branch(self) -> ir.Block | None:
        """The block of the branch; None for the definition."""
        return self.entered[0] if self.entered else None


def uses_in(place: ProgramPoint) -> list[tuple[ir.Operation, int]]:
    """The uses of a value that a place covers: all of them, or those inside its branch."""
    uses = [(use.owner.operation, use.operand_number) for use in place.value.uses]
    if place.branch is None:
        return uses
    return [(op, position) for op, position in uses if _is_inside(op, place.branch)]


def _is_inside(op: ir.Operation, block: ir.Block) -> bool:
    current: ir.Block | None = op.block
    # Ends: each step goes to the block around.
    while current is not None and current != block:
        parent = current.owner
        current = None if parent is None or parent.operation.name == "builtin.module" else parent.operation.block
    return current is not None


def blocks_between(place: ProgramPoint, op: ir.Operation) -> list[ir.Block]:
    """The blocks one enters on the way from a place to a use, outermost first."""
    home = place.branch
    if home is None:
        owner = place.value.owner
        home = owner if isinstance(owner, ir.Block) else owner.operation.block
    path: list[ir.Block] = []
    current = op.block
    # Ends: each step goes to the block around, and the op stands within the place's block.
    while current != home:
        path.append(current)
        current = current.owner.operation.block
    return path[::-1]


def places_to(value: ir.Value, reader: ir.Operation) -> list[ProgramPoint]:
    """The places a value passes on its way to a reader: its definition, then the branches it enters."""
    chain = [ProgramPoint(value)]
    # Ends: each place is one branch further in.
    while True:
        crossed = blocks_between(chain[-1], reader)
        if not crossed or crossed[0].owner.operation.name not in BRANCHES:
            return chain
        chain.append(ProgramPoint(value, (crossed[0],)))
