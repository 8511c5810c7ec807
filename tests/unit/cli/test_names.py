"""Names that are refused suggest the closest one, on every surface; help knows pipelines; a bare ``opt`` says so."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest

import hlorewrite
from hlorewrite.cli.main import guarded
from hlorewrite.cli.opt.arguments import prepare
from hlorewrite.errors import UsageError
from hlorewrite.passmanager.named import ABOUT, AUTO, PIPELINES
from hlorewrite.passmanager.spec import parse_pipeline

MODULE = "func.func @f(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"
STEP = jax.jit(lambda x: x)


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mlir").write_text(MODULE)


@pytest.mark.parametrize(("words", "suggestion"), [
    ("help com", "comm"), ("help shared-update", "shard-update"), ("help tme", "time"),
    ("opt x.mlir --pass=com", "comm"), ("opt x.mlir -O tim", "time"), ("exec --pass=com -- true", "comm"),
    ("exec --topolgy=x -- true", "--topology"), ("exec --topology=h20:1x8 -- true", "h200"),
    ("opt x.mlir --remark", "--remarks"), ("opt x.mlir --emit=txt", "text"), ("opt x.mlir --check=inter", "interp"),
    ("opt x.mlir --keep=bettr", "better"), ("opt --list-passes=jsn", "json"),
    ("opt x.mlir --remarks=blockd", "blocked"),
    ("opt x.mlir --target=h20:1x8 -O comm", "h200"), ("compile x.mlir --target=h20:1x8", "h200"), ("rules shw", "show"),
    ("rules show convrt", "convert"), ("pipeline smulate", "simulate"), ("verfy", "verify"), ("--versio", "--version"),
    ("completion bsh", "bash"), ("report x.mlir --topology=h20", "h200"), ("collective all-reduc --bytes=1 "
     "--topology=h200:1x8", "all-reduce"), ("opt x.mlir --pass=comm-shift{memory-budgt=1}", "memory-budget")])
def test_the_command_line_suggests(words: str, suggestion: str, capsys: pytest.CaptureFixture[str]):
    assert guarded(words.split()) == 2
    assert f'did you mean "{suggestion}"?' in capsys.readouterr().err


@pytest.mark.parametrize(("call", "suggestion"), [
    (lambda: hlorewrite.optimize("com"), "comm"), (lambda: hlorewrite.optimize("comshift"), "comm-shift"),
    (lambda: hlorewrite.optimize(STEP, topologie="h200"), "topology"),
    (lambda: hlorewrite.optimize(lambda x: x, topologie="h200"), "topology"),
    (lambda: hlorewrite.optimize(STEP, keep="bettr"), "better"),
    (lambda: hlorewrite.optimize(STEP, topology="h20"), "h200"),
    (lambda: hlorewrite.patch_jit("comm", topologie="h200"), "topology")])
def test_the_decorators_suggest(call, suggestion: str):
    with pytest.raises(UsageError, match=f'did you mean "{suggestion}"'):
        call()


def test_the_package_suggests():
    with pytest.raises(AttributeError, match='did you mean "optimize"'):
        hlorewrite.optimise  # noqa: B018
    assert not hasattr(hlorewrite, "nothing_like_it")


def test_help_lists_the_passes_of_a_pipeline_in_order(capsys: pytest.CaptureFixture[str]):
    assert set(ABOUT) == {*PIPELINES, AUTO}
    for name, text in PIPELINES.items():
        assert guarded(["help", name]) == 0
        said = capsys.readouterr().out
        shown = [line.split()[1] for line in said.splitlines() if line[:4].strip().isdigit()]
        assert shown == [str(step).split()[0] for step in parse_pipeline(text)] and ABOUT[name] in said
    assert guarded(["help", "auto"]) == 0 and "-O comm" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "said"), [
    ([], True), (["--pass=cse"], False), (["--emit=generic"], False), (["-o", "y.mlir"], False)])
def test_a_run_without_passes_says_so(words: list[str], said: bool, capsys: pytest.CaptureFixture[str]):
    assert guarded(["opt", "x.mlir", *words]) == 0
    error = capsys.readouterr().err
    assert ("note: no pass ran; name one, such as -O comm" in error) is said


@pytest.mark.parametrize(("flag", "value"), [("--remarks", "json"), ("--remarks", "applied,blocked"),
                                             ("--stats", "text"), ("--timing", "json")])
def test_a_value_that_would_be_read_as_the_file_is_named(flag: str, value: str) -> None:
    with pytest.raises(UsageError, match=f'{flag}: "{value}" would be read as the file') as caught:
        prepare(["--pass=comm-shift", flag, value, "in.mlir"])
    assert f"write {flag}={value}" in (caught.value.hint or "")
