"""A circular pipeline in halves: the forward pass alone, and what XLA makes of it."""

from __future__ import annotations

import fusion_modules as m
import pytest
import ring_steps
from generators.code_mutation import replace_source

from hlorewrite.ir import View
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.interleave_halves.interleave_halves import InterleaveHalves
from hlorewrite.passes.sink_waits import SinkWaits
from hlorewrite.passmanager.base import Pass, PassContext

CLUSTER = "h200:1x8"


@pytest.fixture(scope="module")
def step() -> Module:
    """A train step of eight stages."""
    return parse(ring_steps.exported("pipeline"), name="step")


def after(step: Module, *passes: Pass) -> Module:
    """The step after some passes."""
    module = step.clone()
    for each in passes:
        assert each.run(module, PassContext(topology=CLUSTER))
    assert not module.verify()
    return module


def test_a_loop_that_gains_nothing_stays_whole(step: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of the backward pass would save less than it takes to read the weights twice."""
    assert len(View(after(step, InterleaveHalves())).ops("stablehlo.collective_permute")) == 3
    replace_source("hlorewrite.passes.interleave_halves.interleave_halves", "if by_block[op.block] > 0}", "if False}",
                   monkeypatch)
    assert not InterleaveHalves().run(step.clone(), PassContext(topology=CLUSTER))


def test_halves_that_read_one_row_of_a_table_stay_apart(step: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA would compute both in one kernel, since both read the step's number from ``jnp.arange``."""
    apart = m.exposed_seconds(after(step, InterleaveHalves()))
    assert apart < 0.85 * m.exposed_seconds(step)
    replace_source("hlorewrite.passes.interleave_halves.emit",
                   "if not shape_of(value) and not self._is_read_from_tensor(value):", "if not shape_of(value):",
                   monkeypatch)
    assert m.exposed_seconds(after(step, InterleaveHalves())) > 1.15 * apart


def test_less_than_half_stays_exposed(step: Module) -> None:
    assert m.exposed_seconds(after(step, InterleaveHalves(), SinkWaits())) < 0.5 * m.exposed_seconds(step)
