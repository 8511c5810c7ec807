"""all-reduce-fusion: independent collectives share calls, in the buckets that the cost model finds best."""

import bisect
import functools
import itertools
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from hlorewrite.analysis.groups import device_count
from hlorewrite.cost.collective_times import CollectiveTimes
from hlorewrite.cost.kernels.clock import KernelClock
from hlorewrite.errors import UsageError
from hlorewrite.ir import ALL_GATHER, Editor, Module, View, ir
from hlorewrite.ir.frontend import COMBINER_KEY, FRONTEND, frontend_attributes, with_frontend
from hlorewrite.passes.all_reduce_fusion.classes import BucketClass, Choice, choose
from hlorewrite.passes.all_reduce_fusion.emit import emit_bucket
from hlorewrite.passes.all_reduce_fusion.members import (
    KINDS,
    OURS,
    Member,
    family,
    member_of,
    with_shared_parts,
)
from hlorewrite.passes.all_reduce_fusion.model import Costs, Limits
from hlorewrite.passes.all_reduce_fusion.order import FusedCall, Spine, hold, spine_of
from hlorewrite.passes.all_reduce_fusion.schedule import Bucket, Rescheduler, move_all, without_cycles
from hlorewrite.passes.common.block_graph import BlockGraph, Timing
from hlorewrite.passes.common.overlap_model import CROWDED
from hlorewrite.passes.common.pass_support import tell
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.options import Size
from hlorewrite.rules.listener import Remark
from hlorewrite.util.hash_consed_sets import NONE, NumberSet, union, within

XLA_THRESHOLD = 30 * 1024 * 1024 + 7
"""Bytes up to which XLA:GPU merges collectives of its own accord (openxla/xla, debug options of 0.10.2)."""

_TOO_BUSY = 1.1
"""When calls take this many times as long as the kernels next to them, they run back to back wherever kernels are
placed, so holding kernels to them would only add waits."""

Kind = Literal["all-reduce", "reduce-scatter", "all-gather", "collective-permute"]


@dataclass(frozen=True)
class AllReduceFusion(Pass):
    """Merges many independent collectives with equal groups into a few well-sized calls.

    Collectives of one block share a call when none waits for another, directly or through other ops. The grouping is
    the one that the cost model finds best: the least exposed time first, then the least time on the wires. Values are
    flattened and concatenated; a combiner key on each call keeps XLA from merging it with others. Mark ops to leave
    alone with the frontend attribute hlorewrite.no_fuse.

    Attributes:
      bucket_bytes: most bytes of a call with several members; by default the cost model decides alone.
      max_buckets: most calls for each class of equal groups and kind in a block; dependences may force more.
      kinds: the kinds of collectives to fuse.
      topology: the cluster to estimate times for; by default the one the run names, else servers of eight H100s.
      separate: also mark calls that should stay alone if XLA would merge them.
      hold: also hold XLA's scheduler to the times the calls were planned for, with optimization barriers.
      widen: let values of narrower element types travel in wider ones where the results stay the same and the model
        finds it faster; the call then sends more bytes.
      variadic: give all-reduces an operand for each value in place of flattening; XLA 0.10 refuses that in shard_map.
      crowded: in loops whose collectives fill most of an iteration (``rotate-collectives`` marks them) the smallest of
        all kinds share a call, as many as make calls and copies shortest, and gathers next to such a loop are fused
        like ``kinds``.
      alike: give layers that follow each other with equal collectives equal buckets, where that exposes hardly more
        time: XLA:GPU schedules them closer to the model, and compiles the copies of a bucket once for all layers.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> module = parse("func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }")
      >>> AllReduceFusion().run(module, PassContext())
      False
    """

    name: ClassVar[str] = "all-reduce-fusion"
    bucket_bytes: Size | None = None
    max_buckets: int | None = None
    kinds: tuple[Kind, ...] = get_args(Kind)
    topology: str = ""
    separate: bool = True
    hold: bool = True
    widen: bool = False
    variadic: bool = False
    crowded: bool = False
    alike: bool = True

    def __post_init__(self) -> None:
        for name, value in (("bucket-bytes", self.bucket_bytes), ("max-buckets", self.max_buckets)):
            if value is not None and value < 1:
                raise UsageError(f'option "{name}" of pass "{self.name}" is {value}',
                                 hint="write a positive number, or leave it out")

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Rewrites a module in place; returns whether it changed."""
        view = ctx.view(module)
        blocks = self._members(view, ctx)
        times = self._times(view, ctx)
        if not blocks or times is None:
            return False
        clock = KernelClock(view, times.topology)
        work = _Work(self, view, ctx, times, clock)
        changed = False
        for block, members in blocks.items():
            changed = work.block(block, members) or changed
        return changed

    def _times(self, view: View, ctx: PassContext) -> CollectiveTimes | None:
        """Times on the cluster, which the options are checked against."""
        spec = self.topology or ctx.topology
        if not spec and not any(view.ops(name) for name in KINDS):
            return None
        times = CollectiveTimes(spec, highest_device(view) + 1)
        memory = times.topology.memory_bytes
        if self.bucket_bytes is not None and self.bucket_bytes > memory:
            raise UsageError(f"buckets of {self.bucket_bytes} bytes do not fit into the {memory:.0f} bytes of a GPU of "
                             f"{times.cluster}", location=view.module.name, hint="make bucket-bytes smaller")
        return times

    def _members(self, view: View, ctx: PassContext) -> dict[ir.Block, list[Member]]:
        """By block, the collectives that might share a call with at least one other, in program order."""
        families: dict[tuple[object, ...], list[Member]] = defaultdict(list)
        known: dict[object, object] = {}
        crowded = crowded_blocks(view) if self.crowded else set()
        for op in view.ops(*(name for name, kind in KINDS.items() if kind in self.kinds or self.crowded)):
            if KINDS[op.name] not in self.kinds and not joins(op, crowded):
                continue
            member = member_of(op, view)
            if isinstance(member, Member):
                member = with_shared_parts(member, known)
                families[op.block, member.key, family(member, self.widen)].append(member)
            elif not member.asked or ctx.wants_missed:
                kind = "missed" if member.asked else "blocked"
                tell(ctx, kind, self.name, f"it keeps its own call: {member.sentence}", view, op)
        blocks: dict[ir.Block, list[Member]] = defaultdict(list)
        for (block, *_), members in families.items():
            if len(members) > 1 and isinstance(block, ir.Block):
                blocks[block] += members
        return blocks


def highest_device(view: View) -> int:
    """The highest device number that a module contains."""
    highest = (device_count(view) or 1) - 1
    for op in view.ops(*KINDS):
        member = member_of(op, view)
        if isinstance(member, Member):
            highest = max(highest, max((d for row in member.groups for d in row), default=0))
    return highest


@dataclass
class _Work:
    """State shared by all blocks of one run."""

    options: AllReduceFusion
    view: View
    ctx: PassContext
    times: CollectiveTimes
    clock: KernelClock
    next_key: int = -1

    def block(self, block: ir.Block, members: list[Member]) -> bool:
        """Fuses the collectives of one block if that pays; returns whether it changed."""
        graph = BlockGraph(self.view, block, [member.op for member in members], self.clock)
        timings = graph.timings()
        by_class: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for index, member in enumerate(members):
            by_class[(member.key, family(member, self.options.widen))].append(index)
        spine = self._spine(graph, members, timings)
        choices = self._choices(by_class.values(), members, timings, graph, spine)
        if spine.ends and sum(choice.plan.busy for choice in choices) > _TOO_BUSY * (
                spine.ends[-1] - min(timing.ready for timing in timings)):
            spine = Spine((), (), ())
            choices = self._choices(by_class.values(), members, timings, graph, spine)
        wanted = self._acyclic(choices, graph, members)
        choices = self._affordable(wanted, members)
        if choices != wanted and all(len(bucket) == 1 for choice in choices for bucket in choice.buckets):
            return False  # XLA merges calls without a separate buffer, unless they are marked
        self._tell(choices, members)
        calls = self._emit(graph, [b for choice in choices for b in choice.buckets], members)
        costs = {member: choice.costs for choice in choices for member in choice.members}
        held = hold(self.ctx.editor(self.view.module, self.options.name), block,
                    [self._call(op, bucket, costs[bucket[0]], members, timings, graph)
                     for bucket, op in calls if KINDS[op.name] != ALL_GATHER.kind], spine)
        self.ctx.count("calls held to their time", held)
        fused = any(len(bucket) > 1 for bucket, _ in calls)
        return self._mark(choices, graph, members, every=fused or held > 0) or fused

    def _choices(self, classes: Iterable[Sequence[int]], members: list[Member], timings: Sequence[Timing],
                 graph: BlockGraph, spine: Spine) -> list[Choice]:
        """The best buckets of each class."""
        limits = Limits(self.options.bucket_bytes, self.options.max_buckets)
        crowded = self.options.crowded and is_crowded(graph.block)
        found = [BucketClass(tuple(indices), members, timings, graph, ends=spine.ends, alike=self.options.alike,
                             crowded=crowded) for indices in classes]
        return [choose(each, self.times, self.clock, limits) for each in found]

    def _spine(self, graph: BlockGraph, members: list[Member], timings: Sequence[Timing]) -> Spine:
        """The kernels to which calls may be held."""
        if not (self.options.hold and self.options.separate) or (self.options.crowded and is_crowded(graph.block)):
            return Spine((), (), ())
        last = max(range(len(members)), key=lambda m: (timings[m].ready, graph.places[m]))
        return spine_of(graph, members[last].op)

    def _call(self, op: ir.Operation, bucket: Bucket, costs: Costs, members: list[Member], timings: Sequence[Timing],
              graph: BlockGraph) -> FusedCall:
        """A call as it is planned."""
        import numpy as np
        size = float(sum(members[m].payload for m in bucket))
        took = float(costs.call(np.array([size]))[0])
        return FusedCall(op, max(timings[m].ready for m in bucket), took,
                         copied=costs.copy_in * size if len(bucket) > 1 else 0.0,
                         needed=min(timings[m].needed for m in bucket), spare=costs.spare_of_one,
                         own=graph.numbers.of(bucket),
                         before=functools.reduce(union, (graph.before[m] for m in bucket)))

    def _acyclic(self, choices: list[Choice], graph: BlockGraph, members: list[Member]) -> list[Choice]:
        """The choices after splitting buckets that would wait for themselves through buckets of other classes."""
        every = [bucket for choice in choices for bucket in choice.buckets]
        kept = without_cycles(every, graph.before, [member.payload for member in members])
        if kept == every:
            return choices
        class_of = {member: number for number, choice in enumerate(choices) for member in choice.members}
        buckets: list[list[Bucket]] = [[] for _ in choices]
        for bucket in kept:
            buckets[class_of[bucket[0]]].append(bucket)
        return [replace(choice, buckets=tuple(own)) for choice, own in zip(choices, buckets, strict=True)]

    def _affordable(self, choices: list[Choice], members: list[Member]) -> list[Choice]:
        """The choices without buckets whose buffer exceeds the rest of the memory budget."""
        def kept(bucket: Bucket) -> bool:
            return len(bucket) == 1 or self.ctx.take_memory(sum(members[m].payload for m in bucket))

        return [replace(choice, buckets=tuple(part for bucket in choice.buckets
                                              for part in ([bucket] if kept(bucket) else [(m,) for m in bucket])))
                for choice in choices]

    def _emit(self, graph: BlockGraph, every: Sequence[Bucket],
              members: list[Member]) -> list[tuple[Bucket, ir.Operation]]:
        """Writes the calls of buckets with several members; returns all buckets with their calls."""
        editor = self.ctx.editor(self.view.module, self.options.name)
        buckets = [bucket for bucket in every if len(bucket) > 1]
        calls: list[tuple[Bucket, ir.Operation]] = [(bucket, members[bucket[0]].op) for bucket in every
                                                    if len(bucket) == 1]
        for index, place, behind in Rescheduler(graph, buckets).run():
            anchor = graph.ops[place]
            call = emit_bucket(editor, [members[m] for m in buckets[index]], self._key(), anchor,
                               variadic=self.options.variadic)
            calls.append((buckets[index], call))
            move_all(editor, [graph.ops[p] for p in behind], anchor)
        for bucket in buckets:
            for member in bucket:
                editor.erase(members[member].op)
        return calls

    def _mark(self, choices: Sequence[Choice], graph: BlockGraph, members: list[Member], *, every: bool) -> bool:
        """Gives a key of its own to each call that stays alone although XLA would merge it with another.

        If anything changed, every call gets one, so a second run finds the decision made.
        """
        if not self.options.separate:
            return False
        editor: Editor = self.ctx.editor(self.view.module, self.options.name)
        changed = False
        for choice in choices:
            alone = [bucket[0] for bucket in choice.buckets if len(bucket) == 1]
            for index in alone if every else _merged_by_xla(alone, graph, members):
                op = members[index].op
                editor.set_attribute(op, FRONTEND, with_frontend(op, COMBINER_KEY, self._key()))
                changed = True
        return changed

    def _key(self) -> str:
        """A combiner key no collective of the module has."""
        if self.next_key < 0:
            taken = [frontend_attributes(op).get(COMBINER_KEY, "") for op in self.view.ops(*KINDS)]
            numbers = [int(k.removeprefix(OURS)) for k in taken if k.removeprefix(OURS).isdigit()]
            self.next_key = max(numbers, default=-1) + 1
        self.next_key += 1
        return f"{OURS}{self.next_key - 1}"

    def _tell(self, choices: Sequence[Choice], members: list[Member]) -> None:
        for choice in choices:
            first = members[choice.members[0]]
            count, calls = len(choice.members), len(choice.buckets)
            size = sum(members[m].payload for m in choice.members)
            times = (f"exposed {_us(choice.plan.exposed)} instead of {_us(choice.alone.exposed)}, busy "
                     f"{_us(choice.plan.busy)} instead of {_us(choice.alone.busy)} on {self.times.cluster}")
            if calls < count:
                self.ctx.count("collectives fused", count - calls)
                self.ctx.remark(Remark("applied", self.options.name,
                                       f"fused {count} collectives of {size} bytes into {calls}: {times}",
                                       self.view.source(first.op), first.op.name))
            elif self.ctx.wants_missed:
                self.ctx.remark(Remark("unprofitable", self.options.name,
                                       f"{count} of {size} bytes keep a call each: the model finds nothing better",
                                       self.view.source(first.op), first.op.name))


def _merged_by_xla(alone: Sequence[int], graph: BlockGraph, members: Sequence[Member]) -> list[int]:
    """The members that XLA's combiner may merge with another that stays alone: neither waits, and both fit."""
    single = graph.numbers.single
    of_payload: dict[int, NumberSet] = {}
    for index in alone:
        payload = members[index].payload
        of_payload[payload] = union(of_payload.get(payload, NONE), single(index))
    sizes = sorted(of_payload)
    up_to = list(itertools.accumulate((of_payload[size] for size in sizes), union, initial=NONE))
    merged, wanted = set(), set(alone)
    for index, behind in graph.behind() if alone else ():
        if index not in wanted:
            continue
        fitting = up_to[bisect.bisect_right(sizes, XLA_THRESHOLD - members[index].payload)]
        if not within(fitting, union(union(graph.before[index], behind), single(index))):
            merged.add(index)
    return [index for index in alone if index in merged]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us"


# ---- loops whose collectives fill most of an iteration, where each saved call counts


def is_crowded(block: ir.Block) -> bool:
    """Whether a block is part of a loop that ``rotate-collectives`` marks as crowded."""
    return CROWDED in block.owner.attributes


def crowded_blocks(view: View) -> set[ir.Block]:
    """The blocks whose collectives are fused because of a crowded loop: its own, and those that such a loop is in.

    Only gathers are fused next to one: those of the first layer precede the rotated loop, where nothing hides them.
    """
    loops = [op for op in view.ops("stablehlo.while") if CROWDED in op.attributes]
    return {block for op in loops for block in (op.block, *(region.blocks[0] for region in op.regions))}


def joins(op: ir.Operation, crowded: Container[ir.Block]) -> bool:
    """Whether a collective is fused because of a crowded loop.

    Args:
      op: the collective.
      crowded: ``crowded_blocks``.
    """
    return op.block in crowded and (op.name == ALL_GATHER.op or is_crowded(op.block))
