"""Collectives of optimised HLO text: kind, payload, how often each runs, groups, source line.

A collective inside a loop runs as often as the loops around it turn; trip counts come from XLA's own
``known_trip_count`` or, where that is missing, from a loop condition that compares a counter with a constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from hlorewrite.errors import InputError
from hlorewrite.hlo.groups import parse_groups, parse_pairs
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText, parse_hlo, shape_bytes
from hlorewrite.ir.collectives import BY_KIND, SOURCE_TARGET_PAIRS
from hlorewrite.spmd.groups import mode_of, process_groups

_CALLERS = ("calls", "to_apply", "called_computations")
_NAMED_AFTER_COLLECTIVE = re.compile(r'op_name="[^"]*(?:psum|pmean|reduce|gather|permute)')
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
      in_branch: True when it stands in a branch of a ``conditional``; ``trips`` counts it as if always taken.
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

    def as_json(self) -> dict[str, object]:
        """The keys the command line prints."""
        return {"kind": self.kind, "bytes": self.bytes, "trips": self.trips, "executed_bytes": self.executed_bytes,
                "loop_depth": self.loop_depth, "groups": [list(group) for group in self.groups],
                "source": self.source}


def collectives(text: str) -> list[HloCollective]:
    """Every collective of a module that is reached from its entry.

    Args:
      text: optimised HLO, as ``Compiled.as_text()`` prints it.

    Returns:
      The collectives, in the order they are first reached.

    Raises:
      InputError: the text holds no entry computation.

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
    module = parse_hlo(text)
    listed: list[HloCollective] = []
    for run in _executions(module):
        for instruction in run.computation.instructions.values():
            kind = collective_kind(instruction.opcode)
            if kind:
                listed.append(_collective(module, run, instruction, kind))
    return listed


class ExecutedCollective(Protocol):
    """What has a kind, and bytes that all its executions move."""

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


def collective_kind(opcode: str) -> str | None:
    """XLA's plain name of a collective opcode; None for other ops and for the ``-done`` half of a pair."""
    plain = opcode.removesuffix("-start")
    return plain if plain in BY_KIND else None


@dataclass(frozen=True)
class _Execution:
    """A computation that runs: how often, in how many loops, whether all trip counts are known, in a branch or not."""

    computation: Computation
    trips: int
    depth: int
    known: bool
    in_branch: bool


def _executions(module: HloText) -> list[_Execution]:
    """Each computation that is reached from the entry, all its call sites added up."""
    order = _callers_first(module)
    runs: dict[str, list[_Execution]] = {name: [] for name in order}
    executions: list[_Execution] = []
    for name in order:
        computation, before = module.computations[name], runs[name]
        if name == module.entry:
            before = [_Execution(computation, 1, 0, True, False), *before]
        run = _Execution(computation, sum(each.trips for each in before), max(each.depth for each in before),
                         all(each.known for each in before), any(each.in_branch for each in before))
        executions.append(run)
        for instruction in computation.instructions.values():
            for callee, inner in _callees(module, computation, instruction, run):
                if callee in runs:
                    runs[callee].append(inner)
    return executions


def _callers_first(module: HloText) -> list[str]:
    """The computations reached from the entry, each behind all that call it.

    Raises:
      InputError: a computation calls itself.
    """
    order: list[str] = []
    open_names: list[str] = []
    done: set[str] = set()
    stack = [(module.entry, False)] if module.entry in module.computations else []
    while stack:  # Ends: the callees of a computation are added once.
        name, left = stack.pop()
        if left:
            open_names.pop()
            order.append(name)
            continue
        if name in open_names:
            raise InputError(f"the computation {name} calls itself", hint="HLO has no recursion; the text is damaged")
        if name in done:
            continue
        done.add(name)
        open_names.append(name)
        stack.append((name, True))
        computation = module.computations[name]
        none = _Execution(computation, 0, 0, True, False)
        stack += [(callee, False) for instruction in computation.instructions.values()
                  for callee, _ in _callees(module, computation, instruction, none) if callee in module.computations]
    return order[::-1]


def _callees(module: HloText, computation: Computation, instruction: HloInstruction,
             run: _Execution) -> list[tuple[str, _Execution]]:
    if instruction.opcode == "while":
        count = trip_count(module, computation, instruction)
        inner = replace(run, trips=run.trips * (1 if count is None else count), depth=run.depth + 1,
                        known=run.known and count is not None)
        return [(name, inner) for name in instruction.called("body", "condition")]
    if instruction.opcode == "conditional":  # at most one branch runs: every branch counts as if it did
        return [(name, replace(run, in_branch=True)) for name in instruction.called(*_BRANCHES)]
    if "=%" in instruction.attributes or "calls=" in instruction.attributes or "to_apply=" in instruction.attributes:
        return [(name, run) for name in instruction.called(*_CALLERS)]
    return []


def trip_count(module: HloText, computation: Computation, loop: HloInstruction) -> int | None:
    """How often a ``while`` turns; None when neither XLA nor its condition tells."""
    match = re.search(r'"known_trip_count":\{"n":"?(\d+)"?\}', loop.attributes)
    if match:
        return int(match.group(1))
    return _counted(module, computation, loop)


def _counted(module: HloText, computation: Computation, loop: HloInstruction) -> int | None:
    """Trips of a loop ``for (i = start; i < bound; i += step)`` with constants for all three."""
    condition = module.computations.get(next(iter(loop.called("condition")), ""))
    body = module.computations.get(next(iter(loop.called("body")), ""))
    if condition is None or body is None:
        return None
    compare = condition.instructions.get(condition.root)
    if compare is None or compare.opcode != "compare" or len(compare.operands) != 2:
        return None
    index = _element_index(condition, compare.operands[0])
    bound = _constant(condition, compare.operands[1])
    start = _initial_value(computation, loop, index)
    step = _step(body, index)
    direction = re.search(r"\bdirection=(\w+)", compare.attributes)
    if index is None or bound is None or start is None or not step or direction is None:
        return None
    last = {"LT": bound - 1, "LE": bound}.get(direction.group(1))
    if last is None or step < 0:
        return None
    return max(0, (last - start) // step + 1)


def _element_index(computation: Computation, name: str) -> int | None:
    element = computation.instructions.get(name)
    if element is None or element.opcode != "get-tuple-element":
        return None
    match = re.search(r"\bindex=(\d+)", element.attributes)
    return int(match.group(1)) if match else None


def _constant(computation: Computation, name: str) -> int | None:
    instruction, left = computation.instructions.get(name), len(computation.instructions)
    # Ends: ``left`` falls; in a damaged text an instruction may read itself.
    while instruction is not None and left and instruction.opcode in ("copy", "bitcast", "convert") \
            and instruction.operands:
        instruction, left = computation.instructions.get(instruction.operands[0]), left - 1
    if instruction is None or instruction.opcode != "constant":
        return None
    if not re.fullmatch(r"-?\d+", instruction.literal.strip()):
        return None
    return int(instruction.literal)


def _initial_value(computation: Computation, loop: HloInstruction, index: int | None) -> int | None:
    made = computation.instructions.get(loop.operands[0]) if loop.operands else None
    if made is None or made.opcode != "tuple" or index is None or index >= len(made.operands):
        return None
    return _constant(computation, made.operands[index])


def _step(body: Computation, index: int | None) -> int | None:
    root = body.instructions.get(body.root)
    if root is None or root.opcode != "tuple" or index is None or index >= len(root.operands):
        return None
    add = body.instructions.get(root.operands[index])
    if add is None or add.opcode != "add" or len(add.operands) != 2:
        return None
    left, right = add.operands
    if _element_index(body, left) == index:
        return _constant(body, right)
    return _constant(body, left) if _element_index(body, right) == index else None


def _collective(module: HloText, run: _Execution, instruction: HloInstruction, kind: str) -> HloCollective:
    groups = _device_groups(module, instruction, kind)
    payload = _payload(run.computation, instruction, kind, max((len(group) for group in groups), default=1))
    return HloCollective(kind, instruction.name, payload, run.trips, run.depth, groups,
                         _source(module, run.computation, instruction), run.known, run.in_branch)


def _device_groups(module: HloText, instruction: HloInstruction, kind: str) -> tuple[tuple[int, ...], ...]:
    """Groups as device numbers, in all four modes; of a permute the pairs."""
    attributes = instruction.attributes
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
    sent = 0
    for name in instruction.operands:
        operand = computation.instructions.get(name)
        if operand is None:
            return shape_bytes(instruction.shape)
        sent += shape_bytes(operand.shape)
    return sent * group_size if BY_KIND[kind].larger == "result" else sent


def _source(module: HloText, computation: Computation, instruction: HloInstruction) -> str:
    """The line of a collective; one that XLA combined has none, so its readers or operands are asked."""
    own = module.source(instruction)
    if own != "?":
        return own
    family = {instruction.name}
    others = list(computation.instructions.values())
    for other in others:
        if other.opcode in ("get-tuple-element", "bitcast", "copy") or other.opcode.endswith("-done"):
            family.update([other.name] if family & set(other.operands) else [])
    readers = [other for other in others if family & set(other.operands)]
    made = [computation.instructions[name] for name in instruction.operands if name in computation.instructions]
    named = [other for other in [*readers, *made] if _NAMED_AFTER_COLLECTIVE.search(other.attributes)]
    return next((s for s in (module.source(other) for other in [*named, *made, *readers]) if s != "?"), "?")
