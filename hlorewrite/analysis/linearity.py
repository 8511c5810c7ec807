"""Linearity of single ops, for the deferred-reduction analysis; ``patterns/linearity.hlopat`` declares it.

An op is *jointly linear* in some operands when, with all others fixed and uniform over the groups,
``op(AR(a) + p, AR(b) + q) = AR(op(a, b)) + op(p, q)``. For reductions other than a sum, ``+`` is that reduction.
"""

from dataclasses import dataclass
from typing import Protocol

from hlorewrite.analysis.uniform import Uniformity, Varying
from hlorewrite.ir import element_type, ir
from hlorewrite.ops.reducers import is_identity


@dataclass(frozen=True)
class JointlyLinear:
    """An op is jointly linear in some operands.

    Attributes:
      operands: their positions.
      fact: the fact that declares it.
      regroups: whether this changes the order in which floats are added, or rounded before they are added.
    """

    operands: frozenset[int]
    fact: str
    regroups: bool = False


@dataclass(frozen=True)
class NotLinear:
    """Why an op is not linear in an operand.

    Attributes:
      sentence: the reason.
      culprit: the op at fault, if it is not the op itself.
      illegal: whether a declared legality condition failed; otherwise the op simply is not linear.
    """

    sentence: str
    culprit: ir.Operation | None = None
    illegal: bool = False


class FactContext(Protocol):
    """Questions that a linearity fact may ask about the values around an op."""

    @property
    def kind(self) -> str: ...

    def varying(self, value: ir.Value) -> Varying | None: ...
    def is_zero(self, value: ir.Value) -> bool: ...


class FlowContext(FactContext, Protocol):
    """The context for building a flow: answers for many values, and caches the answers."""

    def release(self) -> None: ...


class LinearityFacts(Protocol):
    """The declared facts, applied to one operand of one op."""

    def linear_in(self, op: ir.Operation, position: int, context: FactContext) -> JointlyLinear | NotLinear:
        """Whether an op is linear in an operand, and in which others jointly with it."""
        ...


@dataclass(frozen=True)
class UniformContext:
    """The usual context: one kind of reduction over the groups of one uniformity analysis."""

    kind: str
    uniformity: Uniformity

    def varying(self, value: ir.Value) -> Varying | None:
        """Why a value may differ between the devices of a group; None when it cannot."""
        return self.uniformity.varying(value)

    def is_zero(self, value: ir.Value) -> bool:
        """Whether a value is the identity of the reduction everywhere (zero for a sum)."""
        return is_identity(value, self.kind)

    def release(self) -> None:
        """Frees the cached results; later questions are answered again."""
        self.uniformity.release()


# ---- sums of floats of narrow range are not reordered, since they may then overflow or underflow


_WIDE = frozenset({"bf16", "tf32", "f32", "f64", "complex<f32>", "complex<f64>"})


def has_narrow_range(element: ir.Type) -> bool:
    """Whether an element type is a float with fewer than 8 bits of exponent, or with 8 bits in all.

    Example:
      >>> from hlorewrite.ir.context import new_context
      >>> with new_context():
      ...     [has_narrow_range(ir.Type.parse(name)) for name in ("f16", "f8E5M2", "bf16", "f32", "i8")]
      [True, True, False, False, False]
    """
    return isinstance(element, ir.FloatType) and str(element) not in _WIDE


def regrouped(element: ir.Type) -> str:
    """The sentence that says why a sum of an element type is not reordered, and what to do."""
    return (f"the sum of {element} would be taken in another order, and could overflow or underflow where it does not "
            "now; add up in f32, or allow it with narrow-range=true")


@dataclass(frozen=True)
class WithinRange:
    """Linearity facts without those that regroup sums and products of floats of narrow range.

    Attributes:
      facts: the facts.
    """

    facts: LinearityFacts

    def linear_in(self, op: ir.Operation, position: int, context: FactContext) -> JointlyLinear | NotLinear:
        """Whether an op is linear in an operand, with no intermediate outside the range of the original."""
        answer = self.facts.linear_in(op, position, context)
        if isinstance(answer, NotLinear) or not answer.regroups or context.kind not in ("sum", "product"):
            return answer
        element = element_type(op.results[0])
        return NotLinear(regrouped(element), illegal=True) if has_narrow_range(element) else answer
