"""Why a rule does not apply: its best partial match in a module, and the check that stopped it."""

from dataclasses import replace

from hlorewrite.ir import View, ir
from hlorewrite.rules.apply.matcher import find
from hlorewrite.rules.compile.compiled import CompiledRule, Failure
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.listener import Explanation
from hlorewrite.rules.proofs import how_known
from hlorewrite.rules.snippets import short_op

_RANK = {"match": 0, "where": 1, "legal": 2, "cost": 3}
_MOST_ROOTS = 20_000


def explain(rule: CompiledRule, view: View, *, context: RuleContext | None = None,
            ignore_cost: bool = False) -> Explanation:
    """The best partial match of a rule in a module, without changing it.

    Args:
      rule: a compiled rule.
      view: the view of the module.
      context: what natives are called with.
      ignore_cost: leave out ``cost`` checks.

    Returns:
      How far the best partial match got, and the sentence that says what stopped it.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> from hlorewrite.rules.library import load_text
      >>> rule = load_text('rule twice { match { %i = stablehlo.negate(%x); root %o = stablehlo.negate(%i); } '
      ...                  'types any; floats exact; rewrite { replace %o with %x; } }').rules[0]
      >>> module = parse("func.func @f(%a: tensor<f32>) -> tensor<f32> { %b = stablehlo.negate %a : tensor<f32> "
      ...                "return %b : tensor<f32> }")
      >>> explanation = explain(rule, View(module))
      >>> explanation.outcome, explanation.sentence
      ('no match', '`%i` is an argument, not the result of stablehlo.negate')
    """
    return replace(_explained(rule, view, context, ignore_cost), known=how_known(rule.rule))


def _explained(rule: CompiledRule, view: View, context: RuleContext | None, ignore_cost: bool) -> Explanation:
    roots = view.ops(*rule.root.names)
    if not roots:
        names = " or ".join(rule.root.names)
        return Explanation(rule.name, rule.location, "no root", f"the module contains no {names}")
    context = replace(context or RuleContext(view), every_partner=True)
    best: tuple[Failure, ir.Operation] | None = None
    for op in roots[:_MOST_ROOTS]:
        failure = find(rule, op, context, ignore_cost=ignore_cost, partial=True)
        if isinstance(failure, list):
            steps = len(rule.steps) + len(rule.checks)
            return Explanation(rule.name, rule.location, "applies", sentence="every check holds",
                               location=view.place(op), matched=steps, steps=steps)
        if failure is not None and (best is None or _order(failure) > _order(best[0])):
            best = failure, op
    if best is None:
        return Explanation(rule.name, rule.location, "no match", "no op looks like the root", "")
    return _told(rule, view, *best)


def _told(rule: CompiledRule, view: View, failure: Failure, op: ir.Operation) -> Explanation:
    culprit = failure.answer.culprit
    return Explanation(rule.name, rule.location, "no match" if failure.stage == "match" else failure.stage,
                       sentence=failure.answer.sentence, location=view.place(op), matched=failure.progress,
                       steps=len(rule.steps) + len(rule.checks),
                       culprit=short_op(culprit) if culprit is not None else "",
                       culprit_location=view.place(culprit) if culprit is not None else "", failed_check=failure.check)


def _order(failure: Failure) -> tuple[int, int]:
    return _RANK[failure.stage], failure.progress
