"""The picture of two schedules: to scale, deterministic, and one line for an input that cannot be read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from timeline_picture import Bar, bars_of, main, picture

SVG = "{http://www.w3.org/2000/svg}"


def event(task: str, begin: float, length: float) -> dict[str, object]:
    return {"ph": "X", "name": "some.1", "ts": begin, "dur": length, "args": {"task": task}}


def test_near_bars_of_one_kind_are_one() -> None:
    events = [event("kernel", 0, 2), event("all-reduce", 2, 4), event("wait", 2, 4), event("kernel", 6, 1),
              event("kernel", 7.5, 1), event("kernel", 12, 1)]
    assert bars_of(events, 1) == [Bar("compute", 0, 2), Bar("compute", 6, 8.5), Bar("compute", 12, 13),
                                  Bar("communication", 2, 6)]


def test_bars_are_to_scale_on_one_axis() -> None:
    text = picture([("a", [Bar("compute", 0, 1000), Bar("communication", 500, 1000)]), ("b", [Bar("compute", 0, 500)])])
    bars = [one for one in ElementTree.fromstring(text).iter(f"{SVG}rect") if one.get("height") == "13"]
    widths = [float(one.attrib["width"]) for one in bars]
    assert widths[1:] == [widths[0] / 2, widths[0] / 2]
    assert float(bars[1].attrib["x"]) == pytest.approx(float(bars[0].attrib["x"]) + widths[0] / 2)
    assert "a: step 1.00 ms, 0.50 ms of communication" in text


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("before", "after"):
        events = [event("kernel", 0, 3), event("all-gather", 1, 2)]
        (tmp_path / name).write_text(json.dumps({"traceEvents": events}))
    for name in ("1.svg", "2.svg"):
        assert main([str(tmp_path / "before"), str(tmp_path / "after"), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()


@pytest.mark.parametrize("text", ["", "{}", "[1]"])
def test_an_input_that_is_not_a_trace(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text(text)
    assert main([str(tmp_path / "x"), str(tmp_path / "x"), "-o", str(tmp_path / "x.svg")]) == 2
    assert capsys.readouterr().err.startswith("timeline_picture: cannot read a trace")
