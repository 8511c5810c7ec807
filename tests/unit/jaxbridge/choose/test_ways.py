"""Which ways are tried, in which order, and which of them is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hlorewrite.hlo.published_flags import FLAG_SETS, PROFILE
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose.fastest import Ladder
from hlorewrite.jaxbridge.choose.ways import (
    BOTH,
    COMBINED,
    GUIDED,
    UNROLLED,
    Way,
    flagged,
    guided,
    name_of,
    rewriting_ways,
)
from hlorewrite.jaxbridge.step.options import as_passes
from hlorewrite.jaxbridge.step.variants import Variant, variants
from hlorewrite.jaxbridge.xla import profile_files
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.named import PIPELINES

GIB = 1 << 30
FIRST, FREE, WHOLE, APART = "time", "time with free memory", "time, undivided", "comm, unfused"
SUNK, COMM_SUNK = "time, sunk waits", "comm, sunk waits"
PAIRS, PAIRS_SUNK = "pairs", "pairs, sunk waits"
FLAGGED, ALONE_FLAGGED = f"time, {UNROLLED}", f"XLA alone, {UNROLLED}"


def step(seconds: float, exposed: float = 0.2, memory: int = 50 * GIB) -> Measured:
    """A step of which communication adds a share, on a device of 140 GiB; the more temporaries, the more memory."""
    return Measured(8, 800, 1400, memory - 40 * GIB, 1.0, "", step_s=seconds, exposed_s=exposed * seconds,
                    memory=memory, capacity=140 * GIB, counted_s=seconds, plain_s=seconds,
                    compute_s=seconds * (1 - exposed), profile='costs { name: "a" cost_us: 1.000 }\n')


def ladder(made: Mapping[str, Measured | str], alone: Measured | None = None, *,
           sets: Sequence[str] = (UNROLLED,), users: Mapping[str, object] | None = None
           ) -> tuple[Ladder, list[str], str]:
    """The ladder of ``auto`` over given figures, the names that were compiled, and what is chosen.

    Without figures for pairs, the step accumulates no gradients.
    """
    asked: list[str] = []

    def measure(way: Way) -> Measured | str:
        if way.base in (PAIRS, PAIRS_SUNK) and way.base not in made:
            return "no loop runs in pairs"
        asked.append(way.name)
        return made.get(way.name, "no pass changes the module")

    run = Ladder(alone or step(1.0), measure, None, users or {}, sets)
    ways = rewriting_ways((), "auto", "gpu", xla_scatters=True, free=10 * GIB)
    best = run.run(ways)
    return run, asked, "XLA alone" if best is None else best[0].name


def test_the_most_promising_way_is_first_and_a_gain_ends_the_search():
    _, asked, chosen = ladder({FIRST: step(0.9, 0.02)})
    assert asked == [FIRST] and chosen == FIRST


@pytest.mark.parametrize(("first", "asked"), [
    (step(0.9, 0.2), [FIRST, SUNK, FREE, FLAGGED]),  # communication adds much: memory, then flags
    (step(0.9, 0.06), [FIRST, SUNK, FLAGGED]),  # too little for memory
    (step(0.9, 0.04), [FIRST]),  # too little for sunk waits and flags
    (step(0.975, 0.04), [FIRST, WHOLE, APART]),  # little is gained: without halves, then calls apart
    (step(0.985, 0.06), [FIRST, SUNK, WHOLE, APART, FLAGGED, ALONE_FLAGGED]),  # hardly anything: XLA alone, too
    (step(0.9, 0.009), [FIRST]),  # nothing is left to gain
])
def test_a_way_is_tried_while_enough_is_left_to_gain(first: Measured, asked: list[str]):
    assert ladder({FIRST: first})[1] == asked


@pytest.mark.parametrize(("pairs", "asked"), [
    (0.85, [FIRST, PAIRS, PAIRS_SUNK, FREE]),
    (0.95, [FIRST, PAIRS, SUNK, FREE, FLAGGED]),
])
def test_waits_are_sunk_where_pairs_are_better_and_elsewhere(pairs: float, asked: list[str]):
    made = {FIRST: step(0.9), PAIRS: step(pairs), PAIRS_SUNK: step(0.84)}
    assert ladder(made)[1:] == (asked, PAIRS_SUNK if pairs < 0.9 else FIRST)


def test_pairs_need_waits():
    assert PAIRS not in ladder({FIRST: step(0.9, 0.02), PAIRS: step(0.8)})[1]


@pytest.mark.parametrize(("sunk", "tried"), [(0.88, True), (0.95, False)])
def test_waits_of_comm_are_sunk_where_that_pays_with_time(sunk: float, tried: bool, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch):
    """Megatron over four hosts: 305 instead of 308 ms with ``time``, 281 ms with ``comm``."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    guided_too = f"{COMM_SUNK}, {GUIDED}"
    made = {FIRST: step(0.9), SUNK: step(sunk), COMM_SUNK: step(0.8), guided_too: step(0.7)}
    _, asked, chosen = ladder(made, sets=(GUIDED,))
    assert (COMM_SUNK in asked) == tried and chosen == (guided_too if tried else FIRST)


def test_where_hardly_anything_communicates_nothing_is_tried():
    run, asked, chosen = ladder({FIRST: step(0.5)}, step(1.0, 0.009))
    assert asked == [] and chosen == "XLA alone"
    assert {row.why for row in run.left} == {f"communication adds only 0.9% to {of}" for of in ("the best step",
                                                                                                "XLA alone")}


def test_no_kernel_is_saved_so_a_step_as_short_as_the_kernels_ends_the_search():
    run, asked, _ = ladder({FIRST: replace(step(0.76), compute_s=0.6)})
    assert asked == [FIRST]
    assert "the best step takes less than the kernels of XLA alone" in {row.why for row in run.left}


@pytest.mark.parametrize(("made", "chosen"), [
    ({FIRST: step(0.9), FREE: step(0.7)}, FREE),
    ({FIRST: step(0.9), FREE: step(0.7, memory=130 * GIB)}, FIRST),  # does not fit
    ({FIRST: step(0.9), FREE: step(0.899)}, FIRST),  # equal within noise: fewer temporaries, then the first
    ({FIRST: step(0.9), FREE: step(1.2), FLAGGED: step(0.89)}, FLAGGED),
    ({FIRST: step(0.9), FREE: step(1.2), FLAGGED: step(0.8995)}, FIRST),  # options only where they pay
    ({FIRST: step(1.1), ALONE_FLAGGED: step(0.97)}, ALONE_FLAGGED),
    ({FIRST: step(1.1), WHOLE: step(0.95)}, WHOLE),  # XLA schedules halves badly
    ({FIRST: step(1.1), APART: step(1.0)}, "XLA alone"),
    ({FIRST: "XLA cannot compile the module"}, "XLA alone"),
])
def test_the_shortest_step_that_fits_is_chosen(made: Mapping[str, Measured | str], chosen: str):
    assert ladder(made)[2] == chosen


def test_on_several_hosts_xla_alone_with_combined_messages_is_tried_second():
    alone, both = f"XLA alone, {COMBINED}", (COMBINED, UNROLLED)
    _, asked, chosen = ladder({FIRST: step(0.9), alone: step(0.8, 0.04)}, sets=both)
    assert asked == [FIRST, alone, ALONE_FLAGGED] and chosen == alone
    _, asked, chosen = ladder({FIRST: step(0.9), alone: step(0.86)}, sets=both)
    assert asked == [FIRST, alone, SUNK, FREE, FLAGGED, ALONE_FLAGGED] and chosen == alone
    _, asked, chosen = ladder({FIRST: step(0.9), alone: step(0.86), FLAGGED: step(0.8)}, sets=both)
    assert asked == [FIRST, alone, SUNK, FREE, FLAGGED] and chosen == FLAGGED
    _, asked, chosen = ladder({FIRST: step(0.99), alone: step(0.94), ALONE_FLAGGED: step(0.92)}, sets=both)
    assert asked[-1] == ALONE_FLAGGED and chosen == ALONE_FLAGGED


@pytest.mark.parametrize(("first", "tried"), [(0.995, True), (0.985, False)])
def test_where_passes_gain_hardly_anything_little_communication_is_enough_for_flags(first: float, tried: bool):
    """A GPT under FSDP: communication added 1.8 %, passes gained 0.1 %, unrolled loops 0.7 %."""
    _, asked, chosen = ladder({FIRST: step(first, 0.018), ALONE_FLAGGED: step(0.98, 0.01)}, step(1.0, 0.018))
    assert (ALONE_FLAGGED in asked) == tried and chosen == (ALONE_FLAGGED if tried else FIRST)


def test_published_flags_are_not_tried_where_passes_gain_much():
    run, asked, chosen = ladder({FIRST: step(0.84)}, sets=(COMBINED, UNROLLED))
    assert asked == [FIRST, SUNK, FREE] and chosen == FIRST
    why = {row.name: row.why for row in run.left}
    assert {why[name] for name in (FLAGGED, f"XLA alone, {COMBINED}")} == {"the best step is 16.0% shorter already"}


@pytest.mark.parametrize(("combined", "tried"), [(0.915, True), (0.93, False)])
def test_xla_alone_that_is_nearly_as_short_under_a_set_is_tried_under_the_others(combined: float, tried: bool):
    """A Megatron step over four hosts: ``time`` took 0.947 of XLA alone, combined messages 0.952, unrolled 0.921."""
    made = {FIRST: step(0.9), f"XLA alone, {COMBINED}": step(combined), FLAGGED: step(0.95), ALONE_FLAGGED: step(0.85)}
    _, asked, chosen = ladder(made, sets=(COMBINED, UNROLLED))
    assert (ALONE_FLAGGED in asked) == tried and chosen == (ALONE_FLAGGED if tried else FIRST)


@pytest.mark.parametrize(("combined", "both", "unrolled"), [
    (0.88, 0.86, [f"{FIRST}, {BOTH}"]), (0.92, 0.86, [FLAGGED]), (0.88, 0.885, [f"{FIRST}, {BOTH}", FLAGGED])])
def test_loops_are_unrolled_with_combined_messages_where_these_alone_are_best(combined: float, both: float,
                                                                              unrolled: list[str]):
    """Megatron over four hosts took 318 ms with combined messages, 319 with both, and 308 with unrolled loops alone."""
    made = {FIRST: step(0.9), f"XLA alone, {COMBINED}": step(combined), f"{FIRST}, {BOTH}": step(both),
            FLAGGED: step(0.87)}
    _, asked, chosen = ladder(made, sets=(COMBINED, UNROLLED, BOTH))
    assert [name for name in asked if name in (FLAGGED, f"{FIRST}, {BOTH}")] == unrolled and chosen == unrolled[-1]


# ---- ways guided by a profile of predicted times


def test_the_folder_of_profiles_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(profile_files, "MOST_KEPT", 3)
    paths = [Path(str(profile_files.profile_options(f'costs {{ name: "a" cost_us: {number}.000 }}\n')[PROFILE]))
             for number in range(5)]
    assert [path.exists() for path in paths] == [False, False, True, True, True]


def test_the_best_way_is_tried_with_a_profile_of_its_own_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run, asked, chosen = ladder({FIRST: step(0.9), f"{FIRST}, {GUIDED}": step(0.8, 0.02)}, sets=(GUIDED, UNROLLED))
    assert asked == [FIRST, f"{FIRST}, {GUIDED}"] and chosen == f"{FIRST}, {GUIDED}"
    options = next(dict(row.flags) for row in run.rows() if row.name == chosen)
    assert Path(str(options[PROFILE])).read_text() == step(0.9).profile


@pytest.mark.parametrize(("first", "guides"), [
    (step(0.9), [FIRST]),  # the way that is best so far
    (step(0.99), [FIRST, "XLA alone"]),  # XLA alone too, where passes gain little
    (step(0.9, 0.02), []),  # compute waits for hardly anything
    (step(1.3), ["XLA alone"]),  # too long to become the best
])
def test_a_profile_is_tried_only_where_it_may_make_the_best_step(first: Measured, guides: list[str], tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    shorter = {f"{name}, {GUIDED}": step(0.98) for name in (FIRST, "XLA alone")}
    asked = ladder({FIRST: first, **shorter}, sets=(GUIDED,))[1]
    assert [name for name in asked if GUIDED in name] == [f"{name}, {GUIDED}" for name in guides]


def test_options_alone_do_not_replace_passes_that_the_user_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = {"mine": step(0.99), f"mine, {GUIDED}": step(0.98), f"XLA alone, {GUIDED}": step(0.5)}
    run = Ladder(step(1.0), lambda way: made[way.name], sets=(GUIDED,), named=True)
    best = run.run([Way("mine", Variant(()))])
    assert best is not None and best[0].name == f"mine, {GUIDED}" and len(run.tried) == 2


def test_once_a_profile_shortens_no_step_the_others_are_not_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = {FIRST: step(0.99), f"{FIRST}, {GUIDED}": step(0.99)}
    assert f"XLA alone, {GUIDED}" not in ladder(made, sets=(GUIDED,))[1]


def test_profiles_of_sunk_waits_and_of_other_ways_say_nothing_of_each_other(monkeypatch: pytest.MonkeyPatch,
                                                                            tmp_path: Path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = {FIRST: step(0.9), f"{FIRST}, {GUIDED}": step(0.85), SUNK: step(0.88), f"{SUNK}, {GUIDED}": step(0.88),
            FLAGGED: step(0.84), f"{FLAGGED}, {GUIDED}": step(0.8)}
    assert ladder(made, sets=(GUIDED, UNROLLED))[2] == f"{FLAGGED}, {GUIDED}"
    made |= {f"{FIRST}, {GUIDED}": step(0.9), f"{SUNK}, {GUIDED}": step(0.7)}
    assert ladder(made, sets=(GUIDED, UNROLLED))[2] == f"{SUNK}, {GUIDED}"


def test_a_profile_of_the_users_stays_and_no_folder_means_no_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert guided(Way("time"), step(1.0), {PROFILE: "/mine"}) is None
    assert guided(Way("time"), replace(step(1.0), profile=""), {}) is None
    (tmp_path / "hlorewrite").write_text("a file where the folder would be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert guided(Way("time"), step(1.0), {}) is None


def test_rows_name_every_way_and_why_it_is_not_better():
    run, *_ = ladder({FIRST: step(1.01), FREE: "XLA cannot compile the module"}, sets=())
    assert [(row.name, row.why) for row in run.rows()] == [
        ("XLA alone", ""), (FIRST, "time would take 1.01 s, and XLA alone takes 1 s"),
        (PAIRS, "no loop runs in pairs"), (PAIRS_SUNK, f"{PAIRS} is not the best so far"),
        (SUNK, "no pass changes the module"), (FREE, "XLA cannot compile the module"),
        *((name, "no pass changes the module") for name in (WHOLE, APART)),
        (COMM_SUNK, f"{SUNK} is not the best so far")]


@pytest.mark.parametrize(("first", "tried"), [(1.03, False), (1.01, True)])
def test_more_memory_is_not_spent_where_less_takes_longer_than_xla_alone(first: float, tried: bool):
    run, asked, _ = ladder({FIRST: step(first), FREE: step(0.9)}, sets=())
    assert (FREE in asked) == tried
    assert tried or "time takes 3.0% longer than XLA alone" in {row.why for row in run.left}


@pytest.mark.parametrize(("first", "asked"), [(140 * GIB, [FIRST, SUNK, WHOLE, APART]),
                                              (120 * GIB, [FIRST, SUNK, FLAGGED])])
def test_options_are_not_tried_on_what_does_not_fit(first: int, asked: list[str]):
    large = step(1.0, memory=150 * GIB)
    run, tried, _ = ladder({FIRST: step(0.9 if first < 126 * GIB else 0.985, 0.06, memory=first)}, large)
    assert tried == asked
    assert "the step does not fit without these options, which take no less memory" in {row.why for row in run.left}


@pytest.mark.parametrize(("hlo", "why"), [
    (" while(".ljust(8 << 20), ""),
    (" while(".ljust((8 << 20) + 1), "its loops are too large to copy (8 MiB of HLO)"),
    ("ROOT %t = f32[] tuple()", "it has no loop to copy")])
def test_only_loops_of_small_programs_are_unrolled(hlo: str, why: str):
    run, asked, _ = ladder({FIRST: step(0.985, 0.06)}, replace(step(1.0), hlo=hlo))
    assert (FLAGGED in asked, ALONE_FLAGGED in asked) == (not why, not why)
    assert not why or why in {row.why for row in run.left}
    assert (PAIRS in ladder({FIRST: step(0.985), PAIRS: step(0.98)}, replace(step(1.0), hlo=hlo))[1]) == (not why)


def test_flags_that_the_user_sets_stay():
    every = {name: "false" for each in FLAG_SETS for name in each.flags}
    assert flagged(Way("time"), every, (COMBINED, UNROLLED)) == []
    assert not any(UNROLLED in name for name in ladder({FIRST: step(0.9)}, users=every)[1])


def test_a_named_pipeline_is_tried_with_less_and_less_of_what_takes_memory():
    names = [way.name for way in rewriting_ways(as_passes("comm"), "comm", "gpu", xla_scatters=False)]
    assert names == ["comm", "comm, unfused", "comm, in place and without memory"]
    large, asked = step(0.5, memory=130 * GIB), []

    def measure(way: Way) -> Measured:
        asked.append(way.name)
        return large

    run = Ladder(step(1.0), measure)
    assert run.run(rewriting_ways(as_passes("comm"), "comm", "gpu", xla_scatters=False)) is None
    assert asked == names  # each takes too much, so the next one is tried


def test_variants_of_the_pipeline_keep_reduce_scatters_and_end_without_overlap() -> None:
    passes = as_passes("time")
    made = variants(passes, xla_scatters=True)
    assert made[0].passes == passes
    moving = [any(step.beside_compute for step in variant.passes) for variant in made]
    assert moving == [True, True, False, False]
    names = [[step.name for step in variant.passes] for variant in made]
    assert [each.count("reduce-scatter-creation") for each in names] == [2, 2, 1, 1]
    assert [each.count("all-reduce-fusion") for each in names] == [names[0].count("all-reduce-fusion"), 0, 0, 0]
    assert [variant.memory for variant in made] == [None, None, None, 0]


def test_a_pipeline_is_called_as_the_user_wrote_it():
    assert [name_of(text, as_passes(text)) for text in ("comm", PIPELINES["time"], "comm-shift")] == [
        "comm", "time", "comm-shift"]


def test_what_passes_take_is_counted_with_and_without_a_limit() -> None:
    free, limited = PassContext(), PassContext(memory_left=100)
    assert free.take_memory(80) and limited.take_memory(80) and not limited.take_memory(80)
    assert (free.memory_taken, limited.memory_taken) == (80, 80)
