"""The golden files as cases: each module a RUN line rewrites, before and after."""

from __future__ import annotations

import argparse
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from hlorewrite.cli.opt import command as opt
from hlorewrite.cli.opt.job import split_text
from hlorewrite.cli.parser import Parser
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

LIT = Path(__file__).resolve().parent.parent / "lit"
RUN = re.compile(r"//\s*RUN:\s*(?:not\s+)?%hlorewrite opt (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class GoldenCase:
    """One pipeline of one golden file."""

    file: str
    words: tuple[str, ...]


def cases() -> list[GoldenCase]:
    """The RUN lines that run passes on the file itself, each pipeline once."""
    counts: dict[GoldenCase, None] = {}
    for path in sorted(LIT.rglob("*.mlir")):
        text = path.read_text("utf-8", "replace").replace("\\\n", " ")
        for match in RUN.finditer(text):
            command = re.split(r"\s(?:[|<>]|2>|&&|;)", match.group(1))[0]
            words = shlex.split(command.replace("%s", str(path)).replace("%S", str(path.parent)))
            if str(path) in words and any(w.startswith(("--pass", "--rules")) for w in words):
                kept = [w for w in words if w != str(path) and w.startswith(("--pass", "--rules", "--ignore-cost",
                                                                             "--split", "--topology", "--tol"))]
                counts[GoldenCase(path.relative_to(LIT).as_posix(), tuple(kept))] = None
    return list(counts)


def modules(case: GoldenCase) -> tuple[argparse.Namespace, list[tuple[int, tuple[Module, Module] | str]]]:
    """The flags of a case, and for each of its modules the first line and what ``rewritten`` answers."""
    parser = Parser()
    opt.add_arguments(parser)
    arguments = parser.parse_args(list(case.words))
    passes = [step for text in arguments.passes for step in parse_pipeline(text)]
    text = (LIT / case.file).read_text("utf-8", "replace")
    parts = split_text(text) if arguments.split_input_file else [(1, text)]
    return arguments, [(first_line, rewritten(part, first_line, passes, arguments)) for first_line, part in parts]


def rewritten(text: str, first_line: int, passes: list, arguments: object) -> tuple[Module, Module] | str:
    """A module before and after the passes, or why there is none."""
    try:
        before = parse(text, first_line=first_line)
        after = before.clone()
        run_passes(after, passes, PassContext(ignore_cost=arguments.ignore_cost, topology=arguments.topology))
    except HlorewriteError as error:
        return f"the file expects this error: {error.what}"
    if before.text() != after.text() and any(step.name == "partial-state" for step in passes):
        return "arguments become local sums, which tests/unit/passes/test_partial_state.py executes"
    return before, after
