"""A decision as HTML, printed from the object that ``opt --json`` prints: nothing is decided or worded here."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from hlorewrite.util.sizes import format_bytes, format_seconds, part_of, told_apart

CHOSEN, NOT_BETTER, NOT_COMPARED = "chosen", "not better", "not compared"
"""What a row's ``verdict`` says: it is what is compiled, it was compared with that, or it has no figures."""
Row = Mapping[str, Any]
Form = Callable[[float, int], str]
_SIZES: tuple[tuple[str, str, Form, int], ...] = (
    ("step", "step_s", format_seconds, 3), ("exposed", "exposed_s", format_seconds, 3),
    ("calls", "calls", lambda number, _: f"{number:.0f}", 3), ("executed", "executed_bytes", format_bytes, 1),
    ("on the wire", "wire_bytes", format_bytes, 1), ("temporaries", "temp_bytes", format_bytes, 1))
"""Heading, key, form and digits of each column but the memory."""
_FACTS = ("step", "exposed", "calls")


def decision_html(decision: Mapping[str, Any]) -> str:
    """The answer, its figures, both steps on one axis of time, and every way.

    Args:
      decision: ``saving``, ``reason``, ``devices`` and ``rows``, XLA alone (or what came before) first.

    Returns:
      The decision as HTML, with every text escaped.

    Example:
      >>> row = {"name": "<a>", "verdict": "chosen", "step_s": 2.0, "exposed_s": 1.0}
      >>> html = decision_html({"saving": "", "reason": "it is shorter", "devices": "8 GPUs", "rows": [row]})
      >>> "It is shorter." in html, "2 s, of which 1 s exposed" in html, "<a>" in html
      (True, True, False)
    """
    rows: Sequence[Row] = decision["rows"]
    answer = f'<p class="answer">{escape(decision["saving"])}</p>' if decision["saving"] else ""
    text = decision["reason"]
    named = text.startswith(f"{decision.get('chosen')} ") and not text.startswith("the ")  # a pipeline: no capital
    said = f"{text}." if named else as_sentence(text)
    reason = f"<p>{escape(said)}</p>" if text else ""
    shown = sides(rows)
    return f'<div class="decision">{answer}{_facts(shown)}{reason}{_time_axis(shown)}{_ways(rows, decision)}</div>'


def as_sentence(text: str) -> str:
    """Text with a capital letter and a full stop.

    Example:
      >>> as_sentence("it fits")
      'It fits.'
    """
    return f"{text[:1].upper()}{text[1:]}."


def sides(rows: Sequence[Row]) -> list[Row]:
    """The first row, and the one that is chosen, if that is another one."""
    return [row for at, row in enumerate(rows) if not at or row.get("verdict") == CHOSEN]


# ---- the answer's figures, and both steps on one axis of time


def _facts(shown: Sequence[Row]) -> str:
    """Step, exposed time, calls and memory: before, and after."""
    known = {title: [row[key] for row in shown if row.get(key) is not None] for title, key, _, _ in _SIZES}
    cells = [(title, _change(known[title], form, digits)) for title, _, form, digits in _SIZES
             if title in _FACTS and len(known[title]) == len(shown)]
    last = [("memory of a device", _memory(shown[-1]))] if shown and shown[-1].get("memory_bytes") else []
    return "".join(["<dl class=\"before-after\">", *(f"<div><dt>{title}</dt><dd>{text}</dd></div>"
                                              for title, text in (*cells, *last)), "</dl>"]) if cells or last else ""


def _change(values: Sequence[float], form: Form, digits: int) -> str:
    if len(values) < 2 or values[0] == values[-1]:
        return f"<strong>{form(values[-1], digits)}</strong>"
    before, after = told_apart(values[0], values[-1], form, digits)
    return f"{before} → <strong>{after}</strong>"


def _time_axis(shown: Sequence[Row]) -> str:
    """Bars of the predicted steps: what computes, and where only communication runs."""
    if not shown or not all(row.get("step_s") and row.get("exposed_s") is not None for row in shown):
        return ""
    longest = max(row["step_s"] for row in shown)
    bars = "".join(_bar(row, longest) for row in shown)
    return (f'<figure class="time-axis"><dl>{bars}</dl><figcaption><span class="key busy"></span> compute, with '
            'communication beside it <span class="key exposed"></span> only communication</figcaption></figure>')


def _bar(row: Row, longest: float) -> str:
    step, exposed = row["step_s"], row["exposed_s"]
    busy, alone = (f"{100 * part / longest:.2f}%" for part in (step - exposed, exposed))
    return (f'<dt>{escape(row["name"])}</dt><dd><span class="span"><span class="busy" style="width:{busy}"></span>'
            f'<span class="exposed" style="width:{alone}"></span></span><span class="length">{format_seconds(step)}, '
            f"of which {format_seconds(exposed)} exposed</span></dd>")


# ---- every way that was compared


def _ways(rows: Sequence[Row], decision: Mapping[str, Any]) -> str:
    """What each way takes and what is said about it; those without figures are folded away."""
    compared = [row for row in rows if row.get("verdict") != NOT_COMPARED]
    columns = [column for column in _SIZES if any(row.get(column[1]) is not None for row in compared)]
    memory = any(row.get("memory_bytes") for row in compared)
    titles = [title for title, *_ in columns] + (["memory"] if memory else [])
    head = "".join(f'<th scope="col" class="number">{title}</th>' for title in titles)
    lines = []
    for row in compared:
        cells = [_cell(row.get(key), form, digits) for _, key, form, digits in columns]
        cells += [_memory(row)] if memory else []
        said = escape(row.get("why") or row.get("verdict") or "")
        lines.append(f'<tr{_marked(row)}><th scope="row">{escape(row["name"])}</th>'
                     + "".join(f'<td class="number">{cell}</td>' for cell in cells) + f"<td>{said}</td></tr>")
    left = [f"<li>{escape(row['name'])}: {escape(row.get('why') or '')}</li>" for row in rows if row not in compared]
    more = f"<details><summary>{len(left)} more way{'' if len(left) == 1 else 's'}, without figures</summary><ul>" + \
        "".join(left) + "</ul></details>" if left else ""
    return (f'<div class="ways"><table><thead><tr><th scope="col">for {escape(decision["devices"])}</th>{head}'
            f"<th></th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>{more}")


def _marked(row: Row) -> str:
    return ' class="chosen"' if row.get("verdict") == CHOSEN else ""


def _cell(value: float | None, form: Form, digits: int) -> str:
    return "unknown" if value is None else form(value, digits)


def _memory(row: Row) -> str:
    """The memory of one device, of what a step may take of it, and whether it fits."""
    size, room = row.get("memory_bytes"), row.get("room_bytes")
    if not size:
        return ""
    fits = {True: ", fits", False: ": does not fit", None: ""}[row.get("fits")]
    return f"{part_of(size, room) if room else format_bytes(size, 1)}{fits}"
