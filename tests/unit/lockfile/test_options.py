"""The XLA options that a plan file may set: those that ``hlorewrite tune`` tries, with the values it tries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hlorewrite.cli.main import guarded
from hlorewrite.errors import PlanMismatch
from hlorewrite.hlo.published_flags import FLAG_SETS, PROFILE
from hlorewrite.lockfile.document import PlanDocument, read_document
from hlorewrite.lockfile.tuned import CHOSEN_BY, options_of, options_text

TRIED = [(name, value) for each in FLAG_SETS for name, value in each.flags.items()]
FORGED = {
    "xla_gpu_load_autotune_results_from": "/etc/hostname", "xla_gpu_ptx_compiler_extra_flags": "-o=pwned",
    "xla_gpu_asm_extra_flags": "-o=pwned", "xla_gpu_mock_custom_calls": True, "xla_gpu_cuda_data_dir": "/tmp",
    "xla_gpu_analytical_latency_estimator_options": "x", "xla_gpu_dump_llvmir": True, "xla_dump_to": "/tmp",
    "xla_gpu_crash_on_verification_failures": True, "xla_gpu_override_gemm_autotuner": "x", "xla_gpu_autotune_level": 0,
    "xla_gpu_enable_latency_hiding_scheduler": "/etc/hostname", "xla_gpu_all_reduce_combine_threshold_bytes": -1,
    PROFILE: "/etc/hostname", "": True,
}


def tuned(options: Any) -> PlanDocument:
    shown = options if isinstance(options, dict) else {}
    return PlanDocument("step", {"compiler_options": options_text(shown)}, "", {
        "chosen_by": CHOSEN_BY, "compiled": "original", "compiler_options": options}, {}, ())


@pytest.mark.parametrize("name, value", TRIED)
def test_what_tune_tries_is_taken(name: str, value: str | bool | int) -> None:
    assert options_of(tuned({name: value}), "a.plan") == {name: value}


def test_a_profile_of_predicted_times_is_taken_as_text() -> None:
    options = {PROFILE: 'costs { name: "fusion.1" cost_us: 1.500 }\n'}
    assert options_of(tuned(options), "a.plan") == options
    assert "\n" not in options_text(options) and "cost_us" not in options_text(options)


@pytest.mark.parametrize("name", FORGED)
def test_all_else_is_refused(name: str) -> None:
    for options in ({name: FORGED[name]}, {**dict(TRIED[:1]), name: FORGED[name]}):
        with pytest.raises(PlanMismatch, match=f'contains "{name}", which a plan may not set') as caught:
            options_of(tuned(options), "a.plan")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [[True], {"a": 1}, None, 1.5])
def test_values_of_other_kinds_are_refused(value: Any) -> None:
    with pytest.raises(PlanMismatch, match="which a plan may not set"):
        options_of(tuned({TRIED[0][0]: value}), "a.plan")


def test_the_command_line_refuses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, with exit code 2; the checksum is right."""
    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
    assert guarded(["opt", "in.mlir", "--plan=a.plan", "-o", "out.mlir"]) == 0
    made = read_document(Path("a.plan").read_bytes(), "a.plan")
    forged = {"xla_gpu_asm_extra_flags": "-o=pwned"}
    decision = {**made.decision, "chosen_by": CHOSEN_BY, "compiler_options": forged}
    wanted = {**made.made_for, "compiler_options": options_text(forged)}
    Path("a.plan").write_text(replace(made, decision=decision, made_for=wanted).text())
    capsys.readouterr()
    assert guarded(["opt", "in.mlir", "--plan=a.plan", "-o", "out.mlir"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and 'a.plan: contains "xla_gpu_asm_extra_flags", which a plan may not set' in error
