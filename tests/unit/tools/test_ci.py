"""What CI runs: everything once, values first; and the last line says what ran, failed and was skipped."""

from __future__ import annotations

from pathlib import Path

import pytest
import versions
from ci import OF_OTHER_VERSIONS, OF_OUTPUTS, PIPELINES, VALUES, CiResult, other_version, outputs_that_vary, parts
from run_page import OLDEST_JAXLIB
from same_numbers import side_by_side

ROOT = Path(__file__).resolve().parents[3]
REPORT = """<testsuites><testsuite>
  <testcase name="a"/><testcase name="b"><failure message="no"/></testcase>
  <testcase name="c"><skipped message="no GPU\n here"/></testcase><testcase name="d"><error message="no"/></testcase>
</testsuite></testsuites>"""


def test_counts_failures_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(REPORT)
    result = CiResult()
    result.add("values", 1, tmp_path / "a.xml")
    assert result.line() == "ran: values 3; failed: values (2 failed, exit code 1); skipped: 1 no GPU here"


def test_a_part_that_wrote_nothing_has_failed(tmp_path: Path) -> None:
    """A worker that dies, or a folder that cannot be collected."""
    result = CiResult()
    result.add("core", 3, tmp_path / "missing.xml")
    assert result.failed == ["core (0 failed, exit code 3)"] and result.counts == {"core": 0}


def test_parts_are_everything_once_and_values_first() -> None:
    first, core, pipelines, heavy = parts()
    assert (first.arguments, pipelines.arguments) == (VALUES, PIPELINES)
    assert set(core.arguments) == {"--doctest-modules", "hlorewrite", "tests",
                                   *(f"--ignore={path}" for path in (*VALUES, *PIPELINES))}
    assert heavy.arguments == ("--run-heavy", "-m", "heavy", "tests")
    assert all((ROOT / path).exists() for path in (*VALUES, *PIPELINES, *OF_OTHER_VERSIONS))


def test_the_makefile_leaves_out_the_same_as_ci_does() -> None:
    assert f"PIPELINES := {' '.join(PIPELINES)}\n" in (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize(("installed", "other"), [("0.12.0", "0.10"), ("0.11.2", "0.12"), ("0.10.2", "0.12")])
def test_the_other_version_is_the_one_farthest_away(installed: str, other: str,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ci.version_in", lambda python: installed)
    monkeypatch.setattr(versions, "environment", lambda minor: f"python of {minor.name}")
    assert other_version("python") == (other, f"python of {other}")
    monkeypatch.setattr(versions, "environment", lambda minor: None)
    assert other_version("python") == ("", "")


def test_each_test_of_outputs_that_vary_exists() -> None:
    pages = outputs_that_vary()
    assert pages
    for page in pages:
        file, _, name = page.partition("::test_what_the_page_shows_is_what_happens[")
        assert "def test_what_the_page_shows_is_what_happens(" in (ROOT / file).read_text("utf-8")
        assert "<!-- versions vary -->" in (ROOT / name.removesuffix("]")).read_text("utf-8")


def test_ci_takes_the_python_that_make_takes() -> None:
    assert 'make venv PYTHON="${PYTHON:-$(sh tools/find_python.sh)}"' in (ROOT / ".ci" / "run").read_text("utf-8")


def test_blocks_that_vary_are_compared_on_the_version_of_the_pages() -> None:
    assert f"{OF_OUTPUTS}." == OLDEST_JAXLIB and versions.SUPPORTED[-1].name == OF_OUTPUTS


def test_figures_that_must_agree() -> None:
    table, wrong = side_by_side([{"jax": "0.10.2", "a: step ms": 2.0, "flags": "x"},
                                 {"jax": "0.12.0", "a: step ms": 1.0, "flags": "y"}])
    assert wrong == [] and table[1:] == [["a: step ms", "2.0", "1.0", "100 %"], ["flags", "x", "y", ""]]
    assert side_by_side([{"jax": "1", "b: calls": 1}, {"jax": "2", "b: calls": 2}])[1] == ["b: calls"]
