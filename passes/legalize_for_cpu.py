"""legalize-for-cpu: expresses collectives that XLA:CPU does not implement by others that it does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from hlorewrite.analysis.groups import device_count, groups_of, replica_count, rows_attribute
from hlorewrite.errors import InputError
from hlorewrite.ir import ALL_REDUCE, COLLECTIVE_BROADCAST, Editor, Module, View, ir
from hlorewrite.ir.types import element_bytes, is_static_tensor, tensor_bytes
from hlorewrite.passes.common.broadcasts.chain import emit_chain, require_chain_options
from hlorewrite.passes.common.device_masks import device_mask, zeros_like
from hlorewrite.passes.common.emit import add_reducer
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.options import Size


@dataclass(frozen=True)
class LegalizeForCpu(Pass):
    """Replaces collective_broadcast, which XLA:CPU refuses to compile, by a masked all-reduce or a chain of permutes.

    The all-reduce adds the source's bits to zeros, as unsigned integers, so that every bit arrives as it was. The
    chain cuts the value into chunks and passes them from member to member, all links at work at once: payload
    times (1 + (n-2)/chunks) over each link instead of 2 (n-1)/n, so it is better for large values over slow links.

    Attributes:
      form: all-reduce, chain, or auto for a chain from chain-bytes on.
      chain_bytes: payload from which auto takes the chain.
      chunks: chunks of a chain.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> LegalizeForCpu().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "legalize-for-cpu"
    form: Literal["auto", "all-reduce", "chain"] = "auto"
    chain_bytes: Size = 1 << 22
    chunks: int = 8

    def __post_init__(self) -> None:
        require_chain_options(self.name, self.chain_bytes, self.chunks)

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        broadcasts = view.ops(COLLECTIVE_BROADCAST.op)
        editor = ctx.editor(module, self.name)
        for op in broadcasts:
            self._one(editor, op, view)
        ctx.count("broadcasts legalised", len(broadcasts))
        return bool(broadcasts)

    def _one(self, editor: Editor, op: ir.Operation, view: View) -> None:
        rows, id_op = _rows(op, view)
        operand = op.operands[0]
        if len(rows[0]) == 1:
            result = operand
        elif self.form == "chain" or len(rows[0]) == 2 or (
                self.form == "auto" and tensor_bytes(operand.type) >= self.chain_bytes):
            result = emit_chain(editor, op, rows, id_op, 1 if len(rows[0]) == 2 else self.chunks)
        else:
            result = _masked_sum(editor, op, rows, id_op)
        editor.replace(op.results[0], result)
        editor.erase(op)


def _rows(op: ir.Operation, view: View) -> tuple[tuple[tuple[int, ...], ...], str]:
    """Groups with their sources first, and the op that returns a device's number in them."""
    groups = groups_of(op, view)
    replicas, devices = replica_count(view), device_count(view)
    if isinstance(groups, str) or not is_static_tensor(op.operands[0].type):
        what = groups if isinstance(groups, str) else "its shape is not static"
        raise InputError(f"a collective_broadcast cannot be legalised for CPU: {what}", location=view.source(op),
                         hint="repair the op, or leave the pass out")
    partitions = (devices or replicas) // replicas
    by_partition = groups.mode == "cross_partition"
    if (replicas if by_partition else partitions) != 1:
        raise InputError("a collective_broadcast of several replicas of several partitions cannot be legalised",
                         location=view.source(op), hint="compile the module with only partitions")
    members = {member for row in groups.rows for member in row}
    if devices is not None and members != set(range(devices)):
        raise InputError("a collective_broadcast whose groups do not cover every device cannot be legalised",
                         location=view.source(op), hint="put the other devices into separate groups")
    return groups.rows, "stablehlo.partition_id" if by_partition else "stablehlo.replica_id"


def _masked_sum(editor: Editor, op: ir.Operation, rows: Sequence[Sequence[int]], id_op: str) -> ir.Value:
    """``sum(select(source, x, 0))`` over the bits of x."""
    operand = op.operands[0]
    type_ = ir.RankedTensorType(operand.type)
    bits = _bits_type(type_)
    carried = operand if bits is None else editor.create(
        "stablehlo.bitcast_convert", [operand], [bits], location=op.location, before=op).results[0]
    count = sum(map(len, rows))
    mask = device_mask(editor, [row[0] for row in rows], count, op, id_op)
    masked = editor.create("stablehlo.select", [mask, carried, zeros_like(editor, carried.type, op)], [carried.type],
                           location=op.location, before=op).results[0]
    attributes: dict[str, ir.Attribute] = {"replica_groups": rows_attribute(editor.context, rows)}
    if "channel_handle" in op.attributes and id_op == "stablehlo.partition_id":
        attributes["channel_handle"] = op.attributes["channel_handle"]
        with editor.context:
            attributes["use_global_device_ids"] = ir.UnitAttr.get()
    total = editor.create(ALL_REDUCE.op, [masked], [carried.type], attributes=attributes, regions=1,
                          location=op.location, before=op)
    element = str(ir.RankedTensorType(carried.type).element_type)
    add_reducer(editor, total, "or" if element == "i1" else "sum")
    if bits is None:
        return total.results[0]
    return editor.create("stablehlo.bitcast_convert", [total.results[0]], [type_], location=op.location,
                         before=op).results[0]


def _bits_type(type_: ir.RankedTensorType) -> ir.Type | None:
    """Unsigned integers with the bits of a floating-point type; None when values can be added as they are."""
    element = str(type_.element_type)
    if element.startswith("complex") or element == "i1" or element.lstrip("ui").isdigit():
        return None  # a zero of a complex sum may lose its sign; StableHLO has no bits of complex numbers
    width = int(element_bytes(type_.element_type) * 8)
    with type_.context, ir.Location.unknown():
        return ir.RankedTensorType.get(list(type_.shape), ir.Type.parse(f"ui{width}"))
