"""Every code block of the documents, run as its page says; ``run_page.py --list`` names those that are not run."""

from __future__ import annotations

import pytest
from run_page import ROOT, pages, run_page
from warm_process import WarmServer
from words.pages import unknown_commands

PAGES = {path.relative_to(ROOT).as_posix(): path for path in pages()}


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_shows_is_what_happens(page: str, server: WarmServer, request: pytest.FixtureRequest) -> None:
    result = run_page(PAGES[page], server, slow=request.config.getoption("--run-slow"))
    assert not result.failures, "\n".join(
        [*result.failures, f"if that is right: python tools/docs/run_page.py --update {page}"])


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_spoken_of_exist(page: str) -> None:
    """Subcommands, flags, passes and options of passes, also where the command is not run."""
    assert not list(unknown_commands(PAGES[page].read_text(encoding="utf-8")))
