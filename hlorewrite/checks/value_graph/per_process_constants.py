"""Values that are known on every process: those computed from device ids and constants in integer arithmetic.

JAX finds its place in the mesh by a dozen scalar ops on ``partition_id``. Evaluated for every process they become one
node that holds the numbers, so that two ways to compute the same index are the same node.
"""

import re

import numpy as np

from hlorewrite.checks.value_graph.graph import Graph, shape_and_element
from hlorewrite.ops.elements import MOVERS, moved
from hlorewrite.ops.elementwise import INTEGER_OPS, of_integers

KNOWN = frozenset({"table", "splat", "constant"})
"""Kinds of nodes whose numbers may be known."""
_MOST_NUMBERS = 1 << 14
_FEW = 64
_TYPES = {"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui16": "uint16",
          "ui32": "uint32", "ui64": "uint64", "f32": "float32", "f64": "float64"}
_INTS = re.compile(r"-?\d+")
Attributes = tuple[tuple[str, str], ...]


def numbers_in(text: str) -> list[int]:
    """The integers of a printed attribute such as ``array<i64: 1, 2>`` or ``0 : i64``.

    Example:
      >>> numbers_in("array<i64: 1, -2>"), numbers_in("3 : i64"), numbers_in("array<i64>")
      ([1, -2], [3], [])
    """
    body = text.split("array<i64")[1] if text.startswith("array<i64") else text.split(" : ")[0]
    return [int(number) for number in _INTS.findall(body)]


class ProcessConstants:
    """The numbers of nodes that are known on every process.

    Args:
      graph: the graph.
      processes: how many processes there are.
      scalars: only results of one element are computed, so that halves of a tensor are known just where it is.

    Attributes:
      picks: node -> where its elements come from (``index_maps.IndexMaps``).
    """

    def __init__(self, graph: Graph, processes: int, scalars: bool = False) -> None:
        self.graph = graph
        self.processes = processes
        self._most = 1 if scalars else _MOST_NUMBERS
        self._tables: dict[int, np.ndarray] = {}
        self._constants: dict[int, np.ndarray] = {}
        self.picks: dict[int, np.ndarray] = {}

    def of(self, node: int) -> np.ndarray | None:
        """The numbers of a node, [processes, *shape], when they depend on the process; None otherwise."""
        return self._tables.get(node)

    def place(self, numbers: np.ndarray, type_: str) -> int:
        """The node of given numbers, [processes, *shape]."""
        first = numbers[0].ravel()
        if numbers.dtype.kind != "f" and first.size and (numbers == first[0]).all():
            return self.graph.splat(first[0].item(), type_)
        node = self.graph.node(("table", numbers.tobytes()), type_)
        self._tables[node] = numbers
        return node

    def remember(self, node: int, numbers: np.ndarray) -> None:
        """The elements of a constant, [*shape]."""
        if numbers.size <= _MOST_NUMBERS:
            self._constants[node] = numbers

    def numbers(self, node: int) -> np.ndarray | None:
        """The numbers of a table or constant on each process; None for other nodes."""
        if node in self._tables:
            return self._tables[node]
        known = shape_and_element(self.graph.types[node])
        if known is None or known[1] not in _TYPES:
            return None
        shape, element = known
        if node in self._constants:
            held = self._constants[node]
        elif self.graph.labels[node][0] == "splat":
            held = np.array(_number(str(self.graph.labels[node][1]))).astype(_TYPES[element])
            held = np.broadcast_to(held, shape)
        else:
            return None
        return np.broadcast_to(held, (self.processes, *shape))

    def folded(self, name: str, attributes: Attributes, type_: str, args: tuple[int, ...]) -> int | None:
        """The node of an op of known numbers; None when some are not known, or all are large constants."""
        labels = self.graph.labels
        if not args or any(labels[arg][0] not in KNOWN for arg in args):
            return None
        known = shape_and_element(type_)
        if not any(arg in self._tables for arg in args) and (known is None or np.prod(known[0], initial=1) > _FEW
                                                             or known[1] in ("f32", "f64")):
            return None
        count = 0 if known is None else np.prod(known[0], initial=1)
        if known is None or known[1] not in _TYPES or count > self._most or count * self.processes > _MOST_NUMBERS:
            return None
        operands = [self.numbers(arg) for arg in args]
        if any(operand is None for operand in operands):
            return None
        made = _evaluated(name, dict(attributes), [o for o in operands if o is not None], *known)
        return None if made is None else self.place(np.ascontiguousarray(made), type_)


def _number(text: str) -> object:
    return {"True": True, "False": False}.get(text) if text in ("True", "False") else (
        int(text) if text.lstrip("-").isdigit() else float(text))


def _evaluated(name: str, attributes: dict[str, str], operands: list[np.ndarray], shape: tuple[int, ...],
               element: str) -> np.ndarray | None:
    short, dtype = name.removeprefix("stablehlo."), np.dtype(_TYPES[element])
    if short in MOVERS:
        return moved(short, lambda key: numbers_in(attributes[key]), shape, operands, copies=1)
    if short not in INTEGER_OPS or (dtype.kind == "f" and short != "convert"):
        return None
    return of_integers(short, operands, dtype, _direction(attributes) if short == "compare" else "")


def _direction(attributes: dict[str, str]) -> str:
    return attributes["comparison_direction"].split()[-1].rstrip(">")
