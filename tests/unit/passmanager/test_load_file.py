"""``hlorewrite.load`` and ``--load``: passes and natives of the user's own files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hlorewrite
from hlorewrite.cli.main import guarded
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.passmanager.registry import find_pass
from hlorewrite.rules.register import NATIVES
from hlorewrite.util.registered import LOADED

PASS = '''"""A pass outside of the repository."""
from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.passes.api import COLLECTIVES, NO_FUSE, Module, Pass, PassContext, ir


@dataclass(frozen=True)
class MarkAll(Pass):
    """Marks every collective.

    Attributes:
      most: how many.
    """

    name: ClassVar[str] = "mark-all"
    most: int = 10

    def run(self, module: Module, ctx: PassContext) -> bool:
        view, editor = ctx.view(module), ctx.editor(module)
        found = [op for op in view.ops(*COLLECTIVES) if NO_FUSE not in op.attributes][:self.most]
        for op in found:
            editor.set_attribute(op, NO_FUSE, ir.UnitAttr.get(editor.context))
        return bool(found)
'''
NATIVE = "from hlorewrite.rules import native\n\n\n@native\ndef my_own_test(context, op):\n    return True\n"
RULE = """native predicate my_own_test(op: Op);
rule mine {
  match {
    %i = stablehlo.negate(%x);
    root %o = stablehlo.negate(%i);
  }
  where { my_own_test(%o); }
  types any;
  floats exact;
  rewrite { replace %o with %x; }
}
"""
MODULE = """module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.collective_broadcast"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PASS)
    (tmp_path / "natives.py").write_text(NATIVE)
    (tmp_path / "mine.hlopat").write_text(RULE)
    (tmp_path / "in.mlir").write_text(MODULE)
    yield
    LOADED.clear()
    for name in [name for name, function in NATIVES.functions.items() if function.__module__.startswith("file ")]:
        del NATIVES.functions[name]


def test_a_pass_of_a_file_runs_by_name(capsys: pytest.CaptureFixture[str]):
    assert guarded(["opt", "in.mlir", "--load=mine.py", "--pass=mark-all{most=1}"]) == 0
    assert "hlorewrite.no_fuse" in capsys.readouterr().out


def test_help_and_lists_show_it(capsys: pytest.CaptureFixture[str]):
    assert guarded(["help", "mark-all", "--load", "mine.py"]) == 0
    assert "most: an integer, default 10\n      how many." in capsys.readouterr().out
    assert guarded(["opt", "--load=mine.py", "--list-passes=text"]) == 0
    assert "Passes of mine.py:\n  mark-all" in capsys.readouterr().out
    assert guarded(["help", "mark-al", "--load", "mine.py"]) == 2
    assert 'did you mean "mark-all"?' in capsys.readouterr().err


def test_natives_of_a_file_hold_in_rule_files(capsys: pytest.CaptureFixture[str]):
    assert guarded(["opt", "in.mlir", "--load=natives.py", "--rules=mine.hlopat"]) == 0
    assert guarded(["rules", "check", "--load=natives.py", "--programs=3", "mine.hlopat", "--json"]) in (0, 1, 3)
    said = capsys.readouterr().out
    assert json.loads(said[said.index("[\n"):])[0]["rules"] == 1
    assert guarded(["rules", "list", "--load=natives.py", "mine.hlopat"]) == 0


def test_in_a_program_it_is_loaded_by_call_and_again_when_it_changes(tmp_path: Path):
    made = hlorewrite.load("mine.py")
    assert (made.passes, made.natives) == (("mark-all",), ())
    first = find_pass("mark-all")
    assert hlorewrite.load("mine.py") == made and find_pass("mark-all") is first
    (tmp_path / "mine.py").write_text(PASS.replace('"mark-all"', '"mark-some"'))
    assert hlorewrite.load(tmp_path / "mine.py").passes == ("mark-some",)
    with pytest.raises(UsageError, match='unknown pass "mark-all"'):
        find_pass("mark-all")
    (tmp_path / "natives.py").write_text(NATIVE + "# changed\n")
    assert hlorewrite.load("natives.py").natives == ("my_own_test",)


@pytest.mark.parametrize(("text", "sentence"), [
    (None, "bad.py: no such file; correct the path"),
    ("def f(:\n", "bad.py:1:7: is not Python: invalid syntax; correct this line"),
    ("\n\nraise KeyError('x')\n", "bad.py:3: raises KeyError: 'x'; correct this line"),
    ("import nowhere_at_all\n", "bad.py:1: raises ModuleNotFoundError: No module named 'nowhere_at_all'"),
    ("raise SystemExit(0)\n", "bad.py:1: ends the process; correct this line"),
    ("x = 1\n", "bad.py: registers no pass and no native; derive a class from hlorewrite.passes.api.Pass"),
    (PASS.replace('"mark-all"', '"comm-shift"'),
     'bad.py:8: the pass MarkAll is called "comm-shift", a name that a built-in pass has already; rename it'),
    (PASS.replace('"mark-all"', '"cse"'), 'bad.py:8: the pass MarkAll is called "cse", a name that a pass of MLIR has'),
    (PASS.replace('    name: ClassVar[str] = "mark-all"\n', ""), "bad.py:8: the pass MarkAll has no name; write name"),
    (NATIVE.replace("my_own_test", "one_use"), 'bad.py:4: native "one_use" of file '),
    ("\0", "bad.py: is not Python: ")])
def test_what_is_wrong_with_a_file_is_one_line(text: str | None, sentence: str, tmp_path: Path,
                                              capsys: pytest.CaptureFixture[str]):
    if text is not None:
        (tmp_path / "bad.py").write_text(text)
    assert guarded(["opt", "in.mlir", "--load=bad.py"]) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_two_files_may_not_share_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "other.py").write_text(PASS)
    assert guarded(["opt", "in.mlir", "--load=mine.py", "--load=other.py"]) == 2
    assert f'other.py:8: the pass MarkAll is called "mark-all", a name that {tmp_path}/mine.py has already' in \
        capsys.readouterr().err


def test_data_is_never_run():
    for name in ("mine.hlopat", "in.mlir"):
        with pytest.raises(HlorewriteError, match=r"is a rule file, not Python code|is not a Python file"):
            hlorewrite.load(name)


PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
@jax.jit
@jax.shard_map(mesh=mesh, in_specs=P("d"), out_specs=P())
def step(x):
    return jax.lax.psum(x, "d")
print(step(jnp.ones(2)).tolist())
"""


def test_exec_loads_it_in_the_program(tmp_path: Path):
    (tmp_path / "train.py").write_text(PROGRAM)
    root = Path(hlorewrite.__file__).parents[1]
    environment = dict(os.environ, PYTHONPATH=str(root), JAX_PLATFORMS="cpu",
                       XLA_FLAGS="--xla_force_host_platform_device_count=2")
    done = subprocess.run([sys.executable, "-m", "hlorewrite", "exec", "--load=mine.py", "--pass=mark-all",
                           "--keep=always", "--report=report.json", "--", sys.executable, "train.py"],
                          capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "[2.0]\n"), done.stderr
    modules = json.loads((tmp_path / "report.json").read_text())["modules"]
    assert [each["outcome"] for each in modules if each["name"] == "jit_step"] == ["rewritten"]
