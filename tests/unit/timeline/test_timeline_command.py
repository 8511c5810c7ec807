"""``hlorewrite timeline`` on a step that XLA compiles for described GPUs, and on what is not one."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpt
import pytest
from event_simulator import EventConstants, EventSimulator
from timeline_schedules import kernel, scheduled

from hlorewrite.cli.main import guarded
from hlorewrite.cost import collective_model, topology
from hlorewrite.cost.kernels.rates import compute_constants, timeline_constants
from hlorewrite.jaxbridge.xla.compile_for import Compilation, compile_for
from hlorewrite.timeline import simulate

FIRST = ["step_s", "compute_s", "communication_s", "exposed_s", "bound_s", "memory_bytes", "collectives"]


@dataclass(frozen=True)
class SimulatedFile:
    """What one run of the command wrote, and the HLO it simulated."""

    made: dict[str, Any]
    events: list[dict[str, Any]]
    page: bytes
    hlo: str


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> SimulatedFile:
    """A GPT step, compiled for eight H200 by the command itself."""
    if importlib.util.find_spec("jax_plugins.xla_cuda13") is None:
        pytest.skip("compiling for described GPUs needs jax-cuda13-plugin: pip install 'hlorewrite[aot]'")
    folder = tmp_path_factory.mktemp("step")
    (folder / "step.export").write_bytes(gpt.export_step(gpt.SIZES["tiny"], platform="cuda"))
    texts = []

    def kept(*args: Any, **options: Any) -> Compilation:
        made = compile_for(*args, **options)
        texts.append(made.hlo)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hlorewrite.jaxbridge.xla.compile_for.compile_for", kept)
        assert guarded(["timeline", str(folder / "step.export"), "--target=h200:1x8", f"--json={folder / 'step.json'}",
                        f"--html={folder / 'step.html'}", f"--perfetto={folder / 'trace.json'}"]) == 0
    return SimulatedFile(json.loads((folder / "step.json").read_text()),
                         json.loads((folder / "trace.json").read_text())["traceEvents"],
                         (folder / "step.html").read_bytes(), texts[0])


@pytest.fixture
def hlo(compiled: SimulatedFile) -> str:
    """The HLO of that step."""
    return compiled.hlo


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)."""
    code = guarded(["timeline", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_step_is_compiled_and_simulated(compiled: SimulatedFile, hlo: str) -> None:
    made = compiled.made
    assert list(made)[:len(FIRST)] == FIRST
    assert made["complete"] and made["memory_bytes"] > 0 and made["collectives"][0]["trips"] == 8
    assert made["step_s"] == pytest.approx(made["compute_s"] + made["exposed_s"])
    assert [one["slowdown"] for one in made["at"]] == [0.0, 0.2] and made["slowdown"] == 0.2
    events = [event for event in compiled.events if event["ph"] == "X"]
    busy = {kind: sum(event["dur"] for event in events if event["args"]["task"] == kind) * 1e-6
            for kind in ("kernel", "wait", "all-reduce")}
    assert busy["kernel"] + busy["wait"] == pytest.approx(made["step_s"], rel=1e-3)
    assert busy["all-reduce"] == pytest.approx(made["communication_s"], rel=1e-3)
    assert b"default-src 'none'" in compiled.page
    same = simulate(hlo, topology("h200:1x8"))
    assert same.step_s == made["step_s"] and "[" in same.collectives[0].tensor
    assert same.collectives[0].source.startswith("examples/gpt.py:")


def test_a_second_simulator_agrees_on_a_compiled_step(hlo: str) -> None:
    cluster, shares = topology("h200:1x8"), compute_constants()
    rate = shares["matmul_efficiency"]["hopper"]
    for slowdown in (0.0, 0.2):
        constants = EventConstants(
            cluster.memory_bytes_per_s * shares["memory_efficiency"], {"f32": cluster.peak_flops["tf32"] * rate},
            timeline_constants()["kernel_launch_s"], slowdown, collective_model(cluster).collective_time)
        total, exposed = EventSimulator(hlo, constants).exposed()
        ours = simulate(hlo, cluster, slowdown=slowdown)
        assert abs(ours.exposed_s - exposed) < 0.02 * ours.step_s
        assert ours.step_s == pytest.approx(total, rel=0.02)


def test_trip_counts_that_xla_does_not_state_are_recovered(hlo: str) -> None:
    lost = re.sub(r'"known_trip_count":\{"n":"\d+"\},?', "", hlo)
    known, found = (simulate(text, topology("h200:1x8"), slowdown=0.0) for text in (hlo, lost))
    assert lost != hlo and found.complete
    assert [one.trips for one in found.collectives] == [one.trips for one in known.collectives]
    assert known.step_s < found.step_s < 1.1 * known.step_s  # conditions run where XLA has no count


def test_the_table_names_line_and_parameter(hlo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.hlo"
    file.write_text(hlo)
    code, printed, _ = run(capsys, str(file), "--target=h200:1x8", "--slowdown=0.5")
    assert code == 0
    assert "exposed at 50%" in printed and "examples/gpt.py:" in printed and "50% slower" in printed


@pytest.mark.parametrize(("words", "code", "says"), [
    (["no.hlo", "--target=h200:1x8"], 2, "no.hlo: no such file; check the path"),
    (["FILE", "--target=cpu:8"], 2, "--target cpu:8 has no cost model"),
    (["FILE", "--target=h900:1x8"], 2, "h900"),
    (["FILE", "--target=h200:1x2"], 2, "runs on 8 devices, but h200:1x2 has 2 GPUs"),
    (["FILE", "--target=h200:1x8", "--slowdown=-1"], 2, "is not a share"),
    (["FILE", "--target=h200:1x8", "--trips=while"], 2, "is not LOOP=N"),
    (["FILE", "--target=h200:1x8", "--module=m"], 2, "--module is for a folder"),
    (["FILE", "--target=h200:1x8", "--kernel-times=FILE"], 2, "cannot be read"),
])
def test_mistakes_are_one_line(words: list[str], code: int, says: str, tmp_path: Path,
                               capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.hlo"
    file.write_text(scheduled(kernel("k", root=True)))
    got, printed, told = run(capsys, *(word.replace("FILE", str(file)) for word in words))
    assert (got, printed) == (code, "") and says in told and told.count("\n") == 1
