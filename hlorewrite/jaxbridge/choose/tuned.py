"""Measures choices of ``hlorewrite tune``: rewrites the step, compiles it for the target, simulates its schedule."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jaxlib import version as jaxlib_version

from hlorewrite.errors import HlorewriteError
from hlorewrite.hlo.published_flags import PROFILE
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.measured import Measured, compiled, scheduled, timed
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.choose.planned import tuned_plan
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
from hlorewrite.jaxbridge.step.report import Rewritten
from hlorewrite.jaxbridge.step.rewrite import rewrite
from hlorewrite.jaxbridge.xla import miscompile_workarounds
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.named import AUTO, PIPELINES
from hlorewrite.tune.choice import DEFAULT_FLAGS, Flag, TuneChoice, TunePoint

_UNKNOWN = "No such compile option"


@dataclass(frozen=True)
class TunedModule:
    """A step rewritten by the passes of a choice.

    Attributes:
      made: the module, with the report.
      sentences: what to tell the user.
      digest: the shortened digest of the module.
      flags: XLA flags that a rewritten module is compiled with.
    """

    made: Rewritten
    sentences: list[str]
    digest: str
    flags: dict[str, Any]


@dataclass
class TuneMeasurer:
    """Compiles choices for one module and target.

    Args:
      module: the step; it is not changed.
      target: described GPUs, such as ``h200:4x8``.

    Raises:
      UsageError: the target is not a description of GPUs, or has other devices than the step.
    """

    module: Module
    target: str
    _place: DeviceSet = field(init=False)
    _results: dict[TuneChoice, TunedModule] = field(default_factory=dict, init=False)
    """The key is a choice without its XLA flags."""
    _made: dict[tuple[str, tuple[tuple[str, Flag], ...]], Measured] = field(default_factory=dict, init=False)
    _unknown: tuple[str, ...] = field(default=(), init=False)
    """Parts of the user's own module without a known time; choices that lack the same parts are compared by the
    rest.
    """

    def __post_init__(self) -> None:
        self._place = place_of(parse_target(self.target), self.module)

    def measure(self, choice: TuneChoice) -> TunePoint:
        """Compiles a choice up to code generation; a failure becomes a point that says why."""
        try:
            result = self._rewritten(choice)
            key = result.digest, tuple(_flags(choice, result).items())
            if key not in self._made:
                made = scheduled(result.made.module, self._place, dict(key[1]))[0]
                self._made[key] = timed(made, self._place.topology)
        except HlorewriteError as error:
            unknown = _UNKNOWN in error.what  # XLA names a different one first from run to run
            return TunePoint(choice, failed="this XLA lacks some of these flags" if unknown else error.what)
        made = self._made[key]
        if not choice.passes and not choice.flags:
            self._unknown = made.unknown
        failed = made.untimed if made.counted_s is None or made.unknown != self._unknown else ""
        return TunePoint(choice, None if failed else made.counted_s, (made.counted_s or 0.0) - made.compute_s,
                         made.bytes, made.memory, result.digest, failed=failed, way=_way(result))

    def finished(self, point: TunePoint) -> TunePoint:
        """A point compiled to the end, with its compile time."""
        result = self._rewritten(point.choice)
        made = compiled(result.made.module, self._place, _flags(point.choice, result))
        return replace(point, compile_s=round(made.seconds, 3))

    def plan(self, choice: TuneChoice) -> str:
        """The content of a plan file that replays a choice for the same step on the GPUs of the target.

        Raises:
          PlanMismatch: the module cannot be kept in a plan.
        """
        result = self._rewritten(choice)
        return tuned_plan(self.module, self._options(choice), self._place, result.made, result.sentences,
                          {**_without_profile(choice, result.made.report.compiler_options),
                           **dict(choice.flags)}).text()

    def _rewritten(self, choice: TuneChoice) -> TunedModule:
        """The result of the passes, made once for all XLA flags."""
        passes = replace(choice, flag_set=DEFAULT_FLAGS, flags=())
        if passes not in self._results:
            made, sentences = self._run(passes)
            digest = hashlib.sha256(made.module.text(debug_info=False).encode()).hexdigest()[:16]
            flags = {} if made.bytecode is None else miscompile_workarounds.options(jaxlib_version.__version_info__,
                                                                        self._place.platform)
            flags = {**made.report.compiler_options, **flags}
            self._results[passes] = TunedModule(made, sentences, digest, flags)
        return self._results[passes]

    def _options(self, choice: TuneChoice) -> StepOptions:
        passes = AUTO if choice.passes == AUTO else \
            as_passes(PIPELINES.get(choice.pipeline, choice.pipeline)) if choice.passes else ()
        return StepOptions(passes, topology=self.target, keep=choice.keep, memory_budget=choice.budget)

    def _run(self, choice: TuneChoice) -> tuple[Rewritten, list[str]]:
        if not choice.passes:
            return rewrite(self.module.clone(), ()), []
        made, sentences = rewrite_step(self.module.clone(), self._options(choice), self._place)
        return (made if made.bytecode is not None else replace(made, module=self.module)), sentences


def _flags(choice: TuneChoice, result: TunedModule) -> dict[str, Any]:
    """The XLA flags of a choice: its own, and those that its module is compiled with."""
    return {**dict(choice.flags), **_without_profile(choice, result.flags)}


def _without_profile(choice: TuneChoice, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags without a profile where the choice has other flags: its instructions are those of another compilation."""
    return {name: value for name, value in flags.items() if name != PROFILE or not choice.flags}


def _way(result: TunedModule) -> str:
    """The way that ``auto`` chose; empty for other choices."""
    comparison = result.made.report.comparison
    return comparison.chosen if result.made.report.pipeline == AUTO and comparison is not None else ""
