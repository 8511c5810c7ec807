"""Processes watch each other: one that dies, fails, stops or never comes is named, and ends those that need it.

A collective of gloo or NCCL whose peer is gone may wait forever, deep in C++ where no Python exception reaches. So
each process has two threads: one writes a heartbeat into the key-value store of ``jax.distributed`` and reads those of
its peers, with what each is doing; the other one looks at what was read. A call of the store blocks while process 0,
which serves it, is stopped, so the second thread makes none. A peer that is silent, compiles or runs its own Python
code while this process waits is named on stderr within ten seconds; so is process 0 when the store does not answer.
When a peer is gone, reports a failure, leaves too early or keeps this one waiting for longer than the limit, one line
names it and its stages. Then the process ends with exit code 1 (``os._exit``: an ordinary exit would wait for the
collective too).

Reasons for which a process ends, and the messages of the others:

* an uncaught exception: its first line is written to the store; the others print it and end. Errors of the project and
  of XLA are one line, others keep Python's traceback on the process where they were raised;
* an uncaught error of XLA may be the echo of a peer's death: it waits a moment whether a peer turns out to be silent;
* a signal or a crash: on the same machine its process is seen to be gone; elsewhere no heartbeat comes;
* a stopped process, a lost host: no heartbeat until the limit;
* an ordinary exit before a step that needs it: the number of steps it began is compared;
* the death of process 0, which holds the store: XLA aborts the others at once, with a separate message; the last line
  is ours (``last_words.py``). Where process 0 ends for another reason it waits until the others have read why.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any

import jax

from hlorewrite.errors import HlorewriteError
from hlorewrite.jaxbridge.processes.activity import AGREEING, OWN, WAITING, Phase, PhaseClock
from hlorewrite.jaxbridge.processes.heartbeat import Heartbeat, identity, is_gone
from hlorewrite.jaxbridge.processes.last_words import LastWords
from hlorewrite.jaxbridge.processes.notes import end_process, one_line, print_note
from hlorewrite.jaxbridge.processes.store import within
from hlorewrite.jaxbridge.xla.private import coordinator_address, distributed_client

ECHO_S = 5.0
"""How long an error of XLA waits for a peer to turn out dead before it counts as this process's own."""
_COLLECTIVE = re.compile(r"\b(?:Gloo|NCCL)\b|Connection (?:closed|reset)")
NAMED_S = 7.0
"""How long a peer may be silent, or keep this process waiting, before it is named."""
_EXIT_S, _LEAVE_S = 5.0, 10.0
_STORE = 0
"""The process that holds the key-value store."""


class Watch:
    """Watches the processes of one program.

    Args:
      room: prefix of the keys; the same on every process, used once.
      stages: what each process runs, by its number: ``stage 1``.
      process: this process.
      store: the key-value store of ``jax.distributed``.
      timeout_s: how long a process may be silent, or keep this one waiting, seconds.
      end: ends this process; gets the sentence.
      note: names a peer; gets the sentence.
      only_waiting: end this process only while it waits for devices, print its errors as Python does, and never end it
        because of a peer that was not seen yet: that one may run without hlorewrite.
      leave_errors: report an uncaught exception to the others, and let it end this process as it would without the
        watch.

    Attributes:
      begun: how many steps this process has begun.
    """

    def __init__(self, room: str, stages: Mapping[int, str], process: int, store: Any, timeout_s: float,
                 *, end: Callable[[str], None] | None = None, note: Callable[[str], None] | None = None,
                 only_waiting: bool = False, leave_errors: bool = False) -> None:
        self.room, self.stages, self.process, self.store = room, dict(stages), process, store
        self.begun = 0
        self.interval_s = min(1.0, timeout_s / 10)
        # A peer's last beat may be an interval old when it dies, and this thread may look an interval late.
        self._silence_s = max(timeout_s - 2 * self.interval_s, self.interval_s)
        self._end = end or (lambda sentence: end_process(sentence, self._wait_for_others))
        self._note = note or print_note
        self._timeout_s, self._named_s = timeout_s, min(NAMED_S, timeout_s / 2)
        self._clock, self._phase, self._named = PhaseClock(), Phase(OWN), dict[int, str]()
        self._who, self._only_waiting, self._leave_errors = identity(), only_waiting, leave_errors
        self._heard_s = now = time.monotonic()
        self._entries: dict[tuple[str, int], str] = {}
        self._beats = {peer: ("", now) for peer in self.stages if peer != process}
        self._reads, self._gone_at, self._left_at = 0, dict[int, int](), dict[int, float]()
        self._left, self._stopped = False, threading.Event()
        self._threads = [threading.Thread(target=run, name="hlorewrite-watch", daemon=True)
                         for run in (self._talk, self._run)]
        self._hook = sys.excepthook
        self._last_words, self._naming = LastWords(), threading.Lock()

    def start(self) -> Watch:
        """Starts the heartbeat and the watch; from now on uncaught exceptions are reported to the others."""
        self._heard_s = now = time.monotonic()
        self._beats = dict.fromkeys(self._beats, ("", now))
        if self.process != _STORE:
            self._last_words.begin(coordinator_address())
        for thread in self._threads:
            thread.start()
        self._hook, sys.excepthook = sys.excepthook, self._uncaught
        atexit.register(self._end_threads)
        return self

    def name_stages(self, stages: Mapping[int, str]) -> None:
        """Sets what processes run; from now on a sentence about one of them says it, also the last one.

        Args:
          stages: what each of the processes runs, by its number: ``stage 1``.
        """
        self.stages |= stages
        self._prepare_last_words()

    def _prepare_last_words(self) -> None:
        """The sentence that remains if JAX aborts this process; two threads set it, and the latest names win."""
        with self._naming:
            if not self._left:
                self._last_words.prepare(f"{self._called(_STORE)}, which holds the coordination service, is gone")

    def leave(self) -> None:
        """Says that this process no longer needs the others."""
        if not self._left:
            self._left = True
            self._tell("left", str(self.begun))

    def stop(self) -> None:
        """Leaves, and stops the watch."""
        self._end_threads()
        atexit.unregister(self._end_threads)
        if sys.excepthook == self._uncaught:
            sys.excepthook = self._hook

    def _end_threads(self) -> None:
        """Leaves, and waits for the threads: one that comes back from C++ while Python ends aborts the process."""
        self.leave()
        self._last_words.farewell()
        self._stopped.set()
        for thread in self._threads:
            if threading.current_thread() is not thread:
                thread.join(_EXIT_S)

    def fail(self, what: str) -> None:
        """Reports to the other processes that this one fails, and why."""
        self._tell("failed", what)

    # ---- what is known about a peer

    def seen(self, peer: int) -> bool:
        """Whether a heartbeat of a process ever came."""
        return peer == self.process or bool(self._beats.get(peer, ("", 0.0))[0])

    def doing(self, peer: int) -> str:
        """The last known activity of a process; empty if it was never seen."""
        beat = self._beats.get(peer, ("", 0.0))[0]
        return Heartbeat.from_text(beat).phase.words if beat else ""

    def missing(self, peer: int) -> str:
        """Why a process will not arrive; empty while it may."""
        beat, since = self._beats.get(peer, ("", 0.0))
        if failure := self._entries.get(("failed", peer)):
            return f"it failed: {failure}"
        if ("left", peer) in self._entries:
            return "it has ended"
        if beat and time.monotonic() - since > 2 * self.interval_s and is_gone(Heartbeat.from_text(beat).who):
            return "its process has ended"
        return ""

    # ---- the verdict on the others

    def verdict(self) -> str:
        """What is wrong with the others at this moment, as a sentence; empty if nothing is. Reads only what was heard
        before."""
        now, entries = time.monotonic(), self._entries
        quiet_s = now - self._heard_s
        if sentence := self._store_quiet(quiet_s):
            return sentence
        for peer in self._beats:
            who = self._called(peer)
            if failure := entries.get(("failed", peer)):
                return f"{who} failed: {failure}"
            if sentence := entries.get(("ended", peer)):
                return sentence
            sentence = self._ended(peer, who) if ("left", peer) in entries else self._living(peer, who, quiet_s)
            if sentence:
                return sentence
        return ""

    def _called(self, peer: int) -> str:
        words = self.stages.get(peer, "")
        return f"process {peer} ({words})" if words else f"process {peer}"

    def _store_quiet(self, quiet_s: float) -> str:
        """What ends this process when the store does not answer; process 0, which holds it, is named."""
        if self._left or self.process == _STORE:
            return ""
        sentence = (f"{self._called(_STORE)}, which holds the key-value store, does not answer for {quiet_s:.0f} s: it "
                    "was ended or stopped, or its host is gone")
        if quiet_s > self._silence_s:
            return sentence
        doing = f"; it was last seen {self.doing(_STORE)}" if self.doing(_STORE) else ""
        self._name(-2, quiet_s > self._named_s, "store", f"{sentence}{doing}")
        return ""

    def _ended(self, peer: int, who: str) -> str:
        """What ends this process when a peer has left."""
        steps = self._entries["left", peer]
        if int(steps) < self.begun and not self._left:
            return f"{who} has ended after step {steps}, and step {self.begun} needs it"
        return self._held_up(peer, f"{who} has ended", None)

    def _living(self, peer: int, who: str, quiet_s: float) -> str:
        """What ends this process when a peer is gone, silent or late; what only takes long is named.

        A peer is silent only as long as the store was read: what it wrote since then is not seen.
        """
        beat, since = self._beats[peer]
        silence_s = time.monotonic() - since
        if not beat:
            return self._absent(peer, who, silence_s)
        phase = Heartbeat.from_text(beat).phase
        if silence_s > 2 * self.interval_s and is_gone(Heartbeat.from_text(beat).who) and self._read_since_gone(peer):
            return f"{who} is gone: its process has ended; it was last seen {phase.kind}"
        heard_s = silence_s - quiet_s
        if heard_s < 2 * self.interval_s:
            since_now = replace(phase, since_s=phase.since_s + silence_s)  # what it does has gone on since it was said
            return self._held_up(peer, f"{who} is {phase.words}", since_now)
        silent = f"{who} has not been heard of for {heard_s:.0f} s: it has ended or stopped, or its host is gone"
        if heard_s > self._silence_s:
            return silent
        self._name(peer, heard_s > self._named_s, "silent", f"{silent}; it was last seen {phase.kind}")
        return ""

    def _read_since_gone(self, peer: int) -> bool:
        """Whether the store was read from the start after a peer was gone: it may have said why before it ended.

        The first read that comes back may have begun before that, so there are two. Process 0 takes its store along.
        """
        return self._reads >= self._gone_at.setdefault(peer, self._reads) + 2 or peer == _STORE

    def _absent(self, peer: int, who: str, silence_s: float) -> str:
        """What ends this process when a peer never came; the agreement on what to run speaks first."""
        if not self._only_waiting and silence_s > self._silence_s + 5 * self.interval_s:
            return f"{who} did not arrive within {silence_s:.0f} s"
        why = ": it is late, or runs without hlorewrite" if self._only_waiting else ""
        self._name(peer, silence_s > self._named_s, "absent", f"{who} has not arrived yet{why}")
        return ""

    def _held_up(self, peer: int, what: str, theirs: Phase | None) -> str:
        """What ends this process when it waits and a peer does something else; ``theirs`` is None for one that left."""
        mine, shorter = self._phase, 0.0
        waits = mine.kind in (WAITING, AGREEING)
        if waits and theirs is None:
            shorter = mine.since_s if self._only_waiting else 0.0
        elif waits and theirs and theirs.kind not in (WAITING, mine.kind) and theirs.step <= max(self.begun, mine.step):
            shorter = min(mine.since_s, theirs.since_s)
        sentence = f"{what}, and process {self.process} has waited for {shorter:.0f} s"
        if shorter > self._timeout_s and mine.kind == WAITING:  # who agrees has a separate limit
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
        """Ends this process; the others print the same sentence and end too."""
        self._tell("ended", sentence)
        self._end(sentence)

    def _wait_for_others(self) -> None:
        """Lets the others read why, and leave: when process 0 goes, the store goes with it, and JAX aborts them."""
        self._last_words.farewell()
        deadline = time.monotonic() + 3 * self.interval_s + 1.0
        # Ends: at the deadline, or when those that are leaving by then have had their time.
        while self.process == _STORE:
            with suppress(Exception):
                self.refresh()
            now = time.monotonic()
            needed = [peer for peer in self._beats if self._needs_store(peer, now)]
            if not needed or (now > deadline and not any(("left", peer) in self._entries for peer in needed)):
                return
            time.sleep(self.interval_s / 4)

    def _needs_store(self, peer: int, now: float) -> bool:
        """Whether a process has not ended yet, as far as can be seen, and JAX would abort it without the store."""
        beat, since = self._beats[peer]
        if beat and is_gone(Heartbeat.from_text(beat).who):
            return False
        if ("left", peer) in self._entries:  # it runs what it has registered, then waits in JAX's barrier
            return now - self._left_at[peer] < _LEAVE_S + self.interval_s
        knows = ("ended", peer) in self._entries or ("failed", peer) in self._entries
        return not knows and now - since < 3 * self.interval_s + 1.0

    # ---- the threads

    def _talk(self) -> None:
        """Beats and reads; a call may take as long as process 0 is stopped."""
        count = 0
        # Ends: when the watch is stopped; it runs concurrently with the program, in a daemon thread.
        while not self._stopped.is_set():
            with suppress(Exception):  # a store that is gone is noticed by the time of its last answer
                self._prepare_last_words()
                if not self._left:
                    self._phase = self._clock.look(self.begun)
                    beat = Heartbeat(count, self._who, self._phase).to_text()
                    self.store.key_value_set(f"{self.room}/beat/{self.process}", beat, allow_overwrite=True)
                count += 1
                self.refresh()
            if distributed_client() is None:  # the user has called jax.distributed.shutdown
                self._left = True
                self._last_words.farewell()
            self._stopped.wait(self.interval_s)

    def refresh(self) -> None:
        """Reads what all processes have said.

        Raises:
          Exception: the store does not answer; its type differs between versions of jaxlib.
        """
        entries = {}
        for key, value in self.store.key_value_dir_get(f"{self.room}/"):
            *_, what, peer = key.split("/")
            entries[what, int(peer)] = value
        now = time.monotonic()
        blind = now - self._heard_s > 3 * self.interval_s  # process 0 was stopped: the others could not beat either
        self._heard_s, self._reads = now, self._reads + 1
        for peer, (last, _) in self._beats.items():
            if (beat := entries.get(("beat", peer), "")) != last or blind:
                self._beats[peer] = beat, now
            if ("left", peer) in entries:
                self._left_at.setdefault(peer, now)
        self._entries = entries

    def _run(self) -> None:
        """Looks at what was read, once an interval; it makes no call that can block."""
        # Ends: when the watch is stopped; it runs concurrently with the program, in a daemon thread.
        while not self._stopped.wait(self.interval_s):
            self._phase = self._clock.look(self.begun)
            sentence = self.verdict()
            if sentence and self._may_end():
                self.end_all(sentence)
                return
            if sentence:
                self._name(-1, True, sentence.partition(" for ")[0], sentence)

    def _may_end(self) -> bool:
        """Whether a verdict ends this process now."""
        return (not self._only_waiting or (self._phase.kind == WAITING and self._phase.since_s > self.interval_s)
                or self._clock.blocked.seconds > 2 * self.interval_s)

    def _tell(self, what: str, text: str) -> None:
        with suppress(Exception):  # a store that is gone is noticed when it is read
            within(2.0, lambda: self.store.key_value_set(f"{self.room}/{what}/{self.process}", text,
                                                         allow_overwrite=True))

    # ---- uncaught exceptions

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Reports to the other processes, says one line, ends the process."""
        if self._stopped.is_set():
            self._hook(kind, error, trace)
            return
        echo = is_echo(error) or is_echo(error.__cause__)
        if self._leave_errors:
            self._hook(kind, error, trace)
            if not echo:
                self.fail(one_line(error))
            elif self.wait_until_named():
                _leave_without_barrier(_LEAVE_S + (_EXIT_S if self.process == _STORE else 0.0))
            return
        ours = isinstance(error, HlorewriteError | jax.errors.JaxRuntimeError) and not self._only_waiting
        if echo:
            self.wait_for_verdict()
        self.fail(one_line(error))
        if not ours:
            self._hook(kind, error, trace)
            sys.stderr.flush()
            self._wait_for_others()
            os._exit(130 if kind is KeyboardInterrupt else 1)
        self._end(one_line(error))

    def wait_until_named(self) -> bool:
        """Gives the other thread time to name a dead peer. Returns whether a peer was named, as dead or as missing."""
        self._silence_s = min(self._silence_s, max(ECHO_S, 3 * self.interval_s))
        deadline = time.monotonic() + self._silence_s + 2 * self.interval_s
        # Ends: at the deadline.
        while -1 not in self._named and time.monotonic() < deadline:
            time.sleep(self.interval_s / 2)
        return bool(self._named)

    def wait_for_verdict(self) -> None:
        """Gives a dead peer the time to be noticed; ends this process if there is one."""
        self._silence_s = min(self._silence_s, max(ECHO_S, 3 * self.interval_s))
        deadline = time.monotonic() + self._silence_s + 2 * self.interval_s
        # Ends: at the deadline.
        while time.monotonic() < deadline:
            if sentence := self.verdict():
                self.end_all(sentence)
            time.sleep(self.interval_s / 2)


def _leave_without_barrier(seconds: float) -> None:
    """Once Python ends, ends this process with exit code 1 if that takes longer.

    JAX's own exit waits for all processes in a barrier; if one is dead, it waits for minutes and then aborts. The
    functions that the program registered to run at its end have their time. Process 0 is the last: JAX aborts those it
    leaves.
    """
    ends = threading.Event()

    def end() -> None:
        ends.wait()
        time.sleep(seconds)
        os._exit(1)

    threading.Thread(target=end, name="hlorewrite-leave", daemon=True).start()
    atexit.register(ends.set)


def is_echo(error: BaseException | None) -> bool:
    """Whether an error can come from the death of a peer: an error of XLA, or a ``ValueError`` with which gloo reports
    one.

    Example:
      >>> is_echo(ValueError("UNKNOWN: Gloo all-reduce failed: Connection closed by peer")), is_echo(ValueError("no"))
      (True, False)
    """
    return isinstance(error, jax.errors.JaxRuntimeError) or (
        isinstance(error, ValueError) and _COLLECTIVE.search(str(error)) is not None)
