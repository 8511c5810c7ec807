"""Proves the rules and facts of a file."""

from collections.abc import Callable, Sequence

from hlorewrite.checks.prove.declared import Relations, declared_meanings
from hlorewrite.checks.prove.facts import prove_fact
from hlorewrite.checks.prove.lemmas import steps
from hlorewrite.checks.prove.op_semantics import table
from hlorewrite.checks.prove.rules import prove_rule
from hlorewrite.checks.prove.solver import INSTALL, NoSolver, decide, solver
from hlorewrite.checks.prove.verdict import ASSUMED, PROVED, UNKNOWN, Verdict
from hlorewrite.rules.compile.checks import bind
from hlorewrite.rules.library import checked, read_source
from hlorewrite.rules.proofs import is_proved
from hlorewrite.rules.syntax import ast

NO_SOLVER = f"no solver is installed ({INSTALL})"
Provable = ast.Rule | ast.Linear


def prove_file(name: str, only: Sequence[str] = (), tell: Callable[[str], None] = lambda name: None) -> list[Verdict]:
    """The verdict about each rule and fact of a file.

    Args:
      name: a path, or the name of a shipped file.
      only: names of rules and facts; all when empty.
      tell: called with the name of each before it is tried.

    Returns:
      Verdicts in the order of the file; ``assumed`` for all of them when no solver is installed.

    Raises:
      RuleCheckError: the file is not a valid rule file.
    """
    source = read_source(name)
    tree, natives = checked(source)
    relations = Relations(bind(natives, source.name))
    meanings = table() | declared_meanings(tree.items, source.name)
    verdicts = []
    for item in provable(tree, only):
        tell(item.name)
        location = f"{source.name}:{item.name_span.line}"
        if not has_solver():
            verdicts.append(Verdict(item.name, location, ASSUMED, NO_SOLVER))
        elif isinstance(item, ast.Linear):
            verdicts.append(prove_fact(item, relations, meanings, location))
        else:
            verdicts.append(prove_rule(item, relations, meanings, location))
    return verdicts


def why_unproved(name: str, rule: str) -> str:
    """Why a rule or fact of a file is not proved; empty for one that is, by a kept proof or now.

    Args:
      name: the file: a path, or the name of a shipped one.
      rule: the name of the rule or fact.
    """
    items = {item.name: item for item in provable(checked(read_source(name))[0], [rule])}
    if is_proved(items[rule]):
        return ""
    [verdict] = prove_file(name, [rule])
    return "" if verdict.sound else verdict.sentence


def provable(tree: ast.File, only: Sequence[str] = ()) -> list[Provable]:
    """The rules and facts of a file, or those of the given names."""
    return [item for item in tree.items if isinstance(item, ast.Rule | ast.Linear) and (not only or item.name in only)]


def has_solver() -> bool:
    """Whether the solver is installed."""
    try:
        solver()
    except NoSolver:
        return False
    return True


def prove_lemmas() -> list[Verdict]:
    """The verdict about each step of the lemmas; one that is proved without a premise it needs is ``unknown`` too."""
    verdicts = []
    for step in steps():
        proved = decide(step.claim, step.premises).status == PROVED
        name = f"{step.lemma}: {step.name}" + ("" if step.holds else ", not without its premise")
        verdicts.append(Verdict(name, "lemmas", PROVED if proved == step.holds else UNKNOWN))
    return verdicts
