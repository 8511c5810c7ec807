"""What each pass changed, for the page of a run: rewrites and a diff, both cut to size, and what is cut is counted."""

from __future__ import annotations

import pytest
from view_samples import STEP

from hlorewrite.ir import parse
from hlorewrite.jaxbridge.step.report import ChangesOnDemand
from hlorewrite.page.run_page import changes_html
from hlorewrite.passmanager import changes
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.changes import ChangeRecorder, CutText, PassChange
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline


def recorded(pipeline: str) -> list[PassChange]:
    recorder = ChangeRecorder()
    run_passes(parse(STEP), parse_pipeline(pipeline), PassContext((recorder,)), observers=(recorder,))
    return recorder.changes


def test_a_pass_that_changes_something_has_a_diff_and_its_rewrites_and_one_that_does_not_is_left_out() -> None:
    change, = recorded("collective-cse,comm-shift,collective-cse")
    signs = [line[:1] for line in change.diff.lines]
    assert (signs.count("-"), signs.count("+")) == (change.removed, change.added) and change.removed
    assert change.diff.lines[0].startswith("@@") and any("all_reduce" in line for line in change.diff.lines)
    rewrite, = change.rewrites
    assert (rewrite.rule, rewrite.location) == ("comm-shift", "train.py:31:7")
    assert "8 times" in rewrite.before.lines[0] and "outside loops" in rewrite.after.lines[0]
    page = changes_html([change])
    assert f"1 rewrite, {change.removed} lines removed, {change.added} added" in page and page.count("<pre>") == 2


def test_what_is_cut_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, = recorded("comm-shift")
    monkeypatch.setattr(changes, "MOST_LINES", 3)
    change, = recorded("comm-shift")
    assert (len(change.diff.lines), change.removed, change.added) == (3, whole.removed, whole.added)
    assert f"{len(whole.diff.lines) - 3} more lines" in changes_html([change])
    monkeypatch.setattr(changes, "MOST_REWRITES", 0)
    change, = recorded("comm-shift")
    assert (change.rewrites, change.left_out) == ((), 1) and "1 more rewrite" in changes_html([change])
    monkeypatch.setattr(changes, "MOST_COMPARED", 5)
    change, = recorded("comm-shift")
    assert not change.diff.lines and "more than 5 lines" in changes_html([change])


def test_nothing_of_a_module_is_markup() -> None:
    page = changes_html([PassChange("p<q>", (), 0, CutText(("-<a>",)), 1, 0)])
    assert "<a>" not in page and "p&lt;q&gt;" in page and changes_html([]) == ""


def test_a_pass_that_fails_when_the_page_is_written_costs_the_page_nothing() -> None:
    found = ChangesOnDemand(STEP.encode(), "step", tuple(parse_pipeline("comm-shift")), topology="h300:1x8").found
    page = changes_html(found)
    assert "<code>comm-shift</code>" in page and "h300" in page
