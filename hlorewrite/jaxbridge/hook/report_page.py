"""The report of ``hlorewrite exec`` as one HTML page that loads nothing."""

import html
from collections.abc import Sequence

from hlorewrite.jaxbridge.hook.records import CompiledStep
from hlorewrite.rules.remark_groups import RemarkGroup, grouped_remarks
from hlorewrite.util.sizes import format_bytes

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
p { max-width: 46em; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 0.5rem 0 1rem; display: block; overflow-x: auto; }
th, td { text-align: left; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid #8886; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-family: ui-monospace, Consolas, monospace; }
"""
_POLICY = ('<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">'
           '<meta name="referrer" content="no-referrer">')
_OUTCOMES = {"rewritten": "rewritten", "unchanged": "compiled as it is: no pass found anything",
             "audited": "compiled as it is: audit", "original": "compiled as it is: "}


def report_page(steps: Sequence[CompiledStep], pipeline: str, audit: bool) -> str:
    """Records as HTML: a section a module.

    Args:
      steps: the modules.
      pipeline: the passes, as text.
      audit: whether nothing was to be rewritten.

    Example:
      >>> "no module that communicates" in report_page([], "comm", False)
      True
    """
    title = "hlorewrite exec: what could be saved" if audit else "hlorewrite exec: what was rewritten"
    body = "".join(map(_section, steps)) or "<p>The program compiled no module that communicates.</p>"
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{_POLICY}<title>{title}</title>'
            f"<style>{_STYLE}</style></head><body><h1>{title}</h1><p>Passes: <code>{html.escape(pipeline)}</code>. "
            f"Bytes are payloads times executions, on one device and step.</p>{body}</body></html>\n")


def _section(step: CompiledStep) -> str:
    said = _OUTCOMES[step.outcome] + html.escape(step.reason)
    return (f"<h2><code>{html.escape(step.name)}</code></h2><p>{said}.</p>{_against_xla(step)}{_collectives(step)}"
            f"{_remarks(step)}")


def _against_xla(step: CompiledStep) -> str:
    """What XLA alone makes of the module, next to the rewritten one."""
    comparison = step.report.comparison if step.report else None
    if comparison is None:
        return ""
    rows = "".join(f'<tr><td>{name}</td><td class="number">{side.calls}</td>{_number(side.bytes)}{_number(side.temp)}'
                   "</tr>" for name, side in (("XLA alone", comparison.alone), ("rewritten", comparison.ours)) if side)
    return (f'<table><tr><th>for {html.escape(comparison.devices)}</th><th class="number">calls</th>'
            f'<th class="number">executed</th><th class="number">temporaries</th></tr>{rows}</table>'
            f"<p>{html.escape(comparison.sentence)}.</p>")


def _collectives(step: CompiledStep) -> str:
    """A table of what is sent before and after, by kind of collective."""
    if step.report is None:
        return ""
    before, after = step.report.executed_bytes_before, step.report.executed_bytes_after
    rows = "".join(f"<tr><td>{kind}</td>{_number(before.get(kind, 0))}{_number(after.get(kind, 0))}</tr>"
                   for kind in sorted({*before, *after}))
    return ('<table><tr><th>in the module</th><th class="number">before</th><th class="number">after</th></tr>'
            f"{rows}</table>")


def _number(count: int) -> str:
    return f'<td class="number">{format_bytes(count, 1)}</td>'


def _remarks(step: CompiledStep) -> str:
    """What was done, and what not, why, and what to change; what stays comes first."""
    remarks = step.report.remarks if step.report else ()
    if not remarks:
        return ""
    head = "".join(f"<th>{title}</th>" for title in ("line", "parameter", "tensor", "", "why", "change"))
    rows = "".join(map(_remark, grouped_remarks(sorted(remarks, key=lambda remark: remark.kind == "applied"))))
    return (f"<details open><summary>{len(remarks)} remarks</summary><table><tr>{head}</tr>{rows}</table></details>")


def _remark(group: RemarkGroup) -> str:
    """A row of the table: the user's line first, the library's below it, then other places with the same cause."""
    remark = group.first
    line = f"<code>{html.escape(remark.location)}</code>"
    if remark.framework:
        line += f"<br><small>in <code>{html.escape(remark.framework)}</code></small>"
    if group.elsewhere:
        places = "<br>".join(f"<code>{html.escape(place)}</code>" for place in group.elsewhere)
        line += f"<details><summary>the same at {len(group.elsewhere)} more</summary>{places}</details>"
    cells = [line, *(f"<code>{html.escape(text)}</code>" if text else "" for text in (remark.parameter, remark.type)),
             remark.kind, html.escape(f"{remark.rule}: {remark.sentence}"),
             html.escape(remark.advice) + (f"<br><small>docs/{remark.help}</small>" if remark.help else "")]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
