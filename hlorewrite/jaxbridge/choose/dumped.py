"""Rewrites the program of an XLA dump and compares it with XLA alone; needs no source."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hlorewrite.audit.step_audit import DumpRewrite, RewrittenSchedule
from hlorewrite.cost import topology
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.hlo.collectives import HloCollective
from hlorewrite.ir import Module
from hlorewrite.jaxbridge.baseline.measured import Measured, scheduled
from hlorewrite.jaxbridge.step.options import as_passes
from hlorewrite.jaxbridge.step.report import StepCollective, with_exposed
from hlorewrite.jaxbridge.step.rewrite import rewrite
from hlorewrite.jaxbridge.xla.compile_for import place_of, rewritten_flags
from hlorewrite.jaxbridge.xla.hlo_text import stablehlo_of
from hlorewrite.jaxbridge.xla.partition import clean_import
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.jaxbridge.xla.target import Target, parse_target
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.rules.listener import Remark
from hlorewrite.rules.remark_groups import grouped_remarks
from hlorewrite.timeline.simulate import ScheduledStep


def rewritten_dump(text: str, name: str, target: str, cluster: str, passes: str) -> DumpRewrite:
    """Runs passes over the per-device program of a dump, and compiles both for the target.

    Args:
      text: HLO, the file of a dump whose name ends in ``after_spmd_partitioner.txt``.
      name: for messages.
      target: what for, such as ``h200:4x8``.
      cluster: the topology that times are predicted for.
      passes: a pipeline, or the name of one.

    Returns:
      Both sides. Where the CUDA compiler is not installed, they are counted on the program before optimisations, and
      have no times. Where the program cannot be read, why.
    """
    try:
        original = program_of_dump(text, name)
        made = rewrite(original.clone(), as_passes(PIPELINES.get(passes, passes)), topology=cluster)
        remarks = [_short(remark) for remark in made.report.remarks if remark.kind != "applied" and remark.advice]
        why_not = "both are counted before XLA's optimisations, and have no times: "
        try:
            place = place_of(_fitting(target, for_spmd(original).devices), original)
        except UsageError as error:
            return DumpRewrite(passes, _counted(made.report.before), _counted(made.report.after),
                               _sentences(remarks, {}), f"{why_not}{error.what}")
        alone = scheduled(original, place, {})[0]
        ours = scheduled(made.module, place, rewritten_flags(made.module, place))[0] if made.report.changed else alone
        before, after = _simulated(alone, original, cluster), _simulated(ours, made.module, cluster)
        exposed_at = before.timeline.exposed_at if before.timeline is not None else {}
        return DumpRewrite(passes, before, after, _sentences(remarks, exposed_at))
    except HlorewriteError as error:
        return DumpRewrite(passes, None, None, why_not=error.what)


def _fitting(target: str, devices: int) -> Target:
    """The part of a target that a program runs on."""
    whole = parse_target(target)
    if whole.devices <= devices or whole.platform != "described":
        return whole
    name, hosts = target.partition(":")[0], max(devices // whole.devices_per_host, 1)
    return parse_target(f"{name}:{hosts}x{devices // hosts}")


def _short(remark: Remark) -> Remark:
    """A remark without what a dump does not say."""
    known = remark.culprit_location not in ("", "?")
    return replace(remark, type="", parameter="", culprit=remark.culprit if known else "",
                   culprit_location=remark.culprit_location if known else "")


def _sentences(remarks: Sequence[Remark], exposed_at: Mapping[str, float]) -> tuple[str, ...]:
    """Remarks as text, each cause once, those of lines that expose most first."""
    order = sorted(remarks, key=lambda remark: -exposed_at.get(remark.location, 0.0))
    return tuple(map(str, grouped_remarks(dict.fromkeys(with_exposed(order, exposed_at)))))


def _counted(collectives: tuple[StepCollective, ...] | tuple[HloCollective, ...]) -> RewrittenSchedule:
    return RewrittenSchedule(sum(c.trips for c in collectives), sum(c.executed_bytes for c in collectives), None)


def _simulated(made: Measured, module: Module, cluster: str) -> RewrittenSchedule:
    step = ScheduledStep(made.hlo, topology(cluster), name=module.name).at()
    return RewrittenSchedule(made.calls, made.bytes, step)


def program_of_dump(text: str, name: str) -> Module:
    """The program that XLA's partitioner made, before XLA optimises it.

    Args:
      text: HLO, the file of a dump whose name ends in ``after_spmd_partitioner.txt``.
      name: for messages.

    Returns:
      A per-device module; what it says about donation is dropped, which concerns no collective.

    Raises:
      InputError: this jaxlib does not read the text, or cannot write it as StableHLO.
    """
    module = stablehlo_of(text, name, "the program before optimisations cannot be read",
                          "read the dump with the jaxlib that wrote it")
    clean_import(module, text)
    for attribute in [each for each in module.operation.attributes if each.startswith("mhlo.")]:
        del module.operation.attributes[attribute]
    return module
