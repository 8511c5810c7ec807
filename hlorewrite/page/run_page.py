"""The page of a run, which every command with ``--report`` writes: one HTML file that loads and runs nothing."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from hlorewrite.page.decision import as_sentence, decision_html
from hlorewrite.page.style import DECISION_STYLE, POLICY, STYLE
from hlorewrite.passmanager.changes import CutText, OpsChange, PassChange
from hlorewrite.rules.listener import Remark
from hlorewrite.rules.remark_subject import RemarkGroup, grouped_remarks
from hlorewrite.util.write import write_output


@dataclass(frozen=True)
class PageTable:
    """A table of texts.

    Attributes:
      title: above it.
      heads: the heads of its columns.
      rows: a text for each column.
      left_out: how many more rows there are.
      numbers: the heads of columns that are aligned to the right.
      folded: whether it is collapsed at first.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int = 0
    numbers: Sequence[str] = ()
    folded: bool = True


@dataclass(frozen=True)
class PageSection:
    """A module of the run.

    Attributes:
      name: the name of the module.
      headline: the answer in a line, for the table of contents of a page of several modules.
      decision: the object that ``opt --json`` prints; None if nothing was compared.
      said: the text that is shown instead.
      stays: remarks on what was not done, in the order in which they are read.
      done: remarks on what was done.
      compiled: whether what was done is compiled; otherwise these remarks say what passes would do.
      notes: messages about the run that belong to no line of it.
      changes: finds what each pass changed, for the page alone.
      tables: further tables about it.
    """

    name: str
    headline: str = ""
    decision: Mapping[str, Any] | None = None
    said: str = ""
    stays: Sequence[Remark] = ()
    done: Sequence[Remark] = ()
    compiled: bool = True
    notes: Sequence[str] = ()
    changes: Callable[[], Sequence[PassChange]] = tuple
    tables: Sequence[PageTable] = ()


@dataclass(frozen=True)
class RunReport:
    """What a command reports, in every form.

    Attributes:
      title: the title of the page.
      sections: a module each.
      footer: what is true for all of them.
      text: the report for a terminal.
      data: the object for programs, which JSON can hold.
      empty: what the page says where there is no section.
    """

    title: str
    sections: Sequence[PageSection]
    footer: str
    text: str
    data: Mapping[str, Any]
    empty: str = ""

    def content(self, path: str) -> str:
        """The report in the form that the name of a file asks for: ``.html``, ``.json``, or text.

        Example:
          >>> RunReport("run", (), "", "nothing ran\\n", {"modules": []}).content("report.txt")
          'nothing ran\\n'
        """
        if path.endswith(".json"):
            return json.dumps(self.data, indent=2) + "\n"
        return run_page(self) if path.endswith((".html", ".htm")) else self.text

    def write(self, path: str) -> None:
        """Writes the report; ``-`` is standard error.

        Raises:
          OutputError: the file cannot be written.
        """
        if path == "-":
            sys.stderr.write(self.text)
        else:
            write_output(path, self.content(path).encode())


def run_page(report: RunReport) -> str:
    """The page as HTML: a section for each module.

    Example:
      >>> "nothing ran" in run_page(RunReport("run", (), "", "", {}, "nothing ran"))
      True
    """
    title = escape(report.title)
    body = "".join(_section(at, each) for at, each in enumerate(report.sections)) or f"<p>{escape(report.empty)}</p>"
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">{POLICY}<title>{title}</title>'
            f"<style>{STYLE}{DECISION_STYLE}</style></head><body><main><h1>{title}</h1>{_contents(report.sections)}"
            f"{body}</main><footer><p>{report.footer}</p></footer></body></html>\n")


def _contents(sections: Sequence[PageSection]) -> str:
    if len(sections) < 2:
        return ""
    rows = "".join(f'<li><a href="#m{at}"><code>{escape(each.name)}</code></a> {escape(each.headline)}</li>'
                   for at, each in enumerate(sections))
    return f"<ul>{rows}</ul>"


def _section(at: int, each: PageSection) -> str:
    said = f"<p>{escape(as_sentence(each.said))}</p>" if each.said else ""
    notes = "".join(f'<p class="aside">{escape(as_sentence(note))}</p>' for note in each.notes)
    done = "What was done" if each.compiled else "What passes would do"
    answer = decision_html(each.decision) if each.decision else said
    return (f'<section><h2 id="m{at}"><code>{escape(each.name)}</code></h2>{answer}'
            f"{remark_table('What stays, and why', each.stays)}{remark_table(done, each.done)}{notes}"
            f"{changes_html(each.changes())}{''.join(map(_table, each.tables))}</section>")


def _table(table: PageTable) -> str:
    if not table.rows:
        return ""
    shown = {at: ' class="number"' if head in table.numbers else "" for at, head in enumerate(table.heads)}
    head = "".join(f"<th{shown[at]}>{escape(text)}</th>" for at, text in enumerate(table.heads))
    rows = "".join("<tr>" + "".join(f"<td{shown[at]}>{escape(text)}</td>" for at, text in enumerate(row)) + "</tr>"
                   for row in table.rows)
    more = f"<p>{table.left_out} more are not listed.</p>" if table.left_out else ""
    return (f"<details{'' if table.folded else ' open'}><summary>{escape(table.title)}</summary>"
            f'<div class="table"><table><tr>{head}</tr>{rows}</table></div>{more}</details>')


# ---- remarks as tables: one cause per row, with the other places that have it folded below


_TITLES = ("line", "parameter", "tensor", "exposes", "why", "change")


def remark_table(title: str, remarks: Iterable[Remark]) -> str:
    """Remarks by cause, below a heading that counts them; empty if there are none.

    Args:
      title: the heading.
      remarks: the remarks, in the order in which they are read.

    Example:
      >>> remark_table("What stays", [])
      ''
      >>> "What stays: 1 remark<" in remark_table("What stays", [Remark("missed", "cse", "it is read", "a.py:1")])
      True
    """
    groups = grouped_remarks(remarks)
    if not groups:
        return ""
    count = sum(len(group.remarks) for group in groups)
    number = f"{count} remarks of {len(groups)} causes" if len(groups) < count else \
        f"{count} remark{'' if count == 1 else 's'}"
    cells = [_cells(group) for group in groups]
    shown = [at for at in range(len(_TITLES)) if any(row[at] for row in cells)]
    head = "".join(f"<th>{_TITLES[at]}</th>" for at in shown)
    rows = "".join("<tr>" + "".join(f"<td>{row[at]}</td>" for at in shown) + "</tr>" for row in cells)
    return (f'<details open><summary>{title}: {number}</summary><div class="table"><table class="remarks">'
            f"<tr>{head}</tr>{rows}</table></div></details>")


def _cells(group: RemarkGroup) -> tuple[str, ...]:
    """A row of the table: your line first, the library's below it, then other places with the same cause."""
    remark = group.first
    line = f"<code>{escape(remark.location)}</code>"
    if remark.framework:
        line += f"<br><small>in <code>{escape(remark.framework)}</code></small>"
    if group.elsewhere:
        places = "<br>".join(f"<code>{escape(place)}</code>" for place in group.elsewhere)
        line += f"<details><summary>the same at {len(group.elsewhere)} more</summary>{places}</details>"
    kind = "" if remark.kind == "applied" else f"<b>{remark.kind}</b> "
    change = [escape(remark.advice), f"<small>docs/{remark.help}</small>" if remark.help else ""]
    return (line, *(f"<code>{escape(text)}</code>" if text else "" for text in (remark.parameter, remark.type)),
            "" if remark.kind == "applied" else remark.exposed,
            f"{kind}{escape(f'{remark.rule}: {remark.sentence}')}", "<br>".join(filter(None, change)))


# ---- what each pass changed, folded: a diff of the module, and the ops of each rewrite before and after


_CLASSES = {"-": "gone", "+": "come", "@": "aside"}


def changes_html(passes: Sequence[PassChange]) -> str:
    """One fold per pass; empty if no pass changed anything.

    Example:
      >>> change = PassChange("cse", (), 0, CutText(("-a", "+b")), 1, 1)
      >>> "<code>cse</code>: 1 line removed, 1 added" in changes_html([change])
      True
    """
    if not passes:
        return ""
    inner = "".join(map(_pass, passes))
    count = _plural(len(passes), "pass", "passes")
    return f"<details><summary>What each pass changed: {count}</summary>{inner}</details>"


def _pass(change: PassChange) -> str:
    count = len(change.rewrites) + change.left_out
    parts = [_plural(count, "rewrite", "rewrites")] if count else []
    parts += [] if change.unknown else [f"{_plural(change.removed, 'line', 'lines')} removed, {change.added} added"]
    rewrites = "".join(map(_rewrite, change.rewrites))
    left = _plural(change.left_out, "more rewrite", "more rewrites")
    more = f'<p class="aside">{left}</p>' if change.left_out else ""
    diff = _block([*_marked(change.diff)], change.diff.left_out)
    diff = f"<p>{escape(change.unknown)}</p>" if change.unknown else diff
    return (f'<details class="inner"><summary><code>{escape(change.name)}</code>: {", ".join(parts)}</summary>'
            f"{diff}{rewrites}{more}</details>")


def _rewrite(each: OpsChange) -> str:
    lines = [*_marked(each.before, "-"), *_marked(each.after, "+")]
    left_out = each.before.left_out + each.after.left_out
    return (f'<details class="inner"><summary>{escape(each.rule)} at <code>{escape(each.location)}</code></summary>'
            f"{_block(lines, left_out)}</details>")


def _marked(text: CutText, sign: str = "") -> Iterable[str]:
    """Lines with the colour of their sign: what went, what came, and where."""
    for line in text.lines:
        shown = f"{sign}{' ' if sign else ''}{line}"
        kind = _CLASSES.get(shown[:1], "")
        yield f'<span class="{kind}">{escape(shown)}</span>' if kind else escape(shown)


def _block(lines: Sequence[str], left_out: int) -> str:
    more = [f'<span class="aside">{_plural(left_out, "more line", "more lines")}</span>'] if left_out else []
    return "<pre>" + "\n".join([*lines, *more]) + "</pre>" if lines else ""


def _plural(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
