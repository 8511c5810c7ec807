"""The kit for other repositories: golden files under pytest and lit, and the fixture ``rewrite``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hlorewrite
from hlorewrite.testing import golden
from hlorewrite.testing.plugin import run_on

PACKAGE = Path(hlorewrite.__file__).parents[1]
PASS = '''from dataclasses import dataclass
from typing import ClassVar

from hlorewrite.passes.api import Module, Pass, PassContext, ir, tell


@dataclass(frozen=True)
class NegateTwice(Pass):
    """Takes out pairs of negations."""

    name: ClassVar[str] = "negate-twice"

    def run(self, module: Module, ctx: PassContext) -> bool:
        view, editor = ctx.view(module), ctx.editor(module)
        for op in view.ops("stablehlo.negate"):
            inner = op.operands[0].owner
            if isinstance(inner, ir.Operation | ir.OpView) and inner.operation.name == "stablehlo.negate":
                tell(ctx, "applied", self.name, "two negations are none", view, op)
                editor.replace(op.results[0], inner.operation.operands[0])
                editor.erase(op)
                editor.erase(inner.operation)
                return True
        return False
'''
MODULE = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
GOLDEN = f"""// RUN: %hlorewrite opt %s --load=%root/mine.py --pass=negate-twice --check=interp | %filecheck %s

// CHECK-NOT: negate
// CHECK: return
{MODULE}"""
TESTS = '''from pathlib import Path


def test_pass(rewrite):
    made = rewrite(Path("tests/pair.mlir"), passes="negate-twice", load="mine.py")
    assert made.changed and "negate" not in made.text
    assert made.remarks == ("applied: negate-twice: two negations are none",)
    made.assert_same_values()
'''


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Another repository with a pass, a golden file, and tests."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'mine'\n")
    (tmp_path / "mine.py").write_text(PASS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = "hlorewrite.testing"\n')
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "pair.mlir").write_text(GOLDEN)
    (tests / "plain.mlir").write_text(MODULE)
    (tests / "test_mine.py").write_text(TESTS)
    (tests / "lit.cfg.py").write_text("from hlorewrite.testing.lit_config import configure\n"
                                      "configure(config, lit_config, __file__)\n")
    return tmp_path


def _run(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(PACKAGE), JAX_PLATFORMS="cpu")
    return subprocess.run([sys.executable, *words], cwd=repository, capture_output=True, text=True, check=False,
                          env=environment)


def test_pytest_runs_golden_files_and_offers_the_fixture(repository: Path):
    (repository / "tests" / "wrong.mlir").write_text(GOLDEN.replace("CHECK-NOT: negate", "CHECK: negate"))
    done = _run(repository, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 1 and "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    # Where CI is set, pytest writes the whole message below this line, so it need not be the last but one.
    assert any(line.startswith("FAILED") and "wrong.mlir" in line for line in done.stdout.splitlines()), done.stdout
    assert "RUN: hlorewrite opt" in done.stdout and "Traceback" not in done.stdout


def test_lit_runs_the_same_files(repository: Path):
    done = _run(repository, "-c", "from lit.main import main; main()", "-v", "tests", "--filter=pair")
    assert done.returncode == 0 and "Passed" in done.stdout, done.stdout + done.stderr
    assert (repository / "build" / "lit").is_dir()


def test_checks_are_written_for_it(repository: Path):
    name = "tests/pair.mlir"
    done = _run(repository, "-m", "hlorewrite.testing.update_checks", name)
    assert done.stdout == f"updated {name}\n", done.stderr
    assert "// CHECK-NEXT: return %[[ARG_0]]" in (repository / name).read_text()
    (repository / name).write_text(GOLDEN.replace("| %filecheck", "2>%t.err | %filecheck"))
    done = _run(repository, "-m", "hlorewrite.testing.update_checks", name)
    assert done.stdout == f"updated {name}\n", done.stderr
    (repository / "mine.py").unlink()
    done = _run(repository, "-m", "hlorewrite.testing.update_checks", name)
    assert done.returncode == 1 and "its RUN line fails: exit code 2: " in done.stderr
    assert not list(repository.rglob("*.err"))


def test_values_that_differ_fail():
    wrong = run_on(MODULE, passes="cse")
    changed = run_on(MODULE.replace("return %1", "return %0"), passes="cse")
    wrong.assert_same_values()
    with pytest.raises(AssertionError, match="seed 0:"):
        type(wrong)(wrong.before, changed.after, True, ()).assert_same_values()


RULE = """rule negate-pair {
  match {
    %i = stablehlo.negate(%x);
    root %o = stablehlo.negate(%i);
  }
  types any;
  floats exact;
  rewrite {
    replace %o with %x;
    erase %i;
  }
}
"""


def test_a_rule_file_is_applied(tmp_path: Path):
    (tmp_path / "mine.hlopat").write_text(RULE)
    made = run_on(MODULE, rules=tmp_path / "mine.hlopat")
    assert made.changed and "negate" not in made.text
    made.assert_same_values()


def test_what_is_no_golden_file_is_not_collected(tmp_path: Path):
    (tmp_path / "plain.mlir").write_text(MODULE)
    assert golden.run_lines(tmp_path / "plain.mlir", tmp_path) == []
    assert golden.root_of(tmp_path / "plain.mlir") == tmp_path


def test_outside_of_a_repository_the_root_is_where_the_outermost_conftest_is(tmp_path: Path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for folder in (tmp_path / "a", inner):
        (folder / "conftest.py").touch()
    assert golden.root_of(inner / "plain.mlir") == tmp_path / "a"
    (inner / "setup.cfg").touch()
    assert golden.root_of(inner / "plain.mlir") == inner
