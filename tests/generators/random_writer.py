"""What random programs are written with: decisions, values that know where they vary, scopes, text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from generators.random_types import CONSTANTS

WIDTH = 4
SCALAR_INT, SCALAR_BOOL = "tensor<i32>", "tensor<i1>"
INDEX_VECTOR = f"tensor<{WIDTH}xi32>"
NOWHERE: frozenset[str] = frozenset()

Mesh = tuple[tuple[str, int], ...]
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
      >>> element_of("tensor<4x4xui8>"), element_of("tensor<i1>"), element_of("tensor<2xcomplex<f32>>")
      ('ui8', 'i1', 'complex<f32>')
    """
    return re.sub(r"^(\d+x)*", "", kind[len("tensor<"):-1])


def shape_of(kind: str) -> tuple[int, ...]:
    """The shape of a tensor type.

    Example:
      >>> shape_of("tensor<4x2xui8>"), shape_of("tensor<complex<f32>>")
      ((4, 2), ())
    """
    return tuple(int(size) for size in re.findall(r"(\d+)x", kind[:len(kind) - len(element_of(kind)) - 1]))


def with_element(kind: str, element: str) -> str:
    """A tensor type of another element type.

    Example:
      >>> with_element("tensor<4x2xf32>", "i1"), with_element("tensor<f32>", "bf16")
      ('tensor<4x2xi1>', 'tensor<bf16>')
    """
    return kind[:len(kind) - len(element_of(kind)) - 1] + element + ">"


def with_shape(kind: str, *shape: int) -> str:
    """A tensor type of another shape.

    Example:
      >>> with_shape("tensor<4xf32>", 8, 4)
      'tensor<8x4xf32>'
    """
    return "tensor<" + "".join(f"{size}x" for size in shape) + element_of(kind) + ">"


@dataclass(frozen=True)
class Term:
    """An SSA value: its name, its type, and the mesh axes along which devices may hold different ones."""

    name: str
    type: str
    varies: frozenset[str]


@dataclass
class Frame:
    """The values that can be read, and the text written so far.

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


class Naming(Protocol):
    """How a form of programs numbers its devices (``random_forms``)."""

    mesh: Mesh

    def attributes(self, teams: Teams, global_ids: bool) -> list[str]:
        """Ways to write groups as attributes of a collective."""
        ...

    def pairs(self, teams: Teams, closed: bool) -> str | None:
        """Attributes of a permute along each group."""
        ...

    def own_ids(self) -> list[tuple[str, frozenset[str]]]:
        """Ops that return where a process is, and along which axes each differs."""
        ...


class Writer:
    """Writes one program.

    Args:
      choices: where decisions come from.
      form: how devices are numbered and groups written.
      elements: element types of the tensors the program computes with.
      shapes: shapes of these tensors, as in a type; the first is that of a vector of ``WIDTH`` elements.
      scatters: write mostly reduce-scatters, and ops that can be done before them.
      straight: write mostly linear ops, so that reductions travel far.
    """

    def __init__(self, choices: Choices, form: Naming, elements: Sequence[str], shapes: Sequence[str] = (str(WIDTH),),
                 scatters: bool = False, straight: bool = False) -> None:
        self.choices = choices
        self.form = form
        self.mesh = form.mesh
        self.elements = list(elements)
        self.shapes = list(shapes)
        self.scatters = scatters
        self.straight = straight
        self.functions: list[str] = []
        self.everywhere = frozenset(name for name, _ in form.mesh)
        self.groups = _all_groups(form.mesh)
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

    def kind(self, element: str | None = None) -> str:
        """A tensor type of the program; a vector most often."""
        shape = self.shapes[0] if self.chance(5) else self.pick(self.shapes)
        return f"tensor<{shape}x{element or self.element()}>"

    def emit(self, scope: Frame, text: str, kind: str, *operands: Term, varies: frozenset[str] | None = None) -> Term:
        """Writes an op with one result, which varies where its operands do."""
        if varies is None:
            varies = NOWHERE.union(*(operand.varies for operand in operands))
        value = Term(self.name(), kind, varies)
        scope.lines.append(f"{scope.indent}{value.name} = {text}")
        scope.values.append(value)
        return value

    def constant(self, scope: Frame, kind: str, text: str | None = None) -> Term:
        """A constant of a type."""
        chosen = self.pick(CONSTANTS[element_of(kind)]) if text is None else text
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


def _all_groups(mesh: Mesh) -> list[Teams]:
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
