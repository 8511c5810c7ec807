"""The dependences between a block's collectives, and when each is ready and its result is needed.

Visits only ops that collectives reach: a block of 100 000 ops whose gradients are reduced and then added to an
accumulator costs one walk for the positions and a few steps per gradient.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlorewrite.cost.kernels.clock import KERNELS, KernelClock
from hlorewrite.ir import MAY_HAVE_EFFECTS, contains_any, has_side_effect, ir, op_key, tensor_bytes
from hlorewrite.ir.view import View, ancestors, defining_op
from hlorewrite.ops.table import FILLINGS
from hlorewrite.util.hash_consed_sets import NONE, NumberRange, NumberSet, union
from hlorewrite.util.reachability import reachable


@dataclass(frozen=True, slots=True)
class Timing:
    """When a collective could start, and when its result is needed, in seconds from the start of its block.

    Attributes:
      ready: its operands have been computed.
      needed: the first kernel that reads its result could start; the end of the block when there is none.
    """

    ready: float
    needed: float


class BlockGraph:
    """The dependences between some collectives of one block.

    Args:
      view: the module.
      block: the block.
      members: collectives directly in the block, in program order.
      clock: how long kernels take.

    Attributes:
      position: key of each op of the block to its place in it.
      numbers: makes sets of members.
      before: for each member, the members its operands depend on.
      reached: for each place that members reach, these members.
      starts: place of each kernel to the seconds at which it starts if nothing waits for communication.
      ends: likewise, to the seconds at which it ends.
      end: seconds at which the last kernel ends.
    """

    def __init__(self, view: View, block: ir.Block, members: Sequence[ir.Operation], clock: KernelClock) -> None:
        self.view = view
        self.block = block
        self.members = list(members)
        self.position: dict[int, int] = {}
        self.ops: list[ir.Operation] = []
        for place, op in enumerate(block.operations):
            self.position[op_key(op.operation)] = place
            self.ops.append(op.operation)
        self.places = [self.position[op_key(op)] for op in members]
        self._member_at = {place: index for index, place in enumerate(self.places)}
        self._bytes_per_s = clock.memory_bytes_per_s
        self._ordered = self._effects()
        self._next: dict[int, tuple[int, ...]] = {}
        self.numbers = NumberRange(len(self.members))
        self.reached: dict[int, NumberSet] = {}
        self.before: list[NumberSet] = []
        self._reach()
        self.starts, self.ends, self.end = self._times(clock)

    # ---- the graph

    def _effects(self) -> dict[int, int]:
        """Place of each op with a side effect -> place of the next one: they keep their order."""
        places = set()
        holds = contains_any(MAY_HAVE_EFFECTS, self.view) if self.view.ops("func.call") else None
        for op in self.view.ops(*MAY_HAVE_EFFECTS, "func.call"):
            if op.name == "stablehlo.custom_call" and not has_side_effect(op):
                continue
            callee = self.view.callee(op) if op.name == "func.call" else None
            if callee is not None and holds is not None and not holds(callee):
                continue
            place = self.place_of(op)
            if place is not None:
                places.add(place)
        ordered = sorted(places)
        return dict(itertools.pairwise(ordered))

    def place_of(self, op: ir.Operation) -> int | None:
        """The place of an op of the block, or of the op of the block it is nested in."""
        place = self.position.get(op_key(op))
        if place is not None:
            return place
        for outer in ancestors(op):
            place = self.position.get(op_key(outer))
            if place is not None:
                return place
        return None

    def readers(self, place: int) -> tuple[int, ...]:
        """Places of the ops that must come after the op at a place."""
        readers = self._next.get(place)
        if readers is None:
            places = {self.place_of(use.owner.operation) for result in self.ops[place].results for use in result.uses}
            if place in self._ordered:
                places.add(self._ordered[place])
            readers = tuple(sorted(p for p in places if p is not None))
            self._next[place] = readers
        return readers

    def _reach(self) -> None:
        self.cone = sorted(reachable(self.places, self.readers))
        reached = dict.fromkeys(self.cone, NONE)
        for place in self.cone:
            members = self._with_member(reached[place], place)
            for reader in self.readers(place):
                reached[reader] = union(reached[reader], members)
        self.reached = reached
        self.before = [reached[place] for place in self.places]

    def _with_member(self, members: NumberSet, place: int) -> NumberSet:
        """Some members, plus the one at a place if there is one."""
        member = self._member_at.get(place)
        return members if member is None else union(members, self.numbers.single(member))

    def behind(self) -> Iterator[tuple[int, NumberSet]]:
        """Yields each member with the members that depend on it, the last member first.

        Frees the set of a place once no earlier place needs it, since all sets together would take far more memory.
        """
        first = {reader: place for place in reversed(self.cone) for reader in self.readers(place)}
        found: dict[int, NumberSet] = {}
        for place in reversed(self.cone):
            members = NONE
            for reader in self.readers(place):
                members = union(members, self._with_member(found[reader], reader))
                if first[reader] == place:
                    del found[reader]
            found[place] = members
            if place in self._member_at:
                yield self._member_at[place], members

    def latest(self, order: Sequence[int]) -> list[int]:
        """For each of some members, the last of them that it depends on, as an index among them; -1 for none."""
        positions = {self.places[member]: position for position, member in enumerate(order)}
        reached: dict[int, int] = {}
        found = [-1] * len(order)
        for place in self.cone:
            last = reached.get(place, -1)
            if place in positions:
                found[positions[place]] = last
                last = max(last, positions[place])
            if last >= 0:
                for reader in self.readers(place):
                    reached[reader] = max(last, reached.get(reader, -1))
        return found

    # ---- times

    def _times(self, clock: KernelClock) -> tuple[dict[int, float], dict[int, float], float]:
        """Start and end of each separate kernel, by place, and the end of all.

        Fused kernels take their time too, except for those that read a member's result: they count with the member.
        """
        starts: dict[int, float] = {}
        ends: dict[int, float] = {}
        now = 0.0
        behind = set(self.cone)
        for op in clock.kernels(self.block):
            place = self.position[op_key(op)]
            if op.name not in KERNELS:
                now += 0.0 if place in behind else clock.seconds(op)
                continue
            starts[place] = now
            now += clock.seconds(op)
            ends[place] = now
        return starts, ends, now

    def timings(self) -> list[Timing]:
        """The timing of each member."""
        needed = self._needed()
        ready: dict[int, float] = {}
        return [Timing(max((self._finish(v, ready) for v in op.operands), default=0.0), needed[place])
                for op, place in zip(self.members, self.places, strict=True)]

    @cached_property
    def readings(self) -> list[float]:
        """For each member, the seconds of the fused ops that read its result and no other member's, such as an update.

        The seconds follow from the bytes they read and write. These ops may run during the next call.
        """
        owners = self._owners()
        owned: list[list[int]] = [[] for _ in self.members]
        for place, owner in owners.items():
            if owner >= 0:
                owned[owner].append(place)
        return [self._seconds_of_fused(places, owner, owners) for owner, places in enumerate(owned)]

    def _seconds_of_fused(self, places: Sequence[int], owner: int, owners: Mapping[int, int]) -> float:
        """Seconds that the fused ops of one owner take to read and write, by their places."""
        read: set[ir.Value] = set()
        written = 0
        for place in places:
            op = self.ops[place]
            for value in op.operands:
                source = self._place_of_value(value)
                inside = source is not None and owners.get(source, -1) == owner
                if not inside and (source is None or self.ops[source].name not in FILLINGS):
                    read.add(value)
            if any(owners.get(reader, -1) != owner for reader in self.readers(place)):
                written += sum(tensor_bytes(value.type) for value in op.results)
        return (sum(tensor_bytes(value.type) for value in read) + written) / self._bytes_per_s

    def _owners(self) -> dict[int, int]:
        """Maps the place of each fused op of the cone to the only member it depends on; to -1 if there are several."""
        reached: dict[int, int] = {}
        owners: dict[int, int] = {}
        for place in self.cone:
            owner = self._member_at.get(place, reached.get(place, -1))
            if place not in self._member_at and place not in self.ends and place != len(self.ops) - 1:
                owners[place] = owner
            for reader in self.readers(place):
                reached[reader] = owner if reached.get(reader, owner) == owner else -1
        return owners

    def _needed(self) -> dict[int, float]:
        needed: dict[int, float] = {}
        for place in reversed(self.cone):
            needed[place] = min((self.starts.get(reader, needed[reader]) for reader in self.readers(place)),
                                default=self.end)
        return needed

    def _finish(self, value: ir.Value, known: dict[int, float]) -> float:
        """When a value is available: the end of the last kernel that it is computed from."""
        root = self._place_of_value(value)
        if root is None:
            return 0.0
        stack = [root]
        # Ends: a place depends only on places before it, and becomes known once.
        while stack:
            place = stack[-1]
            if place in known:
                stack.pop()
                continue
            if place in self.ends or self.ops[place].name in KERNELS:
                known[place] = self.ends.get(place, 0.0)
                continue
            sources = [p for p in map(self._place_of_value, self.ops[place].operands) if p is not None]
            open_sources = [p for p in sources if p not in known]
            if open_sources:
                stack.extend(open_sources)
            else:
                known[place] = max((known[p] for p in sources), default=0.0)
        return known[root]

    def _place_of_value(self, value: ir.Value) -> int | None:
        op = defining_op(value)
        return None if op is None else self.position.get(op_key(op))
