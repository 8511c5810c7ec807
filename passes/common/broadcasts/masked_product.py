"""Sums masked by multiplication, ``psum(x * m)`` with m one or zero on each device: the contributing value and devices.

``0 * x`` is zero only where x is finite: infinity or NaN times zero is NaN, which reaches every device. So such a sum
is a broadcast for integers, and for floats that are known to be finite.
"""

from dataclasses import dataclass

from hlorewrite.analysis.per_device_constants import PerDeviceConstants
from hlorewrite.ir import defining_op, element_count, ir, is_floating
from hlorewrite.ops.table import MOVES_OF_ONE
from hlorewrite.passes.common.shard_index import scalar_behind

_MOVES = MOVES_OF_ONE | {"stablehlo.concatenate"}
_WIDE_RANGE = ("f32", "f64", "bf16")  # represent every 64-bit integer, rounded
_MOST_OPS = 64

NOT_FINITE = ("its mask is a factor, and 0 * x is not 0 if x is infinite or not-a-number; if those need not reach "
              "the other devices, write jnp.where(mask, x, 0) instead of x * mask")


@dataclass(frozen=True)
class MaskedProduct:
    """A value times a mask.

    Attributes:
      kept: the value.
      chosen: whether the mask is one, by device.
    """

    kept: ir.Value
    chosen: dict[int, bool]


def masked_product(value: ir.Value, devices: PerDeviceConstants) -> MaskedProduct | None:
    """The factors of a product, one of which is a mask.

    Args:
      value: what is reduced.
      devices: evaluates masks, including float masks.

    Returns:
      The product; None when no factor is the same number for all elements, one on some devices and zero on others.
    """
    op = defining_op(value)
    if op is None or op.name != "stablehlo.multiply":
        return None
    for mask, kept in (tuple(op.operands), tuple(op.operands)[::-1]):
        chosen = _ones(mask, devices)
        if chosen is not None:
            return MaskedProduct(kept, chosen)
    return None


def _ones(mask: ir.Value, devices: PerDeviceConstants) -> dict[int, bool] | None:
    """Whether a value is one rather than zero, by device; None when it is not a mask."""
    scalar = scalar_behind(mask)
    # Ends: each step goes to an operand.
    while (op := defining_op(scalar)) is not None and op.name == "stablehlo.convert":  # 0 and 1 are exact in every type
        scalar = scalar_behind(op.operands[0])
    table = devices.table(scalar) if element_count(scalar.type) == 1 else None
    if table is None:
        return None
    numbers = [float(entry.reshape(-1)[0]) for entry in table]
    if set(numbers) != {0.0, 1.0}:
        return None
    return {device: number == 1 for device, number in zip(devices.devices, numbers, strict=True)}


def known_finite(value: ir.Value) -> bool:
    """Whether a value holds neither infinities nor NaNs.

    Args:
      value: any tensor.

    Returns:
      True for integers, and for integers converted to a float of wide range, also after moves.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<i32>) { %f = stablehlo.convert %a : (tensor<i32>) -> tensor<f16> "
      ...                "return }")
      >>> convert = module.operation.regions[0].blocks[0].operations[0].regions[0].blocks[0].operations[0]
      >>> known_finite(convert.operands[0]), known_finite(convert.results[0])  # 65536 is too large for f16
      (True, False)
    """
    pending, seen = [value], 0
    # Ends: at most ``_MOST_OPS`` values are visited.
    while pending:
        current = pending.pop()
        element = ir.RankedTensorType(current.type).element_type
        if not is_floating(element):
            continue
        op, seen = defining_op(current), seen + 1
        if op is None or seen > _MOST_OPS:
            return False
        if op.name in _MOVES:
            pending += list(op.operands)
        elif op.name == "stablehlo.convert" and str(element) in _WIDE_RANGE and not is_floating(
                ir.RankedTensorType(op.operands[0].type).element_type):
            continue
        else:
            return False
    return True
