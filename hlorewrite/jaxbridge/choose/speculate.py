"""XLA's compilations of candidates, some of them started before the comparison asks for them.

XLA alone compiles in another thread. The passes run as soon as its partitioner is through, and the candidate that is
expected to be compared next is compiled meanwhile. A compilation that turns out not to be needed is ignored.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from hlorewrite.ir import ALL_REDUCE, Format, Module, View, emit, ir, new_context, parse
from hlorewrite.jaxbridge.baseline.baseline_run import BaselineRun
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured, scheduled
from hlorewrite.jaxbridge.baseline.memory_grant import AloneMeasured
from hlorewrite.jaxbridge.choose.candidates import CandidateMaker, Contest, RewriteCandidate
from hlorewrite.jaxbridge.step.report import collectives_by_op

Made = TypeVar("Made")
_Asked = tuple[RewriteCandidate, tuple[object, ...]]
"""A candidate and further XLA options."""


def done(function: Callable[[], Made]) -> Future[Made]:
    """The result of a function, or XLA's refusal, from a thread that has ended.

    In a process that has compiled other steps, XLA takes up to a quarter longer in the main thread, whose memory is
    fragmented. malloc gives each new thread its own arena.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(function)


@dataclass
class Compilations:
    """The compilations of one contest, each up to code generation and at most once.

    Args:
      contest: the module and the terms.
      flags: XLA flags for candidates, beyond the user's.
      pool: threads for compilations ahead of time; None for no such compilations.
    """

    contest: Contest
    flags: Flags
    pool: ThreadPoolExecutor | None = None
    _asked: dict[_Asked, Future[Measured]] = field(default_factory=dict, init=False)
    ahead: dict[RewriteCandidate, Future[Measured]] = field(default_factory=dict, init=False)
    """Compilations that started before anyone asked for them."""

    def measured(self, candidate: RewriteCandidate, more: Flags | None = None) -> Measured:
        """XLA's compilation of a candidate.

        Args:
          candidate: the rewritten module.
          more: further XLA options of this compilation.

        Raises:
          InputError: XLA refuses it.
        """
        key = candidate, tuple((more or {}).items())
        if key not in self._asked:
            ahead = None if more else self.ahead.get(candidate)
            self._asked[key] = ahead or done(lambda: scheduled(candidate.made.module, self.contest.place,
                                                               {**self.flags, **(more or {})})[0])
        return self._asked[key].result()

    def was_asked(self, candidate: RewriteCandidate) -> bool:
        """Whether the comparison has already asked for a candidate."""
        return (candidate, ()) in self._asked

    def begin(self, candidate: RewriteCandidate) -> None:
        """Begins the compilation of a candidate that will be compared."""
        self._asked[candidate, ()] = self._submitted(candidate)

    def begin_likely(self, candidates: list[RewriteCandidate], maker: CandidateMaker) -> None:
        """Begins the compilation that will most likely be asked for first, while that of XLA alone runs.

        Args:
          candidates: the candidates to compare.
          maker: makes the unfused candidate.
        """
        changed = [c for c in candidates if c.made.report.changed]
        if not changed:
            return
        likely = min(changed, key=lambda c: c.order)
        unlimited = [variant for variant in self.contest.variants[1:] if variant.memory is None]
        if unlimited and likely.sends_more_fused(expected_wire(likely.source)):
            unfused = maker.smaller(likely, unlimited[0])
            likely = unfused if unfused.made.report.changed else likely
        self.ahead[likely] = self._submitted(likely)

    @property
    def bounded(self) -> bool:
        """Whether a module's own bytes bound what it sends: XLA's code motion leaves candidates alone."""
        return self.contest.place.platform != "gpu" or bool(self.flags)

    def baseline(self, flags: Flags, dumps: Path | None = None) -> BaselineRun:
        """Begins XLA alone's compilation of the user's module in another thread.

        Args:
          flags: XLA options in addition to the user's.
          dumps: an empty folder for its partitioner's program; None if that is not needed.
        """
        return BaselineRun(self.begun_alone(flags, dumps), dumps, flags)

    def begun_alone(self, flags: Flags, dumps: Path | None = None) -> Future[AloneMeasured]:
        """Begins the same compilation, and returns its future alone."""
        assert self.pool is not None
        module, place = _own(self.contest.module), self.contest.place
        if dumps is None:
            return self.pool.submit(scheduled, module, place, flags, False)
        return self.pool.submit(scheduled, module, place, flags, True, dumps)

    def alone(self, flags: Flags) -> Future[AloneMeasured]:
        """Runs the same compilation and waits for it."""
        return done(lambda: scheduled(self.contest.module, self.contest.place, flags))

    def _submitted(self, candidate: RewriteCandidate) -> Future[Measured]:
        assert self.pool is not None
        module = _own(candidate.made.module, candidate.made.bytecode)
        return self.pool.submit(lambda: scheduled(module, self.contest.place, self.flags)[0])


def expected_wire(partitioned: Module) -> Fraction:
    """Estimates how many bytes XLA alone will send, before it has compiled. XLA turns all-reduces that are only sliced
    into reduce-scatters, which send half as much, and moves no collective.

    Args:
      partitioned: the output of XLA's partitioner.

    Returns:
      Bytes of one device.
    """
    return sum((executed.wire_bytes / (2 if op.name == ALL_REDUCE.op and _is_only_sliced(op) else 1)
                for op, executed in collectives_by_op(View(partitioned))), Fraction(0))


def _is_only_sliced(op: ir.Operation) -> bool:
    return all(use.owner.name == "stablehlo.dynamic_slice" for result in op.results for use in result.uses)


def _own(module: Module, bytecode: bytes | None = None) -> Module:
    """A copy in a separate context, for another thread; read from the module's bytecode if that is given."""
    written = bytecode or emit(module, Format.BYTECODE)
    return replace(parse(written, name=module.name, context=new_context(load=False)), frames=module.frames)
