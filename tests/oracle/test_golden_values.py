"""Every golden file that holds a runnable module computes the same values before and after its own RUN pipeline."""

from __future__ import annotations

import pytest
from generators.golden_cases import GoldenCase, cases, modules

from hlorewrite.checks.reference.check import check
from hlorewrite.errors import CannotExecute


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.file)
def test_same_values(case: GoldenCase) -> None:
    """What the interpreter computes on all devices does not change."""
    arguments, pairs = modules(case)
    reasons, executed = [], 0
    for first_line, pair in pairs:
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
