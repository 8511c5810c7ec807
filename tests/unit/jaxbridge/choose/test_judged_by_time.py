"""Candidates of pipelines that decide by time: the shorter step, no more on the wire, the memory of copies."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

import pytest

from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose import selection
from hlorewrite.jaxbridge.choose.candidates import Contest, RewriteCandidate
from hlorewrite.jaxbridge.choose.comparator import Comparator
from hlorewrite.jaxbridge.choose.speculate import Compilations
from hlorewrite.jaxbridge.step.options import as_passes
from hlorewrite.jaxbridge.step.report import RewriteReport, Rewritten
from hlorewrite.jaxbridge.step.variants import Variant, variants
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.passmanager.base import PassContext

MIB = 1 << 20
ALONE = Measured(8, 800 * MIB, 1400 * MIB, 100 * MIB, 1.0, "", step_s=1.0)
BETTER = replace(ALONE, calls=4, bytes=700 * MIB, wire=1225 * MIB, step_s=0.8)
FIRST, SECOND = Variant(as_passes("time")), Variant(as_passes("comm"))
EMPTY = parse("func.func @main() { return }")
GIVEN: dict[RewriteCandidate, Future[Measured]] = {}
"""What XLA makes of candidates."""


def candidate(made: Measured, memory: int = 0, variant: Variant = FIRST, name: str = "gpu") -> RewriteCandidate:
    """A candidate of which XLA makes what is given."""
    report = RewriteReport("time", True, True, (), (), (), 1, "")
    future: Future[Measured] = Future()
    future.set_result(made)
    code = f"{made} {memory}".encode()
    made_of = RewriteCandidate(name, EMPTY, Rewritten(EMPTY, code, report, memory=memory), variant)
    GIVEN[made_of] = future
    return made_of


def judge(smaller: RewriteCandidate | None = None, *, budget: int | None = None, cluster: str = "h200:1x8"
          ) -> selection.Selection:
    """A judge that takes the times of measurements as they are."""
    def rewritten(_: RewriteCandidate, __: Variant) -> RewriteCandidate:
        assert smaller is not None
        return smaller

    def never(module: object, variant: Variant) -> Rewritten:
        raise AssertionError("no pass runs")

    compilations = Compilations(Contest(EMPTY, DeviceSet("gpu"), 8, never, (), False), {})
    compilations.ahead = GIVEN
    return selection.Selection(Comparator(ALONE, "8 x GPU", cluster, budget), compilations, rewritten)


@pytest.fixture(autouse=True)
def given_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "timed", lambda made, _: made)


@pytest.mark.parametrize(("more", "budget", "kept"), [
    (0, None, True), (MIB, None, False), (0, 40 * MIB, True), (0, 39 * MIB, False), (0, 0, False)])
def test_temporaries_may_grow_by_the_copies_of_the_passes(more: int, budget: int | None, kept: bool) -> None:
    made = replace(BETTER, temp=140 * MIB + more)
    best = judge(budget=budget).best([candidate(made, memory=40 * MIB)], [])
    assert (best is not None) == kept


def test_the_shorter_step_is_kept_although_the_other_one_sends_less() -> None:
    less, shorter = replace(BETTER, wire=1000 * MIB, step_s=0.9), BETTER
    both = [candidate(less, name="cpu"), candidate(shorter)]
    best, by_bytes = judge().best(both, []), judge(cluster="").best(both, [])
    assert best is not None and best[0].partitioner == "gpu"
    assert by_bytes is not None and by_bytes[0].partitioner == "cpu"


def test_no_step_is_kept_that_is_longer_or_sends_more() -> None:
    assert judge().best([candidate(replace(BETTER, step_s=1.01))], []) is None
    assert judge().best([candidate(replace(BETTER, wire=1402 * MIB))], []) is None
    assert judge().best([candidate(replace(BETTER, wire=1401 * MIB))], []) is not None  # within noise


def test_where_the_step_is_longer_the_next_variant_is_tried() -> None:
    given = candidate(replace(BETTER, step_s=1.01))
    best = judge(candidate(BETTER, memory=1, variant=SECOND)).best([given], [SECOND])
    assert best is not None and best[0].variant == SECOND


def test_variants_of_the_pipeline_keep_reduce_scatters_and_end_without_overlap() -> None:
    made = variants(FIRST.passes, xla_scatters=True)
    assert made[0].passes == FIRST.passes
    moving = [any(step.beside_compute for step in variant.passes) for variant in made]
    assert moving == [True, True, False, False]
    names = [[step.name for step in variant.passes] for variant in made]
    assert [each.count("reduce-scatter-creation") for each in names] == [2, 2, 1, 1]
    assert [each.count("all-reduce-fusion") for each in names] == [names[0].count("all-reduce-fusion"), 0, 0, 0]
    assert [variant.memory for variant in made] == [None, None, None, 0]


def test_what_passes_take_is_counted_with_and_without_a_limit() -> None:
    free, limited = PassContext(), PassContext(memory_left=100)
    assert free.take_memory(80) and limited.take_memory(80) and not limited.take_memory(80)
    assert (free.memory_taken, limited.memory_taken) == (80, 80)
