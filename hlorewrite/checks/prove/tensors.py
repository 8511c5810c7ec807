"""Values of rules: tensors on every device, for all ranks, sizes and groups.

A tensor is a function of a device and an index; an index is an array from dimensions to coordinates, so the rank is
unbounded. An element is a node: a cell of an unknown tensor, an op of elements, a choice, or a reduction over the
members of a group, kept as a function of the member.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hlorewrite.checks.prove.solver import solver


@dataclass(frozen=True)
class Cell:
    """One element of an unknown tensor."""

    value: Any


@dataclass(frozen=True)
class Applied:
    """An elementwise op of elements.

    Attributes:
      op: its name.
      arguments: the elements.
      types: the type class of each argument.
      type: the type class of the result.
    """

    op: str
    arguments: tuple[Element, ...]
    types: tuple[str, ...]
    type: str


@dataclass(frozen=True)
class Number:
    """A constant: ``zero``, or a symbol for a number that a rule computes."""

    name: str
    type: str


@dataclass(frozen=True)
class Chosen:
    """One of two elements."""

    condition: Any
    then: Element
    otherwise: Element


@dataclass(frozen=True, eq=False)
class Reduced:
    """A reduction over the members of a device's group.

    Attributes:
      kind: ``sum``, ``max``...; or the name of an unknown reducer.
      groups: the groups.
      device: whose group.
      term: the element that a member contributes.
      type: the type class.
    """

    kind: str
    groups: DeviceGroups
    device: Any
    term: Callable[[Any], Element]
    type: str


Element = Cell | Applied | Number | Chosen | Reduced


@dataclass(frozen=True, eq=False)
class DeviceTensor:
    """A value on every device.

    Attributes:
      type: the type class of its elements.
      sizes: the array of sizes by dimension.
      at: the element on a device at an index.
    """

    type: str
    sizes: Any
    at: Callable[[Any, Any], Element]


def device_sort() -> Any:
    """The sort of devices: any number of them."""
    return solver().DeclareSort("Device")


def index_sort() -> Any:
    """The sort of indices and of sizes: coordinates by dimension."""
    return solver().ArraySort(solver().IntSort(), solver().IntSort())


class DeviceGroups:
    """A partition of the devices into groups of equal size, with ordered members.

    Args:
      name: makes its functions different from those of other groups.

    Attributes:
      n: the members of a group; at least one.
      axioms: ``mem(grp(d), pos(d)) = d``, and the converse.
    """

    def __init__(self, name: str) -> None:
        z3, devices = solver(), device_sort()
        groups, self.name = z3.DeclareSort(f"Group {name}"), name
        self.n = z3.Int(f"n {name}")
        self.grp = z3.Function(f"grp {name}", devices, groups)
        self.pos = z3.Function(f"pos {name}", devices, z3.IntSort())
        self.mem = z3.Function(f"mem {name}", groups, z3.IntSort(), devices)
        d, g, i = z3.Const("d", devices), z3.Const("g", groups), z3.Int("i")
        inside = z3.And(i >= 0, i < self.n)
        placed = z3.And(self.pos(d) >= 0, self.pos(d) < self.n, self.mem(self.grp(d), self.pos(d)) == d)
        member = self.mem(g, i)
        self.axioms = [
            self.n >= 1, z3.ForAll([d], placed, patterns=[self.pos(d)]), z3.ForAll([d], placed, patterns=[self.grp(d)]),
            z3.ForAll([g, i], z3.Implies(inside, z3.And(self.grp(member) == g, self.pos(member) == i)),
                      patterns=[member])]

    def together(self, d: Any, e: Any) -> Any:
        """Whether two devices are in one group."""
        return self.grp(d) == self.grp(e)

    def member(self, d: Any, i: Any) -> Any:
        """The member at a place of a device's group."""
        return self.mem(self.grp(d), i)


class Pairs:
    """Sources and targets of a permute: which devices receive, and from whom."""

    def __init__(self, name: str) -> None:
        z3, devices = solver(), device_sort()
        self.receives = z3.Function(f"receives {name}", devices, z3.BoolSort())
        self.source = z3.Function(f"source {name}", devices, devices)


# ---- collectives, from the index definitions of the specification


def all_reduce(x: DeviceTensor, kind: str, groups: DeviceGroups) -> DeviceTensor:
    """``result(d)[i]`` is the reduction of ``x(e)[i]`` over the members e of d's group."""
    return DeviceTensor(x.type, x.sizes, lambda d, i: Reduced(kind, groups, d, lambda e: x.at(e, i), x.type))


def all_gather(x: DeviceTensor, dimension: Any, groups: DeviceGroups) -> DeviceTensor:
    """The operands of the members, one after the other along a dimension."""
    z3 = solver()
    size = x.sizes[dimension]

    def at(d: Any, i: Any) -> Element:
        return x.at(groups.member(d, i[dimension] / size), z3.Store(i, dimension, i[dimension] % size))
    return DeviceTensor(x.type, z3.Store(x.sizes, dimension, size * groups.n), at)


def reduce_scatter(x: DeviceTensor, kind: str, dimension: Any, groups: DeviceGroups, size: Any) -> DeviceTensor:
    """The reduction whose shard each member keeps at its place; ``size`` is a shard's."""
    z3 = solver()

    def at(d: Any, i: Any) -> Element:
        place = z3.Store(i, dimension, groups.pos(d) * size + i[dimension])
        return Reduced(kind, groups, d, lambda e: x.at(e, place), x.type)
    return DeviceTensor(x.type, z3.Store(x.sizes, dimension, size), at)


def all_to_all(x: DeviceTensor, split: Any, concat: Any, groups: DeviceGroups, size: Any) -> DeviceTensor:
    """Each operand is cut along ``split``; piece k goes to member k, and each member joins what it gets along
    ``concat``."""
    z3 = solver()
    piece = z3.Store(x.sizes, split, size)

    def at(d: Any, i: Any) -> Element:
        inside = z3.Store(i, concat, i[concat] % piece[concat])
        whole = z3.Store(inside, split, groups.pos(d) * size + inside[split])
        return x.at(groups.member(d, i[concat] / piece[concat]), whole)
    return DeviceTensor(x.type, z3.Store(piece, concat, piece[concat] * groups.n), at)


def collective_permute(x: DeviceTensor, pairs: Pairs) -> DeviceTensor:
    """The operand of the source; zeros on a device that receives nothing."""
    return DeviceTensor(x.type, x.sizes, lambda d, i: Chosen(
        pairs.receives(d), x.at(pairs.source(d), i), Number("zero", x.type)))


def collective_broadcast(x: DeviceTensor, groups: DeviceGroups) -> DeviceTensor:
    """The operand of the first member."""
    return DeviceTensor(x.type, x.sizes, lambda d, i: x.at(groups.member(d, solver().IntVal(0)), i))


def dynamic_slice(x: DeviceTensor, start: Callable[[Any, Any], Any], sizes: Any) -> DeviceTensor:
    """A piece of the operand; ``start`` depends on the device and the dimension, and is moved so that the piece
    fits."""
    z3 = solver()

    def at(d: Any, i: Any) -> Element:
        k = z3.Int("dimension")
        return x.at(d, z3.Lambda([k], i[k] + clamped(start(d, k), x.sizes[k] - sizes[k])))
    return DeviceTensor(x.type, sizes, at)


def scatter_add(x: DeviceTensor, updates: str) -> DeviceTensor:
    """The operand, and at each index the sum of the updates that fall there.

    Args:
      x: the operand.
      updates: names indices, updates and attributes; operands of equal sizes get the same sums.
    """
    z3 = solver()
    sums = z3.Function(f"sums of {updates} in {x.sizes}", device_sort(), index_sort(), z3.DeclareSort("Element"))
    return DeviceTensor(x.type, x.sizes, lambda d, i: Applied(
        "stablehlo.add", (x.at(d, i), Cell(sums(d, i))), (x.type, x.type), x.type))


def clamped(start: Any, last: Any) -> Any:
    """A start, not below zero and not above the last one that fits."""
    z3 = solver()
    return z3.If(start < 0, 0, z3.If(start > last, last, start))
