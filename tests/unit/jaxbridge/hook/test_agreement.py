"""Processes decide together: the same verdict on all when one fails, differs, is late or absent."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from hlorewrite.jaxbridge.hook.agreement import Patience, Undecided, announce, decide
from hlorewrite.jaxbridge.processes.same_module import Holding

SAME = Holding("1", "0.10.2", "comm", "a" * 64, "b" * 64)
OTHER = Holding("2", "0.10.2", "comm", "a" * 64, "c" * 64)


class WriteOnceStore:
    """A key-value store with the interface and the errors of ``jax.distributed``'s."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._changed = threading.Condition()

    def key_value_set(self, key: str, value: str) -> None:
        with self._changed:
            if key in self._values:
                raise RuntimeError(f"ALREADY_EXISTS: key {key}")
            self._values[key] = value
            self._changed.notify_all()

    def blocking_key_value_get(self, key: str, timeout_ms: int) -> str:
        with self._changed:
            if not self._changed.wait_for(lambda: key in self._values, timeout_ms / 1000):
                raise RuntimeError(f"DEADLINE_EXCEEDED: key {key}")
            return self._values[key]


def verdicts(holdings: Sequence[Holding | None], failures: dict[int, str] | None = None,
             late: dict[int, float] | None = None, absent_s: float = 1.0, present_s: float = 3.0) -> list[str]:
    """What each process that comes decides, in threads; None in ``holdings`` never comes."""
    store, made = WriteOnceStore(), [""] * len(holdings)
    members = list(range(len(holdings)))

    def one(process: int, holding: Holding) -> None:
        time.sleep((late or {}).get(process, 0.0))
        made[process] = decide(holding, (failures or {}).get(process, ""), members, process, store, 0,
                               Patience(absent_s, present_s))
    coming = [(process, holding) for process, holding in enumerate(holdings) if holding is not None]
    for process, _ in coming:
        announce(store, process)
    threads = [threading.Thread(target=one, args=each) for each in coming]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [made[process] for process, _ in coming]


def test_all_hold_the_same() -> None:
    assert verdicts([SAME] * 4) == [""] * 4


@pytest.mark.parametrize("odd", [0, 2])
def test_one_holds_another_module(odd: int) -> None:
    """All get the same sentence, and it names the process and the difference."""
    said = verdicts([OTHER if process == odd else SAME for process in range(3)])
    assert len(set(said)) == 1
    assert said[0] == f"process {odd} holds another rewritten module than process {1 if odd == 0 else 0}: its " \
        "hlorewrite version is 2, not 1"


@pytest.mark.parametrize("failing", [0, 1])
def test_one_fails(failing: int) -> None:
    """The others do not wait until their time is up."""
    start = time.monotonic()
    assert verdicts([SAME] * 3, {failing: "a pass failed"}, present_s=60) == [f"process {failing}: a pass failed"] * 3
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("absent", [0, 1])
def test_one_never_comes(absent: int) -> None:
    """It runs without hlorewrite: the others compile the original after the short wait, and name it."""
    start = time.monotonic()
    said = verdicts([None if process == absent else SAME for process in range(3)], present_s=60)
    assert said == [f"process {absent} did not compile this step in time; it is slow, gone, or runs without "
                    "hlorewrite"] * 2
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("slow", [0, 1])
def test_one_that_patches_is_waited_for(slow: int) -> None:
    assert verdicts([SAME] * 2, late={slow: 2.0}, absent_s=0.5, present_s=20) == ["", ""]


@pytest.mark.parametrize("slow", [0, 1])
def test_one_that_comes_too_late_follows(slow: int) -> None:
    """The verdict of those who gave up on it holds for it too: no process runs the rewritten module alone."""
    said = verdicts([SAME] * 2, late={slow: 3.0}, absent_s=0.5, present_s=1.0)
    assert len(set(said)) == 1
    assert f"process {slow} did not compile this step in time" in said[0]


class LosesTheStore:
    """What one process sees of a store whose connection is lost after some requests."""

    def __init__(self, store: WriteOnceStore, requests: int) -> None:
        self._store, self._left = store, requests

    def _answer(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("UNAVAILABLE: failed to connect to all addresses")

    def key_value_set(self, key: str, value: str) -> None:
        self._answer()
        self._store.key_value_set(key, value)

    def blocking_key_value_get(self, key: str, timeout_ms: int) -> str:
        self._answer()
        return self._store.blocking_key_value_get(key, timeout_ms)


def with_a_lost_store(loses: int, requests: int) -> list[str]:
    """What two processes decide when one loses the store; ``stopped`` for one that cannot know."""
    store, made = WriteOnceStore(), ["", ""]

    def one(process: int) -> None:
        mine = LosesTheStore(store, requests) if process == loses else store
        try:
            why = decide(SAME, "", [0, 1], process, mine, 0, Patience(0.3, 0.9))
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
    with ThreadPoolExecutor(6) as pool:
        runs = list(pool.map(lambda requests: with_a_lost_store(loses, requests), range(6)))
    for said in runs:
        assert said[1 - loses] != "stopped"
        assert said[loses] in ("stopped", said[1 - loses])
    assert {"original", "stopped"} <= {said[loses] for said in runs}


def test_a_process_that_never_reached_the_store_compiles_the_original() -> None:
    said = decide(SAME, "", [0, 1], 1, LosesTheStore(WriteOnceStore(), 0), 0)
    assert said == ("process 1 cannot reach the key-value store of jax.distributed (RuntimeError: UNAVAILABLE: failed "
                    "to connect to all addresses)")


def test_a_process_of_another_version_that_says_more() -> None:
    """The first process cannot read what it says; both compile the original."""
    store = WriteOnceStore()
    store.key_value_set(f"hlorewrite/hook/0-1/{'a' * 16}/0/1", '{"unknown": 1}')
    assert "TypeError" in decide(SAME, "", [0, 1], 0, store, 0)
    assert "TypeError" in decide(SAME, "", [0, 1], 1, store, 0)
