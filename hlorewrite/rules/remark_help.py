"""The section of ``docs/why-not-moved.md`` that explains a remark, by the text of the remark.

The first section whose pattern occurs in the sentence counts. A test finds a section for each remark that a pass can
emit, and a heading on the page for each section.
"""

import re
from dataclasses import dataclass

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
             "last iteration stays in the loop", "its reductions stay after it",
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
