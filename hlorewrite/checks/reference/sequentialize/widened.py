"""Operands in the type of the result, for ops of the interpreter that would calculate in the operands' own type.

StableHLO converts what ``convolution`` and reductions read to the type they accumulate in. The interpreter adds a
convolution up in the type of its operands, so that sums of 8 bits wrap around in a result of 32, and ends its process
at a reduction whose region takes a wider type than the operands have.
"""

from hlorewrite.ir.binding import ir
from hlorewrite.ir.view import nested_ops

_REDUCTIONS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter"})


def widen_operands(module: ir.Operation) -> None:
    """Converts the operands of convolutions and reductions to the type that they are to be added up in.

    Args:
      module: the module, which is changed.
    """
    for op in nested_ops(module):
        if op.name == "stablehlo.convolution":
            _widen_convolution(op)
        elif op.name in _REDUCTIONS:
            _widen_reduction(op)


def _widen_convolution(op: ir.Operation) -> None:
    result = ir.RankedTensorType(op.results[0].type)
    read = [_element(value) for value in op.operands]
    if all(element == result.element_type for element in read):
        return
    if read[0] == read[1] and _is_narrower_float(result.element_type, read[0]):
        with op.location:
            wide = ir.Operation.create(op.name, [ir.RankedTensorType.get(result.shape, read[0])], list(op.operands),
                                       _attributes(op), ip=ir.InsertionPoint(op)).results[0]
            narrow = ir.Operation.create("stablehlo.convert", [result], [wide], ip=ir.InsertionPoint(op)).results[0]
        op.results[0].replace_all_uses_with(narrow)
        op.erase()
        return
    for position in range(len(op.operands)):
        _convert(op, position, result.element_type)


def _widen_reduction(op: ir.Operation) -> None:
    """Inputs, initial values and updates, each to the type of the region's argument for it; not a scatter's indices."""
    arguments, count = list(op.regions[0].blocks[0].arguments), len(op.results)
    held = [k for k in range(len(op.operands)) if op.name != "stablehlo.scatter" or k != count]
    for position, argument in zip(held, arguments, strict=True):
        _convert(op, position, _element(argument))


def _convert(op: ir.Operation, position: int, element: ir.Type) -> None:
    value = op.operands[position]
    if _element(value) != element:
        with op.location:
            op.operands[position] = ir.Operation.create(
                "stablehlo.convert", [ir.RankedTensorType.get(ir.RankedTensorType(value.type).shape, element)], [value],
                ip=ir.InsertionPoint(op)).results[0]


def _is_narrower_float(element: ir.Type, other: ir.Type) -> bool:
    return isinstance(element, ir.FloatType) and isinstance(other, ir.FloatType) and element.width < other.width


def _attributes(op: ir.Operation) -> dict[str, ir.Attribute]:
    names = [name if isinstance(name, str) else name.name for name in op.attributes]
    return {name: op.attributes[name] for name in names}


def _element(value: ir.Value) -> ir.Type:
    return ir.RankedTensorType(value.type).element_type
