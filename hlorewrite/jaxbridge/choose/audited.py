"""The decision of an audit: a step, or the program of an XLA dump, rewritten and compared with XLA alone."""

from collections.abc import Mapping
from dataclasses import replace

from hlorewrite.audit.step_audit import AuditedDecision
from hlorewrite.errors import HlorewriteError, UsageError
from hlorewrite.ir import Module
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
from hlorewrite.jaxbridge.step.report import RewriteReport, Rewritten
from hlorewrite.jaxbridge.step.rewrite import rewrite
from hlorewrite.jaxbridge.step.variants import StepChoice
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.hlo_text import stablehlo_of
from hlorewrite.jaxbridge.xla.partition import clean_import
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.named import AUTO, PIPELINES
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Remark
from hlorewrite.rules.remark_subject import grouped_remarks
from hlorewrite.util.sizes import format_bytes
from hlorewrite.util.tables import table


def decided_dump(text: str, name: str, target: str, cluster: str, passes: str
                 ) -> tuple[AuditedDecision, RewriteReport | None]:
    """Decides for the per-device program of a dump; needs no source.

    Args:
      text: HLO, the file of a dump whose name ends in ``after_spmd_partitioner.txt``.
      name: the name to show in messages.
      target: the devices, such as ``h200:4x8``.
      cluster: the topology that times are predicted for.
      passes: ``auto``, a pipeline, or the name of one.

    Returns:
      What ``decided_module`` returns. If the program cannot be read, the decision says why.
    """
    try:
        original = program_of_dump(text, name)
        return decided_module(original, _fitting(target, for_spmd(original).devices), cluster, passes)
    except HlorewriteError as error:
        return AuditedDecision(passes, why_not=error.what), None


def decided_module(original: Module, target: str, cluster: str, passes: str,
                   flags: Mapping[str, str | bool | int] | None = None) -> tuple[AuditedDecision, RewriteReport | None]:
    """Makes the decision that the decorator would make for a step.

    Args:
      original: the step; it is not changed.
      target: its devices, such as ``h200:4x8``.
      cluster: the topology that times are predicted for.
      passes: ``auto``, a pipeline, or the name of one.
      flags: XLA flags that the user sets; they hold for every way.

    Returns:
      The decision for a terminal, and its report. Without the CUDA compiler, calls and bytes are those of the program
      before optimisations, and there are no times.
    """
    try:
        try:
            place = place_of(parse_target(target), original)
            place = replace(place, flags={**place.flags, **(flags or {})})
        except UsageError as error:
            return _counted(original, passes, cluster, error.what)
        asked = AUTO if passes == AUTO else as_passes(PIPELINES.get(passes, passes))
        rewritten, _ = rewrite_step(original.clone(), StepOptions(asked, topology=cluster), place)
        report = rewritten.report
    except HlorewriteError as error:
        return AuditedDecision(passes, why_not=error.what), None
    if report.comparison is None:
        return AuditedDecision(passes, sentence="no pass changes the program", stays=_stays(report)), report
    comparison = replace(report.comparison, devices=target)
    return AuditedDecision(passes, tuple(comparison.lines()), comparison.sentence, _made(rewritten), _stays(report),
                           comparison.as_json()), replace(report, comparison=comparison)


def _counted(original: Module, passes: str, cluster: str, why_not: str) -> tuple[AuditedDecision, RewriteReport | None]:
    """The figures of the passes alone, where nothing can be compiled for the target."""
    text = PIPELINES["comm" if passes == AUTO else passes] if passes in (AUTO, *PIPELINES) else passes
    report = rewrite(original, as_passes(text), topology=cluster).report
    rows = [["the program before optimisations", "calls", "executed"]]
    rows += [[side, str(sum(each.trips for each in sent)), format_bytes(sum(each.executed_bytes for each in sent), 1)]
             for side, sent in (("as XLA's partitioner made it", report.before), (f"with {passes}", report.after))]
    return AuditedDecision(passes, tuple(table(rows, "<>>")), stays=_stays(report),
                           why_not=f"both are counted before XLA's optimisations, and have no times: {why_not}"), report


def _stays(report: RewriteReport) -> tuple[str, ...]:
    """Remarks on what stays and what would change that: each cause once, starting with the lines that expose most."""
    remarks = dict.fromkeys(_short(remark) for remark in report.stays if remark.advice)
    return tuple(map(str, grouped_remarks(remarks)))


def _made(rewritten: Rewritten) -> tuple[str, ...]:
    """Remarks on what passes changed before XLA's partitioner: the lines whose shardings made it communicate."""
    passes = parse_pipeline(StepChoice.from_text(rewritten.how).passes or "")
    names = {each.name for each in passes if each.before_partitioner}
    return tuple(map(str, grouped_remarks([remark for remark in rewritten.report.done if remark.rule in names])))


def _fitting(target: str, devices: int) -> str:
    """The part of a target that a program runs on."""
    whole = parse_target(target)
    if whole.devices <= devices or whole.platform != "described":
        return target
    name, hosts = target.partition(":")[0], max(devices // whole.devices_per_host, 1)
    return f"{name}:{hosts}x{devices // hosts}"


def _short(remark: Remark) -> Remark:
    """A remark without the details that a dump does not hold."""
    known = remark.culprit_location not in ("", "?")
    return replace(remark, type="", parameter="", culprit=remark.culprit if known else "",
                   culprit_location=remark.culprit_location if known else "")


def program_of_dump(text: str, name: str) -> Module:
    """The program that XLA's partitioner made, before XLA optimises it.

    Args:
      text: HLO, the file of a dump whose name ends in ``after_spmd_partitioner.txt``.
      name: the name to show in messages.

    Returns:
      A per-device module without donation, which concerns no collective.

    Raises:
      InputError: this jaxlib does not read the text, or cannot write it as StableHLO.
    """
    module = stablehlo_of(text, name, "the program before optimisations cannot be read",
                          "read the dump with the jaxlib that wrote it")
    clean_import(module, text)
    for attribute in [each for each in module.operation.attributes if each.startswith("mhlo.")]:
        del module.operation.attributes[attribute]
    return module
