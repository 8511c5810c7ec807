"""Programs that start warm behave as in processes of their own: arguments, environment, streams, ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from warm_process import WarmServer

SHOW = """import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "name": __name__, "folder": os.getcwd(), "path": sys.path[:2],
                  "word": os.environ.get("WORD"), "said": sys.stdin.read(), "warm": "fractions" in sys.modules,
                  "tty": sys.stdout.isatty(), "main": sys.modules["__main__"].__dict__ is globals()}))
"""


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmServer]:
    """A server that has imported one module."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with WarmServer(variables, ["fractions"]) as server:
        yield server


def run(python: Path | str, *words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([str(python), *words], cwd=folder, env={**kept, **variables}, input="words of the input",
                          capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("words", [["show.py", "a", "b c"], ["-m", "show", "a"], ["-c", SHOW, "-x"], ["sub/show.py"]])
def test_a_program_sees_what_it_would_see_in_its_own_process(warm: WarmServer, words: list[str],
                                                             tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("show.py", "sub/show.py"):
        (tmp_path / name).write_text(SHOW)
    found, own = (run(python, *words, folder=tmp_path, WORD="w", PYTHONPATH=str(tmp_path / "more"))
                  for python in (warm.folder / "python", sys.executable))
    assert (found.returncode, found.stderr) == (own.returncode, own.stderr) == (0, "")
    seen, wanted = json.loads(found.stdout), json.loads(own.stdout)
    assert seen.pop("warm") and not wanted.pop("warm")
    assert seen == wanted
    assert seen["said"] == "words of the input" and str(tmp_path / "more") in seen["path"]


@pytest.mark.parametrize(("code", "ends"), [
    ("pass", 0), ("import sys; sys.exit(7)", 7), ("import sys; sys.exit('a word')", 1), ("1 / 0", 1), ("x = = 1", 1),
    ("import os; os._exit(9)", 9), ("import os; os.abort()", -6), ("import os; os.kill(os.getpid(), 9)", -9),
    ("import atexit; atexit.register(print, 'at exit')", 0),
])
def test_it_ends_the_same_way(warm: WarmServer, code: str, ends: int, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code)
    found, own = (run(python, "a.py", folder=tmp_path) for python in (warm.folder / "python", sys.executable))
    assert (found.returncode, found.stdout) == (own.returncode, own.stdout)
    assert found.returncode == ends
    assert found.stderr.splitlines()[-1:] == own.stderr.splitlines()[-1:]
    assert "warm_process" not in found.stderr or "SyntaxError" in found.stderr


def test_programs_do_not_see_each_other(warm: WarmServer, tmp_path: Path) -> None:
    code = ("import os, sys, fractions; "
            "print(getattr(fractions, 'mark', 0), os.environ.get('MARK'), 'wave' in sys.modules)")
    change = "import wave; fractions.mark = 1; os.environ['MARK'] = '1'"
    for _ in range(2):
        assert run(warm.folder / "python", "-c", f"{code}; {change}", folder=tmp_path).stdout == "0 None False\n"


@pytest.mark.parametrize("variables", [{"PYTHONHASHSEED": "3"}, {"JAX_ENABLE_X64": "1"}])
def test_variables_that_imports_read_get_an_own_process(warm: WarmServer, variables: dict[str, str],
                                                        tmp_path: Path) -> None:
    done = run(warm.folder / "python", "-c", SHOW, folder=tmp_path, **variables)
    assert not json.loads(done.stdout)["warm"]


def test_a_file_that_is_missing_is_told_as_python_tells_it(warm: WarmServer, tmp_path: Path) -> None:
    done = run(warm.folder / "python", "nothing.py", folder=tmp_path)
    assert done.returncode == 2 and "can't open file" in done.stderr


def test_what_is_killed_leaves_nothing_running(warm: WarmServer, tmp_path: Path) -> None:
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(100)"
    process = subprocess.Popen([*warm.command("python"), "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    program = int(process.stdout.readline())
    process.kill()
    process.wait()
    with process.stdout:
        for _ in range(600):
            try:
                os.kill(program, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
    os.kill(program, signal.SIGKILL)
    pytest.fail("the program runs on")


def test_commands_of_the_package_have_their_own_arguments(warm: WarmServer, tmp_path: Path) -> None:
    done = run(warm.folder / "hlorewrite", "nonsense", folder=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("hlorewrite: error:")
