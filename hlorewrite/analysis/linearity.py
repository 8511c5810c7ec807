"""What the deferred-reduction analysis asks about single ops; the answers stand in ``patterns/linearity.hlopat``.

An op is *jointly linear* in some operands when, with all others fixed and uniform over the groups,
``op(AR(a) + p, AR(b) + q) = AR(op(a, b)) + op(p, q)``. For reductions other than a sum, ``+`` is that reduction.
"""

from dataclasses import dataclass
from typing import Protocol

from hlorewrite.analysis.uniform import Uniformity, Varying
from hlorewrite.ir.binding import ir
from hlorewrite.ops.reducers import is_identity


@dataclass(frozen=True)
class JointlyLinear:
    """An op is jointly linear in some operands.

    Attributes:
      operands: their positions.
      fact: the fact that says so.
      regroups: whether floats are then added, or rounded before they are added, in another order.
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
    """What a linearity fact may ask about the values around an op."""

    @property
    def kind(self) -> str: ...

    def varying(self, value: ir.Value) -> Varying | None: ...
    def is_zero(self, value: ir.Value) -> bool: ...


class FlowContext(FactContext, Protocol):
    """What a flow is built with: it answers for many values, and frees what it found out."""

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
        """Frees what was found out; what is asked later is searched anew."""
        self.uniformity.release()
