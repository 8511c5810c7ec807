"""Runs a pipeline on the module of a lowering: clones, rewrites, reports. The original is never changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hlorewrite.checks.reference.rounding.summation_order import OrdersOnDemand
from hlorewrite.cost.cluster.capacity import BudgetRefused
from hlorewrite.errors import InputError
from hlorewrite.ir import Format, Module, emit, parse
from hlorewrite.jaxbridge.baseline.baseline_run import NotCompared
from hlorewrite.jaxbridge.baseline.comparison import XlaComparison
from hlorewrite.jaxbridge.baseline.memory_grant import MemoryGrant, granted
from hlorewrite.jaxbridge.choose.candidates import Contest, partitioned_sources, resharded
from hlorewrite.jaxbridge.choose.selection import chosen_module
from hlorewrite.jaxbridge.choose.ways import name_of, rewriting_ways
from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.jaxbridge.step.report import ChangesOnDemand, RewriteReport, Rewritten, with_exposed
from hlorewrite.jaxbridge.step.rewrite import rewrite
from hlorewrite.jaxbridge.step.variants import StepChoice, Variant, beginning_of, variants, with_carry_outside
from hlorewrite.jaxbridge.validate_xla.chain import checked_step
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.partition import NotExposed, expose_collectives, hides_collectives
from hlorewrite.jaxbridge.xla.platform_passes import with_platform_passes
from hlorewrite.jaxbridge.xla.profile_files import with_path, with_text
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.spec import format_pipeline
from hlorewrite.rules.listener import Remark

_EXPOSE = "expose-collectives"
_COMPILED = ("rewritten", "original")
NOTHING_TO_REWRITE = ("contains no collective, so there is nothing to rewrite; check that its inputs are sharded over "
                      "the devices it should run on")


def rewrite_step(module: Module, options: StepOptions, place: DeviceSet) -> tuple[Rewritten, list[str]]:
    """Runs passes over a step; an auto-sharded one is partitioned first.

    Args:
      module: the step's module; it is changed.
      options: the passes and their policies.
      place: the target.

    Returns:
      The result, whose ``bytecode`` is None when JAX should compile the original, and messages for the user. The
      original is compiled where no pass changes anything, and where the rewritten module is not better than it.

    Raises:
      HlorewriteError: a pass refused or failed.
    """
    if options.check != "xla":
        return _rewritten_step(module, options, place)
    original = module.clone()
    made, sentences = _rewritten_step(module, options, place)
    compiled = original if made.bytecode is None else parse(made.bytecode, name=module.name)
    proof, sentence = checked_step(compiled, place)
    return replace(made, report=replace(made.report, proof=proof)), [*sentences, *([sentence] if sentence else [])]


def _rewritten_step(module: Module, options: StepOptions, place: DeviceSet) -> tuple[Rewritten, list[str]]:
    given = options.pipeline
    passes = with_platform_passes(given, place.platform)
    options = replace(options, topology=options.topology or place.topology)
    exposing = hides_collectives(module)
    asked = any(step.name == _EXPOSE for step in passes)
    sentences: list[str] = []
    devices = for_spmd(module).devices if options.keep != "always" else 1
    why_not = _unknown_to_xla(devices, place) if devices > 1 else ""
    sentences += [why_not] if why_not else []
    try:
        grant = granted(options.memory_budget, module, place, options.topology, partitioned=exposing)
    except BudgetRefused as error:
        return _as_it_came(module, passes, error.what), [f"is compiled unchanged: {error.what}; {error.hint}"]
    if why_not or devices == 1:
        other = resharded(module, Variant(tuple(passes))) if exposing and not asked else None
        module = other.module if other else module
        module, exposed = _exposed(module, place, sentences) if exposing and not asked else (module, exposing)
        original = module.clone()
        made = rewrite(module, passes, exposed=exposed, trace=options.trace, topology=options.topology,
                       prove=options.check == "proof", memory=grant.bytes)
        made = _with_run(other.noted(made) if other else made, original, passes, options.topology, grant.bytes)
    else:
        made = _compared(module, passes, options, grant, place, devices, exposing and not asked, sentences)
    if made.report.proof.startswith("unknown"):
        sentences.append(f"is rewritten without a proof ({made.report.proof})")
    if not made.report.before and not (exposing and asked):
        sentences.append(NOTHING_TO_REWRITE)
    return replace(made, bytecode=made.bytecode if made.report.changed else None,
                   report=replace(made.report, budget=grant.text), how=made.how or str(StepChoice.of(given))), sentences


def _unknown_to_xla(devices: int, place: DeviceSet) -> str:
    """Why a step cannot be compared with XLA alone; empty when it can."""
    if place.platform not in ("cpu", "gpu"):
        return f"is not compared with XLA alone: hlorewrite does not know how XLA compiles for {place.platform}"
    if place.platform == "gpu" and len(place.devices) < devices:
        return "is not compared with XLA alone: it is lowered for unknown devices"
    return ""


def _exposed(module: Module, place: DeviceSet, sentences: list[str]) -> tuple[Module, bool]:
    """The module after XLA's partitioner, and whether it ran; adds a sentence if it did not."""
    known = place if place.platform == "cpu" or (place.platform == "gpu" and place.devices) else None
    try:
        return expose_collectives(module, known), True
    except NotExposed as error:
        sentences.append(f"the module stays as it is: {error.what}")
        return module, False


def _as_it_came(module: Module, passes: Sequence[Pass], why: str) -> Rewritten:
    """The result for a step that no pass runs on."""
    made = rewrite(module, [])
    return replace(made, bytecode=None, how=str(StepChoice.of(passes)),
                   report=replace(made.report, pipeline=format_pipeline(passes), budget=why))


def _compared(module: Module, passes: Sequence[Pass], options: StepOptions, grant: MemoryGrant, place: DeviceSet,
              devices: int, exposing: bool, sentences: list[str]) -> Rewritten:
    """The better of the rewritten module and the user's own."""
    tried = variants(passes, xla_scatters=exposing and place.platform == "gpu" and not grant.bytes)

    def run(source: Module, variant: Variant, trace: str | None = None, prove: bool = False,
            decision: Mapping[str, object] | None = None) -> Rewritten:
        whole = (*tried, *map(with_carry_outside, tried))
        shorter = beginning_of(variant, whole)
        return rewrite(source, variant.passes, exposed=exposing, trace=trace, topology=options.topology, prove=prove,
                       memory=variant.memory_within(grant.bytes), shorter=shorter, decision=decision)

    contest = Contest(module, place, devices, run, tried, exposing, options.protect, options.keep, grant.bytes,
                      grant.alone, options.topology if place.platform == "gpu" else "",
                      () if options.auto else tuple(passes), name_of(options.passes, options.pipeline))
    try:
        chosen = chosen_module(contest)
    except NotExposed as error:
        sentences.append(f"the module stays as it is: {error.what}")
        return rewrite(module, passes, topology=options.topology, trace=options.trace, prove=options.check == "proof",
                       memory=grant.bytes)
    except NotCompared as error:
        sentences.append(f'is compiled unchanged: {error.what}; keep="always" compiles the rewritten module')
        return _as_it_came(module, passes, grant.text)
    made, comparison = replace(chosen.made, shorter=None), chosen.comparison
    if options.trace is not None or options.check == "proof":  # again: the run to show and prove is known now
        again = run(chosen.source.clone(), chosen.variant, options.trace, options.check == "proof",
                    comparison.as_json() if comparison else None)
        made = replace(again, report=replace(again.report, changed=made.report.changed, remarks=made.report.remarks))
    text = options.text if options.auto else format_pipeline(passes)
    made = _with_run(replace(made, report=replace(made.report, pipeline=text)), chosen.source, chosen.variant.passes,
                     options.topology, chosen.variant.memory_within(grant.bytes))
    if comparison is None:
        return made
    choice = StepChoice.of(passes, comparison.partitioner, chosen.variant, comparison.kept, grant.bytes)
    written = json.dumps(with_text(comparison.options), sort_keys=True) if comparison.options else None
    made = replace(made, how=str(replace(choice, options=written)))
    return _with_comparison(made, comparison)


def _with_comparison(made: Rewritten, comparison: XlaComparison) -> Rewritten:
    """The module that the comparison picks: the rewritten one, or the user's own with nothing saved."""
    report = made.report
    remark = Remark("applied" if comparison.kept else "unprofitable", "against-xla", comparison.sentence,
                    made.module.name)
    remarks = with_exposed(report.remarks, comparison.alone.exposed_at)
    report = replace(report, comparison=comparison, remarks=(*remarks, remark),
                     compiler_options=dict(comparison.options))
    return replace(made, report=report if comparison.kept else _without_result(report))


def _with_run(made: Rewritten, original: Module, passes: Sequence[Pass], topology: str, memory: int | None
              ) -> Rewritten:
    """A result whose report also covers rounding and the changes of each pass."""
    if not made.report.changed:
        return made
    before = emit(original, Format.BYTECODE)
    after = made.bytecode if made.bytecode is not None else emit(made.module, Format.BYTECODE)
    # Not known about a step that is partitioned differently: its sums may be others from the start.
    orders = None if passes and passes[0].before_partitioner else OrdersOnDemand(before, after, original.name)
    changes = ChangesOnDemand(before, original.name, tuple(passes), topology, memory, original.frames)
    return replace(made, report=replace(made.report, orders=orders, changes=changes))


def _without_result(report: RewriteReport) -> RewriteReport:
    """The report of a step that is compiled from the user's own module after all."""
    return replace(report, changed=False, exposed=False, after=report.before, proof="", orders=None, changes=None,
                   digested=f"{report.digest} (the original)")


def replayed_step(module: Module, options: StepOptions, place: DeviceSet, how: str) -> Rewritten:
    """Repeats the choices of another process without comparing anything: one process decides for all.

    Args:
      module: the step's module; it is not changed.
      options: the passes and their policies.
      place: the target.
      how: the choices, as the text of a ``StepChoice``.

    Returns:
      The result, as ``rewrite_step`` returns it.

    Raises:
      HlorewriteError: a pass refused or failed, or these passes have no such choices.
    """
    passes = with_platform_passes(options.pipeline, place.platform)
    asked = StepChoice.from_text(how)
    exposing = hides_collectives(module) and all(step.name != _EXPOSE for step in passes)
    offered = rewriting_ways(() if options.auto else passes, "", place.platform,
                             xla_scatters=exposing and place.platform == "gpu" and not options.memory_budget, free=1,
                             to_experts=True)
    offered += rewriting_ways(passes, "", place.platform, xla_scatters=False)
    whole = [way.variant for way in offered if way.variant is not None]
    known = {format_pipeline(each.passes): each for each in (*whole, *map(with_carry_outside, whole))}
    variant = known.get(asked.passes or "")
    other = resharded(module, variant) if exposing and variant is not None else None
    sources = dict(partitioned_sources(other.module if other else module, place, exposing))
    program = sources.get((asked.partitioner or "") if exposing else "")
    memory, spent = asked.memory == "unlimited", asked.memory or ""
    if variant is None or program is None or not (memory or spent.isdigit()) or asked.compiled not in _COMPILED:
        raise InputError("the other process chose something that these passes do not offer", location=module.name)
    source = program()
    made = rewrite(source.clone(), variant.passes, exposed=exposing, memory=None if memory else int(spent),
                   topology=options.topology or place.topology)
    made = other.noted(made) if other else made
    made = _with_run(made, source, variant.passes, options.topology or place.topology,
                     None if memory else int(spent))
    report = made.report if asked.compiled == "rewritten" else _without_result(made.report)
    report = replace(report, pipeline=options.text if options.auto else format_pipeline(passes),
                     compiler_options=with_path(options_of_text(asked.options), module.name))
    return replace(made, how=how, report=report, bytecode=made.bytecode if report.changed else None)


def options_of_text(text: str | None) -> dict[str, str | bool | int]:
    """The XLA options of a choice, as a ``StepChoice`` holds them.

    Example:
      >>> options_of_text(None), options_of_text('{"xla_gpu_a": true}')
      ({}, {'xla_gpu_a': True})
    """
    return {} if text is None else {str(name): value for name, value in json.loads(text).items()
                                    if isinstance(value, str | bool | int)}
