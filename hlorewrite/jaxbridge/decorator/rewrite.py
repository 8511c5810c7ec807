"""A lowering's module through a pipeline: cloned, rewritten, reported; the original is never touched."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.location import USUAL_FRAMES, Frames
from hlorewrite.ir.module import Format, Module
from hlorewrite.ir.save import emit
from hlorewrite.jaxbridge.decorator.report import RewriteReport, RunRecorder, collectives_of
from hlorewrite.jaxbridge.decorator.shield import bring_back, put_away
from hlorewrite.jaxbridge.xla.partition import hides_collectives
from hlorewrite.jaxbridge.xla.platform_passes import with_platform_passes
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import Timings, run_passes
from hlorewrite.passmanager.registry import make_pass
from hlorewrite.passmanager.spec import format_pipeline, parse_pipeline
from hlorewrite.version import VERSION

if TYPE_CHECKING:
    from hlorewrite.passmanager.trace.writer import TraceWriter

_EXPOSE = "expose-collectives"
NOTHING_TO_REWRITE = ("holds no collective, so there is nothing to rewrite; check that its inputs are sharded over the "
                      "devices it should run on")


@dataclass(frozen=True)
class Rewritten:
    """A rewritten module.

    Attributes:
      module: the module after the passes, in a context of its own.
      bytecode: the same as JAX takes it; None when nothing changed.
      report: what happened.
    """

    module: Module
    bytecode: bytes | None
    report: RewriteReport


def as_passes(passes: str | Pass | Sequence[str | Pass]) -> tuple[Pass, ...]:
    """Passes from pipeline text, passes, or a mixture.

    Example:
      >>> [str(p) for p in as_passes(["inline", "canonicalize,cse"])]
      ['inline', 'canonicalize', 'cse']
    """
    if isinstance(passes, str):
        return tuple(parse_pipeline(passes))
    if isinstance(passes, Pass):
        return (passes,)
    return tuple(step for part in passes for step in as_passes(part))


def clone_of(module: ir.Module, name: str, frames: Frames = USUAL_FRAMES) -> Module:
    """An independent copy of JAX's module in a context of its own, which knows whose frames are the user's."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(file=buffer)
    return replace(parse(buffer.getvalue(), name=name), frames=frames)


def rewrite(module: Module, passes: Sequence[Pass], *, exposed: bool = False, trace: str | None = None,
            topology: str = "", prove: bool = False) -> Rewritten:
    """Runs passes over a module that belongs to the caller.

    Args:
      module: the module; it is changed.
      passes: the passes.
      exposed: whether the module already is another one than the user's, so that it counts as changed.
      trace: the directory below which the run is written; None for none.
      topology: the cluster that passes estimate times for; empty for their default.
      prove: whether to say if the result is proved to compute what the module did.

    Returns:
      The module and what happened to it.

    Raises:
      HlorewriteError: a pass refused or failed.
    """
    before = collectives_of(module)
    original = module.clone() if prove else None
    kept = put_away(module)
    recorder = RunRecorder()
    text = format_pipeline(passes)
    with traced(trace, module, text) as (writers, timings):
        changed = run_passes(module, passes, PassContext(listeners=(recorder, *writers), topology=topology),
                             observers=writers, timings=timings)
    bring_back(module, kept)
    report = RewriteReport(text, changed, exposed, before, collectives_of(module) if changed else before,
                           tuple(recorder.remarks), recorder.rewrites, digest(module, text),
                           proof=_proof(original, module) if original is not None and changed else "")
    return Rewritten(module, emit(module, Format.BYTECODE) if changed or exposed else None, report)


def _proof(original: Module, module: Module) -> str:
    from hlorewrite.validate.validate import validate
    return str(validate(original, module))


def rewrite_step(module: Module, passes: Sequence[Pass], platform: str, trace: str | None = None, topology: str = "",
                 prove: bool = False) -> tuple[Rewritten, list[str]]:
    """Runs passes over a step; an auto-sharded one is partitioned first, and stays as it was if no pass changes it.

    Args:
      module: the step's module; it is changed.
      passes: the passes.
      platform: what it is compiled for: ``cpu``, ``cuda``, ...
      trace: the directory below which the run is written; None for none.
      topology: the cluster that passes estimate times for; empty for their default.
      prove: whether to say if the result is proved to compute what the module did.

    Returns:
      The result, whose ``bytecode`` is None when JAX should compile the original, and sentences for the user.

    Raises:
      HlorewriteError: a pass refused or failed.
    """
    passes, exposing = with_platform_passes(passes, platform), hides_collectives(module)
    asked = any(step.name == _EXPOSE for step in passes)
    sentences: list[str] = []
    exposed = exposing
    if exposing and not asked:
        first = rewrite(module, [make_pass(_EXPOSE)])
        module, exposed = first.module, first.report.changed
        sentences += [remark.sentence for remark in first.report.remarks if remark.kind == "blocked"]
    made = rewrite(module, passes, exposed=exposed, trace=trace, topology=topology, prove=prove)
    if made.report.proof.startswith("unknown"):
        sentences.append(f"is rewritten without a proof ({made.report.proof})")
    if not made.report.before and not (exposing and asked):
        sentences.append(NOTHING_TO_REWRITE)
    return replace(made, bytecode=made.bytecode if made.report.changed else None), sentences


@contextmanager
def traced(folder: str | None, module: Module, pipeline: str) -> Iterator[tuple[tuple[TraceWriter, ...], Timings]]:
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
        yield (writer,), timings
        writer.end(timings)
    except HlorewriteError as error:
        writer.failed(error)
        raise
    finally:
        writer.close()


def digest(module: Module, pipeline: str) -> str:
    """A digest of a module without its locations, of the pipeline and of this package's version."""
    parts = (VERSION, pipeline, module.text(debug_info=False))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
