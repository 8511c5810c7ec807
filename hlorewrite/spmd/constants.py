"""Constants: their attribute and the number they are filled with."""

from __future__ import annotations

from hlorewrite.ir.binding import ir


def constant_attribute(op: ir.Operation) -> ir.DenseElementsAttr | None:
    """The elements of a ``stablehlo.constant``; None for other ops and for complex ones (jaxlib cannot read those)."""
    if op.name != "stablehlo.constant":
        return None
    element = ir.RankedTensorType(op.results[0].type).element_type
    if isinstance(element, ir.ComplexType):
        return None
    attribute = op.attributes["value"]
    return attribute if isinstance(attribute, ir.DenseElementsAttr) else None


def splat_number(op: ir.Operation) -> float | int | bool | None:
    """The number a constant is filled with; None when it holds different ones or is no constant.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> body = parse("%c = stablehlo.constant dense<2> : tensor<4xi32>").mlir.body
      >>> splat_number(body.operations[0].operation)
      2
    """
    attribute = constant_attribute(op)
    if attribute is None or not attribute.is_splat:
        return None
    splat = attribute.get_splat_value()
    return splat.value if isinstance(splat, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)) else None


def is_complex_zero(op: ir.Operation) -> bool:
    """Whether an op is a complex constant of zeros; read from its text, since jaxlib hands out no such attribute."""
    if op.name != "stablehlo.constant":
        return False
    return "dense<(0.000000e+00,0.000000e+00)>" in str(op.get_asm(large_elements_limit=4))
