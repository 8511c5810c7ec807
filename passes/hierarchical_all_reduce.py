"""hierarchical-all-reduce: reduces within hosts, then across them, then gathers within them, if the topology says that
it pays."""

import math
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.analysis.groups import Groups, rows_attribute
from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.ir import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Editor, Module, View, ir
from hlorewrite.ir.types import element_type, is_static_tensor, tensor_bytes, tensor_type
from hlorewrite.ops.reducers import reduction_kind
from hlorewrite.passes.all_reduce_fusion.all_reduce_fusion import highest_device
from hlorewrite.passes.common.device_masks import zeros_like
from hlorewrite.passes.common.emit import add_reducer, integer_attribute
from hlorewrite.passes.common.op_writer import OpWriter
from hlorewrite.passes.common.pass_support import tell
from hlorewrite.passes.common.shard_index import partition_groups
from hlorewrite.passmanager.base import Pass, PassContext

Rows = tuple[tuple[int, ...], ...]
NO_TOPOLOGY = "no topology was named, so hosts are not known"
"""The remark of a pass that needs a cluster; a report says it once, in a note."""


@dataclass(frozen=True)
class Hierarchy:
    """Groups split by host.

    Attributes:
      inside: the members of each group on one host.
      across: one member of a group from each host.
    """

    inside: Rows
    across: Rows


@dataclass(frozen=True)
class HierarchicalAllReduce(Pass):
    """Splits an all-reduce over several hosts into reduce-scatter, all-reduce across and all-gather.

    AR(x) over H hosts of g GPUs is AG(AR(RS(x))): reduce-scatter within each host, all-reduce of 1/g of the payload
    among the GPUs of equal place, all-gather within each host. Values are flattened, and padded if g does not divide
    them. Needs a topology, and rewrites only if it is faster on that topology. XLA: AllReduceBlueConnect.

    Attributes:
      topology: the cluster; by default the one the run names. Without one nothing is done.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> HierarchicalAllReduce().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "hierarchical-all-reduce"
    topology: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view, spec = ctx.view(module), self.topology or ctx.topology
        reductions = view.ops(ALL_REDUCE.op)
        if not reductions:
            return False
        if not spec:
            tell(ctx, "missed", self.name, NO_TOPOLOGY, view, reductions[0],
                 advice="name the cluster, by --topology or topology=")
            return False
        times = CollectiveTimes(spec, highest_device(view) + 1)
        changed = [self._one(op, view, ctx, times) for op in reductions]
        return any(changed)

    def _one(self, op: ir.Operation, view: View, ctx: PassContext, times: CollectiveTimes) -> bool:
        groups, kind = partition_groups(op, view), reduction_kind(op)
        if isinstance(groups, str) or kind is None or len(op.operands) != 1 or not is_static_tensor(
                op.operands[0].type) or "use_global_device_ids" not in op.attributes:
            sentence = groups if isinstance(groups, str) else "it has several operands, or a custom reducer"
            tell(ctx, "blocked", self.name, f"the all-reduce stays whole: {sentence}", view, op)
            return False
        payload = tensor_bytes(op.operands[0].type)
        if not payload:
            tell(ctx, "missed", self.name, "it has no elements to scatter", view, op)
            return False
        levels = hierarchy(groups, times)
        if levels is None:
            tell(ctx, "missed", self.name, "its groups do not span several hosts with several members on each", view,
                 op)
            return False
        members = len(levels.inside[0])
        padded = -(-payload // members) * members
        before = float(times.curve(ALL_REDUCE.kind, groups.rows)([payload])[0])
        after = sum(float(times.curve(what, rows)([size])[0]) for what, size, rows in (
            (REDUCE_SCATTER.kind, padded, levels.inside), (ALL_GATHER.kind, padded, levels.inside),
            (ALL_REDUCE.kind, padded // members, levels.across)))
        if after >= before and not ctx.ignore_cost:
            tell(ctx, "unprofitable", self.name, f"in one call it takes {before * 1e6:.0f} us, in three steps "
                 f"{after * 1e6:.0f} us on {times.topology.spec}", view, op)
            return False
        tell(ctx, "applied", self.name, f"in three steps it takes {after * 1e6:.0f} us, in one call "
             f"{before * 1e6:.0f} us on {times.topology.spec}", view, op)
        _rewrite(ctx.editor(view.module, self.name), op, kind, levels)
        ctx.count("all-reduces split")
        return True


def hierarchy(groups: Groups, times: CollectiveTimes) -> Hierarchy | None:
    """Groups split by the hosts of a topology.

    Args:
      groups: device numbers of each group.
      times: the cluster.

    Returns:
      The split; None unless every group spans several hosts with equally many members on each, more than one.

    Example:
      >>> split = hierarchy(Groups(((0, 1, 2, 3),), "flattened_ids"), CollectiveTimes("h200:2x2", 4))
      >>> split.inside, split.across
      (((0, 1), (2, 3)), ((0, 2), (1, 3)))
    """
    inside: list[tuple[int, ...]] = []
    across: list[tuple[int, ...]] = []
    for row in groups.rows:
        hosts: dict[int, list[int]] = {}
        for device in row:
            hosts.setdefault(times.topology.host_of(device), []).append(device)
        sizes = {len(devices) for devices in hosts.values()}
        if len(hosts) < 2 or len(sizes) != 1 or sizes == {1}:
            return None
        parts = [tuple(sorted(devices)) for _, devices in sorted(hosts.items())]
        inside += parts
        across += [tuple(part[place] for part in parts) for place in range(len(parts[0]))]
    if len({len(row) for row in inside}) != 1 or len({len(row) for row in across}) != 1:
        return None
    return Hierarchy(tuple(inside), tuple(across))


def _rewrite(editor: Editor, op: ir.Operation, kind: str, levels: Hierarchy) -> None:
    writer, first = OpWriter.before(editor, op), integer_attribute(editor, 0)
    operand = op.operands[0]
    shape = list(ir.RankedTensorType(operand.type).shape)
    total, members = math.prod(shape), len(levels.inside[0])
    share = -(-total // members)
    flat = writer.reshaped(operand, [total])
    if share * members != total:
        spare = zeros_like(editor, tensor_type([share * members - total], element_type(operand)), op)
        flat = writer.concatenated([flat, spare], 0)

    def collective(name: str, value: ir.Value, size: int, rows: Rows, **extra: ir.Attribute) -> ir.Value:
        attributes = {key: op.attributes[key] for key in op.attributes} | extra
        attributes["replica_groups"] = rows_attribute(editor.context, rows)
        made = editor.create(name, [value], [tensor_type([size], element_type(value))], attributes=attributes,
                             regions=0 if name == ALL_GATHER.op else 1, location=op.location, before=op)
        if name != ALL_GATHER.op:
            add_reducer(editor, made, kind)
        return made.results[0]

    part = collective(REDUCE_SCATTER.op, flat, share, levels.inside, scatter_dimension=first)
    part = collective(ALL_REDUCE.op, part, share, levels.across)
    whole = collective(ALL_GATHER.op, part, share * members, levels.inside, all_gather_dim=first)
    whole = writer.part(whole, 0, 0, total)
    editor.replace(op.results[0], writer.reshaped(whole, shape))
    editor.erase(op)
