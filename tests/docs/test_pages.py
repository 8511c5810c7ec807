"""Every code block of the documents, run as its page says; ``run_page.py --list`` names those that are not run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from blocks import CodeBlock, WrongBlock, blocks_of, commands_of
from cli_pages import parser_of
from markdown_it import MarkdownIt
from run_page import ROOT, pages, run_page
from warm_process import WarmServer

from hlorewrite.cli.subcommands import available

PAGES = {path.relative_to(ROOT).as_posix(): path for path in pages()}


def blocks(path: Path) -> list[CodeBlock]:
    """The blocks of a page; none when it is wrong, which the page's own test detects."""
    try:
        return blocks_of(path, path.relative_to(ROOT).as_posix())
    except WrongBlock:
        return []


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_shows_is_what_happens(page: str, server: WarmServer, request: pytest.FixtureRequest) -> None:
    result = run_page(PAGES[page], server, slow=request.config.getoption("--run-slow"))
    assert not result.failures, "\n".join(
        [*result.failures, f"if that is right: python tools/docs/run_page.py --update {page}"])


def spoken_commands(path: Path) -> list[tuple[str, str]]:
    """Every ``hlorewrite ...`` of a page, in code spans and blocks, run or not, with its place."""
    page = path.relative_to(ROOT).as_posix()
    spoken = [(f"{page}:{command.line}", command.text) for block in blocks(path) if block.language == "console"
              for command in commands_of(block)]
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text()):
        spoken += [(f"{page}:{token.map[0] + 1 if token.map else 0}", child.content)
                   for child in token.children or () if child.type == "code_inline"]
    return [(place, part) for place, text in spoken for part in re.split(r"\s(?:\||&&|>|2>&1)\s", text)
            if part.startswith("hlorewrite ")]


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_spoken_of_exist(page: str) -> None:
    """Subcommands and flags, also where the command is not run."""
    for place, text in spoken_commands(PAGES[page]):
        words = shlex.split(text.replace("\\\n", " "), comments=True)
        if len(words) < 2 or not re.fullmatch(r"[a-z]+", words[1]) or words[1] == "help":
            continue
        assert words[1] in available(), f"{place}: no subcommand {words[1]}"
        parser = parser_of(words[1])
        actions = [parser, *(sub for action in parser._actions if isinstance(action.choices, dict)
                             for sub in action.choices.values())]
        known = {option for one in actions for option in one._option_string_actions}
        own = words[2:words.index("--")] if "--" in words else words[2:]  # what follows is another program's
        flags = {word.partition("=")[0] for word in own if word.startswith("--")}
        assert flags <= known, f"{place}: {words[1]} has no {', '.join(sorted(flags - known))}"
