"""Watches the processes of steps, decorated or compiled under ``patch_jit``: one watch for all steps of a process."""

from __future__ import annotations

import threading

import jax

from hlorewrite.jaxbridge.processes.store import TIMEOUT_S
from hlorewrite.jaxbridge.processes.watch import Watch
from hlorewrite.jaxbridge.xla.private import distributed_client

_ROOM = "hlorewrite/steps"


class StepsWatch:
    """The watch of a process, made with its first step.

    It ends the process only while that waits for devices: a program may catch errors, and go on without a peer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watch: Watch | None = None

    def begin(self, timeout_s: float = TIMEOUT_S, *, leave_errors: bool = False) -> Watch | None:
        """Starts to watch all processes of ``jax.distributed``; later calls change nothing.

        Args:
          timeout_s: how long a process may be silent, or keep this one waiting, seconds.
          leave_errors: an uncaught exception ends the process as it would without the watch.

        Returns:
          The watch; None where there is one process.
        """
        with self._lock:
            store = distributed_client()
            if self._watch is None and store is not None and jax.process_count() > 1:
                stages = dict.fromkeys(range(jax.process_count()), "")
                self._watch = Watch(_ROOM, stages, jax.process_index(), store, timeout_s, only_waiting=True,
                                    leave_errors=leave_errors).start()
            return self._watch


STEPS = StepsWatch()
"""One for the process, as JAX has one distributed runtime."""
