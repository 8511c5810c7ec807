"""Whether a fragment contains another one: the same ops, linked in the same way."""

from dataclasses import dataclass, field

from hlorewrite.pipelines.passes.share_fragments.fragment_graph import FragmentGraph
from hlorewrite.util.reachability import reachable


@dataclass(frozen=True)
class Occurrence:
    """A fragment inside another one.

    Attributes:
      ops: position of each of its ops among the other's.
      values: the other's value for each of its values.
    """

    ops: tuple[int, ...]
    values: tuple[int, ...]


def occurrence_in(part: FragmentGraph, host: FragmentGraph) -> Occurrence | None:
    """Finds a fragment in another one.

    The search follows ops from results to operands, which leaves a choice only for the first op of each result.
    Candidates are tried in order and the first that fits is kept, so an occurrence may be missed, but none is wrong.

    Args:
      part: the fragment to find.
      host: where to find it.

    Returns:
      An occurrence in which different values are different values of the host; None if none is found.
    """
    if not part.signatures <= host.signatures:
        return None
    search = _OccurrenceSearch(part, host)
    for value in sorted(dict.fromkeys(part.returned), key=lambda each: -part.depths[each]):
        if value not in search.values and not search.place(value):
            return None
    if len(search.ops) < len(part.ops) or len(search.values) < len(part.values):
        return None  # ops that no result needs, arguments that nothing reads
    return Occurrence(tuple(search.ops[place] for place in range(len(part.ops))),
                      tuple(search.values[value] for value in range(len(part.values))))


def common_prefix(part: FragmentGraph, host: FragmentGraph) -> tuple[int, ...]:
    """Ops of a fragment that another one also contains, with all they depend on.

    If a result is not found, the operands of its op are looked for instead. After the first match, only values that
    depend on an earlier match are taken.

    Args:
      part: the fragment.
      host: the other one.

    Returns:
      Positions of the ops, ascending; empty if nothing is found.
    """
    search, depths = _OccurrenceSearch(part, host), part.depths
    todo = sorted(dict.fromkeys(part.returned), key=depths.__getitem__)
    seen = set(todo)
    # Ends: a value is added once.
    while todo:
        value = todo.pop()
        if value in search.values or value not in part.maker or (search.ops and not search.touches(value)):
            continue
        if not search.place(value):
            todo += [each for each in part.ops[part.maker[value]].reads if each not in seen]
            seen.update(todo)
            todo.sort(key=depths.__getitem__)
    return tuple(sorted(search.ops))


def common_work(part: FragmentGraph, host: FragmentGraph) -> int:
    """The largest number of computing ops that two fragments can have in common."""
    work = {op.signature: op.work for op in part.ops}
    return sum(count * work[signature] for signature, count in (part.signatures & host.signatures).items())


@dataclass
class _OccurrenceSearch:
    part: FragmentGraph
    host: FragmentGraph
    ops: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    taken_ops: set[int] = field(default_factory=set)
    taken_values: set[int] = field(default_factory=set)

    def place(self, value: int) -> bool:
        """Finds a place for a value that is a result of an op, and for all it depends on."""
        maker = self.part.maker.get(value)
        if maker is None:
            return False
        which = self.part.ops[maker].results.index(value)
        for candidate in self.host.by_signature.get(self.part.ops[maker].signature, ()):
            if candidate not in self.taken_ops and self._fits(value, self.host.ops[candidate].results[which]):
                return True
        return False

    def touches(self, value: int) -> bool:
        """Whether a value depends on one that was found."""
        maker, ops = self.part.maker, self.part.ops
        return any(each in self.values for each in reachable(
            [value], lambda each: ops[maker[each]].reads if each in maker else ()))

    def _fits(self, value: int, there: int) -> bool:
        """Matches a value with one of the host, and everything that they depend on; changes nothing if that is
        impossible.
        """
        linked: list[int] = []
        placed: list[int] = []
        todo = [(value, there)]
        # Ends: only a round that links a value of the part adds pairs.
        while todo:
            mine, other = todo.pop()
            if mine in self.values:
                if self.values[mine] == other:
                    continue
                break
            maker, its = self.part.maker.get(mine), self.host.maker.get(other)
            if other in self.taken_values:
                break
            if maker is None:
                self._link(mine, other, linked)  # of one type: signatures contain the types of operands
                continue
            if its is None or its in self.taken_ops or \
                    self.part.ops[maker].signature != self.host.ops[its].signature:
                break
            self.ops[maker] = its
            self.taken_ops.add(its)
            placed.append(maker)
            pairs = list(zip(self.part.ops[maker].results, self.host.ops[its].results, strict=True))
            if (mine, other) not in pairs or any(each in self.taken_values for _, each in pairs):
                break
            for pair in pairs:
                self._link(*pair, linked)
            todo += zip(self.part.ops[maker].reads, self.host.ops[its].reads, strict=True)
        else:
            return True
        for each in linked:
            self.taken_values.discard(self.values.pop(each))
        for each in placed:
            self.taken_ops.discard(self.ops.pop(each))
        return False

    def _link(self, mine: int, other: int, linked: list[int]) -> None:
        self.values[mine] = other
        self.taken_values.add(other)
        linked.append(mine)


__all__ = ["Occurrence", "common_prefix", "common_work", "occurrence_in"]
