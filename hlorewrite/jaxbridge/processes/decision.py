"""The decision of process 0 for all processes of a module: a small document, broadcast as text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields

from hlorewrite.util.read import read_json


@dataclass(frozen=True)
class Decision:
    """The decision about one module, the same on every process.

    Attributes:
      original: digest of the original module.
      result: digest of what is compiled.
      how: what was rewritten and how: lines of a keyword and its value. The first line says what was asked for, such as
        ``pipeline comm-shift``, the others what was chosen. The processes only compare this text.
      versions: the versions of hlorewrite and jaxlib.

    Example:
      >>> made = Decision("a1", "b2", "pipeline comm-shift", "hlorewrite 1, jaxlib 0.12.0")
      >>> Decision.from_text(made.to_text()) == made
      True
    """

    original: str
    result: str
    how: str = ""
    versions: str = ""

    def to_text(self) -> str:
        """The document as one line of JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Decision:
        """Reads what ``to_text`` wrote.

        Raises:
          ValueError: it is another document, such as that of another version.
        """
        data = read_json(text)
        names = {field.name for field in fields(cls)}
        if not isinstance(data, dict) or set(data) != names or not all(isinstance(data[name], str) for name in names):
            raise ValueError("the decision of another version of hlorewrite")
        return cls(**data)

    def chose_otherwise(self, first: Decision) -> bool:
        """Whether the deciding process has the same options and module, but made another choice."""
        asked, theirs = self.how.partition("\n")[0], first.how.partition("\n")[0]
        return self.how != first.how and (self.original, self.versions, asked) == (
            first.original, first.versions, theirs)

    def difference(self, first: Decision) -> tuple[str, str]:
        """How this process differs from the one that decides, and what to do about it; empty if they agree.

        Args:
          first: the decision of the other process.

        Example:
          >>> made = Decision("a", "b", "pipeline comm-shift", "hlorewrite 1, jaxlib 0.12.0")
          >>> Decision("a", "c", "pipeline cse", "hlorewrite 1, jaxlib 0.12.0").difference(made)
          ('its pipeline is cse, not comm-shift', 'name the same passes everywhere')
        """
        if self == first:
            return "", ""
        if self.versions != first.versions:
            return (f"it has {self.versions}, not {first.versions}",
                    "install the same hlorewrite and jaxlib everywhere")
        if self.original != first.original:
            return ("its original module differs",
                    "use the same code, shapes, shardings and options on every process")
        if self.how != first.how:
            mine, theirs = _first_other_line(self.how, first.how)
            name, _, value = (mine or theirs).partition(" ")
            other = theirs.partition(" ")[2]
            hint = "name the same passes everywhere" if name == "pipeline" else "pass the same options everywhere"
            return f"its {name} is {(value if mine else '') or 'none'}, not {other or 'none'}", hint
        return ("the same module and pipeline gave a different result",
                "use the same rule files and topology files everywhere")


def _first_other_line(mine: str, theirs: str) -> tuple[str, str]:
    """The first line in which two texts differ; empty for a line that one of them lacks."""
    ours, others = mine.splitlines(), theirs.splitlines()
    for line in ours:
        if line not in others:
            word = line.partition(" ")[0]
            return line, next((other for other in others if other.partition(" ")[0] == word), "")
    return "", next((line for line in others if line not in ours), "")
