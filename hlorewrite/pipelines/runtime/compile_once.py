"""XLA's executables for several sets of devices from one compilation, several compilations at a time.

An executable is compiled for certain devices, but its code does not depend on them: serialized and read back for other
devices, it runs there. Reading takes milliseconds, compiling seconds.
"""

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import jax

from hlorewrite.jaxbridge.xla import private

Key = TypeVar("Key")
_INSTALLED = threading.Lock()


class ExecutableStore:
    """Serialized executables, by what they compute."""

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}
        self.read = 0

    def holds(self, key: str) -> bool:
        """Whether an executable of a digest is kept."""
        return key in self._written

    @contextmanager
    def of(self, key: str) -> Iterator[None]:
        """In the body, what this thread compiles for its devices is read if the store has it, and stored otherwise.
        """
        before = _WANTED.set((self, key))
        try:
            yield
        finally:
            _WANTED.reset(before)

    def executable(self, key: str, client: Any, devices: Any, options: Any, compile_it: Callable[[Any], Any]) -> Any:
        """An executable for devices: read, or else compiled by a client and kept."""
        written = self._written.get(key)
        if written is not None:
            found = private.read_executable(client, written, devices, options)
            if found is not None:
                self.read += 1
                return found
        listening = _ListeningClient(client)
        made = compile_it(listening)
        if written is None:
            given = listening.read or private.write_executable(client, made)
            if given is not None:
                self._written[key] = given
        return made


_WANTED: ContextVar[tuple[ExecutableStore, str] | None] = ContextVar("wanted", default=None)
"""The store for executables that the running thread compiles, and their digests."""


class _ListeningClient:
    """A client that keeps what it reads: an executable from JAX's cache, once read, cannot be written out in full."""

    def __init__(self, client: Any) -> None:
        self._client, self.read = client, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def deserialize_executable(self, written: bytes, *rest: Any) -> Any:
        """Does the same as the client, and keeps what is read."""
        self.read = written
        return self._client.deserialize_executable(written, *rest)


@contextmanager
def shared_executables() -> Iterator[None]:
    """While the body runs, programs that a thread compiles in ``ExecutableStore.of`` go through that store."""
    with _INSTALLED:
        original = private.compile_function()
        if original is None:
            yield
            return

        def compile_or_get_cached(backend: Any, computation: Any, devices: Any, compile_options: Any,
                                  host_callbacks: Any, executable_devices: Any, *rest: Any, **named: Any) -> Any:
            def compile_it(client: Any) -> Any:
                return original(client, computation, devices, compile_options, host_callbacks, executable_devices,
                                *rest, **named)

            wanted = _WANTED.get()
            if wanted is None:
                return compile_it(backend)
            store, key = wanted
            return store.executable(key, backend, executable_devices, compile_options, compile_it)

        private.set_compile_function(compile_or_get_cached)
        try:
            yield
        finally:
            if private.compile_function() is compile_or_get_cached:
                private.set_compile_function(original)


def compile_all(work: Mapping[Key, tuple[str, Callable[[], jax.stages.Compiled]]], store: ExecutableStore,
                done: Callable[[Key], None]) -> dict[Key, jax.stages.Compiled]:
    """Compiles several programs at a time, as many as the process has cores, large ones first and equal ones only once.

    Args:
      work: for each program what it computes, and the function that compiles it; programs that compute the same, for
        other devices, have the same text there, and an empty one shares nothing.
      store: where executables are kept.
      done: called with each program that is compiled, in any order.

    Returns:
      The compiled programs.

    Raises:
      An error of a compilation.
    """
    groups: dict[object, list[Key]] = {}
    for key, (text, _) in work.items():
        groups.setdefault(text or object(), []).append(key)
    made: dict[Key, jax.stages.Compiled] = {}
    options = private.own_configuration()  # each thread of JAX has its own
    with shared_executables(), ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        largest_first = sorted(groups.values(), key=lambda keys: -len(work[keys[0]][0]))
        running = {}
        for keys in largest_first:
            text, function = work[keys[0]]
            kept = len(keys) > 1 or store.holds(text)  # writing takes milliseconds
            running[pool.submit(_run, options, store, text if kept else "", function)] = keys
        try:
            # Ends: each round takes at least one program out of those that run, and each is started once.
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    key, *others = running.pop(future)
                    made[key] = future.result()
                    done(key)
                    running |= {pool.submit(_run, options, store, *work[other]): [other] for other in others}
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return made


def _run(options: Mapping[str, Any], store: ExecutableStore, text: str,
         function: Callable[[], jax.stages.Compiled]) -> jax.stages.Compiled:
    with private.configured(options), store.of(text) if text else nullcontext():
        return function()


def spread(devices: Sequence[Any]) -> bool:
    """Whether some devices belong to another process."""
    return any(device.process_index != jax.process_index() for device in devices)


# ---- how many programs with collectives may be in flight on CPU

# On CPU a device that waits in a collective holds a thread of XLA's pool until the others arrive, and the pool has as
# many threads as the process has cores or devices, whichever is more. When all of them wait in collectives of different
# programs, none is left to run the devices they wait for, and everything stands still. So a program is launched only
# when there are threads for all devices of all programs in flight:
#
# * Among programs within this process that are stuck, each has a device that has not begun. With k devices each, they
#   hold at most sum(k - 1) threads, so sum(k) <= threads leaves one for the program that such a device waits for.
# * A program over several processes may hold all its k threads here while it waits for another process. Then one more
#   thread is kept free, or the program runs alone.
#
# On GPU a waiting collective holds a stream, not a thread, and there is no limit.


@dataclass(frozen=True)
class Hold:
    """Threads that a program may hold while it waits.

    Attributes:
      threads: devices of this process that participate; 0 for a program that never waits.
      spans: whether other processes participate.
    """

    threads: int = 0
    spans: bool = False


@dataclass
class InFlight:
    """The programs with collectives that have not been seen to end.

    Args:
      threads: of XLA's pool.
    """

    threads: int
    _held: deque[tuple[Any, Hold]] = field(default_factory=deque)

    def wait_for_room(self, hold: Hold) -> None:
        """Waits until a program may be launched."""
        held = self._held
        # Ends: each round takes a program out.
        while held and not self.fits(hold):
            with suppress(jax.errors.JaxRuntimeError):  # the error reaches what waits for its results
                held.popleft()[0].block_until_ready()
            # Ends: each round takes a program out.
            while held and held[0][0].is_ready():
                held.popleft()

    def fits(self, hold: Hold) -> bool:
        """Whether there are threads for one more program."""
        needed = hold.threads + sum(each.threads for _, each in self._held)
        spans = hold.spans or any(each.spans for _, each in self._held)
        return needed + spans <= self.threads

    def add(self, token: Any, hold: Hold) -> None:
        """Notes a program; its token, an array, is ready when it has run."""
        self._held.append((token, hold))


@functools.cache
def in_flight_here() -> InFlight:
    """The programs in flight in this process: all drivers share XLA's pool, and so this object."""
    return InFlight(pool_threads(os.environ, jax.local_device_count()))


def pool_threads(environment: Mapping[str, str], devices: int) -> int:
    """Threads of XLA's pool on CPU: PJRT_NPROC, NPROC or the cores this process may use, but at least one per device.

    Example:
      >>> pool_threads({"PJRT_NPROC": "48"}, 4)
      48
    """
    for name in ("PJRT_NPROC", "NPROC"):
        if environment.get(name, "").isdecimal():
            return max(int(environment[name]), devices)
    return max(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, devices)
