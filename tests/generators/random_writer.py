"""What random programs are written with: decisions, values that know where they vary, scopes, text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

WIDTH = 4
SCALAR_INT, SCALAR_BOOL = "tensor<i32>", "tensor<i1>"
INDEX_VECTOR = f"tensor<{WIDTH}xi32>"
NOWHERE: frozenset[str] = frozenset()

_CONSTANTS = {
    "f32": ["0.0", "0.0", "1.0", "0.5", "-2.0", "0.25"], "bf16": ["0.0", "0.0", "1.0", "0.5", "-2.0"],
    "i32": ["0", "0", "1", "2", "3", "-1"], "ui8": ["0", "0", "1", "2", "3", "255"], "i1": ["true", "false"],
}
T = TypeVar("T")


class Choices(Protocol):
    """Where decisions come from: ``random.Random`` or a hypothesis draw."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 to ``stop - 1``."""
        ...


def vector(element: str) -> str:
    """The type of most values of a program."""
    return f"tensor<{WIDTH}x{element}>"


def scalar(element: str) -> str:
    """The type of one element."""
    return f"tensor<{element}>"


def element_of(kind: str) -> str:
    """The element type of a tensor type.

    Example:
      >>> element_of("tensor<4x4xui8>"), element_of("tensor<i1>")
      ('ui8', 'i1')
    """
    return kind[len("tensor<"):-1].rpartition("x")[2]


@dataclass(frozen=True)
class Term:
    """An SSA value: its name, its type, and the mesh axes along which devices may hold different ones."""

    name: str
    type: str
    varies: frozenset[str]


@dataclass
class Frame:
    """The values one can read, and the text written so far.

    Attributes:
      values: what is defined, oldest first.
      varies: mesh axes along which devices may not get here equally often; a collective along them would hang.
      lines: the text.
      indent: what lines start with.
    """

    values: list[Term]
    varies: frozenset[str] = NOWHERE
    lines: list[str] = field(default_factory=list)
    indent: str = "      "

    def inner(self, values: Sequence[Term] = (), varies: frozenset[str] = NOWHERE) -> Frame:
        """The scope of a region within this one."""
        return Frame([*self.values, *values], self.varies | varies, indent=self.indent + "  ")


@dataclass(frozen=True)
class Teams:
    """Replica groups along some mesh axes."""

    axes: frozenset[str]
    rows: tuple[tuple[int, ...], ...]

    @property
    def text(self) -> str:
        """As a ``replica_groups`` attribute."""
        return (f"dense<{[list(row) for row in self.rows]}> : "
                f"tensor<{len(self.rows)}x{len(self.rows[0])}xi64>")


class Writer:
    """Writes one program.

    Args:
      choices: where decisions come from.
      mesh: names and sizes of the mesh axes.
      elements: element types of the vectors the program computes with.
      scatters: write mostly reduce-scatters, and ops that can be done before them.
      straight: write mostly linear ops, so that reductions travel far.
    """

    def __init__(self, choices: Choices, mesh: tuple[tuple[str, int], ...], elements: Sequence[str],
                 scatters: bool = False, straight: bool = False) -> None:
        self.choices = choices
        self.mesh = mesh
        self.elements = list(elements)
        self.scatters = scatters
        self.straight = straight
        self.functions: list[str] = []
        self.everywhere = frozenset(name for name, _ in mesh)
        self.groups = _all_groups(mesh)
        self._count = 0

    def pick(self, options: Sequence[T]) -> T:
        """One of some options."""
        return options[self.choices.randrange(len(options))]

    def chance(self, in_ten: int) -> bool:
        """True that many times in ten."""
        return self.choices.randrange(10) < in_ten

    def name(self) -> str:
        """A fresh SSA name."""
        self._count += 1
        return f"%v{self._count}"

    def element(self) -> str:
        """An element type; the first of the program's most often."""
        return self.elements[0] if self.chance(6) else self.pick(self.elements)

    def emit(self, scope: Frame, text: str, kind: str, *operands: Term, varies: frozenset[str] | None = None) -> Term:
        """Writes an op of one result, which varies where its operands do."""
        if varies is None:
            varies = NOWHERE.union(*(operand.varies for operand in operands))
        value = Term(self.name(), kind, varies)
        scope.lines.append(f"{scope.indent}{value.name} = {text}")
        scope.values.append(value)
        return value

    def constant(self, scope: Frame, kind: str, text: str | None = None) -> Term:
        """A constant of a type."""
        chosen = self.pick(_CONSTANTS[element_of(kind)]) if text is None else text
        return self.emit(scope, f"stablehlo.constant dense<{chosen}> : {kind}", kind)

    def read(self, scope: Frame, kind: str, within: frozenset[str] | None = None) -> Term:
        """Some value of a type, recent ones more often; a constant when there is none.

        Args:
          scope: where.
          kind: the type.
          within: axes along which the value may vary; None for any.
        """
        candidates = [v for v in scope.values if v.type == kind and (within is None or v.varies <= within)]
        if not candidates:
            return self.constant(scope, kind)
        return self.pick(candidates[-4:] if self.chance(7) else candidates)

    def axes(self) -> frozenset[str]:
        """Some set of mesh axes, often none."""
        return NOWHERE if self.chance(5) else self.pick([groups.axes for groups in self.groups])


def _all_groups(mesh: tuple[tuple[str, int], ...]) -> list[Teams]:
    """Groups along all axes, and along each of two."""
    names, sizes = [name for name, _ in mesh], [size for _, size in mesh]
    total = 1
    for size in sizes:
        total *= size
    candidates = [Teams(frozenset(names), (tuple(range(total)),))]
    if len(sizes) == 2:
        rows, columns = sizes
        candidates.append(Teams(frozenset(names[1:]), tuple(tuple(r * columns + c for c in range(columns))
                                                             for r in range(rows))))
        candidates.append(Teams(frozenset(names[:1]), tuple(tuple(r * columns + c for r in range(rows))
                                                             for c in range(columns))))
    return candidates
