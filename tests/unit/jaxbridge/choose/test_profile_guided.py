"""A way guided by a profile of predicted times: chosen, and repeated by other processes and plans."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import megatron_steps
import pytest
import ring_steps
from megatron_steps import MegatronModel

from hlorewrite.errors import InputError
from hlorewrite.hlo.published_flags import PROFILE, STREAMS
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.measured import scheduled, timed
from hlorewrite.jaxbridge.choose import ways
from hlorewrite.jaxbridge.choose.chosen_step import replayed_step, rewrite_step
from hlorewrite.jaxbridge.choose.planned import planned_step
from hlorewrite.jaxbridge.choose.ways import GUIDED
from hlorewrite.jaxbridge.step.options import OPTIMIZE, StepOptions
from hlorewrite.jaxbridge.step.report import Rewritten
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.profile_files import with_text
from hlorewrite.jaxbridge.xla.target import parse_target

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                reason="the CUDA compiler is not installed (extra: aot)")
AUTO = StepOptions.of(OPTIMIZE, {})


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> tuple[Module, DeviceSet]:
    """Ring attention that asks for keys and values before it uses them."""
    module = parse(ring_steps.exported("first"), name="ring")
    return module, place_of(parse_target("h200:1x8"), module)


@pytest.fixture
def chosen(ring: tuple[Module, DeviceSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rewritten:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    return rewrite_step(ring[0].clone(), AUTO, ring[1])[0]


def test_it_is_chosen_and_its_step_is_that_of_a_compilation_with_its_options(
        ring: tuple[Module, DeviceSet], chosen: Rewritten, capfd: pytest.CaptureFixture[str]) -> None:
    comparison = chosen.report.comparison
    assert comparison is not None and GUIDED in comparison.chosen
    steps = {row.name: row.measured.counted_s for row in comparison.rows if row.measured is not None}
    without = comparison.chosen.removesuffix(f", {GUIDED}")
    assert (steps[comparison.chosen] or 1) < 0.99 * (steps[without] or 0)
    capfd.readouterr()
    again = timed(scheduled(chosen.module, ring[1], chosen.report.compiler_options)[0], ring[1].topology)
    assert again.counted_s == steps[comparison.chosen]
    assert "profile_guided_latency_estimator" not in capfd.readouterr().err  # XLA warns about what a profile lacks


def test_memory_that_no_pass_lacks_is_not_offered(ring: tuple[Module, DeviceSet], tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(ways, "MUCH_EXPOSED", 0.0)
    comparison = rewrite_step(ring[0].clone(), AUTO, ring[1])[0].report.comparison
    assert comparison is not None
    why = {row.name: row.why for row in comparison.rows if row.measured is None}
    assert why["time with free memory"] == "no pass of time lacks memory"


def test_another_process_without_that_file_repeats_it(ring: tuple[Module, DeviceSet], chosen: Rewritten, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    other = replayed_step(ring[0].clone(), AUTO, ring[1], chosen.how)
    here, there = (str(made.report.compiler_options[PROFILE]) for made in (chosen, other))
    assert here != there and Path(here).read_text() == Path(there).read_text()
    assert other.bytecode == chosen.bytecode


def test_a_process_does_not_take_a_path_from_another(ring: tuple[Module, DeviceSet], chosen: Rewritten) -> None:
    options = chosen.how.rpartition("options ")[2]
    assert "cost_us" in options
    forged = chosen.how.replace(options, json.dumps({PROFILE: "/etc/hostname"}))
    with pytest.raises(InputError, match="something other than predicted times"):
        replayed_step(ring[0].clone(), AUTO, ring[1], forged)


def test_a_plan_holds_the_profile_and_replays_it(ring: tuple[Module, DeviceSet], tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    options = StepOptions.of(OPTIMIZE, {"plan": str(tmp_path / "ring.plan")})
    made, _ = planned_step(ring[0].clone(), options, ring[1])
    assert "made and written" in made.report.plan
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    again = StepOptions.of(OPTIMIZE, {"plan": str(tmp_path / "ring.plan")})
    found, _ = planned_step(ring[0].clone(), again, ring[1])
    assert "replayed from" in found.report.plan and found.module.digest() == made.module.digest()
    assert with_text(found.report.compiler_options) == with_text(made.report.compiler_options)
    assert str(tmp_path) not in (tmp_path / "ring.plan").read_text()
    steps = [timed(scheduled(each.module, ring[1], each.report.compiler_options)[0], ring[1].topology).counted_s
             for each in (made, found)]
    assert steps[0] == steps[1]


def test_users_who_profile_themselves_are_left_alone(ring: tuple[Module, DeviceSet], tmp_path: Path) -> None:
    own = tmp_path / "own.pbtxt"
    own.write_text('costs { name: "fusion.1" cost_us: 1.000 }\n')
    place = replace(ring[1], flags={**ring[1].flags, PROFILE: str(own)})
    comparison = rewrite_step(ring[0].clone(), AUTO, place)[0].report.comparison
    assert comparison is not None and not any(GUIDED in row.name for row in comparison.rows)


def test_streams_are_guided_too_and_keep_their_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named pipeline that depends on XLA's scheduler; options alone do not replace it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = MegatronModel(layers=4, width=2048, heads=16, rows=4, length=1024, vocab=8192, model=4, data=2)
    module = parse(megatron_steps.exported(model), name="step")
    found = rewrite_step(module, StepOptions.of(OPTIMIZE, {"passes": "streams"}), place_of(parse_target("h200:2x4"),
                                                                                           module))[0].report
    assert found.comparison is not None
    rows = {row.name: dict(row.flags) for row in found.comparison.rows if row.measured is not None}
    assert STREAMS.items() <= rows[f"streams, {GUIDED}"].items() and PROFILE in rows[f"streams, {GUIDED}"]
    assert not any(name.startswith("XLA alone,") for name in rows)
