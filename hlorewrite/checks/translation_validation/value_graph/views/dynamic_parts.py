"""Dynamic slices and updates of a rearranged tensor, as those of the tensor itself.

XLA's layout passes transpose what a scan stacks: the loop then updates ``transpose(x)``, and reads its slices from it.
If ``v`` only rearranges the elements of ``x``, and each dimension in which the part is smaller is a whole dimension of
``x``, both clamp their starts alike, and

    slice(v(x), i) = v(slice(x, i')),    update(v(x), u, i) = v(update(x, v^-1(u), i')),

where ``i'`` are the starts in the order of the dimensions of ``x``. A start of a whole dimension is clamped to 0.

Slices move to the leaves of expressions, as views do: ``slice(f(a, b), i) = f(slice(a, i), slice(b, i))`` for ops that
work element by element. They stay outside of reductions over devices, whose members may have other starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hlorewrite.checks.translation_validation.value_graph.graph import Label, shape_and_element, tensor_type
from hlorewrite.checks.translation_validation.value_graph.normalize import array, op_label
from hlorewrite.checks.translation_validation.value_graph.views.moves import FILLED, OF_PLACES, MakeOp, Moves
from hlorewrite.checks.translation_validation.value_graph.views.strided import (
    Digit,
    Strided,
    count_of,
    covers,
    cut_within,
    places,
    strided,
)
from hlorewrite.ops.table import ELEMENTWISE

SLICE, UPDATE = "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"


class DynamicParts:
    """Dynamic slices and updates of both programs.

    Args:
      moves: the views.
      make: makes the node of an op, in its canonical form.
    """

    def __init__(self, moves: Moves, make: MakeOp) -> None:
        self.moves, self.make = moves, make

    def op(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """The node of a slice or update; None if it is in canonical form already, or moves no element."""
        updates = 1 if label[0] == UPDATE else 0
        known = shape_and_element(self.moves.graph.types[args[1]] if updates else type_)
        assert known is not None
        sizes, starts = known[0], args[1 + updates:]
        if 0 in sizes or not starts:
            return None
        if not updates and (found := self._through_places(label, type_, args)) is not None:
            return found
        base, view = self.moves.base(args[0])
        mapped = _mapped(view, self.moves.shape(base), self.moves.shape(args[0]), sizes, repeats=not updates)
        if mapped is None:
            return None
        turned = self._starts(mapped, starts)
        if base == args[0] and turned == starts:
            return None
        part = tensor_type(mapped.sizes, known[1])
        if not updates:
            made = op_label(SLICE, (("slice_sizes", array(mapped.sizes)),))
            return self.moves.viewed(self.make(made, part, (base, *turned)), mapped.back, type_)
        update = self.moves.viewed(args[1], mapped.there, part)
        return self.moves.viewed(self.make(label, self.moves.graph.types[base], (base, update, *turned)), view, type_)

    def _through_places(self, label: Label, type_: str, args: tuple[int, ...]) -> int | None:
        """A slice of an op that works element by element, as the op on slices."""
        operand, *starts = args
        inner, graph = self.moves.graph.labels[operand], self.moves.graph
        if inner[0] in FILLED:
            return graph.node(inner, type_)
        if inner[0] not in OF_PLACES and (inner[0] not in ELEMENTWISE or inner[2]):
            return None
        return self.moves.through_places(operand, type_, lambda arg, kind: self.make(label, kind, (arg, *starts)))

    def _starts(self, mapped: _Mapped, starts: Sequence[int]) -> tuple[int, ...]:
        zero = self.moves.graph.splat(0, self.moves.graph.types[starts[0]])
        return tuple(zero if of is None else starts[of] for of in mapped.starts)


@dataclass(frozen=True)
class _Mapped:
    """A part of a rearranged tensor as one of the tensor itself.

    Attributes:
      sizes: the shape of the part, in the tensor itself.
      starts: for each dimension of the tensor the dimension whose start it takes; None where the part is whole.
      there: the part, read in the order of the tensor itself.
      back: the part of the tensor, read in the rearranged order.
    """

    sizes: tuple[int, ...]
    starts: tuple[int | None, ...]
    there: Strided
    back: Strided


def _mapped(view: Strided, shape: Sequence[int], seen: Sequence[int], sizes: Sequence[int], *, repeats: bool
            ) -> _Mapped | None:
    """The part of sizes ``sizes`` of a view of shape ``seen``; None if the viewed tensor has no such part.

    A dimension along which the view repeats the tensor is left out of the part, if there are to be any.
    """
    again = [bool(dim) and all(stride == 0 for _, stride in dim) for dim in view.dims]
    if repeats and any(again):
        once = [1 if repeated else size for size, repeated in zip(seen, again, strict=True)]
        part = [1 if repeated else size for size, repeated in zip(sizes, again, strict=True)]
        dims = tuple(() if repeated else dim for dim, repeated in zip(view.dims, again, strict=True))
        mapped = _mapped(Strided(view.offset, dims), shape, once, part, repeats=False)
        if mapped is None:
            return None
        read = zip(sizes, again, mapped.back.dims, strict=True)
        return replace(mapped, back=strided(0, [((size, 0),) if repeated else dim for size, repeated, dim in read]))
    if count_of(shape) != count_of(seen) or not covers(view, count_of(shape)):
        return None
    steps = places(shape)
    starts: list[int | None] = [None] * len(shape)
    for dim, (size, whole) in enumerate(zip(sizes, seen, strict=True)):
        if size == whole:
            continue
        of = [d for d, step in enumerate(steps) if view.dims[dim] == ((shape[d], step),)]
        if len(of) != 1:
            return None
        starts[of[0]] = dim
    part = tuple(size if of is None else sizes[of] for size, of in zip(shape, starts, strict=True))
    there: list[list[tuple[int, Digit]]] = [[] for _ in shape]
    back: list[list[Digit]] = []
    for dim, (digits, place) in enumerate(zip(view.dims, places(sizes), strict=True)):
        cut = _cut(digits, shape)
        if cut is None:
            return None
        if dim in starts:
            cut = [(sizes[dim], 1, cut[0][2])]
        back.append([(size, step * places(part)[at]) for size, step, at in cut])
        inside = count_of([size for size, _, _ in cut])
        for size, step, at in cut:
            inside //= size
            there[at].append((step, (size, inside * place)))
    ordered = [[digit for _, digit in sorted(each, reverse=True)] for each in there]
    return _Mapped(part, tuple(starts), strided(0, ordered), strided(0, back))


def _cut(digits: Sequence[Digit], shape: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Digits as parts that each step within one dimension: (size, step, dimension); None if one carries."""
    found: list[tuple[int, int, int]] = []
    for digit in digits:
        parts = cut_within(digit, shape)
        if parts is None:
            return None
        found += parts
    return found
