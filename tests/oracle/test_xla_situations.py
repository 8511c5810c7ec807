"""XLA's own situations of all-reduce code motion, the programs it gets wrong, and those that must stay.

Each file in ``xla_situations`` says in its header what XLA does and what comm-shift does; ``docs/xla-situations.md``
and the generated page next to it hold the same as tables.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from xla_pages import row_of

from hlorewrite.analysis.block_frequency import executed_times
from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.program import prepare
from hlorewrite.cli import lint
from hlorewrite.cli.parser import Parser
from hlorewrite.ir.edit import Editor
from hlorewrite.ir.inline import inline_calls
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

FOLDER = Path(__file__).resolve().parent / "xla_situations"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "xla-situations.md"
FILES = sorted(FOLDER.rglob("*.mlir"), key=lambda path: path.name)
WRONG_IN_XLA = {"x": "X", "w": "W", "u2": "U2", "u3": "U3", "42": "W", "43": "W"}


@dataclass(frozen=True)
class Situation:
    """One file: its header and its text."""

    text: str
    xla: str
    measured: str
    here: str
    why: str
    pipeline: str
    tolerance: float | None


def read(path: Path) -> Situation:
    """Reads a file."""
    text = path.read_text()
    said = {key: value.rstrip(".") for key, value in re.findall(r"^// (\w+): (.*)$", text, re.MULTILINE)}
    here, _, why = said["HERE"].partition("; ")
    tolerance = float(said["TOLERANCE"]) if "TOLERANCE" in said else None
    return Situation(text, said["XLA"], said["MEASURED"], here, why, said.get("PASS", "comm-shift"), tolerance)


def executed(module: Module) -> float:
    """How often reductions run in total."""
    view = View(module.clone())
    inline_calls(Editor(view))
    return sum(executed_times(op)[0] for op in view.ops("stablehlo.all_reduce", "stablehlo.reduce_scatter"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_situation(path: Path) -> None:
    """What the header says happens, and values stay."""
    situation = read(path)
    before = parse(situation.text)
    after = before.clone()
    changed = run_passes(after, parse_pipeline(situation.pipeline), PassContext())
    assert ("moves" if changed else "stays") == situation.here
    if not changed:
        assert str(after.mlir) == str(before.mlir)
        return
    assert executed(after) < executed(before)
    for seed in range(3):
        report = check(before, after, seed=seed, tolerance=situation.tolerance)
        assert report.equal, report.table()


def test_all_are_there() -> None:
    """52 situations of XLA's tests, four it gets wrong, six that must stay."""
    numbers = [int(path.stem[:2]) for path in FILES if path.stem[:2].isdigit()]
    assert numbers == list(range(1, 53))
    assert {path.stem.split("_")[0] for path in FILES} >= {"x", "w", "u2", "u3", "s1", "s2", "s3", "s4", "s5", "s6"}


def test_difference_is_explained() -> None:
    """Where comm-shift does something else than XLA, the header says why; tables of the page agree."""
    rows = DOCS.read_text()
    for path in FILES:
        situation = read(path)
        assert situation.why or situation.here in (situation.xla, situation.measured), path.stem
        cells = row_of(path)
        assert cells[4] == situation.here and cells[5] == situation.why
        if not path.stem[:2].isdigit():  # the others are in a generated table
            assert f"| {' | '.join(cells)} |" in rows, path.stem


def test_lint_knows_what_xla_moves() -> None:
    """Where XLA:GPU was seen to move what must stay, lint warns; 23 is a matter of rounding only."""
    seen = {path.stem.split("_")[0] for path in FILES
            if read(path).measured == "moves" and read(path).here == "stays"}
    assert seen == {*WRONG_IN_XLA, "23"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lint(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lint finds what XLA gets wrong, and nothing else."""
    parser = Parser()
    lint.add_arguments(parser)
    expected = WRONG_IN_XLA.get(path.stem.split("_")[0])
    assert lint.run(parser.parse_args([str(path), "--json"])) == (1 if expected else 0)
    printed = json.loads(capsys.readouterr().out)
    assert [hazard["form"] for hazard in printed["hazards"]] == ([expected] if expected else [])
    assert all(re.search(r"\.mlir:\d+(:\d+)?$", hazard["location"]) for hazard in printed["hazards"])


# ---- the four programs with values, written down once more in numpy

SHARDED = np.array([[1, 2, 3, 4], [10, 20, 30, 40]], np.float32)
PLACE = 2


def run_on_two_devices(name: str) -> np.ndarray:
    """What each of two devices holds after comm-shift, on the inputs above."""
    path = next(FOLDER.rglob(f"{name}_*.mlir"))
    module = parse(path.read_text())
    run_passes(module, parse_pipeline("comm-shift"), PassContext())
    ones = np.ones(4, np.float32)
    outcome = prepare(module, "main").run([[ones, SHARDED.reshape(8), SHARDED.reshape(8), np.int32(PLACE)]])
    assert not outcome.diverged
    return outcome.outputs[0][0].reshape(2, 4)


def scattered(base: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """Every update added at one place."""
    out = base.copy()
    out[PLACE] += updates.sum()
    return out


def test_values_of_x() -> None:
    """The first device's accumulator counts, and every device's updates, in every iteration."""
    held = [np.ones(4, np.float32), np.ones(4, np.float32)]
    for _ in range(4):
        total = scattered(held[0], SHARDED[0]) + scattered(np.zeros(4, np.float32), SHARDED[1])
        held = [total, total]
    np.testing.assert_allclose(run_on_two_devices("x"), held)


def test_values_of_w() -> None:
    """The accumulator doubles in every iteration."""
    held = [np.zeros(4, np.float32), np.zeros(4, np.float32)]
    for _ in range(4):
        total = scattered(held[0], SHARDED[0]) + scattered(held[1], SHARDED[1])
        held = [total, total]
    np.testing.assert_allclose(run_on_two_devices("w"), held)


def test_values_of_u2() -> None:
    """The first device adds nothing, the other one every sum."""
    total = 4 * SHARDED.sum(axis=0)
    np.testing.assert_allclose(run_on_two_devices("u2"), [np.zeros(4), total])


def test_values_of_u3() -> None:
    """The condition sees the whole sum, so the loop ends after the first iteration."""
    np.testing.assert_allclose(run_on_two_devices("u3"), [SHARDED.sum(axis=0)] * 2)
