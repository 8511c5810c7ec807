"""``hlorewrite tune`` on a step that XLA compiles for described GPUs, and on what it cannot tune."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
from pathlib import Path

import pytest
from tuned_steps import exported

from hlorewrite.cli.main import guarded
from hlorewrite.jaxbridge.choose.tune_process import TuneProcess

DESCRIBED = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                               reason="compiling for described GPUs needs jax-cuda13-plugin")
TINY = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"


@DESCRIBED
def test_a_step_is_tuned_and_the_next_run_compiles_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    step = tmp_path / "step.export"
    step.write_bytes(exported())
    words = ["tune", str(step), "--target=h200:1x8", f"--cache={tmp_path / 'cache'}"]
    assert guarded([*words, f"--plot={tmp_path / 'a.svg'}", f"--json={tmp_path / 'a.json'}"]) == 0
    first, made = capsys.readouterr().out, json.loads((tmp_path / "a.json").read_text())
    alone, best = made["points"][0], made["frontier"][0]
    assert not alone["choice"]["passes"] and best["choice"]["passes"]
    assert best["step_s"] < alone["step_s"] and best["executed_bytes"] < alone["executed_bytes"]
    assert alone["compile_s"] and best["compile_s"] and best["python"] in first
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")

    def asked(process: TuneProcess, request: dict, **_: object) -> dict:
        assert "begin" in request, "everything is in the cache"
        return {}

    monkeypatch.setattr(TuneProcess, "_ask", asked)
    assert guarded(words) == 0
    assert capsys.readouterr().out == first


@DESCRIBED
def test_nothing_fits_in_no_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    step = tmp_path / "step.export"
    step.write_bytes(exported())
    words = ["tune", str(step), "--target=h200:1x8", f"--cache={tmp_path / 'cache'}", "--no-compile"]
    plan = tmp_path / "a.plan"
    assert guarded([*words, "--time-limit=1ms", f"--plan={plan}"]) == 1
    assert capsys.readouterr().out == ("time ran out before 4 more were tried; with a cache, the same command "
                                       "continues with them\nno choice was measured\n")
    monkeypatch.setattr("hlorewrite.tune.search.PASSES", ())
    assert guarded([*words, "--memory=1KiB", f"--plan={plan}"]) == 1
    assert capsys.readouterr().out.endswith("no choice fits\n") and not plan.exists()


SIXTEEN = """module attributes {mhlo.num_partitions = 16 : i32} {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
}"""
GPUS = "--target=h200:1x8"


@pytest.mark.parametrize(("text", "words", "code", "sentence"), [
    (TINY, ["--target=cpu:8"], 2, "--target cpu:8 has no cost model; name GPUs such as h200:1x8"),
    (TINY, [], 2, "the following arguments are required: --target"),
    (TINY, [GPUS, "--memory=many"], 2, '"many" is not a size'),
    (TINY, [GPUS, "--memory=-1GiB"], 2, "a size of -1GiB; sizes are not negative"),
    (TINY, [GPUS, "--memory", "-1GiB"], 2, "--memory"),
    (TINY, [GPUS, "--memory=120"], 2, "--memory 120 has no unit; write 120GiB, say"),
    (TINY, [GPUS, "--memory=0GiB"], 2, "--memory 0GiB leaves no memory for the step"),
    (TINY, [GPUS, "--memory=200GiB"], 2, "--memory 200GiB is more than one GPU of h200:1x8 has ("),
    (TINY, [GPUS, "--time-limit=0s"], 2, "--time-limit 0s is not a positive duration"),
    (TINY, ["--target=h300:1x8"], 2, "h300"),
    (TINY, [GPUS, "--plan=plans"], 2, "--plan plans would be read as a folder of plans; use a name that ends in .plan"),
    (TINY, [GPUS, "--plot=a.pdf"], 2, '"a.pdf" is neither PNG nor SVG'),
    (TINY, [GPUS, "--cache=a.mlir/cache"], 1,
     "a.mlir/cache: cannot be a cache (Not a directory); pass a writable folder with --cache"),
    ("func.func @main(", [GPUS], 2, "a.mlir:1:"),
    (None, [GPUS], 2, "a.mlir: "),
    pytest.param(SIXTEEN, [GPUS], 2, "the module is for 16 devices but target h200:1x8 has 8", marks=DESCRIBED),
])
def test_what_cannot_be_tuned(tmp_path: Path, text: str | None, words: list[str], code: int, sentence: str,
                              capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = [Path("a.mlir")] if text is not None else []
    for path in before:
        path.write_text(text or "")
    cache = [] if any(word.startswith("--cache") for word in words) else ["--no-cache"]
    assert guarded(["tune", "a.mlir", *cache, *words]) == code
    said = capsys.readouterr()
    assert sentence in said.err and said.err.count("\n") == 1 and not said.out
    assert list(Path().iterdir()) == before


@DESCRIBED
@pytest.mark.parametrize("flag", ["--plot=full.svg", "--plan=full.plan", "--json=full.json"])
def test_a_full_disk_leaves_nothing_partial(tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hlorewrite.tune.search.PASSES", ("comm-shift",))
    monkeypatch.setattr("hlorewrite.tune.search.BUCKETS", (1 << 20,))
    Path("step.export").write_bytes(exported())
    real = os.fdopen

    def full(handle: int, *rest: object, **named: object) -> object:
        if "hlorewrite-" in os.readlink(f"/proc/self/fd/{handle}"):
            os.close(handle)
            raise OSError(errno.ENOSPC, "")
        return real(handle, *rest, **named)  # type: ignore[call-overload]

    monkeypatch.setattr("hlorewrite.util.write.os.fdopen", full)
    assert guarded(["tune", "step.export", GPUS, "--no-cache", "--no-compile", flag]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cannot be written (No space left on device)" in said
    assert [path.name for path in Path().iterdir()] == ["step.export"]
