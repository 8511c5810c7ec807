"""Rules that were applied although nothing shows that they are right."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from hlorewrite.rules.events import Remark, RewriteRecord, RuleStatistics


@dataclass
class UnprovedRules:
    """A listener that keeps which rules were applied, and says of those of the user's files what is known."""

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
        """One for each rule that was applied and is not proved; shipped ones are, or say so in their documents."""
        if not self.applied:
            return []
        from hlorewrite.prove.prove import why_unproved
        found = []
        for (location, rule), file in ((key, key[0].rpartition(":")[0]) for key in self.applied):
            why = why_unproved(file, rule) if os.path.isfile(file) else ""
            if why:
                found.append(f"{location}: warning: rule {rule} was applied and is not proved ({why}); "
                             "add --check=interp to compare the values")
        return found
