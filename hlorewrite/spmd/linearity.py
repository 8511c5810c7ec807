"""What the deferred-reduction analysis asks about single ops; the answers stand in ``patterns/linearity.hlopat``.

An op is *jointly linear* in some operands when, with all others fixed and uniform over the groups,
``op(AR(a) + p, AR(b) + q) = AR(op(a, b)) + op(p, q)``. For reductions other than a sum, ``+`` is that reduction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hlorewrite.ir.binding import ir
from hlorewrite.spmd.constants import is_complex_zero, splat_number
from hlorewrite.spmd.types import is_static_tensor, largest_float
from hlorewrite.spmd.uniform import Uniformity, Varying


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


def identity_number(kind: str, element: ir.Type) -> float | int | bool:
    """The number that a reduction leaves alone: 0 for a sum, the least number for a maximum.

    Args:
      kind: the kind of reduction.
      element: the element type.

    Returns:
      A Python number; infinite for floating maxima and minima, where the type has infinities.
    """
    name = str(element)
    if kind in ("sum", "or"):
        return False if name == "i1" else 0
    if kind == "product":
        return 1
    if kind == "and":
        return True if name == "i1" else -1
    if name == "i1":
        return kind == "min"
    if name.lstrip("ui").isdigit():
        bits, unsigned = int(name.lstrip("ui")), name.startswith("ui")
        low, high = (0, 2**bits - 1) if unsigned else (-(2**(bits - 1)), 2**(bits - 1) - 1)
        return low if kind == "max" else high
    return -largest_float(element) if kind == "max" else largest_float(element)


_KEEPS_SPLAT = {"stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.slice",
                "stablehlo.reverse", "stablehlo.optimization_barrier", "stablehlo.dynamic_slice"}


def is_identity(value: ir.Value, kind: str) -> bool:
    """Whether a value is a constant filled with the identity of a reduction.

    Looks through ops that only move elements, and through converts of zero.
    """
    owner = value.owner
    if isinstance(owner, ir.Block) or not is_static_tensor(value.type):
        return False
    op = owner.operation
    if op.name in _KEEPS_SPLAT:
        position = ir.OpResult(value).result_number
        return is_identity(op.operands[position], kind)
    if op.name == "stablehlo.convert" and kind == "sum":
        return is_identity(op.operands[0], kind)
    if op.name == "stablehlo.complex" and kind == "sum":
        return all(is_identity(part, kind) for part in op.operands)
    if isinstance(ir.RankedTensorType(value.type).element_type, ir.ComplexType):
        return kind == "sum" and is_complex_zero(op)
    number = splat_number(op)
    return number is not None and number == identity_number(kind, ir.RankedTensorType(value.type).element_type)


__all__ = ["FactContext", "FlowContext", "JointlyLinear", "LinearityFacts", "NotLinear", "UniformContext",
           "identity_number", "is_identity"]
