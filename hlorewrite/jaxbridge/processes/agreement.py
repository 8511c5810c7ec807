"""One decision for all processes of a module: the first process decides, all check, and any failure stops the rewrite.

If a module is rewritten on one process and not on another, both wait forever in different collectives. So the processes
agree through the key-value store of ``jax.distributed`` before any of them compiles:

1. each announces that it has reached the module, and rewrites it;
2. the first process writes its decision: digests of the module and of the result, and how it was made;
3. each other process compares its own, and says that it holds the same, or writes the verdict that all run the
   original;
4. when all hold the same, the first process writes the verdict ``rewritten``. All follow the verdict.

A process that fails, or that waits too long for another one, writes the verdict with the process, its phase and the
reason. The store writes a key once, so there is one verdict. A wrong guess about a slow process costs a rewrite, never
a value.

A process that loses the store can still choose the original as long as no verdict can be ``rewritten`` without it:
before it has said that it holds the same, when it failed, and on the first process before that writes ``rewritten``.
Later it keeps asking for the verdict, and stops when it cannot have it (``Undecided``): the others may run the
rewritten module.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from hlorewrite.errors import HlorewriteError
from hlorewrite.jaxbridge.processes.liveness import Watch
from hlorewrite.jaxbridge.processes.notes import one_line
from hlorewrite.jaxbridge.processes.store import TIMEOUT_S, delete_keys, read_key, write_once
from hlorewrite.util.read import read_json

REWRITTEN = "rewritten"
REWRITING = "rewriting"
"""The phase of a process between its arrival and its result."""
_POLL_MS = 500
Answer = TypeVar("Answer")


class ProcessesDisagree(HlorewriteError):
    """The processes of a module do not run the rewritten one, and their options say to stop in that case."""


class Undecided(HlorewriteError):
    """A process said what it holds, and then lost the key-value store: it cannot know what the others compile."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for another process, in seconds.

    Attributes:
      present: for one that runs hlorewrite and has not arrived yet; also for the store.
      absent: for one that was never seen to run hlorewrite.
      rewriting: for one that rewrites, longer than this process took for it, or three times as long if that is more.
    """

    present: float = TIMEOUT_S
    absent: float = TIMEOUT_S
    rewriting: float = 10.0

    def for_rewriting(self, own_s: float) -> float:
        """How much longer than this process another one may take."""
        return min(max(self.rewriting, 2 * own_s), self.present)


class Agreement:
    """One decision of several processes.

    Args:
      room: prefix of its keys; the same on every process, and used once.
      before: prefix of the last decision of the same processes, whose keys are deleted; empty for none.
      members: the processes, ascending; the first one decides.
      process: this one.
      store: the key-value store of ``jax.distributed``.
      patience: how long to wait.
      watch: says who is gone, and what each does; None if there is no watch.
    """

    def __init__(self, room: str, members: Sequence[int], process: int, store: Any, *, patience: Patience | None = None,
                 watch: Watch | None = None, before: str = "") -> None:
        self.room, self.members, self.process, self.store = room, tuple(members), process, store
        self.patience, self.watch, self._before = patience or Patience(), watch, before
        self._first = self.members[0]
        self._began = self._finished = time.monotonic()
        self._seen_to_come: dict[int, float] = {}

    # ---- what a process says

    def come(self) -> None:
        """Says that this process has reached the module, and begins to rewrite it."""
        self._began = time.monotonic()
        with suppress(Exception):  # a store that is gone is met later
            write_once(self.store, self._key("came"), REWRITING)

    @property
    def decides(self) -> bool:
        """Whether this is the process that decides."""
        return self.process == self._first

    def over(self) -> str:
        """Why all run the original, if that is decided already; empty otherwise."""
        try:
            return read_key(self.store, self._key("verdict", ""), 1) or ""
        except Exception:  # a store that is gone is met later
            return ""

    def first_says(self, what: str, mine: str) -> tuple[str, str]:
        """Something that the first process says before it decides.

        Args:
          what: a word.
          mine: its decision if it is this process.

        Returns:
          Its decision; or the empty text, and why all stop.
        """
        if self.decides:
            with suppress(Exception):  # a store that is gone is met later
                write_once(self.store, self._key(what), mine)
            return mine, ""
        self._finished = time.monotonic()
        said, late = self._wait(what, self._first)
        return ("", self._refused(late)) if said is None else (said, "")

    def first_said(self, what: str) -> str | None:
        """The first process's decision so far, as `first_says` takes it; None if there is none, or no store."""
        try:
            return read_key(self.store, self._key(what, self._first), _POLL_MS)
        except Exception:  # a store that is gone is met later
            return None

    def refuse(self, reason: str, phase: str = REWRITING) -> str:
        """Writes that all run the original, if no verdict can be ``rewritten`` without this process.

        Args:
          reason: why this process cannot run the rewritten module.
          phase: what it did when that turned out.

        Returns:
          Why all run the original: this reason, or that of a process that was faster.
        """
        return self._refused(f"process {self.process} ({phase}): {reason}")

    def settle(self, mine: Decision, replay: Callable[[Decision], Decision] | None = None) -> str:
        """Decides with the others.

        Args:
          mine: what this process holds; on the first process, the decision.
          replay: makes what another decision says about the same module; used where the first process chose
            differently.

        Returns:
          Why all run the original; empty when all run the rewritten module.

        Raises:
          Undecided: the store was lost in the middle, and the others may run the rewritten module.
        """
        self._finished = time.monotonic()
        try:
            read_key(self.store, self._key("verdict", ""), 1)
        except Exception as error:  # nothing was said yet, so the others cannot decide for the rewritten module
            return self._lost(error)
        why = self._decided(mine) if self.decides else self._followed(mine, replay)
        if not why and self._before:  # who holds the same here has read the last verdict
            said = [f"{self._before}/{what}/{self.process}" for what in ("came", "holds", "decision", "solver")]
            said += [f"{self._before}/verdict", f"{self._before}/plan"] if self.decides else []
            delete_keys(self.store, *said)
        return why

    # ---- the first process, and the others

    def _decided(self, mine: Decision) -> str:
        """The first process writes the decision, waits until all hold the same, and writes the verdict."""
        try:
            write_once(self.store, self._key("decision"), mine.to_text())
            for other in self.members[1:]:
                said, late = self._wait("holds", other)
                if said is None:
                    return self._refused(late)
        except Exception as error:
            return self._refused(f"process {self._first} (deciding): {one_line(error)}")
        return self._settled(REWRITTEN)

    def _followed(self, mine: Decision, replay: Callable[[Decision], Decision] | None) -> str:
        """Another process compares the decision with what it holds, and waits for the verdict."""
        try:
            said, late = self._wait("decision", self._first)
            if said is None:
                return self._refused(late)
            first = Decision.from_text(said)
            if replay is not None and mine.chose_otherwise(first):
                mine = replay(first)
            difference, hint = mine.difference(first)
        except Exception as error:
            return self.refuse(one_line(error), "comparing")
        if difference:
            return self.refuse(f"its module differs from that of process {self._first}: {difference}; {hint}",
                               "comparing")
        self._insistently(lambda: write_once(self.store, self._key("holds"), "the same"))
        _, late = self._wait("verdict", self._first)
        return self._settled(late)

    def _wait(self, what: str, other: int) -> tuple[str | None, str]:
        """What another process says; None and why not, where a verdict or the end of patience comes first."""
        self._finished = max(self._finished, self._began)
        wanted, verdict = self._key(what, "" if what == "verdict" else other), self._key("verdict", "")
        # Ends: time passes.
        while True:
            try:
                text = read_key(self.store, wanted, _POLL_MS)
                if text is not None:
                    return text, ""
                text = None if wanted == verdict else read_key(self.store, verdict, 1)
                if text is not None:
                    return None, text
                came = what == "verdict" or self._has_come(other)
            except Exception:  # the store may answer again
                came = True
                time.sleep(_POLL_MS / 1000)
            if late := self._too_late(what, other, came):
                return None, late

    def _has_come(self, other: int) -> bool:
        """Whether a process has come to the module; notes when that was seen."""
        if other not in self._seen_to_come and read_key(self.store, self._key("came", other), 1) is not None:
            now = time.monotonic()
            early = now - self._finished < 4 * _POLL_MS / 1000  # it came while this process was rewriting
            self._seen_to_come[other] = 0.0 if early else now
        return other in self._seen_to_come

    def _too_late(self, what: str, other: int, came: bool) -> str:
        """Why not to wait any longer for a process; empty while it may come."""
        now, watch = time.monotonic(), self.watch
        phase = (watch.doing(other) if watch is not None else "") or (REWRITING if came else "not seen yet")
        gone = watch.missing(other) if watch is not None else ""
        if gone:
            return f"process {other} (last seen {phase}): {gone}"
        waited = now - self._finished
        if what == "verdict":
            limit, missing = self.patience.present + self.patience.rewriting, "it gave no verdict"
        elif came:
            own_s = self._finished - self._began
            since = max(self._finished, self._seen_to_come.get(other, 0.0) + own_s)
            waited, limit = now - since, self.patience.for_rewriting(own_s)
            missing = f"it had not finished rewriting {limit:.0f} s after process {self.process}"
        else:
            seen = watch is None or watch.seen(other)
            limit = self.patience.present if seen else min(self.patience.absent, self.patience.present)
            missing = f"it did not reach this module within {limit:g} s; it is slow, gone, or runs without hlorewrite"
        return f"process {other} ({phase}): {missing}" if waited > limit else ""

    # ---- the verdict

    def _key(self, what: str, process: int | str | None = None) -> str:
        return f"{self.room}/{what}/{self.process if process is None else process}".rstrip("/")

    def _refused(self, mine: str) -> str:
        """Writes the verdict where it cannot be ``rewritten`` without this process; returns the one that was first."""
        with suppress(Exception):
            write_once(self.store, self._key("verdict", ""), mine)
            return read_key(self.store, self._key("verdict", ""), _POLL_MS) or mine
        return mine

    def _settled(self, mine: str) -> str:
        """Writes the verdict unless one exists; returns why all run the original, by the verdict that counts."""
        def ask() -> str:
            if mine:
                write_once(self.store, self._key("verdict", ""), mine)
            final = read_key(self.store, self._key("verdict", ""), _POLL_MS)
            if final is None:
                raise TimeoutError("no answer")
            return final
        final = self._insistently(ask)
        return "" if final == REWRITTEN else final

    def _insistently(self, ask: Callable[[], Answer]) -> Answer:
        """Asks the store until it answers.

        Raises:
          Undecided: it does not.
        """
        start = time.monotonic()
        # Ends: time passes.
        while True:
            try:
                return ask()
            except Exception as error:
                if time.monotonic() - start > self.patience.present:
                    raise Undecided(f"{self._lost(error)}, so it cannot say whether the others compile the rewritten "
                                    "module", hint="start the job again") from error
                time.sleep(_POLL_MS / 1000)

    def _lost(self, error: Exception) -> str:
        return (f"process {self.process} (deciding): it cannot reach the key-value store of jax.distributed "
                f"({one_line(error)})")


# ---- the decision of process 0 for all processes of a module: a small document, broadcast as text


@dataclass(frozen=True)
class Decision:
    """The decision about one module, the same on every process.

    Attributes:
      original: digest of the original module.
      result: digest of what is compiled.
      how: what was rewritten and how: lines of a keyword and its value. The first line says what was asked for, such as
        ``pipeline comm-shift``, the others what was chosen. The processes only compare this text.
      versions: the versions of hlorewrite and jaxlib.

    Example:
      >>> made = Decision("a1", "b2", "pipeline comm-shift", "hlorewrite 1, jaxlib 0.12.0")
      >>> Decision.from_text(made.to_text()) == made
      True
    """

    original: str
    result: str
    how: str = ""
    versions: str = ""

    def to_text(self) -> str:
        """The document as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Decision:
        """Reads what ``to_text`` wrote.

        Raises:
          ValueError: it is another document, such as that of another version.
        """
        data = read_json(text)
        names = {field.name for field in fields(cls)}
        if not isinstance(data, dict) or set(data) != names or not all(isinstance(data[name], str) for name in names):
            raise ValueError("the decision of another version of hlorewrite")
        return cls(**data)

    def chose_otherwise(self, first: Decision) -> bool:
        """Whether the deciding process has the same options and module, but made another choice."""
        asked, theirs = self.how.partition("\n")[0], first.how.partition("\n")[0]
        return self.how != first.how and (self.original, self.versions, asked) == (
            first.original, first.versions, theirs)

    def difference(self, first: Decision) -> tuple[str, str]:
        """How this process differs from the one that decides, and what to do about it; empty if they agree.

        Args:
          first: the decision of the other process.

        Example:
          >>> made = Decision("a", "b", "pipeline comm-shift", "hlorewrite 1, jaxlib 0.12.0")
          >>> Decision("a", "c", "pipeline cse", "hlorewrite 1, jaxlib 0.12.0").difference(made)
          ('its pipeline is cse, not comm-shift', 'name the same passes everywhere')
        """
        if self == first:
            return "", ""
        if self.versions != first.versions:
            return (f"it has {self.versions}, not {first.versions}",
                    "install the same hlorewrite and jaxlib everywhere")
        if self.original != first.original:
            return ("its original module differs",
                    "use the same code, shapes, shardings and options on every process")
        if self.how != first.how:
            mine, theirs = _first_other_line(self.how, first.how)
            name, _, value = (mine or theirs).partition(" ")
            other = theirs.partition(" ")[2]
            hint = "name the same passes everywhere" if name == "pipeline" else "pass the same options everywhere"
            return f"its {name} is {(value if mine else '') or 'none'}, not {other or 'none'}", hint
        return ("the same module and pipeline gave a different result",
                "use the same rule files and topology files everywhere")


def _first_other_line(mine: str, theirs: str) -> tuple[str, str]:
    """The first line in which two texts differ; empty for a line that one of them lacks."""
    ours, others = mine.splitlines(), theirs.splitlines()
    for line in ours:
        if line not in others:
            word = line.partition(" ")[0]
            return line, next((other for other in others if other.partition(" ")[0] == word), "")
    return "", next((line for line in others if line not in ours), "")
