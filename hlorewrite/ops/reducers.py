"""The reduction of a reducer region, and its identity."""

from hlorewrite.ir import element_type, ir, is_static_tensor, largest_float
from hlorewrite.ops.attributes import is_complex_zero, splat_number
from hlorewrite.ops.table import MOVES_OF_ONE

_KINDS = {"stablehlo.add": "sum", "stablehlo.multiply": "product", "stablehlo.maximum": "max",
          "stablehlo.minimum": "min", "stablehlo.and": "and", "stablehlo.or": "or"}
OP_OF_KIND = {kind: op for op, kind in _KINDS.items()}


def reduction_kind(op: ir.Operation) -> str | None:
    """The kind of reduction a collective, ``reduce`` or ``scatter`` computes.

    Args:
      op: an op whose first region is the reducer.

    Returns:
      ``sum``, ``product``, ``max``, ``min``, ``and``, ``or``; None when the region is anything else: when it converts
      in between, reads values from outside, or combines another element type than the op's (StableHLO lets a reduction
      promote its operands; then op and region disagree on where a sum wraps around or rounds).
    """
    if len(op.regions) == 0 or len(op.regions[0].blocks) != 1:
        return None
    block = op.regions[0].blocks[0]
    body = [inner.operation for inner in block.operations]
    if len(body) != 2 or len(block.arguments) != 2:
        return None
    combine, end = body
    if len(end.operands) != 1 or len(combine.results) != 1 or end.operands[0] != combine.results[0]:
        return None
    operands = list(combine.operands)
    arguments = list(block.arguments)
    if operands not in (arguments, arguments[::-1]) or _promotes(op, block):
        return None
    return _KINDS.get(combine.name)


def _promotes(op: ir.Operation, reducer: ir.Block) -> bool:
    """Whether the reducer works on another element type than the op's operands or results."""
    values = [*op.operands, *op.results]
    if op.name == "stablehlo.scatter":  # one operand, its indices, one update
        del values[1]
    type_ = element_type(reducer.arguments[0])
    return any(element_type(value) != type_ for value in (*values, reducer.arguments[1]))


def identity_number(kind: str, element: ir.Type) -> float | int | bool:
    """The number that a reduction leaves alone: 0 for a sum, the smallest number for a maximum.

    Args:
      kind: the kind of reduction.
      element: the element type.

    Returns:
      A Python number; infinite for floating maxima and minima, where the type has infinities.
    """
    name = str(element)
    if kind in ("sum", "or"):
        return False if name == "i1" else 0
    if kind == "product":
        return 1
    if kind == "and":
        return True if name == "i1" else -1
    if name == "i1":
        return kind == "min"
    if name.lstrip("ui").isdigit():
        bits, unsigned = int(name.lstrip("ui")), name.startswith("ui")
        low, high = (0, 2**bits - 1) if unsigned else (-(2**(bits - 1)), 2**(bits - 1) - 1)
        return low if kind == "max" else high
    return -largest_float(element) if kind == "max" else largest_float(element)


def is_identity(value: ir.Value, kind: str) -> bool:
    """Whether a value is a constant filled with the identity of a reduction.

    Looks through ops that only move elements, and through converts of zero.
    """
    owner = value.owner
    if isinstance(owner, ir.Block) or not is_static_tensor(value.type):
        return False
    op = owner.operation
    if op.name in MOVES_OF_ONE or op.name == "stablehlo.optimization_barrier":
        position = ir.OpResult(value).result_number
        return is_identity(op.operands[position], kind)
    if op.name == "stablehlo.convert" and kind == "sum":
        return is_identity(op.operands[0], kind)
    if op.name == "stablehlo.complex" and kind == "sum":
        return all(is_identity(part, kind) for part in op.operands)
    if isinstance(ir.RankedTensorType(value.type).element_type, ir.ComplexType):
        return kind == "sum" and is_complex_zero(op)
    number = splat_number(op)
    return number is not None and number == identity_number(kind, ir.RankedTensorType(value.type).element_type)
