"""Pipeline text to passes and back: ``a,b{x=1},builtin.module(cse,func.func(canonicalize))``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hlorewrite.errors import UsageError, did_you_mean
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.registry import make_pass

if TYPE_CHECKING:
    from hlorewrite.passmanager.base import Pass

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_ANCHORS = ("builtin.module", "func.func")


def parse_pipeline(text: str) -> list[Pass]:
    """The passes a pipeline text names.

    Args:
      text: comma-separated passes, each with options in braces, and names of pipelines; ``builtin.module(...)`` and
        ``func.func(...)`` nest MLIR's own passes as in ``mlir-opt``.

    Returns:
      The passes in order. A list of MLIR passes in parentheses becomes one pass for each.

    Raises:
      UsageError: the text is malformed, a pass or option is unknown, or a pass is nested where it cannot run.

    Example:
      >>> [str(p) for p in parse_pipeline("builtin.module(cse,func.func(canonicalize{max-iterations=3}))")]
      ['cse', 'func.func(canonicalize{max-iterations=3})']
    """
    reader = _PipelineReader(text)
    passes = reader.elements(())
    reader.skip_space()
    if reader.at < len(text):
        raise reader.error("expected a comma and another pass, or the end")
    return passes


def format_pipeline(passes: Iterable[Pass]) -> str:
    """The text that makes these passes again; the inverse of ``parse_pipeline``."""
    return ",".join(map(str, passes))


class _PipelineReader:
    """A position in a pipeline text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, what: str) -> UsageError:
        return UsageError(f"pass pipeline: {what} at column {self.at + 1}",
                          excerpt=f"  {self.text}\n  {' ' * self.at}^",
                          hint="write passes as name{option=value}, separated by commas")

    def skip_space(self) -> None:
        # Ends: each round passes a character.
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self, char: str) -> bool:
        self.skip_space()
        return self.text.startswith(char, self.at)

    def elements(self, anchors: Sequence[str]) -> list[Pass]:
        """Passes up to a closing parenthesis or the end."""
        passes: list[Pass] = []
        if self.peek(")") or self.at >= len(self.text):
            return passes
        # Ends: each round passes an element and a comma.
        while True:
            passes += self.element(anchors)
            if not self.peek(","):
                return passes
            self.at += 1

    def element(self, anchors: Sequence[str]) -> list[Pass]:
        self.skip_space()
        match = _NAME.match(self.text, self.at)
        if not match:
            raise self.error("expected a pass name")
        start, name = self.at, match.group(0)
        self.at = match.end()
        if self.peek("("):
            self.check_anchor(name, anchors, start)
            return self.nested(anchors, name)
        if name in PIPELINES and not anchors and not self.peek("{"):
            return parse_pipeline(PIPELINES[name])
        options = self.braces(name) if self.peek("{") else ""
        return [make_pass(name, options, tuple(anchors))]

    def nested(self, anchors: Sequence[str], name: str) -> list[Pass]:
        self.at += 1
        passes = self.elements((*anchors, name))
        if not self.peek(")"):
            raise self.error("expected a closing parenthesis")
        self.at += 1
        return passes

    def check_anchor(self, name: str, anchors: Sequence[str], start: int) -> None:
        after = {(): _ANCHORS, ("builtin.module",): ("func.func",)}.get(tuple(anchors), ())
        if name in after:
            return
        self.at = start
        if name in _ANCHORS:
            raise self.error(f"{name}(...) cannot be nested in {anchors[-1]}(...)")
        hint = did_you_mean(name, _ANCHORS)
        raise UsageError(f'pass pipeline: passes cannot be nested in "{name}"', hint=hint)

    def braces(self, name: str) -> str:
        """The text between balanced braces; quotes may contain anything."""
        start, depth = self.at, 0
        for match in re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|[^{}"]+|"').finditer(self.text, self.at):
            depth += {"{": 1, "}": -1}.get(match.group(0), 0)
            if depth == 0:
                self.at = match.end()
                return self.text[start + 1:self.at - 1]
        raise self.error(f'the options of pass "{name}" lack a closing brace')
