"""Mutants of rewritten random programs, each by the validator and by the interpreter."""

from __future__ import annotations

import itertools
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass

from generators.check import PIPELINES, context_of, finite, tolerance_of
from generators.golden_cases import LIT, cases
from generators.mutants import mutant
from generators.random_programs import random_program

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.inputs import random_inputs
from hlorewrite.checks.reference.program import LockstepProgram, Outcome, prepare
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.cli.opt.job import split_text
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.context import new_context
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

SEEDS = (0, 1)
SECONDS = 1.0
Source = tuple[str, str, str]
PER_PROGRAM = 12


@dataclass(frozen=True)
class MutantTrial:
    """One mutant.

    Attributes:
      name: the program and the pipeline.
      what: what was changed.
      equal: whether the interpreter finds equal values.
      proved: whether the validator calls it proved.
      original: the text of the program.
      mutant: the text of the mutant.
    """

    name: str
    what: str
    equal: bool
    proved: bool
    original: str
    mutant: str


class ExecutedOriginal:
    """A program, and what it computes for some inputs.

    Args:
      module: the program.
    """

    def __init__(self, module: Module) -> None:
        self.program: LockstepProgram = prepare(module, "main")
        self.inputs = [random_inputs(self.program, seed) for seed in SEEDS]
        self.outcomes: list[Outcome] = [self.program.run(inputs) for inputs in self.inputs]

    @property
    def usable(self) -> bool:
        """Whether it ends on all devices with finite numbers, so that a difference is one."""
        return all(finite(outcome) and not outcome.diverged for outcome in self.outcomes)

    def equal(self, other: Module, tolerance: float) -> bool | None:
        """Whether another program computes the same; None when it cannot be run, or does not end.

        It is run in a process of its own, which an alarm ends.
        """
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            os._exit(self._answer(other, tolerance))
        _, status = os.waitpid(child, 0)
        return {0: True, 1: False}.get(os.waitstatus_to_exitcode(status))

    def _answer(self, other: Module, tolerance: float) -> int:
        try:
            program = prepare(other, "main", like=self.program)
            return int(not all(compare(outcome, program.run(inputs), "main", tolerance).equal
                               for inputs, outcome in zip(self.inputs, self.outcomes, strict=True)))
        except Exception:
            return 2


def trials_of(text: str, pipeline: str, choices: random.Random, name: str) -> Iterator[MutantTrial]:
    """Mutants of one program's result."""
    context = new_context()  # its processes are forked: it has no threads, which do not survive that
    try:
        before = parse(text, context=context)
        run_passes(before, parse_pipeline("canonicalize"), PassContext())  # what is not read makes mutants equal
        after = before.clone()
        run_passes(after, parse_pipeline(pipeline), context_of(pipeline))
        executed = ExecutedOriginal(before)
    except HlorewriteError:
        return
    if not executed.usable or not isinstance(validate(before, after), Proved):
        return
    tolerance = tolerance_of(text)
    for _ in range(PER_PROGRAM):
        made = mutant(after, choices)
        if made is None:
            continue
        module, what = made
        equal = executed.equal(module, tolerance)
        if equal is not None:
            yield MutantTrial(name, what, equal, isinstance(validate(before, module), Proved), text, module.text())


def random_sources(first: int) -> Iterator[Source]:
    """Random programs, each with one pipeline, from a seed on."""
    for number in itertools.count(first):
        pipeline = PIPELINES[number % len(PIPELINES)]
        yield random_program(random.Random(number)), pipeline, f"{number} {pipeline}"


def golden_sources() -> Iterator[Source]:
    """The modules of the golden files with the pipelines of their RUN lines, again and again."""
    for case in itertools.cycle(cases()):
        passes = [word.removeprefix("--pass=") for word in case.words if word.startswith("--pass=")]
        text = (LIT / case.file).read_text("utf-8", "replace")
        for line, part in split_text(text) if "--split-input-file" in case.words else [(1, text)]:
            if passes:
                yield part, ",".join(passes), f"{case.file}:{line}"


def mixed_sources(first: int) -> Iterator[Source]:
    """Golden files and random programs in turn."""
    for golden, drawn in zip(golden_sources(), random_sources(first), strict=False):
        yield golden
        yield drawn


def differing_trials(sources: Iterator[Source], count: int, choices: random.Random) -> Iterator[MutantTrial]:
    """Trials until so many mutants differ.

    Args:
      sources: programs with a pipeline and a name.
      count: how many differing ones to see.
      choices: which mutations are made.
    """
    seen = 0
    for text, pipeline, name in sources:
        for trial in trials_of(text, pipeline, choices, name):
            seen += not trial.equal
            yield trial
            if seen >= count:
                return
