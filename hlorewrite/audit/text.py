"""An audit as text for a terminal."""

from hlorewrite.audit.findings import AuditFinding
from hlorewrite.audit.profile.reconcile import ReconciledProfile
from hlorewrite.audit.step_audit import AuditedDecision, StepAudit
from hlorewrite.timeline.text import unknown_line
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.tables import table

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
