"""Whether a module may hold communication worth a look: asked of everything that JAX compiles for several devices."""

from __future__ import annotations

from hlorewrite.ir.binding import ir
from hlorewrite.ir.collectives import COLLECTIVES

_MANUAL = frozenset(COLLECTIVES)
# An auto-sharded module with none of these, or with one of the second kind, is not a train step: setting up arrays,
# adding two of them, a norm for a log line.
_CONTROL = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})
_WORK = frozenset({"stablehlo.dot_general", "stablehlo.convolution", "stablehlo.reduce", "stablehlo.gather",
                   "stablehlo.scatter", "stablehlo.reduce_window"})
_SEVERAL = 2


def may_communicate(module: ir.Module) -> bool:
    """Whether a module holds a collective, or enough work that XLA's partitioner could insert one.

    Args:
      module: what JAX is about to compile for several devices; it is read only, and no further than to the answer.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> may_communicate(parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }").mlir)
      False
    """
    found, work = False, 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found, work
        name = op.name
        work += name in _WORK
        found = name in _MANUAL or name in _CONTROL or work >= _SEVERAL
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found
