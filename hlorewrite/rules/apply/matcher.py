"""Runs the steps of a match with backtracking, then its checks."""

from collections.abc import Callable, Sequence
from typing import Any

from hlorewrite.ir.binding import ir
from hlorewrite.ir.types import is_static_tensor
from hlorewrite.rules.compile.compiled import CompiledRule, Failure
from hlorewrite.rules.compile.environment import Environment
from hlorewrite.rules.compile.match import MatchStep
from hlorewrite.rules.match_failure import MatchFailure

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
