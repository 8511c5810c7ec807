"""The benchmark of growth: its programs are valid and grow, and its exponents are those of the times."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hlorewrite.ir.load import parse
from hlorewrite.ir.view import nested_ops
from hlorewrite.rules.library import load_text


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script, which finds its programs next to it."""
    monkeypatch.syspath_prepend(str(Path("bench/overhead").resolve()))
    yield importlib.import_module("scaling")
    for name in ("scaling", "scaling_programs", "generate_step"):
        sys.modules.pop(name, None)


def test_programs_are_valid_and_as_large_as_asked(bench: ModuleType) -> None:
    """Within a factor of two."""
    for family in bench.FAMILIES:
        for size in (400, 800):
            module = parse(family.text(size))
            assert not module.verify(), family.name
            assert size / 2 < len(nested_ops(module.operation)) < 2 * size, family.name
    assert len(load_text(bench.rules_text(3)).rules) == 3


def test_exponents(bench: ModuleType) -> None:
    """A power law is found again; short times and small sizes do not count."""
    assert bench.slope([(x, 3 * x**1.7) for x in (10, 100, 1000)]) == pytest.approx(1.7)
    points = [bench.ScalingPoint(x, x**2 * 1e-8) for x in (1000, 2000, 4000, 8000, 16000)]
    series = bench.ScalingSeries("f", "p", points)
    assert series.exponent == pytest.approx(2) and series.fails(1.1) and not series.fails(2.1)
    assert bench.ScalingSeries("f", "p", points[:2]).exponent is None
    assert bench.ScalingSeries("f", "p", [bench.ScalingPoint(0, 0.0, failed="died")]).fails(1.1)
