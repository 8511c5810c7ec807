"""The golden files of tests/lit as pytest cases.

They run in this process (``hlorewrite.testing.golden``), and by lit with a process for each program: one in `make
test`, all in `make heavy`. The commands lit starts have their imports done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_process import IMPORTED, READ
from warm_process import READ_BY_IMPORTS, WarmServer

from hlorewrite.testing.golden import failure

LIT = Path(__file__).resolve().parent / "lit"
FILES = sorted(path.relative_to(LIT).as_posix() for path in LIT.rglob("*")
               if path.suffix in (".mlir", ".test") and "Inputs" not in path.parts and "Output" not in path.parts)


WORKERS = str(1 if "PYTEST_XDIST_WORKER" in os.environ else os.cpu_count() or 1)


@pytest.fixture(scope="session")
def server() -> Iterator[WarmServer]:
    """Starts the programs of RUN lines, under the environment that lit leaves them."""
    kept = {name: value for name, value in os.environ.items()
            if name.startswith("LD_") or not name.startswith(READ_BY_IMPORTS)}
    variables = dict(kept, PYTHONPATH=str(LIT.parent.parent), TF_CPP_MIN_LOG_LEVEL="3")
    with WarmServer(variables, [*IMPORTED, *READ]) as found:
        yield found


@pytest.fixture(scope="session")
def lit_results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory,
                server: WarmServer) -> Callable[[str], dict]:
    """A file's name to lit's result; runs what was selected of its folder, all in one lit process."""
    selected = [item.callspec.params["name"] for item in request.session.items
                if getattr(item, "originalname", "") == "test_golden_file" and item.path == Path(__file__)]
    results: dict[str, dict] = {}

    def result(name: str) -> dict:
        if name not in results:
            folder = tmp_path_factory.mktemp("lit")
            out = folder / "results.json"
            command = [sys.executable, "-c", "from lit.main import main; main()", "--quiet", "--output", str(out),
                       "--workers", WORKERS, "--param", f"programs={server.folder}", "--param", f"output={folder}",
                       *(str(LIT / other) for other in selected if Path(other).parent == Path(name).parent)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
            assert out.exists(), done.stdout + done.stderr
            for test in json.loads(out.read_text())["tests"]:
                results[test["name"].partition(" :: ")[2]] = test
        return results[name]
    return result


@pytest.mark.usefixtures("oracle_in_process")
@pytest.mark.parametrize("name", [name for name in FILES if name != "cli/unknown_names.test"])
def test_golden_file_in_process(name: str, tmp_path: Path) -> None:
    """The RUN lines of a golden file succeed."""
    assert not failure(LIT / name, tmp_path)


def test_a_golden_file_that_fails_is_seen(tmp_path: Path) -> None:
    text = "// RUN: %hlorewrite opt %s --pass=inline | %filecheck %s\n// CHECK: {}\nfunc.func @f() {{ return }}\n"
    for name, wanted, failed in (("good", "func.func @f", False), ("bad", "func.func @g", True)):
        (tmp_path / f"{name}.mlir").write_text(text.format(wanted).replace("{{", "{").replace("}}", "}"))
        assert bool(failure(tmp_path / f"{name}.mlir", tmp_path)) is failed
    (tmp_path / "code.mlir").write_text("// RUN: %hlorewrite opt %s --pass=no-such-pass\n// RUN: not %hlorewrite opt\n")
    assert 'unknown pass "no-such-pass"' in failure(tmp_path / "code.mlir", tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_golden_file(name: str, lit_results: Callable[[str], dict]) -> None:
    """The RUN lines of a golden file succeed when lit runs them."""
    result = lit_results(name)
    if result["code"] == "UNSUPPORTED":
        pytest.skip(f"lit: {result['output'].strip() or 'unsupported here'}")
    assert result["code"] in ("PASS", "XFAIL"), result["output"]
