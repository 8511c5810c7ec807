"""Ops whose results may differ between devices whatever their operands are."""

from hlorewrite.ir import has_side_effect, ir, nested_ops
from hlorewrite.ops.table import DEVICE_IDS

_PURE_CUSTOM_CALLS = {"Sharding", "annotate_device_placement", "cu_threefry2x32", "cu_threefry2x32_ffi"}
VARYING_OPS = {
    "stablehlo.rng": "a random number generator with separate state",
    "stablehlo.infeed": "read from an infeed", "stablehlo.recv": "received from another program",
    "stablehlo.send": "ordered with a send", "stablehlo.outfeed": "ordered with an outfeed",
    "stablehlo.composite": "the result of a composite that the analysis does not know",
    "stablehlo.async_start": "the result of an asynchronous call", "stablehlo.async_done": "the result of one",
    "stablehlo.create_token": "ordered by a token", "stablehlo.after_all": "ordered by tokens",
}
DIALECTS = ("stablehlo.", "chlo.", "mhlo.")
"""Dialects whose ops are functions of their operands, unless they are listed here."""


def is_pure_custom_call(op: ir.Operation) -> bool:
    target = ir.StringAttr(op.attributes["call_target_name"]).value
    return not has_side_effect(op) and (target in _PURE_CUSTOM_CALLS or target.startswith(("mhlo.", "chlo.")))


def is_received(op: ir.Operation) -> bool:
    """Whether a value comes from another mesh of a program (``mesh_view``); its operands name the axes along which it
    is cut."""
    return ir.StringAttr(op.attributes["call_target_name"]).value == "hlorewrite.receive"


def is_odd_in_region(op: ir.Operation) -> bool:
    """Whether an op inside the region of another may yield different results on each device, whatever its operands."""
    return (op.name in VARYING_OPS or op.name in DEVICE_IDS or not op.name.startswith(DIALECTS)
            or (op.name == "stablehlo.custom_call" and not is_pure_custom_call(op)))


def captured_values(op: ir.Operation) -> list[ir.Value]:
    """Values from outside that the regions of an op read."""
    inside = nested_ops(op)
    own = {result for inner in inside for result in inner.results}
    own |= {argument for inner in inside for region in inner.regions for block in region.blocks
            for argument in block.arguments}
    return [operand for inner in inside[1:] for operand in inner.operands if operand not in own]
