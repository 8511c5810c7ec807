"""Proves a run of passes: as a whole, or else pass by pass.

One normal form has to bring both programs of a proof to the same graph. After several passes there may be none that
does, while each pass has one. If the first program equals the second, and the second the third, the first equals the
third.
"""

from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.ir.module import Module

PASS_BY_PASS = "pass by pass"


class PassStages:
    """Records the module after each pass; an observer of ``run_passes``.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.passmanager.base import PassContext
      >>> from hlorewrite.passmanager.manager import run_passes
      >>> from hlorewrite.passmanager.spec import parse_pipeline
      >>> module = parse("func.func @f(%a: tensor<f32>) -> tensor<f32> {"
      ...                "%0 = stablehlo.add %a, %a : tensor<f32>  return %a : tensor<f32> }")
      >>> original, stages = module.clone(), PassStages()
      >>> run_passes(module, parse_pipeline("canonicalize,cse"), PassContext(), observers=[stages])
      True
      >>> print(stages.validate(original, module))
      proved
    """

    def __init__(self) -> None:
        self._stages: list[tuple[str, Module]] = []

    def before(self, pass_: object, module: Module) -> None:
        """Keeps the module before the first pass."""
        if not self._stages:
            self._stages.append(("", module.clone()))

    def after(self, pass_: object, module: Module, changed: bool) -> None:
        """Keeps what a pass made."""
        if changed:
            self._stages.append((str(pass_), module.clone()))

    def validate(self, original: Module, result: Module) -> Proved | Unknown:
        """Whether the last module computes on every device what the first one does.

        Args:
          original: the module before.
          result: the module after.

        Returns:
          Proved; or Unknown with the reason, and the first pass whose result is not proved where the passes alone lead
          from one module to the other.
        """
        from hlorewrite.checks.translation_validation.validate import (
            validate,  # reads the shipped facts, which most runs need not
        )

        whole = validate(original, result)
        if isinstance(whole, Proved) or len(self._stages) < 3 or not self._leads(original, result):
            return whole
        nodes = 0
        for (_, before), (name, after) in zip(self._stages, self._stages[1:], strict=False):
            answer = validate(before, after)
            if isinstance(answer, Unknown):
                return Unknown(f"{name}: {answer.reason}", answer.location)
            nodes += answer.nodes
        return Proved(PASS_BY_PASS, nodes)

    def _leads(self, original: Module, result: Module) -> bool:
        """Whether the passes began with one module and ended with the other: nothing else changed it."""
        ends = self._stages[0][1], self._stages[-1][1]
        return [each.text() for each in ends] == [original.text(), result.text()]
