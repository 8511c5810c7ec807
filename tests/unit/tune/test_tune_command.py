"""``hlorewrite tune`` on a step that XLA compiles for described GPUs, and on what it cannot tune."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import gpt
import pytest

from hlorewrite.cli.main import guarded

DESCRIBED = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                               reason="compiling for described GPUs needs jax-cuda13-plugin")
TINY = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"


@DESCRIBED
def test_a_step_is_tuned_and_the_next_run_compiles_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    step = tmp_path / "step.export"
    step.write_bytes(gpt.export_step(gpt.SIZES["tiny"], platform="cuda"))
    words = ["tune", str(step), "--target=h200:1x8", f"--cache={tmp_path / 'cache'}"]
    assert guarded([*words, f"--plot={tmp_path / 'a.svg'}", f"--json={tmp_path / 'a.json'}"]) == 0
    first, made = capsys.readouterr().out, json.loads((tmp_path / "a.json").read_text())
    alone, best = made["points"][0], made["frontier"][0]
    assert not alone["choice"]["passes"] and best["choice"]["passes"]
    assert best["step_s"] < alone["step_s"] and best["executed_bytes"] < alone["executed_bytes"]
    assert alone["compile_s"] and best["compile_s"] and best["python"] in first
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")

    def compiled(*_: object) -> None:
        raise AssertionError("everything is in the cache")

    monkeypatch.setattr("hlorewrite.jaxbridge.against_xla.tuned.scheduled", compiled)
    monkeypatch.setattr("hlorewrite.jaxbridge.against_xla.tuned.compiled", compiled)
    assert guarded(words) == 0
    assert capsys.readouterr().out == first


@DESCRIBED
def test_nothing_fits_in_no_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = tmp_path / "step.export"
    step.write_bytes(gpt.export_step(gpt.SIZES["tiny"], platform="cuda"))
    assert guarded(["tune", str(step), "--target=h200:1x8", "--memory=1KiB", "--no-cache", "--no-compile",
                    "--time-limit=1ms"]) == 1
    assert "no choice fits" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "code", "sentence"), [
    (["--target=cpu:8"], 2, "--target cpu:8 has no cost model; name GPUs such as h200:1x8"),
    (["--target=h200:1x8", "--memory=many"], 2, "many"),
    (["--target=h200:1x8", "--time-limit=0s"], 2, "--time-limit 0s is no time to work in"),
    (["--target=h300:1x8"], 2, "h300"),
])
def test_what_cannot_be_tuned(tmp_path: Path, words: list[str], code: int, sentence: str,
                              capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(TINY)
    assert guarded(["tune", str(path), "--no-cache", *words]) == code
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1
