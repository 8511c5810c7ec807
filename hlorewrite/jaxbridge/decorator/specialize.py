"""One signature of a jitted function: lower, rewrite, agree with the other processes, swap the module."""

from __future__ import annotations

from dataclasses import dataclass

import jax

from hlorewrite.errors import HlorewriteError, PlanMismatch
from hlorewrite.ir.location import USUAL_FRAMES, Frames
from hlorewrite.jaxbridge.decorator.candidates import Keep
from hlorewrite.jaxbridge.decorator.compiler_options import with_compiler_options
from hlorewrite.jaxbridge.decorator.lowered import OptimizedLowered
from hlorewrite.jaxbridge.decorator.module_digest import digest
from hlorewrite.jaxbridge.decorator.notices import KILL_SWITCH
from hlorewrite.jaxbridge.decorator.planned import planned_step
from hlorewrite.jaxbridge.decorator.report import RewriteReport
from hlorewrite.jaxbridge.decorator.rewrite import StepSettings, clone_of, replayed_step
from hlorewrite.jaxbridge.hook.settings import HookSettings
from hlorewrite.jaxbridge.processes.agreement import Agreement, Patience, ProcessesDisagree
from hlorewrite.jaxbridge.processes.decision import Decision
from hlorewrite.jaxbridge.processes.steps import STEPS
from hlorewrite.jaxbridge.processes.together import VERSIONS, agreement_of, decided
from hlorewrite.jaxbridge.processes.watch import TIMEOUT_S
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.without_code import device_set
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.spec import format_pipeline
from hlorewrite.planlock.files import PlanFiles, is_final
from hlorewrite.util.memory_budget import MemoryBudget

OFF = f"{KILL_SWITCH}=0 is set"


@dataclass(frozen=True)
class Settings:
    """Settings of a user: passes; what to do on errors; whether to check the first call and protect; where to trace;
    when to keep the rewritten module, whose frames are the user's own, how long to wait for other processes; the
    cluster to estimate times for where the devices do not say, where plans are kept, the bytes that passes may
    spend, which options the user left open, and the mesh axes to shard optimizer state over and to keep accumulated
    gradients apart over. ``on_error`` None raises in a program of one process, and falls back in one of several.
    """

    passes: tuple[Pass, ...]
    on_error: str | None = None
    check: str | None = None
    protect: bool = True
    trace: str | None = None
    keep: Keep = "better"
    frames: Frames = USUAL_FRAMES
    timeout_s: float = TIMEOUT_S
    topology: str = ""
    plans: PlanFiles | None = None
    memory_budget: MemoryBudget = None
    left_open: frozenset[str] = frozenset()
    shard_update: str = ""
    partial_state: str = ""

    @property
    def keeps_state(self) -> bool:
        """Whether the step may take and return state otherwise than the user's function."""
        return bool(self.shard_update or self.partial_state)

    @property
    def pipeline(self) -> str:
        """The passes as text."""
        return format_pipeline(self.passes)

    def for_hook(self) -> HookSettings:
        """The same choices for a function whose lowering is not asked for."""
        return HookSettings(self.passes, on_error=self.on_error, protect=self.protect, trace=self.trace,
                            keep=self.keep, frames=self.frames, timeout_s=self.timeout_s, topology=self.topology,
                            plans=self.plans, memory_budget=self.memory_budget, left_open=self.left_open)


@dataclass(frozen=True)
class Done:
    """The module JAX is given, None for the user's own, the report, and how the module was made."""

    bytecode: bytes | None
    report: RewriteReport
    how: str = ""


def optimized_lowering(traced: jax.stages.Traced, settings: Settings,
                       off: bool) -> tuple[OptimizedLowered, list[str]]:
    """Lowers a traced function and rewrites the module.

    Args:
      traced: the trace.
      settings: passes and policies.
      off: the kill switch is thrown: report the original.

    Returns:
      The lowering, and sentences the user should read once.

    Raises:
      HlorewriteError: a pass failed and ``on_error`` is ``raise``, or the processes disagree.
    """
    original = traced.lower()
    name = traced.fun_name
    agreement = _agreement(original, settings, name)
    if agreement is not None:
        done, sentences = _together(agreement, original, settings, name, off)
    elif off:
        done, sentences = _unchanged(settings, OFF), []
    else:
        done, sentences = _alone(original, settings, name)
    return OptimizedLowered(original, done.bytecode, done.report), sentences


def _alone(original: jax.stages.Lowered, settings: Settings, name: str) -> tuple[Done, list[str]]:
    """Rewrites in a program of one process."""
    try:
        return _rewritten(original, settings, name)
    except HlorewriteError as error:
        if _is_final(error, settings):
            raise
        return _unchanged(settings, str(error)), [f"runs unrewritten: {error}"]


def _rewritten(original: jax.stages.Lowered, settings: Settings, name: str,
               first: Decision | None = None, agreement: Agreement | None = None) -> tuple[Done, list[str]]:
    """Runs the passes, by the choices of the first process where they are given; an auto-sharded step is partitioned
    first, and stays as it was if no other pass changes it.
    """
    folder = settings.trace if jax.process_index() == 0 else None
    step = StepSettings(settings.passes, folder, settings.topology, prove=settings.check == "proof", keep=settings.keep,
                        protect=settings.protect, memory_budget=settings.memory_budget, left_open=settings.left_open)
    place = device_set(private.platform_of(original), private.devices_of(original),
                       private.compiler_options_of(original))
    module = clone_of(private.module_of(original), name, settings.frames)
    made, sentences = planned_step(module, step, place, settings.plans, agreement) if first is None else \
        (replayed_step(module, step, place, first.how), [])
    made = with_compiler_options(made, place, settings.protect)
    return Done(made.bytecode, made.report, made.how), sentences


def _is_final(error: HlorewriteError, settings: Settings) -> bool:
    """Whether an error stops a program of one process: a plan that does not fit has a policy of its own."""
    return is_final(error) or (
        not isinstance(error, PlanMismatch) and settings.on_error != "fallback")


def _unchanged(settings: Settings, why: str) -> Done:
    return Done(None, RewriteReport(settings.pipeline, False, False, (), (), (), 0, "", failure=why))


# ---- many processes


def _agreement(original: jax.stages.Lowered, settings: Settings, name: str) -> Agreement | None:
    """With whom is decided about a step; None for a program of one process, and for a step of this process alone."""
    if jax.process_count() == 1:
        return None
    members = {device.process_index for device in private.devices_of(original)} or range(jax.process_count())
    watch = STEPS.begin(settings.timeout_s)
    return agreement_of(f"step/{name}", members, Patience(settings.timeout_s, settings.timeout_s), watch)


def _together(agreement: Agreement, original: jax.stages.Lowered, settings: Settings, name: str,
              off: bool) -> tuple[Done, list[str]]:
    """Rewrites, and follows what the processes decide."""
    if off:
        agreement.refuse(OFF)
        return _unchanged(settings, OFF), []

    before = ""

    def make(first: Decision | None = None) -> tuple[Decision, tuple[Done, list[str]]]:
        nonlocal before
        before = before or digest(clone_of(private.module_of(original), name), "")
        done, sentences = _rewritten(original, settings, name, first, agreement)
        return Decision(before, done.report.digest, done.how, VERSIONS), (done, sentences)

    outcome = decided(agreement, make, make)
    if outcome.made is not None and not outcome.why:
        return outcome.made
    if settings.on_error == "raise" or is_final(outcome.error):
        raise outcome.error or ProcessesDisagree(outcome.why, location=f"process {jax.process_index()}")
    return _unchanged(settings, outcome.why), [f"runs unrewritten: {outcome.why}"]
