"""Sets of numbers that share what is equal: many sets, each made from others by union, in little memory.

In a chain of n collectives each waits for all before it, which as bit sets takes n² bits. Here a set is a binary tree
whose leaves are bit sets of 2048 numbers. A union keeps the subtrees of its operands where it can. A set with one
number more than another takes one path of the tree, so the sets of a chain take n log n. It is a persistent trie
(Okasaki and Gill, "Fast mergeable integer maps", ML workshop 1998).
"""

from collections.abc import Iterable
from typing import TypeAlias

NumberSet: TypeAlias = "int | tuple[NumberSet, NumberSet]"
"""A set: 0 has no number, -1 all of its range; any other int is the bit set of a leaf, and a pair the lower and upper
half of a range."""

NONE: NumberSet = 0
_LEAF = 2048
_FULL = (1 << _LEAF) - 1


class NumberRange:
    """Makes sets of the numbers from 0 to ``count`` - 1; only sets of one range can be compared.

    Args:
      count: how many numbers there are.

    Example:
      >>> numbers = NumberRange(9000)
      >>> low, high = numbers.of(range(5000)), numbers.of([3, 7000])
      >>> meet(low, high), meet(numbers.of([8999]), high), within(numbers.of([3]), low)
      (True, False, True)
    """

    def __init__(self, count: int) -> None:
        self._height = max(0, (max(count, 1) - 1) // _LEAF).bit_length()

    def of(self, numbers: Iterable[int]) -> NumberSet:
        """The set of some numbers."""
        made = NONE
        for number in numbers:
            made = union(made, self.single(number))
        return made

    def single(self, number: int) -> NumberSet:
        """The set of one number."""
        leaf, bit = divmod(number, _LEAF)
        made: NumberSet = 1 << bit
        for level in range(self._height):
            made = (NONE, made) if leaf >> level & 1 else (made, NONE)
        return made


def union(one: NumberSet, other: NumberSet) -> NumberSet:
    """The numbers of two sets."""
    if one is other or other == 0 or one == -1:
        return one
    if one == 0 or other == -1:
        return other
    if isinstance(one, int) or isinstance(other, int):
        bits = int(one) | int(other)  # type: ignore[arg-type]  # both are leaves
        return -1 if bits == _FULL else one if bits == one else bits
    low, high = union(one[0], other[0]), union(one[1], other[1])
    if low is one[0] and high is one[1]:
        return one
    if low is other[0] and high is other[1]:
        return other
    return -1 if low == -1 == high else (low, high)


def meet(one: NumberSet, other: NumberSet) -> bool:
    """Whether two sets have a number in common."""
    if one == 0 or other == 0:
        return False
    if one is other or one == -1 or other == -1:
        return True
    if isinstance(one, int) or isinstance(other, int):
        return bool(int(one) & int(other))  # type: ignore[arg-type]  # both are leaves
    return meet(one[0], other[0]) or meet(one[1], other[1])


def within(one: NumberSet, other: NumberSet) -> bool:
    """Whether every number of a set is in another.

    A leaf that is full is written -1, as ``union`` and ``NumberRange`` do.
    """
    if one is other or one == 0 or other == -1:
        return True
    if other == 0 or one == -1:
        return False
    if isinstance(one, int) or isinstance(other, int):
        return not int(one) & ~int(other)  # type: ignore[arg-type]  # both are leaves
    return within(one[0], other[0]) and within(one[1], other[1])


def without(one: NumberSet, other: NumberSet) -> NumberSet:
    """The numbers of a set that are not in another."""
    if one == 0 or other == 0:
        return one
    if other == -1 or one is other:
        return NONE
    if isinstance(other, int):
        bits = (_FULL if one == -1 else int(one)) & ~other  # type: ignore[arg-type]  # both are leaves
        return one if bits == one else bits
    here = (-1, -1) if isinstance(one, int) else one
    low, high = without(here[0], other[0]), without(here[1], other[1])
    return NONE if low == 0 == high else (low, high)
