"""Every golden file that holds a runnable module computes the same values before and after its own RUN pipeline."""

from __future__ import annotations

import pytest
from generators.golden_cases import LIT, GoldenCase, cases, rewritten

from hlorewrite.cli.opt import command as opt
from hlorewrite.cli.parser import Parser
from hlorewrite.oracle.check import check
from hlorewrite.oracle.errors import CannotExecute
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.passmanager.split import split_text


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
