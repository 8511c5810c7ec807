"""Waits for arrays that leave no Python frame are seen, and a user's own code is not taken for one."""

from __future__ import annotations

import operator
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.jaxbridge.processes.activity import OWN, WAITING, BlockedClock, array_outstanding, phase_of


class Gate:
    """Makes arrays of two devices that are not computed before ``open`` is called."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        sharding = NamedSharding(jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,)), P())
        self._one = jax.device_put(jnp.float32(1), sharding)
        self._step = jax.jit(self._later, out_shardings=sharding)

    def array(self) -> jax.Array:
        """One."""
        self._opened.clear()
        return self._step(self._one)

    def open(self) -> None:
        """Lets it be computed."""
        self._opened.set()

    def _later(self, x: jax.Array) -> jax.Array:
        return jax.pure_callback(self._wait, jax.ShapeDtypeStruct((), jnp.float32), x)

    def _wait(self, x: Any) -> np.ndarray:
        self._opened.wait(60)
        return np.asarray(x)


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


def seen_in(code: Callable[[], object], until: Callable[[str, float], bool], limit_s: float) -> list[str]:
    """The phases of a thread that runs some code, until one satisfies a condition, or for a time."""
    thread = threading.Thread(target=code, daemon=True)
    thread.start()
    clock, kinds, end = BlockedClock(thread.native_id), list[str](), time.monotonic() + limit_s
    # Ends: at the deadline.
    while thread.is_alive() and time.monotonic() < end:
        time.sleep(0.05)
        frame = sys._current_frames().get(thread.ident or 0)
        kinds.append(phase_of(frame)[0])
        clock.look(frame if kinds[-1] == OWN else None)
        if until(kinds[-1], clock.seconds):
            return [*kinds, "seen"]
    return kinds


METHODS: dict[str, Callable[[Any], object]] = {
    "method": lambda a: a.block_until_ready(),
    "method of an element": lambda a: {"loss": a}["loss"].block_until_ready(),
    "method of a result": lambda a: a.addressable_data(0).block_until_ready(),
    "function": lambda a: jax.block_until_ready([a]),
    "float": lambda a: float(a),
    "item": lambda a: a.item(),
    "tolist": lambda a: a.tolist(),
    "device_get": lambda a: jax.device_get({"loss": a}),
    "str": lambda a: str(a),
    "f-string": lambda a: f"{a:.3f}",
    "asarray": lambda a: np.asarray(a),
}
IN_C: dict[str, Callable[[Any], object]] = {
    "map": lambda a: list(map(type(a).block_until_ready, [a])),
    "methodcaller": lambda a: operator.methodcaller("block_until_ready")(a),
    "bound method": lambda a: (lambda wait: wait())(a.block_until_ready),
    "asarray of a shard": lambda a: np.asarray(a.addressable_data(0)),
    "array of shards": lambda a: np.array([a.addressable_data(0)]),
    "a ufunc": lambda a: np.add(np.ones(()), a.addressable_data(0)),
    "dlpack": lambda a: np.from_dlpack(a.addressable_data(0)),
}


def into_host(array: jax.Array) -> None:
    """Waits in an instruction that is no call."""
    host, shard = np.zeros(()), array.addressable_data(0)
    host[...] = shard


@pytest.mark.parametrize("name", METHODS)
def test_a_wait_that_the_source_names_is_one(gate: Gate, name: str) -> None:
    array = gate.array()
    seen = seen_in(lambda: METHODS[name](array), lambda kind, _: kind == WAITING, 20)
    gate.open()
    assert seen[-1] == "seen", seen


@pytest.mark.parametrize("wait", [*IN_C.values(), into_host], ids=[*IN_C, "item of an array of the host"])
def test_a_wait_inside_c_is_seen_from_outside(gate: Gate, wait: Callable[[Any], object]) -> None:
    array = gate.array()
    seen = seen_in(lambda: wait(array), lambda kind, since_s: kind == WAITING or since_s > 0.3, 20)
    gate.open()
    assert seen[-1] == "seen", seen


LATE = queue.SimpleQueue[int]()
"""A queue in C, into which each test puts something when it ends."""


def silent_pipe() -> int:
    """Where to read what nobody writes for a second."""
    reading, writing = os.pipe()
    threading.Timer(1.2, os.close, [writing]).start()
    return reading


OWN_CODE: dict[str, Callable[[], object]] = {
    "sleep": lambda: time.sleep(1.2),
    "lock": lambda: threading.Semaphore(0).acquire(timeout=1.2),
    "raw lock": lambda: (lambda lock: (lock.acquire(), lock.acquire(True, 1.2)))(threading.Lock()),
    "queue": lambda: queue.Queue[int]().get(True, 1.2),
    "queue in C": lambda: LATE.get(),
    "child": lambda: subprocess.run([sys.executable, "-c", "import time; time.sleep(1.2)"], check=True),
    "pipe": lambda: os.read(silent_pipe(), 1),
    "for": lambda: [str(each) for each in iter(LATE.get, 0)],
    "next": lambda: next(iter(LATE.get, 0)),
    "python": lambda: sum(number for number in range(20_000_000)),
}


@pytest.mark.parametrize("name", OWN_CODE)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_own_code_is_no_wait_while_an_array_is_outstanding(gate: Gate, name: str) -> None:
    while not LATE.empty():  # Ends: what other tests put there was little.
        LATE.get()
    array = gate.array()
    assert array_outstanding()
    kinds = seen_in(OWN_CODE[name], lambda _, since_s: since_s > 0.3, 0.8)
    gate.open()
    LATE.put(0)
    assert set(kinds) == {OWN}, kinds
    array.block_until_ready()


def test_a_wait_is_none_when_every_array_is_there() -> None:
    lock = threading.Lock()
    lock.acquire()
    kinds = seen_in(lambda: [*map(lock.acquire, [True])], lambda _, since_s: since_s > 0.3, 0.8)
    lock.release()
    assert set(kinds) == {OWN}, kinds
