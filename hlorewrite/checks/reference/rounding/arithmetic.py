"""What is assumed of the arithmetic that executes a program."""

from dataclasses import dataclass, replace

from hlorewrite.checks.reference.rounding.units import FloatFormat


@dataclass(frozen=True)
class RoundingArithmetic:
    """How exactly single ops are computed.

    Attributes:
      basic: units of the last place that ``+ - * /`` and square root are off by, in unit roundoffs.
      function: the same for exponential, tanh and other functions.
      flushes: results below the normal range become zero.
      repeats: equal ops on equal operands give equal bits wherever they are in a program.
      products: unit roundoff of what operands of float32 matrix products are first rounded to; 0 if they are not.
      underflows: results below the normal range may lose digits; where none may, a lost one is a difference.
    """

    basic: float
    function: float
    flushes: bool
    repeats: bool
    products: float = 0.0
    underflows: bool = True

    def floor(self, form: FloatFormat) -> float:
        """The possible error of a result near zero."""
        if not self.underflows:
            return 0.0
        return form.normal if self.flushes else form.underflow


INTERPRETER = RoundingArithmetic(1.0, 2.0, False, True)
"""The StableHLO interpreter: each op is rounded once; functions are computed in double precision first, and those of
double precision itself by the C library, which is within one unit in the last place."""
IN_RANGE = replace(INTERPRETER, underflows=False)
"""The same on inputs for which the original loses nothing to underflow: then the rewritten program must not either."""
COMPILED = RoundingArithmetic(2.0, 16.0, True, False)
"""XLA: another fusion may contract a product and a sum, keep a wider type, or divide by multiplying with a reciprocal;
its own approximations of functions are within a few units in the last place."""
TENSOR_CORES = replace(COMPILED, products=2.0**-11)
"""XLA on GPUs, where float32 matrix products of default precision may take TF32 operands."""
