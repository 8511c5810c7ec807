"""The outcome for each module that passed through the hook, and the report on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from hlorewrite.page.run_page import PageSection, PageTable, RunReport
from hlorewrite.rules.remark_subject import grouped_remarks
from hlorewrite.util.sizes import format_bytes, format_seconds, told_apart
from hlorewrite.util.tables import numbers_right, table

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.step.report import RewriteReport


Outcome = Literal["rewritten", "unchanged", "audited", "original"]


@dataclass(frozen=True)
class CompiledStep:
    """One module that JAX compiled while a patch was active.

    Attributes:
      name: the name of the jitted function, as JAX names its module: ``jit_train_step``.
      outcome: ``rewritten``; ``unchanged`` where no pass found anything; ``audited`` where nothing was to be rewritten;
        ``original`` where a pass failed or the processes did not agree.
      reason: why the original was compiled; empty unless ``original``.
      seconds: time spent in the hook.
      report: what the passes did; None if they failed.
    """

    name: str
    outcome: Outcome
    reason: str
    seconds: float
    report: RewriteReport | None

    @classmethod
    def decided(cls, name: str, report: RewriteReport | None) -> CompiledStep:
        """The record of a decision that was made for a file, with no program around it."""
        kept = report is not None and (report.comparison.kept if report.comparison else report.changed)
        return cls(name, "rewritten" if kept else "unchanged", "", 0.0, report)

    @property
    def bytes_before(self) -> int:
        """Executed bytes of all collectives under XLA alone; before the passes if nothing was compared."""
        if self.report and self.report.comparison:
            return self.report.comparison.alone.bytes
        return sum(self.report.executed_bytes_before.values()) if self.report else 0

    @property
    def bytes_after(self) -> int:
        """Executed bytes of all collectives of the module that is compiled, or that an audit would compile."""
        if self.report and self.report.comparison:
            return self.report.comparison.compiled.bytes
        return sum(self.report.executed_bytes_after.values()) if self.report else 0

    @property
    def saving(self) -> str:
        """What is saved compared with XLA alone; empty if nothing is, or nothing was compared."""
        return self.report.comparison.saving if self.report and self.report.comparison else ""

    @property
    def calls_before(self) -> int:
        """Executions of collectives under XLA alone; before the passes if nothing was compared."""
        if self.report and self.report.comparison:
            return self.report.comparison.alone.calls
        return sum(each.trips for each in self.report.before) if self.report else 0

    @property
    def calls_after(self) -> int:
        """Executions of collectives of the module that is compiled, or that an audit would compile."""
        if self.report and self.report.comparison:
            return self.report.comparison.compiled.calls
        return sum(each.trips for each in self.report.after) if self.report else 0

    @property
    def times(self) -> str:
        """The predicted step, ``612 ms -> 571 ms``; empty if none was predicted."""
        comparison = self.report.comparison if self.report else None
        if comparison is None or comparison.alone.step_s is None or comparison.compiled.step_s is None:
            return ""
        return " -> ".join(told_apart(comparison.alone.step_s, comparison.compiled.step_s, format_seconds, 3))

    @property
    def beside(self) -> str:
        """Where bytes and calls are counted: in what XLA compiles on both sides, or in the module before and after the
        passes.
        """
        return "XLA alone" if self.report and self.report.comparison else "the module"

    def as_json(self) -> dict[str, Any]:
        """The record as JSON data."""
        remarks = [] if self.report is None else [
            {"kind": r.kind, "by": r.rule, "sentence": r.sentence, "location": r.location, "parameter": r.parameter,
             "type": r.type, "framework": r.framework, "advice": r.advice,
             "exposed": r.exposed, "help": r.help} for r in self.report.remarks]
        return {"name": self.name, "outcome": self.outcome, "reason": self.reason, "seconds": round(self.seconds, 4),
                "bytes_before": self.bytes_before, "bytes_after": self.bytes_after, "calls_before": self.calls_before,
                "calls_after": self.calls_after, "beside": self.beside,
                "against_xla": self.report.comparison.as_json() if self.report and self.report.comparison else None,
                "plan": self.report.plan if self.report else "", "remarks": remarks}


def records_table(steps: Sequence[CompiledStep]) -> str:
    """Records as a text table, one module per line: XLA alone -> what is compiled, if the two were compared.

    Example:
      >>> print(records_table([CompiledStep("jit_step", "original", "a pass failed", 0.1, None)]))
      module    outcome   compared with  executed    calls   reason
      jit_step  original  the module     0 B -> 0 B  0 -> 0  a pass failed
    """
    rows = [["module", "outcome", "compared with", "step", "executed", "calls", "reason"]]
    for step in steps:
        sent = " -> ".join(format_bytes(each, 1) for each in (step.bytes_before, step.bytes_after))
        rows.append([step.name, step.outcome, step.beside, step.times, sent,
                     f"{step.calls_before} -> {step.calls_after}", step.reason])
    if not any(step.times for step in steps):
        rows = [[*row[:3], *row[4:]] for row in rows]
    return "\n".join(line.rstrip() for line in table(rows, numbers_right(rows)))


def records_sentence(steps: Sequence[CompiledStep]) -> str:
    """How many modules were rewritten, and what they send now.

    Example:
      >>> records_sentence([])
      'no module that communicates was compiled'
      >>> records_sentence([CompiledStep("jit_step", "original", "a pass failed", 0.1, None)])
      'rewrote 0 of 1 modules that communicate'
    """
    if not steps:
        return "no module that communicates was compiled"
    rewritten = [step for step in steps if step.outcome == "rewritten"]
    sent = [format_bytes(sum(bytes_), 1) for bytes_ in ([step.bytes_before for step in rewritten],
                                                        [step.bytes_after for step in rewritten])]
    now = f": {sent[1]} executed instead of {sent[0]}" if rewritten else ""
    return f"rewrote {len(rewritten)} of {len(steps)} modules that communicate{now}"


def records_text(steps: Sequence[CompiledStep]) -> str:
    """Records as a text table, followed by what stays as it is, why, and how to change that, and then by what was done.

    Example:
      >>> records_text([])
      'no module that communicates was compiled\\n'
    """
    if not steps:
        return "no module that communicates was compiled\n"
    reports = [step.report for step in steps if step.report]
    said = dict.fromkeys([*(remark for each in reports for remark in each.stays),
                          *(remark for each in reports if each.changed for remark in each.done)])
    notes = dict.fromkeys(f"note: {note}" for each in reports for note in each.notes)
    return "".join(f"{line}\n" for line in (records_table(steps), *grouped_remarks(said), *notes))


def records_data(steps: Sequence[CompiledStep]) -> dict[str, Any]:
    """Records as data that JSON can hold."""
    return {"modules": [step.as_json() for step in steps]}


# ---- the report on compiled steps, for ``exec``, ``opt`` and ``audit``: a section of the page for each


AGAINST_XLA = "against-xla"
"""The remark of the decision, which is the answer of its section."""
_OUTCOMES = {"rewritten": "", "unchanged": "no pass found anything, so your own module is compiled",
             "audited": "this was an audit: your own module is compiled", "original": "your own module is compiled: "}


def steps_report(steps: Sequence[CompiledStep], pipeline: str, *, audit: bool = False) -> RunReport:
    """Records in every form, in the order in which JAX compiled the modules.

    Args:
      steps: the modules.
      pipeline: the passes, as text.
      audit: whether nothing was to be rewritten.

    Example:
      >>> report = steps_report([], "comm")
      >>> report.content("report.txt"), "no module that communicates" in report.content("report.html")
      ('no module that communicates was compiled\\n', True)
    """
    footer = (f"Passes: <code>{escape(pipeline)}</code>. Executed bytes are payloads times executions, on one device "
              "and step. Steps are predicted from XLA's own schedule of each module.")
    return RunReport("hlorewrite: what could be saved" if audit else "hlorewrite: what was rewritten",
                     tuple(map(_section, steps)), footer, records_text(steps), records_data(steps),
                     empty="The program compiled no module that communicates.")


def _section(step: CompiledStep) -> PageSection:
    report = step.report
    said = f"{_OUTCOMES[step.outcome]}{step.reason}"
    if report is None:
        return PageSection(step.name, _headline(step), said=said)
    remarks = [remark for remark in report.stays if remark.rule != AGAINST_XLA]
    done = [remark for remark in report.done if remark.rule != AGAINST_XLA]
    decision = report.comparison.as_json() if report.comparison else None
    return PageSection(step.name, _headline(step), decision, said=said, stays=remarks, done=done,
                       compiled=step.outcome == "rewritten",
                       notes=report.notes,
                       changes=lambda: report.changes.found if report.changes else (),
                       tables=(_counts(report.executed_bytes_before, report.executed_bytes_after),))


def _counts(before: Mapping[str, int], after: Mapping[str, int]) -> PageTable:
    """The module's own counts, by kind, before XLA adds, merges or drops any."""
    rows = [(kind, *(format_bytes(side.get(kind, 0), 1) for side in (before, after)))
            for kind in sorted({*before, *after})]
    heads = ("collective", "executed before", "after")
    return PageTable("The module's own counts, before XLA compiles it", heads, rows, numbers=heads[1:])


def _headline(step: CompiledStep) -> str:
    """The answer in one line: what the step gains, or that it is compiled as it is."""
    if step.saving or step.outcome == "rewritten":
        return step.saving or "rewritten"
    compared = step.report is not None and step.report.comparison is not None
    return "no pass found anything" if step.outcome == "unchanged" and not compared else "your own module is compiled"
