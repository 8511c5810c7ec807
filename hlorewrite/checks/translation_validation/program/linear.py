"""Ops on values that wait for reductions: done part by part if a linearity fact allows it, or on the whole sums."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hlorewrite.analysis.groups import Rows
from hlorewrite.analysis.linearity import JointlyLinear
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.value_graph.graph import (
    LOCAL,
    Key,
    PendingReduction,
    Shape,
    SymbolicValue,
    is_float,
    joined,
    own_part_of,
    part_type,
    parts_of,
    shape_and_element,
    tensor_type,
)
from hlorewrite.checks.value_graph.groups import Members, OwnPart
from hlorewrite.checks.value_graph.normalize import op_label
from hlorewrite.ir.binding import ir
from hlorewrite.ops.dims import attributes_for, dim_factor

MakeNode = Callable[[tuple[int, ...], str], int]
_LIFTED = frozenset(f"stablehlo.{name}" for name in (
    "add", "subtract", "negate", "multiply", "divide", "convert", "select"))
"""Ops that work on whole sums as on parts of them, if each other operand is filled with one number."""


@dataclass(frozen=True)
class Differs:
    """The view that a fact gets of a value that may differ between members of a group."""

    sentence: str = "it may differ between devices of a group"
    culprit: ir.Operation | None = None


@dataclass(frozen=True)
class GraphContext:
    """Answers what a linearity fact asks, from the graph.

    Attributes:
      state: the program.
      kind: the kind of reduction.
      members: its groups; None for an identity, which is one on each process by itself.
    """

    state: ProgramState
    kind: str
    members: Members | None

    def varying(self, value: ir.Value) -> Any:
        """None if a value is the same on all members of a group once its reductions are carried out."""
        if self.members is None or self.state.same.same(self.state.node_of(value), self.members):
            return None
        return Differs()

    def is_zero(self, value: ir.Value) -> bool:
        """Whether a value is filled with the identity of the reduction."""
        held = self.state.env[value]
        return isinstance(held, int) and self.state.graph.is_identity(held, self.kind)


def part_by_part(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue], make: MakeNode
                 ) -> SymbolicValue | None:
    """An op with one result done on the parts of its operands.

    ``op(AR(a) + p, AR(b) + q) = AR(op(a, b)) + op(p, q)`` for the operands a fact names, all others fixed.

    Args:
      state: the program.
      op: the op.
      values: its operands.
      make: makes the result's node of operand nodes and its type.

    Returns:
      The result; None when no fact allows it, and the reductions have to be carried out.
    """
    if len(op.regions) and not _in_own_type(state, op):
        return None
    positions = [place for place, value in enumerate(values) if isinstance(value, PendingReduction)]
    for position in positions[::-1] if state.strategy.last_factor else positions:
        asked = values[position]
        assert isinstance(asked, PendingReduction)
        joint = _joint(state, op, values, position, asked.kind)
        if joint is not None:
            result = _by_key(state, op, values, asked.kind, joint, make)
            if result is not None:
                return result
    return None


def _in_own_type(state: ProgramState, op: ir.Operation) -> bool:
    """Whether the regions of an op work in the type of its result; a promoting region rounds or wraps around
    differently.
    """
    inside = [argument for region in op.regions for block in region.blocks for argument in block.arguments]
    known = [shape_and_element(state.type_of(value)) for value in (op.operands[0], op.results[0], *inside)]
    return len({each[1] if each else None for each in known} - {None}) == 1 and None not in known


def _joint(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue], position: int, kind: str
           ) -> frozenset[int] | None:
    """The operands an op is jointly linear in, for the groups of every operand among them; None when it is not."""
    joint: frozenset[int] | None = None
    pending, seen = [position], {position}
    # Ends: an operand is added once.
    for place in pending:
        value = values[place]
        assert isinstance(value, PendingReduction)
        for members in value.members or [None]:
            answer = state.facts.linear_in(op, place, GraphContext(state, kind, members))
            if not isinstance(answer, JointlyLinear) or (joint is not None and joint != answer.operands):
                return None
            joint = answer.operands
        assert joint is not None
        for other in joint:
            held = values[other]
            if other not in seen and isinstance(held, PendingReduction) and held.kind == kind:
                seen.add(other)
                pending.append(other)
    return joint


def _by_key(state: ProgramState, op: ir.Operation, values: Sequence[SymbolicValue], kind: str, joint: frozenset[int],
            make: MakeNode) -> SymbolicValue | None:
    graph = state.graph
    types = [state.type_of(operand) for operand in op.operands]
    result = state.type_of(op.results[0])
    parts, fixed = {}, {}
    for place, (value, type_) in enumerate(zip(values, types, strict=True)):
        if place not in joint:
            fixed[place] = state.carried_out(value, type_)
        elif isinstance(value, PendingReduction) and value.kind != kind:
            parts[place] = {LOCAL: state.carried_out(value, type_)}
        else:
            parts[place] = parts_of(graph, value, kind)
    identities = {place: graph.identity(kind, types[place]) for place in joint}
    if any(node is None for node in identities.values()) or graph.identity(kind, result) is None:
        return None
    made: dict[Key, int] = {}
    moves = op.name not in _LIFTED
    if moves and any(own_part_of(key) for held in parts.values() for key in held):
        scattered = moved_parts(state, op, parts, fixed)
        if scattered is None:
            return None
        made |= scattered
    for key in dict.fromkeys(key for held in parts.values() for key in held):
        if moves and own_part_of(key):
            continue
        args: list[int | None] = []
        for place, type_ in enumerate(types):
            if place in fixed:
                args.append(_lifted(state, op, fixed[place], key))
            else:
                args.append(parts[place].get(key, graph.identity(kind, part_type(key, type_))))
        if any(arg is None for arg in args):
            return None
        made[_in_type(state, key, result)] = make(tuple(args), part_type(key, result))  # type: ignore[arg-type]
    return joined(graph, kind, made)


def _lifted(state: ProgramState, op: ir.Operation, node: int, key: Key) -> int | None:
    """An operand that is fixed, for a part that is as large as the whole sum; None when it is not one number."""
    graph, own = state.graph, own_part_of(key)
    known = shape_and_element(graph.types[node])
    if own is None or known is None or not known[0]:
        return node
    label = graph.labels[node]
    one_number = label[0] == "splat" or (label[0] == "stablehlo.broadcast_in_dim"
                                         and graph.types[graph.args[node][0]] == tensor_type((), known[1]))
    return graph.node(label, tensor_type(own.whole, known[1]), graph.args[node]) if one_number else None


def _in_type(state: ProgramState, key: Key, type_: str) -> Key:
    """Takes the reductions of the original in a wider float type, which rounds less; never in a narrower one."""
    if not state.strategy.widen or not state.original:
        return key
    known = shape_and_element(type_)
    if known is None or not is_float(known[1]):
        return key
    return tuple(state.space.reduction(each.members, each.kind, wire_of(each.kind, known[1]), each.own)
                 for each in key)


def wire_of(kind: str, element: str) -> str:
    """The element type that decides how a reduction rounds; empty if it is exact.

    Example:
      >>> wire_of("sum", "bf16"), wire_of("sum", "complex<f32>"), wire_of("max", "bf16"), wire_of("sum", "i8")
      ('bf16', 'f32', '', '')
    """
    if kind not in ("sum", "product") or not is_float(element):
        return ""
    return element.removeprefix("complex<").removesuffix(">")


# ---- ops that move elements of scattered sums, done on the whole sums

# ``move(own(AR(x))) = own(AR(move(x)))`` where the op leaves the dimension that is divided whole, wherever it puts it.
# Of several operands, such as the parts of a concatenation, each has its own whole shape; the same groups divide them
# along the same dimension, or the op is done for one of them and zeros in place of the others.


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
