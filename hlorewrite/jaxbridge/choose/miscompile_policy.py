"""Works around the XLA pass that miscompiles some steps, on both sides of the comparison with XLA alone.

A rewritten module is compiled without that pass. XLA alone is compiled with it, as the user would get it; if its
program then computes something else than the user's, the comparison uses its program without that pass.
"""

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from fractions import Fraction

from jaxlib import version as jaxlib_version

from hlorewrite.ir import Module, View
from hlorewrite.jaxbridge.baseline.baseline_run import BaselineRun
from hlorewrite.jaxbridge.baseline.judge import NOISE
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured
from hlorewrite.jaxbridge.baseline.memory_grant import AloneMeasured
from hlorewrite.jaxbridge.baseline.miscompiled import adds_scatters_up, miscompiled, reduces_in_a_loop
from hlorewrite.jaxbridge.choose.candidates import Contest
from hlorewrite.jaxbridge.choose.speculate import Compilations
from hlorewrite.jaxbridge.xla import miscompile_workarounds


@dataclass
class MiscompilePolicy:
    """The workaround of one contest.

    Args:
      contest: the module and the terms.
    """

    contest: Contest
    flags: Flags = field(init=False)
    """XLA options for a rewritten module, in addition to the user's."""
    _wrong: bool | None = field(default=None, init=False)
    _protected: Future[AloneMeasured] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        place = self.contest.place
        self.flags = miscompile_workarounds.options(
            jaxlib_version.__version_info__, place.platform,
            str(place.flags.get(miscompile_workarounds.FLAG, ""))) if self.contest.protect else {}

    def miscompiles(self, partitioned: Module) -> bool:
        """Whether XLA alone miscompiles the module, given its partitioner's output; computed once."""
        if self._wrong is None:
            self._wrong = bool(self.flags) and miscompiled(partitioned)
        return self._wrong

    def likely_flags(self) -> Flags:
        """XLA options for XLA alone before its partitioner has run: they switch the pass off if it likely miscompiles
        the step.
        """
        return self.flags if adds_scatters_up(self.contest.module) else {}

    def unprotected(self, baseline: BaselineRun, compilations: Compilations, source: View) -> BaselineRun:
        """XLA's compilation with the pass, for a module that it compiles correctly; the given one if the pass changes
        nothing."""
        return compilations.baseline({}) if reduces_in_a_loop(source) else replace(baseline, flags={})

    def beaten_wrongly(self, sent: list[tuple[Fraction, int]], alone: Measured, partitioned: Module) -> bool:
        """Whether XLA alone miscompiles the step and no candidate is expected to beat it.

        Args:
          sent: bytes on the wire and calls of each candidate.
          alone: XLA alone's compilation.
          partitioned: its partitioner's output.
        """
        wire, calls = min(sent)
        as_much = wire >= alone.wire * (1 - NOISE) and calls >= alone.calls
        return as_much and self.miscompiles(partitioned)

    def begin_protected(self, compilations: Compilations) -> None:
        """Begins the compilation that ``protected_alone`` returns."""
        self._protected = compilations.begun_alone(self.flags)

    def protected_alone(self, compilations: Compilations) -> Measured:
        """XLA's compilation of the module without the pass that miscompiles it."""
        self._protected = self._protected or compilations.alone(self.flags)
        return self._protected.result()[0]
