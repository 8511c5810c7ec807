"""Selects by device id: which devices keep a value where all others have zero."""

from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.ir import defining_op, element_count, ir
from hlorewrite.ops.reducers import is_identity
from hlorewrite.patterns.shards import partition_groups
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.match_failure import MatchFailure
from hlorewrite.rules.register import native

_SPREADS = ("stablehlo.broadcast_in_dim", "stablehlo.reshape")


@native
def kept_by_one(context: RuleContext, choice: ir.Operation, collective: ir.Operation) -> ir.Value | MatchFailure:
    """The value that a select takes on one member of each group of a collective, if it takes zero on all others.

    XLA's partitioner writes so: a sum over devices into which a value goes that each of them holds must count it once.
    The mask is evaluated for each device.

    Args:
      context: the rule's context.
      choice: the ``stablehlo.select``; either of its sides may be the zero.
      collective: the collective whose groups are meant.

    Returns:
      The other side; a failure when in some group not exactly one member takes it.
    """
    groups = partition_groups(context, collective)
    if isinstance(groups, MatchFailure):
        return groups
    mask, *sides = choice.operands
    zeros = [is_identity(side, "sum") for side in sides]
    if zeros[0] == zeros[1]:
        return MatchFailure("not exactly one side of the select is zero", choice)
    devices = sorted(device for row in groups.rows for device in row)
    table = PerDeviceConstants(devices).table(_unspread(mask))
    if table is None:
        return MatchFailure("what the select takes is not a known function of the device id", choice)
    on_true = zeros[1]
    keeps = {device: [bool(taken) == on_true for taken in values.reshape(-1)]
             for device, values in zip(devices, table, strict=True)}
    if any(len(set(taken)) != 1 for taken in keeps.values()):
        return MatchFailure("the select takes different elements from its two sides", choice)
    for row in groups.rows:
        keepers = [device for device in row if keeps[device][0]]
        if len(keepers) != 1:
            return MatchFailure(f"{len(keepers)} members of a group take the value, not one", choice)
    return sides[0] if on_true else sides[1]


def _unspread(value: ir.Value) -> ir.Value:
    """The value whose one element a mask repeats; the mask itself where it repeats none."""
    # Ends: each step goes to an operand.
    while True:
        op = defining_op(value)
        if op is None or op.name not in _SPREADS or element_count(op.operands[0].type) != 1:
            return value
        value = op.operands[0]
