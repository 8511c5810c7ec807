"""The names of a rule and the kind of each."""

from dataclasses import dataclass, field

from hlorewrite.errors import did_you_mean
from hlorewrite.rules.syntax import ast

# Types of natives' parameters and answers; other capitalised names are opaque and match themselves only.
TYPES = ("Any", "Attr", "Bool", "Float", "Int", "Ints", "Kind", "Op", "String", "Type", "Value", "Values")
_SIGILS = {"%": "value", "$": "attribute", "@": "position", "": "name"}
# Implicit conversions: from an op to its only result, from an integer to a number.
_ACCEPTED = {("Op", "Value"), ("Int", "Float"), ("Kind", "String"), ("String", "Kind"), ("Ints", "Attr")}


def accepts(wanted: str, given: str) -> bool:
    """Whether a value of one type may be passed where another type is expected."""
    return wanted == given or "Any" in (wanted, given) or (given, wanted) in _ACCEPTED


@dataclass
class Scope:
    """Names with their sigils (``%x``, ``$g``, ``@i``, ``n``) and their types.

    Attributes:
      types: the type of each name.
      op_names: for names of ops, the op names they may have.
      used: the names that were read.
    """

    types: dict[str, str] = field(default_factory=dict)
    op_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def bind(self, name: str, kind: str) -> str | None:
        """Gives a name a type; returns a sentence when it already has another."""
        if name == "%_":
            return None
        old = self.types.setdefault(name, kind)
        if old != kind and {old, kind} != {"Op", "Value"}:
            return f"`{name}` is a {old} and is used as a {kind}"
        return None

    def missing(self, name: str) -> tuple[str, str] | None:
        """A sentence and a hint when a name is not bound."""
        if name == "%_":
            return "`%_` matches anything and cannot be read", "give the value a name"
        self.used.add(name)
        if name in self.types:
            return None
        sigil = name[0] if name[0] in "%$@" else ""
        same = [n for n in self.types if (n[0] if n[0] in "%$@" else "") == sigil]
        return f"the {_SIGILS[sigil]} `{name}` is not bound", did_you_mean(name, same)


@dataclass(frozen=True)
class Problem:
    """Something wrong in a rule file."""

    what: str
    hint: str
    span: ast.Span
