"""Faults of pages that a reader runs into: dead links, unknown commands, terms used before they are explained."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from cli_pages import parser_of
from links import headings, links_with_lines

from hlorewrite.cli.subcommands import available
from hlorewrite.errors import HlorewriteError
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.options import options_of
from hlorewrite.passmanager.registry import built_in_passes, find_pass

ROOT = Path(__file__).resolve().parent.parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
EVERYDAY = ("uniform", "candidate", "way", "native", "remark")
"""Terms of the glossary that are also everyday words; a first use cannot be recognised by the word."""
_SPAN = re.compile(r"(`{1,2})(?!`)(.+?)\1", re.DOTALL)
_FENCE = re.compile(r"^\s*(?:```|~~~)(\w*)")

Fault = tuple[int, str, str, str]
"""Line, kind, words, and what to write instead."""


def faults_of_page(path: Path) -> list[Fault]:
    """Every such fault of a Markdown page.

    Args:
      path: the page. Terms are looked for in pages of the repository's ``docs`` only.
    """
    text = path.read_text("utf-8")
    found = [*dead_links(path, text), *unknown_commands(text)]
    if path.resolve().is_relative_to(GLOSSARY.parent) and path.resolve() != GLOSSARY:
        found += unexplained_terms(text)
    return found


def dead_links(path: Path, text: str) -> Iterator[Fault]:
    """Links to files of the repository that are not there, or to headings that their pages do not have."""
    for line, target in links_with_lines(text):
        name, _, anchor = target.partition("#")
        if name.startswith("reference/"):
            continue  # a generated page; the site's own check has it
        there = (path.parent / name).resolve() if name else path
        if not there.exists():
            yield line, "dead link", target, "the path of a file from this page"
        elif anchor and anchor not in headings(there.read_text("utf-8")):
            yield line, "dead link", target, "a heading of that page"


def unknown_commands(text: str) -> Iterator[Fault]:
    """Subcommands, flags, passes and options of passes that do not exist, in console blocks and code spans."""
    for line, code in _code(text):
        for part in re.split(r"\s(?:\||&&|>|2>&1)\s", code.replace("\\\n", " ")):
            if part.startswith("hlorewrite "):
                yield from ((line, *fault) for fault in _of_command(part))
        for match in re.finditer(r"(?<![\w$-])([a-z][a-z0-9-]+)\{([^{}]*)\}", code):
            yield from ((line, *fault) for fault in _of_pass(match.group(1), match.group(2)))


def _of_command(text: str) -> Iterator[tuple[str, str, str]]:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return
    if len(words) < 2 or not re.fullmatch(r"[a-z][a-z-]*", words[1]) or words[1] == "help":
        return
    if words[1] not in available():
        yield "unknown command", f"hlorewrite {words[1]}", f"one of {', '.join(available())}"
        return
    own = words[2:words.index("--")] if "--" in words else words[2:]  # what follows is another program's
    for flag in dict.fromkeys(word.partition("=")[0] for word in own if word.startswith("--")):
        if flag not in _flags(words[1]):
            yield "unknown option", f"{words[1]} {flag}", f"an option that `hlorewrite {words[1]} --help` lists"
    for before, word in pairwise(own):
        if before == "-O" and word.isalpha() and word.islower() and word not in (*PIPELINES, "auto"):
            yield "unknown option", f"-O {word}", f"one of {', '.join(('auto', *sorted(PIPELINES)))}"


@functools.cache
def _flags(command: str) -> frozenset[str]:
    parser = parser_of(command)
    actions = [parser, *(sub for action in parser._actions if isinstance(action.choices, dict)
                         for sub in action.choices.values())]
    return frozenset(option for one in actions for option in one._option_string_actions)


def _of_pass(name: str, options: str) -> Iterator[tuple[str, str, str]]:
    if name not in built_in_passes():
        return
    try:
        known = {option.name for option in options_of(find_pass(name))}
    except HlorewriteError:
        return
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", options)
    for option in re.findall(r"(?:^|[,\s])([a-z][\w-]*)(?=[=,\s]|$)", re.sub(r"=[^\s,]+", "=", bare)):
        if option not in known:
            yield "unknown option", f"{name}{{{option}}}", f"one of {', '.join(sorted(known)) or 'none'}"


def unexplained_terms(text: str) -> Iterator[Fault]:
    """Terms of the glossary whose first use on a page is neither a link nor emphasised, as a definition is."""
    lines = list(_prose(text))
    for term, anchor in glossary_terms().items():
        pattern = re.compile(rf"(?<![\w-]){term}s?(?![\w-])", re.IGNORECASE)
        first = next((number for number, line in lines if pattern.search(line)), None)
        if first is None:
            continue
        shown = "\n".join(line for number, line in lines if number <= first)
        if f"glossary.md#{anchor}" not in shown and not re.search(rf"[*\[]\*?{pattern.pattern}", shown, re.IGNORECASE):
            yield first, "unexplained term", term, f"[{term}](glossary.md#{anchor}) at the first use on the page"


@functools.cache
def glossary_terms() -> dict[str, str]:
    """Terms of the glossary, in small letters, with their anchors; without those that are everyday words."""
    titles = re.findall(r"^## (.+)$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return {title.lower(): title.lower().replace(" ", "-") for title in titles if title.lower() not in EVERYDAY}


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not code, comments or headings, with code spans left out."""
    fenced = comment = False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if _FENCE.match(line) and not comment:
            fenced = not fenced
        elif not fenced:
            comment = (comment or bare.startswith("<!--"))
            if not comment and not bare.startswith("#"):
                yield number, re.sub(r"`[^`]*`", "", line)
            comment = comment and "-->" not in bare


def _code(text: str) -> Iterator[tuple[int, str]]:
    """Commands of console blocks, and code spans, each with its line."""
    language, command, begin = None, "", 0
    span_text = []
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence:
            language = None if language is not None else fence.group(1)
        elif language == "console" and (line.startswith("$ ") or command.endswith("\\")):
            command, begin = (f"{command}\n{line}", begin) if command.endswith("\\") else (line[2:], number)
            if not command.endswith("\\"):
                yield begin, command
                command = ""
        span_text.append("" if fence or language is not None else line)
    whole = "\n".join(span_text)
    for match in _SPAN.finditer(whole):
        yield whole.count("\n", 0, match.start()) + 1, match.group(2).replace("\n", " ")
