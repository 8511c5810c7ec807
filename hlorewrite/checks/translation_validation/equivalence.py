"""Whether two modules compute the same: by proof, or on inputs if no proof is found."""

from dataclasses import dataclass
from enum import StrEnum

from hlorewrite.checks.reference.refute import DRAWS, Counterexample
from hlorewrite.checks.reference.refute_worker import refute_in_subprocess
from hlorewrite.checks.translation_validation import validate
from hlorewrite.checks.translation_validation.program.state import Strategy
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.ir.module import Module

_FIRST, _OTHERS = validate.STRATEGIES[:1], validate.STRATEGIES[1:]


class Certainty(StrEnum):
    """What is known about two modules, from the best answer to the worst."""

    PROVED = "proved"
    ROUNDED = "proved up to rounding of constants"
    EQUAL = "equal on inputs"
    UNKNOWN = "unknown"
    DIFFERS = "differs"


@dataclass(frozen=True)
class Equivalence:
    """An answer, and what it rests on.

    Attributes:
      verdict: the answer.
      strategy: the normal form of a proof.
      inputs: the number of draws of inputs on which both were equal.
      reason: what could not be proved, or why nothing was executed.
      location: where in the second module.
      example: inputs on which they differ.
      seed: the seed of the inputs.
    """

    verdict: Certainty
    strategy: str = ""
    inputs: int = 0
    reason: str = ""
    location: str = ""
    example: Counterexample | None = None
    seed: int = 0

    @property
    def proved(self) -> bool:
        """Whether a proof was found, up to rounding of constants or without."""
        return self.verdict in (Certainty.PROVED, Certainty.ROUNDED)

    def __str__(self) -> str:
        if self.verdict is Certainty.EQUAL:
            return f"equal on {self.inputs} inputs"
        if self.verdict is Certainty.DIFFERS:
            return f"differs: {self.example}"
        if self.verdict is Certainty.UNKNOWN:
            return f"unknown: {self.reason}" + (f" at {self.location}" if self.location else "")
        return str(self.verdict)


def prove(before: Module, after: Module, *, quick: bool = False) -> Equivalence:
    """Looks for a proof that two modules compute the same.

    The normal forms of ``validate`` come first and last, and those of XLA's simplifiers in between; programs that any
    of them proves are equal over the reals. If only constants that XLA computed differ, as in ``x / c`` that became ``x
    * (1 / c)``, they are compared up to rounding; this is a separate answer.

    Args:
      before: the original; it is taken to end, and not to hang.
      after: the other module.
      quick: only the forms that are likely to prove it.

    Returns:
      Proved, proved up to rounding of constants, or unknown.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> text = ("func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {"
      ...         "%0 = stablehlo.add %x, %x : tensor<2x3xf32> "
      ...         "%1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32> "
      ...         "return %1 : tensor<3x2xf32> }")
      >>> moved = ("func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {"
      ...          "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32> "
      ...          "%1 = stablehlo.add %0, %0 : tensor<3x2xf32> return %1 : tensor<3x2xf32> }")
      >>> str(prove(parse(text), parse(moved)))
      'proved'
    """
    first: Unknown | None = None
    plans: list[tuple[Certainty, tuple[Strategy, ...]]] = [
        (Certainty.PROVED, _FIRST), (Certainty.PROVED, validate.VIEW_STRATEGIES[:1]),
        (Certainty.ROUNDED, validate.ROUNDED_STRATEGIES)]
    if not quick:
        plans += [(Certainty.PROVED, validate.VIEW_STRATEGIES[1:]), (Certainty.PROVED, _OTHERS)]
    for verdict, strategies in plans:
        answer = validate.validate_by(before, after, strategies)
        if isinstance(answer, Proved):
            return Equivalence(verdict, answer.strategy)
        by_views = strategies == validate.VIEW_STRATEGIES[:1]
        if first is None or (by_views and not answer.reason.startswith(validate.FAILED)):
            first = answer
    assert first is not None
    return Equivalence(Certainty.UNKNOWN, reason=first.reason, location=first.location)


def compare_modules(before: Module, after: Module, *, seed: int = 0, draws: int = len(DRAWS), seconds: float = 60.0
                    ) -> Equivalence:
    """Whether two modules compute the same: by proof, or on inputs if no proof is found.

    Args:
      before: the original.
      after: the other module.
      seed: the seed of the inputs.
      draws: how many inputs are tried; 0 for none.
      seconds: about how long they may take.

    Returns:
      The answer; a difference comes with inputs that show it.
    """
    answer = prove(before, after)
    if answer.proved or not draws:
        return answer
    found = refute_in_subprocess(before, after, seed=seed, draws=draws, seconds=seconds)
    if found.example is not None:
        return Equivalence(Certainty.DIFFERS, inputs=found.equal, reason=answer.reason, location=answer.location,
                           example=found.example, seed=seed)
    if found.equal:
        return Equivalence(Certainty.EQUAL, inputs=found.equal, reason=answer.reason, location=answer.location,
                           seed=seed)
    return Equivalence(Certainty.UNKNOWN, reason=f"{answer.reason}; not executed: {found.reason}",
                       location=answer.location, seed=seed)
