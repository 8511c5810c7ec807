"""Each remark that a pass can emit about something that stays has a section of the page that explains it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlorewrite.rules.listener import CONDITION, PAGE, SECTIONS, help_of

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("passes/**/*.py"), *ROOT.glob("hlorewrite/jaxbridge/xla/*.py"),
                ROOT / "hlorewrite/pipelines/adapter/by_mesh.py", ROOT / "hlorewrite/rules/apply/driver.py"])
POSITIONS = {"tell": (1, 3), "Remark": (0, 2), "_wait": (0, 1), "_note": (0, 3)}
"""Function that emits a remark -> positions of the kind and of the sentence among its arguments."""


def text_of(node: ast.expr, constants: dict[str, str]) -> str:
    """The fixed parts of a sentence; ``x`` for what is computed."""
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(text_of(part, constants) for part in node.values)
        case ast.Name():
            return constants.get(node.id, "")
        case _:
            return "x"


def sentences(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, kind, sentence) of the remarks of a file whose sentence is not passed in from elsewhere."""
    tree = ast.parse(path.read_text("utf-8"))
    constants = {target.id: node.value.value for node in tree.body if isinstance(node, ast.Assign)
                 for target in node.targets
                 if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        kind, sentence = POSITIONS.get(name, (0, 99))
        if len(node.args) > sentence:
            text = text_of(node.args[sentence], {key: str(value) for key, value in constants.items()})
            if text.strip("x"):
                yield node.lineno, ast.unparse(node.args[kind]), text


def test_each_missed_remark_has_a_section() -> None:
    found = [(path.relative_to(ROOT).as_posix(), line, kind, text) for path in FILES
             for line, kind, text in sentences(path) if "missed" in kind]
    assert len(found) >= 12
    assert not [one for one in found if not help_of("missed", one[3], False)]


def test_each_blocked_or_unprofitable_remark_of_these_passes_has_a_section() -> None:
    """A sentence that is computed, or of a pass that moves nothing (split-stages), needs none."""
    found = [(path.relative_to(ROOT).as_posix(), line, text) for path in FILES
             for line, kind, text in sentences(path) if "blocked" in kind or "unprofitable" in kind]
    assert len(found) >= 25
    assert not [one for one in found if not help_of("blocked", one[2], False)]


def test_each_section_is_on_the_page() -> None:
    page = (ROOT / "docs" / PAGE).read_text("utf-8")
    anchors = {re.sub(r"[^\w\s-]", "", title).strip().lower().replace(" ", "-")
               for title in re.findall(r"^## (.*)$", page, re.MULTILINE)}
    assert anchors == {*(section.anchor for section in SECTIONS), CONDITION}


@pytest.mark.parametrize(("sentence", "anchor"), [
    ("stablehlo.tanh needs the reduced value in the loop: not linear", "the-result-is-needed-in-the-loop"),
    ("x needs the reduced value in the loop: the branch taken differs between devices of a group: y",
     "a-value-differs-between-devices"),
    ("the all-reduce stays: its groups overlap", "groups-and-reducers-that-are-not-understood"),
    ("the gather stays: z", "broadcasts-instead-of-gathers-and-sums"),
])
def test_the_first_section_that_fits_counts(sentence: str, anchor: str) -> None:
    assert help_of("blocked", sentence, False) == f"{PAGE}#{anchor}"


def test_remarks_of_rules_have_the_general_section() -> None:
    assert help_of("missed", "the groups differ", True) == f"{PAGE}#{CONDITION}"
    assert help_of("missed", "the groups differ", False) == ""
