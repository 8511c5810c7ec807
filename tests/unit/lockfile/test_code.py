"""The code that a plan was made by: this library, passes and natives of the user, and what these import."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_process import warm_cli

from hlorewrite.cli.main import guarded
from hlorewrite.ir.load import parse
from hlorewrite.lockfile.fingerprint import CODE, LIBRARY, folder_digest, library_digest, made_for, users_code
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.register import NATIVES

ROOT = Path(__file__).parents[3]
MODULE = parse("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
RULES = """import "natives.hlopat";
native predicate may_swap(op: Op);
/// a + b = b + a
rule swap {{
  match {{ root %r = stablehlo.add(%a, %b); }}
  types {{ same(%a, %b, %r); }}
  floats exact;
  legal {{ {} }}
  rewrite {{ %n = stablehlo.multiply(%a, %b) like %r; replace %r with %n; }}
}}
"""
NATIVE = """from hlorewrite.rules.match_failure import Answer, MatchFailure
from hlorewrite.rules.register import native
import plan_code_helper


@native
def may_swap(context: object, op: object) -> Answer:
    \"\"\"Whether it may.\"\"\"
    return plan_code_helper.ANSWER or MatchFailure("not any more")
"""
PASS = """from dataclasses import dataclass

from hlorewrite.passmanager.base import Pass
from plan_code_package.inner import changed


@dataclass(frozen=True)
class Mine(Pass):
    name = "mine"

    def run(self, module, ctx):
        return changed(module)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """On the path of imports; what is imported from it is forgotten again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("plan_code")]:
        del sys.modules[name]
    NATIVES.functions.pop("may_swap", None)


# ---- this library


def test_a_plan_holds_the_library_by_content() -> None:
    made = made_for(MODULE, parse_pipeline("comm-shift"), "")
    assert made[LIBRARY] == library_digest() == folder_digest(str(ROOT / "hlorewrite")) and CODE not in made


def test_the_digest_is_one_of_names_and_contents(tmp_path: Path) -> None:
    """Not of where the files are, nor of compiled ones; links are followed."""
    one, other = tmp_path / "one", tmp_path / "other"
    for path, content in (("a.py", "1"), ("passes/b.py", "2"), ("patterns/c.hlopat", "3")):
        (one / path).parent.mkdir(parents=True, exist_ok=True)
        (one / path).write_text(content)
    first = folder_digest(str(one))
    shutil.copytree(one / "passes", tmp_path / "linked")
    shutil.copytree(one, other)
    shutil.rmtree(other / "passes")
    (other / "passes").symlink_to(tmp_path / "linked")
    (other / "__pycache__").mkdir()
    (other / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"1")
    (other / "notes.md").write_text("no code")
    assert folder_digest(str(other)) == first
    for path in ("a.py", "passes/b.py", "patterns/c.hlopat"):
        content = (other / path).read_text()
        (other / path).write_text(content + "#")
        assert folder_digest(str(other)) != first
        (other / path).write_text(content)
    (other / "a.py").rename(other / "d.py")
    assert folder_digest(str(other)) != first


def test_the_digest_is_the_same_in_another_process_and_place(tmp_path: Path) -> None:
    """A wheel has files where a checkout has links."""
    shutil.copytree(ROOT / "hlorewrite", tmp_path / "hlorewrite", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run([sys.executable, "-c", "from hlorewrite.lockfile import fingerprint; "
                           "print(fingerprint.library_digest(), fingerprint.__file__)"], cwd=tmp_path,
                          env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [library_digest(), str(tmp_path / "hlorewrite" / "lockfile" / "fingerprint.py")]


# ---- the user's code


def test_passes_by_content_with_what_they_import(folder: Path) -> None:
    (folder / "plan_code_pass.py").write_text(PASS)
    (folder / "plan_code_package").mkdir()
    (folder / "plan_code_package" / "__init__.py").write_text("")
    (folder / "plan_code_package" / "inner.py").write_text("from . import deeper\n\n\ndef changed(module):\n"
                                                            "    return deeper.VALUE\n")
    (folder / "plan_code_package" / "deeper.py").write_text("import json\nimport numpy\nVALUE = False\n")
    step = importlib.import_module("plan_code_pass").Mine()
    first = users_code([step])
    assert [each.split()[0] for each in first.split(", ")] == [
        "plan_code_package", "plan_code_package.deeper", "plan_code_package.inner", "plan_code_pass"]
    assert users_code([step]) == first and str(folder) not in first
    for path in ("plan_code_pass.py", "plan_code_package/inner.py", "plan_code_package/deeper.py"):
        content = (folder / path).read_text()
        (folder / path).write_text(content + "# another one\n")
        assert users_code([step]) != first
        (folder / path).write_text(content)


def test_natives_by_content_where_a_rule_may_call_them(folder: Path) -> None:
    (folder / "plan_code_helper.py").write_text("ANSWER = True\n")
    (folder / "plan_code_natives.py").write_text(NATIVE)
    (folder / "mine.hlopat").write_text(RULES.format("may_swap(%r);"))
    (folder / "other.hlopat").write_text('import "natives.hlopat";\n')
    importlib.import_module("plan_code_natives")
    step, other = (parse_pipeline(f"rules{{files={name}.hlopat}}") for name in ("mine", "other"))
    first = users_code(step)
    assert [each.split()[0] for each in first.split(", ")] == ["plan_code_helper", "plan_code_natives"]
    assert users_code(other) == "" and users_code(parse_pipeline("rules,comm-shift")) == ""
    (folder / "plan_code_helper.py").write_text("ANSWER = False\n")
    assert users_code(step) != first


def test_a_stale_plan_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The predicate says no where it said yes; in processes of their own, as modules are imported once."""
    (folder / "plan_code_helper.py").write_text("ANSWER = True\n")
    (folder / "nat.py").write_text(NATIVE)
    (folder / "mine.hlopat").write_text(RULES.format("may_swap(%r);"))
    (folder / "in.mlir").write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { "
                                    "%r = stablehlo.add %a, %a : tensor<4xf32> return %r : tensor<4xf32> }")

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([warm_cli(), "-m", "hlorewrite", "opt", "in.mlir", "--rules=mine.hlopat",
                               "--natives=nat.py", "--plan=a.plan", "-o", "out.mlir", *more], capture_output=True,
                              text=True, check=False, env={**os.environ, "PYTHONPATH": f"{ROOT}:{folder}"})
    assert run().returncode == 0 and run().returncode == 0
    assert "multiply" in (folder / "out.mlir").read_text()
    (folder / "plan_code_helper.py").write_text("ANSWER = False\n")
    refused = run()
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert "the plan of in.mlir does not fit: code " in refused.stderr
    again = run("--on-mismatch=replan")
    assert again.returncode == 0 and "multiply" not in (folder / "out.mlir").read_text()
    assert run().returncode == 0


def test_another_library_is_refused(folder: Path, capsys: pytest.CaptureFixture[str],
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "in.mlir").write_text(MODULE.text())
    words = ["opt", "in.mlir", "--pass=comm-shift", "--plan=a.plan", "-o", "out.mlir"]
    assert guarded(words) == 0 and guarded(words) == 0
    monkeypatch.setattr("hlorewrite.lockfile.fingerprint.library_digest", lambda: "0123456789abcdef")
    assert guarded(words) == 2
    assert "the plan of in.mlir does not fit: library " in capsys.readouterr().err
