"""One op, evaluated alone by the interpreter: for ops that are not written in numpy here."""

from collections.abc import Sequence

import numpy as np

from hlorewrite.checks.reference import interpreter
from hlorewrite.ir.binding import ir


def eval_op(op: ir.Operation, operands: Sequence[tuple[np.ndarray, ir.Type]],
              results: Sequence[ir.Type] | None = None) -> list[np.ndarray]:
    """Evaluates one op on arrays by the interpreter.

    Args:
      op: the op; its regions read nothing from outside.
      operands: an array and its type for each operand.
      results: other types of the results than the op's, for an op without regions.

    Returns:
      The results.

    Raises:
      CannotExecute: the interpreter fails, or numpy does not know a type.
    """
    with op.context, ir.Location.unknown():
        module = ir.Module.create()
        types = [type_ for _, type_ in operands]
        main = ir.Operation.create("func.func", regions=1, ip=ir.InsertionPoint(module.body), attributes={
            "sym_name": ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, []))})
        block = main.regions[0].blocks.append(*types, arg_locs=[ir.Location.unknown()] * len(types))
        point = ir.InsertionPoint(block)
        if results is None:
            made = op.clone(point).operation
            for position, argument in enumerate(block.arguments):
                made.operands[position] = argument
        else:
            made = ir.Operation.create(op.name, results=list(results), operands=list(block.arguments), ip=point,
                                       attributes={name: op.attributes[name] for name in attribute_names(op)})
        returned = interpreter.readable_parts(list(made.results), point)
        ir.Operation.create("func.return", operands=returned, ip=point)
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, [v.type for v in returned]))
        out = iter(interpreter.evaluate(module, [interpreter.to_attribute(*each) for each in operands]))
        return [_array(out, type_) for type_ in (results or [result.type for result in op.results])]


def _array(parts, type_: ir.Type) -> np.ndarray:
    count = 2 if isinstance(ir.RankedTensorType(type_).element_type, ir.ComplexType) else 1
    return interpreter.from_attributes([next(parts) for _ in range(count)], type_)


def attribute_names(op: ir.Operation) -> list[str]:
    """Names of an op's attributes, in order."""
    return sorted(name if isinstance(name, str) else name.name for name in op.attributes)


# ---- texts of regions that do not depend on where the op stands


def region_texts(op: ir.Operation) -> list[str]:
    """Results of an op's regions; each region numbers its values separately.

    MLIR's own text names the values of a region after those of the function around it, so equal regions of two
    functions have other texts there.

    Args:
      op: an op whose regions contain one block each.

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
