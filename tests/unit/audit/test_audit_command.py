"""``hlorewrite audit`` and ``lint`` on HLO text, and on the dump of a step that XLA compiled."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import gpt
import pytest
from audit_steps import REDUCED, looped
from expert_steps import ExpertModel, exported
from printed_page import assert_page_prints

from hlorewrite.cli.main import guarded

needs_cuda_compiler = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                         reason="the CUDA compiler is not installed (extra: aot)")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)."""
    code = guarded([*words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What XLA dumps while it compiles a step."""
    folder = tmp_path_factory.mktemp("dump")
    (folder / "step.export").write_bytes(gpt.export_step(gpt.SIZES["tiny"], platform="cuda"))
    assert guarded(["compile", str(folder / "step.export"), "--target=h200:1x8",
                    f"--xla-flag=xla_dump_to={folder / 'dump'}", "--xla-flag=xla_dump_hlo_as_text=true"]) == 0
    return folder / "dump"


@needs_cuda_compiler
def test_the_passes_are_tried_on_the_program_of_a_dump(dump: Path, tmp_path: Path,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "audit", str(dump), "--target=h200:4x8", "--json")
    made = json.loads(text)
    assert code == 0 and made["complete"]
    (one,) = made["findings"]
    assert one["form"] == "accumulated" and one["calls"] == 8 and one["calls_after"] == 1
    rows = {row["name"]: row for row in made["rewritten"]["rows"]}
    alone, ours = rows["XLA alone"], rows[made["rewritten"]["chosen"]]
    assert (alone["calls"], ours["calls"]) == (8, 1) and alone["executed_bytes"] == 8 * ours["executed_bytes"]
    assert ours["step_s"] < alone["step_s"] == pytest.approx(made["step_s"], rel=0.02)
    page = tmp_path / "page.html"
    code, text, _ = run(capsys, "audit", str(dump), "--target=h200:4x8", f"--report={page}")
    assert code == 0 and made["rewritten"]["reason"] in text
    assert_page_prints(page.read_text(), made["rewritten"])
    assert "What each pass changed: " in page.read_text()
    code, text, _ = run(capsys, "audit", str(dump), "--target=h200:4x8", "--no-rewrite")
    assert code == 0 and "before optimisations" not in text


@needs_cuda_compiler
def test_a_module_is_decided_as_opt_decides_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step, page = tmp_path / "step.export", tmp_path / "page.html"
    step.write_bytes(exported(ExpertModel(rows=8, length=512, slots=160, width=512, hidden=2048, layers=2)))
    code, text, _ = run(capsys, "audit", str(step), "--target=h200:1x8", "--json", f"--report={page}")
    made = json.loads(text)["rewritten"]
    assert code == 0
    code, text, _ = run(capsys, "opt", str(step), "-O", "auto", "--target=h200:1x8", "--json", "-o",
                        str(tmp_path / "out.mlir"))
    said = json.loads(text)
    assert code == 0 and made["chosen"] == said["chosen"]
    assert {row["name"]: row["step_s"] for row in made["rows"]} == {row["name"]: row["step_s"] for row in said["rows"]}
    assert_page_prints(page.read_text(), made)
    assert "tokens to experts" in made["chosen"] and "expert_steps.py:" in made["made"][0]
    code, text, _ = run(capsys, "audit", str(step), "--target=h200:1x8", "--no-rewrite")
    assert code == 0 and "tokens to experts" not in text
    code, text, _ = run(capsys, "audit", str(step), "--target=h200:1x8", "-O", "time", "--json",
                        "--xla-flag=xla_gpu_enable_latency_hiding_scheduler=false")
    made = json.loads(text)  # the schedule and the table are of the same compilation
    assert made["rewritten"]["rows"][0]["step_s"] == pytest.approx(made["step_s"], rel=0.02)


@needs_cuda_compiler
def test_lint_reads_the_program_of_a_dump(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, "lint", str(dump), "--json")
    made = json.loads(text)
    assert code == 0 and made["all_reduces"] > 1 and made["note"] == ""
    program = next(dump.glob("*after_spmd_partitioner.txt"))
    kept = program.read_text()
    try:
        program.write_text("HloModule broken")
        code, _, error = run(capsys, "lint", str(dump))
        assert code == 2 and "before optimisations cannot be read" in error
        code, text, _ = run(capsys, "audit", str(dump), "--target=h200:1x8")
        assert code == 0 and "cannot rewrite the program: the program before optimisations cannot be read" in text
    finally:
        program.write_text(kept)


def test_a_text_alone_and_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step, profile = tmp_path / "step.hlo", tmp_path / "sum.csv"
    step.write_text(looped(REDUCED))
    profile.write_text("Total Time (ns),Instances,Name\n8000000,16,ncclDevKernel_AllReduce_Sum_f32_RING_LL\n")
    code, text, _ = run(capsys, "audit", str(step), "--target=h200:1x8", f"--profile={profile}")
    assert code == 0
    assert "reduced in every iteration of a loop that only sums the results up" in text
    assert "profile, matched by kind" in text and "measured us" in text and "  500  " in text
    code, text, _ = run(capsys, "lint", str(step))
    assert code == 0 and "before XLA's optimisations" in text


def test_a_report_needs_the_program_before_optimisations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "step.hlo").write_text(looped(REDUCED))
    code, _, error = run(capsys, "audit", str(tmp_path / "step.hlo"), "--target=h200:1x8", "--report=page.html")
    assert code == 2 and "name the folder of a dump" in error and error.count("\n") == 1


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "step.hlo").write_text(looped(REDUCED) + '// "outer_dimension_partitions"')
    code, _, error = run(capsys, "audit", str(tmp_path / "step.hlo"), "--target=h200:1x8")
    assert code == 2 and "XLA:CPU's" in error and error.count("\n") == 1


def test_hlo_without_a_schedule_is_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "step.hlo").write_text(looped(REDUCED).replace(", is_scheduled=true", ""))
    code, text, _ = run(capsys, "audit", str(tmp_path / "step.hlo"), "--target=h200:1x8")
    assert code == 0 and "all-reduce" in text


def test_unknown_trips_and_custom_calls_are_counted_as_unknown(tmp_path: Path,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    called = looped(REDUCED, known=False).replace(
        "%scaled = ", '%other = f32[4]{0} custom-call(%eighth), custom_call_target="__cudnn$fmha"\n  %scaled = ')
    (tmp_path / "step.hlo").write_text(called)
    code, text, _ = run(capsys, "audit", str(tmp_path / "step.hlo"), "--target=h200:1x8")
    assert code == 0 and "at least" in text and "an unknown number of calls" in text
    assert sum(line.startswith("unknown: ") for line in text.splitlines()) == 2
    code, text, _ = run(capsys, "audit", str(tmp_path / "step.hlo"), "--target=h200:1x8", "--trips=loop=8")
    assert code == 0 and "8 calls" in text
