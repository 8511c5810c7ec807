"""The golden files of tests/lit as pytest cases: one lit process runs all that were selected."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LIT = Path(__file__).resolve().parent / "lit"
FILES = sorted(path.relative_to(LIT).as_posix() for path in LIT.rglob("*")
               if path.suffix in (".mlir", ".test") and "Inputs" not in path.parts and "Output" not in path.parts)


@pytest.fixture(scope="session")
def lit_results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """File name to lit's result, for every selected file."""
    selected = [item.callspec.params["name"] for item in request.session.items
                if getattr(item, "originalname", "") == "test_golden_file" and item.path == Path(__file__)]
    out = tmp_path_factory.mktemp("lit") / "results.json"
    command = [sys.executable, "-c", "from lit.main import main; main()", "--quiet", "--output", str(out),
               *(str(LIT / name) for name in selected)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert out.exists(), done.stdout + done.stderr
    return {test["name"].partition(" :: ")[2]: test for test in json.loads(out.read_text())["tests"]}


@pytest.mark.parametrize("name", FILES)
def test_golden_file(name: str, lit_results: dict[str, dict]) -> None:
    """The RUN lines of a golden file succeed."""
    result = lit_results[name]
    if result["code"] == "UNSUPPORTED":
        pytest.skip(f"lit: {result['output'].strip() or 'unsupported here'}")
    assert result["code"] in ("PASS", "XFAIL"), result["output"]
