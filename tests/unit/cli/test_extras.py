"""What is not installed is named in one line, with the extra that brings it; what works without it works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hlorewrite.util.optional_dependencies import EXTRAS

ROOT = Path(__file__).resolve().parents[3]
STEP = ("module attributes {mhlo.num_partitions = 2 : i32} {\n"
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n}")
RESHARD = ["reshard", "--shape=1000,1000", "--src-mesh=2x4", "--src-spec=gpu,-", "--dst-mesh=3x1",
           "--dst-spec=gpu,-"]
HIDE = "import sys; sys.modules[{!r}] = None; from hlorewrite.cli.main import entry; sys.argv[0] = 'h'; entry()"


def run(hidden: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line where a module cannot be imported."""
    return subprocess.run([sys.executable, "-c", HIDE.format(hidden), *words], capture_output=True, text=True, cwd=ROOT,
                          input=STEP)


@pytest.mark.parametrize(("hidden", "extra", "words"), [
    ("jax_plugins", "aot", ["compile", "-", "--target", "h200:1x2"]),
    ("matplotlib", "viz", [*RESHARD, "--gantt", "plan.svg"]),
])
def test_one_line_names_the_extra(hidden: str, extra: str, words: list[str]) -> None:
    done = run(hidden, *words)
    assert done.returncode in (1, 2)
    assert done.stderr.count("\n") == 1 and f"pip install 'hlorewrite[{extra}]'" in done.stderr, done.stderr


def test_the_kit_for_other_repositories_names_its_extra(tmp_path: Path) -> None:
    hide = "import runpy, sys; sys.modules[{!r}] = None; sys.argv = ['-m']; runpy.run_module({!r})"
    done = subprocess.run([sys.executable, "-c", hide.format("pytest", "hlorewrite.testing.update_checks")],
                          capture_output=True, text=True, cwd=ROOT)
    line = "hlorewrite.testing needs pytest, lit and filecheck: pip install 'hlorewrite[testing]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
    (tmp_path / "golden.mlir").write_text("// RUN: %hlorewrite opt %s | %filecheck %s\n")
    (tmp_path / "pytest.ini").touch()
    hide = "import sys; sys.modules['filecheck'] = None; import pytest; pytest.main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", hide, "-q", "-p", "hlorewrite.testing", "-p", "no:cacheprovider",
                           str(tmp_path)], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "; pip install 'hlorewrite[testing]'" in done.stdout and "Traceback" not in done.stdout, done.stdout


def test_proofs_say_that_there_is_no_solver() -> None:
    done = run("z3", "rules", "prove", "patterns/collectives.hlopat")
    assert done.returncode == 1 and not done.stderr
    *rules, summary = done.stdout.splitlines()
    assert all(line.endswith("assumed: no solver is installed (pip install 'hlorewrite[prove]')") for line in rules)
    assert summary == f"{len(rules)} assumed"


def test_without_the_solver_the_plan_is_a_heuristics_and_says_so() -> None:
    done, solved = run("ortools", *RESHARD, "--json"), run("nothing", *RESHARD, "--json")
    greedy, best = json.loads(done.stdout), json.loads(solved.stdout)
    assert done.returncode == 0 and not greedy["proven_optimal"] and not best["note"]
    assert greedy["note"].endswith("pip install 'hlorewrite[reshard]'")
    assert greedy["makespan_s"] >= best["makespan_s"] and greedy["gap"] >= best["gap"]
    assert run("ortools", *RESHARD).stdout.splitlines()[-1] == greedy["note"]


def test_without_rich_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    from hlorewrite.util import progress
    monkeypatch.setattr(progress, "on_terminal", lambda: True)
    monkeypatch.setitem(sys.modules, "rich", None)
    with progress.progress("long work", still=True) as step:
        assert step is progress.nothing
        step("one")
    assert list(progress.mapped("squares", [2], lambda number: number * number)) == [4]


def test_each_extra_is_declared() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) <= set(declared)
    assert set(declared) - set(EXTRAS) == {"test", "cuda", "docs"}
