"""Collectives that may share a call: read, checked, and sorted into classes."""

from dataclasses import dataclass, replace

from hlorewrite.analysis.groups import Groups, device_count, groups_of, id_mode, replica_count, written_pairs
from hlorewrite.ir import ALL_GATHER, ALL_REDUCE, COLLECTIVE_PERMUTE, REDUCE_SCATTER, REDUCING, View, ir
from hlorewrite.ir.frontend import FRONTEND, STREAM, frontend_attributes
from hlorewrite.ir.types import element_bytes, is_static_tensor, tensor_bytes
from hlorewrite.ops.reducers import reduction_kind

FUSIBLE = (ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, COLLECTIVE_PERMUTE)
"""The collectives that the pass can fuse."""
KINDS = {row.op: row.kind for row in FUSIBLE}
OURS = "hlorewrite."
"""Prefix of the combiner keys that the pass sets."""
NO_FUSE = "hlorewrite.no_fuse"
"""Unit attribute, or frontend attribute of any value but "false", on ops that must keep their own call."""
_SCHEDULING = ("_scheduling_group_id", STREAM, "inlineable")
_OWN = {FRONTEND, NO_FUSE, *(name for row in FUSIBLE for name in row.attributes)}
_INTEGER_KINDS = ("sum", "product", "and", "or")


@dataclass(frozen=True, slots=True)
class Member:
    """A collective that may share a call with others.

    Attributes:
      op: the op.
      kind: its name in the cost model.
      reduction: the kind of reduction; empty when it does not reduce.
      groups: device numbers of each group; for a permute, its pairs.
      element: its element type as text.
      payload: bytes of the larger of operands and results.
      key: equal for members that do the same except for the types of their values.
    """

    op: ir.Operation
    kind: str
    reduction: str
    groups: tuple[tuple[int, ...], ...]
    element: str
    payload: int
    key: tuple[object, ...]


@dataclass(frozen=True)
class Refusal:
    """Why a collective keeps its own call; ``asked`` when the user wants it so."""

    sentence: str
    asked: bool = False


def member_of(op: ir.Operation, view: View) -> Member | Refusal:
    """Reads a collective.

    Args:
      op: one of ``KINDS``.
      view: its module.

    Returns:
      The member, or why it must stay alone.
    """
    frontend = frontend_attributes(op)
    if NO_FUSE in op.attributes or frontend.get(NO_FUSE, "false") != "false":
        return Refusal("it is marked not to be fused", asked=True)
    if any(name in frontend for name in _SCHEDULING):
        return Refusal("it is scheduled by hand", asked=True)
    others = [name for name in op.attributes if name not in _OWN]  # pyright: ignore
    if others:
        return Refusal(f"it carries the attribute {others[0]}, whose meaning for several values is not known")
    if not all(is_static_tensor(v.type) for v in (*op.operands, *op.results)):
        return Refusal("its shape is not static")
    elements = {str(ir.RankedTensorType(v.type).element_type) for v in (*op.operands, *op.results)}
    if len(elements) != 1:
        return Refusal("its values are of several element types")
    groups = _groups(op, view)
    if isinstance(groups, str):
        return Refusal(groups)
    reduction = ""
    if op.name in REDUCING:
        reduction = reduction_kind(op) or ""
        if not reduction:
            return Refusal("its reducer is none of sum, product, maximum, minimum, and, or")
    payload = max(sum(tensor_bytes(v.type) for v in values) for values in (op.operands, op.results))
    return Member(op, KINDS[op.name], reduction, groups=groups.rows, element=elements.pop(), payload=payload,
                  key=(op.name, groups.mode, _same_groups(op, groups), reduction,
                   tuple(sorted(frontend.items()))))


def with_shared_parts(member: Member, known: dict[object, object]) -> Member:
    """Lets a member share the groups and key objects of an earlier equal one, since a module has many members but few
    of these.

    Args:
      member: a collective.
      known: the groups and keys of earlier members; this function adds to it.
    """
    groups, key, element = (known.setdefault(part, part) for part in (member.groups, member.key, member.element))
    return replace(member, groups=groups, key=key, element=element)


def _groups(op: ir.Operation, view: View) -> Groups | str:
    """Groups as device numbers; a permute's pairs."""
    if op.name == COLLECTIVE_PERMUTE.op:
        pairs = written_pairs(op, view)
        if not pairs:
            return "it sends nothing"
        groups: Groups | str = pairs if isinstance(pairs, str) else Groups(pairs, id_mode(op) or "")
    else:
        groups = groups_of(op, view)
    if isinstance(groups, str):
        return groups
    if replica_count(view) > 1 and (device_count(view) or 0) > replica_count(view) and groups.mode != "flattened_ids":
        return "the module runs as several replicas of several partitions, and its groups count only one of them"
    return groups


def _same_groups(op: ir.Operation, groups: Groups) -> object:
    """The part of the key for groups: their members, and also the order if it matters."""
    if op.name == ALL_REDUCE.op:
        return groups.key
    return frozenset(groups.rows) if op.name == COLLECTIVE_PERMUTE.op else groups.rows


def carrier_of(reduction: str, elements: frozenset[str]) -> str | None:
    """An element type in which values of all given types can be sent without changing the results.

    Integers of w bits are added, multiplied and combined bit by bit modulo 2^w, and the lowest w bits of a wider
    result are the narrow result. Maxima and minima commute with the exact, monotone conversion to a wider type of the
    same signedness. Sums of floating-point numbers round differently in a wider type, so they keep their own.

    Args:
      reduction: the kind of reduction; empty for data that is only moved.
      elements: element types.

    Returns:
      The type, or None when there is none.

    Example:
      >>> carrier_of("sum", frozenset({"i8", "ui32"})), carrier_of("max", frozenset({"bf16", "f32"}))
      ('ui32', 'f32')
      >>> carrier_of("sum", frozenset({"bf16", "f32"})) is None
      True
    """
    if len(elements) == 1:
        return next(iter(elements))
    widths = {name: int(name.lstrip("uibf")) for name in elements if name.lstrip("uibf").isdigit()}
    if len(widths) != len(elements) or "i1" in elements:
        return None
    widest = max(sorted(widths), key=lambda name: widths[name])
    if all(name.startswith(("i", "ui")) for name in elements):
        same_sign = len({name.startswith("u") for name in elements}) == 1
        return widest if reduction in _INTEGER_KINDS or (reduction in ("max", "min") and same_sign) else None
    if all(name in ("bf16", "f16", "f32", "f64") for name in elements) and reduction in ("max", "min"):
        return None if widths[widest] == 16 else widest
    return None


def family(member: Member, widen: bool) -> str:
    """Members of one key can share a call only if their families are equal.

    Args:
      member: the member.
      widen: whether element types of several widths may share a call, which then sends more bytes.
    """
    width = "" if widen else member.element.lstrip("uibf")
    if not member.reduction:
        return member.element
    integer = member.element.lstrip("ui").isdigit() and member.element != "i1"
    if integer and member.reduction in _INTEGER_KINDS:
        return f"integer{width}"
    if integer and member.reduction in ("max", "min"):
        return f"unsigned{width}" if member.element.startswith("u") else f"signed{width}"
    if member.element in ("bf16", "f16", "f32", "f64") and member.reduction in ("max", "min"):
        return f"float{width}"
    return member.element


def carried_bytes(member: Member, carrier: str) -> int:
    """Bytes of a member's payload when it is sent as another element type."""
    with member.op.context:
        return int(member.payload / element_bytes(ir.Type.parse(member.element))
                   * element_bytes(ir.Type.parse(carrier)))
