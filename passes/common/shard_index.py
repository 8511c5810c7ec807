"""Where each device's slice starts: evaluates indices per device, and checks that groups fit them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hlorewrite.analysis.groups import Groups, device_count, groups_of, replica_count
from hlorewrite.analysis.mesh import fully_manual
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.ir import View, defining_op, element_count, ir
from hlorewrite.ops.attributes import constant_attribute, ints, is_splat
from hlorewrite.ops.table import SPREADS


@dataclass(frozen=True)
class Range:
    """The elements that a slice reads along one dimension, on each device.

    Attributes:
      starts: the first element, by device.
      size: the distance from the first element to one past the last.
      full: size of the dimension.
    """

    starts: dict[int, int]
    size: int
    full: int


def partition_groups(op: ir.Operation, view: View) -> Groups | str:
    """The groups of a collective if its ids are partition ids and cover every device; otherwise the reason.

    Args:
      op: a collective with replica groups.
      view: its module.

    Returns:
      The groups, or a sentence.
    """
    groups = groups_of(op, view)
    if isinstance(groups, str):
        return groups
    if groups.mode not in ("flattened_ids", "cross_partition") or replica_count(view) != 1:
        return "its groups do not count partitions, and indices are known only for partitions"
    if not fully_manual(op, view):
        return "it is in a region that is manual over only some mesh axes"
    members = sorted(member for row in groups.rows for member in row)
    if members != list(range(device_count(view) or len(members))):
        return "its groups do not cover every device"
    return groups


def range_along(op: ir.Operation, dim: int, devices: PerDeviceConstants) -> Range | str:
    """The elements that a ``slice`` or ``dynamic_slice`` reads along a dimension, on each device.

    Args:
      op: the slice.
      dim: the dimension.
      devices: evaluates indices.

    Returns:
      The range, or why it is not known.
    """
    full = ir.RankedTensorType(op.operands[0].type).shape[dim]
    if op.name == "stablehlo.slice":
        start, limit = (ints(op, name)[dim]
                        for name in ("start_indices", "limit_indices"))
        return Range(dict.fromkeys(devices.devices, start), limit - start, full)
    size = ints(op, "slice_sizes")[dim]
    table = devices.table(op.operands[1 + dim])
    if table is None:
        return "its index depends on more than constants and the device's id"
    # StableHLO clamps the start so that the slice is inside.
    starts = {device: int(np.clip(int(value), 0, full - size))
              for device, value in zip(devices.devices, table, strict=True)}
    return Range(starts, size, full)


def sliced_dimensions(op: ir.Operation) -> list[int]:
    """The dimensions that a slice does not read in full."""
    before, after = (ir.RankedTensorType(v.type).shape for v in (op.operands[0], op.results[0]))
    return [dim for dim, (full, part) in enumerate(zip(before, after, strict=True)) if full != part]


def scalar_behind(value: ir.Value, bound: Mapping[ir.Value, ir.Value] | None = None) -> ir.Value:
    """The one element a value repeats, looking through broadcasts and reshapes and into a call's arguments.

    Args:
      value: any value.
      bound: maps arguments of a called function to the operands of the call.

    Returns:
      The value with one element, or the value itself.
    """
    # Ends: each step goes to an operand, or to what a caller passes.
    while True:
        value = (bound or {}).get(value, value)
        op = defining_op(value)
        if op is None or op.name not in SPREADS or element_count(op.operands[0].type) != 1:
            return value
        value = op.operands[0]


def splat_number(value: ir.Value, bound: Mapping[ir.Value, ir.Value] | None = None) -> float | int | None:
    """The number that fills a constant, looking through converts; None when it is not such a constant.

    Args:
      value: any value.
      bound: maps arguments of a called function to the operands of the call.

    Returns:
      The number before any conversion; None for complex numbers too.
    """
    op = _constant_behind(value, bound)
    attribute = None if op is None else constant_attribute(op)
    if op is None or attribute is None or not attribute.is_splat:
        return None
    return _number(str(attribute.get_splat_value()), str(ir.RankedTensorType(op.results[0].type).element_type))


def is_one_number(value: ir.Value) -> bool:
    """Whether all elements of a constant are the same number, complex or not, looking through converts."""
    op = _constant_behind(value, None)
    return op is not None and is_splat(op)


def _constant_behind(value: ir.Value, bound: Mapping[ir.Value, ir.Value] | None) -> ir.Operation | None:
    # Ends: each step goes to an operand.
    while True:
        value = scalar_behind(value, bound)
        op = defining_op(value)
        if op is None or op.name != "stablehlo.convert":
            break
        value = op.operands[0]
    return op if op is not None and op.name == "stablehlo.constant" else None


def _number(text: str, element: str) -> float | int | None:
    """A number from the text of an attribute such as ``0.000000e+00 : f32``; None when it is not a number."""
    word = text.partition(" : ")[0].strip()
    if element == "i1":
        return {"true": 1, "false": 0, "1": 1, "-1": 1, "0": 0}.get(word)
    try:
        if word.startswith("0x") and not element.lstrip("ui").isdigit():
            return {"0xff800000": float("-inf"), "0x7f800000": float("inf")}.get(word.lower())
        return int(word, 0) if element.lstrip("ui").isdigit() else float(word)
    except ValueError:
        return None
