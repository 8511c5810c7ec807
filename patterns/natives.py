"""Predicates and analyses that rules call; all natives are declared with their types in ``natives.hlopat``.

Each takes the context first: a ``RuleContext`` from rewrite rules, a ``FactContext`` from linearity facts. Predicates
answer True or No with a sentence; analyses answer a value or No.
"""

from hlorewrite.analysis.groups import Groups, device_count, groups_of, id_mode, rows_attribute, written_pairs
from hlorewrite.analysis.linearity import FactContext
from hlorewrite.ir import ancestors, element_type, ir, tensor_bytes
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.match_failure import Answer, MatchFailure
from hlorewrite.rules.register import native, only_if_available, only_if_equal

# ---- uses and places


@native
def one_use(context: object, op: ir.Operation) -> Answer:
    """Whether the results of an op are read exactly once in total."""
    count = sum(1 for result in op.results for _ in result.uses)
    return True if count == 1 else MatchFailure(f"its result is read {count} times", op)


@native
def unused(context: object, op: ir.Operation) -> Answer:
    """Whether no op reads a result of an op."""
    reader = next((use.owner.operation for result in op.results for use in result.uses), None)
    return True if reader is None else MatchFailure("its result is read", reader)


@native
def only_used_by(context: object, value: ir.Value, op: ir.Operation) -> Answer:
    """Whether an op is the only reader of a value."""
    other = next((use.owner.operation for use in value.uses if use.owner.operation != op), None)
    return True if other is None else MatchFailure("the value is read elsewhere too", other)


@native
def same_block(context: object, first: ir.Operation, second: ir.Operation) -> Answer:
    """Whether two ops are in the same block, so that both run equally often."""
    return True if first.block == second.block else MatchFailure("the ops are in different regions", first)


@native
@only_if_available
def before(context: object, first: ir.Operation, second: ir.Operation) -> Answer:
    """Whether the first op's results can be read where the second stands."""
    around = next((op for op in (second, *ancestors(second)) if op.block == first.block), None)
    if around is None or around == first or not first.is_before_in_block(around):
        return MatchFailure("its result is not available there", first)
    return True


# ---- uniformity


@native
def uniform(context: FactContext, value: ir.Value) -> Answer:
    """In linearity facts: whether a value is the same on every device of a group."""
    reason = context.varying(value)
    return True if reason is None else MatchFailure(reason.sentence, reason.culprit)


@native
def is_identity(context: FactContext, value: ir.Value) -> Answer:
    """In linearity facts: whether a value is the identity of the reduction everywhere (zero for a sum)."""
    if context.is_zero(value):
        return True
    return MatchFailure("the value is not known to be the identity of the reduction")


@native
def uniform_over(context: RuleContext, value: ir.Value, collective: ir.Operation) -> Answer:
    """In rules: whether a value is equal on all devices of each group of a collective."""
    if context.uniform_over is not None:
        return context.uniform_over(value, collective)
    groups = groups_of(collective, context.view)
    if isinstance(groups, str):
        return MatchFailure(groups, collective)
    reason = context.uniformity(groups).varying(value)
    return True if reason is None else MatchFailure(f"the value differs between devices: {reason.sentence}",
                                                    reason.culprit)


# ---- groups


def _groups(context: RuleContext, op: ir.Operation) -> Groups | MatchFailure:
    groups = groups_of(op, context.view)
    return MatchFailure(groups, op) if isinstance(groups, str) else groups


@native
def same_groups(context: RuleContext, first: ir.Operation, second: ir.Operation) -> Answer:
    """Whether two collectives work over the same groups, in whatever order of members."""
    a, b = _groups(context, first), _groups(context, second)
    if isinstance(a, MatchFailure) or isinstance(b, MatchFailure):
        return a if isinstance(a, MatchFailure) else b if isinstance(b, MatchFailure) else True
    return True if a.key == b.key else MatchFailure(f"the groups differ ({a} and {b})", first)


@native
def same_shards(context: RuleContext, first: ir.Operation, second: ir.Operation) -> Answer:
    """Whether two collectives work over the same groups with the members in the same order."""
    a, b = _groups(context, first), _groups(context, second)
    if isinstance(a, MatchFailure) or isinstance(b, MatchFailure):
        return a if isinstance(a, MatchFailure) else b if isinstance(b, MatchFailure) else True
    same = a.mode == b.mode and sorted(a.rows) == sorted(b.rows)
    return True if same else MatchFailure(f"the groups differ ({a} and {b})", first)


@native
def alone(context: RuleContext, op: ir.Operation) -> Answer:
    """Whether each group of a collective has one member."""
    groups = _groups(context, op)
    if isinstance(groups, MatchFailure):
        return groups
    return True if groups.size == 1 else MatchFailure(f"its groups have {groups.size} members", op)


def _collective_key(context: RuleContext, op: ir.Operation) -> tuple[object, ...] | None:
    """What two collectives on one operand have in common when they compute the same."""
    groups = _groups(context, op) if "replica_groups" in op.attributes else ""
    kind = reduction_kind(op) if len(op.regions) else ""
    if isinstance(groups, MatchFailure) or kind is None:
        return None
    placed = (groups.mode, tuple(sorted(groups.rows))) if isinstance(groups, Groups) else ()
    attributes = sorted({*op.attributes} - {"channel_handle", "replica_groups"})
    return op.name, tuple((name, op.attributes[name]) for name in attributes), id_mode(op), placed, kind


@native
@only_if_equal(_collective_key)
def same_collective(context: RuleContext, first: ir.Operation, second: ir.Operation) -> Answer:
    """Whether two collectives on the same operand compute the same: equal attributes, groups and reduction."""
    if first.name != second.name:
        return MatchFailure(f"one is {first.name}, the other {second.name}", first)
    for name in sorted({*first.attributes, *second.attributes} - {"channel_handle", "replica_groups"}):
        one, other = first.attributes.get(name), second.attributes.get(name)
        if one is None or other is None or one != other:
            return MatchFailure(f"the attribute `{name}` differs", first)
    if id_mode(first) != id_mode(second):
        return MatchFailure("their device ids mean different things", first)
    if "replica_groups" in first.attributes:
        answer = same_shards(context, first, second)
        if answer is not True:
            return answer
    if len(first.regions) and (reduction_kind(first) is None or reduction_kind(first) != reduction_kind(second)):
        return MatchFailure("the reductions differ", first)
    return True


@native
def group_size(context: RuleContext, op: ir.Operation) -> int | MatchFailure:
    """How many devices a group of a collective has."""
    groups = _groups(context, op)
    return groups if isinstance(groups, MatchFailure) else groups.size


@native
def composed_groups(context: RuleContext, inner: ir.Operation, outer: ir.Operation) -> ir.Attribute | MatchFailure:
    """The groups over which one reduction does what two in a row do.

    With the groups as 0/1 matrices, outer · inner must be 0/1 again (no device is counted twice) and its rows must
    partition the devices.
    """
    first, second = _groups(context, inner), _groups(context, outer)
    if isinstance(first, MatchFailure):
        return first
    if isinstance(second, MatchFailure):
        return second
    if first.mode != second.mode:
        return MatchFailure("their device ids mean different things", inner)
    row_of = {device: row for row in first.rows for device in row}
    composed: dict[int, tuple[int, ...]] = {}
    for row in second.rows:
        members = [m for device in row for m in row_of.get(device, ())]
        if len(set(members)) != len(members):
            return MatchFailure("a device would be counted twice", outer)
        composed.update(dict.fromkeys(row, tuple(sorted(members))))
    rows = sorted(set(composed.values()))
    everyone = [device for row in rows for device in row]
    if len(set(everyone)) != len(everyone) or any(composed.get(d) != row for row in rows for d in row):
        return MatchFailure("the groups do not compose to a partition of the devices", outer)
    return rows_attribute(context.view.module.context, rows)


# ---- permutes


@native
def identity_permute(context: RuleContext, op: ir.Operation) -> Answer:
    """Whether every device sends to itself."""
    pairs, count = written_pairs(op, context.view), device_count(context.view)
    if isinstance(pairs, str):
        return MatchFailure(pairs, op)
    moved = next(((a, b) for a, b in pairs if a != b), None)
    if moved is not None:
        return MatchFailure(f"device {moved[0]} sends to device {moved[1]}", op)
    if count is None or len(pairs) != count:
        return MatchFailure("devices that receive nothing would get zeros", op)
    return True


@native
def composed_pairs(context: RuleContext, inner: ir.Operation, outer: ir.Operation) -> ir.Attribute | MatchFailure:
    """Source and target pairs of two permutes in a row; a device that receives nothing gets zeros either way."""
    if id_mode(inner) != id_mode(outer):
        return MatchFailure("their device ids mean different things", inner)
    first, second = written_pairs(inner, context.view), written_pairs(outer, context.view)
    if isinstance(first, str):
        return MatchFailure(first, inner)
    if isinstance(second, str):
        return MatchFailure(second, outer)
    source_of = {target: source for source, target in first}
    pairs = [(source_of[middle], target) for middle, target in second if middle in source_of]
    if not pairs:
        return MatchFailure("nothing is sent by both", outer)
    return rows_attribute(context.view.module.context, sorted(pairs))


# ---- values for cost and rewrite


@native("bytes")
def bytes_of(context: object, value: ir.Value) -> int:
    """Bytes of a value on one device."""
    return tensor_bytes(value.type)


@native("type")
def type_of(context: object, value: ir.Value) -> ir.Type:
    """The type of a value."""
    return value.type


@native
def retyped(context: object, shape: ir.Value, element: ir.Value) -> ir.Type:
    """The type with the shape of one value and the elements of another."""
    return ir.RankedTensorType.get(ir.RankedTensorType(shape.type).shape, element_type(element),
                                   loc=ir.Location.unknown(shape.type.context))
