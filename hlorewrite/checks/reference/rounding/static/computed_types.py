"""The types an output is computed in: a float32 result of bfloat16 products is as rough as these."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hlorewrite.checks.reference.interpreter import dtype_of
from hlorewrite.errors import CannotExecute
from hlorewrite.ir import COLLECTIVES, REDUCING, Module, View, ir, nested_ops, op_key
from hlorewrite.ops.table import ROUNDS_NOTHING, TERMINATORS, OpClass, ops_of
from hlorewrite.util.tolerances import relative_tolerance

_EXACT = ROUNDS_NOTHING | ops_of(OpClass.CONSTANT) | {"stablehlo.tuple", "stablehlo.get_tuple_element"} | (
    frozenset(COLLECTIVES) - frozenset(REDUCING))
"""Ops that round nothing."""


def computed_tolerances(module: Module, name: str = "main") -> tuple[float, ...]:
    """For each result of a function, the relative tolerance of the least precise float type that it is computed in.

    Args:
      module: the module.
      name: the name of the function.

    Returns:
      The tolerances (`util.tolerances.relative_tolerance`); none if the module lacks the function.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> text = ("func.func @main(%x: tensor<bf16>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {"
      ...         "%a = stablehlo.multiply %x, %x : tensor<bf16>  %b = stablehlo.convert %a : (tensor<bf16>) -> "
      ...         "tensor<f32>  %c = stablehlo.add %y, %y : tensor<f32>  return %b, %c : tensor<f32>, tensor<f32> }")
      >>> computed_tolerances(parse(text))
      (0.04, 1e-05)
    """
    view = View(module)
    function = view.functions.get(name)
    if function is None or not function.regions[0].blocks:
        return ()
    return tuple(_ComputedTypes(view).of_block(function.regions[0].blocks[0], {}))


@dataclass
class _ComputedTypes:
    view: View
    _functions: dict[int, list[float]] = field(default_factory=dict)

    def of_block(self, block: ir.Block, known: dict[ir.Value, float]) -> list[float]:
        """The tolerances of the values that a block returns; zero for values without one."""
        for each in block.operations:
            op = each.operation
            below = [known.get(operand, 0.0) for operand in op.operands]
            if op.name in TERMINATORS:
                return below
            known.update(zip(op.results, self._of(op, below, known), strict=True))
        return []

    def _of(self, op: ir.Operation, below: list[float], known: dict[ir.Value, float]) -> Iterable[float]:
        if op.name == "sdy.manual_computation":
            block = op.regions[0].blocks[0]
            return self.of_block(block, dict(zip(block.arguments, below, strict=True)))
        rough = max(below, default=0.0)
        if op.name == "func.call":
            return [max(rough, own) for own in self._called(op)]
        inside = nested_ops(op)[1:]
        rough = max([rough, *(known.get(value, 0.0) for one in inside for value in one.operands),
                     *(own for one in inside for own in self._own(one))])
        return [max(rough, own) for own in self._own(op)]

    def _own(self, op: ir.Operation) -> list[float]:
        """What each result is rounded to by the op itself."""
        if op.name == "func.call":
            return self._called(op)
        return [0.0 if op.name in _EXACT else _tolerance(result) for result in op.results]

    def _called(self, op: ir.Operation) -> list[float]:
        called = self.view.callee(op)
        if called is None or not called.regions[0].blocks:
            return [_tolerance(result) for result in op.results]
        key = op_key(called)
        if key not in self._functions:
            self._functions[key] = self.of_block(called.regions[0].blocks[0], {})
        return self._functions[key]


def _tolerance(value: ir.Value) -> float:
    try:
        return relative_tolerance(dtype_of(value.type))
    except CannotExecute:  # a type that numpy lacks
        return 0.0
