"""The benchmark of growth of subcommands: its inputs are valid, and what once grew with the square is asked once."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hlorewrite.audit import accumulation
from hlorewrite.audit.accumulation import Accumulations
from hlorewrite.audit.loop_variance import LoopVariance
from hlorewrite.hlo import xla_hazards
from hlorewrite.hlo.collectives import collectives
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.hlo.readers import Readers
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View

FOLDER = Path(__file__).resolve().parents[3] / "bench" / "overhead"


@pytest.fixture(scope="module")
def growth() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_growth", FOLDER / "growth.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["bench_growth"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_input_holds_as_many_collectives_as_asked_for(growth: ModuleType) -> None:
    for make, _ in growth.CASES.values():
        text = make(5)
        if text.startswith("HloModule"):
            assert len(collectives(text)) == 5
        else:
            assert len(View(parse(text)).ops("stablehlo.all_reduce")) == 5


def test_the_audit_looks_at_a_loop_once_for_all_its_sums(growth: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for size in (10, 40):
        asked: list[str] = []
        whole = accumulation.element_of
        monkeypatch.setattr(accumulation, "element_of",
                            lambda body, name, whole=whole, asked=asked: (asked.append(name), whole(body, name))[1])
        module = parse_hlo(growth.accumulating_hlo(size))
        found = Accumulations(module, Readers(module), LoopVariance(module))
        assert all(found.of(module.computations["body"], f"r{number}").out_of == ("body",) for number in range(size))
        counts.append(len(asked))
        monkeypatch.undo()
    assert counts[1] <= 4 * counts[0] + 4


def test_lint_asks_for_uniformity_once_for_equal_groups(growth: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    whole = xla_hazards.Uniformity
    monkeypatch.setattr(xla_hazards, "Uniformity", lambda view, groups: (made.append(groups), whole(view, groups))[1])
    xla_hazards.find_hazards(View(parse(growth.accumulating_loop(6))))
    assert len(made) == 1
