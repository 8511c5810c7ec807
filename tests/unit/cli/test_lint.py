"""``hlorewrite lint``: exit codes, releases, and what only looks like a form XLA gets wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli import lint
from hlorewrite.cli.parser import Parser
from hlorewrite.errors import UsageError
from hlorewrite.hlo.xla_hazards import MISCOMPILATIONS

SITUATIONS = Path(__file__).resolve().parents[2] / "oracle" / "xla_situations"


def forms(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The forms lint finds in a file."""
    parser = Parser()
    lint.add_arguments(parser)
    code = lint.run(parser.parse_args([str(path), "--json", *arguments]))
    forms = [hazard["form"] for hazard in json.loads(capsys.readouterr().out)["hazards"]]
    assert code == (1 if forms else 0)
    return forms


def situation(form: str) -> Path:
    """The file of a form."""
    return next(SITUATIONS.rglob(f"{form.lower()}_*.mlir"))


@pytest.mark.parametrize("version, expected", [("0.10.0", {"U2", "U3"}), ("0.10.1", {"X", "W", "U2", "U3"}),
                                            ("0.11.2", {"X", "W", "U2", "U3"}), ("0.12.0", {"W", "U2", "U3"})])
def test_releases(version: str, expected: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each form has releases of its own."""
    assert {form for form in MISCOMPILATIONS if forms(situation(form), capsys, "--jaxlib", version)} == expected


def test_unknown_release() -> None:
    """A release that is none is a usage error."""
    parser = Parser()
    lint.add_arguments(parser)
    with pytest.raises(UsageError, match="not a release of jaxlib"):
        lint.run(parser.parse_args([str(situation("X")), "--jaxlib", "newest"]))


@pytest.mark.parametrize("form, old, new", [
    # the accumulator is read elsewhere: XLA leaves the all-reduce alone
    ("U2", "= stablehlo.add %iterArg_1, %6 : tensor<4xf32>",
     "= stablehlo.add %iterArg_1, %6 : tensor<4xf32>\n        %seen = stablehlo.tanh %iterArg_1 : tensor<4xf32>"),
    # not a sum
    ("U3", "stablehlo.add %arg8, %arg9 : tensor<f32>", "stablehlo.maximum %arg8, %arg9 : tensor<f32>"),
    # one device in each group
    ("W", "dense<[[0, 1]]> : tensor<1x2xi64>", "dense<[[0], [1]]> : tensor<2x1xi64>"),
])
def test_looks_alike(form: str, old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What XLA leaves alone, or what means the same either way, is not reported."""
    text = situation(form).read_text()
    assert old in text
    path = tmp_path / "changed.mlir"
    path.write_text(text.replace(old, new))
    assert forms(path, capsys) == []


def test_behind_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls are inlined first, as XLA:GPU does."""
    before = situation("U2").read_text()
    text = before.replace(
        "= stablehlo.add %iterArg_1, %6 : tensor<4xf32>",
        "= func.call @sum(%iterArg_1, %6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>")
    assert text != before
    end = text.rindex("}")
    path = tmp_path / "called.mlir"
    path.write_text(text[:end] + "  func.func private @sum(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {\n"
                    "    %z = stablehlo.add %x, %y : tensor<4xf32>\n    return %z : tensor<4xf32>\n  }\n}\n")
    assert forms(path, capsys) == ["U2"]


def warned(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The forms of warnings about a file; they are no findings."""
    parser = Parser()
    lint.add_arguments(parser)
    assert lint.run(parser.parse_args([str(path), "--json"])) == 0
    return [warning["form"] for warning in json.loads(capsys.readouterr().out)["warnings"]]


LOOP = """module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %y = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>,
      source_target_pairs = dense<[[0, 1], [1, 0], [2, 3], [3, 2]]> : tensor<4x2xi64>}> :
      (tensor<4xf32>) -> tensor<4xf32>
  %o:2 = stablehlo.while(%i = %zero, %a = %y) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %s = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %r = stablehlo.maximum %p, %q : tensor<f32>
        stablehlo.return %r : tensor<f32> }) : (tensor<4xf32>) -> tensor<4xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s : tensor<i32>, tensor<4xf32>
  }
  return %o#1 : tensor<4xf32>
}
}
"""


def test_warnings_of_what_inputs_and_flags_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trip count that may differ is warned of although the collective itself makes devices wait for each other."""
    path = tmp_path / "m.mlir"
    path.write_text(LOOP)
    assert warned(path, capsys) == ["trips", "cycles"]
    path.write_text(LOOP.replace("compare LT, %i, %n", "compare LT, %i, %seven").replace(", [2, 3], [3, 2]", "")
                    .replace("tensor<4x2xi64>", "tensor<2x2xi64>"))
    assert warned(path, capsys) == []


BRANCH = """module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
  %o = "stablehlo.case"(%n) ({
    %y = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>,
        source_target_pairs = dense<[[0, 1], [1, 2]]> : tensor<2x2xi64>}> : (tensor<?xf32>) -> tensor<?xf32>
    stablehlo.return %y : tensor<?xf32>
  }, {
    stablehlo.return %x : tensor<?xf32>
  }) : (tensor<i32>) -> tensor<?xf32>
  return %o : tensor<?xf32>
}
}
"""


def test_branches_that_not_all_devices_may_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A permute of dynamic size is looked at too: the devices that its pairs connect wait for each other."""
    path = tmp_path / "m.mlir"
    path.write_text(BRANCH)
    assert warned(path, capsys) == ["branches"]
    path.write_text(BRANCH.replace("[[0, 1], [1, 2]]", "[[0, 0], [1, 1]]"))
    assert warned(path, capsys) == []
    path.write_text(BRANCH.replace('"stablehlo.case"(%n)', '"stablehlo.case"(%k)').replace(
        "  %o =", "  %k = stablehlo.constant dense<1> : tensor<i32>\n  %o ="))
    assert warned(path, capsys) == []


def test_residuals_that_are_offloaded_and_read_in_reverse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import jax
    import jax.export
    import jax.numpy as jnp
    from jax.ad_checkpoint import checkpoint_name

    def gradients(offloaded: list[str]) -> str:
        policy = jax.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[], names_which_can_be_offloaded=offloaded, offload_src="device",
            offload_dst="pinned_host")

        def layer(x, w):
            return checkpoint_name(jnp.tanh(x @ w), "h") @ w.T, None

        def loss(ws, x):
            return jax.lax.scan(jax.checkpoint(layer, policy=policy), x, ws)[0].sum()

        return jax.export.export(jax.jit(jax.grad(loss)), platforms=["cuda"])(
            jnp.ones((4, 8, 8)), jnp.ones((2, 8))).mlir_module()

    path = tmp_path / "m.mlir"
    for offloaded, forms in ((["h"], ["offload"]), ([], [])):
        path.write_text(gradients(offloaded))
        assert warned(path, capsys) == forms


def test_nothing_found_says_what_was_looked_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from hlorewrite.cli.main import guarded
    path = tmp_path / "m.mlir"
    path.write_text(LOOP)
    assert guarded(["lint", str(path)]) == 0
    said = capsys.readouterr().out
    assert "no such form found; looked at 1 all-reduces and 1 loops for 4 forms" in said
    assert "nothing else is checked" in said


def test_prove_names_a_pass_that_changes_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    dump = SITUATIONS.parents[1] / "unit" / "jaxbridge" / "validate_xla" / "dumps" / "code_motion"
    for file in dump.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "module_0001.main.sm_9.0a_gpu_after_optimizations.txt").write_text(
        next(dump.glob("*.0021.*")).read_text().replace("HloModule main,", "HloModule main, is_scheduled=true,"))
    parser = Parser()
    lint.add_arguments(parser)
    assert lint.run(parser.parse_args([str(tmp_path), "--prove"])) == 1
    said = capsys.readouterr().out
    assert "XLA's pass collective-optimizations/while-loop-all-reduce-code-motion changes the program: output 0" in said
