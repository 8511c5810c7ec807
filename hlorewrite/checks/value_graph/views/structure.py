"""An order of nodes and of dimensions that both programs agree on, though their streams are different nodes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from zlib import crc32

from hlorewrite.checks.value_graph.graph import Graph, Label
from hlorewrite.checks.value_graph.views.moves import Moves, by_places
from hlorewrite.checks.value_graph.views.strided import Digit, Digits, count_of, places
from hlorewrite.ops.table import COMMUTATIVE

_WRITTEN = frozenset({"source", "splat", "number", "view", "sum", "product", "constant", "gathered rows"})
"""Kinds of nodes whose labels print alike in both programs."""
_MOST_LEAVES = 64


class StructuralHashes:
    """A number for each node: equal for equal expressions of both programs, and seldom equal for others.

    Nothing is proved by it: it only chooses between orders that are all right.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._known = array("L")
        self._labels: dict[Label, int] = {}

    def of(self, node: int) -> int:
        """The number of a node."""
        for each in range(len(self._known), node + 1):
            self._known.append(self._signature(each))
        return self._known[node]

    def _signature(self, node: int) -> int:
        label = self.graph.labels[node]
        found = self._labels.get(label)
        if found is None:
            sort = str(label[0])
            text = repr(label[:2]) if sort in _WRITTEN or sort.startswith(("stablehlo.", "chlo.")) else sort
            found = self._labels[label] = crc32(text.encode())
        below = [self._known[arg] if arg < node else 0 for arg in self.graph.args[node]]
        if label[0] in COMMUTATIVE or label[0] in ("sum", "product"):
            below.sort()
        return crc32(array("L", [found, crc32(self.graph.types[node].encode()), *below]).tobytes())


class Layouts:
    """How the dimensions of expressions map to those of their operands.

    Args:
      moves: the views.
      signatures: the order of nodes.
    """

    def __init__(self, moves: Moves, signatures: StructuralHashes) -> None:
        self.moves, self.signatures = moves, signatures
        self._leaves: dict[int, tuple[int, ...]] = {}

    def leaves(self, node: int) -> tuple[int, ...]:
        """A few of the nodes of the same shape that an expression reads element by element, in their order."""
        stack = [node]
        # Ends: a node is put on the stack again only until its operands are known.
        while stack:
            each = stack[-1]
            args = self._args(each)
            missing = [arg for arg in args if arg not in self._leaves]
            if each in self._leaves or not missing:
                stack.pop()
                self._leaves.setdefault(each, self._joined(each, args))
            else:
                stack += missing
        return self._leaves[node]

    def _joined(self, node: int, args: Sequence[int]) -> tuple[int, ...]:
        if not by_places(self.moves.graph.labels[node]):
            return () if self.moves.graph.labels[node][0] in ("splat", "number") else (node,)
        found = dict.fromkeys(leaf for arg in args for leaf in self._leaves[arg])
        return tuple(sorted(found, key=self._sort)[:_MOST_LEAVES])

    def _sort(self, leaf: int) -> int:
        """What a leaf is a view of: the view itself depends on the order that is sought."""
        return self.signatures.of(self.moves.base(leaf)[0])

    def _args(self, node: int) -> list[int]:
        if not by_places(self.moves.graph.labels[node]):
            return []
        shape = self.moves.shape(node)
        return [arg for arg in self.moves.graph.args[node] if self.moves.shape(arg) == shape]

    def digits(self, node: int, dim: int) -> list[list[Digits]]:
        """The digits of a dimension in each leaf, those of leaves that are views of one value together."""
        return [[self.moves.base(leaf)[1].dims[dim] for leaf in group]
                for _, group in groupby(self.leaves(node), self._sort)]

    def order(self, node: int, dims: Sequence[int]) -> list[DimPart]:
        """The parts of some dimensions, in an order that does not depend on how they are laid out.

        Dimensions are cut where some leaf has another digit, and what lies side by side in every leaf is joined. Parts
        come first whose neighbours lie farthest apart in the first leaf, then in the next.
        """
        shape = self.moves.shape(node)
        every = [part for dim in dims for part in self._cut(node, dim, shape[dim])]
        return [part for run in sorted(_runs(every), key=lambda run: run[-1].key) for part in run]

    def _cut(self, node: int, dim: int, size: int) -> list[DimPart]:
        groups = self.digits(node, dim)
        cuts = {1, size}
        for digits in (each for group in groups for each in group):
            place = 1
            for count, _ in reversed(digits):
                place *= count
                cuts.add(place)
        ends = sorted(cuts)
        if any(b % a for a, b in pairwise(ends)):
            ends = [1, size]
        return [DimPart(dim, b // a, a, tuple(tuple(_stride_at(digits, a) for digits in group) for group in groups))
                for a, b in reversed(list(pairwise(ends)))]


@dataclass(frozen=True)
class DimPart:
    """A part of a dimension.

    Attributes:
      dim: which dimension.
      size: how many steps it takes.
      place: how far one goes along the dimension.
      strides: how far one goes in each leaf, those of leaves that are views of one value together.
    """

    dim: int
    size: int
    place: int
    strides: tuple[tuple[int, ...], ...]

    @property
    def key(self) -> list[list[int]]:
        """The key by which parts are ordered."""
        return [sorted(-abs(stride) for stride in group) for group in self.strides]

    def above(self, other: DimPart) -> bool:
        """Whether a step of this part is one beyond the last of another one, in every leaf."""
        return all(a == b * other.size for mine, its in zip(self.strides, other.strides, strict=True)
                   for a, b in zip(mine, its, strict=True))


def flattened(parts: Sequence[DimPart], shape: Sequence[int]) -> list[Digit]:
    """The digits that read all parts of a tensor as one dimension, in their order."""
    steps = places(shape)
    return [(part.size, part.place * steps[part.dim]) for part in parts]


def restored(parts: Sequence[DimPart], rank: int) -> list[list[Digit]]:
    """The digits of each dimension in the tensor that ``flattened`` reads; none for a dimension that has no part."""
    digits: list[list[tuple[int, int, int]]] = [[] for _ in range(rank)]
    for part, place in zip(parts, places([part.size for part in parts]), strict=True):
        digits[part.dim].append((part.place, part.size, place))
    return [[(size, place) for _, size, place in sorted(dim, reverse=True)] for dim in digits]


def _runs(parts: Sequence[DimPart]) -> list[list[DimPart]]:
    """Joins parts that are adjacent in every leaf; the one that changes slowest comes first."""
    runs = [[part] for part in parts]
    again = True
    # Ends: each round but the last joins two runs.
    while again:
        again = False
        for one in runs:
            other = next((run for run in runs if run is not one and one[-1].above(run[0])), None)
            if other is not None:
                one += other
                runs.remove(other)
                again = True
                break
    return runs


def _stride_at(digits: Digits, place: int) -> int:
    """How far a step of ``place`` within a dimension goes in a leaf."""
    begin = count_of([size for size, _ in digits])
    for size, stride in digits:
        begin //= size
        if place >= begin:
            return place // begin * stride
    return 0
