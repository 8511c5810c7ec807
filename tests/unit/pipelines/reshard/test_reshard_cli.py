"""``hlorewrite reshard`` from the outside."""

from __future__ import annotations

import json

import pytest

from hlorewrite.cli.main import guarded
from hlorewrite.ir.load import load

BASE = ["reshard", "--shape", "1024,1024,512", "--dtype", "int32", "--src-mesh", "2x4", "--src-spec", "host,-,-",
        "--dst-mesh", "2x4", "--dst-spec", "-,host,-"]


def test_json_has_the_contract(capsys) -> None:
    assert guarded([*BASE, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["makespan_s"] == pytest.approx(0.5 * 2**31 / 1.25e9, rel=0.02)
    assert 0 <= printed["gap"] <= 0.02 and printed["lower_bound_s"] <= printed["makespan_s"]
    assert len(printed["tasks"]) == 4
    for task in printed["tasks"]:
        assert {"slice", "sender", "receivers", "start_s", "end_s"} <= set(task)
        assert len(task["slice"]) == 3 and task["sender"] in range(8) and set(task["receivers"]) <= set(range(8, 16))
        assert 0 <= task["start_s"] < task["end_s"] <= printed["makespan_s"]


@pytest.mark.parametrize(("extra", "units"), [
    (["--order", "naive", "--strategy", "broadcast"], 0.75), (["--strategy", "send-recv"], 2.0),
    (["--strategy", "all-gather"], 0.5)])
def test_strategies_and_orders(capsys, extra, units) -> None:
    assert guarded([*BASE, "--json", *extra]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["makespan_s"] == pytest.approx(units * 2**31 / 1.25e9, rel=0.02)


def test_table_picture_and_module(capsys, tmp_path) -> None:
    picture, module = tmp_path / "links.svg", tmp_path / "plan.mlir"
    assert guarded([*BASE, "--gantt", str(picture), "--emit-module", str(module)]) == 0
    out = capsys.readouterr().out
    assert "makespan 0.85" in out and "gap 0." in out and "8,9,10,11" in out
    assert ("module for gpu: 128 rounds, 0.864113 s one after another according to the model, 16777216 bytes in "
            "addition") in out
    first = picture.read_bytes()
    assert b"<svg" in first
    assert "stablehlo.collective_broadcast" in module.read_text()
    load(str(module))
    assert guarded([*BASE, "--gantt", str(picture)]) == 0
    assert picture.read_bytes() == first


def test_json_has_the_rounds_of_the_module(capsys, tmp_path) -> None:
    assert guarded([*BASE, "--json", "--emit-module", str(tmp_path / "plan.mlir"), "--target", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["module"]["target"] == "cpu" and found["module"]["rounds_s"] > found["makespan_s"]
    assert guarded([*BASE, "--json"]) == 0
    assert "module" not in json.loads(capsys.readouterr().out)


def test_named_axes_and_overlap(capsys) -> None:
    words = ["reshard", "--shape", "16,16", "--src-mesh", "data=2,model=4", "--src-spec", "data,model", "--dst-mesh",
             "2x4", "--dst-spec", "all,-", "--dst-first-device", "0", "--json", "--topology", "h200:1x8"]
    assert guarded(words) == 0
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    assert all(task["sender"] not in task["receivers"] for task in tasks)


def test_empty_tensor(capsys) -> None:
    assert guarded(["reshard", "--shape", "0,4", "--src-mesh", "2x4", "--src-spec", "host,-", "--dst-mesh", "2x4",
                    "--dst-spec", "-,-", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["tasks"] == [] and printed["makespan_s"] == 0 and printed["gap"] == 0


@pytest.mark.parametrize(("change", "sentence"), [
    ({"--src-spec": "hosts,-,-"}, 'the mesh has no axis "hosts"; did you mean "host"?'),
    ({"--src-spec": "host,-"}, 'the sharding "host,-" has 2 entries for 3 dimensions'),
    ({"--shape": "1024,-1,512"}, '"1024,-1,512" is not a shape'),
    ({"--shape": f"1024,{10**30},512"}, "has more than 2^56 elements"),
    ({"--shape": "0,4294967296,4294967296"}, "has more than 2^56 elements"),
    ({"--dtype": "int3"}, '"int3" is not a dtype'),
    ({"--src-mesh": "2y4"}, '"2y4" is not a mesh'),
    ({"--strategy": "brodcast"}, 'did you mean "broadcast"?'),
    ({"--order": "optimum"}, 'did you mean "optimal"?'),
    ({"--topology": "h20"}, 'did you mean "h200"?'),
    ({"--gantt": "links.bmp"}, "has an unknown file extension"),
])
def test_mistakes_are_one_line(capsys, change, sentence) -> None:
    words = list(BASE)
    for option, value in change.items():
        if option in words:
            words[words.index(option) + 1] = value
        else:
            words += [option, value]
    assert guarded(words) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1 and "Traceback" not in error
