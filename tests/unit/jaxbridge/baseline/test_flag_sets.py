"""XLA at its best over published flag sets: which is named, and what is left out."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import gpt
import pytest
from jaxlib import version as jaxlib_version
from timeline_steps import LARGE, STEPS, exported_step

from hlorewrite.errors import InputError, UsageError
from hlorewrite.hlo.published_flags import PROFILED, STREAMS, flag_sets, published_values
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline.baseline_run import FLAG_SETS, best_of_xla
from hlorewrite.jaxbridge.baseline.comparison import compared, compared_modules
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, scheduled, timed
from hlorewrite.jaxbridge.step.options import as_passes
from hlorewrite.jaxbridge.step.rewrite import rewrite
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target

AOT = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                         reason="the CUDA compiler is not installed (extra: aot)")


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
            raise InputError("XLA cannot compile the module (too bad)")
        return step(None, "while.3 runs an unknown number of iterations") if len(flags) > 4 else step(0.9)

    best = best_of_xla(step(1.0), compile_with, {})
    assert best.name == "latency hiding"
    assert best.left_out == ("pipelined, combined: while.3 runs an unknown number of iterations",
                             *(f"pipelined, {name}double-buffered: XLA cannot compile the module (too bad)"
                               for name in ("", "combined, ")))
    with pytest.raises(UsageError, match="none is known: no GPUs"):
        best_of_xla(step(None), compile_with, {})


def test_sums_in_another_order_are_no_better_step():
    assert best_of_xla(step(0.30317599226300646), lambda flags: step(0.30317599226300623), {}).name == "defaults"


def test_each_release_has_its_own_names():
    """Since 0.11.1 an option names the mode; the older names are still known to XLA_FLAGS."""
    for release, name in (((0, 10, 2), "xla_gpu_enable_pipelined_all_gather"),
                          ((0, 11, 0), "xla_gpu_enable_pipelined_all_gather"),
                          ((0, 11, 1), "xla_gpu_pipeline_all_gather"),
                          ((0, 12, 0), "xla_gpu_pipeline_all_gather"), ((1, 0), "xla_gpu_pipeline_all_gather")):
        sets = flag_sets(release)
        assert [each.name for each in sets if name in each.flags] == [each.name for each in FLAG_SETS[1:]]
    assert flag_sets(jaxlib_version.__version_info__) == FLAG_SETS
    older, newer = ({name for each in flag_sets(release) for name in each.flags} for release in ((0, 10, 2), (0, 12)))
    assert set(published_values()) == older | newer | {*STREAMS, *PROFILED} and len(older - newer) == 3


def test_flags_of_the_user_stay():
    seen: list[Flags] = []

    def compile_with(flags: Flags) -> Measured:
        seen.append(flags)
        return step(1.0)

    best_of_xla(step(1.0), compile_with, {"xla_gpu_enable_latency_hiding_scheduler": False})
    assert len(seen) == len(FLAG_SETS)
    assert not any("xla_gpu_enable_latency_hiding_scheduler" in flags for flags in seen)
    seen.clear()
    best_of_xla(step(1.0), compile_with, {"xla_gpu_enable_pipelined_all_reduce": False})  # in the older spelling
    assert not any(name.endswith(("pipeline_all_reduce", "pipelined_all_reduce")) for flags in seen for name in flags)


@AOT
def test_every_set_compiles_for_described_gpus():
    original = parse(gpt.export_step(gpt.SIZES["tiny"], platform="cuda"), name="step")
    made = rewrite(original.clone(), as_passes("comm-shift"), topology="h200:1x8")
    comparison = compared_modules(original, made.module, "h200:1x8", best=True)
    assert comparison is not None and comparison.kept and comparison.best is not None
    assert comparison.best.left_out == ()
    shown = comparison.text()
    assert f"XLA, {comparison.best.name}" in shown and "exposed" in shown
    times = [side.step_s for side in (comparison.ours, comparison.best.measured, comparison.alone)]
    assert None not in times and times == sorted(times)  # type: ignore[type-var]


@AOT
def test_a_set_shortens_the_step_of_a_scanned_gpt():
    """Two gathers of a loop, or its all-reduces, run while it computes only where the loop is unrolled."""
    small = replace(LARGE, layers=2, width=512, heads=4, seq=256, vocab=4096, micro_batches=4)
    module = parse(exported_step(STEPS[0], small, 8), name="step")
    place = place_of(parse_target("h200:1x8"), module)
    alone = timed(scheduled(module, place, {})[0], place.topology)
    best = best_of_xla(alone, lambda flags: timed(scheduled(module, place, flags)[0], place.topology), {})
    assert best.left_out == () and best.name != "defaults" and best.measured.exposed_s < alone.exposed_s
