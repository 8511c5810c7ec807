"""``hlorewrite report --frontier``."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from hlorewrite.cli.main import main
from hlorewrite.errors import UsageError
from hlorewrite.tune.memory_frontier import MOST_RUNS, BudgetPoint, memory_frontier

LAYERS = str(Path(__file__).resolve().parents[2] / "lit/passes/gather-once/stack-of-layers.mlir")


def test_a_budget_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", LAYERS, "--topology=h200:1x4", "--frontier", "--memory-budget=160B"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:5] == ["memory", "kept", "B", "executed", "B"]
    assert [line.split()[:3] for line in lines[1:3]] == [["0", "960", "1.000"], ["*", "160", "240"]]


def test_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", LAYERS, "--topology=h200:1x4", "--frontier", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(point["kept_bytes"], point["executed_bytes"]) for point in found["points"]] == [(0, 960), (160, 240)]
    assert found["chosen"] == found["points"][0] and found["budget_bytes"] == 0


def test_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert main(["report", LAYERS, "--topology=h200:1x4", "--frontier", f"--plot={tmp_path / 'f.svg'}"]) == 0
    assert "<svg" in (tmp_path / "f.svg").read_text()


@pytest.mark.parametrize("flags, sentence", [
    (["--frontier"], "name the cluster"),
    (["--topology=h200:1x4", "--frontier", "--vs=x.mlir"], "--vs and --frontier cannot be used together"),
    (["--topology=h200:1x4", "--plot=f.svg"], "--plot belongs to --frontier"),
    (["--topology=h200:1x4", "--memory-budget=1GiB"], "--memory-budget belongs to --frontier"),
])
def test_usage(flags: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        main(["report", LAYERS, *flags])


def test_a_module_without_collectives(tmp_path: Path) -> None:
    plain = tmp_path / "plain.mlir"
    plain.write_text("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
    with pytest.raises(UsageError, match="contains no collective"):
        main(["report", str(plain), "--topology=h200:1x4", "--frontier"])


def test_the_number_of_runs_is_bounded() -> None:
    """Where each byte makes a difference."""
    runs = []

    def measure(budget: int) -> BudgetPoint:
        runs.append(budget)
        kept = min(budget, 1 << 20)
        return BudgetPoint(kept, (1 << 20) - kept, 1.0)

    points = memory_frontier(measure)
    assert len(runs) == MOST_RUNS
    assert all(a.kept_bytes < b.kept_bytes and a.executed_bytes > b.executed_bytes
               for a, b in pairwise(points))
