"""What became of every collective, and the sentences that say why.

The two sides of a run are compared: what is the same on both stays; what is the same but for the loops around it moved;
what is left at the same source line and on the same devices took its place. Why is what passes said about that line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from hlorewrite.viewer.communication import Collective, Side

FATES = ("moved", "fused", "replaced", "removed", "stays", "new")
_MOST_REASONS = 4


@dataclass(frozen=True)
class Fate:
    """What became of one collective.

    Attributes:
      fate: one of ``FATES``.
      before: its position before; None for one that came.
      after: positions of what is there in its place.
      why: remarks, as the trace holds them; the last may be made here, with an empty rule.
    """

    fate: str
    before: int | None
    after: tuple[int, ...]
    why: tuple[dict[str, Any], ...]


def fates_of(before: Side, after: Side, remarks: list[dict[str, Any]]) -> list[Fate]:
    """Says for each collective of either side what became of it.

    Args:
      before: what the module communicated.
      after: what it communicates now.
      remarks: lines of ``remarks.jsonl``.

    Returns:
      First those of the module before, in its order, then those that are new.
    """
    matched = _Matching(before, after)
    matched.pair("stays", lambda side, one: (*_identity(one), one.trips, side.path(one.nest)))
    matched.pair("moved", lambda side, one: _identity(one))
    matched.gather()
    said = _by_place(remarks)
    found = [Fate(fate, number, tuple(places), _why(fate, before.collectives[number], said))
             for number, (fate, places) in sorted(matched.fates.items())]
    new = [number for number in range(len(after.collectives)) if number in matched.left_after]
    return found + [Fate("new", None, (number,), _why("new", after.collectives[number], said)) for number in new]


def _identity(one: Collective) -> tuple[Hashable, ...]:
    return one.kind, one.source, one.groups, one.payload_bytes


class _Matching:
    """Pairs collectives of both sides, from the strictest likeness to the loosest."""

    def __init__(self, before: Side, after: Side) -> None:
        self.before, self.after = before, after
        self.fates: dict[int, tuple[str, list[int]]] = {}
        self.left_before = dict.fromkeys(range(len(before.collectives)))
        self.left_after = dict.fromkeys(range(len(after.collectives)))

    def pair(self, fate: str, key: Callable[[Side, Collective], Hashable]) -> None:
        """Pairs one with one, in the order of the program."""
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for number in reversed(self.left_after):
            waiting[key(self.after, self.after.collectives[number])].append(number)
        for number in list(self.left_before):
            found = waiting.get(key(self.before, self.before.collectives[number]))
            if found:
                self._settle(fate, [number], [found.pop()])

    def gather(self) -> None:
        """What is left at one source line and on the same devices belongs together."""
        for devices_too in (True, False):
            sides = []
            for side, left in ((self.before, self.left_before), (self.after, self.left_after)):
                found: dict[Hashable, list[int]] = defaultdict(list)
                for number in left:
                    one = side.collectives[number]
                    found[one.source, _devices(one) if devices_too else None].append(number)
                sides.append(found)
            for key, old in sides[0].items():
                if new := sides[1].get(key):
                    self._settle(self._together(old, new), old, new)
        self._settle("removed", list(self.left_before), [])

    def _together(self, old: list[int], new: list[int]) -> str:
        kinds = [{side.collectives[number].kind for number in numbers}
                 for side, numbers in ((self.before, old), (self.after, new))]
        return "fused" if kinds[0] == kinds[1] and len(new) < len(old) else "replaced"

    def _settle(self, fate: str, old: list[int], new: list[int]) -> None:
        for number in old:
            self.fates[number] = (fate, new)
            del self.left_before[number]
        for number in new:
            self.left_after.pop(number, None)


def _devices(one: Collective) -> frozenset[int]:
    return frozenset(device for group in one.groups for device in group)


# ---- why


Said = dict[str, list[dict[str, Any]]]


def _by_place(remarks: list[dict[str, Any]]) -> Said:
    found: Said = defaultdict(list)
    for remark in _distinct(remarks):
        found[str(remark.get("location", ""))].append(remark)
    return found


def _why(fate: str, one: Collective, said: Said) -> tuple[dict[str, Any], ...]:
    """What was said about a collective's line that fits its fate; of a stay, about collectives of its kind."""
    wanted = ("blocked", "unprofitable", "missed") if fate == "stays" else ("applied",)
    found = [remark for remark in said.get(one.source, ()) if remark.get("kind") in wanted
             and (fate != "stays" or _kind(remark) == one.kind)]
    named = [remark for remark in found if f" {one.payload_bytes} bytes" in str(remark.get("sentence", ""))]
    chosen = named or found
    if not chosen:
        return ({"kind": fate, "rule": "", "sentence": _plain(fate, one)},)
    return tuple(chosen[:_MOST_REASONS])


def _kind(remark: dict[str, Any]) -> str:
    return str(remark.get("op", "")).removeprefix("stablehlo.").replace("_", "-")


def _distinct(remarks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for remark in remarks:
        key = tuple(str(remark.get(name)) for name in ("location", "op", "kind", "rule", "sentence"))
        found.setdefault(key, remark)
    return list(found.values())


def _plain(fate: str, one: Collective) -> str:
    if fate == "stays":
        if one.trips <= 1 and one.nest < 0:
            return "it stands outside loops and runs once, and no rule asked for anything else"
        return "no pass of this run had anything to say about it"
    return {"moved": "the loops around it are others than before",
            "fused": "fewer calls at the same line send the same",
            "replaced": "other collectives stand at the same line now",
            "removed": "nothing at its line is left",
            "new": "nothing at its line was there before"}[fate]
