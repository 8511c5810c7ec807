"""Works around the XLA pass that miscompiles some steps, on both sides of the comparison with XLA alone.

A rewritten module is compiled without that pass. XLA alone is compiled with it, as the user would get it; if its
program then computes something else than the user's, the comparison uses its program without that pass.
"""

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from fractions import Fraction

from jaxlib import version as jaxlib_version

from hlorewrite.hlo.xla_hazards import find_hazards
from hlorewrite.ir import ALL_REDUCE, Editor, Module, View, ancestors, inline_calls, ir
from hlorewrite.jaxbridge.baseline.baseline_run import BaselineRun
from hlorewrite.jaxbridge.baseline.judge import NOISE
from hlorewrite.jaxbridge.baseline.measured import Flags, Measured
from hlorewrite.jaxbridge.baseline.memory_grant import AloneMeasured
from hlorewrite.jaxbridge.choose.candidates import Contest
from hlorewrite.jaxbridge.choose.speculate import Compilations
from hlorewrite.jaxbridge.xla import miscompile_workarounds
from hlorewrite.ops.reducers import is_identity


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


# ---- predicts whether XLA alone miscompiles a step: with certainty after partitioning, as a guess before it


_MOVES = {"stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose"}


def miscompiled(module: Module, version: tuple[int, ...] = jaxlib_version.__version_info__) -> bool:
    """Whether XLA's code motion miscompiles a module on GPU.

    Args:
      module: a module whose collectives are explicit; it is not changed.
      version: the version of jaxlib.
    """
    view = View(module)
    if not reduces_in_a_loop(view):
        return False
    copy = module.clone()
    inline_calls(Editor(View(copy)))
    return any(hazard.kind.affects(version) for hazard in find_hazards(View(copy)))


def reduces_in_a_loop(view: View) -> bool:
    """Whether an all-reduce may run in a loop, so that XLA's code motion has something to move.

    Args:
      view: a module whose collectives are explicit. All-reduces in called functions count.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> reduces_in_a_loop(View(parse("func.func @main() { return }")))
      False
    """
    around = [{parent.name for parent in ancestors(op)} for op in view.ops(ALL_REDUCE.op)]
    return any("stablehlo.while" in names for names in around) or bool(
        around and view.ops("stablehlo.while") and view.ops("func.call"))


def adds_scatters_up(module: Module) -> bool:
    """Whether a step resembles those that XLA miscompiles, before its collectives are known.

    XLA rewrites ``total + scatter(0, ...)`` to a scatter into the total, and its code motion then moves the all-reduce
    of that. A function or loop that takes the total adds it there, so neither calls nor loops are followed.

    Args:
      module: a module before XLA partitions it.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> adds_scatters_up(parse("func.func @main() { return }"))
      False
    """
    return any(map(_added_up, View(module).ops("stablehlo.scatter")))


def _added_up(scatter: ir.Operation) -> bool:
    if len(scatter.results) != 1:
        return False
    if isinstance(scatter.operands[0], ir.BlockArgument):
        return True
    if not is_identity(scatter.operands[0], "sum"):
        return False
    uses = list(scatter.results[0].uses)
    # Ends: each step goes to a reader after it in the block.
    while len(uses) == 1 and uses[0].owner.operation.name in _MOVES:
        uses = list(uses[0].owner.operation.results[0].uses)
    return any(use.owner.operation.name == "stablehlo.add"
               and isinstance(use.owner.operation.operands[1 - use.operand_number], ir.BlockArgument) for use in uses)
