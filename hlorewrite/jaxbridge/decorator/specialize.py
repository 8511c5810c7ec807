"""One signature of a jitted function: lower, rewrite, agree with the other processes, swap the module."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax

from hlorewrite.errors import HlorewriteError, PlanMismatch
from hlorewrite.jaxbridge.decorator.compiler_options import with_compiler_options
from hlorewrite.jaxbridge.decorator.lowered import OptimizedLowered
from hlorewrite.jaxbridge.decorator.module_digest import digest
from hlorewrite.jaxbridge.decorator.notices import KILL_SWITCH
from hlorewrite.jaxbridge.decorator.planned import planned_step
from hlorewrite.jaxbridge.decorator.report import RewriteReport
from hlorewrite.jaxbridge.decorator.rewrite import clone_of, replayed_step
from hlorewrite.jaxbridge.processes.agreement import Agreement, Patience, ProcessesDisagree
from hlorewrite.jaxbridge.processes.decision import Decision
from hlorewrite.jaxbridge.processes.steps import STEPS
from hlorewrite.jaxbridge.processes.together import VERSIONS, agreement_of, decided
from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.without_code import device_set
from hlorewrite.planlock.files import is_final

OFF = f"{KILL_SWITCH}=0 is set"


@dataclass(frozen=True)
class Done:
    """The module JAX is given, None for the user's own, the report, and how the module was made."""

    bytecode: bytes | None
    report: RewriteReport
    how: str = ""


def optimized_lowering(traced: jax.stages.Traced, options: StepOptions,
                       off: bool) -> tuple[OptimizedLowered, list[str]]:
    """Lowers a traced function and rewrites the module.

    Args:
      traced: the trace.
      options: passes and policies.
      off: the kill switch is thrown: report the original.

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
        return _rewritten(original, options, name)
    except HlorewriteError as error:
        if _is_final(error, options):
            raise
        return _unchanged(options, str(error)), [f"runs unrewritten: {error}"]


def _rewritten(original: jax.stages.Lowered, options: StepOptions, name: str,
               first: Decision | None = None, agreement: Agreement | None = None) -> tuple[Done, list[str]]:
    """Runs the passes, by the choices of the first process where they are given; an auto-sharded step is partitioned
    first, and stays as it was if no other pass changes it.
    """
    step = options if jax.process_index() == 0 else replace(options, trace=None)
    place = device_set(private.platform_of(original), private.devices_of(original),
                       private.compiler_options_of(original))
    module = clone_of(private.module_of(original), name, options.frames)
    made, sentences = planned_step(module, step, place, agreement) if first is None else \
        (replayed_step(module, step, place, first.how), [])
    made = with_compiler_options(made, place, options.protect)
    return Done(made.bytecode, made.report, made.how), sentences


def _is_final(error: HlorewriteError, options: StepOptions) -> bool:
    """Whether an error stops a program of one process: a plan that does not fit has a policy of its own."""
    return is_final(error) or (
        not isinstance(error, PlanMismatch) and options.on_error != "fallback")


def _unchanged(options: StepOptions, why: str) -> Done:
    return Done(None, RewriteReport(options.text, False, False, (), (), (), 0, "", failure=why))


# ---- many processes


def _agreement(original: jax.stages.Lowered, options: StepOptions, name: str) -> Agreement | None:
    """With whom is decided about a step; None for a program of one process, and for a step of this process alone."""
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

    before = ""

    def make(first: Decision | None = None) -> tuple[Decision, tuple[Done, list[str]]]:
        nonlocal before
        before = before or digest(clone_of(private.module_of(original), name), "")
        done, sentences = _rewritten(original, options, name, first, agreement)
        return Decision(before, done.report.digest, done.how, VERSIONS), (done, sentences)

    outcome = decided(agreement, make, make)
    if outcome.made is not None and not outcome.why:
        return outcome.made
    if options.on_error == "raise" or is_final(outcome.error):
        raise outcome.error or ProcessesDisagree(outcome.why, location=f"process {jax.process_index()}")
    return _unchanged(options, outcome.why), [f"runs unrewritten: {outcome.why}"]
