"""What a page of a run prints, read back from its HTML, next to the object that the command writes as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

from hlorewrite.util.sizes import format_bytes, format_seconds

COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "step": ("step_s", format_seconds), "exposed": ("exposed_s", format_seconds), "calls": ("calls", str),
    "executed": ("executed_bytes", lambda size: format_bytes(size, 1)),
    "on the wire": ("wire_bytes", lambda size: format_bytes(size, 1)),
    "temporaries": ("temp_bytes", lambda size: format_bytes(size, 1))}


def assert_page_prints(page: str, decision: dict[str, Any]) -> None:
    """Fails where the page and the decision differ in an answer, a number, a verdict or the length of a bar.

    Args:
      page: HTML of one section.
      decision: what ``opt --json`` prints of it.
    """
    assert [decision["saving"]] * bool(decision["saving"]) == [
        unescape(text) for text in re.findall(r'<p class="answer">(.*?)</p>', page)]
    compared = [row for row in decision["rows"] if row["verdict"] != "not compared"]
    table = re.search(r'<div class="ways"><table>(.*?)</table>', page)
    assert table is not None
    heads = [_text(cell) for cell in re.findall(r"<th[^>]*>(.*?)</th>", table[1].partition("<tbody>")[0])]
    lines = re.findall(r"<tr([^>]*)>(.*?)</tr>", table[1].partition("<tbody>")[2])
    assert len(lines) == len(compared) and heads[0] == f"for {decision['devices']}"
    for (marked, line), row in zip(lines, compared, strict=True):
        cells = dict(zip(heads, map(_text, re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)), strict=True))
        assert cells[heads[0]] == row["name"] and cells[""] == (row["why"] or row["verdict"])
        assert ("chosen" in marked) == (row["verdict"] == "chosen")
        for head, (key, form) in COLUMNS.items():
            known = [each.get(key) is not None for each in compared]
            assert (head in cells) == any(known), head
            assert not any(known) or cells[head] == ("unknown" if row[key] is None else form(row[key]))
        if size := row.get("memory_bytes"):
            assert cells["memory"].split()[0] == format_bytes(size, 1).split()[0]
            assert ("does not fit" in cells["memory"]) == (row["fits"] is False)
    _assert_bars(page, compared)
    for row in decision["rows"]:
        assert row in compared or f"{row['name']}: {row['why']}" in unescape(page)


def _assert_bars(page: str, rows: list[dict[str, Any]]) -> None:
    """The bars of the first row and of the chosen one share an axis, and their parts are compute and exposed time."""
    shown = [row for at, row in enumerate(rows) if not at or row["verdict"] == "chosen"]
    widths = [float(each) for each in re.findall(r'style="width:([\d.]+)%"', page)]
    if any(row["step_s"] is None or row["exposed_s"] is None for row in shown):
        assert not widths
        return
    longest = max(row["step_s"] for row in shown)
    parts = [100 * part / longest for row in shown for part in (row["step_s"] - row["exposed_s"], row["exposed_s"])]
    assert len(widths) == len(parts) and all(abs(one - other) < 0.01 for one, other in zip(widths, parts, strict=True))


def _text(cell: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", cell))
