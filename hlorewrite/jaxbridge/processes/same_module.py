"""All processes of a distributed step must run the same rewritten module: a digest is compared before it is compiled.

Different modules would meet in different collectives and hang. Each process puts its digest into the key-value store of
``jax.distributed`` and reads those of all processes, so every process stops with the same sentence.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from hlorewrite.errors import HlorewriteError
from hlorewrite.jaxbridge.processes.watch import TIMEOUT_S

_READ_S = 10


class ProcessesDisagree(HlorewriteError):
    """Processes hold different rewritten modules, or one did not answer."""


@dataclass(frozen=True)
class Holding:
    """What one process holds: versions, the pipeline, digests of the original and of the rewritten module."""

    version: str
    jaxlib: str
    pipeline: str
    original: str
    rewritten: str


def compare(holding: Holding, key: str, store: Any, process: int, processes: int, timeout_s: float = TIMEOUT_S) -> None:
    """Stops every process unless all hold the same.

    Args:
      holding: what this process holds.
      key: names this comparison; the same on every process, and used once.
      store: the key-value store of ``jax.distributed``.
      process: this process.
      processes: how many there are.
      timeout_s: how long to wait for another process, seconds.

    Raises:
      ProcessesDisagree: on every process, naming the ones that differ and in what.
    """
    tell(holding, key, store, process)
    everyone: dict[int, Holding] = {}
    for other in range(processes):
        try:
            text = store.blocking_key_value_get(f"{key}/{other}", int(timeout_s * 1000))
        except Exception as error:  # the runtime's own error type differs between versions of jaxlib
            raise ProcessesDisagree(f"process {other} did not say within {timeout_s:g} s which module it runs "
                                    f"({type(error).__name__})", location=f"process {process}",
                                    hint="check that every process reaches the same step") from error
        everyone[other] = Holding(**json.loads(text))
    sentence = disagreement(everyone)
    if sentence:
        wait_for_all(key, store)
        raise ProcessesDisagree(sentence, location=f"process {process}", hint=hint_for(everyone))


def tell(holding: Holding, key: str, store: Any, process: int) -> None:
    """Says what this process holds, without waiting for the others."""
    store.key_value_set(f"{key}/{process}", json.dumps(asdict(holding)))


def wait_for_all(key: str, store: Any) -> None:
    """Gives every process time to read before this one stops: the store may go away with it."""
    with suppress(Exception):  # a process that never comes must not keep this one from stopping
        store.wait_at_barrier(f"{key}/read", _READ_S * 1000)


def disagreement(everyone: Mapping[int, Holding]) -> str:
    """One sentence on who differs from the majority and in what; empty when all agree.

    Example:
      >>> a = Holding("1", "0.10.2", "comm-shift", "x", "y")
      >>> disagreement({0: a, 1: a, 2: Holding("2", "0.10.2", "comm-shift", "x", "z")})
      'process 2 holds another rewritten module than process 0: its hlorewrite version is 2, not 1'
    """
    votes = list(everyone.values())
    common = max(votes, key=lambda v: (votes.count(v), -votes.index(v)))
    odd = [number for number, value in everyone.items() if value != common]
    if not odd:
        return ""
    first = everyone[odd[0]]
    words = {"version": "hlorewrite version", "jaxlib": "jaxlib version", "pipeline": "pipeline"}
    facts = [f"its {word} is {getattr(first, name)}, not {getattr(common, name)}" for name, word in words.items()
             if getattr(first, name) != getattr(common, name)]
    if not facts:
        facts = [_other_difference(first, common)]
    who = f"process {odd[0]}" if len(odd) == 1 else f"processes {', '.join(map(str, odd))}"
    with_whom = next(number for number, value in everyone.items() if value == common)
    return f"{who} {'holds' if len(odd) == 1 else 'hold'} another rewritten module than process {with_whom}: " + \
        "; ".join(facts)


def hint_for(everyone: Mapping[int, Holding]) -> str:
    """What to do where processes differ: about the first thing in which they do.

    Example:
      >>> a = Holding("1", "0.10.2", "comm-shift", "x", "y")
      >>> hint_for({0: a, 1: Holding("1", "0.10.2", "comm-shift", "z", "w")})
      'give the step the same code, shapes, shardings and options on every process'
    """
    held = list(everyone.values())
    for names, hint in (
            (("version", "jaxlib"), "install the same hlorewrite and jaxlib everywhere"),
            (("pipeline",), "name the same passes everywhere")):
        if any(len({getattr(each, name) for each in held}) > 1 for name in names):
            return hint
    said = [each.rewritten for each in held if " " in each.rewritten]
    if said:
        return "let the passes succeed, or switch them off, on every process"
    if len({each.original for each in held}) > 1:
        return "give the step the same code, shapes, shardings and options on every process"
    return "use the same rule files and topology files everywhere"


def _other_difference(odd: Holding, common: Holding) -> str:
    said = next((value.rewritten for value in (odd, common) if " " in value.rewritten), "")
    if said:
        return f"it runs {said}" if odd.rewritten == said else f"the others run {said}"
    if odd.original != common.original:
        return "the original step differs"
    return "the same step and pipeline gave another result (rule files differ)"


class Counter:
    """Numbers the comparisons of one process, so that no key is used twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, int] = {}

    def next(self, name: str) -> int:
        """The next number of a name, from 0."""
        with self._lock:
            number = self._used.get(name, 0)
            self._used[name] = number + 1
        return number


COMPARISONS = Counter()
"""One for the process: keys of the store live as long as it does."""
