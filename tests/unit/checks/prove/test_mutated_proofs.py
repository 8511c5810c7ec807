"""A proof notices every condition: a fact or rule that says less, or claims more, is not proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hlorewrite.checks.prove.contracts import EXEMPT
from hlorewrite.checks.prove.declared import Relations
from hlorewrite.checks.prove.elements import KINDS
from hlorewrite.checks.prove.facts import cases, prove_fact
from hlorewrite.checks.prove.op_semantics import table
from hlorewrite.checks.prove.rules import prove_rule
from hlorewrite.rules.compile.checks import bind
from hlorewrite.rules.library import checked, read_source
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import expression

pytest.importorskip("z3")


def items(file: str, kind: type) -> list[Any]:
    return [item for item in checked(read_source(file))[0].items if isinstance(item, kind)]


def relations(file: str) -> Relations:
    source = read_source(file)
    return Relations(bind(checked(source)[1], source.name))


FACTS: list[ast.Linear] = items("linearity", ast.Linear)
RULES: list[ast.Rule] = items("collectives", ast.Rule)
ADMITTED = relations("linearity")


def without(block: ast.Block, i: int) -> ast.Block:
    return replace(block, statements=tuple(s for k, s in enumerate(block.statements) if k != i))


def mutants_of(fact: ast.Linear) -> Iterator[tuple[str, ast.Linear]]:
    """The fact with one condition less, for one kind more, and of a stricter float class."""
    known = admitted(fact)
    for i, statement in enumerate(fact.legal.statements if fact.legal else ()):
        assert isinstance(statement, ast.Condition) and fact.legal is not None
        yield f"{fact.name} without {expression(statement.expression)}", replace(fact, legal=without(fact.legal, i))
    for i, statement in enumerate(fact.types.statements if fact.types else ()):
        assert isinstance(statement, ast.Condition) and fact.types is not None
        weaker = replace(fact, types=without(fact.types, i))
        if admitted(weaker) > known:  # otherwise the op's own types say the same
            yield f"{fact.name} without {expression(statement.expression)}", weaker
    for kind in KINDS:
        if "any" not in fact.kinds.names and kind not in fact.kinds.names:
            wider = replace(fact, kinds=replace(fact.kinds, names=(*fact.kinds.names, kind)))
            if admitted(wider) > known:  # no conjunctions of floats
                yield f"{fact.name} for {kind}", wider
    if fact.floats is not None and fact.floats.names != ("exact",):
        yield f"{fact.name}, exact", replace(fact, floats=replace(fact.floats, names=("exact",)))


def admitted(fact: ast.Linear) -> int:
    return sum(1 for _ in cases(fact, ADMITTED, table()))


TRUE_ANYWAY = {  # more kinds for which an equation holds, and which no fact needs
    "convert for product": "products modulo 2^w, and of real numbers, commute with dropping bits and with widening",
    "convert for and": "bits that are dropped do not mix with those that stay",
    "convert for or": "the same",
    "convert-extremum for and": "sign and zero extension copy bits",
    "convert-extremum for or": "the same",
    "minimum-of-maximum for min": "min(min(a, k), min(b, k)) = min(min(a, b), k)",
    "maximum-of-minimum for max": "the same for maxima",
    "and-of-disjunction for and": "the same for conjunctions", "or-of-conjunction for or": "and disjunctions",
}


def test_equations_that_hold_for_more_kinds_are_proved() -> None:
    mutants = dict(mutant for fact in FACTS for mutant in mutants_of(fact))
    for what in TRUE_ANYWAY:
        assert prove_fact(mutants[what], ADMITTED, table(), "").sound, what


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_a_fact_that_claims_more_is_not_proved(fact: ast.Linear) -> None:
    """Its mutants are made in the test: which of them claim more takes as long as a proof."""
    mutants = dict(mutants_of(fact))
    assert mutants or "any" in fact.kinds.names  # an op that moves elements, for any reduction of them
    for what, mutant in mutants.items():
        assert what in TRUE_ANYWAY or not prove_fact(mutant, ADMITTED, table(), "").sound, what


def called(statement: object) -> str:
    """The native that a condition asks."""
    expressed = statement.expression if isinstance(statement, ast.Condition) else None
    return expressed.function if isinstance(expressed, ast.Call) else ""


def mutated_rules() -> Iterator[tuple[str, ast.Rule, ast.Rule]]:
    for rule in RULES:
        for keyword in ("where", "types", "legal"):
            block: ast.Block | None = getattr(rule, keyword)
            for i, statement in enumerate(block.statements if block else ()):
                if block is not None and isinstance(statement, ast.Condition) and called(statement) not in EXEMPT:
                    weaker = replace(rule, **{keyword: without(block, i)})
                    yield f"{rule.name} without {expression(statement.expression)}", weaker, rule


RULE_MUTANTS = {what: (weaker, rule) for what, weaker, rule in mutated_rules()}


@pytest.mark.parametrize("what", RULE_MUTANTS)
def test_a_rule_without_a_condition_is_not_proved(what: str) -> None:
    """But for types that the ops have in any case: then the proof is about the same types."""
    weaker, rule = RULE_MUTANTS[what]
    admits = relations("collectives")
    verdict = prove_rule(weaker, admits, table(), "")
    if verdict.sound:
        assert " without same(" in what and verdict.typings == prove_rule(rule, admits, table(), "").typings


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_conditions_that_say_nothing_about_values_are_not_needed(rule: ast.Rule) -> None:
    blocks = {key: replace(block, statements=tuple(s for s in block.statements if called(s) not in EXEMPT))
              for key in ("where", "legal") if (block := getattr(rule, key)) is not None}
    assert prove_rule(replace(rule, **blocks), relations("collectives"), table(), "").sound


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_with_any_other_float_class(rule: ast.Rule) -> None:
    """A rule about sums of floats is not exact."""
    assert rule.floats is not None
    exact = replace(rule, floats=replace(rule.floats, names=("exact",)))
    assert prove_rule(exact, relations("collectives"), table(), "").sound == (rule.floats.names == ("exact",))
