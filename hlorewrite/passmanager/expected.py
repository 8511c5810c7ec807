"""``--verify-diagnostics``: compares the diagnostics that a file expects with those that came, as ``mlir-opt`` does.

``// expected-error@+1 {{text}}`` in a comment expects one error on the next line whose message contains the text;
``error``, ``warning``, ``remark`` and ``note`` are known; ``@-2``, ``@above``, ``@below`` move the line, ``@unknown``
means a place that is not in the file; ``expected-error-re`` reads ``{{...}}`` in the text as regular expressions.
"""

import re
from dataclasses import dataclass

_EXPECTATION = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?"
    r"\s*(?:@(?P<at>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*)\}\}\s*$")
_COMMENT = re.compile(r"//\s*(expected-.*)$")


@dataclass(frozen=True)
class Message:
    """One diagnostic, placed in the file that is checked.

    Attributes:
      severity: ``error``, ``warning``, ``remark`` or ``note``.
      line: its line in the file; None when it points elsewhere or nowhere.
      text: what it says.
    """

    severity: str
    line: int | None
    text: str


@dataclass(frozen=True)
class Expectation:
    """One ``expected-...`` comment.

    Attributes:
      severity: the severity it expects.
      line: the line it expects the diagnostic on; None for ``@unknown``.
      text: what the message must contain.
      regex: whether ``{{...}}`` in the text are regular expressions.
      written_at: the line of the comment.
    """

    severity: str
    line: int | None
    text: str
    regex: bool
    written_at: int

    def matches(self, message: Message) -> bool:
        """Whether a diagnostic is what this comment expects."""
        if (self.severity, self.line) != (message.severity, message.line):
            return False
        if not self.regex:
            return self.text in message.text
        parts = re.split(r"\{\{(.*?)\}\}", self.text)
        pattern = "".join(part if odd % 2 else re.escape(part) for odd, part in enumerate(parts))
        return re.search(pattern, message.text) is not None


def expectations(text: str, first_line: int = 1) -> list[Expectation]:
    """Every ``expected-...`` comment of a part of a file.

    Args:
      text: the part.
      first_line: the line of the file it starts on.

    Returns:
      The expectations, in order.

    Example:
      >>> [e.line for e in expectations("a\\n// expected-error@+1 {{no}}\\nb\\n")]
      [3]
    """
    made: list[Expectation] = []
    designator = first_line  # the last line that is not an expectation, for @above
    pending: list[tuple[re.Match[str], int]] = []
    for number, line in enumerate(text.splitlines(), first_line):
        comment = _COMMENT.search(line)
        match = _EXPECTATION.match(comment.group(1)) if comment else None
        if match and match.group("at") == "below":
            pending.append((match, number))
            continue
        if match:
            made.append(_expectation(match, number, designator))
        if not match or line[:line.index("//")].strip():
            designator = number
            made += [_made(m, number, at) for m, at in pending]
            pending = []
    made += [_made(m, at + 1, at) for m, at in pending]
    return sorted(made, key=lambda e: e.written_at)


def _expectation(match: re.Match[str], number: int, designator: int) -> Expectation:
    at = match.group("at")
    if at == "unknown":
        return _made(match, None, number)
    if at == "above":
        return _made(match, designator, number)
    return _made(match, number + int(at or 0), number)


def _made(match: re.Match[str], line: int | None, written_at: int) -> Expectation:
    return Expectation(match.group("severity"), line, match.group("text"), bool(match.group("regex")), written_at)


def mismatches(name: str, expected: list[Expectation], came: list[Message]) -> list[str]:
    """Unexpected remarks and missing expected ones, one line each, in the format of ``mlir-opt``.

    Args:
      name: the file's name.
      expected: the comments.
      came: the diagnostics.

    Returns:
      Lines to print; empty when everything matches, each comment with exactly one diagnostic.

    Example:
      >>> mismatches("f", expectations("// expected-error {{no}}"), [Message("error", 1, "no such op")])
      []
    """
    left = list(expected)
    out: list[str] = []
    for message in came:
        hit = next((e for e in left if e.matches(message)), None)
        if hit:
            left.remove(hit)
        elif message.severity != "note":  # MLIR lets notes pass unexpected
            out.append(f'{name}:{message.line or "?"}: unexpected {message.severity}: {message.text}')
    out += [f'{name}:{e.written_at}: expected {e.severity} "{e.text}" was not produced' for e in left]
    return out
