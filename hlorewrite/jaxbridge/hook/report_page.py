"""The report on compiled steps, for ``exec``, ``opt`` and ``audit``: a section of the page for each."""

from collections.abc import Mapping, Sequence
from html import escape

from hlorewrite.jaxbridge.hook.records import CompiledStep, records_data, records_text
from hlorewrite.page.run_page import PageSection, PageTable, RunReport
from hlorewrite.util.sizes import format_bytes

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
