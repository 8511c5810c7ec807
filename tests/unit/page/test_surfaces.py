"""Each command with `--report` writes one page, which prints the numbers of the object that it writes as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from printed_page import assert_page_prints
from test_viewer_browser import SCHEDULED

from hlorewrite.cli.main import guarded
from hlorewrite.page.run_page import RunReport
from hlorewrite.tune.choice import TuneChoice, TunedStep, TunePoint
from hlorewrite.tune.text import as_json, tuned_section, tuned_text

COMMANDS = ("exec", "opt", "audit", "tune", "timeline")


def test_the_flag_has_one_help(capsys: pytest.CaptureFixture[str]) -> None:
    said = set()
    for command in COMMANDS:
        assert guarded([command, "--help"]) == 0
        text = re.sub(r"\s+", " ", capsys.readouterr().out)
        said.add(re.search(r"--report FILE (also write.*?is standard error)", text)[1])  # pyright: ignore
    assert len(said) == 1


def test_timeline_prints_one_step_or_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, size in (("before", 16777216), ("after", 4194304)):
        (tmp_path / f"{name}.hlo").write_text(SCHEDULED.replace("16777216", str(size)))
    page, data = tmp_path / "page.html", tmp_path / "page.json"
    words = ["timeline", str(tmp_path / "after.hlo"), "--target=h200:1x8", f"--report={page}", f"--json={data}"]
    assert guarded(words) == 0
    made = json.loads(data.read_text())
    row, = made["decision"]["rows"]
    assert (row["step_s"], row["exposed_s"]) == (made["step_s"], made["exposed_s"])
    assert_page_prints(page.read_text(), made["decision"])
    assert "What is exposed, by collective" in page.read_text() and "f32[4194304]" in page.read_text()
    assert guarded([*words, f"--vs={tmp_path / 'before.hlo'}"]) == 0
    made, text = json.loads(data.read_text()), capsys.readouterr().out
    before, after = made["decision"]["rows"]
    assert before["why"] == "before" and after["why"] == "after" and after["step_s"] == made["step_s"]
    assert after["executed_bytes"] * 4 == before["executed_bytes"] and "before.hlo: 1 kernels" in text
    assert made["decision"]["saving"].startswith(f"{after['step_s'] / before['step_s']:.2f} of {tmp_path}/before.hlo's")
    assert_page_prints(page.read_text(), made["decision"])


def tuned() -> TunedStep:
    def point(passes: str, step_s: float | None, memory: int, **more: str) -> TunePoint:
        return TunePoint(TuneChoice(passes), step_s, None if step_s is None else step_s / 10, 1 << 20, memory << 30,
                         more.get("digest", passes), failed=more.get("failed", ""))
    return TunedStep((point("", 2.0, 10), point("comm", 1.0, 20), point("time", 1.5, 30),
                      point("a", 1.0, 20, digest="comm"), point("b", 0.5, 99),
                      point("c", None, 0, failed="XLA refuses it")), memory=50 << 30)


def test_tune_prints_its_choices_and_the_fastest_is_the_answer() -> None:
    made = as_json(tuned(), "h200:1x8")
    page = RunReport("t", (tuned_section(tuned(), "h200:1x8", "step.export"),), "", "", made).content("p.html")
    assert_page_prints(page, made)
    assert made["saving"] == "0.50 of XLA alone's step: 1 s, not 2 s"
    assert [(row["verdict"], row["why"]) for row in made["rows"]] == [
        ("not better", "slower, in less memory"), ("chosen", ""), ("not better", "no better than comm"),
        ("not compared", "it compiles to the same program as another choice"),
        ("not better", "it takes more memory than there is"), ("not compared", "XLA refuses it")]
    assert 'hlorewrite.optimize(step, passes=&quot;comm&quot;' in page and "does not fit" in page
    assert "slower, in less memory" in page and tuned_text(tuned(), "h200:1x8").count("\n* ") == 3


def test_tune_without_an_answer_says_why() -> None:
    none = TunedStep((TunePoint(TuneChoice(""), failed="XLA refuses it"),))
    made = as_json(none, "h200:1x8")
    page = RunReport("t", (tuned_section(none, "h200:1x8", "step"),), "", "", made).content("p.html")
    assert 'class="answer"' not in page and "No choice was measured." in page and "XLA alone: XLA refuses it" in page


def test_the_ending_of_the_name_chooses_the_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = RunReport("t", (), "f", "as text\n", {"modules": []}, "nothing")
    for name in ("a.html", "a.json", "a.txt"):
        report.write(str(tmp_path / name))
    report.write("-")
    assert "nothing" in (tmp_path / "a.html").read_text()
    assert json.loads((tmp_path / "a.json").read_text()) == report.data
    assert (tmp_path / "a.txt").read_text() == "as text\n" and capsys.readouterr() == ("", "as text\n")
