"""The page in headless Chromium: opened, searched, clicked, driven by keys, in both themes, and on paper."""

from __future__ import annotations

import itertools
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from view_samples import STEP, content, simulated, traced

from hlorewrite.cli.main import guarded

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # selenium's sockets
ESCAPE, DOWN, END = "\ue00c", "\ue015", "\ue010"


def _page(run: Path, *more: str) -> Path:
    page = run.parent / f"{run.name}.html"
    assert guarded(["view", str(run), "-o", str(page), *more]) == 0
    return page


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every section."""
    return _page(simulated(traced(tmp_path_factory.mktemp("everything"), STEP, "comm-shift", "--topology=h200:1x4")))


@pytest.fixture
def opened(browser: Any, everything: Path) -> Any:
    """That page, freshly opened."""
    browser.complaints()
    browser.emulate(prefers_color_scheme="light")
    browser.open(everything)
    return browser


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with 10 000 rewrites, all different."""
    run = traced(tmp_path_factory.mktemp("many"))
    first = content(run, "rewrites.jsonl")[0]
    rows = [first | {"index": i, "location": f"train.py:{i + 1}:1", "after": f"%v{i} = stablehlo.add(%a{i}, %b)"}
            for i in range(10_000)]
    (run / "rewrites.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return _page(run)


def test_the_page_stands_without_a_complaint_and_loads_nothing(opened: Any) -> None:
    """No console message, no request."""
    titles = opened.all("section > h2")
    assert [title.split()[0] for title in titles] == ALL
    assert opened.complaints() == [] and opened.requests() == []
    assert not opened.all(".notes")


def test_the_summary_says_what_changed(opened: Any) -> None:
    """Figures of the sample: 40 KiB to 12 KiB."""
    figures = opened.all(".figure")
    assert "40.0 KiB" in figures[0] and "12.0 KiB" in figures[0] and "3.33× less" in figures[0]
    assert "16" in figures[2] and "9" in figures[2] and len(figures) == 3
    assert [text.split() for text in opened.all(".fate-list button")] == [["↗", "moved", "1", "of", "2"],
                                                                         ["=", "stays", "1", "of", "2"]]


def test_every_collective_has_its_fate_and_reason(opened: Any) -> None:
    """And filters show one kind of fate."""
    rows = opened.all("#collectives .long-row")
    assert rows[0].split("\n") == ["↗", "moved", "f32[1024]", "saves 28.0 KiB", "all-reduce · train.py:31:7", "4.00 KiB",
                                   "8× → 1×"]
    assert "f32[256]\nsaves nothing" in rows[1] and "8× → 8×" in rows[1]
    assert "reduced where its result is needed" in opened.text("#collectives .detail")
    opened.click("#collectives .chip:nth-child(3)")
    assert len(opened.all("#collectives .long-row")) == 1
    assert "stablehlo.tanh at train.py:36:7" in opened.text("#collectives .detail")
    opened.click(".fate-list li:nth-child(1) button")
    assert "moved" in opened.text("#collectives .detail h4")


def test_three_lines_of_the_program_stand_at_each_place(browser: Any, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line itself marked; and what the loop carries before and after."""
    (tmp_path / "train.py").write_text("".join(f"line_{number} = {number}\n" for number in range(1, 50)))
    monkeypatch.chdir(tmp_path)
    browser.open(_page(traced(tmp_path)))
    for part in ("collectives", "rewrites"):
        assert browser.all(f"#{part} .source li") == ["30line_30 = 30", "31line_31 = 31", "32line_32 = 32"]
        assert browser.all(f"#{part} .source li.named") == ["31line_31 = 31"]
    assert "f32[1024]" in browser.all("#rewrites .long-row")[0]
    cells = browser.all("#rewrites .diff tbody tr:last-child td")
    assert "the loop carries reduced values: tensor<1024xf32>" in cells[0]
    assert "the loop carries each device's own sum: tensor<1024xf32>" in cells[1]


def test_the_streams_of_compiled_steps_stand_on_the_page(browser: Any, tmp_path: Path) -> None:
    """One picture for each side that was compiled for described GPUs; no dash where one side is missing."""
    run = traced(tmp_path)
    memory = {"argument": 1 << 20, "output": 0, "temp": 1 << 20, "alias": 0}
    events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "GPU"}},
              {"ph": "X", "name": "fusion", "cat": "compute", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]
    step = {"step_s": 5e-6, "exposed_s": 0.0, "slowdown": 0.2, "complete": True, "traceEvents": events}
    (run / "compiled-after.json").write_text(json.dumps({"target": "h200:1x4", "memory": memory, "timeline": step}))
    browser.complaints()
    browser.open(_page(run))
    assert browser.complaints() == [] and browser.all("#streams h3") == ["After"]
    assert all("–" not in text for text in browser.all(".figure"))
    assert [head for head in browser.all("#summary > table th[scope=col]") if head] == ["after"]
    (run / "compiled-before.json").write_text((run / "compiled-after.json").read_text())
    browser.open(_page(run))
    assert browser.all("#streams h3") == ["Before", "After"]


def test_a_rewrite_is_shown_side_by_side_with_its_rule(opened: Any) -> None:
    """What differs is marked; what is equal stands beside itself."""
    cells = opened.all("#rewrites .diff tbody tr:first-child td")
    assert "in while at train.py:30:5, 8 times" in cells[0] and "outside loops" in cells[1]
    assert opened.run("return document.querySelectorAll('#rewrites .diff-same').length") == 2
    assert "Moves reductions out of loops" in opened.text("#rewrites .rule")


def test_searching_narrows_both_lists_and_is_cleared_by_escape(opened: Any) -> None:
    """From the keyboard alone."""
    opened.press("/", *"train.py:31")
    assert opened.text("#search-count") == "1 collective, 1 rewrite"
    assert len(opened.all("#collectives .long-row")) == 1
    opened.press(*"xyz")
    assert opened.text("#search-count") == "0 collectives, 0 rewrites"
    assert opened.text("#collectives .detail") == "No collective fits."
    opened.press(ESCAPE)
    assert opened.text("#search-count") == "" and len(opened.all("#collectives .long-row")) == 2
    assert opened.run("return document.activeElement.id") != "search"


def test_keys_go_to_sections_and_through_lists(opened: Any) -> None:
    """Digits, arrows, help."""
    opened.press("5")
    assert opened.run("return document.activeElement.id") == "traffic-title"
    opened.run("document.querySelector('#collectives .long-list').focus()")
    opened.press(DOWN)
    assert "stays" in opened.text("#collectives .detail h4")
    chosen = "return document.querySelector('#collectives [aria-selected=true]').id"
    assert opened.run("return document.querySelector('#collectives .long-list').getAttribute('aria-activedescendant')"
                      ) == opened.run(chosen)
    opened.press("?")
    assert opened.run("return document.getElementById('keys').open")
    opened.press(ESCAPE)
    assert not opened.run("return document.getElementById('keys').open")


def test_loops_show_where_reductions_live_and_lead_to_them(opened: Any) -> None:
    """Before: both in the loop; after: one outside."""
    sides, inside = opened.all(".nest-side"), opened.all(".nest-while")
    assert "train.py:31:7" in inside[0] and "train.py:31:7" not in inside[1] and "train.py:31:7" in sides[1]
    assert "8 ×" in inside[0] and "train.py:35:7" in inside[1]
    opened.click(".nest-side:last-child .held")
    assert opened.run("return document.getElementById('search').value").startswith("train.py:3")


def test_the_heat_map_names_groups_under_the_pointer_and_by_keys(opened: Any) -> None:
    """Bytes of both sides, and the group that joins the two devices."""
    opened.run("document.querySelector('#traffic canvas.heat').focus({preventScroll: true})")
    opened.press("\ue014")
    words = opened.text(".traffic-reading")
    assert words.startswith("device 0 → device 1: 60.0 KiB before, 18.0 KiB after.")
    assert "all-reduce over data, group [0 1 2 3]" in words
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By
    canvas = opened.driver.find_elements(By.CSS_SELECTOR, "#traffic canvas.heat")[1]
    opened.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    ActionChains(opened.driver).move_to_element(canvas).perform()
    assert "group [0 1 2 3]" in opened.text("#tip") and not opened.run("return document.getElementById('tip').hidden")


def test_the_pipeline_is_drawn_and_zooms(opened: Any) -> None:
    """Pixels change with the view, and the pointer names a task."""
    facts = opened.text("#pipeline .facts")
    assert "1f1b, 4 micro-batches" in facts and "bubble" in facts
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By
    canvas = opened.driver.find_element(By.CSS_SELECTOR, "canvas.gantt")
    before = opened.run("return arguments[0].toDataURL()", canvas)
    opened.click("#pipeline .tools .chip")
    zoomed = opened.run("return arguments[0].toDataURL()", canvas)
    assert zoomed != before
    opened.click("#pipeline .tools .chip:nth-child(3)")
    assert opened.run("return arguments[0].toDataURL()", canvas) == before
    opened.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    width, height = canvas.size["width"], canvas.size["height"]
    ActionChains(opened.driver).move_to_element_with_offset(canvas, 100 - width // 2, 40 - height // 2).perform()
    assert opened.text("#tip").startswith("F0")


def test_both_themes_follow_the_system_and_the_button(opened: Any) -> None:
    """And text keeps a contrast of 4.5 in both."""
    def ground() -> str:
        return opened.run("return getComputedStyle(document.body).backgroundColor")

    light = ground()
    assert _contrast(opened) >= 4.5
    opened.emulate(prefers_color_scheme="dark")
    opened.wait("return document.documentElement.dataset.theme === 'dark'")
    dark = ground()
    assert dark != light and _contrast(opened) >= 4.5
    opened.press("t")
    assert ground() == light
    opened.click("#theme")
    assert ground() == dark


def _contrast(browser: Any) -> float:
    """The least contrast of any colour of text against what it stands on."""
    inks = ("--ink", "--muted", "--accent", "--teal", "--purple", "--ochre", "--red", "--before")
    pairs = [(ink, paper) for ink in inks for paper in ("--paper", "--surface")]
    pairs += [("--ink", paper) for paper in ("--accent-soft", "--before-mark", "--after-mark", "--note")]
    pairs.append(("--muted", "--sunk"))
    colours = browser.run("const style = getComputedStyle(document.documentElement); return arguments[0].map((pair) => "
                          "pair.map((name) => style.getPropertyValue(name).trim()))", pairs)

    def light(colour: str) -> float:
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    ratios = [(max(map(light, pair)) + 0.05) / (min(map(light, pair)) + 0.05) for pair in colours]
    return min(ratios)


def test_names_and_labels_are_there_for_those_who_do_not_see(opened: Any) -> None:
    """Every control and picture has a name; headings go down one at a time."""
    unnamed = opened.run("""
        return [...document.querySelectorAll("button, input, select, canvas:not([aria-hidden]), [role=listbox]")]
          .filter((each) => !(each.getAttribute("aria-label") || each.innerText || each.labels?.length))
          .map((each) => each.outerHTML.slice(0, 80))""")
    assert unnamed == []
    levels = [int(tag[1]) for tag in opened.run(
        "return [...document.querySelectorAll('main h1, main h2, main h3')].map((each) => each.tagName)")]
    assert levels[0] == 1 and all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert opened.run("return document.documentElement.lang") == "en"


def test_nothing_is_wider_than_a_laptop_or_a_telephone(opened: Any) -> None:
    """No scrolling sideways."""
    for width in (1366, 1024, 420):
        opened.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                      {"width": width, "height": 768, "deviceScaleFactor": 1, "mobile": False})
        assert opened.run("return document.documentElement.scrollWidth") <= width
    opened.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_paper_is_light_and_holds_every_section(opened: Any) -> None:
    """Printed from the dark theme."""
    opened.emulate(prefers_color_scheme="dark")
    paper = opened.pdf()
    assert paper.startswith(b"%PDF") and len(re.findall(rb"/Type\s*/Page\b", paper)) in range(3, 12)
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", paper, re.DOTALL)
    texts = b"".join(_inflated(stream) for stream in streams)
    assert b"BT" in texts  # text, not a picture of it
    assert opened.run("return document.documentElement.dataset.theme") == "dark"  # and the screen is as it was


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def test_ten_thousand_rewrites_keep_few_rows_and_stay_searchable(browser: Any, many: Path) -> None:
    """Rows exist only in sight, wherever one is."""
    browser.complaints()
    browser.open(many)
    assert browser.text("#rewrites .amount") == "10,000"
    rows = "return document.querySelectorAll('#rewrites .long-row').length"
    assert browser.run(rows) < 60
    browser.run("document.querySelector('#rewrites .long-list').focus()")
    browser.press(END)
    assert "10,000 of 10,000" in browser.text("#rewrites .detail h4")
    assert "%v9999" in browser.text("#rewrites .diff") and browser.run(rows) < 60
    browser.run("document.getElementById('search').value = '%a4321,';"
                "document.getElementById('search').dispatchEvent(new Event('input'))")
    assert browser.text("#search-count").endswith("1 rewrite")
    assert "train.py:4322:1" in browser.text("#rewrites .detail")
    assert browser.complaints() == []


ALL = ["Summary", "Collectives", "Rewrites", "Loops", "Traffic", "Pipeline", "Pass"]


@pytest.mark.parametrize(("damage", "left"), [
    ("missing", ["Summary", "Rewrites", "Loops", "Pipeline", "Pass"]),
    ("cut", ["Summary", "Rewrites", "Loops", "Pass"]),
    ("version", ALL),
    ("spans", [title for title in ALL if title != "Pipeline"]),
    ("types", ALL)])
def test_damaged_traces_say_what_is_missing(browser: Any, tmp_path: Path, damage: str, left: list[str]) -> None:
    """Nothing on the console, a note on the page, and what is there."""
    run = simulated(traced(tmp_path))
    _damage(run, damage)
    browser.complaints()
    browser.open(_page(run))
    assert browser.complaints() == []
    assert bool(browser.all(".notes li")) == (damage != "types")
    assert [title.split()[0] for title in browser.all("section > h2")] == left


def _damage(run: Path, damage: str) -> None:
    if damage == "missing":
        (run / "before.json").unlink()
    elif damage == "cut":
        with open(run / "rewrites.jsonl", "a") as file:
            file.write('{"pass": "comm-sh')
        for name in ("after.json", "timeline.json", "rules.json"):
            (run / name).write_bytes((run / name).read_bytes()[:-20])
    elif damage == "version":
        (run / "manifest.json").write_text(json.dumps(content(run, "manifest.json") | {"version": 99}))
    elif damage == "spans":
        (run / "timeline.json").write_text('{"traceEvents": [{"ph": "X"}]}')
    else:
        text = '{"steps": [{}], "passes": [{}, {"pass": [1]}], "rules": [{"rule": 5, "applied": "x"}]}'
        for name in ("timing.json", "rules.json", "simulation.json"):
            (run / name).write_text(text)
        (run / "rewrites.jsonl").write_text('{"rule": 3, "before": null, "after": [1]}\n')
        (run / "manifest.json").write_text('{"version": 1, "complete": true, "input": 7, "summary": 3}')


def test_a_timeline_alone_is_a_page(browser: Any, tmp_path: Path) -> None:
    """The file of `pipeline simulate --trace`."""
    step = simulated(tmp_path / "run") / "timeline.json"
    page = tmp_path / "step.html"
    assert guarded(["view", str(step), "-o", str(page)]) == 0
    browser.complaints()
    browser.open(page)
    assert browser.all("section > h2") == ["Pipeline"] and browser.complaints() == []


SCHEDULED = """HloModule m, is_scheduled=true, num_partitions=8
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
ENTRY %main (p: f32[16777216]) -> f32[16777216] {
  %p = f32[16777216]{0} parameter(0)
  %s = f32[16777216]{0} all-reduce-start(%p), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add
  %k = f32[16777216]{0} negate(%p)
  ROOT %d = f32[16777216]{0} all-reduce-done(%s)
}
"""


def test_a_simulated_step_is_a_page_that_says_what_hides_what(browser: Any, tmp_path: Path) -> None:
    """The page of `timeline --html`."""
    (tmp_path / "step.hlo").write_text(SCHEDULED)
    page = tmp_path / "step.html"
    assert guarded(["timeline", str(tmp_path / "step.hlo"), "--target=h200:1x8", "-o", str(page)]) == 0
    browser.complaints()
    browser.open(page)
    assert [title.split()[0] for title in browser.all("section > h2")] == ["Step", "Streams", "Exposed"]
    assert browser.complaints() == [] and browser.requests() == []
    assert "f32[16777216]" in browser.text("#exposed table")
    told = browser.run("""const canvas = document.querySelector("canvas.gantt"), box = canvas.getBoundingClientRect();
      const at = {clientX: box.left + 110, clientY: box.top + 26 + 24 + 14 + 12 + 2, bubbles: true};
      canvas.dispatchEvent(new MouseEvent("mousemove", at)); return document.getElementById("tip").innerText;""")
    assert "all-reduce" in told and "beside k:" in told
