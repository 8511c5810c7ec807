"""Texts of regions that do not depend on where the op stands."""

from hlorewrite.checks.reference.rounding.eval_op import attribute_names
from hlorewrite.ir.binding import ir


def region_texts(op: ir.Operation) -> list[str]:
    """What an op's regions compute, with values numbered in each region by itself.

    MLIR's own text names the values of a region after those of the function around it, so equal regions of two
    functions have other texts there.

    Args:
      op: an op whose regions hold one block each.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.ir.view import View
      >>> def text(before):
      ...     module = parse("func.func @main(%x: tensor<4xf32>) -> tensor<f32> {" + before
      ...                    + "%z = stablehlo.constant dense<0.0> : tensor<f32>"
      ...                    "%y = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : "
      ...                    "(tensor<4xf32>, tensor<f32>) -> tensor<f32> return %y : tensor<f32> }")
      ...     return region_texts(View(module).ops("stablehlo.reduce")[0])
      >>> text("") == text("%a = stablehlo.add %x, %x : tensor<4xf32>")
      True
    """
    return [_block_text(block) for region in op.regions for block in region.blocks]


def _block_text(block: ir.Block) -> str:
    numbers: dict[ir.Value, int] = {argument: position for position, argument in enumerate(block.arguments)}
    lines = [" ".join(str(argument.type) for argument in block.arguments)]
    for each in block.operations:
        op = each.operation
        attributes = [f"{name}={op.attributes[name]}" for name in attribute_names(op)]
        operands = [str(numbers.get(value, "outside")) for value in op.operands]
        lines.append(" ".join([op.name, *attributes, *operands, *(str(value.type) for value in op.results),
                               *region_texts(op)]))
        for result in op.results:
            numbers[result] = len(numbers)
    return "\n".join(lines)
