"""Measures one train step as it is, with XLA's published flags, and after pipelines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from against_xla_programs import GptLayout, gpt_step
from fsdp_step import exported_fsdp_step
from gpt import GptConfig
from timeline_steps import STEPS as GPT_STEPS
from timeline_steps import exported_step

from hlorewrite.cost import topology
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.baseline_run import FLAG_SETS
from hlorewrite.jaxbridge.baseline.measured import scheduled
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_for import compile_for, place_of
from hlorewrite.jaxbridge.xla.partition import expose_collectives
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.timeline.simulate import ScheduledStep

PIPELINES = ("comm-shift", "comm", "time")
ALONE, BEST = "XLA alone", "XLA, best flags"
HEAD = (f"{'step':<28}{'target':<11}{'compiled':<17}{'step':>8}{'exposed':>9}{'step':>9}{'exposed':>9}{'executed':>10}"
        f"{'temporaries':>13}{'HLO':>7}{'compile':>9}\n"
        f"{'':<56}{'ms':>8}{'ms':>9}{'at 20 %':>9}{'at 20 %':>9}{'MiB':>10}{'MiB':>13}{'ratio':>7}{'ratio':>9}")

_ROUNDS = 3
"""Compilations that are timed, original and rewritten one after the other; the least of each counts."""


@dataclass(frozen=True)
class OverlapRow:
    """One compilation; times in milliseconds, sizes in MiB.

    Attributes:
      step: predicted time of a step.
      exposed: of that, what communication adds.
      slowed: the step at a slowdown of 20 %.
      slowed_exposed: what communication adds to that.
      executed: executed bytes of all collectives.
      temporaries: of one device.
      instructions: of the optimised HLO.
      seconds: processor time of rewriting and a complete compilation, the least of three; 0 if not measured.
    """

    step: float
    exposed: float
    slowed: float
    slowed_exposed: float
    executed: float
    temporaries: float
    instructions: int
    seconds: float = 0.0


@dataclass(frozen=True)
class StepRows:
    """All compilations of a step for a target; ``by_flags`` holds those with published sets of XLA flags."""

    step: str
    target: str
    rows: Mapping[str, OverlapRow]
    by_flags: Mapping[str, OverlapRow] = field(default_factory=dict)

    @property
    def best(self) -> OverlapRow:
        """The shortest step of XLA alone, with any set or none."""
        return min((*self.by_flags.values(), self.rows[ALONE]), key=lambda row: row.step)

    def lines(self) -> list[str]:
        """The lines of the table."""
        alone = self.rows[ALONE]
        lines = []
        for name, row in {ALONE: alone, BEST: self.best, **self.rows}.items():
            code = f"{row.seconds / alone.seconds:9.2f}" if row.seconds and alone.seconds else f"{'':>9}"
            lines.append(f"{self.step:<28}{self.target:<11}{name:<17}{row.step:8.1f}{row.exposed:9.2f}{row.slowed:9.1f}"
                         f"{row.slowed_exposed:9.2f}{row.executed:10.0f}{row.temporaries:13.0f}"
                         f"{row.instructions / alone.instructions:7.2f}{code}".rstrip())
        return lines


def rows_of(step: str, target: str, cfg: GptConfig, *, with_code: bool = False, name: str = "") -> StepRows:
    """Measures a step.

    Args:
      step: ``A scanned``, ``A unrolled``, ``FSDP`` or ``FSDP auto``.
      target: described GPUs.
      cfg: sizes of the model; ``batch`` counts sequences of one GPU.
      with_code: also compile XLA alone and ``time`` to the end.
      name: of the step in the table, where it is not ``step``.
    """
    module = module_of(step, target, cfg)
    source = _partitioned(module, target) if step == "FSDP auto" else module
    rows = {ALONE: _row(module, target, {})}
    by_flags = {each.name: _row(module, target, each.flags) for each in FLAG_SETS}
    for pipeline in PIPELINES:
        rows[pipeline] = _row(_rewritten(source.clone(), pipeline, target), target, {})
    if with_code:
        compile_for(module, parse_target(target))  # what the first compilation of a process adds
        rounds = [(_seconds(module, target, ""), _seconds(source.clone(), target, "time")) for _ in range(_ROUNDS)]
        for compiled, seconds in zip((ALONE, "time"), zip(*rounds, strict=True), strict=True):
            rows[compiled] = replace(rows[compiled], seconds=min(seconds))
    return StepRows(name or step, target, rows, by_flags)


def _row(module: Module, target: str, flags: Mapping[str, str | bool | int]) -> OverlapRow:
    made, _ = scheduled(module, place_of(parse_target(target), module), flags)
    timeline = ScheduledStep(made.hlo, topology(target))
    free, slowed = timeline.at(0.0), timeline.at(0.2)
    count = sum(len(each.instructions) for each in parse_hlo(made.hlo).computations.values())
    return OverlapRow(free.step_s * 1e3, free.exposed_s * 1e3, slowed.step_s * 1e3, slowed.exposed_s * 1e3,
                      made.bytes / 2**20, made.temp / 2**20, count)


def _rewritten(module: Module, pipeline: str, target: str) -> Module:
    run_passes(module, parse_pipeline(pipeline), PassContext(topology=target))
    return module


def _seconds(module: Module, target: str, pipeline: str) -> float:
    """Processor time of rewriting and compiling, that of child processes included."""
    started = sum(os.times()[:4])
    if pipeline:
        _rewritten(module, pipeline, target)
    compile_for(module, parse_target(target))
    return sum(os.times()[:4]) - started


def module_of(step: str, target: str, cfg: GptConfig) -> Module:
    """A step at its target."""
    devices = parse_target(target).devices
    if step == "FSDP":
        return parse(exported_fsdp_step(cfg, devices), name="step")
    if step == "FSDP auto":
        return _auto_sharded(devices, cfg)
    return parse(exported_step(next(each for each in GPT_STEPS if each.name == step), cfg, devices), name="step")


def _auto_sharded(devices: int, cfg: GptConfig) -> Module:
    """The GPT with its parameters sharded by annotation alone; f32, rematerialised."""
    layout = GptLayout({"fsdp": devices}, constrained=True)
    return clone_of(private.module_of(gpt_step(replace(cfg, batch=cfg.batch * devices), layout)), "step")


def _partitioned(module: Module, target: str) -> Module:
    return expose_collectives(module, place_of(parse_target(target), module))
