"""A page for each shipped rule, made from the rule and its golden file: what it says is what the rule does."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from markup import fence, table, toctree

from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.library import checked, read_source, shipped_names, written
from hlorewrite.rules.listener import Recorder
from hlorewrite.rules.native_source import failure_text
from hlorewrite.rules.proofs import how_known
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import expression, print_file

ROOT = Path(__file__).resolve().parent.parent.parent
_STAYS = "It stays away: "
GOLDEN = ROOT / "tests" / "lit" / "rules"
_TEST_LINES = re.compile(r"^\s*//.*\n", re.MULTILINE)


@dataclass(frozen=True)
class GoldenModule:
    """One module of a golden file.

    Attributes:
      comment: its first comment line, ``It fires.`` or ``It stays away: ...``.
      text: the module without comments.
    """

    comment: str
    text: str


def rule_pages() -> dict[str, str]:
    """Every page of the shipped rules and facts, by name under ``reference/rules/``.

    Raises:
      SystemExit: a shipped rule has no golden file in which it fires.
    """
    pages: dict[str, str] = {}
    rules: list[tuple[ast.Rule, str]] = []
    facts: list[tuple[ast.Linear, str]] = []
    for name in shipped_names():
        source = read_source(name)
        for item in checked(source)[0].items:
            if isinstance(item, ast.Rule):
                rules.append((item, source.name))
                pages[f"{item.name}.md"] = rule_page(item, source.name, written(source)[item.name])
            elif isinstance(item, ast.Linear):
                facts.append((item, source.name))
    pages["linearity-facts.md"] = facts_page(facts)
    pages["index.md"] = _index(rules)
    return pages


def _index(rules: list[tuple[ast.Rule, str]]) -> str:
    rows = [(f"[{rule.name}]({rule.name}.md)", rule.docs[0] if rule.docs else "",
             ", ".join(f"`{tag}`" for tag in rule.tags)) for rule, _ in rules]
    return "\n".join([
        "# Shipped rules", "",
        "Each page is made from the rule itself and from the golden file that pins it down; before and after are what "
        "the rule does when this site is built. The language they are written in: [rule language](../../rules.md).", "",
        table(("rule", "equation", "tags"), rows),
        "The facts that comm-shift works with have [a page of their own](linearity-facts.md).", "",
        toctree([*(rule.name for rule, _ in rules), "linearity-facts"], hidden=True)])


def rule_page(rule: ast.Rule, file: str, as_written: ast.Rule | ast.Linear) -> str:
    """The page of one rule.

    Args:
      rule: the rule.
      file: the file it is in, as messages show it.
      as_written: the rule, or the family it belongs to, as the file has it.

    Returns:
      Markdown.

    Raises:
      SystemExit: there is no golden file in which it fires.
    """
    cases = golden_cases(rule.name)
    fires = next((case for case in cases if case.comment.startswith("It fires")), None)
    if fires is None:
        raise SystemExit(f"{GOLDEN}: no golden file in which {rule.name} fires; write one, it makes the rule's page")
    before, after = example(rule.name, fires.text)
    stays = [case.comment.removeprefix(_STAYS) for case in cases if case.comment.startswith(_STAYS)]
    bare = replace(as_written, docs=(), comments=(), trailing="")
    lines = [f"# {rule.name}", "", f"**{rule.docs[0]}**" if rule.docs else "", "", *_prose(rule), "",
             "## Example", "", "The matched ops:", "", fence("hlopat", before),
             *(["become:", "", fence("hlopat", after)] if after else ["go; nothing takes their place.", ""]), ""]
    if stays:
        lines += ["## When it stays away", "", *(f"* {reason}" for reason in dict.fromkeys(stays)), ""]
    lines += [*_conditions(rule), "## How it is known", "",
              f"{how_known(rule)} ([what that means](../../proving.md)). Floats: {_floats(rule)}.", "",
              "## The rule", "", f"In `{file}`. "
              f"Try it: `hlorewrite opt --pass='rules{{only={rule.name}}}' in.mlir`.", "",
              fence("hlopat", print_file(ast.File((bare,))))]
    return "\n".join(lines)


def _floats(item: ast.Rule | ast.Linear) -> str:
    return ", ".join(f"`{name}`" for name in item.floats.names) if item.floats else ""


def _prose(rule: ast.Rule | ast.Linear) -> list[str]:
    return "\n".join(rule.docs[1:]).strip("\n").splitlines()


def _conditions(rule: ast.Rule) -> list[str]:
    rows = [(block.keyword, f"`{expression(statement.expression)}`", _text(statement))
            for block in rule.blocks[1:] for statement in block.statements
            if isinstance(statement, ast.Condition | ast.Let)]
    if not rows:
        return []
    return ["## Conditions", "", "`where` says what the pattern is, `legal` what would be wrong, `cost` what would not "
            "pay.", "", table(("block", "condition", "text when it fails"), rows)]


def _text(statement: ast.Condition | ast.Let) -> str:
    return statement.sentence or failure_text(expression(statement.expression)) or "why, as the analysis found it"


def golden_cases(rule: str) -> list[GoldenModule]:
    """The modules of a rule's golden file; empty when there is none."""
    path = GOLDEN / f"{rule}.mlir"
    if not path.exists():
        return []
    return [case_of(part) for part in re.split(r"^// -----$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)]


def case_of(part: str) -> GoldenModule:
    """One part of a golden file: its describing comment, and its module without comments."""
    comments = re.findall(r"^// (It (?:fires|stays away).*)$", part, re.MULTILINE)
    return GoldenModule(comments[0] if comments else "", _TEST_LINES.sub("", part).strip())


def example(rule: str, text: str) -> tuple[str, str]:
    """What a rule does with a module.

    Args:
      rule: the rule's name.
      text: a module in which it fires.

    Returns:
      The matched ops before, and the ops made or changed, one a line.

    Raises:
      SystemExit: it does not fire.
    """
    module, recorder = parse(text), Recorder(wants_text=True)
    run_passes(module, parse_pipeline(f"rules{{only={rule}}}"), PassContext(listeners=(recorder,)))
    if not recorder.rewrites:
        raise SystemExit(f"the golden file of {rule} says it fires, and it does not")
    first = recorder.rewrites[0]
    return short_lines(first.before), short_lines(first.after)


def short_lines(text: str) -> str:
    """Ops with one attribute a line where they would be longer than a page is wide.

    Example:
      >>> short_lines("%r = op() {a = 1, b = 2}")
      '%r = op() {a = 1, b = 2}'
    """
    return "\n".join(re.sub(r"(, |\{)(?=[a-z]+_[a-z_]+(?: = |[,}]))", lambda m: m.group(1).strip() + "\n    ", line)
                     if len(line) > 90 else line for line in text.splitlines())


def facts_page(facts: list[tuple[ast.Linear, str]]) -> str:
    """All linearity facts on one page."""
    lines = ["# Linearity facts", "",
             "Which ops a [deferred reduction](../../deferred-reductions.md) may pass. `AR` is an all-reduce over some "
             "groups, `+` its reduction. `hlorewrite rules check linearity` executes both sides of every one.", ""]
    for fact, file in facts:
        bare = replace(fact, docs=(), comments=(), trailing="")
        lines += [f"## {fact.name}", "", fact.docs[0] if fact.docs else "", "", *_prose(fact), "",
                  fence("hlopat", print_file(ast.File((bare,)))), f"In `{file}`, for reductions: "
                  f"{', '.join(f'`{kind}`' for kind in fact.kinds.names)}. Floats: {_floats(fact)}. How it is known: "
                  f"{how_known(fact)}.", ""]
    return "\n".join(lines)
