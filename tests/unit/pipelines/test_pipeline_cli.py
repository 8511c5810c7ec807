"""``hlorewrite pipeline``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlorewrite.cli.main import guarded

BASE = ["pipeline", "simulate", "--stages", "4", "--microbatches", "8", "--fwd", "1ms", "--bwd", "2ms"]
SHAPE = ["--act-bytes", "64MB", "--grad-bytes", "1GB", "--meshes", "(8x1),(4x2),(4x2),(4x2)", "--topology", "tsubame4"]


def figures(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    """The JSON of a run."""
    assert guarded([*BASE, *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_begins_with_the_iteration_time(capsys: pytest.CaptureFixture[str]) -> None:
    eager = figures(capsys, "--schedule", "eager-1f1b")
    assert next(iter(eager.items())) == ("iteration_time_s", pytest.approx(0.033))
    assert eager["bubble_ratio"] == pytest.approx(3 / 11)
    assert [stage["peak_microbatches"] for stage in eager["per_stage"]] == [7, 5, 3, 1]


def test_comm_shift_shortens_the_iteration(capsys: pytest.CaptureFixture[str]) -> None:
    off = figures(capsys, *SHAPE, "--comm-shift", "off")
    on = figures(capsys, *SHAPE, "--comm-shift", "on")
    assert on["iteration_time_s"] < off["iteration_time_s"]
    assert on["communication_s"] == pytest.approx(off["communication_s"])


def test_text_has_a_line_for_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded([*BASE, *SHAPE, "--overlap", "off"]) == 0
    out = capsys.readouterr().out
    assert "transfers blocking" in out and "exposed communication" in out
    assert [line.split()[0] for line in out.splitlines()[-4:]] == ["0", "1", "2", "3"]


def test_says_which_stages_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded([*BASE, *SHAPE, "--static-bytes", "90GB,10GB,95GB,10GB", "--live-bytes", "4GB"]) == 0
    assert "a GPU of tsubame4 has 93.60 GiB, less than stages 0, 2 need\n" in capsys.readouterr().out
    assert guarded([*BASE, *SHAPE]) == 0
    assert "does not fit" not in capsys.readouterr().out


def test_values_for_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded([*BASE[:5], "1", "--stages", "2", "--fwd", "1ms,2ms", "--bwd", "3ms,4ms", "--microbatches", "1",
                    "--update", "1ms", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iteration_time_s"] == pytest.approx(0.011)


def test_writes_chart_and_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the viz extra")
    chart, trace = tmp_path / "a.svg", tmp_path / "a.json"
    assert guarded([*BASE, "--schedule", "zb-h2", "--gantt", str(chart), "--trace", str(trace)]) == 0
    assert chart.read_text().startswith("<?xml")
    assert {event["ph"] for event in json.loads(trace.read_text())["traceEvents"]} == {"M", "X"}


def test_table_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "mine.txt"
    table.write_text("F0 F1 B0 B1\nF0 B0 F1 B1\n")
    assert guarded(["pipeline", "simulate", "--table", str(table), "--fwd", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iteration_time_s"] == 9.0
    table.write_text("F0 B0 F1 B1\nF1 B1 F0 B0\n")
    assert guarded(["pipeline", "simulate", "--table", str(table), "--fwd", "1"]) == 1
    assert "deadlocks: the backward of micro-batch 0 on stage 0" in capsys.readouterr().err


def test_lists_schedules(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["pipeline", "schedules", "--json"]) == 0
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} >= {"gpipe", "1f1b", "zb-h1", "dualpipe-v"}
    assert guarded(["pipeline", "schedules"]) == 0
    assert "eager-1f1b" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "code", "message"), [
    ([*BASE, "--schedule", "1f2b"], 2, 'there is no schedule "1f2b"; did you mean "1f1b"?'),
    ([*BASE, "--schedule", "interleaved-1f1b", "--microbatches", "6"], 1, "do not fit interleaving"),
    ([*BASE, "--schedule", "dualpipe-v", "--microbatches", "7"], 1, "needs 8 micro-batches"),
    ([*BASE, "--meshes", "(8x1),(4x)"], 2, 'mesh of stage 1: "(4x)" is not a mesh'),
    ([*BASE, "--meshes", "(8x1),(8x1)"], 2, "2 meshes for 4 stages"),
    ([*BASE, "--fwd=-1ms"], 2, "--fwd: a time of -1ms; times are not negative"),
    ([*BASE, "--bwd", "1ms,2ms,x,1ms"], 2, '--bwd, stage 2: "x" is not a time'),
    ([*BASE, "--bwd", "1ms,2ms"], 2, "--bwd: 2 values for 4 stages"),
    ([*BASE, "--act-bytes", "1GiB"], 2, "without a topology"),
    ([*BASE, *SHAPE, "--topology", "tsubame4:2x4"], 2, "the meshes need 32 GPUs"),
    ([*BASE, *SHAPE, "--transfer", "brodcast"], 2, 'did you mean "broadcast"?'),
    ([*BASE, "--max-live", "3"], 1, "the forward of micro-batch 3 on stage 0 makes 4 micro-batches alive"),
    ([*BASE, "--schedule", "custom"], 2, "add --table FILE"),
    ([*BASE, "--table", "nowhere.txt"], 2, "nowhere.txt: cannot read"),
    ([*BASE, "--gantt", "a.gif"], 2, "neither PNG nor SVG"),
    ([*BASE, "--stages", "0"], 2, "a pipeline of 0 stages"),
    (["pipeline", "simulate", "--fwd", "1"], 2, "add --stages"),
    (["pipeline", "simulate", "--stages", "4", "--fwd", "1"], 2, "add --microbatches"),
    (["pipeline", "simulate", "--stages", "4", "--microbatches", "8"], 2, "add --fwd"),
    (["pipeline", "simulat"], 2, 'did you mean "simulate"?'),
    ([*BASE, "--bwd-weight", "3ms"], 2, "a weight gradient of 0.003 s, longer than its backward pass of 0.002 s"),
])
def test_mistakes_are_one_line(words: list[str], code: int, message: str,
                               capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(words) == code
    out, err = capsys.readouterr()
    assert message in err and err.count("\n") == 1 and not out
