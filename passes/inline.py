"""The ``inline`` pass; MLIR's own of that name does nothing in jaxlib."""

from dataclasses import dataclass

from hlorewrite.ir import Module, inline_calls
from hlorewrite.passmanager.base import Pass, PassContext


@dataclass(frozen=True)
class Inline(Pass):
    """Replaces calls of private functions by their bodies; recursive functions stay.

    JAX puts the bodies of ``lax.scan`` and of ``jnp`` functions in a function called by ``func.call``; a rule that
    matches across such a call needs the body in place.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> {"
      ...                "%0 = call @id(%a) : (tensor<f32>) -> tensor<f32>  return %0 : tensor<f32> }"
      ...                "func.func private @id(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> Inline().run(module, PassContext())
      True
    """

    name = "inline"

    def run(self, module: Module, ctx: PassContext) -> bool:
        inlined = inline_calls(ctx.editor(module))
        ctx.count("calls inlined", inlined)
        return inlined > 0
