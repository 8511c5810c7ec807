"""A step through a plan file: replayed where a plan fits, made and written where there is none."""

from dataclasses import dataclass, field, replace

from hlorewrite.errors import OutputError, PlanMismatch
from hlorewrite.ir import Format, Module, emit
from hlorewrite.jaxbridge.baseline.modules import flags_given
from hlorewrite.jaxbridge.choose.candidates import devices_in_words
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.choose.plan_report import report_data, report_of
from hlorewrite.jaxbridge.processes.agreement import Agreement
from hlorewrite.jaxbridge.processes.shared_plan import PlanRuling, ruling_of_all
from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.jaxbridge.step.report import Rewritten
from hlorewrite.jaxbridge.step.variants import StepChoice
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.profile_files import with_path, with_text
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.lockfile.document import PlanDocument, read_document
from hlorewrite.lockfile.files import PlanFiles, PlanPlace
from hlorewrite.lockfile.fingerprint import flags_text, jax_version, made_for
from hlorewrite.lockfile.remarks import remarks_data, short_places
from hlorewrite.lockfile.replay import PlanReplay, fitting, place_of_step, replayed
from hlorewrite.lockfile.stored import stored_text
from hlorewrite.lockfile.tuned import (
    CHOSEN_BY,
    OPTIONS,
    CompilerOptions,
    LeftOpen,
    options_of,
    options_text,
    portable_digest,
)


def planned_step(module: Module, options: StepOptions, place: DeviceSet,
                 agreement: Agreement | None = None) -> tuple[Rewritten, list[str]]:
    """``rewrite_step`` with a plan file: no pass, partitioner or comparison runs where a plan is replayed.

    Args:
      module: the step's module; it is changed.
      options: the passes, their policies, and where plans are kept; the plans of the first process count.
      place: the target.
      agreement: the agreement of the processes of the step; None if this one decides alone.

    Returns:
      What ``rewrite_step`` returns.

    Raises:
      PlanMismatch: a plan does not fit or cannot be read, and no new one is to be made.
      HlorewriteError: a pass refused or failed.
    """
    plans = options.plans
    if plans is None and agreement is None:
        return rewrite_step(module, options, place)
    wanted = _wanted(module, options, place)
    left = LeftOpen(options.left_open, flags_given(place))
    own = OwnPlan(plans, wanted, module, left)
    ruling = ruling_of_all(agreement, own.ruling)
    if ruling.ends:
        raise ruling.error()
    if ruling.text:
        return _replayed(own.found or _followed(ruling, own), module, ruling.name)
    original = module.clone()
    made, sentences = rewrite_step(module, options, place)
    refusals = [str(ruling.error())] if ruling.refused else []
    if plans is not None and own.where is not None:
        made, refusals = _written(plans, own.where, wanted, original, made, sentences, refusals)
    return made, [*refusals, *sentences]


@dataclass
class OwnPlan:
    """The plan of a step, as this process reads it.

    Args:
      plans: where plans are kept; None for nowhere.
      wanted: the request that the plan has to fit.
      module: the step's module, which is not changed.
      left: the options that the user leaves to a plan of ``hlorewrite tune``.
    """

    plans: PlanFiles | None
    wanted: dict[str, str]
    module: Module
    left: LeftOpen = field(default_factory=LeftOpen)
    where: PlanPlace | None = None
    found: PlanReplay | None = None

    def ruling(self) -> PlanRuling:
        """Reads the plan and decides whether to follow it."""
        if self.plans is None:
            return PlanRuling()
        try:
            self.where = place_of_step(self.plans, self.module.name, self.wanted, self.module)
            self.found = replayed(self.where, self.wanted, self.module, self.left)
        except PlanMismatch as error:
            known = self.where is not None
            refused = self.plans.refused(error) if known else error
            ends = self.plans.on_mismatch != "replan" or not known
            stops = self.plans.on_mismatch != "original"
            return PlanRuling(refused.location or "", "", refused.what, refused.hint or "", ends, ends and stops)
        return PlanRuling(self.where.read, self.found.document.text() if self.found is not None else "")


def _followed(ruling: PlanRuling, own: OwnPlan) -> PlanReplay:
    """The plan that another process read; if it does not fit here, all processes run the original."""
    try:
        document = read_document(ruling.text.encode(), ruling.name)
        return fitting(document, own.wanted, own.module, ruling.name, own.left)
    except PlanMismatch as error:
        raise PlanMismatch(error.what, location=error.location, hint="pass the same options everywhere",
                           stops=False) from None


def _wanted(module: Module, options: StepOptions, place: DeviceSet) -> dict[str, str]:
    """The request that a plan of the step has to fit."""
    wanted = made_for(module, options.pipeline, options.topology, **options.made_for, platform=place.platform,
                      cluster=place.topology, devices=devices_in_words(place, for_spmd(module).devices),
                      xla_flags=flags_text(place.flags))
    return {**wanted, "passes": options.text} if options.auto else wanted


def _replayed(found: PlanReplay, original: Module, name: str) -> tuple[Rewritten, list[str]]:
    module = found.module
    bytecode = None if module is None else emit(module, Format.BYTECODE)
    report = report_of(found.document, name)
    report = replace(report, compiler_options=with_path(options_of(found.document, name), name))
    made = Rewritten(module or original, bytecode, report, str(StepChoice.from_data(found.document.decision)))
    return made, list(found.document.notices)


def _written(plans: PlanFiles, where: PlanPlace, wanted: dict[str, str], original: Module, made: Rewritten,
             sentences: list[str], refusals: list[str]) -> tuple[Rewritten, list[str]]:
    """Writes a plan once a replay of it is known to succeed; adds a sentence if it cannot be replayed."""
    try:
        document = _document(wanted, original, made, sentences)
        fitting(document, wanted, original, where.write)
        plans.write(where, document)
    except (PlanMismatch, OutputError) as error:
        return made, [*refusals, f"no plan is written: {error}"]
    return replace(made, report=replace(made.report, plan=f"made and written to {where.write}")), refusals


def _document(wanted: dict[str, str], original: Module, made: Rewritten, sentences: list[str]) -> PlanDocument:
    report, compiled = made.report, made.bytecode is not None
    reason = report.comparison.sentence if report.comparison else ""
    choice = StepChoice.from_text(short_places(made.how)).data()
    chosen = with_text(report.comparison.options) if report.comparison else {}
    decision = {"compiled": "rewritten" if compiled else "original", **choice,
                "reason": reason or ("a pass changed it" if compiled else "no pass changed anything"),
                **({OPTIONS: chosen} if chosen else {})}
    text = stored_text(made.module, original.name) if compiled else ""
    return PlanDocument(original.name, wanted, jax_version(), decision, report_data(report),
                        remarks_data(report.remarks), tuple(map(short_places, sentences)),
                        made.module.digest() if compiled else "", text)


def tuned_plan(module: Module, options: StepOptions, place: DeviceSet, made: Rewritten, sentences: list[str],
               compiler_options: CompilerOptions) -> PlanDocument:
    """The plan of a choice of ``hlorewrite tune``.

    Args:
      module: the step's module, which is not changed.
      options: the passes and their policies.
      place: the described devices that it was compiled for.
      made: the result of the passes.
      sentences: what to tell the user.
      compiler_options: XLA options of the choice, which the step is compiled with.

    Raises:
      PlanMismatch: the result cannot be kept in a plan.
    """
    compiler_options = with_text(compiler_options)
    wanted = {**_wanted(module, options, replace(place, flags={})), "module": portable_digest(module)}
    wanted |= {OPTIONS: options_text(compiler_options)} if compiler_options else {}
    document = _document(wanted, module, made, sentences)
    chosen = {**document.decision, "chosen_by": CHOSEN_BY, OPTIONS: dict(compiler_options)}
    document = replace(document, step=module.name.rpartition("/")[2], decision=chosen)
    fitting(document, wanted, module, module.name)
    return document
