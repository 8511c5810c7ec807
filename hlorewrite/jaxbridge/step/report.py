"""The effect of a pipeline on a step: remarks, and collectives with executed bytes before and after."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from hlorewrite.analysis.block_frequency import executed_times
from hlorewrite.analysis.groups import group_members
from hlorewrite.checks.reference.rounding.summation_order import OrdersOnDemand, SummationOrders
from hlorewrite.errors import HlorewriteError
from hlorewrite.hlo.collectives import executed_bytes
from hlorewrite.ir import Editor, Module, has_async_pairs, ir, parse, run_at_once, tensor_bytes
from hlorewrite.ir.collectives import BY_OP, COLLECTIVES, kind_of, wire_share
from hlorewrite.ir.view import View, ancestors, called_function, symbol_name
from hlorewrite.jaxbridge.baseline.comparison import XlaComparison
from hlorewrite.jaxbridge.step.no_rewrite import put_away
from hlorewrite.passes.hierarchical_all_reduce import NO_TOPOLOGY
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.changes import ChangeRecorder, PassChange
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import format_pipeline
from hlorewrite.rules.listener import Remark, RewriteRecord, RuleStatistics
from hlorewrite.rules.remark_subject import grouped_remarks
from hlorewrite.util.frames import USUAL_FRAMES, Frames
from hlorewrite.util.sizes import format_seconds
from hlorewrite.version import VERSION


def digest(module: Module, pipeline: str) -> str:
    """A digest of a module without its locations, of the pipeline and of this package's version."""
    parts = (VERSION, pipeline, module.digest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class DigestOnDemand:
    """The digest of a serialized module, made when it is first asked for: printing takes a tenth of the passes' time.

    Attributes:
      module: the module, serialized.
      name: the name of the module, for messages.
      pipeline: the passes that made it.

    Example:
      >>> written = b"func.func @main() { return }"
      >>> DigestOnDemand(written, "empty", "cse").found == digest(parse(written, name="empty"), "cse")
      True
    """

    module: bytes = field(repr=False)
    name: str
    pipeline: str

    def __eq__(self, other: object) -> bool:
        """By digest: serialized modules that are equal may differ in their bytes."""
        return isinstance(other, DigestOnDemand) and self.found == other.found

    def __hash__(self) -> int:
        """By digest."""
        return hash(self.found)

    @cached_property
    def found(self) -> str:
        """The digest."""
        return digest(parse(self.module, name=self.name), self.pipeline)


@dataclass(frozen=True)
class StepCollective:
    """A collective of a StableHLO module.

    Attributes:
      kind: the op's name.
      bytes: payload of one execution.
      trips: executions.
      source: the user's line.
      wire: what one execution sends over the links of a device, as a share of the payload.
    """

    kind: str
    bytes: int
    trips: int
    source: str
    wire: Fraction

    @property
    def executed_bytes(self) -> int:
        """Payload times executions."""
        return self.bytes * self.trips

    @property
    def wire_bytes(self) -> Fraction:
        """The bytes that all executions send over the links of a device."""
        return self.executed_bytes * self.wire


@dataclass(frozen=True)
class RewriteReport:
    """The outcome of rewriting one step.

    Attributes:
      pipeline: the passes, as text.
      changed: whether any of them changed the module.
      exposed: whether XLA partitioned the step first, because it was auto-sharded.
      before: collectives before the passes.
      after: collectives after them.
      remarks: what the passes said.
      rewrites: how many rewrites they recorded.
      digested: the digest, or the text that it is made from.
      failure: why the original runs instead, under ``on_error="fallback"``; empty otherwise.
      proof: under ``check="proof"``, whether the result is proved to compute the same: ``proved``, or ``unknown`` and
        why; empty when it was not asked for, or nothing changed. Under ``check="xla"``, the verdict on XLA's passes.
      comparison: the rewritten step compared with XLA alone, and which of the two is compiled; None if no pass
        changed anything, or nothing was compared.
      plan: whether a plan file was made or replayed, and which; empty if there is none.
      orders: which outputs add in another order than the original's, found when ``rounding`` is first read; None if
        the original is compiled.
      changes: what each pass changed, found when that is first read; None if the original is compiled.
      budget: what the passes might spend of a device's memory, and how that was found; empty without a budget.
      compiler_options: XLA options that the step is compiled with in addition to the user's, for it alone.
    """

    pipeline: str
    changed: bool
    exposed: bool
    before: tuple[StepCollective, ...]
    after: tuple[StepCollective, ...]
    remarks: tuple[Remark, ...]
    rewrites: int
    digested: str | DigestOnDemand
    failure: str = ""
    proof: str = ""
    comparison: XlaComparison | None = None
    plan: str = ""
    orders: SummationOrders | OrdersOnDemand | None = None
    changes: ChangesOnDemand | None = None
    budget: str = ""
    compiler_options: Mapping[str, str | bool | int] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The digest of the rewritten module, without locations; all processes must agree on it."""
        return self.digested.found if isinstance(self.digested, DigestOnDemand) else self.digested

    @property
    def rounding(self) -> SummationOrders | None:
        """The outputs whose sums are in another order than in the original, and how far they may differ because of
        that."""
        return self.orders.found if isinstance(self.orders, OrdersOnDemand) else self.orders

    @property
    def executed_bytes_before(self) -> dict[str, int]:
        """Total executed bytes of each kind before the rewrite."""
        return executed_bytes(self.before)

    @property
    def executed_bytes_after(self) -> dict[str, int]:
        """Total executed bytes of each kind after the rewrite."""
        return executed_bytes(self.after)

    @property
    def stays(self) -> list[Remark]:
        """Remarks on what was not done; those of the lines that expose most under XLA alone come first."""
        exposed_at = self.comparison.alone.exposed_at if self.comparison else {}
        return sorted((remark for remark in self._noted_apart if remark.kind != "applied"),
                      key=lambda remark: -exposed_at.get(remark.location, 0.0))

    @property
    def done(self) -> list[Remark]:
        """Remarks on what was done."""
        return [remark for remark in self.remarks if remark.kind == "applied"]

    @property
    def notes(self) -> list[str]:
        """What is said about the whole run: which passes need a cluster, if none is named."""
        passes = dict.fromkeys(remark.rule for remark in self.remarks if remark.sentence == NO_TOPOLOGY)
        return [f"{name} needs a cluster: name it with --topology or topology=" for name in passes]

    @property
    def _noted_apart(self) -> list[Remark]:
        """All remarks except those that a note replaces."""
        return [remark for remark in self.remarks if remark.sentence != NO_TOPOLOGY]

    def _options(self) -> list[str]:
        shown = " ".join(f"{name}={value}" for name, value in sorted(self.compiler_options.items()))
        return [f"XLA options of this step alone: {shown}"] if shown else []

    def __str__(self) -> str:
        from hlorewrite.util.sizes import format_bytes
        from hlorewrite.util.tables import table

        if self.failure:
            return f"{self.pipeline}: the original runs ({self.failure})"
        rows = [("collectives of the module", "before", "executed", "after", "executed")]
        for kind in sorted({c.kind for c in (*self.before, *self.after)}):
            old, new = ([c for c in side if c.kind == kind] for side in (self.before, self.after))
            rows.append((kind, str(len(old)), format_bytes(sum(c.executed_bytes for c in old), 1), str(len(new)),
                         format_bytes(sum(c.executed_bytes for c in new), 1)))
        compared = [] if self.comparison is None else self.comparison.lines()
        plan = [*([f"plan: {self.plan}"] if self.plan else []), *([self.budget] if self.budget else []),
                *self._options()]
        if len(rows) == 1:
            return "\n".join([f"{self.pipeline}: the step contains no collective", *plan])
        head = f"{self.pipeline}: {'changed' if self.changed else 'unchanged'}" + \
            (", collectives exposed by XLA's partitioner" if self.exposed else "")
        rounding = self.rounding
        orders = [] if rounding is None else rounding.lines()
        return "\n".join([head, *plan, *table(rows, "<>>>>"), *compared, *orders,
                          *map(str, grouped_remarks(self._noted_apart)),
                          *(f"note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class Rewritten:
    """A rewritten module.

    Attributes:
      module: the module after the passes, in a separate context.
      bytecode: the same as JAX takes it; None when nothing changed.
      report: what happened.
      how: the pipeline and the choices made in it, a line for each.
      shorter: what a shorter pipeline makes of the same module; None if that was not asked for.
      memory_refused: whether a pass may have left something as it was for lack of memory.
    """

    module: Module
    bytecode: bytes | None
    report: RewriteReport
    how: str = ""
    shorter: ShorterRun | None = None
    memory_refused: bool = True


@dataclass(frozen=True)
class ShorterRun:
    """The module after the first passes of a pipeline.

    Attributes:
      passes: these passes.
      finish: makes the result of a run of them alone.
    """

    passes: tuple[Pass, ...]
    finish: Callable[[], Rewritten]


@dataclass
class RunRecorder:
    """Collects the remarks and rewrites of a pipeline."""

    remarks: dict[Remark, None] = field(default_factory=dict)
    rewrites: int = 0
    wants_text: bool = False
    wants_missed: bool = True
    wants_mismatches: bool = False

    def remark(self, remark: Remark) -> None:
        """Keeps a remark once."""
        self.remarks[remark] = None

    def rewrite(self, record: RewriteRecord) -> None:
        """Counts a rewrite."""
        self.rewrites += 1

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Statistics of rules are not kept."""


def collectives_of(view: View) -> tuple[StepCollective, ...]:
    """The collectives of a StableHLO module, with how often each runs through loops and calls.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> collectives_of(View(parse("func.func @main() { return }")))
      ()
    """
    if has_async_pairs(view):
        view = View(view.module.clone())
        run_at_once(Editor(view))
    return tuple(each for _, each in collectives_by_op(view))


def collectives_by_op(view: View) -> list[tuple[ir.Operation, StepCollective]]:
    """The ops of ``collectives_of`` with what each executes; those that never run are left out."""
    ops = view.ops(*COLLECTIVES)
    if not ops:
        return []
    blocks: dict[ir.Block, tuple[float, bool]] = {}
    times_of = _function_times(view, blocks)
    out = []
    for op in ops:
        owner = next((symbol_name(a) for a in ancestors(op) if a.name == "func.func"), "")
        trips = round(executed_times(op, blocks)[0] * (times_of(owner) if owner else 1))
        if trips:
            out.append((op, StepCollective(op.name.removeprefix("stablehlo."), _payload(op), trips, view.source(op),
                                           wire_share(kind_of(op.name), group_members(op, view)))))
    return out


def _payload(op: ir.Operation) -> int:
    values = op.results if BY_OP[op.name].larger == "result" else op.operands
    return sum(tensor_bytes(value.type) for value in values)


def _function_times(view: View, blocks: dict[ir.Block, tuple[float, bool]]) -> Callable[[str], float]:
    """How often a function runs: the sum over its calls, from the public functions down."""
    times: dict[str, float] = {}

    def of(name: str, path: tuple[str, ...] = ()) -> float:
        if name in times:
            return times[name]
        function = view.functions[name]
        private = "sym_visibility" in function.attributes and "private" in str(function.attributes["sym_visibility"])
        total = 0.0 if private else 1.0
        for call in callers.get(name, ()):
            owner = next((symbol_name(a) for a in ancestors(call) if a.name == "func.func"), "")
            if owner and owner not in path:
                total += executed_times(call, blocks)[0] * of(owner, (*path, name))
        times[name] = total
        return total

    callers: dict[str, list[ir.Operation]] = {}
    for call in view.ops("func.call", "stablehlo.composite"):
        callers.setdefault(called_function(call), []).append(call)
    return of


def with_exposed(remarks: Iterable[Remark], exposed_at: Mapping[str, float]) -> tuple[Remark, ...]:
    """Adds exposed time to the remarks of lines that have some.

    Args:
      remarks: the remarks of passes.
      exposed_at: seconds by line, of XLA's schedule of the user's own module.

    Returns:
      All remarks, in their order.

    Example:
      >>> made = with_exposed([Remark("missed", "comm-shift", "it is needed", "train.py:7:3")], {"train.py:7:3": 5e-4})
      >>> str(made[0]).partition("; ")[2]
      'under XLA alone the collectives of this line expose 500 us a step'
    """
    return tuple(replace(remark, exposed=format_seconds(exposed_at[remark.location]))
                 if remark.location in exposed_at else remark for remark in remarks)


# ---- what the passes of a step changed, found when a page shows it: recording it beforehand would cost every step time


@dataclass(frozen=True)
class ChangesOnDemand:
    """The passes that made a module, and what they ran on; they run again when their changes are first asked for.

    Attributes:
      module: what they ran on, serialized.
      name: the name of the module, for messages.
      passes: the passes.
      topology: the cluster that passes estimate times for.
      memory: bytes that they may spend; None for their own limits.
      frames: whose frames of call stacks are the user's.

    Example:
      >>> ChangesOnDemand(b"func.func @main() { return }", "empty", ()).found
      ()
    """

    module: bytes = field(repr=False)
    name: str
    passes: tuple[Pass, ...]
    topology: str = ""
    memory: int | None = None
    frames: Frames = USUAL_FRAMES

    @cached_property
    def found(self) -> tuple[PassChange, ...]:
        """What each pass that changed something did; if a pass fails now, why there is no more."""
        module, recorder = parse(self.module, name=self.name), ChangeRecorder()
        module.frames = self.frames
        ctx = PassContext((recorder,), topology=self.topology, memory_left=self.memory)
        put_away(ctx.view(module))
        try:
            run_passes(module, self.passes, ctx, observers=(recorder,))
        except HlorewriteError as error:  # the rest of the page counts more
            return (*recorder.changes, PassChange.unknown_of(format_pipeline(self.passes), error.what))
        return tuple(recorder.changes)
