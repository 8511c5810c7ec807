"""One signature of a jitted function: lower, rewrite, agree with the other processes, swap the module."""

from dataclasses import dataclass

import jax

from hlorewrite.errors import HlorewriteError, PlanMismatch
from hlorewrite.jaxbridge.choose.joint_step import joint_step, made_step
from hlorewrite.jaxbridge.decorator.lowered import OptimizedLowered
from hlorewrite.jaxbridge.processes.agreement import Agreement, Patience, ProcessesDisagree
from hlorewrite.jaxbridge.processes.consensus import STEPS, agreement_of
from hlorewrite.jaxbridge.step.notices import KILL_SWITCH
from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.jaxbridge.step.report import RewriteReport
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet, device_set
from hlorewrite.lockfile.files import is_final

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
