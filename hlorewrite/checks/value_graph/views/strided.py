"""Affine views: where the elements of a tensor lie in another one, as an offset and digits (size, stride).

A reshape, transpose, broadcast, slice or reverse reads element ``offset + sum(digit * stride)`` of its operand, counted
in row-major order. Each dimension has digits, the one that changes slowest first; digits of size 1 are left out, and
neighbours that step evenly are one digit. All of this holds for every element type.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

Digit = tuple[int, int]
Digits = tuple[Digit, ...]


@dataclass(frozen=True)
class Strided:
    """An affine view.

    Attributes:
      offset: the element that the first one is read from.
      dims: for each dimension its digits, (size, stride).
    """

    offset: int
    dims: tuple[Digits, ...]

    @property
    def flat(self) -> Digits:
        """The digits of all dimensions as one, merged."""
        return merged(digit for dim in self.dims for digit in dim)


def merged(digits: Iterable[Digit]) -> Digits:
    """The fewest digits that step alike.

    Example:
      >>> merged([(2, 12), (1, 5), (3, 4), (4, 1)])
      ((24, 1),)
    """
    found: list[Digit] = []
    for size, stride in digits:
        if size == 1:
            continue
        if found and found[-1][1] == size * stride:
            found[-1] = (found[-1][0] * size, stride)
        else:
            found.append((size, stride))
    return tuple(found)


def strided(offset: int, dims: Iterable[Iterable[Digit]]) -> Strided:
    """A view of digits, merged within each dimension."""
    return Strided(offset, tuple(merged(dim) for dim in dims))


def places(shape: Sequence[int]) -> list[int]:
    """How far apart neighbours along each dimension lie in row-major order.

    Example:
      >>> places((2, 3, 4))
      [12, 4, 1]
    """
    found, place = [], 1
    for size in reversed(shape):
        found.append(place)
        place *= size
    return found[::-1]


def whole(shape: Sequence[int]) -> Strided:
    """The view that leaves everything in place."""
    return strided(0, [[(size, place)] for size, place in zip(shape, places(shape), strict=True)])


def is_whole(view: Strided, count: int) -> bool:
    """Whether a view reads all ``count`` elements in their order."""
    return view.offset == 0 and view.flat in (((count, 1),), ())


def covers(view: Strided, count: int) -> bool:
    """Whether a view reads all ``count`` elements, in any order and any number of times.

    Example:
      >>> covers(strided(0, [[(4, 1)], [(5, 0)], [(6, 4)]]), 24), covers(strided(0, [[(4, 2)]]), 8)
      (True, False)
    """
    place = 1
    for stride, size in sorted((stride, size) for dim in view.dims for size, stride in dim if stride):
        if stride != place:
            return False
        place *= size
    return view.offset == 0 and place == count


def regrouped(view: Strided, shape: Sequence[int]) -> Strided | None:
    """The same elements in another shape; None if a digit would be cut unevenly.

    Example:
      >>> regrouped(strided(0, [[(4, 1)], [(6, 4)]]), (2, 2, 6))
      Strided(offset=0, dims=(((2, 2),), ((2, 1),), ((6, 4),)))
      >>> regrouped(strided(0, [[(4, 1)], [(6, 4)]]), (3, 8)) is None
      True
    """
    left = list(view.flat)
    dims: list[list[Digit]] = []
    for size in reversed(shape):
        mine: list[Digit] = []
        # Ends: each round takes a digit, or what is left to take becomes 1.
        while size > 1:
            if not left:
                return None
            held, stride = left.pop()
            if size % held and held % size:
                return None
            taken = min(size, held)
            mine.append((taken, stride))
            if held > taken:
                left.append((held // taken, stride * taken))
            size //= taken
        dims.append(mine[::-1])
    return None if left else strided(view.offset, dims[::-1])


def composed(outer: Strided, inner: Strided) -> Strided | None:
    """A view of what another view reads, as one view of its operand; None if digits carry.

    Args:
      outer: over the elements of the inner view, in row-major order.
      inner: the view that is read.

    The element ``i`` that the outer view reads has digits in the inner view's mixed radix. Each outer digit is cut so
    that every part steps within one inner digit. If the offset and all parts together stay within each inner digit,
    nothing carries from one into the next, and the sum of the parts is the position in the operand.

    Example:
      >>> transposed = strided(0, [[(3, 1)], [(2, 3)]])
      >>> composed(strided(1, [[(2, 2)]]), transposed)
      Strided(offset=3, dims=(((2, 1),),))
    """
    radix = _radix([digit for dim in inner.dims for digit in dim])
    steps = _steps(outer, radix)
    if steps is None:
        return None
    strides = [stride for _, _, stride in radix]
    offset = inner.offset + sum(digit * stride for digit, stride in zip(steps.first, strides, strict=True))
    return strided(offset, [[(size, step * strides[at] if at >= 0 else 0) for size, step, at in dim]
                            for dim in steps.dims])


def within(view: Strided, shape: tuple[int, int, int], begin: int, end: int) -> Strided | None:
    """A view of a tensor of three dimensions as one of its part from ``begin`` to ``end`` of the second dimension.

    Returns:
      The view of the part; None if it reads others too.

    Example:
      >>> within(strided(4, [[(2, 6)], [(2, 1)]]), (2, 3, 2), 2, 3)
      Strided(offset=0, dims=(((2, 2),), ((2, 1),)))
    """
    outer, size, inner = shape
    radix = [(1, inner, 1), (inner, size, inner), (inner * size, outer, inner * size)]
    steps = _steps(view, radix)
    if steps is None or steps.low[1] < begin or steps.high[1] >= end:
        return None
    strides = (1, inner, inner * (end - begin))
    first = (steps.first[0], steps.first[1] - begin, steps.first[2])
    return strided(sum(digit * stride for digit, stride in zip(first, strides, strict=True)),
                   [[(count, step * strides[at] if at >= 0 else 0) for count, step, at in dim] for dim in steps.dims])


@dataclass(frozen=True)
class _Steps:
    """A view in a mixed radix, lowest digit first: its first element, what it reaches, and each part of its digits as
    (size, step, the digit of the radix it steps in, -1 for none)."""

    first: list[int]
    low: list[int]
    high: list[int]
    dims: list[list[tuple[int, int, int]]]


def _radix(digits: Sequence[Digit]) -> list[tuple[int, int, int]]:
    """For each digit, the lowest first: its place, its size and its stride."""
    found, place = [], 1
    for size, stride in reversed(digits):
        found.append((place, size, stride))
        place *= size
    return found


def _steps(view: Strided, radix: Sequence[tuple[int, int, int]]) -> _Steps | None:
    """A view in a mixed radix; None if a digit of it carries."""
    if not 0 <= view.offset < prod(size for _, size, _ in radix):
        return None
    first = [view.offset // place % size for place, size, _ in radix]
    low, high = list(first), list(first)
    dims: list[list[tuple[int, int, int]]] = []
    for dim in view.dims:
        row: list[tuple[int, int, int]] = []
        for digit in dim:
            parts = _cut(digit, radix)
            if parts is None:
                return None
            for size, step, at in parts:
                reach = step * (size - 1) if at >= 0 else 0
                if reach:
                    low[at], high[at] = low[at] + min(reach, 0), high[at] + max(reach, 0)
            row += parts
        dims.append(row)
    if any(a < 0 or b >= size for a, b, (_, size, _) in zip(low, high, radix, strict=True)):
        return None
    return _Steps(first, low, high, dims)


def _cut(digit: Digit, radix: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]] | None:
    """Parts of an outer digit, slowest first: (size, step, inner digit it steps in), -1 for none."""
    count, stride = digit
    if stride == 0:
        return [(count, 0, -1)]
    sign, stride = (1, stride) if stride > 0 else (-1, -stride)
    parts: list[tuple[int, int, int]] = []
    for at, (place, size, _) in enumerate(radix):
        if stride >= place * size:
            continue
        if stride % place:
            return None
        step = stride // place
        if step * (count - 1) < size:
            return [(count, sign * step, at), *parts]
        if size % step or count % (size // step):
            return None
        parts.insert(0, (size // step, sign * step, at))
        count, stride = count // (size // step), place * size
        if count == 1:
            return parts
    return None


def cut_within(digit: Digit, shape: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """A digit of a view as parts that each step within one dimension of the tensor that is viewed.

    Returns:
      Of each part, slowest first: its size, its step along a dimension, and which one; None if it carries.

    Example:
      >>> cut_within((6, 4), (3, 2, 4)), cut_within((3, 2), (3, 4))
      ([(3, 1, 0), (2, 1, 1)], None)
    """
    parts = _cut(digit, [(place, size, place) for place, size in zip(places(shape)[::-1], shape[::-1], strict=True)])
    return None if parts is None else [(size, step, len(shape) - 1 - at) for size, step, at in parts]


def of_kept(view: Strided, within: int) -> Strided:
    """A view of rows as a view of all elements: each row contains ``within`` of them, and all are read, in one more
    dimension."""
    return strided(view.offset * within, [*([(n, s * within) for n, s in dim] for dim in view.dims), [(within, 1)]])


def count_of(shape: Sequence[int]) -> int:
    """How many elements a shape has."""
    return prod(shape)
