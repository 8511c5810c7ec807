"""The audit of a step: what it sends, what it sends in loops, and what could be saved."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hlorewrite.audit.findings import AuditFinding, LoopFindings
from hlorewrite.audit.profile.reconcile import ReconciledProfile
from hlorewrite.cost import collective_model
from hlorewrite.timeline.program import LOOP, StreamProgram, called_programs
from hlorewrite.timeline.result import CollectiveExposure, StepTimeline
from hlorewrite.timeline.simulate import ScheduledStep


@dataclass(frozen=True)
class AuditedDecision:
    """What hlorewrite makes of the step, or of the program that a dump holds from before XLA's optimisations.

    Attributes:
      passes: what was asked for: ``auto``, a pipeline or its name.
      table: XLA alone and the other ways to compile the program, line by line.
      sentence: which is compiled, and why.
      made: what passes changed before XLA's partitioner, one sentence each.
      stays: what the passes say about what stays, one sentence each.
      decision: the figures of all ways; None if nothing was compared.
      why_not: why nothing is known, or no times are; empty otherwise.
    """

    passes: str
    table: tuple[str, ...] = ()
    sentence: str = ""
    made: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    decision: Mapping[str, Any] | None = None
    why_not: str = ""

    def as_json(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        return {"passes": self.passes, **(self.decision or {}), "made": list(self.made),
                "remarks": list(self.stays), "why_not": self.why_not}


@dataclass(frozen=True)
class StepAudit:
    """The communication of a compiled step, and the unnecessary part of it.

    Attributes:
      name: the name of the input.
      timeline: its simulated schedule.
      loops: for each collective of the timeline the user's line of the innermost loop around it; empty outside of
        loops.
      reasons: for each collective why the loop runs it in every iteration; empty outside of loops, and where nothing
        says.
      findings: what could be saved, by the schedule alone.
      rewritten: what hlorewrite makes of it; None if the input contains only its schedule.
      profile: measured times next to the predicted ones; None without a profile.
    """

    name: str
    timeline: StepTimeline
    loops: tuple[str, ...]
    reasons: tuple[str, ...]
    findings: tuple[AuditFinding, ...]
    rewritten: AuditedDecision | None = None
    profile: ReconciledProfile | None = None

    @property
    def in_loops(self) -> tuple[CollectiveExposure, ...]:
        """The collectives that run in loops."""
        return tuple(one for one, loop in zip(self.timeline.collectives, self.loops, strict=True) if loop)

    def as_json(self) -> dict[str, Any]:
        """The keys that the command line prints."""
        step = self.timeline
        sent = [one.as_json() | {"loop": loop, "reason": reason}
                for one, loop, reason in zip(step.collectives, self.loops, self.reasons, strict=True)]
        return {"input": self.name, "topology": step.topology, "devices": step.devices, "step_s": step.step_s,
                "exposed_s": step.exposed_s, "communication_s": step.communication_s, "complete": step.complete,
                "sent": sent, "findings": [each.as_json() for each in self.findings],
                "rewritten": self.rewritten.as_json() if self.rewritten else None,
                "profile": self.profile.as_json() if self.profile else None,
                "unknown": [each.as_json() for each in step.unknown], "notes": list(step.notes)}


def audit_step(step: ScheduledStep, name: str, options: Mapping[str, str] | None = None) -> StepAudit:
    """Audits a compiled step.

    Args:
      step: the step.
      name: the name of the input.
      options: XLA flags of the job, as far as its dump contains them.

    Returns:
      The audit, without what needs the program before optimisations or a profile.

    Example:
      >>> from hlorewrite.cost import topology
      >>> step = ScheduledStep('''HloModule m, is_scheduled=true, num_partitions=8
      ... ENTRY %main (p: f32[1048576]) -> f32[8388608] {
      ...   %p = f32[1048576]{0} parameter(0)
      ...   ROOT %g = f32[8388608]{0} all-gather(%p), replica_groups=[1,8]<=[8], dimensions={0}
      ... }''', topology("h200:1x8"))
      >>> made = audit_step(step, "step.hlo")
      >>> len(made.timeline.collectives), made.in_loops, made.findings
      (1, (), ())
    """
    timeline = step.at()
    placed = [one.computation for one in step.program.transfers]
    lines: dict[str, str] = {}
    trips: dict[str, int | None] = {}
    for body, line, count in _loops(step.program.entry, "", step):
        lines.setdefault(body, line)
        trips[body] = count if trips.get(body, count) == count else None
    findings = LoopFindings(step.module, timeline, collective_model(step.topology), placed, trips, options or {})
    return StepAudit(name, timeline, tuple(lines.get(each, "") for each in placed), findings.reasons(),
                     findings.all())


def _loops(program: StreamProgram, line: str, step: ScheduledStep) -> Iterator[tuple[str, str, int | None]]:
    """(computation, user's line of the innermost loop around it, iterations of that loop) of all that runs in loops."""
    for op in program.ops:
        for inner in called_programs(op):
            around, count = line, None
            if op[0] == LOOP:
                loop = step.module.computations[program.name].instructions[op[1]]
                source = step.module.source(loop)
                around, count = source if source != "?" else loop.name, op[5]
            if around:
                yield inner.name, around, count
            yield from _loops(inner, around, step)
