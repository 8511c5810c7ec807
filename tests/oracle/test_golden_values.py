"""Every golden file that holds a runnable module computes the same values before and after its own RUN pipeline."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from hlorewrite.cli.opt import command as opt
from hlorewrite.cli.parser import Parser
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.oracle.check import check
from hlorewrite.oracle.errors import CannotExecute
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.passmanager.split import split_text

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


def rewritten(text: str, first_line: int, passes: list, arguments: object) -> tuple[Module, Module] | str:
    """A module before and after the passes, or why there is none."""
    try:
        before = parse(text, first_line=first_line)
        after = before.clone()
        run_passes(after, passes, PassContext(ignore_cost=arguments.ignore_cost, topology=arguments.topology))
    except HlorewriteError as error:
        return f"the file expects this error: {error.what}"
    return before, after


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.file)
def test_same_values(case: GoldenCase) -> None:
    """What the interpreter computes on all devices does not change."""
    parser = Parser()
    opt.add_arguments(parser)
    arguments = parser.parse_args(list(case.words))
    passes = [step for text in arguments.passes for step in parse_pipeline(text)]
    text = (LIT / case.file).read_text("utf-8", "replace")
    parts = split_text(text) if arguments.split_input_file else [(1, text)]
    reasons, executed = [], 0
    for first_line, part in parts:
        pair = rewritten(part, first_line, passes, arguments)
        if isinstance(pair, str):
            reasons.append(pair)
            continue
        for seed in (0, 1):
            try:
                report = check(*pair, seed=seed, tolerance=arguments.tol)
            except CannotExecute as error:
                reasons.append(str(error))
                break
            executed += 1
            assert report.equal, f"line {first_line}, seed {seed}:\n{report.table()}{report.problems}"
    if not executed:
        pytest.skip("; ".join(dict.fromkeys(reasons)))
