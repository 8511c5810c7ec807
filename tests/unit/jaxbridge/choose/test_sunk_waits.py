"""A circular pipeline whose waits are sunk: ``auto`` chooses that, and other processes repeat it."""

from __future__ import annotations

import importlib.util

import pytest
import ring_steps

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.choose.chosen_step import replayed_step, rewrite_step
from hlorewrite.jaxbridge.step.options import OPTIMIZE, StepOptions
from hlorewrite.jaxbridge.step.report import Rewritten
from hlorewrite.jaxbridge.step.rewrite import continued, rewrite
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passes.interleave_halves.interleave_halves import InterleaveHalves
from hlorewrite.passes.sink_waits import SinkWaits

CLUSTER = "h200:1x8"
AUTO = StepOptions.of(OPTIMIZE, {})


@pytest.fixture(scope="module")
def pipeline() -> Module:
    """A train step of eight stages."""
    return parse(ring_steps.exported("pipeline"), name="pipeline")


def test_further_passes_give_what_all_passes_in_one_run_give(pipeline: Module) -> None:
    halves, sink = InterleaveHalves(), SinkWaits()
    whole = rewrite(pipeline.clone(), (halves, sink), topology=CLUSTER)
    first = rewrite(pipeline.clone(), (halves,), topology=CLUSTER)
    before = first.module.text()
    later = continued(first, (halves,), (sink,), topology=CLUSTER)
    assert first.module.text() == before != later.module.text()
    assert later.bytecode == whole.bytecode and later.report.digest == whole.report.digest
    assert later.report.remarks == whole.report.remarks and later.report.rewrites == whole.report.rewrites
    assert (later.report.pipeline, later.report.before, later.report.after) == (
        whole.report.pipeline, whole.report.before, whole.report.after)


@pytest.fixture(scope="module")
def decided(pipeline: Module) -> tuple[Rewritten, DeviceSet]:
    if importlib.util.find_spec("jax_plugins.xla_cuda13") is None:
        pytest.skip("the CUDA compiler is not installed (extra: aot)")
    place = place_of(parse_target(CLUSTER), pipeline)
    return rewrite_step(pipeline.clone(), AUTO, place)[0], place


def test_auto_chooses_it_and_another_process_repeats_it(pipeline: Module, decided: tuple[Rewritten, DeviceSet]) -> None:
    made, place = decided
    assert made.report.comparison is not None and made.report.comparison.chosen.startswith("time, sunk waits")
    other = replayed_step(pipeline.clone(), AUTO, place, made.how)
    assert other.bytecode == made.bytecode
    assert other.report.digest == made.report.digest
