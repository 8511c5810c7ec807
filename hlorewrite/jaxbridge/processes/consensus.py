"""How rewriters reach one decision: decorated steps, ``patch_jit``, pipelines and resharding."""

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import jax
from jaxlib import version as jaxlib_version

from hlorewrite.errors import PlanError
from hlorewrite.jaxbridge.processes.agreement import Agreement, Patience
from hlorewrite.jaxbridge.processes.decision import Decision
from hlorewrite.jaxbridge.processes.liveness import Watch
from hlorewrite.jaxbridge.processes.notes import one_line
from hlorewrite.jaxbridge.processes.shared_plan import stopped_by_plan
from hlorewrite.jaxbridge.processes.store import TIMEOUT_S
from hlorewrite.jaxbridge.xla.private import distributed_client
from hlorewrite.version import VERSION

Made = TypeVar("Made")
VERSIONS = f"hlorewrite {VERSION}, jaxlib {jaxlib_version.__version__}"
_ROOM = "hlorewrite/steps"


class Rooms:
    """Numbers the decisions of this process, so that its n-th decision on a topic meets the n-th decisions of the
    others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, int] = {}

    def next(self, name: str) -> int:
        """The next number of a name, from 0."""
        with self._lock:
            number = self._used.get(name, 0)
            self._used[name] = number + 1
        return number


ROOMS = Rooms()
"""One object for the process, because keys of the store live as long as the process does."""


@dataclass(frozen=True)
class JointOutcome(Generic[Made]):
    """The joint decision of the processes about one module.

    Attributes:
      made: what this process made of it; None if it failed.
      why: why all run the original, with the process, its phase and the reason; empty when all run the rewritten one.
      error: what the rewriter of this process raised, or a refusal of the plan that stops all.
    """

    made: Made | None
    why: str
    error: Exception | None = None


def agreement_of(topic: str, members: Iterable[int], patience: Patience,
                 watch: Watch | None = None) -> Agreement | None:
    """The next agreement of some processes on a topic.

    Args:
      topic: what is decided, the same on every process.
      members: the processes whose devices the module runs on.
      patience: how long to wait for each.
      watch: the watch of the processes; None if there is none.

    Returns:
      The agreement; None if this process decides alone.

    Raises:
      PlanError: there are several, and JAX's distributed runtime is not initialised.
    """
    numbers = sorted(set(members))
    if len(numbers) < 2 or jax.process_index() not in numbers:
        return None
    store = distributed_client()
    if store is None:
        raise PlanError("the devices belong to several processes, but there is no distributed runtime",
                        hint="call jax.distributed.initialize first")
    everyone = hashlib.sha256(repr(numbers).encode()).hexdigest()[:12]
    name = f"hlorewrite/decide/{topic}/{everyone}"
    turn = ROOMS.next(name)
    return Agreement(f"{name}/{turn}", numbers, jax.process_index(), store, patience=patience, watch=watch,
                     before=f"{name}/{turn - 1}" if turn else "")


def decided(agreement: Agreement, make: Callable[[], tuple[Decision, Made]],
            replay: Callable[[Decision], tuple[Decision, Made]] | None = None) -> JointOutcome[Made]:
    """Rewrites a module, and decides with the other processes whether all run the result.

    Args:
      agreement: the agreement with the other processes.
      make: rewrites; returns what this process holds then, for the others, and for itself.
      replay: the same, by the choices of the first process, where they are others.

    Returns:
      The decision, also if ``make`` raised.

    Raises:
      Undecided: the store was lost in the middle.
    """
    agreement.come()
    if why := agreement.over():  # this process is late
        return JointOutcome(None, why, stopped_by_plan(agreement))
    try:
        decision, made = make()
    except BaseException as error:
        why = agreement.refuse(one_line(error))
        if not isinstance(error, Exception):
            raise
        return JointOutcome(None, why, error)
    held = [made]

    def again(first: Decision) -> Decision:
        assert replay is not None
        mine, result = replay(first)
        held[0] = result
        return mine
    why = agreement.settle(decision, None if replay is None else again)
    return JointOutcome(held[0], why)


def check_same(agreement: Agreement | None, what: str, digest: str) -> None:
    """Returns when all processes have arrived with the same digest.

    Args:
      agreement: the agreement of the processes; None if there is one.
      what: what each process must have alike; a word.
      digest: the digest of it.

    Raises:
      PlanError: a process has another digest, or did not arrive in time; the message names it.
    """
    why = "" if agreement is None else agreement.settle(Decision("", digest, f"{what} {digest[:12]}", VERSIONS))
    if why:
        raise PlanError(why, hint="give every process the same program, shapes, shardings, options and versions")


class StepsWatch:
    """The watch of a process, made with its first step.

    It ends the process only while the process waits for devices, because a program may catch errors and go on without a
    peer.
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
          The watch; None if there is one process.
        """
        with self._lock:
            store = distributed_client()
            if self._watch is None and store is not None and jax.process_count() > 1:
                stages = dict.fromkeys(range(jax.process_count()), "")
                self._watch = Watch(_ROOM, stages, jax.process_index(), store, timeout_s, only_waiting=True,
                                    leave_errors=leave_errors).start()
            return self._watch


STEPS = StepsWatch()
"""One watch for the process, because JAX has one distributed runtime."""
