"""``-O comm`` on random programs: values stay, nothing communicates more, a second run finds nothing."""

from __future__ import annotations

import random

import pytest
from generators.random_programs import random_program

from hlorewrite.checks.reference.check import check
from hlorewrite.cost.report.collectives import collectives_of
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline


def executed(module: Module) -> int:
    """Executed bytes of all collectives."""
    return sum(executed.payload_bytes * executed.trips for executed in collectives_of(module.clone())[1])


@pytest.mark.parametrize("seed", range(100, 116))
def test_comm(seed: int) -> None:
    """One program."""
    module = parse(random_program(random.Random(seed)))
    before = module.clone()
    passes = parse_pipeline("comm")
    run_passes(module, passes, PassContext(topology="h200:1x8"))
    report = check(before, module, seed=seed)
    assert report.equal, report.table()
    assert executed(module) <= executed(before)
    text = module.text()
    run_passes(module, passes, PassContext(topology="h200:1x8"))
    assert module.text() == text
