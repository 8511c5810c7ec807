"""The audit of a step: what it sends, what it sends in loops, and what could be saved; and its text for a terminal."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hlorewrite.audit.findings import AuditFinding, LoopFindings
from hlorewrite.audit.reconcile import ReconciledProfile
from hlorewrite.cost import collective_model
from hlorewrite.timeline.program import OpCode, StreamProgram, called_programs
from hlorewrite.timeline.result import CollectiveExposure, StepTimeline, unknown_line
from hlorewrite.timeline.simulate import ScheduledStep
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table

# ---- the audit

# The audit of a step: what it sends, what it sends in loops, and what could be saved.


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
            if op[0] == OpCode.LOOP:
                loop = step.module.computations[program.name].instructions[op[1]]
                source = step.module.source(loop)
                around, count = source if source != "?" else loop.name, op[5]
            if around:
                yield inner.name, around, count
            yield from _loops(inner, around, step)


# ---- as text for a terminal

# An audit as text for a terminal.


_MOST_FINDINGS = 12
_MOST_REMARKS = 8


def audit_text(audit: StepAudit) -> str:
    """An audit in words and tables.

    Args:
      audit: the audit.

    Returns:
      Lines without a final newline.
    """
    lines = [f"{audit.name}: {audit.timeline}", "", *_sent(audit), "", *_findings(audit.findings)]
    if audit.rewritten is not None:
        lines += ["", *_rewritten(audit.rewritten)]
    if audit.profile is not None:
        lines += ["", *_profile(audit.profile)]
    unknown = [f"unknown: {unknown_line(each)}" for each in audit.timeline.unknown]
    return "\n".join([*lines, *(["", *unknown] if unknown else []),
                      *(f"note: {note}" for note in audit.timeline.notes)])


def _sent(audit: StepAudit) -> list[str]:
    step = audit.timeline
    if not step.collectives:
        return ["the step communicates nothing"]
    rows = [["collective", "source", "tensor", "in the loop at", "because", "calls", "executed", "total",
             "exposed"]]
    order = sorted(range(len(step.collectives)), key=lambda at: -step.collectives[at].exposed_s)
    for at in order:
        one = step.collectives[at]
        known = one.trips is not None
        rows.append([one.kind, one.source, one.tensor, audit.loops[at] or "-", audit.reasons[at] or "-",
                     str(one.trips) if known else "?",
                     format_bytes(one.payload_bytes * (one.trips or 0), 1) if known else "unknown",
                     format_seconds(one.communication_s) if known else "unknown",
                     format_seconds(one.exposed_s) if known else "unknown"])
    return table(rows, "<<<<<>>>>")


def _findings(findings: tuple[AuditFinding, ...]) -> list[str]:
    if not findings:
        return ["no unnecessary communication found in the schedule"]
    lines = [f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"]
    for number, each in enumerate(findings[:_MOST_FINDINGS], 1):
        lines += [f"{number}. {each.kind} at {each.source} ({each.tensor}): {_what(each)}",
                  f"   now: {_amounts(each)}", f"   why: {each.why}", f"   do:  {each.advice}"]
    left = len(findings) - _MOST_FINDINGS
    return [*lines, *([f"and {left} more, with --json"] if left > 0 else [])]


def _what(finding: AuditFinding) -> str:
    return {"accumulated": "reduced in every iteration of a loop that only sums the results up",
            "invariant": "of a value that is the same in every iteration of a loop",
            "separate": f"{len(finding.collectives)} calls that could be one",
            "resharded": "inserted by the partitioner, not written in the program"}[finding.form]


def _amounts(finding: AuditFinding) -> str:
    if finding.calls is None or finding.bytes is None:
        return "an unknown number of calls"
    now = f"{_calls(finding.calls)}, {format_bytes(finding.bytes, 1)}, {format_seconds(finding.exposed_s)} exposed"
    if finding.calls_after is None or finding.bytes_after is None:
        return now
    saved = f"; saves {format_seconds(finding.saved_s)} of communication" if finding.saved_s is not None else ""
    return f"{now}; could be {_calls(finding.calls_after)}, {format_bytes(finding.bytes_after, 1)}{saved}"


def _calls(number: int) -> str:
    return f"{number} call{'' if number == 1 else 's'}"


def _rewritten(decision: AuditedDecision) -> list[str]:
    """The decision, and what stays as it is."""
    if not decision.table and not decision.sentence:
        return [f"hlorewrite cannot rewrite the program: {decision.why_not}"]
    said = [each for each in (decision.sentence, decision.why_not) if each]
    stays = [f"stays: {remark}" for remark in decision.stays[:_MOST_REMARKS]]
    left = len(decision.stays) - _MOST_REMARKS
    return [*decision.table, *said, *(f"made: {remark}" for remark in decision.made), *stays,
            *([f"and {left} more, with --json"] if left > 0 else [])]


def _profile(profile: ReconciledProfile) -> list[str]:
    rows = [[f"profile, matched by {profile.how}", "source", "calls", "runs", "predicted", "measured", "ratio"]]
    for row in profile.matched:
        name = row.collectives[0] if len(row.collectives) == 1 else f"{len(row.collectives)} x {row.kind}"
        ratio = f"{row.measured_s / row.predicted_s:.2f}" if row.predicted_s else "-"
        rows.append([name, row.source if len(row.collectives) == 1 else "-", str(row.calls), str(row.runs),
                     format_seconds(row.predicted_s), format_seconds(row.measured_s), ratio])
    if profile.measured_compute_s is not None and profile.runs_per_call:
        ratio = f"{profile.measured_compute_s / profile.compute_s:.2f}" if profile.compute_s else "-"
        rows.append(["compute of a step", "-", "1", str(profile.runs_per_call), format_seconds(profile.compute_s),
                     format_seconds(profile.measured_compute_s), ratio])
    return [*table(rows, "<<>>>>>"), *(f"not matched: {each}" for each in profile.unmatched)]
