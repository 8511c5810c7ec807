"""The search of ``hlorewrite tune`` without a compiler: order of choices, frontier, time limit, cache, text."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from hlorewrite.errors import InputError
from hlorewrite.tune.choice import TuneCache, TuneChoice, TunedStep, TunePoint, frontier, with_buckets
from hlorewrite.tune.search import BUCKETS, PASSES, Measure, TuneSearch
from hlorewrite.tune.text import tuned_text

GIB = 1 << 30
FLAGS = [("pipelined", (("xla_gpu_enable_pipelined_all_reduce", True),))]
STEPS = {"": 4.0, "auto": 3.0, "comm": 2.0, "time": 1.0}


def measured(choice: TuneChoice) -> TunePoint:
    """The named pipelines get faster in the order of ``STEPS``; ``time`` takes 20 GiB more than a budget of 0 does."""
    size = 40 * GIB if choice.passes == "time" and choice.budget != 0 else 20 * GIB
    step = STEPS[choice.passes] - 0.1 * len(choice.flags) + (0.5 if choice.budget == 0 else 0.0)
    return TunePoint(choice, step, step / 10, 1000, size, f"{choice.passes}{choice.budget}{choice.buckets}")


def search(memory: int | None = 64 * GIB, measure: Measure = measured, *, partitioned: bool = False) -> TunedStep:
    return TuneSearch(measure, memory, FLAGS, partitioned).run()


def names(points: tuple[TunePoint, ...]) -> list[str]:
    return [point.choice.name for point in points]


def test_pipelines_come_first_and_no_choice_twice() -> None:
    found = search()
    assert names(found.points)[:4] == ["XLA alone", "auto", *PASSES]
    assert len(set(names(found.points))) == len(found.points) and not found.left_out
    assert {p.choice.buckets for p in found.points} == {None, *BUCKETS}
    assert {p.choice.budget for p in found.points} == {None, 0, 11 * GIB, 44 * GIB}


def test_budgets_are_shares_of_what_the_original_leaves() -> None:
    assert {p.choice.budget for p in search(memory=20 * GIB + 8).points} == {None, 0}
    assert {p.choice.budget for p in search(memory=None).points} == {None, 0}


def test_both_partitioners_are_choices_of_auto_sharded_steps() -> None:
    found = search(partitioned=True)
    assert {p.choice.keep for p in found.points if p.choice.passes == "comm"} == {"always", "better"}
    assert all(p.choice.budget is None for p in found.points if p.choice.keep == "better")


def test_the_frontier_is_what_nothing_beats_within_the_memory() -> None:
    found = search()
    assert names(found.frontier) == ["time, flags: pipelined", "time, budget 0, flags: pipelined"]
    assert found.best is not None and found.best.choice.passes == "time"
    tight = search(memory=30 * GIB)
    assert tight.best is not None and tight.best.choice.budget == 0
    assert search(memory=GIB).best is None


def test_the_simpler_choice_is_taken_where_two_differ_by_little() -> None:
    simple = TunePoint(TuneChoice("comm"), 1.0015, memory_bytes=1000)
    other = TunePoint(TuneChoice("time"), 1.0, memory_bytes=1000)
    assert frontier([simple, other], None) == (simple,)
    assert frontier([replace(simple, step_s=1.01), other], None) == (other,)
    smaller = replace(simple, step_s=1.01, memory_bytes=900)
    assert frontier([smaller, other], None) == (other, smaller)


def test_choices_left_out_are_counted_when_the_time_is_over() -> None:
    calls = iter(range(1000))
    found = search(measure=lambda choice: measured(choice) if next(calls) < 2 else None)
    assert names(found.points) == ["XLA alone", "auto"] and found.left_out > 2
    said = f"before {found.left_out} more were tried; with a cache, the same command continues with them"
    assert said in tuned_text(found, "h200:1x8")


def test_without_any_figure_the_text_says_so() -> None:
    said = tuned_text(search(measure=lambda _: None), "h200:1x8")
    assert said.endswith("no choice was measured") and "predicted" not in said


def test_the_rest_of_the_search_is_estimated_from_above() -> None:
    seen: list[int] = []

    def measure(choice: TuneChoice) -> TunePoint:
        seen.append(made.remaining)
        return measured(choice)

    made = TuneSearch(measure, 64 * GIB, FLAGS, False)
    tried = len(made.run().points)
    assert all(left >= tried - done for done, left in enumerate(seen)) and seen[0] <= 2 * tried and seen[-1] == 1


def test_a_choice_that_fails_is_shown_and_never_best() -> None:
    broken = TunePoint(TuneChoice("time"), failed="XLA cannot compile the module")
    found = TunedStep((measured(TuneChoice("")), broken))
    assert found.best is not None and found.best.choice.passes == ""
    assert re.search("^  time +XLA cannot compile the module$", tuned_text(found, "h200:1x8"), re.MULTILINE)


def test_points_of_one_module_are_one_row() -> None:
    point = measured(TuneChoice("comm"))
    twin = replace(point, choice=TuneChoice("comm", buckets=1 << 20))
    text = tuned_text(TunedStep((point, twin)), "h200:1x8")
    assert "buckets" not in text and "1 more choices compile to the same program as one of these" in text


def test_points_survive_the_cache(tmp_path: Path) -> None:
    cache = TuneCache(tmp_path, ("module", "h200:1x8"))
    for choice in (TuneChoice("comm", budget=3), TuneChoice("", flag_set="pipelined", flags=FLAGS[0][1])):
        cache.add(measured(choice))
    assert TuneCache(tmp_path, ("module", "h200:1x8")).points == cache.points
    assert not TuneCache(tmp_path, ("module", "h200:4x8")).points


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 2, "points": [{}]}', b"\xff\xfe", b"null"])
def test_a_damaged_cache_is_named(tmp_path: Path, content: bytes) -> None:
    cache = TuneCache(tmp_path, ("module",))
    cache.add(measured(TuneChoice("comm")))
    cache.path.write_bytes(content)
    with pytest.raises(InputError, match="is not a cache of hlorewrite tune; delete it, or use --no-cache"):
        TuneCache(tmp_path, ("module",))


@pytest.mark.parametrize(("name", "value"), [
    ("memory_bytes", {}), ("memory_bytes", True), ("step_s", "1"), ("step_s", math.nan), ("digest", None),
    ("memory_bytes", -1), ("step_s", -1e-9), ("executed_bytes", -1), ("failed", []),
    ("choice", {"passes": 3}), ("choice", {"budget": "3"}), ("choice", {"keep": "x"}), ("choice", {"flags": {"f": []}}),
    ("choice", {"flags": []}), ("choice", [])])
def test_a_cache_with_a_value_of_another_kind_is_named(tmp_path: Path, name: str, value: object) -> None:
    cache = TuneCache(tmp_path, ("module",))
    cache.add(measured(TuneChoice("comm")))
    content = json.loads(cache.path.read_text())
    point = content["points"][0]
    point[name] = {**point[name], **value} if isinstance(value, dict) and name == "choice" else value
    cache.path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="is not a cache of hlorewrite tune"):
        TuneCache(tmp_path, ("module",))


def test_a_cache_of_another_format_is_not_used(tmp_path: Path) -> None:
    cache = TuneCache(tmp_path, ("module",))
    cache.add(measured(TuneChoice("comm")))
    cache.path.write_text(json.dumps({"format": 99, "points": "of another kind"}))
    assert not TuneCache(tmp_path, ("module",)).points


def test_the_line_of_python_holds_every_option() -> None:
    choice = TuneChoice("comm-shift,all-reduce-fusion", "better", 3 * GIB, 1 << 20, *FLAGS[0])
    assert choice.python("h200:4x8") == (
        'step = hlorewrite.optimize(step, passes="comm-shift,all-reduce-fusion{bucket-bytes=1MiB}", keep="better", '
        'memory_budget="3GiB", topology="h200:4x8", compiler_options={\'xla_gpu_enable_pipelined_all_reduce\': True})')
    assert not with_buckets("comm-shift", 1)
