"""Constants: their attribute, the number they are filled with, and their text where jaxlib gives no attribute.

jaxlib raises ``TypeError`` for the attribute of a complex constant, so all who read constants do so here.
"""

from hlorewrite.ir.binding import ir

_FEW = 4
"""Elements that are printed of a constant to see whether they are one number."""


def constant_attribute(op: ir.Operation) -> ir.DenseElementsAttr | None:
    """The elements of a ``stablehlo.constant``; None for other ops and for complex ones (jaxlib cannot read those)."""
    if op.name != "stablehlo.constant":
        return None
    element = ir.RankedTensorType(op.results[0].type).element_type
    if isinstance(element, ir.ComplexType):
        return None
    attribute = op.attributes["value"]
    return attribute if isinstance(attribute, ir.DenseElementsAttr) else None


def constant_text(op: ir.Operation) -> str:
    """All attributes and the type of a constant as text, equal for equal constants, complex ones among them.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> body = parse("%c = stablehlo.constant dense<(1.0,2.0)> : tensor<4xcomplex<f32>>").mlir.body
      >>> constant_text(body.operations[0].operation)
      'stablehlo.constant dense<(1.000000e+00,2.000000e+00)> : tensor<4xcomplex<f32>>'
    """
    return _text(op, None)


def _text(op: ir.Operation, most_elements: int | None) -> str:
    """The text of a constant; one of more elements is left out unless all are one number."""
    alone = op.clone().operation  # by itself: printing it in its place would number the whole function
    text = str(alone.get_asm(use_local_scope=True, large_elements_limit=most_elements)).strip().partition(" = ")[2]
    alone.erase()
    return text


def is_splat(op: ir.Operation) -> bool:
    """Whether an op is a constant whose elements are all the same number, complex or not."""
    if op.name != "stablehlo.constant":
        return False
    attribute = constant_attribute(op)
    return attribute.is_splat if attribute is not None else "dense<(" in _text(op, _FEW)


def splat_number(op: ir.Operation) -> float | int | bool | None:
    """The number a constant is filled with; None when it holds different ones or is not a constant.

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
    """Whether an op is a complex constant of zeros."""
    return op.name == "stablehlo.constant" and "dense<(0.000000e+00,0.000000e+00)>" in _text(op, _FEW)
