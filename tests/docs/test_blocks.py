"""The mechanism that runs the documents: what it refuses, what it notices."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
import run_page as runner
from blocks import WrongBlock, blocks_of
from warm_process import WarmServer


@pytest.mark.parametrize(("text", "why"), [
    ("```\na\n```\n", "says no language"),
    ("text\n\n    indented\n", "use a fence"),
    ("```mlir\nmodule {}\n```\n", "the tests do not run a `mlir` block"),
    ("<!-- outpt -->\n```text\na\n```\n", "unknown comment `outpt`"),
    ("<!-- output -->\n```text\na\n```\n", "follows the Python block"),
    ("```console\nls\n```\n", "starts with a command"),
    ("<!-- not run: because -->\ntext\n", "no code block follows"),
])
def test_blocks_nobody_can_run_are_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(text)
    with pytest.raises(WrongBlock, match=why):
        blocks_of(tmp_path / "a.md", "a.md")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page in a project that is nothing but this page."""
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "copy_project", lambda target: None)
    return tmp_path / "a.md"


@pytest.fixture
def failures(page: Path, server: WarmServer) -> Callable[..., list[str]]:
    """Runs a text as the page."""
    def run(text: str, slow: bool = False) -> list[str]:
        page.write_text(text)
        return runner.run_page(page, server, slow=slow).failures
    return run


@pytest.mark.parametrize(("text", "word"), [
    ("```console\n$ echo a\nb\n```\n", "printed something else"),
    ("```console\n$ false\n```\n", "exit code 1, not 0"),
    ("<!-- exit: 1 -->\n```console\n$ true\n```\n", "exit code 0, not 1"),
    ("```python\nraise ValueError('so')\n```\n", "ValueError: so"),
    ("```python\nprint(1)\n```\n\n<!-- output -->\n```text\n2\n```\n", "printed something else"),
    ("```python\nimport os\nos._exit(4)\n```\n", "the process ended with code 4"),
    ("<!-- nightly: long -->\n```console\n$ false\n```\n", "exit code 1"),
])
def test_what_is_not_as_shown_is_noticed(text: str, word: str, failures: Callable[..., list[str]]) -> None:
    problems = failures(text, slow=True)
    assert len(problems) == 1 and word in problems[0]


@pytest.mark.parametrize("text", [
    "```console\n$ echo a; echo b; echo c\na\n...\n$ true\n```\n",
    "<!-- file: x/y.txt -->\n```text\nhello\n```\n\n<!-- append: x/y.txt -->\n```text\nworld\n```\n\n"
    "```console\n$ cat x/y.txt\nhello\nworld\n```\n",
    "<!-- setup python\nx = 3\n-->\n\n```python\nprint(x)\n```\n\n<!-- output -->\n```text\n3\n```\n",
    "<!-- exit: 7 -->\n```console\n$ true\n$ exit 7\n```\n",
    "<!-- times vary -->\n```console\n$ echo 'done in 3.1 s, 5 bytes'\ndone in 12 s, 5 bytes\n```\n",
    "<!-- not run: no -->\n```console\n$ false\n```\n",
    "<!-- nightly: long -->\n```console\n$ echo a > b\n```\n\n```console\n$ cat b\n```\n",
])
def test_what_is_as_shown_passes(text: str, failures: Callable[..., list[str]]) -> None:
    assert failures(text) == []


def test_times_that_vary_excuse_nothing_else() -> None:
    assert not runner.matches("done in 3 s, 5 bytes", "done in 4 s, 6 bytes", times_vary=True)
    assert not runner.matches("done in 3 s", "done in 4 s")


def test_update_writes_what_is_printed_and_keeps_what_has_dots(
        page: Path, server: WarmServer, failures: Callable[..., list[str]]) -> None:
    text = "```console\n$ echo 1\n?\n$ echo 2; echo 3\n2\n...\n```\n\n```python\nprint(4)\n```\n\n<!-- output -->\n" \
           "```text\n?\n?\n```\n"
    page.write_text(text)
    new = runner.updated(text, runner.run_page(page, server))
    assert new == text.replace("echo 1\n?", "echo 1\n1").replace("?\n?", "4")
    assert failures(new) == []


@pytest.mark.parametrize("name", ["api_pages", "blocks", "docstrings", "links", "markup", "rule_pages", "run_page"])
def test_examples_of_the_tools_hold(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted and not results.failed
