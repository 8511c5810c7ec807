"""Expected diagnostics, reproducers, parts of files, diffs, remarks, statistics, traces."""

from __future__ import annotations

import json

import pytest

from hlorewrite.cli.opt.job import split_text
from hlorewrite.errors import InputError, OutputError, UsageError
from hlorewrite.passmanager.changes import module_diff
from hlorewrite.passmanager.expected import Message, expectations, mismatches
from hlorewrite.passmanager.manager import Timings
from hlorewrite.passmanager.reports import (
    RemarkSink,
    StatisticsSink,
    parse_kinds,
    statistics_json,
    statistics_text,
    timing_json,
    timing_text,
)
from hlorewrite.passmanager.reproducer import Reproducer, read_reproducer
from hlorewrite.passmanager.trace.writer import TraceWriter
from hlorewrite.rules.listener import Remark, RewriteRecord, RuleStatistics

SOURCE = """\
// expected-error@+1 {{one}}
a
b // expected-warning {{two}}
// expected-remark@above {{three}}
// expected-note@below {{four}}
// expected-error@below {{five}}
c
// expected-error@unknown {{six}}
// expected-error-re@-2 {{s{{e+}}ven (7)}}
"""


def test_designators_of_expected_diagnostics() -> None:
    """Relative lines, above, below, unknown."""
    assert [(e.severity, e.line, e.text) for e in expectations(SOURCE)] == [
        ("error", 2, "one"), ("warning", 3, "two"), ("remark", 3, "three"), ("note", 7, "four"), ("error", 7, "five"),
        ("error", None, "six"), ("error", 7, "s{{e+}}ven (7)")]
    assert expectations(SOURCE, first_line=11)[0].line == 12


def test_diagnostics_that_match() -> None:
    """A part of the message is enough; each comment takes one diagnostic."""
    came = [Message("error", 2, "this one here"), Message("warning", 3, "two"), Message("remark", 3, "three"),
            Message("note", 7, "four"), Message("error", 7, "five"), Message("error", None, "six"),
            Message("error", 7, "seeeven (7)")]
    assert mismatches("f", expectations(SOURCE), came) == []


@pytest.mark.parametrize(("came", "lines"), [
    ([], ['f:1: expected error "no" was not produced']),
    ([Message("error", 2, "no")] * 2, ["f:2: unexpected error: no"]),
    ([Message("warning", 2, "no")], ["f:2: unexpected warning: no", 'f:1: expected error "no" was not produced']),
    ([Message("error", 3, "no")], ["f:3: unexpected error: no", 'f:1: expected error "no" was not produced']),
    ([Message("error", None, "no")], ["f:?: unexpected error: no", 'f:1: expected error "no" was not produced']),
    ([Message("error", 2, "no"), Message("note", 5, "see here")], []),
])
def test_diagnostics_that_do_not_match(came: list[Message], lines: list[str]) -> None:
    """Wrong severity, wrong line, twice, none; notes may come unexpected."""
    assert mismatches("f", expectations("// expected-error@+1 {{no}}\nx\n"), came) == lines


def test_reproducer_round_trip() -> None:
    """Pipeline with quotes and backslashes; the module's lines keep their numbers."""
    pipeline = 'rules{files="a b.hlopat" only="x\\\\y"},cse'
    text = Reproducer("module {\n}\n", pipeline, ("--ignore-cost", "--topology=h200")).text()
    reproducer = read_reproducer(text, "r.mlir")
    assert reproducer.pipeline == f"builtin.module({pipeline})"
    assert reproducer.options == ("--ignore-cost", "--topology=h200")
    assert reproducer.module.split("\n")[2:4] == ["module {", "}"]
    assert "reproducer" not in reproducer.module.split("}")[-1]


def test_files_without_reproducer() -> None:
    """And ones with options that could do anything."""
    with pytest.raises(InputError, match="contains no mlir_reproducer"):
        read_reproducer("module {}", "a.mlir")
    with pytest.raises(UsageError, match="unknown reproducer option"):
        read_reproducer(Reproducer("module {}", "cse", ("--output=/etc/x",)).text(), "a.mlir")


def test_split() -> None:
    """Only whole separator lines split; each part stores its first line."""
    assert split_text("a\n// -----\nb // -----\n // ----- \nc") == [(1, "a\n"), (3, "b // -----\n"), (5, "c")]


def test_diff_sets_names_aside() -> None:
    """Renumbered lines are context; an unchanged module has no diff."""
    assert module_diff("%0 = a\n", "%7 = a\n", "f") == ""
    shown = module_diff("%0 = a %x\n%1 = b %0\n", "%0 = a %x\n%1 = a %x\n%2 = b %1\n", "f")
    assert "+%1 = a %x" in shown or "+%0 = a %x" in shown
    assert "-%" not in shown


def remark(kind: str, sentence: str) -> Remark:
    """A remark of rule r."""
    return Remark(kind, "r", sentence, "t.py:1:2", culprit="negate", culprit_location="t.py:3:4")  # type: ignore


def test_remarks_are_chosen_by_kind() -> None:
    """Each once; as text and as JSON lines."""
    sink = RemarkSink(parse_kinds("json,blocked,missed")[0])
    for kind in ("applied", "blocked", "blocked", "missed"):
        sink.remark(remark(kind, f"is {kind}"))
    assert sink.wants_missed
    assert sink.text() == ("t.py:1:2: remark: blocked: r: is blocked (see t.py:3:4: negate)\n"
                           "t.py:1:2: remark: missed: r: is missed (see t.py:3:4: negate)\n")
    assert [json.loads(line)["kind"] for line in sink.json_lines().splitlines()] == ["blocked", "missed"]
    assert "missed" not in parse_kinds("text")[0] and "missed" in parse_kinds("all")[0]
    with pytest.raises(UsageError, match='unknown word "blokced"; did you mean "blocked"'):
        parse_kinds("blokced")


def test_remarks_of_one_cause_are_printed_as_one() -> None:
    """Twelve layers have one reason; what differs in the sentence is only where the op at fault stands."""
    sink = RemarkSink(("blocked", "unprofitable"))
    for line in range(12):
        sink.remark(Remark("blocked", "comm-shift", f"tanh at t.py:{line}:9 is not linear", f"t.py:{line}:1",
                           parameter=f"p[{line}]"))
    for line in range(2):
        sink.remark(Remark("unprofitable", "fuse", "too small", f"t.py:{line}:1"))
    assert sink.text() == (
        "t.py:0:1: remark: blocked: comm-shift: tanh at t.py:0:9 is not linear [p[0]]\n"
        "  the same at t.py:1:1 [p[1]], t.py:2:1 [p[2]], t.py:3:1 [p[3]] and 8 other places\n"
        "t.py:0:1: remark: unprofitable: fuse: too small\n"
        "t.py:1:1: remark: unprofitable: fuse: too small\n")
    assert len(sink.json_lines().splitlines()) == 14


def test_statistics_add_up() -> None:
    """Over passes; rules that never matched are shown too."""
    sink = StatisticsSink()
    one = RuleStatistics("r", "a.hlopat:3", 10, 2, 1, 1, 0, 0.5)
    sink.statistics((one, RuleStatistics("s", "a.hlopat:9")))
    sink.statistics((one,))
    shown = statistics_text(sink, {("p", "calls inlined"): 4})
    assert shown.splitlines()[1].split() == ["r", "2", "20", "4", "2", "0", "1.0", "a.hlopat:3"]
    assert shown.splitlines()[2].split()[:2] == ["s", "0"]
    data = json.loads(statistics_json(sink, {("p", "calls inlined"): 4}))
    assert data["rules"][0]["tried"] == 20 and data["counters"] == [{"pass": "p", "what": "calls inlined", "count": 4}]
    assert statistics_text(StatisticsSink(), {}) == "no rule ran and no pass counted anything\n"
    assert json.loads(timing_json(Timings([("cse", 0.25)])))["total_milliseconds"] == 250.0
    assert timing_text(Timings([("cse", 0.25)])) == "step      ms      %\ncse    250.0  100.0\ntotal  250.0  100.0\n"


def test_traces_show_everything_up_to_a_failure(tmp_path) -> None:
    """One JSON line a rewrite, the error last."""
    trace = TraceWriter(str(tmp_path / "deep" / "trace"))
    trace.rewrite(RewriteRecord(0, "r", "a.hlopat:3", "t.py:1:2", "%a = x", "%b = y", 0.1))
    trace.failed(InputError("no"))
    trace.close()
    lines = [json.loads(line) for line in (tmp_path / "deep" / "trace" / "rewrites.jsonl").read_text().splitlines()]
    assert lines[0]["before"] == "%a = x" and lines[0]["after"] == "%b = y" and lines[1]["error"] == "no"
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="trace cannot be written"):
        TraceWriter(str(tmp_path / "file"))
