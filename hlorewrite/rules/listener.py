"""Events of the rewrite driver: remarks, rewrites, statistics, explanations.

Everything is plain data, so that a pipeline, a trace writer or a test can subscribe without knowing the driver.
"""

import re
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

RemarkKind = Literal["applied", "blocked", "unprofitable", "missed"]
REMARK_KINDS: tuple[RemarkKind, ...] = ("applied", "blocked", "unprofitable", "missed")


@dataclass(frozen=True)
class Remark:
    """One sentence about one place in the user's program.

    Attributes:
      kind: ``applied``; ``blocked`` (a ``legal`` check failed: it would be wrong); ``unprofitable`` (a ``cost`` check
        failed: right, but not worth it); ``missed`` (the ops are there, a ``where`` check failed; only while
        explaining).
      rule: the rule's name.
      sentence: why, without a final full stop.
      location: the user's source line of the root op, ``file:line:col``.
      op: the name of the root op.
      culprit: short text of the op at fault; empty when there is none.
      culprit_location: the user's source line of the op at fault.
      rule_location: where the rule is written, ``file:line``.
      parameter: the path of the argument of the step that the root op belongs to, ``params['w']``; empty when it is not
        known.
      type: the type of the root op's tensor.
      framework: the line of the library that made the root op; empty when that is the user's own.
      advice: the shortest change of the program or of the options that would remove the reason.
      exposed: how long the collectives of the line run exposed, in a step under XLA alone: ``500 us``;
        empty when that is zero or unknown.
    """

    kind: RemarkKind
    rule: str
    sentence: str
    location: str
    op: str = ""
    culprit: str = ""
    culprit_location: str = ""
    rule_location: str = ""
    parameter: str = ""
    type: str = ""
    framework: str = ""
    advice: str = ""
    exposed: str = ""

    @property
    def about(self) -> str:
        """Parameter, type and the library's line, as far as they are known.

        Example:
          >>> Remark("applied", "fold", "", "train.py:3:1", parameter="params['w']", type="tensor<4xf32>").about
          "params['w'], tensor<4xf32>"
        """
        within = f"in {self.framework}" if self.framework else ""
        return ", ".join(filter(None, (self.parameter, self.type, within)))

    @property
    def help(self) -> str:
        """The section of the documents that explains it, ``why-not-moved.md#...``; empty when there is none."""
        return help_of(self.kind, self.sentence, bool(self.rule_location))

    def __str__(self) -> str:
        at_fault = f" (see {self.culprit_location}: {self.culprit})" if self.culprit else ""
        about = f" [{self.about}]" if self.about else ""
        exposed = f"; under XLA alone the collectives of this line expose {self.exposed} a step" if self.exposed else ""
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.location}: remark: {self.kind}: {self.rule}: {self.sentence}{exposed}{at_fault}{about}{advice}"


@dataclass(frozen=True)
class RewriteRecord:
    """One applied rewrite.

    Attributes:
      index: its number in the run, from 0.
      rule: the rule's name.
      rule_location: where the rule is written, ``file:line``.
      location: the user's source line of the root op.
      before: text of the matched ops, one line each.
      after: text of the created and changed ops, one line each; empty when ops only vanished.
      milliseconds: time of checks and rewrite.
    """

    index: int
    rule: str
    rule_location: str
    location: str
    before: str
    after: str
    milliseconds: float


@dataclass(frozen=True)
class RuleStatistics:
    """The effect of one rule in a run; rules that never matched are reported too.

    Attributes:
      rule: the rule's name.
      location: where the rule is written, ``file:line``.
      tried: how many root ops it was tried on.
      matched: how often the ops of its ``match`` block were found.
      applied: how often it rewrote.
      blocked: how often a ``legal`` check stopped it.
      unprofitable: how often a ``cost`` check stopped it.
      milliseconds: time spent in matching, checks and rewrites.
    """

    rule: str
    location: str
    tried: int = 0
    matched: int = 0
    applied: int = 0
    blocked: int = 0
    unprofitable: int = 0
    milliseconds: float = 0.0


@dataclass(frozen=True)
class Explanation:
    """The best partial match of one rule in a module, and why it stopped.

    Attributes:
      rule: the rule's name.
      rule_location: where the rule is written, ``file:line``.
      outcome: ``no root`` (no op of the root's name), ``no match``, ``where``, ``legal``, ``cost`` or ``applies``.
      sentence: why it stopped, without a final full stop.
      location: the user's source line of the root op of the best partial match.
      matched: how many steps of the match passed.
      steps: how many steps a whole match has.
      culprit: short text of the op at fault.
      culprit_location: its source line.
      failed_check: the check as the rule writes it; empty when the match itself stopped.
      known: how the rule was verified.
    """

    rule: str
    rule_location: str
    outcome: Literal["no root", "no match", "where", "legal", "cost", "applies"]
    sentence: str
    location: str = ""
    matched: int = 0
    steps: int = 0
    culprit: str = ""
    culprit_location: str = ""
    failed_check: str = ""
    known: str = ""


@runtime_checkable
class Listener(Protocol):
    """Receives the driver's events. ``wants_text`` requests before/after text, ``wants_missed`` missed remarks, and
    ``wants_mismatches`` also those of rules, up to one for every op.
    """

    @property
    def wants_text(self) -> bool: ...
    @property
    def wants_missed(self) -> bool: ...
    @property
    def wants_mismatches(self) -> bool: ...
    def remark(self, remark: Remark) -> None: ...
    def rewrite(self, record: RewriteRecord) -> None: ...
    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None: ...


@dataclass
class Recorder:
    """A listener that keeps the events, in order.

    Example:
      >>> recorder = Recorder()
      >>> recorder.remark(Remark("applied", "fold", "two collectives became one", "train.py:3:1"))
      >>> str(recorder.remarks[0])
      'train.py:3:1: remark: applied: fold: two collectives became one'
    """

    wants_text: bool = False
    wants_missed: bool = False
    remarks: list[Remark] = field(default_factory=list)
    rewrites: list[RewriteRecord] = field(default_factory=list)
    rules: tuple[RuleStatistics, ...] = ()

    @property
    def wants_mismatches(self) -> bool:
        """Whether missed remarks of rules are wanted, in addition to those of passes."""
        return self.wants_missed

    def remark(self, remark: Remark) -> None:
        """Keeps a remark."""
        self.remarks.append(remark)

    def rewrite(self, record: RewriteRecord) -> None:
        """Keeps a rewrite."""
        self.rewrites.append(record)

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Keeps the statistics of the run."""
        self.rules = rules


# ---- the section of ``docs/why-not-moved.md`` that explains a remark, by the text of the remark

# The first section whose pattern occurs in the sentence counts. A test finds a section for each remark that a pass can
# emit, and a heading on the page for each section.


PAGE = "why-not-moved.md"


@dataclass(frozen=True)
class HelpSection:
    """A section of the page.

    Attributes:
      anchor: its anchor on the page.
      pattern: found in the sentences that it explains.
    """

    anchor: str
    pattern: re.Pattern[str]


def _section(anchor: str, *patterns: str) -> HelpSection:
    return HelpSection(anchor, re.compile("|".join(patterns)))


SECTIONS: tuple[HelpSection, ...] = (
    _section("the-module-contains-no-collective", "contains no all-reduce", "contains a collective",
             "is auto-sharded here"),
    _section("a-value-differs-between-devices", "differs? between devices", "a different number of times"),
    _section("the-result-is-needed-in-the-loop", "needs the reduced value in the loop"),
    _section("each-call-needs-it-reduced", "so each call needs it reduced"),
    _section("the-order-of-a-floating-point-sum", "order of a floating-point sum"),
    _section("the-memory-budget", "bytes of local sums", "bytes more would be live", "memory budget"),
    _section("cheaper-in-expectation-only", "in expectation", "on the path", "would send more"),
    _section("no-cheaper-place", "would not be cheaper"),
    _section("the-loop-may-not-run", "which may not run at all"),
    _section("calls-that-are-not-fused", "it keeps its own call", "keep a call each"),
    _section("fragments-with-the-same-ops", "stays whole: it contains what @", "not a program of several meshes"),
    _section("hosts-and-hierarchical-reductions", "hosts are not known", "no elements to scatter",
             "do not span several hosts", "stays whole", "in three steps"),
    _section("batch-norms", "the variance waits for its mean", "the sum waits for its factor"),
    _section("broadcasts-instead-of-gathers-and-sums", "the gather stays", "no chain of permutes is faster",
             "the permutes? stays?", "permutes stay", "between two devices it is as cheap", "the reduction stays"),
    _section("plans-of-transfers", "the transfer (needs|gets) no plan"),
    _section("loops-that-stay-as-they-are", "it stays as it is", "it stays in its loop: ",
             "its iterations stay apart: ", "last iteration stays in the loop", "its reductions stay after it",
             "what it stacks stays after it"),
    _section("optimizer-state-that-stays-whole", "gradient is reduced on every device", "their state stays whole",
             "only a reduction after the loop can produce shards", "no tensor is added up over"),
    _section("sums-that-each-call-reduces", "its sum is needed in each call", "is added to state",
             "has a result of its name and type"),
    _section("fragments-and-modules-that-xla-does-not-partition", "the (fragment|module) stays as it is",
             "^mesh .* stays as it is"),
    _section("groups-and-reducers-that-are-not-understood", "the [\\w-]+ stays: "),
    _section("a-rule-that-would-not-end", "rewrites its own results at most"),
)
CONDITION = "a-condition-of-a-rule-does-not-hold"
"""The section for all other remarks of rules: their sentence is the condition that failed."""


def help_of(kind: str, sentence: str, of_rule: bool) -> str:
    """The page and section that explain a remark; empty when there is none, as for ``applied``.

    Args:
      kind: kind of the remark.
      sentence: its text.
      of_rule: whether a rule of a rule file emitted it.

    Example:
      >>> help_of("missed", "it has no elements to scatter", False)
      'why-not-moved.md#hosts-and-hierarchical-reductions'
      >>> help_of("applied", "reduced where its result is needed", False)
      ''
    """
    if kind == "applied":
        return ""
    anchor = next((one.anchor for one in SECTIONS if one.pattern.search(sentence)), CONDITION if of_rule else "")
    return f"{PAGE}#{anchor}" if anchor else ""
