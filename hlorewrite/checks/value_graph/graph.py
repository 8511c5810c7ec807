"""The dataflow graph into which both programs are evaluated: equal expressions are one node.

A node represents a tensor on every process, and inside loops for a stream of them: one for each iteration of each loop
around it. ``stream`` nodes are what a loop carries; their first element is their operand, and the next one is what the
body yields, filled in when the body has been read.

A large program has several nodes per op, so each node has to be small: numbers are in arrays, and equal expressions are
found in an open-addressing table of node numbers.
"""

import math
import re
from array import array
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import lru_cache

from hlorewrite.checks.value_graph.groups import Members, OwnPart, Reduction

Label = tuple[object, ...]
Shape = tuple[int, ...]
_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)(.+)>")
_FREE = -1
_HASH_BITS = 2**32 - 1
_LARGEST = {"f8E4M3FN": 448.0, "f8E4M3FNUZ": 240.0, "f8E5M2FNUZ": 57344.0, "f8E4M3B11FNUZ": 30.0}


@lru_cache(maxsize=4096)
def shape_and_element(type_: str) -> tuple[Shape, str] | None:
    """Shape and element type of a static tensor type; None for all else.

    Example:
      >>> shape_and_element("tensor<4x8xbf16>"), shape_and_element("tensor<?xf32>")
      (((4, 8), 'bf16'), None)
    """
    match = _TENSOR.fullmatch(type_)
    if match is None or "?" in match[1] or "," in match[2]:
        return None
    return tuple(int(size) for size in match[1].split("x")[:-1]), match[2]


def tensor_type(shape: Shape, element: str) -> str:
    """The type of a tensor as MLIR writes it."""
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def is_float(element: str) -> bool:
    """Whether an element type is a real or complex floating-point type."""
    return element.startswith(("f", "bf", "tf", "complex"))


def identity_of(kind: str, element: str) -> object | None:
    """The number that a reduction leaves unchanged, in the element's own range; None if there is none.

    Example:
      >>> identity_of("sum", "f64"), identity_of("max", "i8"), identity_of("and", "i1"), identity_of("sum", "f4E2M1FN")
      (0.0, -128, True, None)
    """
    integer = element.lstrip("ui")
    if element == "i1":
        return {"sum": False, "or": False, "max": False, "and": True, "min": True, "product": True}.get(kind)
    if integer.isdigit():
        bits, unsigned = int(integer), element.startswith("ui")
        low, high = (0, 2**bits - 1) if unsigned else (-(2**(bits - 1)), 2**(bits - 1) - 1)
        return {"sum": 0, "or": 0, "product": 1, "and": high if unsigned else -1, "max": low, "min": high}.get(kind)
    if not is_float(element) or element.startswith(("f4E", "f6E", "f8E8M0")):
        return None
    if element.startswith("complex"):
        return {"sum": "complex 0"}.get(kind)
    largest = _LARGEST.get(element, math.inf)
    return {"sum": 0.0, "product": 1.0, "max": -largest, "min": largest}.get(kind)


def _held(number: object, element: str) -> object:
    """A number as an element type holds it: integers wrap around."""
    if not isinstance(number, int | float):
        return number
    if element == "i1":
        return bool(number)
    if is_float(element):
        return float(number)
    digits = element.lstrip("ui")
    if not digits.isdigit():
        return number
    bits, unsigned = int(digits), element.startswith("ui")
    low = int(number) % 2**bits
    return low if unsigned or low < 2 ** (bits - 1) else low - 2**bits


class Graph:
    """Nodes by number: label, type, operands, and the op that made the node first.

    Attributes:
      labels: what a node computes; the first entry names its sort.
      types: the type of each node, as MLIR writes it.
      args: the operands of each node.
      origins: the key of the op that was evaluated when the node was made (``op_key``); 0 for none.
      yields: stream -> its next element.
      op: the key of the op under evaluation.
    """

    def __init__(self) -> None:
        self.labels: list[Label] = []
        self.types: list[str] = []
        self.args = Operands()
        self.origins = array("Q")
        self.yields = Yields()
        self.op = 0
        self._shared: dict[Label, Label] = {}
        self._known = array("i", [_FREE]) * 1024
        self._hashes = array("I")
        self._held = 0
        self._identities: dict[tuple[str, str], int | None] = {}
        self._replaced: dict[tuple[Label, str, tuple[int, ...]], int] = {}
        self.node(("world",), "")  # before any effect; so 0 is not a tensor

    def node(self, label: Label, type_: str, args: tuple[int, ...] = ()) -> int:
        """The node of an expression; a new one only when there is none yet."""
        hashed, known, mask = hash((label, type_, args)) & _HASH_BITS, self._known, len(self._known) - 1
        place = hashed & mask
        # Ends: at least half of the places are free.
        while (found := known[place]) != _FREE:
            if self._hashes[found] == hashed and self.args[found] == args and self.types[found] == type_ and (
                    self.labels[found] == label):
                return found
            place = (place + 1) & mask
        if self._replaced and (found := self._replaced.get((label, type_, args))) is not None:
            return found
        known[place] = made = self._new(label, type_, args, hashed)
        self._held += 1
        if 2 * self._held > mask:
            self._widen()
        return made

    def shared(self, label: Label) -> Label:
        """The one object for equal labels."""
        return self._shared.setdefault(label, label)

    def stream(self, depth: int, type_: str, init: int) -> int:
        """A fresh stream of a loop at some depth; its yield follows."""
        return self._new(("stream", depth), type_, (init,), 0)

    def splat(self, number: object, type_: str) -> int:
        """A tensor filled with one number, taken as its element type holds it."""
        known = shape_and_element(type_)
        return self.node(("splat", repr(_held(number, known[1]) if known else number)), type_)

    def identity(self, kind: str, type_: str) -> int | None:
        """A tensor filled with the identity of a reduction; None if the type has none."""
        key = (kind, type_)
        if key not in self._identities:
            known = shape_and_element(type_)
            number = identity_of(kind, known[1]) if known else None
            self._identities[key] = None if number is None else self.splat(number, type_)
        return self._identities[key]

    def is_identity(self, node: int, kind: str) -> bool:
        """Whether a node is filled with the identity of a reduction."""
        return self.labels[node][0] == "splat" and self.identity(kind, self.types[node]) == node

    def replace(self, node: int, label: Label, args: tuple[int, ...]) -> None:
        """Gives a node another form of what it computes, under which it can also be found. A stream becomes an ordinary
        node."""
        self._replaced[self.labels[node], self.types[node], self.args[node]] = node
        self.labels[node] = label
        self.args.replace(node, args)
        self.yields.pop(node, None)

    def close(self) -> None:
        """Drops the table of expressions, since no more nodes are made."""
        self._known, self._hashes = array("i", [_FREE]), array("I")
        self._shared.clear()
        self._replaced.clear()

    def _new(self, label: Label, type_: str, args: tuple[int, ...], hashed: int) -> int:
        self.labels.append(self._shared.setdefault(label, label) if args else label)
        self.types.append(type_)
        self.args.append(args)
        self.origins.append(self.op)
        self._hashes.append(hashed)
        return len(self.labels) - 1

    def _widen(self) -> None:
        """Doubles the table of expressions and rehashes its entries."""
        nodes, self._known = self._known, array("i", [_FREE]) * (2 * len(self._known))
        known, mask = self._known, len(self._known) - 1
        for node in nodes:
            if node == _FREE:
                continue
            place = self._hashes[node] & mask
            # Ends: at least half of the places are free.
            while known[place] != _FREE:
                place = (place + 1) & mask
            known[place] = node


# ---- values while a program is evaluated: a node, or parts that wait for reductions


Key = tuple[Reduction, ...]
LOCAL: Key = ()


@dataclass(frozen=True, eq=False)
class PendingReduction:
    """A value some of whose parts wait for a reduction.

    Attributes:
      kind: the kind of all its reductions.
      parts: what waits for what; when there is none, the value is the identity, known to be one where parts of this
        kind come and go.
    """

    kind: str
    parts: Mapping[Key, int]

    @property
    def members(self) -> list[Members]:
        """The groups it waits for."""
        return list(dict.fromkeys(reduction.members for key in self.parts for reduction in key))


SymbolicValue = int | PendingReduction


def own_part_of(key: Key) -> OwnPart | None:
    """The value whose part on each process has this key; None for a part that is as large as its value.
    """
    return key[0].own if key else None


def part_type(key: Key, type_: str) -> str:
    """The type of a part of a value: that of the whole sum, if the value is a process's part of a sum."""
    own, known = own_part_of(key), shape_and_element(type_)
    return type_ if own is None or known is None else tensor_type(own.whole, known[1])


def parts_of(graph: Graph, value: SymbolicValue, kind: str) -> Mapping[Key, int]:
    """The parts of a value, seen as a reduction of a kind; identities are absent."""
    if isinstance(value, PendingReduction):
        return value.parts
    return {} if graph.is_identity(value, kind) else {LOCAL: value}


def joined(graph: Graph, kind: str, parts: Mapping[Key, int]) -> SymbolicValue:
    """A value of parts; a plain node if its only part waits for nothing."""
    held = {key: node for key, node in parts.items() if not graph.is_identity(node, kind)}
    return held[LOCAL] if list(held) == [LOCAL] else PendingReduction(kind, held)


def reduced(graph: Graph, value: SymbolicValue, type_: str) -> int:
    """The node of a value with its reductions carried out."""
    if isinstance(value, int):
        return value
    if not value.parts:
        identity = graph.identity(value.kind, type_)
        assert identity is not None, "a part is absent only if there is an identity"
        return identity
    keys = tuple(sorted(value.parts, key=lambda key: tuple(reduction.number for reduction in key)))
    return graph.node(("reduced", value.kind, keys), type_, tuple(value.parts[key] for key in keys))


# ---- operands of nodes and next elements of streams, in arrays: tuples and dicts of numbers take ten times as much


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
