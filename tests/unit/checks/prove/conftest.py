"""Questions that tests of proofs ask the solver again: mutants of one rule share most of theirs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any

import pytest


@pytest.fixture(scope="package", autouse=True)
def each_question_once() -> Iterator[None]:
    """The solver answers a formula once in a process.

    Equal formulas of one context are one object of the solver's, and stay it as long as it is kept here.
    """
    if importlib.util.find_spec("z3") is None:
        yield
        return
    from hlorewrite.checks.prove import solver

    asked = solver._checked
    known: dict[tuple[object, ...], tuple[solver.SolverAnswer, Sequence[Any]]] = {}

    def answer(question: Any, formulas: Sequence[Any], steps: int) -> solver.SolverAnswer:
        if question.ctx != solver.solver().main_ctx():  # another attempt, in a context of its own
            return asked(question, formulas, steps)
        key = (steps, *(formula.get_id() for formula in formulas))
        if key not in known:
            known[key] = asked(question, formulas, steps), formulas
        return known[key][0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "_checked", answer)
        yield
