"""The texts of the project hold no systematic fault of style, and every class of faults is found where there is one."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "tools" / "plain_words.py"

CLASSES = [
    ("agent", "A value that nobody reads is erased."),
    ("tell", "The pass tells whether it changed."),
    ("metaphor", "The barrier hands\non its operands."),
    ("negated noun", "The file is no module."),
    ("position", "The reduction runs beside the loop."),
    ("turn", "It is reduced in every turn of the loop."),
    ("fragment", "It has several forms. Which one is taken depends on the cost."),
    ("what-clause", "It has limits. What does not fit stays as it is."),
    ("term", "The plain part is zero."),
    ("knows", "The checker knows all ops."),
    ("figure", "3.1 ms, of it exposed."),
    ("idiom", "XLA gets four programs wrong."),
    ("long sentence", "word " * 46 + "end."),
]
"""(class, a text with one such fault)."""

CLEAN = """The loop runs eight iterations; `nobody` and ``behind`` are code. There is no such file, and
it is no longer read.
What does it print? The table has a column for the total of all collectives.
"""
IN_PYTHON = '''"""{}"""

def f(told: int, behind: str = "behind") -> str:
    # {}
    return f"{{told}} {{behind!r}} the sum {{told}} stays"
'''


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The tool on some arguments, in this process."""
    spec = importlib.util.spec_from_file_location("plain_words", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain_words"] = module  # its dataclasses look themselves up there
    out, err = io.StringIO(), io.StringIO()
    try:
        spec.loader.exec_module(module)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = module.main(list(arguments))
    finally:
        del sys.modules["plain_words"]
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize(("kind", "text"), CLASSES, ids=[kind for kind, _ in CLASSES])
@pytest.mark.parametrize("suffix", [".md", ".py", ".hlopat"])
def test_each_class_is_found(tmp_path: Path, kind: str, text: str, suffix: str) -> None:
    lines = text.split("\n")
    shown = {".md": f"# A page\n\n{text}\n", ".py": f'"""First line.\n\n{text}\n"""\n',
             ".hlopat": "// A file.\n\n" + "\n".join(f"/// {line}" for line in lines) + "\n"}[suffix]
    file = tmp_path / f"text{suffix}"
    file.write_text(shown, "utf-8")
    done = _run("--json", str(file))
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert [(one["kind"], one["line"]) for one in found] == [(kind, 3)]
    assert found[0]["instead"]


@pytest.mark.parametrize("suffix", [".md", ".py", ".hlopat"])
def test_a_plain_text_passes(tmp_path: Path, suffix: str) -> None:
    comments = "\n".join("// " + line for line in CLEAN.splitlines())
    shown = {".md": CLEAN + "\n```text\nnobody told it\n```\n", ".hlopat": comments + "\nrule behind {}\n",
             ".py": IN_PYTHON.format(CLEAN, CLEAN.splitlines()[0])}[suffix]
    file = tmp_path / f"text{suffix}"
    file.write_text(shown, "utf-8")
    done = _run(str(file))
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_messages_and_comments_of_python_are_read(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text('x = 1  # told\n\nraise ValueError(f"{x} is no array")\n', "utf-8")
    done = _run(str(file))
    assert [line.split(": ")[:2] for line in done.stdout.splitlines()] == [["code.py:1", "tell"],
                                                                          ["code.py:3", "negated noun"]]


def test_the_text_cells_of_notebooks_are_read_and_their_code_is_not(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": ["nobody = 1"]},
             {"cell_type": "markdown", "source": ["One.\n", "Nobody."]}]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}, indent=1))
    done = _run(str(tmp_path / "n.ipynb"))
    assert done.returncode == 1 and done.stdout.count("agent") == 1 and "n.ipynb:13:" in done.stdout


def test_a_path_that_is_not_there() -> None:
    done = _run("no/such/page.md")
    assert done.returncode == 2 and "no/such/page.md" in done.stderr and not done.stdout


def test_counts_by_class(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("It is told.\n\nBehind it.\nIt was told again.\n", "utf-8")
    assert json.loads(_run("--count", "--json", str(file)).stdout) == {"position": 1, "tell": 2}
