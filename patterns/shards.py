"""Analyses of slices by device id: which shard each device reads."""

from hlorewrite.analysis.groups import Groups, groups_of, rows_attribute
from hlorewrite.analysis.mesh import fully_manual
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.ir.binding import ir
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.match_failure import MatchFailure
from hlorewrite.rules.register import native


@native
def own_shard(context: RuleContext, reduction: ir.Operation, piece: ir.Operation
              ) -> tuple[int, ir.Attribute] | MatchFailure:
    """The dimension along which each member of a group slices its own shard, and the groups in the order of
    shards.

    Args:
      context: the rule's context.
      reduction: a collective whose result is sliced.
      piece: the ``stablehlo.dynamic_slice``.

    Returns:
      The dimension, and replica groups in which the member that reads shard i stands at place i; a failure when the
      members of some group do not read one shard each.
    """
    groups, cut = partition_groups(context, reduction), _cut(piece)
    if isinstance(groups, MatchFailure):
        return groups
    if isinstance(cut, MatchFailure):
        return cut
    dimension, count = cut
    if count != groups.size:
        return MatchFailure(f"the slice is one of {count} shards, and a group has {groups.size} members", piece)
    shard_of = _shards(groups, piece, dimension)
    if isinstance(shard_of, MatchFailure):
        return shard_of
    rows = []
    for row in groups.rows:
        ordered = sorted(row, key=lambda device: shard_of[device])
        if [shard_of[device] for device in ordered] != list(range(count)):
            return MatchFailure("two members of a group read the same shard", piece)
        rows.append(ordered)
    return dimension, rows_attribute(context.view.module.context, rows)


@native
def shard_pairs(context: RuleContext, gather: ir.Operation, piece: ir.Operation) -> ir.Attribute | MatchFailure:
    """Who sends to whom when each device reads one shard of an all-gather, no shard read by two devices of a group.

    Args:
      context: the rule's context.
      gather: the all-gather.
      piece: the ``stablehlo.dynamic_slice`` of its result.

    Returns:
      Source and target pairs of a collective permute; a failure when some device reads across shards, or shares one.
    """
    groups, cut = partition_groups(context, gather), _cut(piece)
    if isinstance(groups, MatchFailure):
        return groups
    if isinstance(cut, MatchFailure):
        return cut
    dimension, count = cut
    along = ir.IntegerAttr(gather.attributes["all_gather_dim"]).value
    if dimension != along or count != groups.size:
        return MatchFailure("the slice is not one of the gathered shards", piece)
    shard_of = _shards(groups, piece, dimension)
    if isinstance(shard_of, MatchFailure):
        return shard_of
    pairs = [(row[shard_of[device]], device) for row in groups.rows for device in row]
    if len({source for source, _ in pairs}) != len(pairs):
        return MatchFailure("one device's shard is read by several", piece)
    return rows_attribute(context.view.module.context, sorted(pairs))


def partition_groups(context: RuleContext, op: ir.Operation) -> Groups | MatchFailure:
    """The groups of a collective whose ids are partition ids; No with the reason for others."""
    groups = groups_of(op, context.view)
    if isinstance(groups, str):
        return MatchFailure(groups, op)
    replicas = context.view.module.operation.attributes.get("mhlo.num_replicas")
    if groups.mode not in ("flattened_ids", "cross_partition") or (
            replicas is not None and ir.IntegerAttr(replicas).value != 1):
        return MatchFailure("its groups are of replicas, and device ids are of partitions", op)
    if not fully_manual(op, context.view):
        return MatchFailure("it is in a region that is manual over only some mesh axes", op)
    return groups


def _cut(piece: ir.Operation) -> tuple[int, int] | MatchFailure:
    """The one dimension a slice cuts, and in how many equal shards."""
    whole = ir.RankedTensorType(piece.operands[0].type).shape
    part = ir.RankedTensorType(piece.results[0].type).shape
    cut = [i for i, (a, b) in enumerate(zip(whole, part, strict=True)) if a != b]
    if 0 in part:
        return MatchFailure("the slice is empty", piece)
    if len(cut) != 1 or whole[cut[0]] % part[cut[0]]:
        return MatchFailure("the slice does not cut one dimension into equal shards", piece)
    return cut[0], whole[cut[0]] // part[cut[0]]


def _shards(groups: Groups, piece: ir.Operation, dimension: int) -> dict[int, int] | MatchFailure:
    """The shard each device reads; where a slice would reach over the end, StableHLO moves it back."""
    devices = sorted(device for row in groups.rows for device in row)
    table = PerDeviceConstants(devices).table(piece.operands[1 + dimension])
    if table is None:
        return MatchFailure("where the slice starts is not a known function of the device id", piece)
    whole = ir.RankedTensorType(piece.operands[0].type).shape[dimension]
    size = ir.RankedTensorType(piece.results[0].type).shape[dimension]
    starts = [min(max(int(start), 0), whole - size) for start in table]
    if any(start % size for start in starts):
        return MatchFailure("the slice straddles two shards", piece)
    return {device: start // size for device, start in zip(devices, starts, strict=True)}
