"""The site as ``make docs`` builds it: no warning, nothing from elsewhere, every link, a page for everything."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from page_checks import page_faults
from run_page import ROOT

from hlorewrite.cli.subcommands import available
from hlorewrite.passmanager.registry import built_in_passes
from hlorewrite.rules.library import load_shipped


class Page(HTMLParser):
    """What a page links to, loads, and can be linked at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("index", "search", "next", "prev", "canonical"):
            self.loads.append(values["href"])
        elif "src" in values:
            self.loads.append(values["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, "tools/docs/make_site.py", "--out", str(out)], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr
    return out / "html"


@pytest.fixture(scope="module")
def html(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_nothing_is_loaded_from_elsewhere(site: Path, html: dict[Path, Page]) -> None:
    for path, page in html.items():
        assert not [url for url in page.loads if re.match(r"(?:https?:)?//", url)], path
    for path in site.rglob("*.css"):
        assert not re.findall(r"@import|url\(['\"]?(?:https?:)?//", path.read_text(encoding="utf-8")), path


def test_every_link_leads_somewhere(html: dict[Path, Page]) -> None:
    broken = []
    for path, page in html.items():
        for link in page.links:
            name, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            there = (path.parent / name).resolve() if name else path
            known = html[there].anchors if there in html else None
            if not there.exists() or (anchor and known is not None and anchor not in known):
                broken.append(f"{path.name}: {link}")
    assert not broken


def test_there_is_a_page_for_everything(site: Path) -> None:
    rules = [rule.name for file in load_shipped() for rule in file.rules]
    for folder, names in (("rules", rules), ("passes", built_in_passes()), ("cli", available())):
        missing = [name for name in names if not (site / "reference" / folder / f"{name}.html").exists()]
        assert not missing, folder
    facts = (site / "reference" / "rules" / "linearity-facts.html").read_text(encoding="utf-8")
    assert all(f">{fact.name}<" in facts for file in load_shipped() for fact in file.facts)


def test_the_page_of_a_rule_shows_what_the_rule_does(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "reference" / "rules" / "subtract-of-all-reduces.html").read_text())
    assert "AR(a) - AR(b) = AR(a - b)" in text
    before, _, after = text.partition("become:")
    assert before.count("stablehlo.all_reduce(") == 2
    assert after.partition("When it stays away")[0].count("stablehlo.all_reduce(") == 1
    assert "the groups differ" in after


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # selenium's sockets
@pytest.mark.parametrize("page", ["index", "quick-start", "why-not-moved", "gallery", "notebooks/plan-a-pipeline",
                                  "reference/rules/subtract-of-all-reduces", "reference/cli/opt",
                                  "reference/passes/comm-shift", "reference/api/passmanager"])
def test_a_page_can_be_read_in_a_browser(site: Path, browser: Any, page: str) -> None:
    """Contrast in both themes, names, keyboard, console, a telephone's width, length of lines."""
    assert page_faults(browser, site / f"{page}.html") == []


def test_nothing_generated_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files", "docs"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no version control here")
    assert not [name for name in listed.stdout.splitlines() if "/reference/" in name or name.endswith(".html")]
