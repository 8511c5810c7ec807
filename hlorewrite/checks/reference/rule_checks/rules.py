"""Checks rules by execution: both sides of each on generated programs, and each condition by leaving it out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.rule_checks.instances import NotGenerated, instance
from hlorewrite.errors import CannotExecute, HlorewriteError
from hlorewrite.ir import Module, View
from hlorewrite.rules.apply.driver import apply_rules
from hlorewrite.rules.compile.checks import NativeFunction
from hlorewrite.rules.compile.compiled import CompiledRule, compile_rule
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import expression

_MOST_PER_CONDITION = 12
_MOST_IN_A_ROW = 4


@dataclass(frozen=True)
class ConditionResult:
    """The result of a check without one condition.

    Attributes:
      block: ``where`` or ``legal``.
      text: the condition.
      fired: programs that the rule rewrote differently without it.
      noticed: whether one of them became wrong.
    """

    block: str
    text: str
    fired: int
    noticed: bool


@dataclass(frozen=True)
class RuleResult:
    """The result of checking a rule.

    Attributes:
      rule: its name.
      location: where it is written.
      programs: generated programs.
      rewritten: those it rewrote.
      wrong: messages about those that became wrong.
      not_generated: why no programs can be made; empty otherwise.
      conditions: what each condition is good for.
      executed: the number of programs on which both sides were executed.
    """

    rule: str
    location: str
    programs: int
    rewritten: int
    wrong: tuple[str, ...]
    not_generated: str
    conditions: tuple[ConditionResult, ...]
    executed: int = 0

    @property
    def untested(self) -> tuple[ConditionResult, ...]:
        """The conditions whose removal no program noticed."""
        return tuple(c for c in self.conditions if not c.noticed)


def check_rule(rule: CompiledRule, natives: Mapping[str, NativeFunction], *, programs: int = 150,
               executed: int = 16) -> RuleResult:
    """Executes programs before and after a rule, and again after the rule without each of its conditions.

    Args:
      rule: a compiled rule.
      natives: the natives it may call.
      programs: how many programs to generate.
      executed: how many of the rewritten ones to execute.

    Returns:
      What was found; ``wrong`` is empty for a sound rule.
    """
    try:
        pool = [m for m in (instance(rule.rule, seed) for seed in range(programs)) if m is not None]
    except NotGenerated as reason:
        return RuleResult(rule.name, rule.location, 0, rewritten=0, wrong=(), not_generated=str(reason), conditions=())
    rewritten, ran, wrong = 0, 0, []
    texts: list[str] = []
    for before in pool:
        after = before.clone()
        fired, problem = _outcome(rule, before, after, run=rewritten < executed)
        ran += fired and rewritten < executed and problem is not None
        rewritten += fired
        texts.append(after.text())
        if problem:
            wrong.append(f"{before.name}: {problem}")
    conditions = tuple(_without(rule, natives, block, position, pool, texts) for block, position in _conditions(rule))
    return RuleResult(rule.name, rule.location, len(pool), rewritten=rewritten, wrong=tuple(wrong), not_generated="",
                      conditions=conditions, executed=ran)


def _outcome(rule: CompiledRule, before: Module, after: Module, *, run: bool) -> tuple[bool, str | None]:
    """Whether a rule fires on a program, and what is wrong with what it makes of it; None if it cannot be run."""
    try:
        if apply_rules([rule], View(after)) == 0:
            return False, ""
    except HlorewriteError as error:
        return True, error.what
    if not run:
        return True, ""
    diagnostics = after.verify()
    if diagnostics:
        return True, diagnostics[0].message
    try:
        report = check(before, after)
    except CannotExecute:
        return True, None
    return True, "" if report.equal else "the values differ"


def _conditions(rule: CompiledRule) -> list[tuple[str, int]]:
    conditions = []
    for keyword in ("where", "legal"):
        block: ast.Block | None = getattr(rule.rule, keyword)
        for position, statement in enumerate(block.statements if block else ()):
            if isinstance(statement, ast.Condition):
                conditions.append((keyword, position))
    return conditions


def _without(rule: CompiledRule, natives: Mapping[str, NativeFunction], keyword: str, position: int,
             pool: list[Module], texts: list[str]) -> ConditionResult:
    """Runs a rule without one condition, and executes the programs that change."""
    block: ast.Block = getattr(rule.rule, keyword)
    dropped = block.statements[position]
    rest = tuple(s for i, s in enumerate(block.statements) if i != position)
    weaker = compile_rule(replace(rule.rule, **{keyword: replace(block, statements=rest)}, recursive=_MOST_IN_A_ROW),
                          natives, rule.location)
    fired = 0
    for before, text in zip(pool, texts, strict=True):
        after = before.clone()
        did, problem = _outcome(weaker, before, after, run=False)
        if not did or (not problem and after.text() == text):
            continue
        fired += 1
        if problem or _outcome(weaker, before, before.clone(), run=True)[1]:
            return ConditionResult(keyword, _text(dropped), fired, True)
        if fired >= _MOST_PER_CONDITION:
            break
    return ConditionResult(keyword, _text(dropped), fired, False)


def _text(statement: object) -> str:
    return expression(statement.expression) if isinstance(statement, ast.Condition) else ""


__all__ = ["ConditionResult", "RuleResult", "check_rule"]
