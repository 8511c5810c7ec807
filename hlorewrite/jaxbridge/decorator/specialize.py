"""One signature of a jitted function: lower, rewrite, agree with the other processes, swap the module."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax

from hlorewrite.errors import HlorewriteError, PlanMismatch, UsageError
from hlorewrite.jaxbridge.choose.planned import joint_step, made_step
from hlorewrite.jaxbridge.decorator.state.new_state import NewState, with_new_state
from hlorewrite.jaxbridge.processes.agreement import Agreement, Patience, ProcessesDisagree
from hlorewrite.jaxbridge.processes.consensus import STEPS, agreement_of
from hlorewrite.jaxbridge.step.notices import KILL_SWITCH
from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.jaxbridge.step.report import RewriteReport
from hlorewrite.jaxbridge.xla import miscompile_workarounds, private
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet, device_set
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.jaxbridge.xla.target import device_topology
from hlorewrite.lockfile.files import is_final
from hlorewrite.timeline.result import StepTimeline

# ---- the result of ``optimize(f).lower(...)``: a ``jax.stages.Lowered`` of the rewritten module


class OptimizedLowered(jax.stages.Lowered):
    """A lowering after rewriting; everything ``jax.stages.Lowered`` offers, and what it was before.

    Attributes:
      original: the lowering of the user's own function.
      report: what the passes did.
      placed_anew: the shardings that a pass has changed, by leaf of the arguments; the compiled step takes these.
      local_sums: the leaves among them that are local sums, with one more dimension.
      returned_sums: the leaves of the results that are local sums.
    """

    __slots__ = ("local_sums", "original", "placed_anew", "report", "returned_sums")

    def __init__(self, original: jax.stages.Lowered, bytecode: bytes | None, report: RewriteReport) -> None:
        lowering = private.with_module(original, bytecode) if bytecode is not None else private.lowering_key(original)
        new = NewState(lowering) if bytecode is None else with_new_state(original, lowering)
        super().__init__(new.lowering, **private.lowered_fields(original))
        self.original = original
        self.report = report
        self.placed_anew = new.placed
        self.local_sums = new.local_sums
        self.returned_sums = new.returned_sums

    def original_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module before rewriting, as ``jax.stages.Lowered.as_text`` prints it."""
        return self.original.as_text(dialect, debug_info=debug_info)

    def diff(self, context: int = 3) -> str:
        """A unified diff of the module's text before and after; empty when nothing changed."""
        if private.lowering_key(self) is private.lowering_key(self.original):
            return ""
        lines = difflib.unified_diff(self.original_text().splitlines(), self.as_text().splitlines(), "original",
                                     "rewritten", lineterm="", n=context)
        return "".join(f"{line}\n" for line in lines)

    def compile(self, compiler_options: Mapping[str, Any] | None = None, **kwargs: Any) -> jax.stages.Compiled:
        """Compiles the rewritten module.

        Args:
          compiler_options: XLA options in addition to those given to ``jax.jit``; they hold where the report names
            others.
          **kwargs: what ``jax.stages.Lowered.compile`` takes next to them.

        Returns:
          A ``jax.stages.Compiled`` with the original's arguments, outputs, donation and shardings, except for shardings
          that a pass has changed.
        """
        given = dict(compiler_options or {})
        options = {**self.report.compiler_options, **given, **self._protection(given)}
        with own_compilation():
            return super().compile(options or None, **kwargs)

    def timeline(self, topology: str = "", *, original: bool = False, slowdown: float | None = None,
                 compiler_options: Mapping[str, Any] | None = None) -> StepTimeline:
        """Compiles the rewritten module for its GPUs, described ones included, and simulates XLA's schedule of it.

        Args:
          topology: the cluster, ``NAME:HOSTSxGPUS``; by default the devices the step was lowered for.
          original: compile the user's own module instead, as XLA alone does.
          slowdown: compute during a collective takes 1 + this times as long; by default the published mean.
          compiler_options: as ``compile`` takes them.

        Returns:
          The timeline: step time, and what communication adds to it.

        Raises:
          UsageError: the step was not lowered for GPUs, or they are not known and no topology is named.
        """
        from hlorewrite.cost import topology as named
        from hlorewrite.timeline import simulate

        if private.platform_of(self) != "cuda":
            raise UsageError(f"the step was lowered for {private.platform_of(self)}; the timeline is of XLA:GPU's "
                             "schedules", hint="lower it for GPUs, or use `hlorewrite timeline` with its export")
        cluster = named(topology) if topology else device_topology(private.devices_of(self))
        if cluster is None:
            raise UsageError("the GPUs the step was lowered for are not known", hint="name a topology such as h200:1x8")
        compiled = (self.original if original else self).compile(dict(compiler_options or {}) or None)
        memory: Any = compiled.memory_analysis()
        total = memory and (memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
                            - memory.alias_size_in_bytes)
        return simulate(compiled.as_text() or "", cluster, slowdown=slowdown, memory_bytes=total)

    def _protection(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The XLA pass that miscompiles stays off where the user gives a list of passes for this compilation."""
        if miscompile_workarounds.FLAG not in given or miscompile_workarounds.FLAG not in self.report.compiler_options:
            return {}
        from jaxlib import version as jaxlib_version

        return miscompile_workarounds.options(jaxlib_version.__version_info__, private.platform_of(self),
                                  str(given[miscompile_workarounds.FLAG]))


# ---- the signature


OFF = f"{KILL_SWITCH}=0 is set"


@dataclass(frozen=True)
class Done:
    """The module JAX is given, None for the user's own, and the report."""

    bytecode: bytes | None
    report: RewriteReport


def optimized_lowering(traced: jax.stages.Traced, options: StepOptions,
                       off: bool) -> tuple[OptimizedLowered, list[str]]:
    """Lowers a traced function and rewrites the module.

    Args:
      traced: the trace.
      options: passes and policies.
      off: hlorewrite is switched off: report the original.

    Returns:
      The lowering, and sentences the user should read once.

    Raises:
      HlorewriteError: a pass failed and ``on_error`` is ``raise``, or the processes disagree.
    """
    original = traced.lower()
    name = traced.fun_name
    agreement = _agreement(original, options, name)
    if agreement is not None:
        done, sentences = _together(agreement, original, options, name, off)
    elif off:
        done, sentences = _unchanged(options, OFF), []
    else:
        done, sentences = _alone(original, options, name)
    return OptimizedLowered(original, done.bytecode, done.report), sentences


def _alone(original: jax.stages.Lowered, options: StepOptions, name: str) -> tuple[Done, list[str]]:
    """Rewrites in a program of one process."""
    try:
        made, sentences = made_step(private.module_of(original), name, options, _place(original))
    except HlorewriteError as error:
        if _is_final(error, options):
            raise
        return _unchanged(options, str(error)), [f"runs unrewritten: {error}"]
    return Done(made.bytecode, made.report), sentences


def _place(original: jax.stages.Lowered) -> DeviceSet:
    return device_set(private.platform_of(original), private.devices_of(original),
                      private.compiler_options_of(original))


def _is_final(error: HlorewriteError, options: StepOptions) -> bool:
    """Whether an error stops a program of one process: a plan that does not fit has a separate policy."""
    return is_final(error) or (
        not isinstance(error, PlanMismatch) and options.on_error != "fallback")


def _unchanged(options: StepOptions, why: str) -> Done:
    return Done(None, RewriteReport(options.text, False, False, before=(), after=(), remarks=(), rewrites=0,
                                    digested="", failure=why))


# ---- many processes


def _agreement(original: jax.stages.Lowered, options: StepOptions, name: str) -> Agreement | None:
    """The agreement with the other processes about a step; None for a program of one process, and for a step of this
    process alone.
    """
    if jax.process_count() == 1:
        return None
    members = {device.process_index for device in private.devices_of(original)} or range(jax.process_count())
    watch = STEPS.begin(options.timeout_s)
    return agreement_of(f"step/{name}", members, Patience(options.timeout_s, options.timeout_s), watch)


def _together(agreement: Agreement, original: jax.stages.Lowered, options: StepOptions, name: str,
              off: bool) -> tuple[Done, list[str]]:
    """Rewrites, and follows what the processes decide."""
    if off:
        agreement.refuse(OFF)
        return _unchanged(options, OFF), []

    outcome = joint_step(agreement, private.module_of(original), name, options, _place(original))
    if outcome.made is not None and not outcome.why:
        made, sentences = outcome.made
        return Done(made.bytecode, made.report), sentences
    if options.on_error == "raise" or is_final(outcome.error):
        raise outcome.error or ProcessesDisagree(outcome.why, location=f"process {jax.process_index()}")
    return _unchanged(options, outcome.why), [f"runs unrewritten: {outcome.why}"]
