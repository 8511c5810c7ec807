"""The dataflow graph that both programs are evaluated to: equal expressions are one node.

A node stands for a tensor on every process, and inside loops for a stream of them: one for each iteration of each loop
around it. ``stream`` nodes are what a loop carries; their first element is their operand, and the next one is what the
body yields, filled in when the body has been read.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from hlorewrite.ir.binding import ir

Label = tuple[object, ...]
Shape = tuple[int, ...]
_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)(.+)>")
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
    """Whether an element type is a real or complex floating type."""
    return element.startswith(("f", "bf", "tf", "complex"))


def identity_of(kind: str, element: str) -> object | None:
    """The number a reduction leaves alone, in the element's own range; None where there is none.

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
      origins: the op that was evaluated when the node was made.
      yields: stream -> its next element.
      op: the op under evaluation.
    """

    def __init__(self) -> None:
        self.labels: list[Label] = []
        self.types: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.origins: list[ir.Operation | None] = []
        self.yields: dict[int, int] = {}
        self.op: ir.Operation | None = None
        self._memo: dict[tuple[Label, str, tuple[int, ...]], int] = {}
        self.node(("world",), "")  # before any effect; so 0 is not a tensor

    def node(self, label: Label, type_: str, args: tuple[int, ...] = ()) -> int:
        """The node of an expression; a new one only when there is none yet."""
        key = (label, type_, args)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._new(label, type_, args)
        return found

    def stream(self, depth: int, type_: str, init: int) -> int:
        """A fresh stream of a loop at some depth; its yield follows."""
        return self._new(("stream", depth), type_, (init,))

    def splat(self, number: object, type_: str) -> int:
        """A tensor filled with one number, taken as its element type holds it."""
        known = shape_and_element(type_)
        return self.node(("splat", repr(_held(number, known[1]) if known else number)), type_)

    def identity(self, kind: str, type_: str) -> int | None:
        """A tensor filled with the identity of a reduction; None where the type has none."""
        known = shape_and_element(type_)
        number = identity_of(kind, known[1]) if known else None
        return None if number is None else self.splat(number, type_)

    def is_identity(self, node: int, kind: str) -> bool:
        """Whether a node is filled with the identity of a reduction."""
        return self.labels[node][0] == "splat" and self.identity(kind, self.types[node]) == node

    def replace(self, node: int, label: Label, args: tuple[int, ...]) -> None:
        """Gives a node another form of what it computes; a stream is none any more."""
        self.labels[node], self.args[node] = label, args
        self.yields.pop(node, None)

    def close(self) -> None:
        """No more nodes are made: drops the table of expressions, a third of the graph's memory."""
        self._memo.clear()

    def _new(self, label: Label, type_: str, args: tuple[int, ...]) -> int:
        self.labels.append(label)
        self.types.append(type_)
        self.args.append(args)
        self.origins.append(self.op)
        return len(self.labels) - 1
