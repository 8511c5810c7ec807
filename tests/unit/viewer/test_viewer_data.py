"""From a trace to what the page shows: reading what is damaged, fates, traffic, timelines, the page as one file."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from view_samples import STEP, content, simulated, traced

from hlorewrite.cli.main import guarded
from hlorewrite.errors import InputError, UsageError
from hlorewrite.page.decision import decision_html
from hlorewrite.viewer.model import MOST_CELLS, MOST_HELD, page_data, traffic_of
from hlorewrite.viewer.outcomes import Side, outcomes_of, side_of
from hlorewrite.viewer.page import ASSETS, MAIN, bundle, render
from hlorewrite.viewer.reading import read_trace
from hlorewrite.viewer.serve import server_for
from hlorewrite.viewer.timeline import MOST_TRACKS, timeline_of

# ---- reading


def test_a_whole_trace_has_nothing_missing(tmp_path: Path) -> None:
    """No note where nothing is wrong."""
    trace = read_trace(str(traced(tmp_path)))
    assert trace.notes == [] and len(trace.lines["rewrites.jsonl"]) == 1


@pytest.mark.parametrize("name", ["before.json", "after.json", "rewrites.jsonl", "remarks.jsonl", "timing.json",
                                  "rules.json", "manifest.json"])
def test_a_missing_file_is_named_and_the_rest_is_shown(tmp_path: Path, name: str) -> None:
    """Each file alone."""
    run = traced(tmp_path)
    (run / name).unlink()
    data = page_data(read_trace(str(run)))
    assert any(name in note for note in data["head"]["notes"])
    assert render(data, "x").startswith(b"<!doctype html>") and len(data) > 1


@pytest.mark.parametrize("name", ["manifest.json", "before.json", "after.json", "timing.json", "rules.json"])
@pytest.mark.parametrize("text", ['{"version": 1, "coll', "[1, 2]", "", "\x00\xff", "[" * 100_000])
def test_a_damaged_file_is_named_and_the_rest_is_shown(tmp_path: Path, name: str, text: str) -> None:
    """Cut short, of another type, empty, binary, or nested without end."""
    run = traced(tmp_path)
    (run / name).write_bytes(text.encode("latin-1"))
    data = page_data(read_trace(str(run)))
    assert any(note.startswith(name) for note in data["head"]["notes"])
    render(data, "x")


def test_half_a_line_is_left_out(tmp_path: Path) -> None:
    """A run that was killed while it wrote."""
    run = traced(tmp_path)
    text = (run / "rewrites.jsonl").read_text()
    (run / "rewrites.jsonl").write_text(text + text[:40])
    trace = read_trace(str(run))
    assert len(trace.lines["rewrites.jsonl"]) == 1
    assert trace.notes == ["rewrites.jsonl: line 2 cut short or damaged, and left out."]


def test_another_version_and_an_unfinished_run_are_told(tmp_path: Path) -> None:
    """What is understood is shown all the same."""
    run = traced(tmp_path)
    manifest = content(run, "manifest.json")
    (run / "manifest.json").write_text(json.dumps(manifest | {"version": 7, "complete": False}))
    data = page_data(read_trace(str(run)))
    assert "format version 7" in data["head"]["notes"][0] and "did not finish" in data["head"]["notes"][1]
    assert data["collectives"]["fates"]
    (run / "manifest.json").write_text(json.dumps(manifest | {"complete": False, "error": "a pass failed"}))
    assert read_trace(str(run)).notes == ["The run failed: a pass failed"]


def test_nonsense_in_right_places_is_counted(tmp_path: Path) -> None:
    """Values of other types than the format says."""
    run = traced(tmp_path)
    report = content(run, "before.json")
    report["collectives"] += [{"kind": 3}, {"kind": "all-reduce", "groups": 99, "payload_bytes": 1}, "x",
                              dict(report["collectives"][0], nest=-7, axes="data", time_s=float("nan"), trips=True)]
    report["nests"] += [{"parent": 44, "trips": "many"}, 5]
    (run / "before.json").write_text(json.dumps(report))
    (run / "timing.json").write_text('{"steps": [{"step": 3}, 4], "passes": 5, "rules": [6]}')
    (run / "remarks.jsonl").write_text('{"location": 3, "kind": []}\n{"op": 5}\n')
    data = page_data(read_trace(str(run)))
    assert any("2 collectives are damaged" in note for note in data["head"]["notes"])
    page = render(data, "x").decode()
    assert "NaN" not in page.partition('id="data-head"')[2].partition("</script>")[0]


def test_the_decision_of_a_run_comes_first_and_only_its_texts_and_numbers_are_believed(tmp_path: Path) -> None:
    """A run that compared nothing has none; a damaged one is shown as far as it is whole."""
    run = traced(tmp_path)
    assert page_data(read_trace(str(run)))["head"]["decision"] is None
    alone = {"name": "XLA alone", "step_s": 0.2, "exposed_s": 0.05, "calls": 64, "executed_bytes": 1 << 26,
             "wire_bytes": 1 << 27, "temp_bytes": 5, "memory_bytes": 9, "room_bytes": 8, "fits": False,
             "verdict": "not better", "why": ""}
    made = {"devices": "h200:1x8", "chosen": "time", "reason": "because", "saving": "0.80 of it", "rows": [
        alone, {"name": "time", "step_s": float("nan"), "calls": True, "executed_bytes": "many", "why": "<b>",
                "verdict": "chosen", "memory_bytes": float("inf")}, 7]}
    (run / "decision.json").write_text(json.dumps(made))
    data = page_data(read_trace(str(run)))
    decision = data["head"]["decision"]
    assert [decision[name] for name in ("devices", "chosen", "reason", "saving")] == ["h200:1x8", "time", "because",
                                                                                     "0.80 of it"]
    assert decision["rows"][0] == alone
    assert decision["rows"][1] == {"name": "time", "verdict": "chosen", "why": "<b>", "fits": None} | dict.fromkeys(
        ("step_s", "exposed_s", "calls", "executed_bytes", "wire_bytes", "temp_bytes", "memory_bytes", "room_bytes"))
    page = render(data, "x").decode()
    assert len(decision["rows"]) == 2 and "<b>" not in page and decision_html(decision) in page
    (run / "decision.json").write_text('{"rows": 5}')
    assert page_data(read_trace(str(run)))["head"]["decision"] is None


def test_what_is_no_trace_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit codes as everywhere."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no trace")
    for name, words in (("nowhere", "no such file"), ("empty", "is not a trace"), ("text", "is not a trace")):
        assert guarded(["view", str(tmp_path / name)]) == 2
        told = capsys.readouterr().err
        assert words in told and told.count("\n") == 1
    assert guarded(["view", "x", "--serve", "-o", "y"]) == 2
    assert guarded(["view", "x", "--port", "70000", "--serve"]) == 2


def test_a_folder_of_traces_opens_the_only_one(tmp_path: Path) -> None:
    """What the decorator writes."""
    (tmp_path / "runs").mkdir()
    traced(tmp_path).rename(tmp_path / "runs" / "step-1")
    assert read_trace(str(tmp_path / "runs")).manifest["pipeline"] == "comm-shift"
    traced(tmp_path).rename(tmp_path / "runs" / "step-2")
    with pytest.raises(UsageError, match="contains 2 traces: step-1, step-2"):
        read_trace(str(tmp_path / "runs"))


# ---- fates


def _side(*rows: dict[str, Any]) -> Side:
    whole = {"kind": "all-reduce", "source": "t.py:1:1", "groups": 0, "payload_bytes": 64, "trips": 1, "nest": -1}
    return side_of({"devices": 4, "groups": [[[0, 1, 2, 3]], [[0, 1], [2, 3]]],
                    "nests": [{"parent": -1, "op": "while", "source": "t.py:9:1", "trips": 8, "trips_known": True}],
                    "collectives": [whole | row for row in rows]})


IN_LOOP = {"nest": 0, "trips": 8}


def test_fates_tell_moved_from_fused_from_replaced_from_removed() -> None:
    """Each kind of fate, from the collectives alone."""
    def fates(before: Side, after: Side) -> list[tuple[str, int | None, tuple[int, ...]]]:
        return [(fate.fate, fate.before, fate.after) for fate in outcomes_of(before, after, [])]

    one, other = _side(IN_LOOP), _side({})
    assert fates(one, one) == [("stays", 0, (0,))]
    assert fates(one, other) == [("moved", 0, (0,))]
    assert fates(one, _side()) == [("removed", 0, ())] and fates(_side(), one) == [("new", None, (0,))]
    two = _side({"source": "a.py:1:1"}, {"source": "a.py:2:1", "payload_bytes": 32})
    assert fates(two, _side({"source": "a.py:1:1", "payload_bytes": 96})) == [("fused", 0, (0,)), ("fused", 1, (0,))]
    scatter = _side({"kind": "reduce-scatter"})
    assert fates(other, scatter) == [("replaced", 0, (0,))]
    # Groups count: the same line over other devices is another collective.
    assert fates(other, _side({"groups": 1})) == [("replaced", 0, (0,))]


def test_equal_collectives_are_paired_in_the_order_of_the_program() -> None:
    """One of three equal ones left the loop."""
    before, after = _side(IN_LOOP, IN_LOOP, IN_LOOP), _side({}, IN_LOOP, IN_LOOP)
    pairs = [(fate.fate, fate.before, fate.after) for fate in outcomes_of(before, after, [])]
    assert pairs == [("stays", 0, (1,)), ("stays", 1, (2,)), ("moved", 2, (0,))]


def test_reasons_fit_the_fate_and_the_collective() -> None:
    """Of remarks about one line those that name the payload; of a stay the most important first."""
    before = _side(IN_LOOP, IN_LOOP | {"payload_bytes": 4096}, IN_LOOP | {"source": "t.py:5:5"}, {"source": "t.py:6:6"})
    after = _side({}, {"payload_bytes": 4096}, IN_LOOP | {"source": "t.py:5:5"}, {"source": "t.py:6:6"})

    def remark(kind: str, sentence: str, line: str, **more: str) -> dict[str, Any]:
        return {"kind": kind, "rule": "r", "sentence": sentence, "location": line, "op": "stablehlo.all_reduce"} | more

    said = [remark("applied", "8× 64 bytes before", "t.py:1:1"), remark("applied", "8× 4096 bytes before", "t.py:1:1"),
            remark("missed", "its result is read", "t.py:5:5", rule_location="a.hlopat:3"),
            remark("blocked", "it would be wrong", "t.py:5:5"), remark("blocked", "it would be wrong", "t.py:5:5"),
            remark("blocked", "another op's", "t.py:5:5", op="stablehlo.all_gather")]
    why = [[reason["sentence"] for reason in fate.why] for fate in outcomes_of(before, after, said)]
    assert why[:3] == [["8× 64 bytes before"], ["8× 4096 bytes before"], ["it would be wrong", "its result is read"]]
    assert "runs once" in why[3][0]


def test_the_sample_has_the_fates_its_passes_told(tmp_path: Path) -> None:
    """End to end."""
    data = page_data(read_trace(str(traced(tmp_path))))
    listed = data["collectives"]
    told = {listed["names"][fate]: listed["strings"][why[0][2]] for fate, _, _, _, why in listed["fates"]}
    assert told["moved"] == "reduced where its result is needed: 8× 4096 bytes before, 1× 4096 bytes now"
    assert told["stays"] == ("stablehlo.tanh at train.py:36:7 needs the reduced value in the loop: "
                             "stablehlo.tanh is not linear")
    assert data["head"]["fates"] == {"moved": 1, "stays": 1}


def test_another_topology_predicts_anew(tmp_path: Path) -> None:
    """Also for a run that named none."""
    from hlorewrite.cost import topology
    trace = read_trace(str(traced(tmp_path)))
    assert page_data(trace)["head"]["sides"][0]["time_s"] is None
    data = page_data(trace, topology("h200:1x8"))
    assert data["head"]["sides"][0]["time_s"] > data["head"]["sides"][1]["time_s"] > 0
    assert data["head"]["topology"] == "h200:1x8"
    small = page_data(trace, topology("h200:1x2"))
    assert small["head"]["sides"][0]["time_s"] is None and "fewer GPUs" in small["head"]["notes"][0]


# ---- traffic, loops, timelines


def test_traffic_is_that_of_the_cost_model_and_merges_neighbours() -> None:
    """Rings in group order; many devices share rows, and no byte is lost."""
    before = _side(IN_LOOP)
    traffic = traffic_of(before, _side({}))
    assert traffic is not None
    assert sorted(traffic["before"]) == [[0, 1, 768], [1, 2, 768], [2, 3, 768], [3, 0, 768]]
    assert traffic["classes"] == [{"kind": "all-reduce", "axes": [], "groups": [[0, 1, 2, 3]], "bytes": [512, 64],
                                   "calls": [8, 1]}]
    devices = 4 * MOST_CELLS
    wide = side_of({"devices": devices, "groups": [[list(range(devices))]], "collectives": [
        {"kind": "all-to-all", "groups": 0, "payload_bytes": devices, "trips": 1, "source": "t.py:1:1"}]})
    merged = traffic_of(wide, wide)
    assert merged is not None and merged["step"] == 4
    assert sum(size for _, _, size in merged["before"]) == devices * (devices - 1)
    assert traffic_of(_side(), _side()) is None


def test_loops_name_the_largest_and_add_up_the_others() -> None:
    """A page must not grow with the module."""
    rows = [{"source": f"t.py:{line}:1", "payload_bytes": line} for line in range(1, MOST_HELD + 11)]
    from hlorewrite.viewer.model import _nests
    nests = _nests(_side(*rows))
    assert len(nests["held"]) == MOST_HELD and nests["held"][0][2] == f"t.py:{MOST_HELD + 10}:1"
    assert nests["rest"] == [[-1, 10, sum(range(1, 11))]]


def test_timelines_have_rows_kinds_links_and_memory(tmp_path: Path) -> None:
    """Of the simulator's own trace."""
    events = content(simulated(tmp_path), "timeline.json")["traceEvents"]
    timeline, notes = timeline_of(events)
    assert timeline is not None and notes == []
    assert [track["name"] for track in timeline["tracks"]] == ["stage 0", "stage 1", "stage 2"]
    kinds = {timeline["strings"][number] for number in timeline["spans"]["kind"]}
    assert kinds == {"forward", "backward", "send", "all-reduce"}
    assert len(timeline["links"]) == 2 * 2 * 4  # two boundaries, both ways, four micro-batches
    spans = timeline["spans"]
    for send, task in timeline["links"]:
        assert spans["start"][task] >= spans["start"][send] + spans["length"][send] - 1e-2
        assert spans["batch"][send] == spans["batch"][task]
    assert {counter["name"] for counter in timeline["counters"]} == {"memory"}


def test_timelines_take_what_others_write() -> None:
    """Other names, no facts, damaged events."""
    timeline, notes = timeline_of([{"ph": "X", "ts": 5, "dur": 2, "pid": "b", "tid": 1, "name": "x"}, "y", {"ph": "X"},
                                   {"ph": "X", "ts": 1, "dur": 2, "pid": 7, "tid": None, "args": [1]},
                                   {"ph": "C", "pid": 7, "ts": 1, "name": "heap", "args": {"bytes": 9}}])
    assert timeline is not None and notes == []
    assert [track["name"] for track in timeline["tracks"]] == ["process 7", "process b"]
    assert timeline["counters"] == [{"track": 0, "name": "heap", "points": [[1.0, 9]]}] and timeline["links"] == []
    many = [{"ph": "X", "ts": 0, "dur": 1, "pid": pid, "tid": 0} for pid in range(MOST_TRACKS + 3)]
    cut, notes = timeline_of(many)
    assert cut is not None and len(cut["tracks"]) == MOST_TRACKS and "131 meshes" in notes[0]
    assert timeline_of([]) == (None, []) and timeline_of([{"ph": "M"}])[0] is None


# ---- the page


def test_data_cannot_end_its_element(tmp_path: Path) -> None:
    """Whatever a program's locations hold."""
    evil = "</script><script>alert(1)</script><!--"
    run = traced(tmp_path, STEP.replace("train.py", evil))
    page = render(page_data(read_trace(str(run))), evil).decode()
    assert page.count("alert(1)") == page.count("&lt;script&gt;alert(1)") + page.count("\\u003cscript>alert(1)")
    assert page.count("</script>") == page.count("<script")


def test_the_script_is_one_module_without_imports_and_names_are_unique() -> None:
    """All files share one scope."""
    script = bundle(MAIN)
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert {name[8:] for name in re.findall(r"^// ---- \S+$", script, re.MULTILINE)} == {
        path.name for path in ASSETS.glob("*.js")}
    names = re.findall(r"^(?:async )?(?:function|const|class|let) (\w+)", script, re.MULTILINE)
    assert len(names) == len(set(names)) > 60


def test_pages_are_deterministic_and_hold_no_address(tmp_path: Path) -> None:
    """The same trace makes the same bytes; nothing refers to a network."""
    trace = str(traced(tmp_path))
    page = render(page_data(read_trace(trace)), "x")
    assert page == render(page_data(read_trace(trace)), "x")
    assert b"http:" not in page and b"https:" not in page and b"@import" not in page


def test_view_writes_beside_the_run_or_where_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command."""
    run = traced(tmp_path)
    assert guarded(["view", f"{run}/"]) == 0
    assert (tmp_path / "run.html").read_bytes().startswith(b"<!doctype html>")
    assert guarded(["view", str(run), "-o", str(tmp_path / "no" / "x.html")]) == 1
    capsys.readouterr()
    assert guarded(["view", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["head"]["fates"] == {"moved": 1, "stays": 1}


def test_serving_is_for_this_machine_and_who_has_the_token() -> None:
    """Loopback only; other paths, other names for this machine and requests without the token get nothing; a mistake
    is reported as text."""
    answers: list[Any] = [b"page", InputError("is gone", location="run")]

    def page() -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    server = server_for(page, "secret")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        host, port = server.server_address[:2]
        assert host == "127.0.0.1"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        assert opener.open(f"http://127.0.0.1:{port}/?token=secret").read() == b"page"
        assert opener.open(f"http://localhost:{port}/?x&token=secret").read() == b"run: is gone\n"
        for path, headers in (("other?token=secret", {}), ("", {}), ("?token=other", {}), ("?token=", {}),
                              *(("?token=secret", {"Host": each}) for each in (
                                  "evil.test", "127.0.0.1:80@evil", "127.0.0.1", f"localhost.evil.test:{port}"))):
            with pytest.raises(urllib.error.HTTPError):
                opener.open(urllib.request.Request(f"http://127.0.0.1:{port}/{path}", headers=headers))
    finally:
        server.shutdown()
        server.server_close()


def test_a_compiled_step_brings_its_simulated_times(tmp_path: Path) -> None:
    run = traced(tmp_path)
    step = {"step_s": 2e-3, "exposed_s": 1e-3, "slowdown": 0.2, "complete": True, "compute_s": 1e-3}
    (run / "compiled-before.json").write_text(json.dumps({"timeline": step}))
    (run / "compiled-after.json").write_text(json.dumps({"timeline": {"step_s": "long"}}))
    assert page_data(read_trace(str(run)))["head"]["steps"] == [
        {"step_s": 2e-3, "exposed_s": 1e-3, "slowdown": 0.2, "complete": True}, None]


def test_the_page_of_a_step_lists_collectives_by_what_they_expose(tmp_path: Path) -> None:
    from hlorewrite.cost import topology
    from hlorewrite.timeline import simulate
    from hlorewrite.viewer.step import step_data
    groups = "replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%main"
    text = ("HloModule m, is_scheduled=true, num_partitions=8\nENTRY %main (p: f32[64]) -> f32[64] {\n"
            f"  %p = f32[64]{{0}} parameter(0)\n  %a = f32[64]{{0}} all-reduce(%p), {groups}\n"
            f"  %c = f32[64]{{0}} custom-call(%a), custom_call_target=\"mine\"\n"
            f"  ROOT %b = f32[64]{{0}} all-reduce(%c), {groups}\n}}\n")
    at = [simulate(text, topology("h200:1x8"), slowdown=slowdown, kernel_times={"a": 1.0, "b": 2.0})
          for slowdown in (0.0, 0.2)]
    data = step_data("step.hlo", at, [])
    assert [(row["name"], row["exposed_s"]) for row in data["step"]["collectives"]] == [
        ("b", [2.0, 2.0]), ("a", [1.0, 1.0])]
    assert "timeline" not in data and any("c calls mine" in note for note in data["head"]["notes"])
