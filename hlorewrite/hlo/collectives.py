"""Collectives of optimised HLO text: kind, payload, how often each runs, groups, source line.

A collective inside loops runs once per iteration of each. Trip counts come from XLA's own ``known_trip_count`` or, if
that is missing, from a loop condition that compares a counter with a constant.
"""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Protocol

from hlorewrite.analysis.groups import mode_of, process_groups
from hlorewrite.errors import InputError
from hlorewrite.hlo.groups import parse_groups, parse_pairs
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText, parse_hlo, without_strings
from hlorewrite.hlo.readers import Readers
from hlorewrite.hlo.shapes import arrays, element_bits, shape_bytes
from hlorewrite.hlo.trips import TripCounts
from hlorewrite.ir.collectives import BY_KIND, COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL, SOURCE_TARGET_PAIRS, wire_share

_CALLERS = ("calls", "to_apply", "called_computations")
_CALL_SIGNS = ("=%", "={%", *(f"{key}=" for key in _CALLERS))
_NAMED_AFTER_COLLECTIVE = re.compile(r'op_name="[^"]*(?:psum|pmean|reduce|gather|permute)')
_PARTS = ("get-tuple-element", "bitcast", "copy")
_SLICES = re.compile(r"\bslice_sizes=\{((?:\{[\d,]*\},?\s*)*)\}")
_BRANCHES = ("branch_computations", "true_computation", "false_computation")


@dataclass(frozen=True)
class HloCollective:
    """One collective of a compiled module.

    Attributes:
      kind: XLA's name, ``all-reduce`` and so on; an asynchronous pair counts once, under the plain name.
      name: the instruction's name.
      bytes: payload of one execution on one device: operand bytes, for an all-gather the gathered bytes.
      trips: how often it runs: the product of the trip counts of the loops around it, summed over call sites.
      loop_depth: how many loops are around it.
      groups: device numbers of each group; for a permute the (source, target) pairs.
      source: the user's line as ``file:line:column``, or ``?``.
      trips_known: False when a loop around it has a trip count XLA does not know; that loop counts once.
      in_branch: True when it is in a branch of a ``conditional``; ``trips`` counts it as if always taken.
    """

    kind: str
    name: str
    bytes: int
    trips: int
    loop_depth: int
    groups: tuple[tuple[int, ...], ...]
    source: str
    trips_known: bool = True
    in_branch: bool = False

    @property
    def executed_bytes(self) -> int:
        """Payload times trips, in bytes on one device."""
        return self.bytes * self.trips

    @property
    def wire_bytes(self) -> Fraction:
        """The bytes that all executions send over the links of one device."""
        return self.executed_bytes * wire_share(self.kind, max((len(group) for group in self.groups), default=0))

    def as_json(self) -> dict[str, object]:
        """The keys that the command line prints."""
        return {"kind": self.kind, "bytes": self.bytes, "trips": self.trips, "executed_bytes": self.executed_bytes,
                "loop_depth": self.loop_depth, "groups": [list(group) for group in self.groups],
                "source": self.source}


def collectives(text: str | HloText) -> list[HloCollective]:
    """Every collective of a module that is reached from its entry.

    Args:
      text: optimised HLO, as ``Compiled.as_text()`` prints it, or what was read from it.

    Returns:
      The collectives, in the order they are first reached.

    Raises:
      InputError: the text or the groups of a collective cannot be read.

    Example:
      >>> hlo = '''HloModule m, num_partitions=4
      ... %add (a: f32[], b: f32[]) -> f32[] {
      ...   %a = f32[] parameter(0)
      ...   %b = f32[] parameter(1)
      ...   ROOT %c = f32[] add(%a, %b)
      ... }
      ... ENTRY %main (p: f32[8]) -> f32[8] {
      ...   %p = f32[8]{0} parameter(0)
      ...   ROOT %r = f32[8]{0} all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%add
      ... }'''
      >>> [(c.kind, c.bytes, c.trips, c.groups) for c in collectives(hlo)]
      [('all-reduce', 32, 1, ((0, 1), (2, 3)))]
    """
    module = parse_hlo(text) if isinstance(text, str) else text
    sources = CollectiveSources(module)
    listed: list[HloCollective] = []
    for run, instruction, kind in executed_collectives(module):
        payload, groups = sent_by(module, run.computation, instruction, kind)
        listed.append(HloCollective(kind, instruction.name, payload, trips=run.trips, loop_depth=run.depth,
                                    groups=groups, source=sources.of(run.computation, instruction),
                                    trips_known=run.known, in_branch=run.in_branch))
    return listed


class ExecutedCollective(Protocol):
    """An object with a kind, and with the bytes that all its executions move."""

    @property
    def kind(self) -> str: ...
    @property
    def executed_bytes(self) -> int: ...


def executed_bytes(listed: Iterable[ExecutedCollective]) -> dict[str, int]:
    """Total executed bytes of each kind, sorted by kind."""
    totals: dict[str, int] = {}
    for collective in listed:
        totals[collective.kind] = totals.get(collective.kind, 0) + collective.executed_bytes
    return dict(sorted(totals.items()))


@functools.lru_cache(maxsize=1024)
def collective_kind(opcode: str) -> str | None:
    """XLA's plain name of a collective opcode; None for other ops and for the ``-done`` half of a pair."""
    plain = opcode.removesuffix("-start")
    return plain if plain in BY_KIND else None


@dataclass(frozen=True)
class ComputationRun:
    """A computation that runs.

    Attributes:
      computation: what runs.
      trips: how often.
      depth: the number of loops around it.
      known: whether all their trip counts are known.
      in_branch: whether it is reached through a branch.
      in_condition: whether nothing but conditions of loops runs it.
    """

    computation: Computation
    trips: int
    depth: int
    known: bool
    in_branch: bool
    in_condition: bool = False


def executed_collectives(module: HloText) -> list[tuple[ComputationRun, HloInstruction, str]]:
    """Every collective that is reached from the entry, with the run of the computation around it, and its kind.

    Raises:
      InputError: a computation calls itself.
    """
    return [(run, instruction, kind) for run in executions(module)
            for instruction in run.computation.instructions.values() if (kind := collective_kind(instruction.opcode))]


def executions(module: HloText) -> list[ComputationRun]:
    """Each computation that is reached from the entry, all its call sites added up.

    Raises:
      InputError: a computation calls itself.
    """
    calls = _callers_first(module)
    runs: dict[str, list[ComputationRun]] = {name: [] for name in calls}
    executions: list[ComputationRun] = []
    for name, called in calls.items():
        computation, before = module.computations[name], runs[name]
        if name == module.entry:
            before = [ComputationRun(computation, 1, 0, True, False), *before]
        run = ComputationRun(computation, sum(each.trips for each in before), max(each.depth for each in before),
                             all(each.known for each in before), any(each.in_branch for each in before),
                             all(each.in_condition for each in before))
        executions.append(run)
        for call in called:
            runs[call.callee].append(_executed(call, run))
    return executions


@dataclass(frozen=True)
class _Call:
    """A computation that another one calls: as ``body`` or ``condition`` of a loop, as ``branch``, or plainly."""

    callee: str
    kind: str
    count: int | None


def _callers_first(module: HloText) -> dict[str, list[_Call]]:
    """The computations reached from the entry with what they call, each after all that call it.

    Raises:
      InputError: a computation calls itself.
    """
    calls: dict[str, list[_Call]] = {}
    order: list[str] = []
    open_names: list[str] = []
    counts = TripCounts(module)
    stack = [(module.entry, False)] if module.entry in module.computations else []
    while stack:  # Ends: the callees of a computation are added once.
        name, left = stack.pop()
        if left:
            open_names.pop()
            order.append(name)
            continue
        if name in open_names:
            raise InputError(f"the computation {name} calls itself", hint="HLO has no recursion; the text is damaged")
        if name in calls:
            continue
        open_names.append(name)
        stack.append((name, True))
        computation = module.computations[name]
        calls[name] = [call for instruction in computation.instructions.values()
                       for call in _calls(counts, computation, instruction) if call.callee in module.computations]
        stack += [(call.callee, False) for call in calls[name]]
    return {name: calls[name] for name in reversed(order)}


def _calls(counts: TripCounts, computation: Computation, instruction: HloInstruction) -> list[_Call]:
    if instruction.opcode == "while":
        count = counts.of(computation, instruction)
        return [_Call(name, kind, count) for kind in ("body", "condition") for name in instruction.called(kind)]
    if instruction.opcode == "conditional":
        return [_Call(name, "branch", None) for name in instruction.called(*_BRANCHES)]
    if instruction.opcode.endswith(("-done", "-update")) or collective_kind(instruction.opcode):
        return []  # older texts repeat on the second half what the first one calls; a collective calls its reducer only
    if any(sign in instruction.attributes for sign in _CALL_SIGNS):
        return [_Call(name, "", None) for name in instruction.called(*_CALLERS)]
    return []


def _executed(call: _Call, run: ComputationRun) -> ComputationRun:
    """How a called computation runs, given its caller's run. At most one branch of a conditional runs; each counts as
    taken.
    """
    if call.kind in ("body", "condition"):
        return replace(run, trips=run.trips * (1 if call.count is None else call.count), depth=run.depth + 1,
                       known=run.known and call.count is not None,
                       in_condition=run.in_condition or call.kind == "condition")
    return replace(run, in_branch=True) if call.kind == "branch" else run


def sent_by(module: HloText, computation: Computation, instruction: HloInstruction,
            kind: str) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """The bytes that one execution of a collective sends, and between which devices.

    Args:
      module: the module.
      computation: the computation the collective is in.
      instruction: the collective, or the ``-start`` half of its pair.
      kind: its kind, as ``collective_kind`` gives it.

    Returns:
      (payload in bytes of one device, device numbers of each group; for a permute the pairs).
    """
    groups = _device_groups(module, instruction, kind)
    return _payload(computation, instruction, kind, max((len(group) for group in groups), default=1)), groups


def _device_groups(module: HloText, instruction: HloInstruction, kind: str) -> tuple[tuple[int, ...], ...]:
    """Groups as device numbers, in all four modes; of a permute the pairs."""
    attributes = without_strings(instruction.attributes)
    mode = mode_of(BY_KIND[kind].global_ids, "channel_id=" in attributes, "use_global_device_ids=true" in attributes)
    mode = mode or "flattened_ids"
    ids = {"flattened_ids": module.devices, "cross_partition": module.partitions}.get(mode, module.replicas)
    in_pairs = BY_KIND[kind].groups == SOURCE_TARGET_PAIRS
    rows = parse_pairs(attributes) if in_pairs else parse_groups(attributes, ids)
    if any(member >= ids for row in rows for member in row):
        return rows  # not ids of this mode: text that was shortened by hand, with device numbers
    groups = process_groups(rows, mode, module.replicas, module.partitions)
    # XLA goes through the partitions of a replica before the next replica; StableHLO through the replicas first.
    return tuple(_by_replica(group, module.partitions) for group in groups) \
        if mode == "cross_replica_and_partition" else groups


def _by_replica(group: tuple[int, ...], partitions: int) -> tuple[int, ...]:
    replicas = len(group) // partitions
    return tuple(group[p * replicas + r] for r in range(replicas) for p in range(partitions))


def _payload(computation: Computation, instruction: HloInstruction, kind: str, group_size: int) -> int:
    sent, operands = 0, instruction.operands
    if kind == RAGGED_ALL_TO_ALL.kind:
        operands = operands[:1]  # the others are where results go, and which rows they are
    sizes = _SLICES.search(instruction.attributes)
    if kind == COLLECTIVE_PERMUTE.kind and sizes is not None:
        return _sliced(computation, operands, sizes[1])
    for name in operands:
        operand = computation.instructions.get(name)
        if operand is None:
            return shape_bytes(instruction.shape)
        sent += shape_bytes(operand.shape)
    return sent * group_size if BY_KIND[kind].larger == "result" else sent


def _sliced(computation: Computation, operands: tuple[str, ...], sizes: str) -> int:
    """Bytes of the slices that a permute sends out of its first operand, and puts into its second one."""
    source = computation.instructions.get(operands[0]) if operands else None
    dtypes = [dtype for dtype, _ in arrays(source.shape)] if source is not None else []
    elements = [prod(int(size) for size in each.split(",") if size) for each in re.findall(r"\{([\d,]*)\}", sizes)]
    return sum(-(-element_bits(dtypes[min(place, len(dtypes) - 1)]) * count // 8)
               for place, count in enumerate(elements)) if dtypes else 0


class CollectiveSources:
    """The user's lines of collectives; one that XLA combined has none, so the lines of its readers or operands are
    used.

    Args:
      module: the module.
      readers: the readers of its values.
    """

    def __init__(self, module: HloText, readers: Readers | None = None) -> None:
        self._module, self._readers = module, readers or Readers(module)

    def of(self, computation: Computation, instruction: HloInstruction) -> str:
        """The line of a collective as ``file:line:column``; ``?`` when nothing near it carries one."""
        own = self._module.source(instruction)
        if own != "?":
            return own
        readers = self._around(computation, instruction)
        made = [computation.instructions[name] for name in instruction.operands if name in computation.instructions]
        named = [other for other in [*readers, *made] if _NAMED_AFTER_COLLECTIVE.search(other.attributes)]
        return next((s for s in map(self._module.source, [*named, *made, *readers]) if s != "?"), "?")

    def _around(self, computation: Computation, instruction: HloInstruction) -> list[HloInstruction]:
        """What reads a collective, its other half or an element of its result, in program order."""
        index, order = self._readers.places(computation), self._readers.order(computation)
        family, places = [instruction.name], set[int]()
        for name in family:  # Ends: SSA names only; each instruction joins the family once.
            for place in index.get(name, ()):
                other = order[place]
                if place not in places and (other.opcode in _PARTS or other.opcode.endswith("-done")):
                    family.append(other.name)
                places.add(place)
        return [order[place] for place in sorted(places)]
