"""What each pass changed: its rewrites with their ops before and after, and a diff of the module, both cut to size."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass
from hlorewrite.rules.listener import Remark, RewriteRecord, RuleStatistics

MOST_REWRITES = 10
"""Rewrites of one pass that are kept; twelve layers have the same one twelve times."""
MOST_LINES = 120
"""Lines of a pass's diff that are kept."""
MOST_OPS = 12
"""Lines of the ops before and after one rewrite that are kept."""
MOST_COMPARED = 8000
"""Longer modules are not compared line by line: that takes time in proportion to the square of their lines."""
_MOST_ELEMENTS = 16
"""Larger constants are printed as ``...``."""
_MOST_WIDTH, _MOST_ATTRIBUTE = 240, 56
_ATTRIBUTE = re.compile(r'dense<[^>"]*>|"[^"]*"')


@dataclass(frozen=True)
class CutText:
    """The first lines of a text.

    Attributes:
      lines: those that are kept; long attributes in them are shortened.
      left_out: how many more there are.
    """

    lines: tuple[str, ...]
    left_out: int = 0

    @classmethod
    def of(cls, text: str, most: int) -> CutText:
        """The first lines of a text, each shortened.

        Example:
          >>> CutText.of("a\\nb\\nc", 2)
          CutText(lines=('a', 'b'), left_out=1)
        """
        lines = text.splitlines()
        return cls(tuple(map(shortened, lines[:most])), max(len(lines) - most, 0))


@dataclass(frozen=True)
class OpsChange:
    """One rewrite.

    Attributes:
      rule: the rule that did it; for a pass without rules, the pass.
      location: the user's line.
      before: the ops that were matched.
      after: the ops in their place; without lines where ops only vanished.
    """

    rule: str
    location: str
    before: CutText
    after: CutText


@dataclass(frozen=True)
class PassChange:
    """What one pass changed.

    Attributes:
      name: the pass with its options.
      rewrites: the first of them.
      left_out: how many more it recorded.
      diff: the unified diff of the module, in which SSA names do not count.
      removed: lines that are no longer in the module.
      added: lines that are new.
      unknown: why there is no diff; empty if there is one.
    """

    name: str
    rewrites: tuple[OpsChange, ...]
    left_out: int
    diff: CutText
    removed: int
    added: int
    unknown: str = ""

    @classmethod
    def unknown_of(cls, name: str, why: str) -> PassChange:
        """Passes of which nothing can be shown."""
        return cls(name, (), 0, diff=CutText(()), removed=0, added=0, unknown=why)


@dataclass
class ChangeRecorder:
    """Observes passes and listens to their rewrites; ``changes`` lists the passes that changed the module.

    Attributes:
      changes: the changes, in the order in which the passes ran.
    """

    wants_text: bool = True
    wants_missed: bool = False
    wants_mismatches: bool = False
    changes: list[PassChange] = field(default_factory=list)
    _text: str = field(default="", init=False)
    _rewrites: list[OpsChange] = field(default_factory=list, init=False)
    _recorded: int = field(default=0, init=False)

    def before(self, pass_: Pass, module: Module) -> None:
        """Keeps the module's text before the first pass; each later pass begins with what the one before it left."""
        self._text = self._text or module.text(elide_over=_MOST_ELEMENTS)
        self._rewrites, self._recorded = [], 0

    def after(self, pass_: Pass, module: Module, changed: bool) -> None:
        """Keeps what the pass changed."""
        if not changed:
            return
        before, self._text = self._text, module.text(elide_over=_MOST_ELEMENTS)
        long = max(before.count("\n"), self._text.count("\n")) > MOST_COMPARED
        lines = [] if long else module_diff(before, self._text, module.name).splitlines()[2:]
        unknown = f"modules of more than {MOST_COMPARED} lines are not compared line by line" if long else ""
        self.changes.append(PassChange(
            str(pass_), tuple(self._rewrites), self._recorded - len(self._rewrites),
            diff=CutText.of("\n".join(lines), MOST_LINES), removed=sum(line[:1] == "-" for line in lines),
            added=sum(line[:1] == "+" for line in lines), unknown=unknown))

    def remark(self, remark: Remark) -> None:
        """Remarks are kept elsewhere."""

    def rewrite(self, record: RewriteRecord) -> None:
        """Keeps a rewrite; of each pass, only the first few."""
        self._recorded += 1
        if len(self._rewrites) < MOST_REWRITES:
            self._rewrites.append(OpsChange(record.rule, record.location, CutText.of(record.before, MOST_OPS),
                                            CutText.of(record.after, MOST_OPS)))

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Statistics of rules are not kept."""


def shortened(line: str) -> str:
    """A line of a module with its long attributes cut, and the line itself cut if it is still long.

    Example:
      >>> shortened(f'"a.b"(%0) {{groups = dense<{"0, " * 40}0>, sharding = "a"}}')
      '"a.b"(%0) {groups = dense<0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...>, sharding = "a"}'
    """
    line = _ATTRIBUTE.sub(_cut, line)
    more = len(line) - _MOST_WIDTH
    return f"{line[:_MOST_WIDTH]}... ({more} more characters)" if more > 0 else line


def _cut(attribute: re.Match[str]) -> str:
    text = attribute[0]
    return text if len(text) <= _MOST_ATTRIBUTE else f"{text[:_MOST_ATTRIBUTE - 2]}...{text[-1]}"


# ---- ``--diff``: what changed between two texts of a module, SSA names set aside


_SSA = re.compile(r"%[A-Za-z_0-9$.-]+(?:#\d+)?|#loc\d*|\^bb\d+")


def module_diff(before: str, after: str, name: str, context: int = 3) -> str:
    """A unified diff in which lines that differ in SSA names alone count as equal.

    Args:
      before: text of the module.
      after: text of the rewritten module.
      name: the file's name, for the heading.
      context: unchanged lines to show around changes.

    Returns:
      The diff, empty when nothing but names changed.

    Example:
      >>> print(module_diff("%0 = a\\n%1 = b\\n", "%5 = a\\n%6 = c\\n", "x.mlir"), end="")
      --- x.mlir (before)
      +++ x.mlir (after)
      @@ -1,2 +1,2 @@
       %5 = a
      -%1 = b
      +%6 = c
    """
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, *([_SSA.sub("%", line) for line in lines] for lines in (old, new)),
                                      autojunk=False)
    out: list[str] = []
    for group in matcher.get_grouped_opcodes(context):
        first, last = group[0], group[-1]
        out.append(f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@")
        for tag, a0, a1, b0, b1 in group:
            if tag == "equal":
                out += [f" {line}" for line in new[b0:b1]]
                continue
            out += [f"-{line}" for line in old[a0:a1]]
            out += [f"+{line}" for line in new[b0:b1]]
    if not out:
        return ""
    return "\n".join([f"--- {name} (before)", f"+++ {name} (after)", *out]) + "\n"
