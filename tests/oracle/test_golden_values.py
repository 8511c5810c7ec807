"""Every golden file that contains a runnable module computes the same values before and after its own RUN pipeline."""

from __future__ import annotations

import pytest
from generators.golden_cases import GoldenCase, cases, modules

from hlorewrite.checks.reference.check import check
from hlorewrite.errors import CannotExecute

NOT_RUN = {
    "cli/check_interp_refuses.mlir": ('cannot run stablehlo.custom_call "magic"',),
    "cli/reproducer.mlir": ('pass "sdy-convert-global-to-local" failed',),
    "cli/unregistered_dialect.mlir": ("unregistered dialect",),
    "passes/comm-shift/control-flow/tokens.mlir": ("cannot run stablehlo.create_token",),
    "passes/comm-shift/nothing-to-do/not-spmd.mlir": ("so it is not SPMD",),
    "passes/comm-shift/nothing-to-do/unregistered-op.mlir": ("unregistered dialect",),
    "passes/comm-shift/types/dynamic-shapes.mlir": ("cannot be passed to the interpreter",),
    "passes/permutes-to-broadcast/pairs-out-of-range.mlir": ("names a device that the program does not run on",),
    "passes/split-stages/refusals.mlir": ("stage 1 has no mark", "the marks make 3 stages"),
}
"""Golden files of which no module runs, each with the reasons."""


def compare(case: GoldenCase, seed: int) -> None:
    """What the interpreter computes on all devices does not change; a file that cannot run is in ``NOT_RUN``."""
    arguments, pairs = modules(case)
    reasons, executed = [], 0
    for first_line, pair in pairs:
        if isinstance(pair, str):
            reasons.append(pair)
            continue
        try:
            report = check(*pair, seed=seed, tolerance=arguments.tol)
        except CannotExecute as error:
            reasons.append(str(error))
            continue
        executed += 1
        assert report.equal, f"line {first_line}, seed {seed}:\n{report.table()}{report.problems}"
    expected = NOT_RUN.get(case.file, ())
    assert bool(executed) != bool(expected), reasons
    assert all(any(part in reason for reason in reasons) for part in expected), reasons


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.file)
def test_same_values(case: GoldenCase) -> None:
    compare(case, 0)


@pytest.mark.parametrize("case", [case for case in cases() if case.file not in NOT_RUN], ids=lambda case: case.file)
def test_same_values_of_other_inputs(case: GoldenCase) -> None:
    compare(case, 1)
