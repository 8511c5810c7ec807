"""The collectives of one side of a run, as the page needs them; rows that make no sense are counted and left out."""

from dataclasses import dataclass
from typing import Any

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class NestRow:
    """A loop or branch; see ``hlorewrite.passmanager.trace.snapshot.TracedNest``."""

    parent: int
    op: str
    source: str
    trips: int
    trips_known: bool


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
    nests: tuple[NestRow, ...]
    remarks: tuple[str, ...]
    damaged: int

    def path(self, place: int) -> tuple[tuple[str, str, int], ...]:
        """(op, source, trips) of the loops and branches around a place, outermost first."""
        path = []
        # Ends: each step goes to the loop or branch around, which was listed before.
        while place >= 0:
            nest = self.nests[place]
            path.append((nest.op, nest.source, nest.trips))
            place = nest.parent
        return tuple(reversed(path))

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
    nests: list[NestRow] = []
    for row in rows_of(content, "nests"):
        parent = _whole(row.get("parent"), -1)
        nests.append(NestRow(parent if parent < len(nests) else -1, _text(row.get("op")) or "region",
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
