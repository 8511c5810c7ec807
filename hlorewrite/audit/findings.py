"""Unnecessary communication in a schedule, found in optimised HLO alone.

No source is needed. A finding is a prediction. A rewrite has to know whether values are equal on all devices, and the
text does not say so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hlorewrite.audit.accumulation import Accumulations, LeavesLoops
from hlorewrite.audit.loop_variance import LoopVariance
from hlorewrite.audit.resharding import is_resharding
from hlorewrite.cost import CollectiveModel
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText
from hlorewrite.hlo.readers import Readers
from hlorewrite.hlo.shapes import shape_bytes
from hlorewrite.hlo.wrapped import WrappedCollectives, runs_called
from hlorewrite.hlo.xla_hazards import CODE_MOTION
from hlorewrite.ir.collectives import ALL_GATHER, ALL_REDUCE, BY_KIND, REDUCE_SCATTER, timed_kind
from hlorewrite.timeline.result import CollectiveExposure, StepTimeline
from hlorewrite.util.sizes import format_bytes

# ---- why XLA leaves communication where it is, and what a user can do about it


ACCUMULATED, INVARIANT, SEPARATE, RESHARDED = "accumulated", "invariant", "separate", "resharded"
_THRESHOLDS = {kind: f"xla_gpu_{kind.replace('-', '_')}_combine_threshold_bytes"
               for kind in (ALL_REDUCE.kind, ALL_GATHER.kind, REDUCE_SCATTER.kind)}
_DEFAULT_THRESHOLD = 30 * 1024 * 1024 + 7
"""XLA's default of the combine thresholds (openxla/xla, xla/debug_options_flags.cc)."""


def why_accumulated(kind: str, leaves: LeavesLoops, options: Mapping[str, str], body: str) -> str:
    """Why a reduction that is only summed up still runs in every iteration.

    Args:
      kind: the kind of the collective.
      leaves: the loops it could leave.
      options: XLA flags of the job.
      body: the body of the loop it is in.

    Returns:
      A sentence, which says so if the text shows no reason.
    """
    if CODE_MOTION in options.get("xla_disable_hlo_passes", ""):
        return f"the job switched XLA's {CODE_MOTION} off"
    if kind == REDUCE_SCATTER.kind:
        return f"XLA:GPU leaves the part of {CODE_MOTION} for reduce-scatters switched off"
    if leaves.through or body not in leaves.out_of:
        return (f"XLA's {CODE_MOTION} takes a reduction only out of the innermost loop; this one is stacked by that "
                "loop and summed up by a loop around it")
    if leaves.scaled:
        return (f"a factor is applied between the reduction and the sum (for a mean, say), and XLA's {CODE_MOTION} "
                "does not look through it")
    return "the optimised text shows no reason; the program before optimisations may"


def why_invariant() -> str:
    """Why a collective of an unchanged value runs in every iteration."""
    return "XLA:GPU's loop-invariant code motion leaves collectives in their loop"


def why_separate(kind: str, payload: int, options: Mapping[str, str], several_types: bool) -> str:
    """Why calls that could be one are several."""
    flag = _THRESHOLDS[kind]
    stated = options.get(flag, "")
    threshold = int(stated) if stated.isdigit() else _DEFAULT_THRESHOLD
    if payload > threshold:
        return f"together they are larger than --{flag} ({format_bytes(threshold)})"
    if several_types:
        return "XLA combines only calls of one element type"
    return "the optimised text shows no reason; XLA combines before it schedules"


def advice(form: str, line: str, memory: int = 0, stacked: bool = False) -> str:
    """The advice to the user.

    Args:
      form: the form of the finding.
      line: the line of the loop or of the value; ``?`` if it is not known.
      memory: bytes a device keeps for it.
      stacked: each iteration of a loop takes another slice of the value.
    """
    where = f" at {line}" if line not in ("", "?") else ""
    if form == ACCUMULATED:
        return (f"reduce once after the loop{where}: hlorewrite.optimize around the jitted step, or "
                "hlorewrite exec -- COMMAND")
    if form == INVARIANT and stacked:
        return (f"gather the whole stack once before the loop{where}, for {format_bytes(memory)} more memory, and "
                "take slices of the result in it")
    if form == INVARIANT:
        return (f"gather once before the loop{where}, for {format_bytes(memory)} more memory: "
                'hlorewrite.optimize(step, passes="hoist-collectives"), or by hand')
    if form == SEPARATE:
        return 'one call for all: hlorewrite.optimize(step, passes="all-reduce-fusion"), or a larger combine threshold'
    return f"name the sharding: jax.lax.with_sharding_constraint on the value of {line}"


# ---- findings


_LEAST_SHARE = 0.002
"""Findings that save a smaller share of the communication time are not shown."""


@dataclass(frozen=True)
class AuditFinding:
    """Communication that a step could do without.

    Attributes:
      form: ``accumulated``, ``invariant``, ``separate`` or ``resharded``.
      collectives: instructions of the schedule.
      kind: the kind of the collectives.
      source: the user's line.
      tensor: the tensor that is communicated.
      calls: executions in a step today; None if a trip count is unknown.
      calls_after: as it could be.
      bytes: executed bytes today.
      bytes_after: as it could be.
      saved_s: predicted communication time saved; None if a trip count is unknown, or nothing can be predicted.
      exposed_s: what these collectives add to the step today, the most that can be saved of it.
      why: why XLA left it there.
      advice: what the user has to do.
    """

    form: str
    collectives: tuple[str, ...]
    kind: str
    source: str
    tensor: str
    calls: int | None
    calls_after: int | None
    bytes: int | None
    bytes_after: int | None
    saved_s: float | None
    exposed_s: float
    why: str
    advice: str

    def as_json(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        return {"form": self.form, "collectives": list(self.collectives), "kind": self.kind, "source": self.source,
                "tensor": self.tensor, "calls": self.calls, "calls_after": self.calls_after, "bytes": self.bytes,
                "bytes_after": self.bytes_after, "saved_s": self.saved_s, "exposed_s": self.exposed_s, "why": self.why,
                "advice": self.advice}


@dataclass(frozen=True)
class PlacedCollective:
    """A collective of the schedule: its instruction, its place, and what it costs.

    ``sends`` is the collective itself, possibly inside what the instruction calls; None if the instruction also
    computes something else, or runs several collectives.
    """

    computation: Computation
    instruction: HloInstruction
    cost: CollectiveExposure
    sends: HloInstruction | None


class LoopFindings:
    """Looks at the collectives of a module.

    Args:
      module: scheduled HLO.
      step: its simulated schedule.
      model: times of collectives.
      placed: computation of each collective of the step, in its order.
      trips: trips of each loop body.
      options: XLA flags of the job, as far as its dump contains them.
    """

    def __init__(self, module: HloText, step: StepTimeline, model: CollectiveModel, placed: Sequence[str],
                 trips: Mapping[str, int | None], options: Mapping[str, str]) -> None:
        self._module, self._model, self._trips, self._options = module, model, trips, options
        self._readers, self._variance = Readers(module), LoopVariance(module)
        self._accumulations = Accumulations(module, self._readers, self._variance)
        self._step, wrapped = step, WrappedCollectives(module)
        self._order = list(zip(placed, step.collectives, strict=True))
        self._placed = [PlacedCollective(computation, made, cost, wrapped.exact(made) if runs_called(made) else made)
                        for computation, cost in ((module.computations[name], cost) for name, cost in self._order)
                        if cost.kind in BY_KIND and (made := computation.instructions[cost.name])]

    def all(self) -> tuple[AuditFinding, ...]:
        """The findings, with the one that adds most to the step first."""
        found: list[AuditFinding] = []
        taken = set[tuple[str, str]]()
        for one in self._placed:
            made = (self._accumulated(one) or self._invariant(one)) if one.sends is not None else None
            if made is not None:
                found.append(made)
                taken.add((one.computation.name, one.instruction.name))
        rest = [one for one in self._placed if (one.computation.name, one.instruction.name) not in taken]
        found += [*self._separate([one for one in rest if one.sends is not None]), *self._resharded(rest)]
        least = self._step.communication_s * _LEAST_SHARE
        return tuple(sorted((one for one in found if one.saved_s is None or one.saved_s >= least),
                            key=lambda one: (-one.exposed_s, -(one.saved_s or 0), one.source, one.collectives)))

    def reasons(self) -> tuple[str, ...]:
        """For each collective of the step, why a loop runs it in every iteration; empty outside of loops, or if the
        reason is unknown.
        """
        said = {(one.computation.name, one.instruction.name): self._reason(one) for one in self._placed}
        return tuple(said.get((name, cost.name), "") for name, cost in self._order)

    def _reason(self, one: PlacedCollective) -> str:
        if self._variance.loop_of(one.computation.name) is None:
            return ""
        if one.cost.kind in (ALL_REDUCE.kind, REDUCE_SCATTER.kind) and one.sends is not None:
            leaves = self._accumulations.of(one.computation, one.instruction.name)
            if leaves.out_of:
                return "its result is only summed up"
            if leaves.needed_by is not None:
                line = self._module.source(leaves.needed_by)
                what = leaves.needed_by.opcode if leaves.needed_by.opcode != "tuple" else "the next iteration"
                return f"{what}{f' at {line}' if line != '?' else ''} needs its result"
        varying = [self._variance.varies_in(one.computation, operand) for operand in one.instruction.operands]
        return "its operand changes" if all(each is None or one.computation.name in each for each in varying) else \
            "its operand does not change"

    # ---- in loops

    def _accumulated(self, one: PlacedCollective) -> AuditFinding | None:
        """A reduction whose result the loops around it only sum up or stack."""
        kind = one.cost.kind
        if kind not in (ALL_REDUCE.kind, REDUCE_SCATTER.kind) or not self._is_sum(one.sends):
            return None
        leaves = self._accumulations.of(one.computation, one.instruction.name)
        if not leaves.out_of:
            return None
        why = why_accumulated(kind, leaves, self._options, one.computation.name)
        return self._moved(one, ACCUMULATED, leaves.out_of, leaves.through, one.cost.payload_bytes, why)

    def _is_sum(self, collective: HloInstruction | None) -> bool:
        named = next(iter(collective.called("to_apply")), "") if collective is not None else ""
        reducer = self._module.computations.get(named)
        return reducer is not None and reducer.root in reducer.instructions \
            and reducer.instructions[reducer.root].opcode == "add"

    def _invariant(self, one: PlacedCollective) -> AuditFinding | None:
        """A collective of a value that is the same in every iteration of a loop around it."""
        around = [each.loop.called("body")[0] for each in self._variance.loops_around(one.computation.name)]
        if not around:
            return None
        best: tuple[tuple[str, ...], int] | None = None
        same_bytes = 0
        for operand in one.instruction.operands:
            varying = self._variance.varies_in(one.computation, operand)
            still = tuple(body for body in around if varying is not None and body not in varying)
            if still:
                same_bytes += self._payload(one, operand)
                best = (still, around.index(still[-1])) if best is None or len(still) < len(best[0]) else best
        if best is None or not same_bytes:
            return None
        still, outermost = best
        through = tuple(body for body in around[:outermost] if body not in still)
        return self._moved(one, INVARIANT, still, through, same_bytes, why_invariant())

    def _payload(self, one: PlacedCollective, operand: str) -> int:
        size = shape_bytes(one.computation.instructions[operand].shape)
        members = max((len(group) for group in one.cost.groups), default=1)
        return size * members if BY_KIND[one.cost.kind].larger == "result" else size

    def _moved(self, one: PlacedCollective, form: str, out_of: tuple[str, ...], through: tuple[str, ...], part: int,
               why: str) -> AuditFinding:
        """The finding for a collective, or a part of its bytes, that can leave loops; for loops that stack its result,
        it then sends the whole stack.
        """
        cost = one.cost
        turns, stack = self._product(out_of), self._product(through)
        calls = calls_after = now = after = saved = None
        if cost.trips is not None and turns and stack:
            calls, runs = cost.trips, cost.trips // (turns * stack)
            now, after = part * cost.trips, part * stack * runs
            seconds = self._model.collective_time(timed_kind(cost.kind), part * stack, cost.groups)
            share = part / cost.payload_bytes if cost.payload_bytes else 1.0
            saved = max(0.0, cost.communication_s * share - seconds * runs)
            calls_after = runs if share == 1 else calls + runs
        memory = part * (stack or 1) if form == INVARIANT else 0
        todo = advice(form, self._line(out_of[-1]), memory, bool(through))
        return AuditFinding(form, (one.instruction.name,), cost.kind, source=cost.source, tensor=cost.tensor,
                            calls=calls, calls_after=calls_after, bytes=now, bytes_after=after, saved_s=saved,
                            exposed_s=cost.exposed_s, why=why, advice=todo)

    def _product(self, bodies: Sequence[str]) -> int | None:
        counts = [self._trips.get(body) for body in bodies]
        return None if None in counts else prod(count for count in counts if count is not None)

    def _line(self, body: str) -> str:
        summary = self._variance.loop_of(body)
        return self._module.source(summary.loop) if summary is not None else "?"

    # ---- side by side

    def _separate(self, rest: Sequence[PlacedCollective]) -> Iterator[AuditFinding]:
        """Collectives of one kind between the same devices, none of which needs another's result."""
        by_computation: dict[str, list[PlacedCollective]] = {}
        for one in rest:
            if one.cost.kind in (ALL_REDUCE.kind, ALL_GATHER.kind, REDUCE_SCATTER.kind):
                by_computation.setdefault(one.computation.name, []).append(one)
        for listed in by_computation.values():
            keys = dict.fromkeys((one.cost.kind, one.cost.groups) for one in listed)
            for key in keys:
                same = [one for one in listed if (one.cost.kind, one.cost.groups) == key]
                for bucket in _independent(same[0].computation, same):
                    yield from self._joined(bucket)

    def _joined(self, bucket: list[PlacedCollective]) -> Iterator[AuditFinding]:
        trips = bucket[0].cost.trips
        if len(bucket) < 2 or not trips or any(one.cost.trips != trips for one in bucket):
            return
        first, payload = bucket[0].cost, sum(one.cost.payload_bytes for one in bucket)
        together = self._model.collective_time(timed_kind(first.kind), payload, first.groups)
        saved = (sum(one.cost.time_s for one in bucket) - together) * trips
        if saved <= 0:
            return
        lines, tensors = (dict.fromkeys(getattr(one.cost, name) for one in bucket) for name in ("source", "tensor"))
        yield AuditFinding(SEPARATE, tuple(one.instruction.name for one in bucket), first.kind, source=_few(lines),
                           tensor=_few(tensors), calls=trips * len(bucket), calls_after=trips, bytes=payload * trips,
                           bytes_after=payload * trips, saved_s=saved,
                           exposed_s=sum(one.cost.exposed_s for one in bucket),
                           why=why_separate(first.kind, payload, self._options, len({
                               one.instruction.shape.split("[")[0] for one in bucket}) > 1),
                           advice=advice(SEPARATE, ""))

    def _resharded(self, rest: Sequence[PlacedCollective]) -> Iterator[AuditFinding]:
        """Exchanges that no line of the program asks for: the partitioner inserts them to get from one sharding to
        another.
        """
        by_line: dict[str, list[PlacedCollective]] = {}
        for one in rest:
            if one.cost.source != "?" and is_resharding(one.cost.kind, one.instruction) and (
                    one.sends is None or is_resharding(one.cost.kind, one.sends)):
                by_line.setdefault(one.cost.source, []).append(one)
        for line, listed in by_line.items():
            known = all(one.cost.trips is not None for one in listed)
            calls = sum(one.cost.trips or 0 for one in listed) if known else None
            sent = sum(one.cost.payload_bytes * (one.cost.trips or 0) for one in listed) if known else None
            yield AuditFinding(RESHARDED, tuple(one.instruction.name for one in listed), listed[0].cost.kind,
                               source=line, tensor=_few(dict.fromkeys(one.cost.tensor for one in listed)), calls=calls,
                               calls_after=None, bytes=sent, bytes_after=None, saved_s=None,
                               exposed_s=sum(one.cost.exposed_s for one in listed),
                               why="this value and its reader have different shardings, and nothing in the "
                               "program says which to take", advice=advice(RESHARDED, line))


def _independent(computation: Computation, listed: Sequence[PlacedCollective]) -> Iterator[list[PlacedCollective]]:
    """Runs of collectives in the order of the schedule, none of which depends on one before it in the run."""
    waiting = {one.instruction.name: one for one in listed}
    bucket: list[PlacedCollective] = []
    depends = set[str]()
    for instruction in computation.instructions.values():
        tainted = not depends.isdisjoint(instruction.operands)
        one = waiting.get(instruction.name)
        if one is not None:
            if tainted:
                yield bucket
                bucket, depends = [], set()
            bucket.append(one)
        if one is not None or tainted:
            depends.add(instruction.name)
    yield bucket


def _few(names: Mapping[str, None]) -> str:
    listed = list(names)
    return ", ".join(listed[:2]) + (f" and {len(listed) - 2} more" if len(listed) > 2 else "")
