"""Outputs of ``hlorewrite opt`` other than the module: remarks, statistics, times, explanations, diffs, diagnostics."""

import argparse
import os
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hlorewrite.cli.opt.decide import named_cluster
from hlorewrite.errors import HlorewriteError, UsageError, did_you_mean
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import IrPrinter, Observer, Timings
from hlorewrite.rules.listener import Listener, Remark, RewriteRecord, RuleStatistics
from hlorewrite.util.progress import Step, nothing

if TYPE_CHECKING:
    from hlorewrite.passmanager.expected import Expectation, Message
    from hlorewrite.passmanager.trace.writer import TraceWriter

_PLACE = re.compile(r"(.*?):(\d+)(?::\d+)?$", re.DOTALL)


class Announcer:
    """Says on the terminal which pass runs now."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def before(self, pass_: Pass, module: Module) -> None:
        """The pass begins."""
        self.step(str(pass_))

    def after(self, pass_: Pass, module: Module, changed: bool) -> None:
        """The next event will show that this pass is over."""


class Reports:
    """Collects reports over all parts of the input, and prints them at the end.

    Args:
      args: the command line of ``opt``.
      timings: the times to print.
    """

    def __init__(self, args: argparse.Namespace, timings: Timings) -> None:
        from hlorewrite.passmanager.reports import RemarkSink, StatisticsSink, parse_kinds
        self.args = args
        self.timings = timings
        kinds, self.remarks_as_json = parse_kinds(args.remarks or "text")
        self.remarks = RemarkSink(kinds) if args.remarks else None
        self.statistics = StatisticsSink() if args.stats else None
        self.unproved = UnprovedRules()
        self.trace: TraceWriter | None = None
        self.counters: dict[tuple[str, str], int] = {}
        self.name = "<stdin>" if args.file == "-" else args.file
        self.expected: list[Expectation] = []
        self.messages: list[Message] = []
        self.step: Step = nothing

    @property
    def listeners(self) -> list[Listener]:
        """Listeners for remarks, rewrites and statistics."""
        sinks: list[Listener | None] = [self.remarks, self.statistics, self.trace, self.unproved]
        return [sink for sink in sinks if sink is not None]

    @property
    def observers(self) -> list[Observer]:
        """Observers of the module before and after each pass."""
        args = self.args
        printer = IrPrinter(args.print_ir_before, args.print_ir_after, args.print_ir_before_all,
                            after_all=args.print_ir_after_all, after_change=args.print_ir_after_change,
                            debug_info=bool(args.debug_info), generic=args.generic, elide_over=args.elide)
        return [printer, Announcer(self.step), *([self.trace] if self.trace else [])]

    def open_trace(self, pipeline: str) -> None:
        """Makes the directory of ``--trace``; the command line is known to be right by now."""
        if self.args.trace is not None:
            from hlorewrite.passmanager.trace.writer import TraceWriter
            self.trace = TraceWriter(self.args.trace, source=self.name, pipeline=pipeline,
                                     topology=named_cluster(self.args))

    def begin_part(self, raw: bytes, first_line: int) -> None:
        """A module is about to be read."""
        if self.args.verify_diagnostics:
            from hlorewrite.passmanager.expected import expectations
            self.expected += expectations(raw.decode("utf-8", "replace"), first_line)

    def collect(self, ctx: PassContext) -> None:
        """Collects what the passes over a module counted, and what MLIR's passes said."""
        for key, amount in ctx.counters.items():
            if amount:
                self.counters[key] = self.counters.get(key, 0) + amount
        for diagnostic in ctx.diagnostics:
            from hlorewrite.ir.location import line_of_text
            where = line_of_text(diagnostic.location).replace("-:", f"{self.name}:", 1)
            self._message(diagnostic.severity, where, diagnostic.message)

    def failed(self, error: HlorewriteError) -> None:
        """A part failed."""
        if self.args.verify_diagnostics:
            self._message("error", error.location or "", error.what)
        if self.trace:
            self.trace.failed(error)

    def diff(self, before: str, after: str, name: str) -> None:
        """Prints what changed to stdout."""
        from hlorewrite.passmanager.changes import module_diff
        sys.stdout.write(module_diff(before, after, name))

    def mismatches(self, name: str) -> list[str]:
        """The complaints of ``--verify-diagnostics``."""
        from hlorewrite.passmanager.expected import mismatches
        for remark in self.remarks.remarks if self.remarks else ():
            self._message("remark", remark.location, f"{remark.kind}: {remark.rule}: {remark.sentence}")
        return mismatches(name, self.expected, self.messages)

    def flush(self, remarks: bool = True) -> None:
        """Prints the reports to stderr."""
        from hlorewrite.passmanager import reports
        out = sys.stderr
        out.writelines(f"{sentence}\n" for sentence in self.unproved.sentences())
        if self.remarks and remarks:
            out.write(self.remarks.json_lines() if self.remarks_as_json else self.remarks.text())
        if self.statistics:
            write = reports.statistics_json if self.args.stats == "json" else reports.statistics_text
            out.write(write(self.statistics, self.counters))
        if self.args.timing:
            out.write((reports.timing_json if self.args.timing == "json" else reports.timing_text)(self.timings))

    def end_trace(self, outputs: list[bytes]) -> None:
        """Writes the part of the trace that is known only at the end; a trace covers one module."""
        if self.trace:
            for output in outputs:
                self.trace.end(self.timings, output)

    def close(self) -> None:
        """Closes files."""
        if self.trace:
            self.trace.close()

    def _message(self, severity: str, where: str, text: str) -> None:
        if not self.args.verify_diagnostics:
            if severity in ("warning", "remark"):
                print(f"{where}: {severity}: {text}", file=sys.stderr)
            return
        from hlorewrite.passmanager.expected import Message
        place = _PLACE.match(re.sub(r"^(.*:\d+):\d+$", r"\1", where))
        line = int(place.group(2)) if place and place.group(1) == self.name else None
        self.messages.append(Message(severity, line, text))

    def explain(self, ctx: PassContext, module: Module) -> None:
        """Prints what passes reported, or, when no pass has the rule, tries the shipped one on the result."""
        if not ctx.explanations:
            from hlorewrite.rules.apply.matcher import explain
            from hlorewrite.rules.library import load_shipped
            rules = {rule.name: rule for file in load_shipped() for rule in file.rules}
            rule = rules.get(self.args.explain)
            if rule is None:
                raise UsageError(f'no pass of the pipeline has a rule "{self.args.explain}", and none is shipped',
                                 hint=did_you_mean(self.args.explain, rules))
            ctx.explanation(explain(rule, ctx.view(module), ignore_cost=ctx.ignore_cost))
        for explanation in ctx.explanations:
            print(explanation_text(explanation))


def explanation_text(explanation: object) -> str:
    """One explanation as lines: what was tried, how far it got, and why it stopped."""
    from hlorewrite.rules.listener import Explanation
    assert isinstance(explanation, Explanation)
    written = f" ({explanation.rule_location})" if explanation.rule_location else ""
    lines = [f"rule {explanation.rule}{written}: {explanation.outcome}"]
    if explanation.known:
        lines.append(f"  the rule itself: {explanation.known}")
    if explanation.location:
        lines.append(f"  closest place: {explanation.location}")
    if explanation.steps:
        lines.append(f"  matched {explanation.matched} of {explanation.steps} steps")
    if explanation.failed_check:
        lines.append(f"  failed check: {explanation.failed_check}")
    lines.append(f"  {explanation.sentence}")
    if explanation.culprit:
        lines.append(f"  at fault: {explanation.culprit_location}: {explanation.culprit}")
    return "\n".join(lines)


# ---- rules that were applied although nothing shows that they are right


@dataclass
class UnprovedRules:
    """A listener that records which rules were applied, and reports what is known about those from the user's files."""

    wants_text: bool = False
    wants_missed: bool = False
    wants_mismatches: bool = False
    applied: dict[tuple[str, str], None] = field(default_factory=dict)

    def remark(self, remark: Remark) -> None:
        """Notes the rule of a rewrite."""
        if remark.kind == "applied" and remark.rule_location:
            self.applied[remark.rule_location, remark.rule] = None

    def rewrite(self, record: RewriteRecord) -> None:
        """Remarks say it already."""

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Remarks say it already."""

    def sentences(self) -> list[str]:
        """A warning for each rule that was applied and is not proved; shipped rules are proved, or their documents say
        that they are not."""
        if not self.applied:
            return []
        from hlorewrite.checks.prove.prove import why_unproved
        found = []
        for (location, rule), file in ((key, key[0].rpartition(":")[0]) for key in self.applied):
            why = why_unproved(file, rule) if os.path.isfile(file) else ""
            if why:
                found.append(f"{location}: warning: rule {rule} was applied and is not proved ({why}); "
                             "add --check=interp to compare the values")
        return found
