"""Common parts of all nodes of a syntax tree: a place, equality without it, comments."""

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(cls: _Class) -> _Class:
    """A frozen dataclass that leaves ``==``, ``hash`` and ``repr`` to ``SyntaxNode``: a third of the time to import."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)


@dataclass(frozen=True)
class Span:
    """Where a node is in its file; lines and columns count from 1, the end is exclusive."""

    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0


NOWHERE = Span()


@node
class SyntaxNode:
    """Anything with a place in a file."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f.name) for f in fields(self) if f.compare)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, SyntaxNode):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash((type(self), self._compared()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
        return f"{type(self).__name__}({shown})"


@node
class Commented(SyntaxNode):
    """A node that starts a new line, so comments can belong to it.

    Attributes:
      comments: the comment lines before it; an empty text stands for a blank line.
      trailing: the comment after it on its last line.
    """

    comments: tuple[str, ...] = field(default=(), kw_only=True)
    trailing: str = field(default="", kw_only=True)
