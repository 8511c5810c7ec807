"""permutes-to-broadcast: permutes that send one value from one device to several become one broadcast."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.groups import Rows, device_count, id_mode, replica_count, written_pairs
from hlorewrite.analysis.mesh import fully_manual
from hlorewrite.ir import COLLECTIVE_BROADCAST, COLLECTIVE_PERMUTE, Editor, Module, View, ir, is_static_tensor
from hlorewrite.passes.common.broadcasts.emit import Delivery, emit_delivery
from hlorewrite.passes.common.device_masks import device_mask, zeros_like
from hlorewrite.passes.common.pass_support import tell
from hlorewrite.passmanager.base import Pass, PassContext

Permute = tuple[ir.Operation, Rows]
"""A permute and its (source, target) pairs."""


@dataclass(frozen=True)
class PermutesToBroadcast(Pass):
    """Turns several permutes of one value, each to another device, into one broadcast.

    Permute i gives target t the value of its source and zero to all others. One broadcast brings the value to every
    target; permute i is then select(this device is one of its targets, broadcast, 0). With k targets one payload is
    sent in place of k. XLA does not do this.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> PermutesToBroadcast().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "permutes-to-broadcast"

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        together: dict[tuple[ir.Block, ir.Value], list[Permute]] = {}
        for op in view.ops(COLLECTIVE_PERMUTE.op):
            pairs = written_pairs(op, view)
            if isinstance(pairs, str):
                tell(ctx, "blocked", self.name, f"the permute stays: {pairs}", view, op)
                continue
            together.setdefault((op.block, op.operands[0]), []).append((op, pairs))
        changed = False
        for permutes in together.values():
            if len(permutes) > 1:
                changed = self._one(permutes, view, ctx) or changed
        return changed

    def _one(self, permutes: Sequence[Permute], view: View, ctx: PassContext) -> bool:
        ops, devices = [op for op, _ in permutes], device_count(view)
        if any(id_mode(op) != "cross_partition" for op in ops) or replica_count(view) != 1 or devices is None \
                or not is_static_tensor(ops[0].operands[0].type) or not fully_manual(ops[0], view):
            tell(ctx, "missed", self.name, "the permutes stay: they do not number partitions, or the module does not "
                 "say how many it has", view, ops[0])
            return False
        rows = _rows([pairs for _, pairs in permutes], devices)
        if isinstance(rows, str):
            tell(ctx, "missed", self.name, f"the permutes stay: {rows}", view, ops[0])
            return False
        tell(ctx, "applied", self.name, f"{len(ops)} permutes of one value become one broadcast from "
             f"{', '.join(str(row[0]) for row in rows)}", view, ops[0])
        editor = ctx.editor(view.module, self.name)
        _rewrite(editor, permutes, rows)
        ctx.count("permutes replaced", len(ops))
        return True


def _rows(permutes: Sequence[Rows], devices: int) -> tuple[tuple[int, ...], ...] | str:
    """Groups of equal size over all devices, each with its source first, or why there are none."""
    wanted: dict[int, dict[int, None]] = {}
    taken: dict[int, int] = {}
    for pairs in permutes:
        for source, target in pairs:
            if taken.setdefault(target, source) != source:
                return "a device receives from several others"
            wanted.setdefault(source, {})[target] = None
    if any(source in taken and taken[source] != source for source in wanted):
        return "a device both sends and receives"
    if max((len(targets) for targets in wanted.values()), default=0) < 2:
        return "no device sends to several others"
    groups = {source: [source, *(t for t in targets if t != source)] for source, targets in wanted.items()}
    # Every device must be in some group, and all groups of one size, so uninvolved devices are spread over the groups.
    spare = [d for d in range(devices) if d not in wanted and d not in taken]
    if devices % len(groups):
        return "its groups cannot be made equally large"
    size = devices // len(groups)
    for row in groups.values():
        if len(row) > size:
            return "its groups cannot be made equally large"
        row += [spare.pop(0) for _ in range(size - len(row))]
    return tuple(tuple(row) for row in groups.values())


def _rewrite(editor: Editor, permutes: Sequence[Permute], rows: tuple[tuple[int, ...], ...]) -> None:
    first = permutes[0][0]
    whole = emit_delivery(editor, Delivery(COLLECTIVE_BROADCAST.kind, rows), first.operands[0], first, first)
    zero = zeros_like(editor, whole.type, first)
    devices = sorted(device for row in rows for device in row)
    masks: dict[frozenset[int], ir.Value] = {}
    for op, pairs in permutes:
        targets = frozenset(target for _, target in pairs)
        if targets not in masks:
            mask = device_mask(editor, targets, len(devices), first)
            masks[targets] = editor.create("stablehlo.select", [mask, whole, zero], [whole.type],
                                           location=op.location, before=first).results[0]
        editor.replace(op.results[0], masks[targets])
    for op, _ in permutes:
        editor.erase(op)
