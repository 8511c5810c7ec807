"""No pass sends more than before on any path, by an analysis of its own: golden files and random programs.

``cost.report.growth`` reads both modules and shares nothing with the placement of comm-shift. The random programs of
``test_random_programs`` are held to the same (``generators.check``).
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from generators.golden_cases import LIT, GoldenCase, cases
from generators.random_paths import random_paths
from oracle.at_random.test_random_programs import NIGHTLY

from hlorewrite.checks.reference.check import check
from hlorewrite.cli.opt import command as opt
from hlorewrite.cli.opt.job import split_text
from hlorewrite.cli.parser import Parser
from hlorewrite.cost.report.growth import Growth, worst_growth
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.programs import is_program
from hlorewrite.passmanager.spec import parse_pipeline

PATHS = 3000 if NIGHTLY else 240
SENDS_MORE = {
    "passes/hierarchical-all-reduce/ragged.mlir": "a tensor that does not divide by the GPUs of a host is padded",
    "passes/legalize-for-cpu": "XLA:CPU has no broadcast; what takes its place sends more",
    "passes/merge-statistics/batch-norm.mlir": "sums of all devices are gathered, in one call instead of two that wait",
    "passes/reshard-to-broadcast/chains-cpu.mlir": "the same, for a chain of permutes, asked for with --ignore-cost",
    "passes/shard-update/momentum.mlir": "a norm of shards is completed by an all-reduce of one number",
}
"""Golden files whose pass puts more bytes on the wire, and why."""
OTHERS = ("rules", "hoist-collectives", "collective-cse", "all-reduce-fusion",
          "comm-shift,rules,hoist-collectives,comm-shift", "comm-shift{memory-budget=1GiB}", "comm-shift{exact}")


def worst(before: Module, after: Module) -> Growth:
    """The worst function of a module."""
    names = [name for name, function in View(before).functions.items() if "sym_visibility" not in function.attributes
             or "private" not in str(function.attributes["sym_visibility"])]
    return max((worst_growth(before, after, name) for name in names), key=lambda growth: growth.bytes,
               default=Growth(0))


def grows(text: str, passes: list[Pass], context: PassContext, first_line: int = 1) -> Growth | None:
    """How much a module grows; None when it cannot be read or the passes refuse it."""
    try:
        before = parse(text, first_line=first_line)
        after = before.clone()
        run_passes(after, passes, context)
    except HlorewriteError:
        return None
    return None if is_program(before) else worst(before, after)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.file)
def test_golden_files(case: GoldenCase) -> None:
    """A golden file's own pipeline."""
    parser = Parser()
    opt.add_arguments(parser)
    arguments = parser.parse_args(list(case.words))
    text = (LIT / case.file).read_text("utf-8", "replace")
    passes = [step for names in arguments.passes for step in parse_pipeline(names)]
    expected = any("expected" in word for word in case.words)
    for first_line, part in split_text(text) if arguments.split_input_file else [(1, text)]:
        context = PassContext(ignore_cost=arguments.ignore_cost, topology=arguments.topology)
        growth = grows(part, passes, context, first_line)
        allowed = expected or any(case.file.startswith(name) for name in SENDS_MORE)
        assert growth is None or growth.bytes <= 0 or allowed, growth


@pytest.mark.parametrize("block", range(8))
def test_programs_that_depend_on_the_path(block: int, make_region: Callable[..., str]) -> None:
    """Unknown trip counts and branches: comm-shift, and in turn the other passes."""
    saved = 0
    for number in range(block, PATHS, 8):
        text = make_region(*random_paths(random.Random(number)))
        growth = grows(text, parse_pipeline("comm-shift"), PassContext())
        assert growth is not None and growth.bytes <= 0, (number, growth)
        saved += growth.bytes < 0
        other = OTHERS[number // 8 % len(OTHERS)]
        growth = grows(text, parse_pipeline(other), PassContext())
        assert growth is not None and growth.bytes <= 0, (number, other, growth)
    assert saved > PATHS // 8 // 3


@pytest.mark.parametrize("pipeline", ["comm-shift", "comm-shift{expected}", "comm-shift,rules,hoist-collectives"])
def test_values_of_programs_that_depend_on_the_path(pipeline: str, make_region: Callable[..., str]) -> None:
    """Every device computes what it did; trip counts from 0 on, either branch."""
    for number in range(PATHS // 6):
        before = parse(make_region(*random_paths(random.Random(number))))
        after = before.clone()
        if run_passes(after, parse_pipeline(pipeline), PassContext()):
            report = check(before, after, seed=number, tolerance=1e-3)
            assert report.equal, f"{number}: {report.table()}{report.problems}"


def test_expectation_alone_sends_more_on_some_path(make_region: Callable[..., str]) -> None:
    """Otherwise the programs above would not distinguish the two."""
    more = [number for number in range(120) if (growth := grows(
        make_region(*random_paths(random.Random(number))), parse_pipeline("comm-shift{expected}"), PassContext()))
        and growth.bytes > 0]
    assert more
