"""Groups of processes, and reductions over them, with one object for equal groups.

The groups of a collective, in whatever mode it writes them, become groups of process ids, and have to hold every
process exactly once; a collective for which that fails is given no meaning beyond its own text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.analysis.groups import (
    Rows,
    device_count,
    id_mode,
    partition_count,
    process_groups,
    replica_count,
    written_groups,
)
from hlorewrite.analysis.mesh import meshes
from hlorewrite.ir import WITH_REPLICA_GROUPS, View, ir


class Members:
    """A partition of the processes into groups.

    Args:
      rows: the groups; each process is in one.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.row_of = {process: number for number, row in enumerate(rows) for process in row}

    def within(self, other: Members) -> bool:
        """Whether each group is inside one group of another partition."""
        return all(len({other.row_of[process] for process in row}) == 1 for row in self.rows)

    def alike(self, places: Sequence[object]) -> bool:
        """Whether something that depends on the process is the same for all members of each group."""
        return all(len({places[process] for process in row}) == 1 for row in self.rows)

    def aligned(self, other: Members) -> bool:
        """Whether the members of a group, each in its group of another partition, meet equally many members of the same
        groups.

        Then what another partition's reduction makes of a value that is the same within our groups is so too.
        """
        met = [tuple(sorted(self.row_of[q] for q in other.rows[other.row_of[p]])) for p in range(len(self.row_of))]
        return self.alike(met)

    def __str__(self) -> str:
        return "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in self.rows) + "}"


@dataclass(frozen=True)
class OwnPart:
    """The part of the sum that a reduce-scatter leaves on each process.

    Attributes:
      rows: the groups, members in their order.
      along: the dimension that is divided.
      whole: the shape of the sum.
    """

    rows: Rows
    along: int
    whole: tuple[int, ...]

    @property
    def places(self) -> list[int]:
        """For each process, the part that is its own."""
        place = {process: number for row in self.rows for number, process in enumerate(row)}
        return [place[process] for process in range(len(place))]


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduction that a value waits for: ``AR(x)``, or the process's own part of it.

    Attributes:
      members: who reduces with whom.
      kind: ``sum``, ``product``, ``max``, ``min``, ``and``, ``or``.
      wire: the floating element type in which it is taken; empty if types make no difference (integers are numbers
        modulo 2^w on either side of a narrowing, and maxima are exact).
      number: its place in the order of first use.
      own: the part of the sum that a reduce-scatter takes; None for an all-reduce.
    """

    members: Members
    kind: str
    wire: str
    number: int
    own: OwnPart | None = None


def _stated(view: View) -> tuple[int, int] | None:
    """Replicas and partitions as the module says, or as large as its largest mesh."""
    partitions = partition_count(view)
    if partitions is None and device_count(view) is None:
        largest = max((mesh.size for mesh in meshes(view).values()), default=0)
        return (1, largest) if largest else None
    return replica_count(view), 1 if partitions is None else partitions


def _named(view: View) -> tuple[int, int] | None:
    """As many as the groups of collectives name, where all of them name the same."""
    found = set()
    for op in view.ops(*WITH_REPLICA_GROUPS):
        groups = written_groups(op, view)
        if isinstance(groups, str):
            return None
        count = 1 + max(member for row in groups.rows for member in row)
        found.add((count, 1) if groups.mode.startswith("cross_replica") else (1, count))
    return found.pop() if len(found) == 1 else None


class ProcessSpace:
    """The processes of a program, and the one object for each partition of them.

    Args:
      view: the original.

    Attributes:
      known: whether the module states how many there are; if not, groups and device ids are unrestricted.
      replicas: replicas.
      partitions: partitions of each replica.
      size: processes.
    """

    def __init__(self, view: View) -> None:
        counts = _stated(view) or _named(view)
        self.known = counts is not None
        self.replicas, self.partitions = counts or (1, 1)
        self.size = self.replicas * self.partitions
        self._members: dict[Rows, Members] = {}
        self._reductions: dict[tuple[Members, str, str, OwnPart | None], Reduction] = {}

    def members(self, rows: Rows) -> Members:
        """The partition into some groups, whatever the order of the groups and of their members."""
        key = tuple(sorted(tuple(sorted(row)) for row in rows))
        if key not in self._members:
            self._members[key] = Members(key)
        return self._members[key]

    def reduction(self, members: Members, kind: str, wire: str, own: OwnPart | None = None) -> Reduction:
        """The reduction of some kind over some groups, or a part of it."""
        key = (members, kind, wire, own)
        if key not in self._reductions:
            self._reductions[key] = Reduction(members, kind, wire, len(self._reductions), own)
        return self._reductions[key]

    def groups_of(self, op: ir.Operation, view: View) -> Rows | None:
        """The groups of a collective as process ids, members in its order; None when they are not a partition."""
        groups = written_groups(op, view)
        if isinstance(groups, str) or not self.known:
            return None
        rows = process_groups(groups.rows, groups.mode, self.replicas, self.partitions)
        members = [process for row in rows for process in row]
        even = len({len(row) for row in rows}) == 1
        return tuple(sorted(rows)) if even and sorted(members) == list(range(self.size)) else None

    def sources_of(self, op: ir.Operation, pairs: Sequence[tuple[int, int]]) -> tuple[int, ...] | None:
        """For each process, the one from which a permute's pairs send to it, -1 for none; None if the pairs are
        ill-formed."""
        mode = id_mode(op)
        every = process_groups(tuple(pairs), mode, self.replicas, self.partitions)
        sources = [-1] * self.size
        for source, target in every:
            if not (0 <= source < self.size and 0 <= target < self.size) or sources[target] >= 0:
                return None
            sources[target] = source
        used = [source for source in sources if source >= 0]
        return tuple(sources) if len(set(used)) == len(used) else None

    def composed(self, outer: Reduction, inner: Reduction) -> Reduction | None:
        """The one reduction that two in a row amount to; None if some process would be counted twice, or no groups
        result.

        With groups as 0/1 matrices: outer · inner must be 0/1 (for sums and products), and its rows a partition. The
        inner one may leave each process a part of its sum, where all that meet in the outer one have the same part.
        """
        if outer.kind != inner.kind or outer.wire != inner.wire or outer.own:
            return None
        if inner.own is not None and not outer.members.alike(inner.own.places):
            return None
        rows: dict[int, tuple[int, ...]] = {}
        for row in outer.members.rows:
            met = [q for p in row for q in inner.members.rows[inner.members.row_of[p]]]
            if len(set(met)) != len(met) and outer.kind in ("sum", "product"):
                return None
            rows.update(dict.fromkeys(row, tuple(sorted(set(met)))))
        distinct = tuple(sorted(set(rows.values())))
        everyone = [p for row in distinct for p in row]
        if len(everyone) != self.size or any(rows[p] != row for row in distinct for p in row):
            return None
        return self.reduction(self.members(distinct), outer.kind, outer.wire, inner.own)
