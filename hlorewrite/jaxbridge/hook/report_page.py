"""What was rewritten as one HTML page that loads nothing: the answer first, then the reasons."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from hlorewrite.jaxbridge.baseline.comparison import WayRow, XlaComparison, of_room
from hlorewrite.jaxbridge.baseline.judge import fits
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.hook.records import CompiledStep, records_json, records_text
from hlorewrite.jaxbridge.hook.report_style import POLICY, STYLE
from hlorewrite.rules.listener import Remark
from hlorewrite.rules.remark_groups import RemarkGroup, grouped_remarks
from hlorewrite.util.sizes import format_bytes, format_seconds
from hlorewrite.util.write import write_output

_OUTCOMES = {"rewritten": "", "unchanged": "No pass found anything, so your own module is compiled.",
             "audited": "This was an audit: your own module is compiled.", "original": "Your own module is compiled: "}


def report_page(steps: Sequence[CompiledStep], pipeline: str, audit: bool) -> str:
    """Records as HTML: a section for each module, in the order JAX compiled them.

    Args:
      steps: the modules.
      pipeline: the passes, as text.
      audit: whether nothing was to be rewritten.

    Example:
      >>> "no module that communicates" in report_page([], "comm", False)
      True
    """
    title = "hlorewrite: what could be saved" if audit else "hlorewrite: what was rewritten"
    body = "".join(_section(at, step) for at, step in enumerate(steps)) or \
        "<p>The program compiled no module that communicates.</p>"
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">{POLICY}<title>{title}</title>'
            f"<style>{STYLE}</style></head><body><h1>{title}</h1>{_contents(steps)}{body}"
            f"<footer><p>Passes: <code>{html.escape(pipeline)}</code>. Executed bytes are payloads times executions, "
            "on one device and step. Steps are predicted from XLA's own schedule of each module.</p></footer>"
            "</body></html>\n")


def report_text(steps: Sequence[CompiledStep], path: str, pipeline: str, *, audit: bool = False) -> str:
    """Records in the form that the name of a file asks for: ``.html``, ``.json``, or text.

    Args:
      steps: the modules.
      path: name of the file.
      pipeline: the passes, as text.
      audit: whether nothing was to be rewritten.

    Example:
      >>> report_text([], "report.txt", "comm")
      'no module that communicates was compiled\\n'
    """
    if path.endswith(".json"):
        return records_json(steps)
    if path.endswith((".html", ".htm")):
        return report_page(steps, pipeline, audit)
    return records_text(steps)


def write_report(path: str, steps: Sequence[CompiledStep], pipeline: str, *, audit: bool = False) -> None:
    """Writes ``report_text`` to a file.

    Raises:
      OutputError: the file cannot be written.
    """
    write_output(path, report_text(steps, path, pipeline, audit=audit).encode())


def _contents(steps: Sequence[CompiledStep]) -> str:
    if len(steps) < 2:
        return ""
    rows = "".join(f'<li><a href="#m{at}"><code>{html.escape(step.name)}</code></a> {html.escape(_headline(step))}</li>'
                   for at, step in enumerate(steps))
    return f"<ul>{rows}</ul>"


def _headline(step: CompiledStep) -> str:
    """The answer in one line: what the step gains, or that it is compiled as it is."""
    if step.saving or step.outcome == "rewritten":
        return step.saving or "rewritten"
    compared = step.report is not None and step.report.comparison is not None
    return "no pass found anything" if step.outcome == "unchanged" and not compared else "your own module is compiled"


def _section(at: int, step: CompiledStep) -> str:
    comparison = step.report.comparison if step.report else None
    answer = f'<p class="answer">{html.escape(step.saving)}</p>' if step.saving else ""
    said = f"{_OUTCOMES[step.outcome]}{html.escape(step.reason)}"
    why = f"<p>{html.escape(_sentence(comparison.sentence))}</p>" if comparison else f"<p>{said}</p>" if said else ""
    beside = "" if comparison is None else f"{_time_axis(comparison)}{_ways(comparison)}"
    return (f'<section><h2 id="m{at}"><code>{html.escape(step.name)}</code></h2>{answer}{why}{beside}{_remarks(step)}'
            f"{_collectives(step)}</section>")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# ---- XLA alone and what is compiled, on one axis of time


def _time_axis(comparison: XlaComparison) -> str:
    """Bars of the predicted steps: what computes, and where only communication runs."""
    sides = [(row.name, row.measured) for row in comparison.rows
             if row.measured and row.name in (comparison.rows[0].name, comparison.chosen)]
    timed = [(name, side.step_s, side.exposed_s) for name, side in sides if side.step_s and side.exposed_s is not None]
    if len(timed) < len(sides) or not timed:
        return ""
    longest = max(step for _, step, _ in timed)
    rows = "".join(_bar(name, step, exposed, longest) for name, step, exposed in timed)
    return (f'<figure><dl class="axis">{rows}</dl><figcaption><span class="key compute"></span> compute, with '
            'communication beside it <span class="key exposed"></span> only communication</figcaption></figure>')


def _bar(name: str, step: float, exposed: float, longest: float) -> str:
    busy, alone = (f"{100 * part / longest:.2f}%" for part in (step - exposed, exposed))
    return (f'<dt>{html.escape(name)}</dt><dd><span class="bar compute" style="width:{busy}"></span><span class="bar '
            f'exposed" style="width:{alone}"></span><span class="length">{format_seconds(step)}, of which '
            f"{format_seconds(exposed)} exposed</span></dd>")


# ---- every way that was compared


def _ways(comparison: XlaComparison) -> str:
    """What each way takes; the one that is compiled is marked, and others say why they are not."""
    titles = ("step", "exposed", "calls", "executed", "temporaries", "memory")
    head = "".join(f'<th class="number">{title}</th>' for title in titles)
    rows = "".join(_way(row, row.measured, comparison) for row in comparison.rows if row.measured)
    left = [f"{html.escape(row.name)}: {html.escape(row.why)}" for row in comparison.rows if row.measured is None]
    more = f"<details><summary>{len(left)} more way{'' if len(left) == 1 else 's'}, not compiled</summary><ul>" + \
        "".join(f"<li>{each}</li>" for each in left) + "</ul></details>" if left else ""
    return f"<table><tr><th>for {html.escape(comparison.devices)}</th>{head}<th></th></tr>{rows}</table>{more}"


def _way(row: WayRow, made: Measured, comparison: XlaComparison) -> str:
    numbers = (*("unknown" if each is None else format_seconds(each) for each in (made.step_s, made.exposed_s)),
               str(made.calls), format_bytes(made.bytes, 1), format_bytes(made.temp, 1), _memory(made))
    cells = "".join(f'<td class="number">{each}</td>' for each in numbers)
    if row.name == comparison.chosen:
        return f'<tr class="chosen"><td>{html.escape(row.name)}</td>{cells}<td>compiled</td></tr>'
    why = row.why or ("" if row is comparison.rows[0] else f"no better than {comparison.chosen}")
    return f"<tr><td>{html.escape(row.name)}</td>{cells}<td>{html.escape(why)}</td></tr>"


def _memory(made: Measured) -> str:
    room = fits(made)
    if room is None:
        return format_bytes(made.memory, 1) if made.memory else ""
    return f"{of_room(made)}{'' if room else ': does not fit'}"


# ---- what was done, what stays, and what would change that


def _remarks(step: CompiledStep) -> str:
    """What stays comes first, the line that exposes most at its head; then what was done."""
    report = step.report
    if report is None or not report.remarks:
        return ""
    done = [remark for remark in report.remarks if remark.kind == "applied"]
    return _table("What stays, and why", report.stays) + _table("What was done", done)


def _table(title: str, remarks: Iterable[Remark]) -> str:
    groups = grouped_remarks(remarks)
    if not groups:
        return ""
    count = sum(len(group.remarks) for group in groups)
    number = f"{count} remarks of {len(groups)} causes" if len(groups) < count else \
        f"{count} remark{'' if count == 1 else 's'}"
    titles = ("line", "parameter", "tensor", "exposes", "why", "change")
    cells = [_cells(group) for group in groups]
    shown = [at for at in range(len(titles)) if any(row[at] for row in cells)]
    head = "".join(f"<th>{titles[at]}</th>" for at in shown)
    rows = "".join("<tr>" + "".join(f"<td>{row[at]}</td>" for at in shown) + "</tr>" for row in cells)
    return (f'<details open><summary>{title}: {number}</summary><table class="remarks"><tr>{head}</tr>{rows}</table>'
            "</details>")


def _cells(group: RemarkGroup) -> tuple[str, ...]:
    """A row of the table: your line first, the library's below it, then other places with the same cause."""
    remark = group.first
    line = f"<code>{html.escape(remark.location)}</code>"
    if remark.framework:
        line += f"<br><small>in <code>{html.escape(remark.framework)}</code></small>"
    if group.elsewhere:
        places = "<br>".join(f"<code>{html.escape(place)}</code>" for place in group.elsewhere)
        line += f"<details><summary>the same at {len(group.elsewhere)} more</summary>{places}</details>"
    kind = "" if remark.kind == "applied" else f"<b>{remark.kind}</b> "
    change = [html.escape(remark.advice), f"<small>docs/{remark.help}</small>" if remark.help else ""]
    return (line, *(f"<code>{html.escape(text)}</code>" if text else "" for text in (remark.parameter, remark.type)),
            remark.exposed, f"{kind}{html.escape(f'{remark.rule}: {remark.sentence}')}",
            "<br>".join(filter(None, change)))


def _collectives(step: CompiledStep) -> str:
    """The module's own counts, by kind, before XLA adds, merges or drops any."""
    if step.report is None:
        return ""
    before, after = step.report.executed_bytes_before, step.report.executed_bytes_after
    rows = "".join(f'<tr><td>{kind}</td><td class="number">{format_bytes(before.get(kind, 0), 1)}</td>'
                   f'<td class="number">{format_bytes(after.get(kind, 0), 1)}</td></tr>'
                   for kind in sorted({*before, *after}))
    return ("<details><summary>The module's own counts, before XLA compiles it</summary><table><tr><th>collective</th>"
            f'<th class="number">executed before</th><th class="number">after</th></tr>{rows}</table></details>')
