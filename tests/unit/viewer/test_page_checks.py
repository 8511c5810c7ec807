"""The pages that commands write have no fault that the checks of pages find; and each fault is found where it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from page_checks import page_faults
from test_viewer_browser import SCHEDULED
from view_samples import STEP, simulated, traced

from hlorewrite.cli.main import guarded
from hlorewrite.page.run_page import RunReport
from hlorewrite.tune.choice import TuneChoice, TunedStep, TunePoint
from hlorewrite.tune.text import tuned_section

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # selenium's sockets
ROOT = Path(__file__).resolve().parents[3]

PLAIN = """<!doctype html><html lang="en"><head><title>t</title>
<style>:root {{ color-scheme: light dark; }} {style}</style></head>
<body><main><h1>Title</h1><p>Text.</p><button>Go</button>{body}</main></body></html>"""
FAULTS = [
    ("contrast 1.", "<p style='color: #888; background: #777'>faint</p>", ""),
    ("contrast ", "<p style='opacity: 0.4'>half</p>", ""),
    ("dark: contrast", "<p>x</p>", "p { color: #333; } @media (prefers-color-scheme: light) { p { color: black; } }"),
    ("light: contrast", "<p>x</p>", "p { color: #aaa; } @media (prefers-color-scheme: dark) { p { color: white; } }"),
    ("placeholder", "<input aria-label='a' placeholder='faint'>", "::placeholder { color: #999; opacity: 0.6; }"),
    ("no name: button", "<button style='width: 20px; height: 20px'></button>", ""),
    ("no name: input", "<input>", ""),
    ("no name: canvas", "<canvas></canvas>", ""),
    ("no alternative text", "<img src='data:image/svg+xml,<svg xmlns=\"http://www.w3.org/2000/svg\"/>'>", ""),
    ("not reached by Tab", "<input aria-label='one'><div inert><button>two</button></div>", ""),
    ("for a mouse only", "<div style='cursor: pointer'>press</div>", ""),
    ("scrolls sideways", "<div style='width: 500px'>wide</div>", ""),
    ("lines of", f"<p>{'letters and spaces ' * 30}</p>", ""),
    ("console: ", "<script>console.error('wrong')</script>", ""),
]


def _written(folder: Path, body: str = "", style: str = "") -> Path:
    page = folder / "page.html"
    page.write_text(PLAIN.format(body=body, style=style))
    return page


def test_a_plain_page_has_no_fault(browser: Any, tmp_path: Path) -> None:
    assert page_faults(browser, _written(tmp_path)) == []


@pytest.mark.parametrize(("fault", "body", "style"), FAULTS, ids=[fault for fault, _, _ in FAULTS])
def test_each_fault_is_found(browser: Any, tmp_path: Path, fault: str, body: str, style: str) -> None:
    assert any(fault in found for found in page_faults(browser, _written(tmp_path, body, style)))


def test_a_page_without_language_and_title_is_found(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>x</p>")
    assert {"no language of the page", "no title of the page"} <= set(page_faults(browser, tmp_path / "page.html"))


def test_the_page_of_a_run_can_be_read(browser: Any, tmp_path: Path) -> None:
    run = simulated(traced(tmp_path, STEP, "comm-shift", "--topology=h200:1x4"))
    assert guarded(["view", str(run), "-o", str(tmp_path / "run.html")]) == 0
    assert page_faults(browser, tmp_path / "run.html") == []


def test_the_page_of_a_timeline_can_be_read(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "step.hlo").write_text(SCHEDULED)
    page = tmp_path / "step.html"
    assert guarded(["timeline", str(tmp_path / "step.hlo"), "--target=h200:1x8", "-o", str(page)]) == 0
    assert page_faults(browser, page) == []


def test_the_page_of_two_steps_can_be_read(browser: Any, tmp_path: Path) -> None:
    for name, size in (("before", "16777216"), ("after", "4194304")):
        (tmp_path / f"{name}.hlo").write_text(SCHEDULED.replace("16777216", size))
    page = tmp_path / "page.html"
    assert guarded(["timeline", str(tmp_path / "after.hlo"), f"--vs={tmp_path / 'before.hlo'}", "--target=h200:1x8",
                    f"--report={page}"]) == 0
    assert page_faults(browser, page) == []


def test_the_page_of_choices_can_be_read(browser: Any, tmp_path: Path) -> None:
    points = tuple(TunePoint(TuneChoice(passes), seconds, seconds / 10, 1 << 30, size << 30, passes)
                   for passes, seconds, size in (("", 2.0, 10), ("comm", 1.0, 20), ("time", 1.5, 99)))
    section = tuned_section(TunedStep(points, memory=50 << 30), "h200:1x8", "step.export")
    RunReport("choices", (section,), "predicted", "", {}).write(str(tmp_path / "page.html"))
    assert page_faults(browser, tmp_path / "page.html") == []


def test_the_report_of_exec_can_be_read(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    trainer = ROOT / "examples" / "trainers" / "linen_optax.py"
    done = subprocess.run([sys.executable, "-m", "hlorewrite", "exec", f"--report={page}", "--", sys.executable,
                           str(trainer), "1"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page.write_text(page.read_text().replace("<details", "<details open"))  # what is folded can be read too
    assert "What each pass changed: " in page.read_text()
    assert "rewritten" in page.read_text() and "needs a cluster" in page.read_text()
    assert page_faults(browser, page) == []
