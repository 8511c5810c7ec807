"""The plan of the first process reaches the others: also one of many parts, and one that stops all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from write_once_store import WriteOnceStore

from hlorewrite.errors import PlanMismatch
from hlorewrite.jaxbridge.processes.agreement import Agreement, Patience
from hlorewrite.jaxbridge.processes.consensus import PlanRuling, ruling_of_all, stopped_by_plan

QUICK = Patience(present=2.0, absent=1.0, rewriting=1.0)


def agreements(count: int = 3) -> list[Agreement]:
    """Of processes with one store."""
    store = WriteOnceStore()
    made = [Agreement("room", range(count), process, store, patience=QUICK) for process in range(count)]
    for each in made:
        each.come()
    return made


@pytest.mark.parametrize("text", ["", "x" * 10, "é\n" * (3 << 19)])
def test_all_have_the_ruling_of_the_first(text: str) -> None:
    ruling = PlanRuling("step.plan", text)

    def read(agreement: Agreement) -> PlanRuling:
        return ruling_of_all(agreement, lambda: ruling if agreement.decides else pytest.fail("it read its own file"))
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(read, agreements())) == [ruling] * 3


def test_a_late_process_stops_as_the_others_do() -> None:
    stops = PlanRuling("step.plan", "", "does not fit", "nothing is compiled", ends=True, stops=True)
    first, second, late = agreements()
    ruling_of_all(first, lambda: stops)
    second.refuse("step.plan: does not fit")
    found = stopped_by_plan(late)
    assert late.over() and found is not None and str(found) == "step.plan: does not fit; nothing is compiled"


def test_a_first_process_that_does_not_come_makes_the_others_run_the_original() -> None:
    store = WriteOnceStore()
    alone = Agreement("room", range(2), 1, store, patience=QUICK)
    alone.come()
    with pytest.raises(PlanMismatch, match=r"process 0 .*did not reach") as refused:
        ruling_of_all(alone, PlanRuling)
    assert not refused.value.stops
    with pytest.raises(ValueError, match="another version"):
        PlanRuling.from_text('{"name": ""}')
