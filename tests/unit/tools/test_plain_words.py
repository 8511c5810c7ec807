"""Every class of findings is found where there is one: habits, long sentences, dead links, unknown commands, terms."""

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
    ("metaphor", "The barrier hands\non its operands."),
    ("negated noun", "The file is no module."),
    ("turn", "It is reduced in every turn of the loop."),
    ("fragment", "It has several forms. Which one is taken depends on the cost."),
    ("figure", "3.1 ms, of it exposed."),
    ("long sentence", "word " * 46 + "end."),
]
"""(class, a text with one such fault)."""
ON_PAGES = [
    ("place", "The facts stand in the file."),
    ("own", "It has a bound of its own."),
    ("idiom", "The other devices wait for ever."),
    ("idiom", "On request it divides the state."),
    ("private word", "It takes what the judge finds."),
]
"""The same for habits that are looked for in pages only."""

CLEAN = """The loop runs eight iterations; `nobody` and ``in vain`` are code. There is no such file, and
it is no longer read.
What does it print? The table has a column for the total of all collectives.
"""
IN_PYTHON = '''"""{}"""

def f(nobody: int, vain: str = "vain") -> str:
    # {}
    return f"{{nobody}} {{vain!r}} the sum {{nobody}} stays"
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


@pytest.mark.parametrize(("kind", "text"), ON_PAGES)
def test_some_habits_are_found_in_pages_only(tmp_path: Path, kind: str, text: str) -> None:
    (tmp_path / "text.md").write_text(f"# A page\n\n{text}\n", "utf-8")
    (tmp_path / "text.py").write_text(f'"""First line.\n\n{text}\n"""\n', "utf-8")
    found = json.loads(_run("--json", str(tmp_path)).stdout)
    assert [(one["file"], one["kind"]) for one in found] == [("text.md", kind)]


@pytest.mark.parametrize(("kind", "text", "words"), [
    ("dead link", "See [this](no-such-page.md).", "no-such-page.md"),
    ("dead link", "See [this](#no-such-heading).", "#no-such-heading"),
    ("unknown command", "Run `hlorewrite optimise step.mlir`.", "hlorewrite optimise"),
    ("unknown command", "```console\n$ hlorewrite reprot step.mlir\n```", "hlorewrite reprot"),
    ("unknown option", "Run `hlorewrite opt --no-such-flag step.mlir`.", "opt --no-such-flag"),
    ("unknown option", "```console\n$ hlorewrite opt step.mlir \\\n    --passes comm\n```", "opt --passes"),
    ("unknown option", "Run `hlorewrite opt -O com step.mlir`.", "-O com"),
    ("unknown option", "Use `comm-shift{memory=8GiB}`.", "comm-shift{memory}"),
])
def test_faults_that_a_reader_of_a_page_runs_into(tmp_path: Path, kind: str, text: str, words: str) -> None:
    (tmp_path / "page.md").write_text(f"# A page\n\n{text}\n", "utf-8")
    found = json.loads(_run("--json", str(tmp_path / "page.md")).stdout)
    assert [(one["kind"], one["words"]) for one in found] == [(kind, words)]


@pytest.mark.parametrize("text", [
    "See [this](#a-page) and [that](https://example.com/x.md).",
    "Run `hlorewrite opt -O comm --remarks step.mlir` or `hlorewrite help comm-shift`.",
    "```console\n$ hlorewrite exec --audit -- python train.py --no-such-flag\n```",
    "Use `comm-shift{memory-budget=8GiB}` or `split-stages{meshes=\"(4x1),(2x2)\" schedule=1f1b}`.",
])
def test_what_exists_is_not_reported(tmp_path: Path, text: str) -> None:
    (tmp_path / "page.md").write_text(f"# A page\n\n{text}\n", "utf-8")
    assert _run(str(tmp_path / "page.md")).stdout.strip() == ""


def test_terms_are_explained_or_linked_at_their_first_use() -> None:
    from words.pages import unexplained_terms

    def found(text: str) -> list[tuple[int, str]]:
        return [(line, words) for line, _, words, _ in unexplained_terms(text)]
    assert found("# Exposed time\n\nIt saves exposed time.\n\n[exposed time](glossary.md#exposed-time)\n") == \
        [(3, "exposed time")]
    assert not found("It saves [exposed time](glossary.md#exposed-time), and exposed time is what counts.\n")
    assert not found("*Exposed time* is what a step waits. `exposed time`\n")


@pytest.mark.parametrize("suffix", [".md", ".py", ".hlopat"])
def test_a_plain_text_passes(tmp_path: Path, suffix: str) -> None:
    comments = "\n".join("// " + line for line in CLEAN.splitlines())
    shown = {".md": CLEAN + "\n```text\nnobody read it\n```\n", ".hlopat": comments + "\nrule vain {}\n",
             ".py": IN_PYTHON.format(CLEAN, CLEAN.splitlines()[0])}[suffix]
    file = tmp_path / f"text{suffix}"
    file.write_text(shown, "utf-8")
    done = _run(str(file))
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_messages_and_comments_of_python_are_read(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text('x = 1  # for nobody\n\nraise ValueError(f"{x} is no array")\n', "utf-8")
    done = _run(str(file))
    assert [line.split(": ")[:2] for line in done.stdout.splitlines()] == [["code.py:1", "agent"],
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
    file.write_text("Nobody reads it.\n\nIt is no module.\nEverybody reads it.\n", "utf-8")
    assert json.loads(_run("--count", "--json", str(file)).stdout) == {"agent": 2, "negated noun": 1}
