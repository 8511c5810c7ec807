"""masked-sum-to-broadcast: a sum to which one device contributes becomes a broadcast from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.ir import COLLECTIVE_BROADCAST, View, defining_op, element_count, ir, is_private, terminator
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.passes.common.broadcasts.emit import Delivery, emit_delivery
from hlorewrite.passes.common.broadcasts.masked_product import NOT_FINITE, known_finite, masked_product
from hlorewrite.passes.common.pass_support import OpByOp, tell
from hlorewrite.passes.common.shard_index import partition_groups, scalar_behind, splat_number
from hlorewrite.passmanager.base import PassContext

_NEUTRAL = {"sum": 0.0, "product": 1.0}


@dataclass(frozen=True)
class _Masked:
    """``select(mask, kept, other)``, with all values from the reduction's own function."""

    mask: ir.Value
    on_true: ir.Value
    on_false: ir.Value
    bound: Mapping[ir.Value, ir.Value]


@dataclass(frozen=True)
class MaskedSumToBroadcast(OpByOp):
    """Turns psum(where(axis_index == k, x, 0)) into a broadcast of x from device k.

    The mask is evaluated for every device. With n devices an all-reduce carries 2 (n-1)/n times the payload over each
    link, a broadcast once; 0 + x = x except for the sign of a zero. So too psum(x * mask) where x is known to be
    finite, as integers are: 0 * inf is not zero. XLA does not do this.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> MaskedSumToBroadcast().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "masked-sum-to-broadcast"

    def _one(self, op: ir.Operation, view: View, ctx: PassContext) -> bool:
        sources = _found(op, view)
        if sources is None:
            return False
        if isinstance(sources, str):
            tell(ctx, "blocked", self.name, f"the reduction stays: {sources}", view, op)
            return False
        kept, rows = sources
        if len(rows[0]) < 3 and not ctx.ignore_cost:
            # Over two devices an all-reduce carries its payload once each way, as cheap as a broadcast.
            tell(ctx, "unprofitable", self.name, "the reduction stays: between two devices it is as cheap", view, op)
            return False
        editor = ctx.editor(view.module, self.name)
        result = emit_delivery(editor, Delivery(COLLECTIVE_BROADCAST.kind, rows), kept, op, op)
        editor.replace(op.results[0], result)
        masker = defining_op(op.operands[0])
        editor.erase(op)
        if masker is not None:
            editor.erase_if_dead(masker)
        ctx.count("masked sums replaced")
        tell(ctx, "applied", self.name, f"one device of each group contributes: broadcast from {[r[0] for r in rows]}",
             view, defining_op(result) or masker or view.module.operation)
        return True


_Sources = tuple[ir.Value, tuple[tuple[int, ...], ...]]
"""The contributed value, and the groups with the contributing device first."""


def _found(op: ir.Operation, view: View) -> _Sources | str | None:
    """The masked value of a reduction, or why it is not a broadcast; None when nothing is masked."""
    if len(op.operands) != 1:
        return None
    masked, groups = _masked(op, view), partition_groups(op, view)
    if masked is not None:
        return groups if isinstance(groups, str) else _sources(op, masked, groups)
    if isinstance(groups, str) or reduction_kind(op) != "sum":
        return None
    product = masked_product(op.operands[0], _devices(groups, floats=True))
    if product is None:
        return None
    rows = _rows(groups, product.chosen)
    if isinstance(rows, str):
        return rows
    return (product.kept, rows) if known_finite(product.kept) else NOT_FINITE


def _masked(op: ir.Operation, view: View) -> _Masked | None:
    """The select that makes the reduced value, also if it is the only result of a private function."""
    maker = defining_op(op.operands[0])
    bound: dict[ir.Value, ir.Value] = {}
    if maker is not None and maker.name == "func.call":
        callee = view.callee(maker)
        if callee is None or not is_private(callee) or len(callee.regions[0].blocks) != 1:
            return None
        block = callee.regions[0].blocks[0]
        position = ir.OpResult(op.operands[0]).result_number
        bound = dict(zip(block.arguments, maker.operands, strict=True))
        maker = defining_op(terminator(block).operands[position])
    if maker is None or maker.name != "stablehlo.select":
        return None
    mask, on_true, on_false = maker.operands
    return _Masked(mask, on_true, on_false, bound)


def _devices(groups: Groups, *, floats: bool = False) -> PerDeviceConstants:
    return PerDeviceConstants(sorted(d for row in groups.rows for d in row), floats=floats)


def _sources(op: ir.Operation, masked: _Masked, groups: Groups) -> _Sources | str:
    """The contribution of a select, or why it is not a broadcast."""
    kind = reduction_kind(op)
    if kind not in _NEUTRAL:
        return f"masks under a {kind or 'reducer of this form'} are not supported"
    mask = scalar_behind(masked.mask, masked.bound)
    if element_count(mask.type) != 1:
        return "its mask is not the same for all elements"
    neutral = [splat_number(value, masked.bound) == _NEUTRAL[kind] for value in (masked.on_true, masked.on_false)]
    if neutral[0] == neutral[1]:
        return "its select does not have the constant that contributes nothing on exactly one side"
    devices = _devices(groups)
    table = devices.table(mask)
    if table is None:
        return "its mask depends on more than constants and the device's id"
    chosen = {device: bool(value.reshape(-1)[0]) != neutral[0]
              for device, value in zip(devices.devices, table, strict=True)}
    kept = masked.on_false if neutral[0] else masked.on_true
    kept = masked.bound.get(kept, kept)
    if masked.bound and kept not in masked.bound.values():
        return "the reduced value is computed inside a called function"
    rows = _rows(groups, chosen)
    return rows if isinstance(rows, str) else (kept, rows)


def _rows(groups: Groups, chosen: Mapping[int, bool]) -> tuple[tuple[int, ...], ...] | str:
    """The groups with the only contributing device first, or why there is none."""
    rows = []
    for row in groups.rows:
        contributing = [device for device in row if chosen[device]]
        if len(contributing) != 1:
            return f"{len(contributing)} devices of a group contribute, not one"
        rows.append((contributing[0], *(device for device in row if device != contributing[0])))
    return tuple(rows)
