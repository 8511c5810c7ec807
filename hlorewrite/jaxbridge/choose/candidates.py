"""The candidates for a step: each combines a partitioner's program with some of the passes, in a deterministic order.

Rewritten versions of an auto-sharded module compete with XLA alone, each compiled up to code generation. The
passes run on the program of the platform's own partitioner, which comes out of the compilation of XLA alone. The
pipeline of XLA:CPU simplifies a module differently before it partitions it: it keeps sums apart from scatters. So its
program is a second candidate where the first one still scatters into a carry. No clock and no live memory has a say:
all processes of a step choose the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import takewhile

from hlorewrite.errors import InputError
from hlorewrite.ir import ALL_REDUCE, Format, Module, View, defining_op, emit, ir
from hlorewrite.jaxbridge.baseline.comparison import XlaComparison
from hlorewrite.jaxbridge.baseline.judge import NOISE, REWRITTEN
from hlorewrite.jaxbridge.baseline.memory_grant import AloneMeasured
from hlorewrite.jaxbridge.step.options import Keep
from hlorewrite.jaxbridge.step.report import Rewritten, RunRecorder, collectives_by_op
from hlorewrite.jaxbridge.step.rewrite import continued
from hlorewrite.jaxbridge.step.variants import Variant, has_carry_outside, takes_carry_outside, with_carry_outside
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.partition import expose_collectives
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.rules.listener import Remark

Rewriter = Callable[[Module, Variant], Rewritten]
"""Runs the passes of a variant on a module, in place."""
Program = Callable[[], Module]
NEAR = 1.02
"""Candidates whose bytes are this close count as equal. They are tried before variants that take less memory. A
candidate that takes more memory must save more than this.
"""


@dataclass(frozen=True)
class Contest:
    """One module, and the rules by which candidates compete with XLA alone.

    Attributes:
      module: the user's module; it is not changed.
      place: the target.
      devices: how many devices it is for.
      rewriter: runs passes.
      variants: the passes, then variants that take less memory.
      exposing: whether XLA's partitioner has to run first.
      protect: compile candidates without the XLA pass that miscompiles on GPU.
      keep: ``better`` or ``compiled``.
      budget: bytes by which temporaries may grow; None without a budget.
      alone: XLA alone's compilation of the module, if it is known.
      cluster: the topology that step times are predicted for; empty if bytes decide.
      passes: the user's passes; none for ``auto``.
      name: the name of the pipeline, for tables.
    """

    module: Module
    place: DeviceSet
    devices: int
    rewriter: Rewriter
    variants: tuple[Variant, ...]
    exposing: bool
    protect: bool = True
    keep: Keep = "better"
    budget: int | None = None
    alone: AloneMeasured | None = None
    cluster: str = ""
    passes: tuple[Pass, ...] = ()
    name: str = REWRITTEN

    @property
    def auto(self) -> bool:
        """Whether the ways of all pipelines compete, rather than those of one."""
        return not self.passes

    @property
    def guided(self) -> bool:
        """Whether a named pipeline is also tried profile-guided: it depends on XLA's scheduler."""
        return any(step.xla_options for step in self.passes)


@dataclass(frozen=True, eq=False)
class RewriteCandidate:
    """A rewritten module.

    Attributes:
      partitioner: the partitioner whose program it is made from, ``gpu`` or ``cpu``; empty for manual modules.
      source: what the passes ran on.
      made: their result.
      variant: which passes.
    """

    partitioner: str
    source: Module
    made: Rewritten
    variant: Variant

    @property
    def order(self) -> tuple[Fraction, int]:
        """The communication of the rewritten module alone: bytes on the wire, then calls."""
        after = self.made.report.after
        return sum((c.wire_bytes for c in after), Fraction(0)), sum(c.trips for c in after)

    @property
    def keeps_communication(self) -> bool:
        """Whether the passes left the communication alone: every collective of the module is what it was."""
        return not self.made.report.exposed and self.sends_the_same

    @property
    def sends_the_same(self) -> bool:
        """Whether the module has the same collectives as its source: kinds, bytes and trip counts."""
        report = self.made.report
        before, after = (Counter((c.kind, c.bytes, c.trips) for c in side) for side in (report.before, report.after))
        return before == after

    def sends_more_fused(self, alone: Fraction | int) -> bool:
        """Whether the module sends more than XLA alone, and the pipeline without its last passes has run too.

        The last passes fuse. XLA may still turn an all-reduce into a reduce-scatter, but not a fused one.

        Args:
          alone: bytes that XLA alone puts on the wire.
        """
        return self.made.shorter is not None and self.order[0] > alone * (1 + NOISE)


@dataclass(frozen=True)
class ChosenModule:
    """The outcome for a step.

    Attributes:
      source: what the passes ran on: the module, or what a partitioner made of it.
      made: the rewritten module.
      variant: what was run on it.
      comparison: the comparison with XLA alone; None if no pass changed anything.
    """

    source: Module
    made: Rewritten
    variant: Variant
    comparison: XlaComparison | None = None


@dataclass
class CandidateMaker:
    """Makes candidates of one module; compiles nothing.

    Args:
      contest: the module and the terms.
    """

    contest: Contest
    refused: list[InputError] = field(default_factory=list)
    """Why a partitioner's program, or a candidate, cannot be used."""
    _smaller: dict[tuple[RewriteCandidate, Variant], RewriteCandidate] = field(default_factory=dict, init=False)
    _sources: dict[tuple[str, bytes | None, tuple[Pass, ...]], Module] = field(default_factory=dict, init=False)
    _resharded: dict[tuple[Pass, ...], Resharded | None] = field(default_factory=dict, init=False)

    def make(self, dump: bytes | None, whole: Variant | None = None) -> list[RewriteCandidate]:
        """The candidates to compare, that of the step's own platform first.

        Args:
          dump: the output of the platform's own partitioner in another compilation; None to run it.
          whole: the passes; by default the first variant of the contest.

        Raises:
          InputError: no partitioner's program can be used.
        """
        self.refused.clear()
        made: list[RewriteCandidate] = []
        whole = whole or self.contest.variants[0]
        resharded = self.resharded(whole) if self.contest.exposing else None
        sources = partitioned_sources(resharded.module if resharded else self.contest.module, self.contest.place,
                                      self.contest.exposing, None if resharded else dump)
        sources = sources[:1] if resharded else sources  # with others the passes would begin with a rule
        for name, program in sources:
            try:
                source = self._source((name, dump, before_partitioner(whole) if resharded else ()), program)
            except InputError as error:
                self.refused.append(error)
                continue
            if made:
                made.append(self._candidate(name, source, whole))
                break
            first, enough = self._first(name, source, whole, several=len(sources) > 1)
            made.append(first)
            if enough:
                break
        if not made:
            raise self.refused[0]
        return made

    def _source(self, key: tuple[str, bytes | None, tuple[Pass, ...]], program: Program) -> Module:
        if key not in self._sources:
            self._sources[key] = program()
        return self._sources[key]

    def resharded(self, variant: Variant) -> Resharded | None:
        """The module with the shardings that a variant gives it; None if they stay the user's."""
        passes = before_partitioner(variant)
        if passes not in self._resharded:
            self._resharded[passes] = resharded(self.contest.module, variant)
        return self._resharded[passes]

    def smaller(self, given: RewriteCandidate, variant: Variant) -> RewriteCandidate:
        """Applies another variant to a candidate's source, once; its passes do not run again if they have run first.
        """
        if (given, variant) not in self._smaller:
            self._smaller[given, variant] = self._made_smaller(given, variant)
        return self._smaller[given, variant]

    def longer(self, given: RewriteCandidate, passes: Sequence[Pass]) -> RewriteCandidate:
        """Applies further passes to a candidate; its own do not run again."""
        first = given.variant.passes
        made = continued(given.made, first, passes, topology=self.contest.cluster)
        return replace(given, made=made, variant=replace(given.variant, passes=(*first, *passes)))

    def without_the_rule(self, candidates: list[RewriteCandidate]) -> list[RewriteCandidate]:
        """Reruns the passes without the rule for carries, for the candidates that it was applied to."""
        made = [self._candidate(c.partitioner, c.source, self.contest.variants[0])
                for c in candidates if has_carry_outside(c.variant)]
        return [c for c in made if c.made.report.changed]

    def _first(self, partitioner: str, source: Module, whole: Variant, several: bool) -> tuple[RewriteCandidate, bool]:
        """The candidate of one partitioner's program, and whether the programs of other partitioners can be skipped.

        Before the passes, a rule takes carries out of scatters. A scatter into zeros takes memory, so the all-reduces
        that the rule matches have to send more than the bytes in which candidates count as equal.
        """
        if several and takes_carry_outside(whole) and scatters_into_a_choice(source):
            if share_of_choices(source) * NEAR <= NEAR - 1:
                return self._candidate(partitioner, source, whole), True
            outside = self._candidate(partitioner, source, with_carry_outside(whole))
            if not outside.sends_the_same and not scatters_into_a_choice(outside.made.module):
                return outside, True
        inside = self._candidate(partitioner, source, whole)
        return inside, not several or not scatters_into_a_choice(inside.made.module)

    def _candidate(self, partitioner: str, source: Module, variant: Variant) -> RewriteCandidate:
        made = self.contest.rewriter(source.clone(), variant)
        resharded = self.resharded(variant) if self.contest.exposing else None
        return RewriteCandidate(partitioner, source, resharded.noted(made) if resharded else made, variant)

    def _made_smaller(self, given: RewriteCandidate, variant: Variant) -> RewriteCandidate:
        variant = with_carry_outside(variant) if has_carry_outside(given.variant) else variant
        shorter = given.made.shorter
        if shorter is not None and shorter.passes == variant.passes and given.variant.memory == variant.memory:
            return RewriteCandidate(given.partitioner, given.source, shorter.finish(), variant)
        return self._candidate(given.partitioner, given.source, variant)


@dataclass(frozen=True)
class Resharded:
    """A step whose shardings passes have changed, for XLA to partition.

    Attributes:
      module: the step.
      remarks: what the passes say.
    """

    module: Module
    remarks: tuple[Remark, ...]

    def noted(self, made: Rewritten) -> Rewritten:
        """The result of other passes on what XLA makes of the module: it is changed even where these change nothing."""
        report = replace(made.report, changed=True, remarks=(*self.remarks, *made.report.remarks))
        return replace(made, report=report, bytecode=made.bytecode or emit(made.module, Format.BYTECODE))


def before_partitioner(variant: Variant) -> tuple[Pass, ...]:
    """The passes that a variant begins with and that change how XLA partitions a module."""
    return tuple(takewhile(lambda step: step.before_partitioner, variant.passes))


def resharded(module: Module, variant: Variant) -> Resharded | None:
    """A module with the shardings that a variant gives it before XLA partitions it.

    Args:
      module: the user's; it is not changed.
      variant: the passes.

    Returns:
      The module to partition; None if no pass of the variant changes a sharding.
    """
    passes, recorder = before_partitioner(variant), RunRecorder()
    if not passes:
        return None
    copy = module.clone()
    changed = run_passes(copy, passes, PassContext((recorder,)))
    return Resharded(copy, tuple(recorder.remarks)) if changed else None


def partitioned_sources(module: Module, place: DeviceSet, exposing: bool,
                        dump: bytes | None = None) -> list[tuple[str, Program]]:
    """The names of partitioners and the programs they make; the module itself where there is nothing to partition.

    Args:
      module: the user's module.
      place: the target.
      exposing: whether XLA's partitioner has to run first.
      dump: the output of the platform's own partitioner in another compilation; None to run it.
    """
    if not exposing:
        return [("", module.clone)]
    own = (place.platform, lambda: expose_collectives(module, place, dump))
    return [own] if place.platform == "cpu" else [own, ("cpu", lambda: expose_collectives(module))]


def devices_in_words(place: DeviceSet, count: int) -> str:
    """The target that a step is compiled for.

    Example:
      >>> devices_in_words(DeviceSet("cpu"), 8)
      '8 x CPU'
    """
    kind = str(getattr(place.devices[0], "device_kind", place.platform)) if place.devices else "CPU"
    return f"{count} x {kind}"


# ---- loop-carried sums that a partitioned step computes inside scatters, where no reduction can be deferred


def scatters_into_a_choice(module: Module) -> bool:
    """Whether a scatter adds to the result of a select, as XLA:GPU's pipeline writes a carry that one device keeps."""
    return any(map(_adds_to_a_choice, View(module).ops("stablehlo.scatter")))


def share_of_choices(module: Module) -> Fraction:
    """The share of the module's bytes that the all-reduces of such scatters send.

    The rule `carry-inside-scatter` matches these all-reduces, so this bounds what it can save.

    Args:
      module: a module after XLA's partitioner.

    Returns:
      A share of the bytes on the wire; 1 if there are not as many all-reduces as scatters, so the share is unknown.
    """
    view = View(module)
    sent = collectives_by_op(view)
    of_choices, matched = Fraction(0), 0
    for op, executed in sent:
        if op.name == ALL_REDUCE.op and any(map(_adds_to_a_choice, map(defining_op, op.operands))):
            of_choices, matched = of_choices + executed.wire_bytes, matched + 1
    total = sum((executed.wire_bytes for _, executed in sent), Fraction(0))
    scatters = sum(map(_adds_to_a_choice, view.ops("stablehlo.scatter")))
    return of_choices / total if total and matched == scatters else Fraction(1)


def _adds_to_a_choice(op: ir.Operation | None) -> bool:
    if op is None or op.name != "stablehlo.scatter":
        return False
    maker = defining_op(op.operands[0])
    return maker is not None and maker.name == "stablehlo.select" and maker.operands[1] != maker.operands[2]
