"""The rewriter of one process fails: all run the original, none hangs, each says why; real processes over gloo."""

from __future__ import annotations

import pytest
from evidence.faults import KINDS, FaultTrial, fault_trial


def check(trial: FaultTrial) -> None:
    """All living processes did the same in time, for the same reason, and computed the same."""
    assert trial.alike, trial
    if trial.program != "pipeline" and trial.kind != "dies":
        assert trial.values == ("30.0",), trial


def test_a_rewriter_that_raises_on_the_process_that_decides() -> None:
    trial = fault_trial("step", "raises", 0)
    check(trial)
    assert max(trial.seconds.values()) < 10.0


@pytest.mark.slow
@pytest.mark.parametrize(("program", "odd", "kind"), [
    (program, odd, kind) for program, odd in (("step", 2), ("jit", 0), ("jit", 2), ("pipeline", 0), ("pipeline", 1))
    for kind in KINDS if kind != "dies" or odd])
def test_every_fault_of_every_program(program: str, odd: int, kind: str) -> None:
    """But the death of process 0, which holds the coordination service: JAX ends the others."""
    check(fault_trial(program, kind, odd))
