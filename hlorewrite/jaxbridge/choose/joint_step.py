"""The module that a step is compiled from, chosen by this process alone or agreed on with the step's other
processes."""

from dataclasses import replace

import jax
from jaxlib import version as jaxlib_version

from hlorewrite.ir.binding import ir
from hlorewrite.jaxbridge.choose.chosen_step import replayed_step
from hlorewrite.jaxbridge.choose.planned import planned_step
from hlorewrite.jaxbridge.processes.agreement import Agreement
from hlorewrite.jaxbridge.processes.consensus import VERSIONS, JointOutcome, decided
from hlorewrite.jaxbridge.processes.decision import Decision
from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.jaxbridge.step.report import Rewritten, digest
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import miscompile_workarounds
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet

MadeStep = tuple[Rewritten, list[str]]
"""The result, and messages for the user."""


def made_step(computation: ir.Module, name: str, options: StepOptions, place: DeviceSet,
              agreement: Agreement | None = None, first: Decision | None = None) -> MadeStep:
    """Rewrites a step, or follows the choices of the first process where they are given.

    Args:
      computation: JAX's module, which stays as it is.
      name: the name of the step.
      options: passes and policies. Only the first process writes traces.
      place: the target.
      agreement: the agreement with the other processes of the step; None if this one decides alone.
      first: the choices of the process that decides.

    Raises:
      HlorewriteError: a pass refused or failed, or a plan does not fit.
    """
    options = options if jax.process_index() == 0 else replace(options, trace=None)
    module = clone_of(computation, name, options.frames)
    made, sentences = planned_step(module, options, place, agreement) if first is None else \
        (replayed_step(module, options, place, first.how), [])
    return with_compiler_options(made, place, options.protect), sentences


def joint_step(agreement: Agreement, computation: ir.Module, name: str, options: StepOptions,
               place: DeviceSet) -> JointOutcome[MadeStep]:
    """``made_step`` for a step of several processes, with the same arguments."""
    before = ""

    def make(first: Decision | None = None) -> tuple[Decision, MadeStep]:
        nonlocal before
        before = before or digest(clone_of(computation, name), "")
        made, sentences = made_step(computation, name, options, place, agreement, first)
        return Decision(before, made.report.digest, made.how, VERSIONS), (made, sentences)
    return decided(agreement, make, make)


def with_compiler_options(made: Rewritten, place: DeviceSet, protect: bool) -> Rewritten:
    """Adds all options of the compilation to a result's report.

    Args:
      made: the result; options of a replayed plan are in its report.
      place: what the step is compiled for, with the user's options, which stay as they are.
      protect: whether a rewritten module is compiled without an XLA pass that miscompiles on GPU.
    """
    options = {name: value for name, value in made.report.compiler_options.items() if name not in place.flags}
    if protect and made.bytecode is not None:
        options |= miscompile_workarounds.options(jaxlib_version.__version_info__, place.platform,
                                      str(place.flags.get(miscompile_workarounds.FLAG, "")))
    return replace(made, report=replace(made.report, compiler_options=options)) if options else made
