"""The two ``chlo`` ops train steps hold and the interpreter lacks, written in StableHLO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlorewrite.ir.binding import ir

if TYPE_CHECKING:
    from hlorewrite.oracle.lockstep.writer import LockstepWriter

# erf(x) = sign(x)·(1 - (a1·t + ... + a5·t^5)·exp(-x²)), t = 1/(1 + p·|x|), off by at most 1.5e-7:
# Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
_P = "0.3275911"
_COEFFICIENTS = ("1.061405429", "-1.453152027", "1.421413741", "-0.284496736", "0.254829592")


def square(lockstep: LockstepWriter, x: ir.Value) -> ir.Value:
    """x·x."""
    return lockstep.value("stablehlo.multiply", [x, x], x.type)


def erf(lockstep: LockstepWriter, x: ir.Value) -> ir.Value:
    """The error function to 1.5e-7, which is the same before and after a rewrite."""
    def op(name: str, *operands: ir.Value) -> ir.Value:
        return lockstep.value(f"stablehlo.{name}", list(operands), x.type)

    one = lockstep.constant("1.0", x.type)
    t = op("divide", one, op("add", one, op("multiply", lockstep.constant(_P, x.type), op("abs", x))))
    total = lockstep.constant("0.0", x.type)
    for coefficient in _COEFFICIENTS:
        total = op("multiply", op("add", total, lockstep.constant(coefficient, x.type)), t)
    decay = op("exponential", op("negate", op("multiply", x, x)))
    return op("multiply", op("sign", x), op("subtract", one, op("multiply", total, decay)))


HANDLERS = {"chlo.square": square, "chlo.erf": erf}
