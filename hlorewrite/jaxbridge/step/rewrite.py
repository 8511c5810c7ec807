"""A module through a pipeline: cloned, rewritten, reported; the original is never touched."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from hlorewrite.checks.translation_validation.steps import PassStages
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir import Format, Module, View, emit, ir, parse
from hlorewrite.jaxbridge.step.no_rewrite import SetAside, bring_back, put_away
from hlorewrite.jaxbridge.step.report import (
    DigestOnDemand,
    RewriteReport,
    Rewritten,
    RunRecorder,
    ShorterRun,
    StepCollective,
    collectives_of,
    digest,
)
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import Timings, run_passes
from hlorewrite.passmanager.spec import format_pipeline
from hlorewrite.util.collector import collector_paused
from hlorewrite.util.frames import USUAL_FRAMES, Frames

if TYPE_CHECKING:
    from hlorewrite.passmanager.trace.writer import TraceWriter


def clone_of(module: ir.Module, name: str, frames: Frames = USUAL_FRAMES) -> Module:
    """An independent copy of JAX's module, in a separate context that records which frames are the user's."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(file=buffer)
    return replace(parse(buffer.getvalue(), name=name), frames=frames)


def rewrite(module: Module, passes: Sequence[Pass], *, exposed: bool = False, trace: str | None = None,
            topology: str = "", prove: bool = False, memory: int | None = None,
            shorter: Sequence[Pass] = (), decision: Mapping[str, object] | None = None) -> Rewritten:
    """Runs passes over a module that belongs to the caller.

    Args:
      module: the module; it is changed.
      passes: the passes.
      exposed: whether the module is already a different one from the user's, so that it counts as changed.
      trace: the directory below which the run is written; None for none.
      topology: the cluster that passes estimate times for; empty for their default.
      prove: whether to say if the result is proved to compute what the module did.
      memory: bytes that a device may spend on what all passes keep for longer; None for their own limits.
      shorter: the first of these passes, whose result by themselves may be asked for; without any it is not kept.
      decision: the decision that chose these passes, for the trace.

    Returns:
      The module and what happened to it.

    Raises:
      HlorewriteError: a pass refused or failed.
    """
    recorder = RunRecorder()
    ctx = PassContext((recorder,), topology=topology, memory_left=memory)
    view = ctx.view(module)
    before = collectives_of(view)
    original, stages = (module.clone(), PassStages()) if prove else (None, None)
    kept = put_away(view)
    with traced(trace, module, format_pipeline(passes), decision) as (writers, timings), collector_paused():
        early = AfterFirstPasses(tuple(shorter), recorder)
        observers = [*writers, *([stages] if stages else []), *([early] if shorter else [])]
        ctx.listeners = (recorder, *writers)
        changed = run_passes(module, passes, ctx, observers=observers, timings=timings)
    finish = partial(_finished, before=before, kept=kept, exposed=exposed)
    made = finish(module, passes, changed, recorder)
    if stages and original and changed:
        made = replace(made, report=replace(made.report, proof=str(stages.validate(original, module))))
    return replace(made, shorter=early.run(finish, made), memory_refused=ctx.memory_refused)


def continued(made: Rewritten, passes: Sequence[Pass], further: Sequence[Pass], *, topology: str) -> Rewritten:
    """Runs further passes on a rewritten module, which stays as it is.

    Args:
      made: the result of the first passes.
      passes: these passes.
      further: the further passes. They spend no memory.
      topology: the cluster that they estimate times for.

    Returns:
      The result of all passes.

    Raises:
      HlorewriteError: a pass refused or failed.
    """
    first, module = made.report, made.module.clone()
    recorder = RunRecorder(dict.fromkeys(first.remarks), first.rewrites)
    ctx = PassContext((recorder,), topology=topology, memory_left=0)
    kept = put_away(ctx.view(module))
    with collector_paused():
        changed = run_passes(module, further, ctx)
    return _finished(module, (*passes, *further), changed or first.changed, recorder, before=first.before, kept=kept,
                     exposed=first.exposed)


def _finished(module: Module, passes: Sequence[Pass], changed: bool, recorded: RunRecorder, *,
              before: tuple[StepCollective, ...], kept: list[SetAside], exposed: bool) -> Rewritten:
    """The result of passes that have run: hidden collectives are back, and the report is made."""
    bring_back(module, kept)
    text = format_pipeline(passes)
    written = emit(module, Format.BYTECODE) if changed or exposed else None
    found = digest(module, text) if written is None else DigestOnDemand(written, module.name, text)
    report = RewriteReport(text, changed, exposed, before=before,
                           after=collectives_of(View(module)) if changed else before, remarks=tuple(recorded.remarks),
                           rewrites=recorded.rewrites, digested=found)
    return Rewritten(module, written, report)


@contextmanager
def traced(folder: str | None, module: Module, pipeline: str, decision: Mapping[str, object] | None = None,
           ) -> Iterator[tuple[tuple[TraceWriter, ...], Timings]]:
    """Writes what happens inside to ``NAME-DIGEST`` below a folder; yields the writer, if any, and the times."""
    timings = Timings()
    if folder is None:
        yield (), timings
        return
    from hlorewrite.passmanager.trace.writer import TraceWriter
    name = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', module.name)}-{digest(module, pipeline)[:8]}"
    writer = TraceWriter(os.path.join(folder, name), command="optimize", source=module.name, pipeline=pipeline)
    try:
        writer.begin(module)
        if decision is not None:
            writer.decided(decision, pipeline)
        yield (writer,), timings
        writer.end(timings)
    except HlorewriteError as error:
        writer.failed(error)
        raise
    finally:
        writer.close()
        if writer.failure is not None:
            warnings.warn(str(writer.failure), stacklevel=2)


# ---- what the first passes of a pipeline leave, kept for a shorter pipeline, so that they do not run twice


Finish = Callable[[Module, Sequence[Pass], bool, RunRecorder], Rewritten]
"""Makes a result of a module, the passes that ran, whether they changed it, and what they recorded."""


@dataclass
class AfterFirstPasses:
    """Observes a run and keeps a copy of the module after its first passes.

    Attributes:
      passes: the first passes.
      recorder: the recorder of the whole run.
    """

    passes: tuple[Pass, ...]
    recorder: RunRecorder
    _module: Module | None = field(default=None, init=False)
    _recorded: RunRecorder = field(default_factory=RunRecorder, init=False)
    _number: int = field(default=0, init=False)
    _changed: bool = field(default=False, init=False)
    _changed_later: bool = field(default=False, init=False)

    def before(self, pass_: Pass, module: Module) -> None:
        """Nothing is kept of the module before a pass."""

    def after(self, pass_: Pass, module: Module, changed: bool) -> None:
        """Keeps a copy once the first passes have run."""
        if self._module is not None:
            self._changed_later |= changed
            return
        self._number += 1
        self._changed |= changed
        if self._number == len(self.passes):
            self._module = module.clone()
            self._recorded = replace(self.recorder, remarks=dict(self.recorder.remarks))

    def run(self, finish: Finish, whole: Rewritten) -> ShorterRun | None:
        """The result of running the first passes alone; None if nothing was kept.

        Args:
          finish: makes a result.
          whole: the result of the whole run; where the later passes changed nothing, its bytes are those of both.
        """
        module = self._module
        if module is None:
            return None

        def made() -> Rewritten:
            first = finish(module, self.passes, self._changed, self._recorded)
            return first if self._changed_later else replace(first, bytecode=whole.bytecode)

        return ShorterRun(self.passes, made)
