"""How rewriters reach one decision, also from a plan file: decorated steps, ``patch_jit``, pipelines and resharding."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from typing import Generic, TypeVar

import jax
from jaxlib import version as jaxlib_version

from hlorewrite.errors import PlanError, PlanMismatch
from hlorewrite.jaxbridge.processes.agreement import Agreement, Decision, Patience
from hlorewrite.jaxbridge.processes.liveness import Watch
from hlorewrite.jaxbridge.processes.notes import one_line
from hlorewrite.jaxbridge.processes.store import TIMEOUT_S
from hlorewrite.jaxbridge.xla.private import distributed_client
from hlorewrite.util.read import read_json
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


# ---- the plan file of a step that several processes run: the first one reads it and broadcasts it

# So a file that is missing, old or different on some host does not matter, and one policy holds for all.


_PART = 1 << 20
"""Characters of one value of the store."""


@dataclass(frozen=True)
class PlanRuling:
    """What happens with the plan of a step.

    Attributes:
      name: the plan's file; empty if none is kept.
      text: the plan to replay; empty if none is.
      refused: why there is none to replay, and what happens now.
      hint: what you can do about it.
      ends: nothing is rewritten because of it.
      stops: the program stops because of it.
    """

    name: str = ""
    text: str = ""
    refused: str = ""
    hint: str = ""
    ends: bool = False
    stops: bool = False

    def error(self) -> PlanMismatch:
        """The refusal as an error."""
        return PlanMismatch(self.refused, location=self.name, hint=self.hint or None, stops=self.stops)

    @classmethod
    def from_text(cls, text: str) -> PlanRuling:
        """Reads what the first process wrote as JSON.

        Raises:
          ValueError: it is another document, such as that of another version.
        """
        data = read_json(text)
        if not isinstance(data, dict) or set(data) != {field.name for field in fields(cls)}:
            raise ValueError("the plan of another version of hlorewrite")
        return cls(**data)


def ruling_of_all(agreement: Agreement | None, mine: Callable[[], PlanRuling]) -> PlanRuling:
    """The message of the deciding process about the plan.

    Args:
      agreement: the agreement of the processes; None if this one decides alone.
      mine: reads the plan's file; called on the process that decides alone.

    Raises:
      PlanMismatch: the process that decides does not say it.
    """
    if agreement is None:
        return mine()
    if agreement.decides:
        made = mine()
        text = json.dumps(asdict(made), sort_keys=True)
        parts = [text[at:at + _PART] for at in range(0, len(text), _PART)]
        for position, part in enumerate([str(len(parts)), *parts]):
            agreement.first_says(f"plan/{position}", part)
        return made
    count = int(_said(agreement, 0))
    return PlanRuling.from_text("".join(_said(agreement, position + 1) for position in range(count)))


def stopped_by_plan(agreement: Agreement) -> PlanMismatch | None:
    """Why the program stops, if the first process said so about the plan; for a process that arrived afterwards."""
    count = agreement.first_said("plan/0")
    parts = [agreement.first_said(f"plan/{position + 1}") for position in range(int(count or 0))]
    if not parts or None in parts:
        return None
    ruling = PlanRuling.from_text("".join(part or "" for part in parts))
    return ruling.error() if ruling.stops else None


def _said(agreement: Agreement, position: int) -> str:
    said, why = agreement.first_says(f"plan/{position}", "")
    if why:  # another process that read the same may have been faster
        raise stopped_by_plan(agreement) or PlanMismatch(why, stops=False)
    return said
