"""``--remarks``: what rules did, did not do, and why, each with the user's source line."""

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass, field

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.rules.listener import REMARK_KINDS, Remark, RewriteRecord, RuleStatistics
from hlorewrite.rules.remark_groups import grouped_remarks

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
