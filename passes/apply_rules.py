"""The ``rules`` pass: applies the rewrite rules of rule files."""

from dataclasses import dataclass

from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.rules.apply.driver import apply_rules
from hlorewrite.rules.apply.matcher import explain
from hlorewrite.rules.compile.compiled import CompiledRule
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.library import load, select


@dataclass(frozen=True)
class ApplyRules(Pass):
    """Applies the rules of rule files until none applies.

    Attributes:
      files: rule files: paths, or names of shipped files such as ``collectives``.
      only: rules or tags to apply; by default all.
      skip: rules or tags to leave out.
      exact: apply no rule to floating-point numbers that would change them (by its `floats`).
      narrow_range: also apply rules that regroup sums of f16 and 8-bit floats, which may then overflow or underflow.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> ApplyRules(only=("algebra",)).run(module, PassContext())
      False
    """

    name = "rules"
    files: tuple[str, ...] = ("collectives",)
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    exact: bool = False
    narrow_range: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        rules = self._rules()
        view = ctx.view(module)
        context = RuleContext(view, allow_reassociation=not self.exact, allow_narrow_range=self.narrow_range)
        for rule in rules:
            if rule.name == ctx.explain:
                ctx.explanation(explain(rule, view, context=context, ignore_cost=ctx.ignore_cost))
        applied = apply_rules(rules, view, listener=ctx, context=context, ignore_cost=ctx.ignore_cost)
        context.release()
        ctx.count("rewrites", applied)
        return applied > 0

    def _rules(self) -> list[CompiledRule]:
        every = [rule for name in self.files for rule in load(name).rules]
        return select(every, self.only, self.skip)
