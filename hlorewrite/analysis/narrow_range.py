"""Sums of floats of a narrow range stay as they are: in another order they may overflow or underflow.

``AR(x) + AR(y)`` is finite where values cancel over the devices, and the local ``x + y`` of ``AR(x + y)`` need not be;
``AR(x) * k`` is not zero where ``x * k`` is, for a factor below one. In f16 and the 8-bit types both happen for numbers
that train: f16 ends at 65504 and is normal down to 6e-5. In bf16, f32 and f64 a program would have to come within the
factor by which sums grow of 3e38 or 1e-38 (docs/rounding.md).
"""

from dataclasses import dataclass

from hlorewrite.analysis.linearity import FactContext, JointlyLinear, LinearityFacts, NotLinear
from hlorewrite.ir.binding import ir
from hlorewrite.ir.types import element_type

_WIDE = frozenset({"bf16", "tf32", "f32", "f64", "complex<f32>", "complex<f64>"})


def has_narrow_range(element: ir.Type) -> bool:
    """Whether an element type is a float with fewer than 8 bits of exponent, or of 8 bits in all.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     [has_narrow_range(ir.Type.parse(name)) for name in ("f16", "f8E5M2", "bf16", "f32", "i8")]
      [True, True, False, False, False]
    """
    return isinstance(element, ir.FloatType) and str(element) not in _WIDE


def regrouped(element: ir.Type) -> str:
    """Why a sum of an element type stays as it is, with what to do."""
    return (f"the sum of {element} would be taken in another order, and could overflow or underflow where it does not "
            "now; add up in f32, or allow it with narrow-range=true")


@dataclass(frozen=True)
class WithinRange:
    """Linearity facts, less those that regroup sums and products of floats of a narrow range.

    Attributes:
      facts: the facts.
    """

    facts: LinearityFacts

    def linear_in(self, op: ir.Operation, position: int, context: FactContext) -> JointlyLinear | NotLinear:
        """Whether an op is linear in an operand, and no intermediate leaves the range that the original keeps to."""
        answer = self.facts.linear_in(op, position, context)
        if isinstance(answer, NotLinear) or not answer.regroups or context.kind not in ("sum", "product"):
            return answer
        element = element_type(op.results[0])
        return NotLinear(regrouped(element), illegal=True) if has_narrow_range(element) else answer
