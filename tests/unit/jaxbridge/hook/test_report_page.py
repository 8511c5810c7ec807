"""The page of `exec --report`: the answer first, one set of figures, causes once, nothing that runs."""

from __future__ import annotations

import re

from hlorewrite.jaxbridge.baseline.comparison import WayRow, XlaComparison
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.hook.records import CompiledStep, records_table, steps_report
from hlorewrite.jaxbridge.step.report import RewriteReport, with_exposed
from hlorewrite.rules.listener import Remark

GIB = 1 << 30
EXPOSED_AT = {"train.py:9:1": 2e-3, "train.py:30:1": 8e-3}


def measured(step_s: float, exposed_s: float, calls: int) -> Measured:
    return Measured(calls, calls << 20, calls << 21, GIB, 0.1, "", step_s=step_s, counted_s=step_s, exposed_s=exposed_s,
                    exposed_at=EXPOSED_AT, memory=40 * GIB, capacity=141 * GIB)


def step(against: str = "", *remarks: Remark) -> CompiledStep:
    alone, ours = measured(0.2, 0.05, 64), measured(0.16, 0.01, 8)
    rows = (WayRow("XLA alone", alone), WayRow("time", ours, against),
            WayRow("comm, unfused", None, "no shorter <step>"))
    comparison = XlaComparison("8 x NVIDIA H200", alone, ours, "", against, with_code=False, name="time", tried=rows)
    report = RewriteReport("auto", True, False, (), (), with_exposed(remarks, EXPOSED_AT), 1, "", comparison=comparison)
    return CompiledStep("jit_train_step", "unchanged" if against else "rewritten", "", 1.0, report)


def page_of(*steps: CompiledStep) -> str:
    return steps_report(steps, "auto").content("page.html")


def test_the_answer_comes_first_and_its_figures_are_those_of_the_table() -> None:
    page, table = page_of(step()), records_table([step()])
    assert page.index('<p class="answer">0.80 of XLA alone&#x27;s step: 160 ms, not 200 ms</p>') < page.index("<table")
    assert "200 ms -> 160 ms" in table and "64 -> 8" in table and "64.0 MiB -> 8.0 MiB" in table
    assert re.search(r'class="chosen"><th scope="row">time</th><td class="number">160 ms</td><td class="number">10 ms'
                     r'</td><td class="number">8</td><td class="number">8.0 MiB</td>', page)
    assert "200 ms, of which 50 ms exposed" in page and "160 ms, of which 10 ms exposed" in page
    assert "40.0 of 126.9 GiB" in page or re.search(r"40\.0 of 1\d\d\.\d GiB", page)
    assert "comm, unfused: no shorter &lt;step&gt;" in page


def test_bars_share_one_axis() -> None:
    widths = [float(each) for each in re.findall(r"width:([\d.]+)%\"", page_of(step()))]
    assert widths == [75.0, 25.0, 75.0, 5.0]


def test_where_xla_alone_is_compiled_nothing_is_claimed() -> None:
    page = page_of(step("time is no shorter"))
    assert 'class="answer"' not in page and "Your own module is compiled: time is no shorter." in page
    assert re.search(r'class="chosen"><th scope="row">XLA alone</th>', page)


def test_causes_are_listed_once_and_what_exposes_most_comes_first() -> None:
    few = Remark("missed", "comm-shift", "it is <read>", "train.py:9:1", advice="do this & that")
    many = [Remark("blocked", "comm-shift", "tanh is not linear", f"train.py:{line}:1") for line in (30, 31, 32, 33)]
    done = Remark("applied", "all-reduce-fusion", "fused 2", "train.py:50:1")
    page = page_of(step("", done, few, *many))
    assert "What stays, and why: 5 remarks of 2 causes" in page and "What was done: 1 remark<" in page
    assert page.index("tanh is not linear") < page.index("it is &lt;read&gt;") < page.index("fused 2")
    assert page.count("tanh is not linear") == 1 and "the same at 3 more" in page
    assert "<td>8 ms</td>" in page and "do this &amp; that" in page


def test_several_modules_have_contents_that_lead_to_them() -> None:
    page = page_of(step(), step("time is no shorter"))
    assert re.findall(r'href="#(\w+)"', page) == re.findall(r'<h2 id="(\w+)"', page) == ["m0", "m1"]
    assert "not 200 ms</li>" in page and "your own module is compiled</li>" in page


def test_nothing_is_loaded_and_nothing_runs() -> None:
    page = page_of(step())
    assert "default-src 'none'" in page and not re.search(r"<script|src=|url\(|http", page.replace("http-equiv", ""))
