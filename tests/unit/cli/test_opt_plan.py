"""``hlorewrite opt --plan``: kept, replayed, refused with exit code 2."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded
from hlorewrite.cli.opt import job
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module

MODULE = """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>  stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_reduce"(%b) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>  stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""


@pytest.fixture
def opt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs ``opt`` on the module in this process; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step.mlir").write_text(MODULE)

    def run(*words: str, passes: str = "comm-shift,rules") -> tuple[int, str, str]:
        code = guarded(["opt", f"--pass-pipeline={passes}", "step.mlir", "--plan=step.plan", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err
    return run


def test_a_plan_is_written_and_replayed_without_passes(opt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code, made, remarks = opt("--remarks")
    assert code == 0 and made.count("all_reduce") == 1 and "applied" in remarks
    shown = json.loads((tmp_path / "step.plan").read_text())
    assert shown["decision"] == {"compiled": "rewritten", "memory": None, "partitioner": "", "passes":
                                 "comm-shift,rules", "reason": "a pass changed it"}
    assert {each["kind"] for each in shown["rewrites"]} == {"applied"} and shown["step"] == "step.mlir"
    assert str(tmp_path) not in json.dumps(shown)

    def refuse(*_, **__):
        raise AssertionError("the passes run again")
    monkeypatch.setattr(job, "run_passes", refuse)
    assert opt("--remarks") == (0, made, remarks)


def test_an_unchanged_module_is_written_as_it_came(opt, tmp_path: Path):
    code, made, _ = opt(passes="collective-cse")
    assert json.loads((tmp_path / "step.plan").read_text())["stored_module"] == []
    assert opt(passes="collective-cse") == (code, made, "") == (0, made, "")


def test_what_does_not_fit_ends_with_two_or_as_the_policy_says(opt, tmp_path: Path):
    opt()
    before = (tmp_path / "step.plan").read_bytes()
    code, out, err = opt(passes="comm-shift")
    assert (code, out) == (2, "") and "passes comm-shift,rules -> comm-shift" in err and err.count("\n") == 1
    code, out, err = opt("--on-mismatch=original", passes="comm-shift")
    assert code == 0 and out.count("all_reduce") == 2 and "the input is written" in err
    assert (tmp_path / "step.plan").read_bytes() == before
    code, _, err = opt("--on-mismatch=replan", passes="comm-shift")
    assert code == 0 and "a new plan is made" in err
    assert opt(passes="comm-shift")[0] == 0
    (tmp_path / "step.mlir").write_text(MODULE.replace("4xf32", "8xf32"))
    code, _, err = opt(passes="comm-shift")
    assert code == 2 and "module " in err
    code, _, err = opt("--memory-budget=1KiB", passes="comm-shift")
    assert code == 2 and "memory_budget (none) -> 1024" in err


@pytest.mark.parametrize(("words", "sentence"), [
    (["--memory-budget=8"], 'a memory budget of "8" has no unit; write "8GiB", say'),
    (["--memory-budget=-1GiB"], "sizes are not negative"),
    (["--memory-budget=auto"], "--memory-budget=auto compiles the input for its devices, but no target was given"),
    (["--memory-budget=8TiB", "--topology=h200:1x8"], "a memory budget of 8.00 TiB is more than one GPU of"),
    (["--memory-budget=8TiB", "--target=h200:1x8"], "a memory budget of 8.00 TiB is more than one GPU of"),
])
def test_budgets_that_are_not_possible(opt, words: list[str], sentence: str):
    code, out, err = opt(*words)
    assert (code, out) == (2, "") and sentence in err and err.count("\n") == 1


@pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                    reason="the CUDA compiler is not installed (extra: aot)")
def test_the_budget_auto_is_in_the_plan(opt, tmp_path: Path):
    code, _, err = opt("--memory-budget=auto", "--target=h200:1x2")
    assert code == 0 and "step.mlir: memory budget 106.67 GiB" in err
    assert json.loads((tmp_path / "step.plan").read_text())["decision"]["memory"] > 100 << 30


@pytest.mark.parametrize("content", [b"", b"\xff", b"{}", b'{"format": "hlorewrite plan", "format_version": 9}'])
def test_what_is_no_plan_ends_with_two_and_stays(opt, tmp_path: Path, content: bytes):
    (tmp_path / "step.plan").write_bytes(content)
    code, out, err = opt()
    assert (code, out) == (2, "") and err.startswith("hlorewrite: error: step.plan: ") and err.count("\n") == 1
    assert (tmp_path / "step.plan").read_bytes() == content


def test_a_folder_is_no_plan(opt, tmp_path: Path):
    (tmp_path / "step.plan").mkdir()
    code, _, err = opt()
    assert code == 2 and "is a directory" in err


@pytest.mark.parametrize("flag", ["--split-input-file", "--trace=t", "--explain=x", "--print-ir-after-all"])
def test_flags_that_show_passes_at_work_are_refused(opt, flag: str):
    code, _, err = opt(flag)
    assert code == 2 and "a plan is replayed without them" in err


def test_a_result_of_another_signature_is_kept_in_no_plan(opt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Such a result may not take the place of the step, so a plan of it would never be replayed."""
    def grown(module: Module, *_: object, **__: object) -> bool:
        module.mlir = parse(MODULE.replace("4xf32", "8xf32"), context=module.context).mlir
        return True
    monkeypatch.setattr(job, "run_passes", grown)
    code, out, err = opt()
    assert (code, out) == (1, "") and "cannot be kept in a plan" in err
    assert not (tmp_path / "step.plan").exists()
