"""``hlorewrite pipeline search``: what it prints, that its lines of Python give its times, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import pytest
from pipeline_models import BlockModel, gpt

import hlorewrite
from hlorewrite.cli.main import guarded
from hlorewrite.pipelines.layout_search import PipelinePoint, pipeline_frontier


def tiny() -> BlockModel:
    """A GPT of two layers."""
    return gpt(2, 64, 4, 16, 4)


@pytest.fixture(scope="module")
def step_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A step as a user would write it to a file."""
    path = tmp_path_factory.mktemp("search") / "step.mlir"
    model = tiny()
    plain = hlorewrite.pipeline(model.step(), meshes=[(2,), (2,)], passes="", stages="auto").lower(
        *jax.eval_shape(model.init))
    path.write_text(plain.original.as_text(debug_info=True))
    return str(path)


def test_each_line_of_python_gives_the_time_it_stands_for(step_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["pipeline", "search", step_file, "--target", "h200:1x4", "--schedule", "1f1b", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert {len(point["meshes"]) for point in points} == {2, 4}
    times = [point["step_s"] for point in points]
    assert times == sorted(times)
    model, best = tiny(), next(point for point in points if point["frontier"])
    step = model.step()
    pipelined = eval(best["python"], {"hlorewrite": hlorewrite, "step": step})
    again = pipelined.lower(*jax.eval_shape(model.init)).simulate()
    assert again.iteration_time_s == pytest.approx(best["step_s"])
    assert max(again.peak_bytes) == pytest.approx(best["memory_bytes"])


def test_meshes_that_are_given_and_a_picture(step_file: str, tmp_path: Path,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "frontier.svg"
    words = ["pipeline", "search", step_file, "--target", "h200:1x4", "--schedule", "1f1b", "--meshes", "(2),(1),(1)"]
    assert guarded([*words, "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "(2),(1),(1)" in out and "stages=(" in out and "<svg" in picture.read_text()


def test_no_time_is_no_pipeline(step_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["pipeline", "search", step_file, "--target", "h200:1x4", "--time-limit", "1ns"]) == 1
    assert "nothing was tried" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "message"), [
    (["--target", "h20:1x4"], 'there is no topology "h20"'),
    (["--target", "cpu:1x4"], "has no cost model"),
    ([], "needs a step and a target"),
    (["--target", "h200:1x4", "--meshes", "(4),(4)"], "the meshes need 8 devices, but h200:1x4 has 4"),
    (["--target", "h200:1x4", "--meshes", "4by4"], "is not the shape of a mesh"),
    (["--target", "h200:1x4", "--schedule", "1f1"], 'there is no schedule "1f1"'),
    (["--target", "h200:1x4", "--also", "/nowhere.mlir"], "/nowhere.mlir"),
])
def test_what_is_refused(words: list[str], message: str, step_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["pipeline", "search", step_file, *words]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_what_cannot_be_a_pipeline_is_named(step_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Four micro-batches on eight meshes are not interleaved."""
    words = ["--target", "h200:1x8", "--meshes", ",".join(["(1)"] * 8), "--schedule", "interleaved-1f1b"]
    assert guarded(["pipeline", "search", step_file, *words]) == 1
    assert "not possible: interleaved-1f1b on (1),(1)" in capsys.readouterr().out


def test_flags_of_search_are_of_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["pipeline", "simulate", "tests/programs/two_stages.mlir", "--target", "h200:1x4"]) == 2
    assert "--target is of search" in capsys.readouterr().err


def test_the_frontier_is_what_nothing_beats() -> None:
    def point(seconds: float | None, size: float) -> PipelinePoint:
        return PipelinePoint("step", 4, ((1,), (1,)), "1f1b", (3,), seconds, size)

    points = [point(1.0, 9.0), point(2.0, 5.0), point(3.0, 6.0), point(None, 0.0)]
    assert pipeline_frontier(points) == points[:2]
