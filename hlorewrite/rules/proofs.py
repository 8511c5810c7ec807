"""The verdicts of ``hlorewrite rules prove`` on shipped rules and facts, kept in a file.

They are available without a solver. Each has a digest of the text that it is about and of the natives that the text
calls. ``tools/update_proofs.py`` writes the file, and a test compares it with fresh proofs.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hlorewrite.rules.native_source import native_source
from hlorewrite.rules.syntax import ast
from hlorewrite.rules.syntax.printer import print_file

PROOFS = Path(__file__).parent.parent / "patterns" / "proofs.json"


@dataclass(frozen=True)
class KnownProof:
    """The verdict about one shipped rule or fact.

    Attributes:
      digest: digest of the text that the verdict is about, and of its natives.
      verdict: ``proved``, ``proved over the reals``, or why it is neither.
      executed: if it is not proved, the number of programs on which both sides gave equal values.
    """

    digest: str
    verdict: str
    executed: int = 0

    @property
    def sentence(self) -> str:
        """The verdict in words.

        Example:
          >>> KnownProof("", "assumed: a reason", 40).sentence
          'assumed: a reason; executed on 40 instances'
        """
        return f"{self.verdict}; executed on {self.executed} instances" if self.executed else self.verdict


def digest(item: ast.Rule | ast.Linear) -> str:
    """A digest of what a rule or fact and its natives say; doc lines, comments and docstrings do not count."""
    text = print_file(ast.File((replace(item, docs=(), comments=(), trailing=""),)))
    return hashlib.sha256(f"{text}\n{native_source(text)}".encode()).hexdigest()[:16]


def how_known(item: ast.Rule | ast.Linear) -> str:
    """The kept verdict about exactly this rule or fact, or how to get one.

    Args:
      item: the rule or fact, shipped or a user's.

    Example:
      >>> from hlorewrite.rules.library import load
      >>> how_known(load("linearity").facts[0].fact)
      'proved over the reals'
    """
    known = known_proofs().get(item.name)
    if known is None or known.digest != digest(item):
        return "not proved yet: try hlorewrite rules prove"
    return known.sentence


def is_proved(item: ast.Rule | ast.Linear) -> bool:
    """Whether a kept verdict says that a rule or fact is proved."""
    return how_known(item).startswith("proved")


@cache
def known_proofs() -> dict[str, KnownProof]:
    """The kept verdicts, by rule and fact."""
    if not PROOFS.exists():
        return {}
    return {name: KnownProof(**row) for name, row in json.loads(PROOFS.read_text(encoding="utf-8")).items()}
