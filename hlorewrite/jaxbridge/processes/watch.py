"""Processes of a pipeline watch each other, so that one that dies, fails or never comes ends all of them.

A collective of gloo or NCCL whose peer is gone may wait for ever, deep in C++ where no Python exception reaches. So
each process has a thread that writes a heartbeat into the key-value store of ``jax.distributed`` and reads those of its
peers, with what each is doing. One that is silent, compiles or runs its own Python code while this process waits is
named on stderr within ten seconds. When one is gone, reports a failure, leaves too early or keeps this one waiting for
longer than the limit, the thread prints one line that names it and its stages. Then it ends its own process with exit
code 1 (``os._exit``: an ordinary exit would wait for the collective too).

What ends a process, and what the other processes see:

* an uncaught exception: its first line is written to the store; the others say it and end. Errors of the project and of
  XLA are reported in one line, others keep Python's traceback on the process where they were raised;
* an uncaught error of XLA may be the echo of a peer's death: it waits a moment whether a peer turns out to be silent;
* a signal or a crash: on the same machine its process is seen to be gone; elsewhere no heartbeat comes;
* a stopped process, a lost host: no heartbeat until the limit;
* an ordinary exit before a step that needs it: the number of steps it began is compared;
* the death of process 0, which holds the store: XLA aborts the others at once, with a message of its own; the last line
  is ours. Where process 0 ends for another reason it waits until the others have read why.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any

import jax

from hlorewrite.errors import HlorewriteError
from hlorewrite.jaxbridge.processes.abort import answers, default_abort, on_abort
from hlorewrite.jaxbridge.processes.identity import identity, is_gone
from hlorewrite.jaxbridge.processes.phase import OWN, WAITING, Phase, PhaseClock
from hlorewrite.jaxbridge.xla.private import coordinator_address, distributed_client

ECHO_S = 5.0
"""How long an error of XLA waits for a peer to turn out dead before it counts as this process's own."""
_COLLECTIVE = re.compile(r"\b(?:Gloo|NCCL)\b|Connection (?:closed|reset)")
NAMED_S = 7.0
"""After how long a peer that is silent or keeps this process waiting is named."""
TIMEOUT_S = 300.0
"""After how long it ends this process, by default."""
_EXIT_S = 5.0


class Watch:
    """Watches the processes of one pipeline.

    Args:
      room: prefix of the keys; the same on every process, used once.
      stages: what each process runs, by its number: ``stage 1``.
      process: this process.
      store: the key-value store of ``jax.distributed``.
      timeout_s: how long a process may be silent, or keep this one waiting, seconds.
      end: ends this process; gets the sentence.
      note: names a peer; gets the sentence.
      only_waiting: end this process only while it waits for devices, and print its errors as Python does.

    Attributes:
      begun: how many steps this process has begun.
    """

    def __init__(self, room: str, stages: Mapping[int, str], process: int, store: Any, timeout_s: float,
                 end: Callable[[str], None] | None = None, note: Callable[[str], None] | None = None,
                 only_waiting: bool = False) -> None:
        self.room, self.stages, self.process, self.store = room, dict(stages), process, store
        self.begun = 0
        self.interval_s = min(1.0, timeout_s / 10)
        # A peer's last beat may be an interval old when it dies, and this thread may look an interval late.
        self._silence_s = max(timeout_s - 2 * self.interval_s, self.interval_s)
        self._end, self._note = end or end_process, note or print_note
        self._timeout_s, self._named_s = timeout_s, min(NAMED_S, timeout_s / 2)
        self._clock, self._phase, self._named = PhaseClock(), Phase(OWN), dict[int, str]()
        self._who, self._only_waiting = identity(), only_waiting
        self._beats: dict[int, tuple[str, float]] = {}
        self._heard_s = time.monotonic()
        self._left, self._stopped = False, threading.Event()
        self._thread = threading.Thread(target=self._run, name="hlorewrite-watch", daemon=True)
        self._hook = sys.excepthook
        self._abort: Any = None

    def start(self) -> Watch:
        """Starts to beat and to look; from now on an uncaught exception is reported to the other processes."""
        now = time.monotonic()
        self._beats = {peer: ("", now) for peer in self.stages if peer != self.process}
        self._heard_s = now
        self._beat(0)
        self._thread.start()
        self._hook, sys.excepthook = sys.excepthook, self._uncaught
        self._abort = None if self.process == 0 else on_abort(self._aborted)
        atexit.register(self._end_thread)
        return self

    def leave(self) -> None:
        """Says that this process does not need the others any more."""
        if not self._left:
            self._left = True
            self._tell("left", str(self.begun))

    def stop(self) -> None:
        """Leaves, and looks no longer."""
        self._end_thread()
        atexit.unregister(self._end_thread)
        if self._abort is not None:
            default_abort()
        if sys.excepthook == self._uncaught:
            sys.excepthook = self._hook

    def _end_thread(self) -> None:
        """Leaves, and waits for the thread: one that comes back from C++ while Python ends aborts the process."""
        self.leave()
        self._stopped.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_EXIT_S)

    def fail(self, what: str) -> None:
        """Reports to the other processes that this one fails, and why."""
        self._tell("failed", what)

    def verdict(self) -> str:
        """What is wrong with the others at this moment: a sentence; empty when nothing is."""
        try:
            entries = self._read()
        except Exception:  # the runtime's own error types differ between versions of jaxlib
            if distributed_client() is None:  # the user has called jax.distributed.shutdown
                self._left = True
            gone = time.monotonic() - self._heard_s > self._silence_s and not self._left
            return "process 0, which holds the key-value store, does not answer" if gone else ""
        self._heard_s = now = time.monotonic()
        for peer, words in self.stages.items():
            if peer == self.process:
                continue
            who = f"process {peer} ({words})" if words else f"process {peer}"
            if failure := entries.get(("failed", peer)):
                return f"{who} failed: {failure}"
            if sentence := entries.get(("ended", peer)):
                return sentence
            if (steps := entries.get(("left", peer))) is not None:
                if int(steps) < self.begun and not self._left:
                    return f"{who} has ended after step {steps}, and step {self.begun} needs it"
                if sentence := self._held_up(peer, f"{who} has ended", None):
                    return sentence
                continue
            beat = entries.get(("beat", peer), "")
            last, since = self._beats[peer]
            if beat != last:
                self._beats[peer] = beat, now
                theirs = phase_in(beat)
                place = f" at {theirs.place}" if theirs.place else ""
                if sentence := self._held_up(peer, f"{who} is {theirs.kind}{place}", theirs):
                    return sentence
            elif not last:
                if now - since > self._silence_s + 5 * self.interval_s:  # the digests' comparison speaks first
                    return f"{who} did not come within {now - since:.0f} s"
                self._name(peer, now - since > self._named_s, "absent", f"{who} has not come yet")
            elif sentence := self._silent(peer, who, now - since, last):
                return sentence
        return ""

    def _silent(self, peer: int, who: str, silence_s: float, beat: str) -> str:
        """What ends this process when a peer does not beat; one that only takes long is named."""
        if silence_s > 2 * self.interval_s and is_gone(identity_in(beat)):
            return f"{who} is gone: its process has ended; it was last seen {phase_in(beat).kind}"
        silent = f"{who} has not been heard of for {silence_s:.0f} s: it was ended or stopped, or its host is gone"
        if silence_s > self._silence_s:
            return silent
        self._name(peer, silence_s > self._named_s, "silent", f"{silent}; it was last seen {phase_in(beat).kind}")
        return ""

    def _held_up(self, peer: int, what: str, theirs: Phase | None) -> str:
        """What ends this process when it waits and a peer does something else; ``theirs`` is None for one that left."""
        mine = self._phase
        shorter = 0.0
        if mine.kind == WAITING and theirs is None:
            shorter = mine.since_s if self._only_waiting else 0.0
        elif mine.kind == WAITING and theirs and theirs.kind != WAITING and theirs.step <= max(self.begun, mine.step):
            shorter = min(mine.since_s, theirs.since_s)
        sentence = f"{what}, and process {self.process} has waited for {shorter:.0f} s"
        if shorter > self._timeout_s:
            return sentence
        self._name(peer, shorter > self._named_s, theirs.kind if theirs else "ended", sentence)
        return ""

    def _name(self, peer: int, late: bool, why: str, sentence: str) -> None:
        """Names a peer on stderr, once until it is well again."""
        if not late:
            self._named.pop(peer, None)
        elif self._named.get(peer) != why:
            self._named[peer] = why
            self._note(sentence)

    def end_all(self, sentence: str) -> None:
        """Ends this process; the others say the same sentence and end too."""
        self._tell("ended", sentence)
        self._wait_for_others()
        self._end(sentence)

    def _wait_for_others(self) -> None:
        """Lets the others read why: when process 0 goes, the store goes with it, and JAX aborts them."""
        deadline = time.monotonic() + 3 * self.interval_s + 1.0
        # Ends: at the deadline.
        while self.process == 0 and time.monotonic() < deadline:
            try:
                entries = self._read()
            except Exception:  # the store is going already
                return
            now = time.monotonic()
            alive = [peer for peer, (_, since) in self._beats.items() if now - since < 3 * self.interval_s + 1.0
                     or ("left", peer) in entries]
            if all(("ended", peer) in entries or ("failed", peer) in entries for peer in alive):
                return
            time.sleep(self.interval_s / 4)

    # ---- the thread

    def _run(self) -> None:
        count = 0
        # Ends: when the watch is stopped; it runs concurrently with the program, in a daemon thread.
        while not self._stopped.wait(self.interval_s):
            count += 1
            self._beat(count)
            sentence = self.verdict()
            if sentence and self._may_end():
                self.end_all(sentence)
                return
            if sentence:
                self._name(-1, True, sentence.partition(" for ")[0], sentence)

    def _may_end(self) -> bool:
        """Whether a verdict ends this process now."""
        return not self._only_waiting or (self._phase.kind == WAITING and self._phase.since_s > self.interval_s)

    def _beat(self, count: int) -> None:
        if not self._left:
            self._phase = self._clock.look(self.begun)
            self._tell("beat", json.dumps({"count": count, "who": self._who, "phase": asdict(self._phase)}))

    def _tell(self, what: str, text: str) -> None:
        try:
            self.store.key_value_set(f"{self.room}/{what}/{self.process}", text, allow_overwrite=True)
        except Exception:  # a store that is gone is noticed when it is read
            return

    def _read(self) -> dict[tuple[str, int], str]:
        entries = {}
        for key, value in self.store.key_value_dir_get(f"{self.room}/"):
            *_, what, peer = key.split("/")
            entries[what, int(peer)] = value
        return entries

    def _aborted(self) -> str:
        address = coordinator_address()
        if address and not answers(address):
            words = self.stages.get(0, "no stage")
            return f"process 0{f' ({words})' if words else ''}, which holds the coordination service, is gone"
        return "XLA aborted this process; its message is above"

    # ---- uncaught exceptions

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Reports to the other processes, says one line, ends the process."""
        if self._stopped.is_set():
            self._hook(kind, error, trace)
            return
        ours = isinstance(error, HlorewriteError | jax.errors.JaxRuntimeError) and not self._only_waiting
        if is_echo(error) or is_echo(error.__cause__):
            self.wait_for_verdict()
        self.fail(told(error))
        if not ours:
            self._hook(kind, error, trace)
            sys.stderr.flush()
        self._wait_for_others()
        if not ours:
            os._exit(130 if kind is KeyboardInterrupt else 1)
        self._end(told(error))

    def wait_for_verdict(self) -> None:
        """Gives a dead peer the time to be noticed; ends this process if there is one."""
        self._silence_s = min(self._silence_s, max(ECHO_S, 3 * self.interval_s))
        deadline = time.monotonic() + self._silence_s + 2 * self.interval_s
        # Ends: at the deadline.
        while time.monotonic() < deadline:
            if sentence := self.verdict():
                self.end_all(sentence)
            time.sleep(self.interval_s / 2)


def is_echo(error: BaseException | None) -> bool:
    """Whether an error can come from the death of a peer: one of XLA, which gloo's are ``ValueError`` of.

    Example:
      >>> is_echo(ValueError("UNKNOWN: Gloo all-reduce failed: Connection closed by peer")), is_echo(ValueError("no"))
      (True, False)
    """
    return isinstance(error, jax.errors.JaxRuntimeError) or (
        isinstance(error, ValueError) and _COLLECTIVE.search(str(error)) is not None)


def phase_in(beat: str) -> Phase:
    """The phase that a heartbeat reports."""
    try:
        return Phase(**json.loads(beat)["phase"])
    except (ValueError, TypeError, KeyError):
        return Phase(OWN)


def identity_in(beat: str) -> str:
    """The process that sent a heartbeat."""
    try:
        return str(json.loads(beat)["who"])
    except (ValueError, TypeError, KeyError):
        return ""


def print_note(sentence: str) -> None:
    """Prints one line on stderr; the process goes on."""
    print(f"hlorewrite: note: {sentence}", file=sys.stderr, flush=True)


def told(error: BaseException) -> str:
    """An error in one line."""
    words = str(error).strip().splitlines()
    if isinstance(error, HlorewriteError):
        return words[0]
    return type(error).__name__ + (f": {words[0]}" if words else "")


def end_process(sentence: str) -> None:
    """Prints one line and ends the process at once, whatever its threads wait for."""
    sys.stdout.flush()
    print(f"hlorewrite: error: {sentence}", file=sys.stderr, flush=True)
    os._exit(1)


def words_of_stages(stages: list[int]) -> str:
    """What errors call the stages of a process.

    Example:
      >>> words_of_stages([1]), words_of_stages([0, 3]), words_of_stages([])
      ('stage 1', 'stages 0, 3', 'no stage')
    """
    if not stages:
        return "no stage"
    return f"stage{'s' if len(stages) > 1 else ''} {', '.join(map(str, stages))}"
