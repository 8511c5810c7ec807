"""The processes of a step decide together, before any of them compiles, whether all run the rewritten module.

A module that is rewritten on one process and not on another makes them wait for each other in different collectives for
ever. Each process says in the key-value store of ``jax.distributed`` what it holds. One verdict is then written,
by the process that comes first, and all follow it:

* the first process of the step writes ``rewritten`` when all hold the same, else why not;
* a process whose passes failed writes why not;
* a process that has waited for too long writes whom it has waited for.

The store writes a key once, so there is one verdict. A wrong guess about a slow process costs a rewrite, never a value.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hlorewrite.jaxbridge.processes.same_module import Holding, disagreement

REWRITTEN = "rewritten"
ABSENT_S = 10.0
"""How long to wait for a process that has not been seen to patch JAX."""
PRESENT_S = 120.0
"""How long to wait for one that has: it may still be loading data, or rewriting."""
_POLL_MS = 500
_ROOM = "hlorewrite/hook"


def announce(store: Any, process: int) -> None:
    """Says that this process patches JAX, so that others wait for it."""
    _write_once(store, f"{_ROOM}/present/{process}", "yes")


def decide(holding: Holding, failure: str, members: Sequence[int], process: int, store: Any, turn: int,
           absent_s: float = ABSENT_S, present_s: float = PRESENT_S) -> str:
    """Decides with the other processes of a step.

    Args:
      holding: what this process holds; ``original`` names the step.
      failure: why this process cannot run the rewritten module; empty when it can.
      members: the processes whose devices the step runs on, ascending.
      process: this one.
      store: the key-value store of ``jax.distributed``.
      turn: how often this step was decided on before; the same on every process.
      absent_s: seconds to wait for a process that was never seen to patch JAX.
      present_s: seconds to wait for any other.

    Returns:
      Why all run the original; empty when all run the rewritten module.
    """
    room = f"{_ROOM}/{'-'.join(map(str, members))}/{holding.original[:16]}/{turn}"
    verdict = f"{room}/verdict"
    _write_once(store, f"{room}/{process}", json.dumps(asdict(holding)))
    if failure:
        return _settled(store, verdict, f"process {process}: {failure}")
    if process != members[0]:
        said = _wait(store, verdict, members[0], verdict, absent_s, present_s)
        return _settled(store, verdict, said or _missing(members[0]))
    everyone = {process: holding}
    for other in members[1:]:
        said = _wait(store, f"{room}/{other}", other, verdict, absent_s, present_s)
        if said is None or not said.startswith("{"):
            return _settled(store, verdict, said or _missing(other))
        everyone[other] = Holding(**json.loads(said))
    return _settled(store, verdict, disagreement(everyone) or REWRITTEN)


def _missing(process: int) -> str:
    return (f"process {process} did not compile this step in time; it is slow, gone, or runs without hlorewrite")


def _wait(store: Any, key: str, other: int, verdict: str, absent_s: float, present_s: float) -> str | None:
    """What a key holds, or the verdict when that comes first; None when neither comes in time."""
    start = time.monotonic()
    while True:  # Ends: time passes.
        for wanted in dict.fromkeys((key, verdict)):
            text = _read(store, wanted, _POLL_MS if wanted == key else 1)
            if text is not None:
                return text
        waited = time.monotonic() - start
        if waited > present_s or (waited > absent_s and _read(store, f"{_ROOM}/present/{other}", 1) is None):
            return None


def _settled(store: Any, verdict: str, mine: str) -> str:
    """Writes the verdict unless there is one; why all run the original, by the one that holds."""
    _write_once(store, verdict, mine)
    final = _read(store, verdict, 10 * _POLL_MS)
    if final is None:
        return "the key-value store of jax.distributed does not answer"
    return "" if final == REWRITTEN else final


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
