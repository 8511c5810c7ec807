"""XLA at its best over published flag sets: which is named, and what is left out."""

from __future__ import annotations

import importlib.util

import gpt
import pytest
from jaxlib import version as jaxlib_version

from hlorewrite.errors import InputError, UsageError
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline.comparison import compared
from hlorewrite.jaxbridge.baseline.flag_sets import FLAG_SETS, best_of_xla
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured
from hlorewrite.jaxbridge.baseline.modules import compared_modules
from hlorewrite.jaxbridge.step.options import as_passes
from hlorewrite.jaxbridge.step.rewrite import rewrite


def step(seconds: float | None, untimed: str = "") -> Measured:
    return Measured(8, 800, 1400, 1000, 1.0, "", step_s=seconds, exposed_s=seconds, untimed=untimed)


def test_the_shortest_step_is_named_with_its_flags():
    def compile_with(flags: Flags) -> Measured:
        return step(0.5 if "xla_gpu_all_reduce_combine_threshold_bytes" in flags else 0.8)

    best = best_of_xla(step(1.0), compile_with, {})
    assert best.name == "pipelined, combined" and best.measured.step_s == 0.5
    assert best.flags == next(each.flags for each in FLAG_SETS if each.name == best.name)
    table = compared(step(1.0), step(0.1), "8 x GPU").lines()
    assert len(table) == 3 and "step" in table[0]


def test_the_defaults_stay_where_no_set_is_better():
    assert best_of_xla(step(1.0), lambda flags: step(1.0), {}).name == "defaults"


def test_sets_that_cannot_be_compared_are_named():
    def compile_with(flags: Flags) -> Measured:
        if "xla_gpu_enable_while_loop_double_buffering" in flags:
            raise InputError("XLA does not compile the module (too bad)")
        return step(None, "while.3 runs an unknown number of iterations") if len(flags) > 4 else step(0.9)

    best = best_of_xla(step(1.0), compile_with, {})
    assert best.name == "latency hiding"
    assert best.left_out == ("pipelined, combined: while.3 runs an unknown number of iterations",
                             "pipelined, double-buffered: XLA does not compile the module (too bad)")
    with pytest.raises(UsageError, match="there is none: no GPUs"):
        best_of_xla(step(None), compile_with, {})


def test_flags_of_the_user_stay():
    seen: list[Flags] = []

    def compile_with(flags: Flags) -> Measured:
        seen.append(flags)
        return step(1.0)

    best_of_xla(step(1.0), compile_with, {"xla_gpu_enable_latency_hiding_scheduler": False})
    assert len(seen) == len(FLAG_SETS)
    assert not any("xla_gpu_enable_latency_hiding_scheduler" in flags for flags in seen)


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                    reason="the CUDA compiler is not installed (extra: aot)")
def test_every_set_compiles_for_described_gpus():
    original = parse(gpt.export_step(gpt.SIZES["tiny"], platform="cuda"), name="step")
    made = rewrite(original.clone(), as_passes("comm-shift"), topology="h200:1x8")
    comparison = compared_modules(original, made.module, "h200:1x8", best=True)
    assert comparison is not None and comparison.kept and comparison.best is not None
    if jaxlib_version.__version_info__ < (0, 11):  # a flag may be gone in later releases; it is named then
        assert comparison.best.left_out == ()
    shown = comparison.text()
    assert f"XLA, {comparison.best.name}" in shown and "exposed" in shown
    times = [side.step_s for side in (comparison.ours, comparison.best.measured, comparison.alone)]
    assert None not in times and times == sorted(times)  # type: ignore[type-var]
