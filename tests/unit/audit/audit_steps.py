"""Scheduled HLO that tests of the audit share: a loop whose tuple is (counter, total, weights, stack)."""

from __future__ import annotations

from hlorewrite.audit.findings import AuditFinding
from hlorewrite.audit.step_audit import StepAudit, audit_step
from hlorewrite.cost import topology
from hlorewrite.timeline.simulate import ScheduledStep

GROUPS = "replica_groups={{0,1,2,3,4,5,6,7}}"
BIG = "f32[1048576]{0}"
STATE = f"(s32[], {BIG}, {BIG}, f32[8,1048576]{{1,0}})"
REDUCED = f"""
  %reduced = {BIG} all-reduce(%gradient), {GROUPS}, to_apply=%add, metadata={{source_file="train.py" source_line=7}}
  %eighth = f32[] constant(0.125)
  %spread = {BIG} broadcast(%eighth), dimensions={{}}
  %scaled = {BIG} multiply(%reduced, %spread)
  %next = {BIG} add(%total, %scaled)"""
GATHERED = f"""
  %gathered = f32[8388608]{{0}} all-gather(%weights), {GROUPS}, dimensions={{0}}, metadata={{source_file="train.py" \
source_line=9}}
  %used = {BIG} slice(%gathered), slice={{[0:1048576]}}
  %next = {BIG} multiply(%total, %used)"""

_TEMPLATE = """HloModule m, is_scheduled=true, num_partitions=8
%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}
%condition (c: STATE) -> pred[] {
  %c = STATE parameter(0)
  %at = s32[] get-tuple-element(%c), index=0
  %end = s32[] constant(8)
  ROOT %less = pred[] compare(%at, %end), direction=LT
}
EXTRA
%body (b: STATE) -> STATE {
  %b = STATE parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %total = BIG get-tuple-element(%b), index=1
  %weights = BIG get-tuple-element(%b), index=2
  %stack = f32[8,1048576]{1,0} get-tuple-element(%b), index=3
  %one = s32[] constant(1)
  %zero = s32[] constant(0)
  %j = s32[] add(%i, %one)
  %scalar = f32[] convert(%i)
  %varied = BIG broadcast(%scalar), dimensions={}
  %gradient = BIG multiply(%weights, %varied)LINES
  ROOT %t = STATE tuple(%j, NEXT)
}
ENTRY %main (p: BIG, w: BIG, q: f32[8,1048576]) -> STATE {
  %p = BIG parameter(0)
  %w = BIG parameter(1)
  %q = f32[8,1048576]{1,0} parameter(2)
  %start = s32[] constant(0)
  %before = STATE tuple(%start, %p, %w, %q)
  ROOT %loop = STATE while(%before), condition=%condition, body=%body, metadata={LINE5}KNOWN
}
"""


def looped(lines: str, *, then: str = "%next, %weights, %stack", extra: str = "", known: bool = True) -> str:
    """A module whose loop runs some lines eight times.

    Args:
      lines: of the body.
      then: what the body passes on next to the counter.
      extra: more computations.
      known: whether the trip count can be known.
    """
    count = ', backend_config={"known_trip_count":{"n":"8"}}' if known else ""
    text = _TEMPLATE.replace("LINES", lines).replace("NEXT", then).replace("EXTRA", extra).replace("KNOWN", count)
    text = text.replace("LINE5", 'source_file="train.py" source_line=5')
    text = text if known else text.replace("%end = s32[] constant(8)", "%end = s32[] convert(%at)")
    return text.replace("STATE", STATE).replace("BIG", BIG)


def audited(text: str, options: dict[str, str] | None = None) -> StepAudit:
    """The audit of a module on eight H200."""
    return audit_step(ScheduledStep(text, topology("h200:1x8")), "step.hlo", options)


def found(text: str, options: dict[str, str] | None = None) -> list[AuditFinding]:
    """Its findings."""
    return list(audited(text, options).findings)
