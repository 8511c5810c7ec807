"""One random program through pipelines: verified, executed before and after, and compared."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import FrameType

import numpy as np

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.inputs import run_on_random_inputs
from hlorewrite.checks.reference.program import Array, Outcome, prepare
from hlorewrite.cost.report.growth import worst_growth
from hlorewrite.errors import HlorewriteError, InputError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

PIPELINES = ("comm-shift", "inline,comm-shift", "comm-shift,rules", "rules,comm-shift",
             "comm-shift{memory-budget=1GiB}", "comm-shift{exact}", "comm-shift,canonicalize,cse",
             "comm-shift{memory-budget=1GiB},all-reduce-fusion,collective-cse", "inline,hoist-collectives,comm-shift",
             "reduce-scatter-creation,masked-sum-to-broadcast,gather-to-broadcast,permutes-to-broadcast",
             "legalize-for-cpu,comm-shift", "comm-shift,peel-last-micro-batch,comm-shift")
"""What random programs go through, and what the validator supports."""
BESIDE_COMPUTE = "comm-shift,peel-last-micro-batch,sink-reductions,rotate-collectives{outer=true},comm-shift"
SHARDED = "gather-once{memory-budget=1GiB},comm-shift{memory-budget=1GiB},collective-cse,comm-shift"
EVERY = (*PIPELINES, SHARDED, BESIDE_COMPUTE)
"""What random programs go through."""


def context_of(pipeline: str) -> PassContext:
    """Passes that decide by time move whatever is legal."""
    return PassContext(ignore_cost=any(name in pipeline for name in ("peel-last", "sink-reductions", "rotate-")))


# Sums in another order, over up to 8 devices and 4 nested iterations, after products that may cancel.
TOLERANCE = 1e-4
_LOOSE = {"bf16": 0.3, "f16": 0.05, "f8E4M3FN": 1.0}
_SEND_MORE = ("legalize-for-cpu", "merge-statistics")
"""Passes that may send more bytes: they emulate a broadcast, or replace two calls by a gather."""
SECONDS = 20
"""What a pipeline may take for one program; they take milliseconds."""


@dataclass(frozen=True)
class Finding:
    """What is wrong with one program after one pipeline.

    Attributes:
      kind: ``wrong`` values, a ``crash``, a ``hang``, ``more`` bytes on some path, or ``changed`` without saying so.
      pipeline: the pipeline.
      message: what was seen.
    """

    kind: str
    pipeline: str
    message: str


@dataclass(frozen=True)
class Checked:
    """What became of one program in one pipeline.

    Attributes:
      changed: whether it was rewritten.
      finding: what is wrong; None when nothing is.
    """

    changed: bool
    finding: Finding | None = None


class RandomProgram:
    """A program whose values before are computed once.

    Args:
      text: the module.
      seed: the seed of its inputs.
    """

    def __init__(self, text: str, seed: int) -> None:
        self.text = text
        self.seed = seed
        self.module = parse(text)

    @cached_property
    def expected(self) -> Outcome:
        """What the original computes."""
        return self._ran[1]

    @cached_property
    def _original(self):
        return prepare(self.module, "main")

    @cached_property
    def _ran(self) -> tuple[list[list[Array]], Outcome]:
        return run_on_random_inputs(self._original, self.seed)

    def check(self, pipeline: str) -> Checked:
        """Runs a pipeline and compares; never raises for what the pipeline does wrong."""
        try:
            with time_limit(SECONDS):
                after, changed = rewritten(self.module, pipeline)
        except InputError as error:
            # XLA:CPU runs no collective_broadcast, and over replicas of partitions it has no other form.
            if "collective_broadcast of several replicas" in str(error):
                return Checked(False)
            return Checked(False, Finding("crash", pipeline, str(error)))
        except TimeoutError:
            return Checked(False, Finding("hang", pipeline, f"not done after {SECONDS} s"))
        except HlorewriteError as error:
            return Checked(False, Finding("crash", pipeline, str(error)))
        if not changed:
            same = str(after.mlir) == str(self.module.mlir)
            return Checked(False, None if same else Finding("changed", pipeline, "it says that nothing changed"))
        growth = worst_growth(self.module, after)
        if growth.bytes > 0 and not any(name in pipeline for name in _SEND_MORE):
            return Checked(True, Finding("more", pipeline, f"{growth.bytes} bytes more when {', '.join(growth.path)}"))
        return Checked(True, self._compared(after, pipeline))

    def _compared(self, after: Module, pipeline: str) -> Finding | None:
        program = prepare(after, "main", like=self._original)
        if self.expected.diverged:
            return Finding("crash", pipeline, "the generator wrote a program that hangs")
        if not finite(self.expected):
            return None
        report = compare(self.expected, program.run(self._ran[0]), "main", tolerance_of(self.text))
        if report.equal:
            return None
        return Finding("wrong", pipeline, f"inputs of seed {self.seed}:\n{report.table()}{report.problems}")


def tolerance_of(text: str) -> float:
    """The relative error that a program's element types allow."""
    return max([TOLERANCE, *(value for name, value in _LOOSE.items() if f"x{name}>" in text)])


def finite(outcome: Outcome) -> bool:
    """Whether no product ran over; sums in another order could then differ without a fault."""
    return all(np.isfinite(value if value.dtype.kind == "c" else value.astype(np.float64)).all()
               for row in outcome.outputs for value in row)


def rewritten(before: Module, pipeline: str) -> tuple[Module, bool]:
    """A module after a pipeline, and whether any pass says that it changed; the manager verifies after each."""
    after = before.clone()
    return after, run_passes(after, parse_pipeline(pipeline), context_of(pipeline))


def checked(text: str, pipelines: Sequence[str], seed: int) -> list[Checked]:
    """What becomes of a program in each of some pipelines."""
    program = RandomProgram(text, seed)
    return [program.check(pipeline) for pipeline in pipelines]


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises ``TimeoutError`` in a body of Python that takes longer.

    Example:
      >>> with time_limit(5):
      ...     pass
    """
    def ended(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError
    before = signal.signal(signal.SIGALRM, ended)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
