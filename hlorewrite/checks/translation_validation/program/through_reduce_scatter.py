"""Ops that move elements of scattered sums, done on the whole sums.

``move(own(AR(x))) = own(AR(move(x)))`` where the op leaves the dimension that is divided whole, wherever it puts it. Of
several operands, such as the parts of a concatenation, each has its own whole shape; the same groups divide them along
the same dimension, or the op is done for one of them and zeros in place of the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hlorewrite.analysis.groups import Rows
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.translation_validation.value_graph.graph import (
    Key,
    Shape,
    own_part_of,
    shape_and_element,
    tensor_type,
)
from hlorewrite.checks.translation_validation.value_graph.groups import Members, OwnPart
from hlorewrite.checks.translation_validation.value_graph.normalize import op_label
from hlorewrite.ir.binding import ir
from hlorewrite.ops.dims import attributes_for, dim_factor


@dataclass(frozen=True)
class _Division:
    """What scattered sums have in common, whatever their shape."""

    members: Members
    kind: str
    wire: str
    rows: Rows
    along: int

    def whole(self, shape: Shape, along: int) -> Shape:
        """The shape of a sum, from the shape of each process's part."""
        return tuple(size * len(self.rows[0]) if d == along else size for d, size in enumerate(shape))


def moved_parts(state: ProgramState, op: ir.Operation, parts: Mapping[int, Mapping[Key, int]],
                fixed: Mapping[int, int]) -> dict[Key, int] | None:
    """The parts of an op's result that wait for scattered sums.

    Args:
      state: the program.
      op: an op with one result, linear in the operands that have parts.
      parts: the parts of each such operand, by its position.
      fixed: the nodes of all other operands.

    Returns:
      Whole sums by what they wait for; None if the op does not keep the divided dimension whole.
    """
    divided: dict[_Division, dict[int, int]] = {}
    for place, held in parts.items():
        for key, node in held.items():
            own = own_part_of(key)
            if own is not None:
                division = _Division(key[0].members, key[0].kind, key[0].wire, own.rows, own.along)
                divided.setdefault(division, {})[place] = node
    made: dict[Key, int] = {}
    for division, nodes in divided.items():
        found = _moved(state, op, division, nodes, fixed)
        if found is None or found[0] in made:
            return None
        made[found[0]] = found[1]
    return made


def _moved(state: ProgramState, op: ir.Operation, division: _Division, nodes: Mapping[int, int],
           fixed: Mapping[int, int]) -> tuple[Key, int] | None:
    texts = dict(state.attributes_of(op))
    known = [shape_and_element(state.type_of(value)) for value in (op.results[0], *op.operands)]
    factor = dim_factor(op, division.along, min(nodes))
    if None in known or len(op.regions) or isinstance(factor, str) or factor.result is None:
        return None
    (shape, element), *operands = [each for each in known if each is not None]
    args: list[int] = []
    for place, ((part, of), along) in enumerate(zip(operands, factor.operands, strict=True)):
        type_ = tensor_type(part if along is None else division.whole(part, along), of)
        node = fixed[place] if place in fixed else nodes.get(place, state.graph.identity(division.kind, type_))
        if node is None or (along is not None if place in fixed else state.graph.types[node] != type_):
            return None
        args.append(node)
    whole = division.whole(shape, factor.result)
    lifted = attributes_for(op, factor.result, whole[factor.result])
    texts |= {name: str(lifted[name]) for name in texts if lifted[name] != op.attributes[name]}
    made = state.op_node(op_label(op.name, tuple(sorted(texts.items()))), tensor_type(whole, element), tuple(args))
    own = OwnPart(division.rows, factor.result, whole)
    return (state.space.reduction(division.members, division.kind, division.wire, own),), made
