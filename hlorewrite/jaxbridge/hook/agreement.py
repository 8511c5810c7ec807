"""The processes of a step decide together, before any of them compiles, whether all run the rewritten module.

A module that is rewritten on one process and not on another makes them wait for each other in different collectives for
ever. Each process says in the key-value store of ``jax.distributed`` what it holds. One verdict is then written,
by the process that comes first, and all follow it:

* the first process of the step writes ``rewritten`` when all hold the same, else why not; no other can write that;
* a process whose passes failed writes why not;
* a process that has waited for too long writes whom it has waited for.

The store writes a key once, so there is one verdict. A wrong guess about a slow process costs a rewrite, never a value.

A process that loses the store can still choose the original as long as no verdict can be ``rewritten``: before it has
said what it holds, when its passes failed, and on the first process before that writes ``rewritten``. Later it keeps
asking for the verdict, and stops when it cannot have it (``Undecided``): the others may run the rewritten module.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from hlorewrite.errors import HlorewriteError
from hlorewrite.jaxbridge.processes.same_module import Holding, disagreement

REWRITTEN = "rewritten"
ABSENT_S = 10.0
"""How long to wait for a process that has not been seen to patch JAX."""
PRESENT_S = 120.0
"""How long to wait for one that has: it may still be loading data, or rewriting. Also how long to ask for a verdict."""
_POLL_MS = 500
_ROOM = "hlorewrite/hook"
Answer = TypeVar("Answer")


class Undecided(HlorewriteError):
    """A process said what it holds, and then lost the key-value store: it cannot know what the others compile."""


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds.

    Attributes:
      absent: for a process that was never seen to patch JAX.
      present: for any other, and for the store.
    """

    absent: float = ABSENT_S
    present: float = PRESENT_S


_PATIENCE = Patience()


def announce(store: Any, process: int) -> None:
    """Says that this process patches JAX, so that others wait for it."""
    _write_once(store, f"{_ROOM}/present/{process}", "yes")


def decide(holding: Holding, failure: str, members: Sequence[int], process: int, store: Any, turn: int,
           patience: Patience = _PATIENCE) -> str:
    """Decides with the other processes of a step.

    Args:
      holding: what this process holds; ``original`` names the step.
      failure: why this process cannot run the rewritten module; empty when it can.
      members: the processes whose devices the step runs on, ascending.
      process: this one.
      store: the key-value store of ``jax.distributed``.
      turn: how often this step was decided on before; the same on every process.
      patience: how long to wait.

    Returns:
      Why all run the original; empty when all run the rewritten module.

    Raises:
      Undecided: the store was lost in the middle, and the others may run the rewritten module.
    """
    room = f"{_ROOM}/{'-'.join(map(str, members))}/{holding.original[:16]}/{turn}"
    verdict = f"{room}/verdict"
    try:
        _read(store, verdict, 1)
    except Exception as error:  # nothing was said yet, so the others cannot decide for the rewritten module
        return failure or _lost(process, error)
    if failure:
        return _refused(store, verdict, f"process {process}: {failure}")
    if process == members[0]:
        return _first_decides(holding, members, store, room, patience)
    mine = json.dumps(asdict(holding))
    _insistently(lambda: _write_once(store, f"{room}/{process}", mine), process, patience)
    said = _wait(store, verdict, members[0], verdict, patience)
    return _settled(store, verdict, said or _missing(members[0]), process, patience)


def _first_decides(holding: Holding, members: Sequence[int], store: Any, room: str, patience: Patience) -> str:
    """The first process reads what all hold, and writes the verdict."""
    first, verdict = members[0], f"{room}/verdict"
    try:
        everyone = {first: holding}
        for other in members[1:]:
            said = _wait(store, f"{room}/{other}", other, verdict, patience)
            if said is None or not said.startswith("{"):
                return _refused(store, verdict, said or _missing(other))
            everyone[other] = Holding(**json.loads(said))
        different = disagreement(everyone)
    except Exception as error:
        different = f"process {first}: {_first_line(error)}"
    return (_refused(store, verdict, different) if different
            else _settled(store, verdict, REWRITTEN, first, patience))


def _missing(process: int) -> str:
    return (f"process {process} did not compile this step in time; it is slow, gone, or runs without hlorewrite")


def _lost(process: int, error: Exception) -> str:
    return f"process {process} cannot reach the key-value store of jax.distributed ({_first_line(error)})"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _wait(store: Any, key: str, other: int, verdict: str, patience: Patience) -> str | None:
    """What a key holds, or the verdict when that comes first; None when neither comes in time."""
    start = time.monotonic()
    while True:  # Ends: time passes.
        try:
            for wanted in dict.fromkeys((key, verdict)):
                text = _read(store, wanted, _POLL_MS if wanted == key else 1)
                if text is not None:
                    return text
            absent = _read(store, f"{_ROOM}/present/{other}", 1) is None
        except Exception:  # the store may answer again
            absent = False
            time.sleep(_POLL_MS / 1000)
        waited = time.monotonic() - start
        if waited > patience.present or (absent and waited > patience.absent):
            return None


def _refused(store: Any, verdict: str, mine: str) -> str:
    """Writes why all run the original, where no verdict can be ``rewritten`` without this process; the first reason."""
    with suppress(Exception):
        _write_once(store, verdict, mine)
        return _read(store, verdict, _POLL_MS) or mine
    return mine


def _settled(store: Any, verdict: str, mine: str, process: int, patience: Patience) -> str:
    """Writes the verdict unless there is one; why all run the original, by the one that holds."""
    def ask() -> str:
        _write_once(store, verdict, mine)
        final = _read(store, verdict, _POLL_MS)
        if final is None:
            raise TimeoutError("no answer")
        return final
    final = _insistently(ask, process, patience)
    return "" if final == REWRITTEN else final


def _insistently(ask: Callable[[], Answer], process: int, patience: Patience) -> Answer:
    """Asks the store until it answers.

    Raises:
      Undecided: it does not.
    """
    start = time.monotonic()
    while True:  # Ends: time passes.
        try:
            return ask()
        except Exception as error:
            if time.monotonic() - start > patience.present:
                raise Undecided(f"{_lost(process, error)}, so it does not know whether the others compile the "
                                "rewritten module", hint="start the job again") from error
            time.sleep(_POLL_MS / 1000)


def _write_once(store: Any, key: str, text: str) -> None:
    try:
        store.key_value_set(key, text)
    except Exception as error:  # the runtime's own error type differs between versions of jaxlib
        if "ALREADY_EXISTS" not in str(error):
            raise


def _read(store: Any, key: str, timeout_ms: int) -> str | None:
    try:
        return store.blocking_key_value_get(key, timeout_ms)
    except Exception as error:
        if "DEADLINE_EXCEEDED" not in str(error) and "NOT_FOUND" not in str(error):
            raise
        return None
