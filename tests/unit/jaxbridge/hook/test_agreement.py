"""Processes decide together: the same verdict on all when one fails, differs, is late or absent."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from hlorewrite.jaxbridge.hook.agreement import announce, decide
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
        made[process] = decide(holding, (failures or {}).get(process, ""), members, process, store, 0, absent_s,
                               present_s)
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
