"""The validator over what passes make: golden files, benches and random programs are proved; the rest is listed."""

from __future__ import annotations

import os
import random

import pytest
from generators.check import PIPELINES, context_of
from generators.golden_cases import GoldenCase, cases, modules
from generators.mutant_trials import differing_trials, mixed_sources
from generators.random_programs import random_program

from hlorewrite.checks.translation_validation.validate import FAILED, validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.errors import InputError
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

NIGHTLY = os.environ.get("HLOREWRITE_NIGHTLY") == "1"

LOSSY = "sums are sent in a narrower type, as asked for: other values"
FRAGMENTS = "a program of several meshes whose fragments send other values, or are cut"
AT_RUN_TIME = "the last iteration of a loop that runs as often as a value at run time says"
SCATTERED = "what a scatter adds to, apart from what it adds"
SHARDED = "a sum that is computed with in shards, and gathered later"
PLACED = "arguments and results that the caller places in shards: the signatures differ"
FROM_OWN_MEANS = "squared distances from another mean, and a factor of each term taken out of a sum"
SPLIT = "from one mesh to several: nothing to compare node by node"
UNKNOWN_GOLDEN: dict[tuple[str, int], str] = {
    ("passes/comm-shift/accumulation/wire-dtype.mlir", 1): LOSSY,
    ("passes/comm-shift/programs/program-tied-weights.mlir", 1): FRAGMENTS,
    ("passes/comm-shift/programs/program.mlir", 1): FRAGMENTS,
    ("passes/merge-statistics/batch-norm.mlir", 1): FROM_OWN_MEANS,
    ("passes/peel-last-micro-batch/accumulation.mlir", 44): AT_RUN_TIME,
    ("passes/sequence-parallel/layers.mlir", 1): SHARDED,
    ("passes/shard-update/momentum.mlir", 1): PLACED,
    ("passes/share-fragments/layer-and-more.mlir", 1): FRAGMENTS,
    **{(f"passes/split-stages/{name}.mlir", 1): SPLIT for name in (
        "cut-in-a-loop", "shared-weight", "stacked-layers", "two-stages", "unequal-stages")},
    **{("rules/carry-inside-scatter.mlir", line): SCATTERED for line in (1, 79, 154)},
}
"""Golden files, and the line where their module begins, that the validator does not know; to grow shorter only."""


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.file)
def test_golden_files(case: GoldenCase) -> None:
    """What a golden file's pipeline makes of each of its modules is proved, or is listed as unknown."""
    for first_line, pair in modules(case)[1]:
        if isinstance(pair, str):
            continue
        answer = validate(*pair)
        assert not str(answer).startswith(f"unknown: {FAILED}"), answer
        listed = UNKNOWN_GOLDEN.get((case.file, first_line))
        if listed is None:
            assert isinstance(answer, Proved), f"line {first_line}: {answer}"
        else:
            assert isinstance(answer, Unknown), f"line {first_line} is proved now: take it off the list"


def test_list_of_golden_files_is_short() -> None:
    """Fewer than one golden file in ten is listed."""
    files = {case.file for case in cases()}
    assert {file for file, _ in UNKNOWN_GOLDEN} <= files
    assert len({file for file, _ in UNKNOWN_GOLDEN}) < len(files) / 10


@pytest.mark.parametrize("block", range(3))
def test_random_programs(block: int) -> None:
    """Most rewritten random programs are proved, and all that did not change: 93 of each 100, 19 of 20 of each 800."""
    count = 800 if NIGHTLY else 100
    proved, changed = 0, 0
    for number in range(block * count, (block + 1) * count):
        before = parse(random_program(random.Random(number)))
        after = before.clone()
        try:
            pipeline = PIPELINES[number % len(PIPELINES)]
            rewritten = run_passes(after, parse_pipeline(pipeline), context_of(pipeline))
        except InputError:  # replicas and partitions that legalize-for-cpu refuses
            continue
        if not rewritten:
            assert isinstance(validate(before, after), Proved)
            continue
        answer = validate(before, after)
        assert not str(answer).startswith(f"unknown: {FAILED}"), f"{number}: {answer}"
        proved += isinstance(answer, Proved)
        changed += 1
    assert changed > count // 3
    assert proved >= (0.95 if NIGHTLY else 0.93) * changed


@pytest.mark.parametrize("count", [pytest.param(12, id="few"), pytest.param(2000 if NIGHTLY else 150, id="many")])
def test_mutants(count: int) -> None:
    """No mutant that computes something else is proved (5000 of them: ``bench/checks/validator_mutants.py``)."""
    trials = list(differing_trials(mixed_sources(5000), count, random.Random(5)))
    wrong = [trial for trial in trials if trial.proved and not trial.equal]
    assert not wrong, f"{wrong[0].what} in {wrong[0].name}:\n{wrong[0].original}\n{wrong[0].mutant}"
    equal = [trial for trial in trials if trial.equal]
    assert sum(trial.proved for trial in equal) > len(equal) // 2
