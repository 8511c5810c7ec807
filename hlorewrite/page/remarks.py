"""Remarks as tables: one cause per row, with the other places that have it folded below."""

from collections.abc import Iterable
from html import escape

from hlorewrite.rules.listener import Remark
from hlorewrite.rules.remark_groups import RemarkGroup, grouped_remarks

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
