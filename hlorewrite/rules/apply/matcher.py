"""Runs the steps of a match with backtracking, then its checks, and explains why a rule does not apply."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hlorewrite.ir import View, ir, is_static_tensor
from hlorewrite.rules.compile.compiled import CompiledRule, Failure
from hlorewrite.rules.compile.environment import Environment
from hlorewrite.rules.compile.match import MatchStep
from hlorewrite.rules.context import RuleContext
from hlorewrite.rules.listener import Explanation
from hlorewrite.rules.match_failure import MatchFailure
from hlorewrite.rules.proofs import how_known
from hlorewrite.rules.snippets import short_op

# ---- why a rule does not apply: its best partial match in a module, and the check that stopped it


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


# ---- the matcher


Note = Callable[[int, MatchStep, Environment], None]
_RANK = {"match": 0, "where": 1, "legal": 2, "cost": 3}


def search(steps: Sequence[MatchStep], env: Environment, accept: Callable[[Environment], bool],
           note: Note | None = None) -> bool:
    """Tries every way to match until one is accepted.

    Args:
      steps: the steps.
      env: the environment, with the root in its slot.
      accept: called with each complete match; True ends the search.
      note: called with each failed step (its number, the step, the environment at that moment).

    Returns:
      Whether a match was accepted.
    """
    return _search_from(0, steps, env, accept, note)


def _search_from(i: int, steps: Sequence[MatchStep], env: Environment, accept: Callable[[Environment], bool],
                 note: Note | None) -> bool:
    # Not a closure: a recursive closure is a reference cycle, which only Python's cycle collector frees.
    # Ends: each round passes a step; a choice continues after it.
    while i < len(steps):
        step = steps[i]
        if step.run is not None:
            if not step.run(env):
                if note is not None:
                    note(i, step, env)
                return False
            i += 1
            continue
        offered = False
        for alternative in step.choose(env) if step.choose else ():
            offered = True
            if _search_from(i + 1, steps, alternative, accept, note):
                return True
        if not offered and note is not None:
            note(i, step, env)
        return False
    return accept(env)


def find(rule: CompiledRule, op: ir.Operation, context: Any, *, ignore_cost: bool = False,
         partial: bool = False) -> Environment | Failure | None:
    """Matches a rule on a root op.

    Tries all ways to match until one passes every check. If all fail, the one that got furthest is reported.

    Args:
      rule: the rule.
      op: an op of the root's name.
      context: what natives are called with.
      ignore_cost: leave out ``cost`` checks. ``legal`` checks are never left out.
      partial: also report how far an incomplete match got.

    Returns:
      The environment to rewrite with; a Failure when the ops match and a check does not hold (or, with ``partial``,
      when they do not match); None when they do not match.
    """
    best: list[Failure] = []
    accepted: list[Environment] = []

    def keep(failure: Failure) -> None:
        if not best or _order(failure) > _order(best[0]):
            best[:] = [failure]

    def accept(env: Environment) -> bool:
        failure = _first_failure(rule, env, ignore_cost)
        if failure is None:
            accepted.append(env)
            return True
        keep(failure)
        return False

    def note(i: int, step: MatchStep, env: Environment) -> None:
        sentence, culprit = step.why(env)
        keep(Failure("match", MatchFailure(sentence, culprit), "", i, env.copy()))

    env = rule.slots.empty(context)
    env[rule.root.slot] = op
    search(rule.steps, env, accept, note if partial else None)
    if accepted:
        return accepted[0]
    return best[0] if best else None


def _order(failure: Failure) -> tuple[int, int]:
    return _RANK[failure.stage], failure.progress


def _first_failure(rule: CompiledRule, env: Environment, ignore_cost: bool) -> Failure | None:
    for i, (stage, check) in enumerate(rule.checks):
        if stage == "cost" and ignore_cost:
            continue
        answer = check.run(env)
        if answer is not True:
            return Failure(stage, answer, check.text, len(rule.steps) + i, env)
    for names, old, new in rule.exchanged:
        before, after = old(env), new(env)
        if before.type != after.type and not (is_static_tensor(before.type) and is_static_tensor(after.type)):
            sentence = f"{names} are of the types {before.type} and {after.type}: one has no size"
            return Failure("legal", MatchFailure(sentence, before.owner), "", len(rule.steps) + len(rule.checks), env)
    return None
