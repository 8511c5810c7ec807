"""The outcome for every collective, and the sentences that explain it.

The two sides of a run are compared. A collective that is the same on both sides stays; one that is the same except for
the loops around it moved; fewer of one kind over the same groups are fused; one that is left at the same source line
took its place. The reasons are the remarks of passes on that line.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from hlorewrite.passmanager.trace.format import TracedNest, path_of

# ---- the collectives of one side of a run, as the page needs them; rows that make no sense are counted and left out


Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CollectiveRow:
    """One collective of one side.

    Attributes:
      kind: such as ``all-reduce``.
      source: the user's line.
      groups: devices of each group.
      axes: mesh axes, by name.
      payload_bytes: the payload of one execution on one device, in bytes.
      trips: executions.
      trips_known: whether that is a constant.
      nest: position of the loop or branch around it; -1 outside.
      time_s: predicted time of one execution.
      text: the op in one line.
      argument: the argument of the step it belongs to; empty if that is not known.
      type: the type of its result; empty if the trace does not say.
    """

    kind: str
    source: str
    groups: Groups
    axes: tuple[str, ...]
    payload_bytes: int
    trips: int
    trips_known: bool
    nest: int
    time_s: float | None
    text: str
    argument: str = ""
    type: str = ""

    @property
    def executed_bytes(self) -> int:
        """Payload times executions."""
        return self.payload_bytes * self.trips


@dataclass(frozen=True)
class Side:
    """The communication of a module before or after the run.

    Attributes:
      devices: how many.
      collectives: the collectives, in the order of the program.
      nests: loops and branches, outer ones first.
      remarks: messages about what could not be read.
      damaged: how many rows were left out.
    """

    devices: int
    collectives: tuple[CollectiveRow, ...]
    nests: tuple[TracedNest, ...]
    remarks: tuple[str, ...]
    damaged: int

    def path(self, place: int) -> tuple[tuple[str, str, int], ...]:
        """(op, source, trips) of the loops and branches around a place, outermost first."""
        return path_of(self.nests, place)

    @property
    def executed_bytes(self) -> int:
        """Of one device."""
        return sum(each.executed_bytes for each in self.collectives)

    @property
    def time_s(self) -> float | None:
        """Predicted time of all collectives, one after another; None when any is unknown."""
        times = [each.time_s for each in self.collectives]
        if not times or any(time is None for time in times):
            return None
        return sum((time or 0.0) * each.trips for time, each in zip(times, self.collectives, strict=True))


def side_of(content: dict[str, Any]) -> Side:
    """Reads ``before.json`` or ``after.json``.

    Args:
      content: the JSON object; anything in it may be missing or of another type.

    Returns:
      What could be read.

    Example:
      >>> side = side_of({"groups": [[[0, 1]]], "collectives": [
      ...     {"kind": "all-reduce", "groups": 0, "payload_bytes": 64, "trips": 8}, {"kind": "all-reduce"}]})
      >>> side.devices, side.executed_bytes, side.damaged
      (2, 512, 1)
    """
    nests: list[TracedNest] = []
    for row in rows_of(content, "nests"):
        parent = _whole(row.get("parent"), -1)
        nests.append(TracedNest(parent if parent < len(nests) else -1, _text(row.get("op")) or "region",
                             _text(row.get("source")), max(1, _whole(row.get("trips"), 1)),
                             bool(row.get("trips_known"))))
    groups = content.get("groups")
    table = [_groups(each) if isinstance(each, list) else () for each in groups] if isinstance(groups, list) else []
    collectives, damaged = [], 0
    for row in rows_of(content, "collectives"):
        one = _collective(row, table, len(nests))
        collectives += [one] if one else []
        damaged += one is None
    highest = max((device + 1 for each in collectives for group in each.groups for device in group), default=1)
    remarks = content.get("remarks")
    said = tuple(str(each) for each in remarks) if isinstance(remarks, list) else ()
    return Side(max(highest, _whole(content.get("devices"), 1)), tuple(collectives), tuple(nests), said, damaged)


def _collective(row: dict[str, Any], table: list[Groups], nests: int) -> CollectiveRow | None:
    number, payload = _whole(row.get("groups"), -1), _whole(row.get("payload_bytes"), -1)
    if not 0 <= number < len(table) or payload < 0 or not _text(row.get("kind")):
        return None
    nest, axes, time = _whole(row.get("nest"), -1), row.get("axes"), row.get("time_s")
    return CollectiveRow(_text(row["kind"]), _text(row.get("source")) or "?", table[number],
                         axes=tuple(map(str, axes)) if isinstance(axes, list) else (), payload_bytes=payload,
                         trips=max(0, _whole(row.get("trips"), 1)), trips_known=bool(row.get("trips_known", True)),
                         nest=nest if -1 <= nest < nests else -1,
                         time_s=float(time) if isinstance(time, int | float) and not isinstance(time, bool) else None,
                         text=_text(row.get("text")), argument=_text(row.get("argument")), type=_text(row.get("type")))


def rows_of(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The JSON objects of a list; empty when there is none."""
    rows = content.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _groups(rows: list[Any]) -> Groups:
    return tuple(tuple(device for device in row if isinstance(device, int) and 0 <= device < 1 << 20)
                 for row in rows if isinstance(row, list))


def _whole(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# ---- outcomes


FATES = ("moved", "fused", "replaced", "removed", "stays", "new")
_MOST_REASONS = 4
_MOST_AFTER = 32
_RANKS = 4


@dataclass(frozen=True)
class CollectiveOutcome:
    """The outcome for one collective.

    Attributes:
      fate: one of ``FATES``.
      before: its position before; None for a new collective.
      after: positions of the collectives that replace it; the first ones if there are very many.
      share: how many collectives of the original they replace together.
      why: remarks, as the trace contains them; the last one may be written here, with an empty rule.
    """

    fate: str
    before: int | None
    after: tuple[int, ...]
    share: int
    why: tuple[dict[str, Any], ...]


def outcomes_of(before: Side, after: Side, remarks: list[dict[str, Any]]) -> list[CollectiveOutcome]:
    """Says for each collective of either side what happened to it.

    Args:
      before: what the module communicated.
      after: what it communicates now.
      remarks: lines of ``remarks.jsonl``.

    Returns:
      First those of the module before, in its order, then those that are new.

    Example:
      >>> from hlorewrite.viewer.outcomes import side_of
      >>> one = {"kind": "all-reduce", "groups": 0, "payload_bytes": 64}
      >>> loop = {"op": "while", "trips": 8, "trips_known": True}
      >>> before = {"groups": [[[0, 1]]], "nests": [loop], "collectives": [one | {"trips": 8, "nest": 0}]}
      >>> after = {"groups": [[[0, 1]]], "collectives": [one | {"trips": 1, "nest": -1}]}
      >>> [fate.fate for fate in outcomes_of(side_of(before), side_of(after), [])]
      ['moved']
    """
    matched = _Matching(before, after)
    matched.pair("stays", lambda side, one: (*_identity(one), one.trips, side.path(one.nest)))
    matched.pair("moved", lambda side, one: _identity(one))
    matched.fuse()
    matched.gather()
    said = _by_place(remarks)
    fates = []
    for number, (fate, places, share) in sorted(matched.fates.items()):
        shown = tuple(places[:_MOST_AFTER])
        why = _why(fate, before.collectives[number], said, [after.collectives[place].source for place in shown])
        fates.append(CollectiveOutcome(fate, number, shown, share, why))
    new = [number for number in range(len(after.collectives)) if number in matched.left_after]
    return fates + [CollectiveOutcome("new", None, (number,), 1, _why("new", after.collectives[number], said))
                    for number in new]


def _identity(one: CollectiveRow) -> tuple[Hashable, ...]:
    return one.kind, one.source, one.groups, one.payload_bytes


class _Matching:
    """Pairs collectives of both sides, from the strictest likeness to the loosest."""

    def __init__(self, before: Side, after: Side) -> None:
        self.before, self.after = before, after
        self.fates: dict[int, tuple[str, list[int], int]] = {}
        self.left_before = dict.fromkeys(range(len(before.collectives)))
        self.left_after = dict.fromkeys(range(len(after.collectives)))

    def pair(self, fate: str, key: Callable[[Side, CollectiveRow], Hashable]) -> None:
        """Pairs one with one, in the order of the program."""
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for number in reversed(self.left_after):
            waiting[key(self.after, self.after.collectives[number])].append(number)
        for number in list(self.left_before):
            partners = waiting.get(key(self.before, self.before.collectives[number]))
            if partners:
                self._settle(fate, [number], [partners.pop()])

    def fuse(self) -> None:
        """Among the rest, fewer collectives of one kind over the same groups do what more did before, wherever they
        are."""
        sides = []
        for side, left in ((self.before, self.left_before), (self.after, self.left_after)):
            by_groups: dict[Hashable, list[int]] = defaultdict(list)
            for number in left:
                by_groups[side.collectives[number].kind, side.collectives[number].groups].append(number)
            sides.append(by_groups)
        for key, old in sides[0].items():
            if 0 < len(new := sides[1].get(key, [])) < len(old):
                self._settle("fused", old, new)

    def gather(self) -> None:
        """Pairs what is left by source line, first on the same devices, then on any."""
        for devices_too in (True, False):
            sides = []
            for side, left in ((self.before, self.left_before), (self.after, self.left_after)):
                by_source: dict[Hashable, list[int]] = defaultdict(list)
                for number in left:
                    one = side.collectives[number]
                    by_source[one.source, _devices(one) if devices_too else None].append(number)
                sides.append(by_source)
            for key, old in sides[0].items():
                if new := sides[1].get(key):
                    self._settle("replaced", old, new)
        self._settle("removed", list(self.left_before), [])

    def _settle(self, fate: str, old: list[int], new: list[int]) -> None:
        for number in old:
            self.fates[number] = (fate, new, len(old))
            del self.left_before[number]
        for number in new:
            self.left_after.pop(number, None)


def _devices(one: CollectiveRow) -> frozenset[int]:
    return frozenset(device for group in one.groups for device in group)


# ---- why


Said = dict[str, list[dict[str, Any]]]


def _by_place(remarks: list[dict[str, Any]]) -> Said:
    by_place: Said = defaultdict(list)
    for remark in _distinct(remarks):
        by_place[str(remark.get("location", ""))].append(remark)
    return by_place


def _why(fate: str, one: CollectiveRow, said: Said, new_places: Iterable[str] = ()) -> tuple[dict[str, Any], ...]:
    """What was said about a collective's line that fits its fate; of a stay, about collectives of its kind.

    A pass that fuses speaks about the line of the fused call, which may be another.
    """
    wanted = ("blocked", "unprofitable", "missed") if fate == "stays" else ("applied",)
    reasons = [remark for remark in said.get(one.source, ()) if remark.get("kind") in wanted
               and (fate != "stays" or _kind(remark) == one.kind)]
    named = [remark for remark in reasons if f" {one.payload_bytes} bytes" in str(remark.get("sentence", ""))]
    chosen = sorted(named or reasons, key=_rank)
    if fate == "fused":
        rules = {remark.get("rule") for remark in chosen}
        elsewhere = [remark for place in dict.fromkeys(new_places) for remark in said.get(place, ())]
        chosen = [remark for remark in elsewhere if remark.get("kind") == "applied"
                  and remark.get("rule") not in rules] + chosen
    if not chosen or _rank(chosen[0]) == _RANKS:  # that some rule's pattern is not all there explains little
        chosen.insert(0, {"kind": fate, "rule": "", "sentence": _plain(fate, one)})
    return tuple(chosen[:_MOST_REASONS])


def _rank(remark: dict[str, Any]) -> int:
    """The most important remarks first: what would be wrong, what would not pay, what a pass missed, what a rule
    did."""
    kind = remark.get("kind")
    of_rule = kind == "missed" and bool(remark.get("rule_location"))
    return {"applied": 0, "blocked": 1, "unprofitable": 2}.get(str(kind), 3) + of_rule


def _kind(remark: dict[str, Any]) -> str:
    return str(remark.get("op", "")).removeprefix("stablehlo.").replace("_", "-")


def _distinct(remarks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    distinct: dict[tuple[str, ...], dict[str, Any]] = {}
    for remark in remarks:
        key = tuple(str(remark.get(name)) for name in ("location", "op", "kind", "rule", "sentence"))
        distinct.setdefault(key, remark)
    return list(distinct.values())


def _plain(fate: str, one: CollectiveRow) -> str:
    if fate == "stays":
        if one.trips <= 1 and one.nest < 0:
            return "it is outside loops and runs once, so moving it gains nothing"
        return "no pass of this run found a way to make it cheaper"
    return {"moved": "the loops around it changed",
            "fused": "fewer calls at the same line send the same data",
            "replaced": "other collectives are at the same line now",
            "removed": "no call at its line is left",
            "new": "there was nothing at its line before"}[fate]
