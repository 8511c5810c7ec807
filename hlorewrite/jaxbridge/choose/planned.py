"""The module of a step: replayed where a plan file fits, else chosen alone or with the other processes, and written."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import jax
from jaxlib import version as jaxlib_version

from hlorewrite.checks.reference.rounding.summation_order import SummationOrders
from hlorewrite.errors import OutputError, PlanMismatch
from hlorewrite.ir import Format, Module, emit
from hlorewrite.ir.binding import ir
from hlorewrite.jaxbridge.baseline.comparison import WayRow, XlaComparison, flags_given
from hlorewrite.jaxbridge.baseline.measured import Measured
from hlorewrite.jaxbridge.choose.candidates import devices_in_words
from hlorewrite.jaxbridge.choose.chosen_step import replayed_step, rewrite_step
from hlorewrite.jaxbridge.processes.agreement import Agreement, Decision
from hlorewrite.jaxbridge.processes.consensus import VERSIONS, JointOutcome, PlanRuling, decided, ruling_of_all
from hlorewrite.jaxbridge.step.options import StepOptions
from hlorewrite.jaxbridge.step.report import RewriteReport, Rewritten, StepCollective, digest
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.step.variants import StepChoice
from hlorewrite.jaxbridge.xla import miscompile_workarounds
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.profile_files import with_path, with_text
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd
from hlorewrite.lockfile import tuned
from hlorewrite.lockfile.document import PlanDocument, read_document
from hlorewrite.lockfile.files import PlanFiles, PlanPlace
from hlorewrite.lockfile.fingerprint import flags_text, jax_version, made_for
from hlorewrite.lockfile.remarks import remarks_data, remarks_of, short_place, short_places
from hlorewrite.lockfile.replay import PlanReplay, fitting, place_of_step, replayed
from hlorewrite.lockfile.stored import stored_text


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
    left = tuned.LeftOpen(options.left_open, flags_given(place))
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
    left: tuned.LeftOpen = field(default_factory=tuned.LeftOpen)
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
    report = replace(report, compiler_options=with_path(tuned.options_of(found.document, name), name))
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
                **({tuned.OPTIONS: chosen} if chosen else {})}
    text = stored_text(made.module, original.name) if compiled else ""
    return PlanDocument(original.name, wanted, jax_version(), decision, report_data(report),
                        remarks_data(report.remarks), tuple(map(short_places, sentences)),
                        made.module.digest() if compiled else "", text)


def tuned_plan(module: Module, options: StepOptions, place: DeviceSet, made: Rewritten, sentences: list[str],
               compiler_options: tuned.CompilerOptions) -> PlanDocument:
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
    wanted = {**_wanted(module, options, replace(place, flags={})), "module": tuned.portable_digest(module)}
    wanted |= {tuned.OPTIONS: tuned.options_text(compiler_options)} if compiler_options else {}
    document = _document(wanted, module, made, sentences)
    chosen = {**document.decision, "chosen_by": tuned.CHOSEN_BY, tuned.OPTIONS: dict(compiler_options)}
    document = replace(document, step=module.name.rpartition("/")[2], decision=chosen)
    fitting(document, wanted, module, module.name)
    return document


# ---- converts the report of a step to data of a plan file, and back


def report_data(report: RewriteReport) -> dict[str, Any]:
    """The figures of a report; source lines without folders."""
    rounding = report.rounding
    return {"after": [_collective_data(each) for each in report.after],
            "before": [_collective_data(each) for each in report.before], "budget": report.budget,
            "changed": report.changed, "comparison": _comparison_data(report.comparison), "digest": report.digest,
            "exposed": report.exposed, "pipeline": short_places(report.pipeline), "proof": report.proof,
            "rewrites": report.rewrites, "rounding": None if rounding is None else rounding.as_dict()}


def report_of(document: PlanDocument, name: str) -> RewriteReport:
    """The report of a run that replays a plan.

    Args:
      document: the plan.
      name: its file.

    Raises:
      PlanMismatch: the plan does not contain a report.
    """
    remarks, data = remarks_of(document, name), document.report
    try:
        return RewriteReport(str(data["pipeline"]), bool(data["changed"]), bool(data["exposed"]),
                             _collectives(data["before"]), _collectives(data["after"]), remarks,
                             int(data["rewrites"]), str(data["digest"]), proof=str(data["proof"]),
                             comparison=_comparison(data["comparison"]), plan=f"replayed from {name}",
                             orders=None if data["rounding"] is None else SummationOrders.of_dict(data["rounding"]),
                             budget=str(data["budget"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PlanMismatch("is not a complete plan", location=name) from None


def _collective_data(one: StepCollective) -> dict[str, Any]:
    return {"bytes": one.bytes, "kind": one.kind, "source": short_place(one.source), "trips": one.trips,
            "wire": str(one.wire)}


def _collectives(data: list[Mapping[str, Any]]) -> tuple[StepCollective, ...]:
    return tuple(StepCollective(str(one["kind"]), int(one["bytes"]), int(one["trips"]), str(one["source"]),
                                Fraction(str(one["wire"])))
                 for one in data)


def _comparison_data(comparison: XlaComparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {"against": comparison.against, "devices": comparison.devices, "partitioner": comparison.partitioner,
            "name": comparison.name, "rewritten": _measured_data(comparison.ours) if comparison.ours else None,
            "tried": [_row_data(row) for row in comparison.tried], "with_code": comparison.with_code,
            "xla_alone": _measured_data(comparison.alone)}


def _comparison(data: Mapping[str, Any] | None) -> XlaComparison | None:
    if data is None:
        return None
    ours = _measured(data["rewritten"]) if data["rewritten"] is not None else None
    return XlaComparison(str(data["devices"]), _measured(data["xla_alone"]), ours, str(data["partitioner"]),
                         str(data["against"]), bool(data["with_code"]), name=str(data["name"]),
                         tried=tuple(map(_row, data["tried"])))


def _row_data(row: WayRow) -> dict[str, Any]:
    return {"flags": row.shown_flags, "measured": _measured_data(row.measured) if row.measured else None,
            "name": row.name, "why": row.why}


def _row(data: Mapping[str, Any]) -> WayRow:
    measured = _measured(data["measured"]) if data["measured"] is not None else None
    return WayRow(str(data["name"]), measured, str(data["why"]), flags=tuple(data["flags"].items()))


def _measured_data(one: Measured) -> dict[str, Any]:
    """The figures that are the same in every run; not how long XLA took, nor its program."""
    return {"bytes": one.bytes, "calls": one.calls, "capacity": one.capacity, "counted_s": one.counted_s,
            "exposed_s": one.exposed_s, "memory": one.memory, "plain_s": one.plain_s, "step_s": one.step_s,
            "temp": one.temp, "trips_known": one.trips_known, "unknown": list(one.unknown), "untimed": one.untimed,
            "wire": one.wire}


def _measured(data: Mapping[str, Any]) -> Measured:
    return Measured(int(data["calls"]), int(data["bytes"]), int(data["wire"]), int(data["temp"]), 0.0, "",
                    bool(data["trips_known"]), _seconds(data["step_s"]), _seconds(data["exposed_s"]),
                    untimed=str(data["untimed"]), memory=int(data["memory"]), capacity=int(data["capacity"]),
                    counted_s=_seconds(data["counted_s"]), plain_s=_seconds(data["plain_s"]),
                    unknown=tuple(map(str, data["unknown"])))


def _seconds(value: object) -> float | None:
    return None if value is None else float(str(value))


# ---- the module that a step is compiled from, chosen by this process alone or agreed on with the others


MadeStep = tuple[Rewritten, list[str]]
"""The result, and messages for the user."""


def made_step(computation: ir.Module, name: str, options: StepOptions, place: DeviceSet,
              agreement: Agreement | None = None, first: Decision | None = None) -> MadeStep:
    """Rewrites a step, or follows the choices of the first process where they are given.

    Args:
      computation: JAX's module, which stays as it is.
      name: the name of the step.
      options: passes and policies. Only the first process writes traces.
      place: the target.
      agreement: the agreement with the other processes of the step; None if this one decides alone.
      first: the choices of the process that decides.

    Raises:
      HlorewriteError: a pass refused or failed, or a plan does not fit.
    """
    options = options if jax.process_index() == 0 else replace(options, trace=None)
    module = clone_of(computation, name, options.frames)
    made, sentences = planned_step(module, options, place, agreement) if first is None else \
        (replayed_step(module, options, place, first.how), [])
    return with_compiler_options(made, place, options.protect), sentences


def joint_step(agreement: Agreement, computation: ir.Module, name: str, options: StepOptions,
               place: DeviceSet) -> JointOutcome[MadeStep]:
    """``made_step`` for a step of several processes, with the same arguments."""
    before = ""

    def make(first: Decision | None = None) -> tuple[Decision, MadeStep]:
        nonlocal before
        before = before or digest(clone_of(computation, name), "")
        made, sentences = made_step(computation, name, options, place, agreement, first)
        return Decision(before, made.report.digest, made.how, VERSIONS), (made, sentences)
    return decided(agreement, make, make)


def with_compiler_options(made: Rewritten, place: DeviceSet, protect: bool) -> Rewritten:
    """Adds all options of the compilation to a result's report.

    Args:
      made: the result; options of a replayed plan are in its report.
      place: what the step is compiled for, with the user's options, which stay as they are.
      protect: whether a rewritten module is compiled without an XLA pass that miscompiles on GPU.
    """
    options = {name: value for name, value in made.report.compiler_options.items() if name not in place.flags}
    if protect and made.bytecode is not None:
        options |= miscompile_workarounds.options(jaxlib_version.__version_info__, place.platform,
                                      str(place.flags.get(miscompile_workarounds.FLAG, "")))
    return replace(made, report=replace(made.report, compiler_options=options)) if options else made
