"""``--stats`` and ``--timing``: what each rule and pass did, as tables or JSON."""

import dataclasses
import json
from dataclasses import dataclass, field

from hlorewrite.passmanager.manager import Timings
from hlorewrite.rules.listener import Remark, RewriteRecord, RuleStatistics
from hlorewrite.util.tables import numbers_right, table


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
