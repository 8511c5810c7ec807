"""Ops that move elements of scattered sums, done on the whole sums.

``move(own(AR(x))) = own(AR(move(x)))`` where the op leaves the dimension that is divided whole, wherever it puts it. Of
several operands, such as the parts of a concatenation, each has its own whole shape; the same groups divide them along
the same dimension, or the op is done for one of them and zeros in place of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlorewrite.ir.binding import ir
from hlorewrite.spmd.groups import Rows
from hlorewrite.validate.nodes.folds import array, op_label
from hlorewrite.validate.nodes.graph import Shape, shape_and_element, tensor_type
from hlorewrite.validate.nodes.groups import Members, OwnPart
from hlorewrite.validate.nodes.tables import numbers_in
from hlorewrite.validate.nodes.values import Key, own_part_of
from hlorewrite.validate.program.state import ProgramState

_SLICES = ("stablehlo.slice", "stablehlo.dynamic_slice")
_PADDING = ("edge_padding_low", "edge_padding_high", "interior_padding")


@dataclass(frozen=True)
class _Division:
    """What scattered sums have in common, whatever their shape."""

    members: Members
    kind: str
    wire: str
    rows: Rows
    along: int

    def whole(self, shape: Shape, along: int) -> Shape:
        """The shape of a sum of which each process has a part of some shape."""
        return tuple(size * len(self.rows[0]) if d == along else size for d, size in enumerate(shape))


def moved_parts(state: ProgramState, op: ir.Operation, parts: Mapping[int, Mapping[Key, int]],
                fixed: Mapping[int, int]) -> dict[Key, int] | None:
    """The parts of an op's result that wait for scattered sums.

    Args:
      state: the program.
      op: an op of one result, linear in the operands that have parts.
      parts: of each such operand, by its position.
      fixed: the nodes of all other operands.

    Returns:
      Whole sums by what they wait for; None where the op does not leave whole what is divided.
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
    if None in known or len(op.regions):
        return None
    (shape, element), *operands = [each for each in known if each is not None]
    after = _dimension_after(op.name, [each[0] for each in operands], shape, division.along, texts)
    if after is None:
        return None
    args: list[int] = []
    for place, (part, of) in enumerate(operands):
        type_ = tensor_type(division.whole(part, division.along), of)
        node = fixed[place] if place in fixed else nodes.get(place, state.graph.identity(division.kind, type_))
        if node is None or (place not in fixed and state.graph.types[node] != type_):
            return None
        args.append(node)
    whole = division.whole(shape, after)
    if op.name in _SLICES:
        texts |= _bounds(op.name, texts, after, whole[after])
    made = state.op_node(op_label(op.name, tuple(sorted(texts.items()))), tensor_type(whole, element), tuple(args))
    own = OwnPart(division.rows, after, whole)
    return (state.space.reduction(division.members, division.kind, division.wire, own),), made


def _bounds(name: str, texts: Mapping[str, str], along: int, size: int) -> dict[str, str]:
    """The attributes of a slice that takes a dimension of another size whole."""
    if name == "stablehlo.dynamic_slice":
        replaced = {"slice_sizes": size}
    else:
        replaced = {"start_indices": 0, "limit_indices": size, "strides": 1}
    return {each: array([number if d == along else old for d, old in enumerate(numbers_in(texts[each]))])
            for each, number in replaced.items()}


def _dimension_after(name: str, operands: list[Shape], shape: Shape, along: int, texts: Mapping[str, str]
                     ) -> int | None:
    """Where an op puts a dimension of its operands; None where it does not leave it whole."""
    before = operands[0]
    if name == "stablehlo.transpose":
        return numbers_in(texts["permutation"]).index(along)
    if name == "stablehlo.broadcast_in_dim":
        to = numbers_in(texts["broadcast_dimensions"])[along]
        return to if shape[to] == before[along] else None
    if name == "stablehlo.reshape":
        return _through_reshape(before, shape, along)
    if name in _SLICES:
        whole = shape[along] == before[along]
    elif name == "stablehlo.dynamic_update_slice":
        whole = operands[1][along] == before[along]
    elif name == "stablehlo.concatenate":
        whole = numbers_in(texts["dimension"]) != [along]
    elif name == "stablehlo.pad":
        whole = not any(numbers_in(texts[each])[along] for each in _PADDING)
    else:
        whole = False
    return along if whole else None


def _through_reshape(before: Shape, after: Shape, along: int) -> int | None:
    """The dimension after a reshape that only adds or drops dimensions of size one."""
    kept, following = ([d for d, size in enumerate(shape) if size != 1] for shape in (before, after))
    if along not in kept or [before[d] for d in kept] != [after[d] for d in following]:
        return None
    return following[kept.index(along)]
