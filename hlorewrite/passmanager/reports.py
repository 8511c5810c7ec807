"""Reports of a run: its remarks, each with the source line of the user, and statistics as tables or JSON."""

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass, field

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.passmanager.manager import Timings
from hlorewrite.rules.listener import REMARK_KINDS, Remark, RewriteRecord, RuleStatistics
from hlorewrite.rules.remark_subject import grouped_remarks
from hlorewrite.util.tables import numbers_right, table

# ---- ``--remarks``: what rules did, did not do, and why, each with the user's source line


_WORDS = (*REMARK_KINDS, "all", "json", "text")


@dataclass
class RemarkSink:
    """Keeps remarks of chosen kinds, in order, each sentence about a place once.

    Attributes:
      kinds: which kinds to keep.
      remarks: what was kept.
      wants_missed: whether ``missed`` remarks are wanted.
    """

    kinds: Collection[str] = REMARK_KINDS
    remarks: dict[Remark, None] = field(default_factory=dict)
    wants_text: bool = False
    wants_missed: bool = field(init=False)

    def __post_init__(self) -> None:
        self.wants_missed = "missed" in self.kinds

    @property
    def wants_mismatches(self) -> bool:
        """Whether missed remarks of rules are wanted, as those of passes are."""
        return self.wants_missed

    def remark(self, remark: Remark) -> None:
        """Keeps a remark if its kind is wanted."""
        if remark.kind in self.kinds:
            self.remarks[remark] = None

    def rewrite(self, record: RewriteRecord) -> None:
        """Rewrites are not remarks."""

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Statistics are not remarks."""

    def text(self) -> str:
        """One line for each cause, as compilers print remarks; below it the other places."""
        return "".join(f"{group}\n" for group in grouped_remarks(self.remarks))

    def json_lines(self) -> str:
        """One JSON object per line, without empty fields."""
        fields = ({**dataclasses.asdict(r), "help": r.help} for r in self.remarks)
        return "".join(json.dumps({k: v for k, v in each.items() if v}) + "\n" for each in fields)


def parse_kinds(text: str) -> tuple[tuple[str, ...], bool]:
    """Reads the value of ``--remarks``.

    Args:
      text: ``text``, ``json``, ``all``, kinds of remarks, or several of these, comma-separated.

    Returns:
      The kinds (by default all but ``missed``, which are many), and whether to print JSON.

    Raises:
      UsageError: a word is neither.

    Example:
      >>> parse_kinds("json,blocked")
      (('blocked',), True)
    """
    words = [word for word in text.split(",") if word]
    for word in words:
        if word not in _WORDS:
            raise UsageError(f'--remarks: unknown word "{word}"', hint=did_you_mean(word, _WORDS))
    kinds = REMARK_KINDS if "all" in words else tuple(kind for kind in REMARK_KINDS if kind in words)
    return kinds or tuple(kind for kind in REMARK_KINDS if kind != "missed"), "json" in words


# ---- ``--stats`` and ``--timing``: what each rule and pass did, as tables or JSON


@dataclass
class StatisticsSink:
    """Adds up the statistics of rules over all passes.

    Attributes:
      rules: the sums by (rule, location), in the order rules were first heard of.
    """

    rules: dict[tuple[str, str], RuleStatistics] = field(default_factory=dict)
    wants_text: bool = False
    wants_missed: bool = False
    wants_mismatches: bool = False

    def remark(self, remark: Remark) -> None:
        """Remarks are not counted here."""

    def rewrite(self, record: RewriteRecord) -> None:
        """Rewrites are counted by the driver."""

    def statistics(self, rules: tuple[RuleStatistics, ...]) -> None:
        """Adds one report of the driver."""
        for rule in rules:
            key = (rule.rule, rule.location)
            self.rules[key] = added(self.rules[key], rule) if key in self.rules else rule


def added(a: RuleStatistics, b: RuleStatistics) -> RuleStatistics:
    """The sum of two reports on one rule."""
    numbers = ("tried", "matched", "applied", "blocked", "unprofitable", "milliseconds")
    return dataclasses.replace(a, **{n: getattr(a, n) + getattr(b, n) for n in numbers})


def _text(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, *rows]
    return "".join(f"{line}\n" for line in table(lines, numbers_right(lines)))


def statistics_text(sink: StatisticsSink, counters: dict[tuple[str, str], int]) -> str:
    """The table of rules, then what passes counted."""
    rows = [[r.rule, str(r.applied), str(r.tried), str(r.matched), str(r.blocked), str(r.unprofitable),
             f"{r.milliseconds:.1f}", r.location] for r in sink.rules.values()]
    headings = ["rule", "applied", "tried", "matched", "blocked", "unprofitable", "ms", "written at"]
    shown = _text(headings, rows) if rows else ""
    counted = _text(["pass", "what", "count"], [[p, what, str(n)] for (p, what), n in counters.items()])
    between = "\n" if rows and counters else ""
    return shown + between + (counted if counters else "") or "no rule ran and no pass counted anything\n"


def statistics_json(sink: StatisticsSink, counters: dict[tuple[str, str], int]) -> str:
    """The same as one JSON object."""
    return json.dumps({"rules": [dataclasses.asdict(r) for r in sink.rules.values()],
                       "counters": [{"pass": p, "what": w, "count": n} for (p, w), n in counters.items()]}) + "\n"


def timing_text(timings: Timings) -> str:
    """Milliseconds and share of each step, in the order they ran, then the sum."""
    total = sum(seconds for _, seconds in timings.rows)
    rows = [[step, f"{seconds * 1e3:.1f}", f"{100 * seconds / total if total else 0:.1f}"]
            for step, seconds in [*timings.rows, ("total", total)]]
    return _text(["step", "ms", "%"], rows)


def timing_json(timings: Timings) -> str:
    """The same as one JSON object."""
    return json.dumps({"steps": [{"step": s, "milliseconds": t * 1e3} for s, t in timings.rows],
                       "total_milliseconds": sum(t for _, t in timings.rows) * 1e3}) + "\n"
