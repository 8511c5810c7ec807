"""Operands of nodes and next elements of streams, in arrays: tuples and dicts of numbers take ten times as much."""

from array import array
from collections.abc import Iterator, MutableMapping

_NONE = -1


class Operands:
    """The operands of each node, by number.

    Example:
      >>> operands = Operands()
      >>> operands.append(())
      >>> operands.append((0, 0))
      >>> operands[1]
      (0, 0)
    """

    def __init__(self) -> None:
        self._flat = array("i")
        self._starts = array("i")
        self._ends = array("i")

    def __getitem__(self, node: int) -> tuple[int, ...]:
        return tuple(self._flat[self._starts[node]:self._ends[node]])

    def append(self, args: tuple[int, ...]) -> None:
        """Adds the operands of the next node."""
        flat = self._flat
        self._starts.append(len(flat))
        for arg in args:
            flat.append(arg)
        self._ends.append(len(flat))

    def replace(self, node: int, args: tuple[int, ...]) -> None:
        """Replaces the operands of a node."""
        self._starts[node] = len(self._flat)
        self._flat.extend(args)
        self._ends[node] = len(self._flat)


class Yields(MutableMapping[int, int]):
    """Streams and their next elements, in the order of the streams.

    Example:
      >>> yields = Yields()
      >>> yields[3] = 7
      >>> yields[3], 2 in yields, dict(yields)
      (7, False, {3: 7})
    """

    def __init__(self) -> None:
        self._next = array("i")
        self._count = 0

    def __getitem__(self, stream: int) -> int:
        found = self._next[stream] if stream < len(self._next) else _NONE
        if found == _NONE:
            raise KeyError(stream)
        return found

    def __contains__(self, stream: object) -> bool:
        return isinstance(stream, int) and stream < len(self._next) and self._next[stream] != _NONE

    def __setitem__(self, stream: int, following: int) -> None:
        if stream >= len(self._next):
            self._next.extend([_NONE] * (stream + 1 - len(self._next)))
        self._count += self._next[stream] == _NONE
        self._next[stream] = following

    def __delitem__(self, stream: int) -> None:
        self._count -= self[stream] != _NONE
        self._next[stream] = _NONE

    def __iter__(self) -> Iterator[int]:
        return (stream for stream, following in enumerate(self._next) if following != _NONE)

    def __len__(self) -> int:
        return self._count
