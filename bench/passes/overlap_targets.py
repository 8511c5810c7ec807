"""Targets of the pipeline ``time``, each with what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from overlap_rows import ALONE, OverlapRow, StepRows

Verdict = tuple[str, str, str, bool]
"""Step, target, sentence, whether it is reached."""
_OF_STEP = {"h200:1x8": 0.002, "h200:4x8": 0.005}
"""Most of a step with scanned layers that may be exposed."""
_OF_COMM, _OF_XLA = 0.1, 0.5
_HLO, _COMPILE = 2.0, 1.5
_NEAR = 1e-6


def verdicts(measured: Sequence[StepRows], *, steps_only: bool = False) -> list[Verdict]:
    """Each target of each step.

    Args:
      measured: the rows of all steps.
      steps_only: whether step times alone have targets.
    """
    return [(each.step, each.target, sentence, reached) for each in measured
            for sentence, reached in (_of_step(each) if steps_only else
                                      [*_of_step(each), *_for_all(each), *_of_exposed(each)])]


def _of_step(each: StepRows) -> list[tuple[str, bool]]:
    time = each.rows["time"]
    return [_no_longer("comm", time, each.rows["comm"]), _no_longer("XLA at its best flags", time, each.best)]


def _for_all(each: StepRows) -> list[tuple[str, bool]]:
    alone, comm, time = each.rows[ALONE], each.rows["comm"], each.rows["time"]
    found = [_at_most("executed bytes over comm", time.executed / comm.executed, 1.0),
             _at_most("optimised HLO over XLA alone", time.instructions / alone.instructions, _HLO)]
    if time.seconds:
        found.append(_at_most("processor time of compilation over XLA alone", time.seconds / alone.seconds, _COMPILE))
    return found


def _of_exposed(each: StepRows) -> list[tuple[str, bool]]:
    comm, time = each.rows["comm"], each.rows["time"]
    if each.step == "A scanned":
        return [_at_most("exposed, share of the step", time.exposed / time.step, _OF_STEP.get(each.target, 0.005))]
    if each.step == "A unrolled":
        return [_at_most("exposed over comm", time.exposed / comm.exposed, _OF_COMM)]
    return [_at_most("exposed over XLA at its best flags", time.exposed / each.best.exposed, _OF_XLA)]


def _no_longer(name: str, time: OverlapRow, other: OverlapRow) -> tuple[str, bool]:
    reached = time.step <= other.step * (1 + _NEAR) and time.slowed <= other.slowed * (1 + _NEAR)
    return (f"step no longer than {name}: {time.step:.1f} and {other.step:.1f} ms, at 20 % {time.slowed:.1f} and "
            f"{other.slowed:.1f} ms"), reached


def _at_most(name: str, value: float, limit: float) -> tuple[str, bool]:
    return f"{name}: {value:.4f}, at most {limit:g}", value <= limit * (1 + _NEAR)
