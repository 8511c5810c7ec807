"""Processes decide together: the same verdict on all when one fails, differs, is late or absent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from write_once_store import WriteOnceStore

from hlorewrite.errors import HlorewriteError, PassFailed, PlanError
from hlorewrite.jaxbridge.processes.activity import COMPILING, Phase
from hlorewrite.jaxbridge.processes.agreement import Agreement, Decision, Patience, Undecided
from hlorewrite.jaxbridge.processes.consensus import decided
from hlorewrite.jaxbridge.processes.heartbeat import Heartbeat
from hlorewrite.jaxbridge.processes.liveness import Watch
from hlorewrite.pipelines.reshard.order import EFFORT_OF_A_RUN
from hlorewrite.pipelines.runtime import group

SAME = Decision("a" * 64, "b" * 64, "pipeline comm\npartitioner cpu\nmemory unlimited", "hlorewrite 1, jaxlib 0.10.2")
QUICK = Patience(present=3.0, absent=1.0, rewriting=1.0)

Rewriter = Callable[[], Decision]


def outcomes(rewriters: Sequence[Rewriter | None], late: dict[int, float] | None = None,
             patience: Patience = QUICK, watch: Watch | None = None) -> list[str]:
    """Why each process that comes runs the original, in threads; None never comes."""
    store, made = WriteOnceStore(), [""] * len(rewriters)

    def one(process: int, rewriter: Rewriter) -> None:
        time.sleep((late or {}).get(process, 0.0))
        agreement = Agreement("room", range(len(rewriters)), process, store, patience=patience, watch=watch)
        made[process] = decided(agreement, lambda: (rewriter(), None)).why
    threads = [threading.Thread(target=one, args=each) for each in enumerate(rewriters) if each[1] is not None]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [why for why, rewriter in zip(made, rewriters, strict=True) if rewriter is not None]


def fails(error: Exception, after_s: float = 0.0) -> Rewriter:
    """A rewriter that raises."""
    def run() -> Decision:
        time.sleep(after_s)
        raise error
    return run


def holds(decision: Decision = SAME, after_s: float = 0.0) -> Rewriter:
    """A rewriter that takes its time."""
    def run() -> Decision:
        time.sleep(after_s)
        return decision
    return run


def test_all_hold_the_same() -> None:
    assert outcomes([holds()] * 4) == [""] * 4


@pytest.mark.parametrize("odd", [0, 2])
@pytest.mark.parametrize(("other", "words"), [
    (Decision(SAME.original, SAME.result, SAME.how, "hlorewrite 2, jaxlib 0.10.2"),
     "it has hlorewrite 2, jaxlib 0.10.2, not"),
    (Decision("another", "c", SAME.how, SAME.versions), "its original module differs; use the same code"),
    (Decision(SAME.original, "c", "pipeline cse\npartitioner cpu\nmemory unlimited", SAME.versions),
     "its pipeline is cse, not comm; name the same passes everywhere"),
    (Decision(SAME.original, "c", SAME.how.replace("unlimited", "0"), SAME.versions), "its memory is 0, not unlimited"),
    (Decision(SAME.original, "c", SAME.how, SAME.versions), "the same module and pipeline gave a different result"),
])
def test_one_holds_another_module(odd: int, other: Decision, words: str) -> None:
    """All get the same sentence, which names a process that differs from the first one, and in what."""
    said = outcomes([holds(other if process == odd else SAME) for process in range(3)])
    assert len(set(said)) == 1
    assert "(comparing): its module differs from that of process 0: " in said[0]
    if odd:
        assert said[0].startswith(f"process {odd} ") and words in said[0]


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize(("error", "words"), [
    (PassFailed("a pass failed"), "a pass failed"), (MemoryError(), "MemoryError"),
    (ValueError("odd\nmore"), "ValueError: odd")])
def test_one_fails(failing: int, error: Exception, words: str) -> None:
    """The others do not wait until their time is up, and say who failed, in which phase, and why."""
    start = time.monotonic()
    rewriters = [fails(error) if process == failing else holds() for process in range(3)]
    assert outcomes(rewriters, patience=Patience()) == [f"process {failing} (rewriting): {words}"] * 3
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("slow", [0, 1])
def test_one_that_takes_too_long_to_rewrite(slow: int) -> None:
    """The others wait longer than they took themselves, and not until the end of their patience."""
    start = time.monotonic()
    said = outcomes([holds(after_s=4.0 if process == slow else 0.1) for process in range(3)], patience=Patience(
        rewriting=1.0))
    assert said == [said[0]] * 3
    assert said[0].startswith(f"process {slow} (rewriting): it had not finished rewriting 1 s after process ")
    assert time.monotonic() - start < 10


def test_the_time_for_rewriting_grows_with_what_it_took_here() -> None:
    assert Patience().for_rewriting(1.0) == 10.0
    assert Patience().for_rewriting(30.0) == 60.0
    assert Patience(present=20.0).for_rewriting(30.0) == 20.0


@pytest.mark.parametrize("absent", [0, 1])
def test_one_never_comes(absent: int) -> None:
    said = outcomes([None if process == absent else holds() for process in range(3)])
    assert said == [f"process {absent} (not seen yet): it did not reach this module within 3 s; it is slow, gone, or "
                    "runs without hlorewrite"] * 2


@pytest.mark.parametrize("slow", [0, 1])
def test_one_that_comes_late_is_waited_for(slow: int) -> None:
    assert outcomes([holds()] * 2, late={slow: 2.0}) == ["", ""]


@pytest.mark.parametrize("slow", [0, 1])
def test_one_that_comes_too_late_follows(slow: int) -> None:
    """The verdict of those who gave up on it holds for it too: no process runs the rewritten module alone."""
    said = outcomes([holds()] * 2, late={slow: 3.0}, patience=Patience(1.0, 1.0, 1.0))
    assert len(set(said)) == 1
    assert f"process {slow} (not seen yet): it did not reach this module within 1 s" in said[0]


def together(rewriters: Sequence[tuple[Decision, Decision]]) -> list[tuple[str, str]]:
    """Why each process runs the original, and what it holds in the end; each makes one decision, and may replay one."""
    store = WriteOnceStore()

    def one(process: int) -> tuple[str, str]:
        mine, again = rewriters[process]
        outcome = decided(Agreement("room", range(len(rewriters)), process, store,
                                    patience=QUICK), lambda: (mine, "made here"),
                          lambda first: (again, f"replayed {first.how}"))
        return outcome.why, outcome.made or ""
    with ThreadPoolExecutor(len(rewriters)) as pool:
        return list(pool.map(one, range(len(rewriters))))


def test_a_process_that_chose_otherwise_makes_the_choice_of_the_first_one() -> None:
    other = Decision(SAME.original, "c", SAME.how.replace("cpu", "gpu"), SAME.versions)
    assert together([(SAME, SAME), (other, SAME), (SAME, SAME)]) == [
        ("", "made here"), ("", f"replayed {SAME.how}"), ("", "made here")]
    same_choice = Decision(SAME.original, "d", SAME.how, SAME.versions)
    said = together([(SAME, SAME), (other, same_choice)])
    assert [why for why, _ in said] == [
        "process 1 (comparing): its module differs from that of process 0: the same module and pipeline gave a "
        "different result; use the same rule files and topology files everywhere"] * 2


def test_another_module_is_not_rewritten_by_the_choice_of_the_first_one() -> None:
    other = Decision("another", "c", "pipeline cse", SAME.versions)
    assert "its original module differs" in together([(SAME, SAME), (other, SAME)])[0][0]
    other = Decision(SAME.original, "c", "pipeline cse", SAME.versions)
    assert "its pipeline is cse, not comm" in together([(SAME, SAME), (other, SAME)])[0][0]


# ---- extras of the processes


@pytest.mark.parametrize(("first", "second", "effort"), [(True, True, EFFORT_OF_A_RUN), (False, True, 0.0),
                                                         (False, False, 0.0)])
def test_the_first_process_says_whether_the_solver_plans(first: bool, second: bool, effort: float,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    store = WriteOnceStore()
    monkeypatch.setattr(group, "solver_installed", lambda: first)
    assert group.solver_effort(Agreement("room", [0, 1], 0, store, patience=QUICK)) == effort
    monkeypatch.setattr(group, "solver_installed", lambda: second)
    assert group.solver_effort(Agreement("room", [0, 1], 1, store, patience=QUICK)) == effort


def test_a_process_that_lacks_the_solver_stops_all(monkeypatch: pytest.MonkeyPatch) -> None:
    store = WriteOnceStore()
    monkeypatch.setattr(group, "solver_installed", lambda: True)
    group.solver_effort(Agreement("room", [0, 1], 0, store, patience=QUICK))
    monkeypatch.setattr(group, "solver_installed", lambda: False)
    with pytest.raises(PlanError, match=r"process 1 \(planning\): it lacks ortools, with which process 0 plans"):
        group.solver_effort(Agreement("room", [0, 1], 1, store, patience=QUICK))
    assert "it lacks ortools" in Agreement("room", [0, 1], 0, store, patience=QUICK).settle(SAME)


# ---- what the watch of the processes adds


class NoStore:
    """A store that is never asked."""


def watch_with(**entries: str) -> Watch:
    """The watch of process 0, with what process 1 has said."""
    made = Watch("room", {0: "", 1: ""}, 0, NoStore(), 300.0)
    made._entries = {(what, 1): text for what, text in entries.items()}
    made._beats = {1: (entries.get("beat", ""), time.monotonic() - 5.0)}
    return made


def test_one_that_was_never_seen_is_waited_for_shortly() -> None:
    start = time.monotonic()
    assert "within 1 s" in outcomes([holds(), None], watch=watch_with(), patience=Patience(60.0, 1.0))[0]
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(("entries", "reason"), [
    ({"failed": "ValueError: no data"}, "it failed: ValueError: no data"), ({"left": "0"}, "it has ended"),
    ({"beat": Heartbeat(0, "gone", Phase(COMPILING, "train.py:7")).to_text()}, "its process has ended")])
def test_one_that_is_gone_is_not_waited_for(entries: dict[str, str], reason: str,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hlorewrite.jaxbridge.processes.liveness.is_gone", lambda who: who == "gone")
    start = time.monotonic()
    phase = "compiling at train.py:7" if "beat" in entries else "not seen yet"
    assert outcomes([holds(), None], watch=watch_with(**entries), patience=Patience()) == [
        f"process 1 (last seen {phase}): {reason}"]
    assert time.monotonic() - start < 5


# ---- a store that is lost


class LosesTheStore:
    """What one process sees of a store whose connection is lost after some requests."""

    def __init__(self, store: WriteOnceStore, requests: int) -> None:
        self._store, self._left = store, requests

    def _answer(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("UNAVAILABLE: failed to connect to all addresses")

    def key_value_set(self, key: str, value: str) -> None:
        """As the runtime's."""
        self._answer()
        self._store.key_value_set(key, value)

    def blocking_key_value_get(self, key: str, timeout_ms: int) -> str:
        """As the runtime's."""
        self._answer()
        return self._store.blocking_key_value_get(key, timeout_ms)


def with_a_lost_store(loses: int, requests: int) -> list[str]:
    """What two processes do when one loses the store; ``stopped`` for one that cannot know."""
    store, made = WriteOnceStore(), ["", ""]

    def one(process: int) -> None:
        mine = LosesTheStore(store, requests) if process == loses else store
        try:
            why = Agreement("room", [0, 1], process, mine, patience=Patience(0.9, 0.3, 0.5)).settle(SAME)
            made[process] = "original" if why else "rewritten"
        except Undecided:
            made[process] = "stopped"
    threads = [threading.Thread(target=one, args=(process,)) for process in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


@pytest.mark.parametrize("loses", [0, 1])
def test_losing_the_store_never_makes_two_processes_compile_different_modules(loses: int) -> None:
    """Wherever the connection ends: all compile the same, or the one that cannot know stops."""
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda requests: with_a_lost_store(loses, requests), range(8)))
    for said in runs:
        assert said[1 - loses] != "stopped"
        assert said[loses] in ("stopped", said[1 - loses])
    assert {"original", "stopped"} <= {said[loses] for said in runs}


def test_a_process_that_never_reached_the_store_compiles_the_original() -> None:
    said = Agreement("room", [0, 1], 1, LosesTheStore(WriteOnceStore(), 0)).settle(SAME)
    assert said == ("process 1 (deciding): it cannot reach the key-value store of jax.distributed (RuntimeError: "
                    "UNAVAILABLE: failed to connect to all addresses)")


def test_a_decision_of_another_version_is_refused() -> None:
    store = WriteOnceStore()
    store.key_value_set("room/decision/0", '{"unknown": 1}')
    assert "the decision of another version" in Agreement("room", [0, 1], 1, store).settle(SAME)


@pytest.mark.parametrize("text", ["", "1", "[]", '{"original": 1}', '{"original": "a", "result": "b", "how": "c"}'])
def test_damaged_decisions_are_no_decisions(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Decision.from_text(text)


def test_keys_of_earlier_decisions_are_deleted() -> None:
    store = WriteOnceStore()

    def turn(number: int) -> None:
        rooms = [Agreement(f"room/{number}", [0, 1], process, store, patience=QUICK, watch=None,
                           before=f"room/{number - 1}" if number else "") for process in range(2)]
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda each: decided(each, lambda: (SAME, None)).why, rooms)) == ["", ""]
    for number in range(4):
        turn(number)
    assert {key.split("/")[1] for key in store.values} == {"3"}


def test_errors_other_than_exceptions_are_said_and_raised() -> None:
    store = WriteOnceStore()

    def interrupted() -> tuple[Decision, None]:
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        decided(Agreement("room", [0, 1], 1, store), interrupted)
    assert store.values["room/verdict"] == "process 1 (rewriting): KeyboardInterrupt"
    assert issubclass(Undecided, HlorewriteError)
