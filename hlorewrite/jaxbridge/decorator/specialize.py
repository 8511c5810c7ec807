"""One signature of a jitted function: lower, rewrite, agree with the other processes, swap the module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
from jaxlib import version as jaxlib_version

from hlorewrite.errors import HlorewriteError, PlanMismatch
from hlorewrite.ir.location import USUAL_FRAMES, Frames
from hlorewrite.jaxbridge.decorator.candidates import Keep
from hlorewrite.jaxbridge.decorator.lowered import OptimizedLowered
from hlorewrite.jaxbridge.decorator.notices import KILL_SWITCH
from hlorewrite.jaxbridge.decorator.planned import planned_step
from hlorewrite.jaxbridge.decorator.report import RewriteReport
from hlorewrite.jaxbridge.decorator.rewrite import StepSettings, clone_of, digest
from hlorewrite.jaxbridge.hook.settings import HookSettings
from hlorewrite.jaxbridge.processes import same_module
from hlorewrite.jaxbridge.processes.steps import STEPS
from hlorewrite.jaxbridge.processes.watch import TIMEOUT_S
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.without_code import device_set
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.spec import format_pipeline
from hlorewrite.planlock.files import PlanFiles
from hlorewrite.version import VERSION


@dataclass(frozen=True)
class Settings:
    """Settings of a user: passes; what to do on errors; whether to check the first call and protect; where to trace;
    when to keep the rewritten module, whose frames are the user's own, how long to wait for other processes; the
    cluster to estimate times for where the devices do not say, and where plans are kept.
    """

    passes: tuple[Pass, ...]
    on_error: str = "raise"
    check: str | None = None
    protect: bool = True
    trace: str | None = None
    keep: Keep = "better"
    frames: Frames = USUAL_FRAMES
    timeout_s: float = TIMEOUT_S
    topology: str = ""
    plans: PlanFiles | None = None

    @property
    def pipeline(self) -> str:
        """The passes as text."""
        return format_pipeline(self.passes)

    def for_hook(self) -> HookSettings:
        """The same choices for a function whose lowering is not asked for."""
        return HookSettings(self.passes, on_error=self.on_error, protect=self.protect, trace=self.trace,
                            keep=self.keep, frames=self.frames, timeout_s=self.timeout_s, topology=self.topology,
                            plans=self.plans)


@dataclass(frozen=True)
class Done:
    """The module JAX is given, None for the user's own, and the report."""

    bytecode: bytes | None
    report: RewriteReport


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
    sentences: list[str] = []
    if off:
        done = _unchanged(settings, f"{KILL_SWITCH}=0 is set")
    else:
        try:
            done, sentences = _rewritten(original, settings, name)
        except HlorewriteError as error:
            if _is_final(error, settings):
                _tell_failure(settings, name)
                raise
            done, sentences = _unchanged(settings, str(error)), [f"runs unrewritten: {error}"]
    _agree(original, done, settings, name)
    return OptimizedLowered(original, done.bytecode, done.report, settings.protect), sentences


def _rewritten(original: jax.stages.Lowered, settings: Settings, name: str) -> tuple[Done, list[str]]:
    """Runs the passes; an auto-sharded step is partitioned first, and stays as it was if no other pass changes it."""
    folder = settings.trace if jax.process_index() == 0 else None
    step = StepSettings(settings.passes, folder, settings.topology, prove=settings.check == "proof", keep=settings.keep,
                        protect=settings.protect)
    place = device_set(private.platform_of(original), private.devices_of(original),
                       private.compiler_options_of(original))
    made, sentences = planned_step(clone_of(private.module_of(original), name, settings.frames), step, place,
                                   settings.plans)
    return Done(made.bytecode, made.report), sentences


def _is_final(error: HlorewriteError, settings: Settings) -> bool:
    """Whether an error stops the program: a plan that does not fit has a policy of its own."""
    if isinstance(error, PlanMismatch) and settings.plans is not None:
        return settings.plans.on_mismatch != "original"
    return settings.on_error == "raise"


def _unchanged(settings: Settings, why: str) -> Done:
    return Done(None, RewriteReport(settings.pipeline, False, False, (), (), (), 0, "", failure=why))


# ---- many processes


def _agree(original: jax.stages.Lowered, done: Done, settings: Settings, name: str) -> None:
    """Compares digests with the other processes, when there are any."""
    store = _store()
    if store is None:
        return
    before = digest(clone_of(private.module_of(original), name), "")
    holding = same_module.Holding(VERSION, jaxlib_version.__version__, settings.pipeline, before,
                                done.report.digest or f"the original ({done.report.failure})")
    STEPS.begin(settings.timeout_s)
    same_module.compare(holding, _key(name), store, jax.process_index(), jax.process_count(), settings.timeout_s)


def _tell_failure(settings: Settings, name: str) -> None:
    """Lets the other processes know at once that this one stops."""
    store = _store()
    if store is not None:
        holding = same_module.Holding(VERSION, jaxlib_version.__version__, settings.pipeline, "",
                                    "nothing: it failed")
        key = _key(name)
        same_module.tell(holding, key, store, jax.process_index())
        same_module.wait_for_all(key, store)


def _store() -> Any | None:
    return private.key_value_store() if jax.process_count() > 1 else None


def _key(name: str) -> str:
    return f"hlorewrite/{name}/{same_module.COMPARISONS.next(name)}"
