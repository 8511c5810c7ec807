"""Values that are known on every process: what is computed from device ids and constants by whole numbers.

JAX finds its place in the mesh by a dozen scalar ops on ``partition_id``. Evaluated for every process they become one
node that holds the numbers, so that two ways to compute the same index are the same node.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from hlorewrite.ir.element_moves import broadcast_in_dim
from hlorewrite.validate.nodes.graph import Graph, shape_and_element

KNOWN = frozenset({"table", "splat", "constant"})
"""Sorts of nodes whose numbers may be known."""
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


class Tables:
    """The numbers of nodes that are known on every process.

    Args:
      graph: the graph.
      processes: how many processes there are.

    Attributes:
      picks: node -> where its elements come from (``picks.Picks``).
    """

    def __init__(self, graph: Graph, processes: int) -> None:
        self.graph = graph
        self.processes = processes
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
        if known is None or known[1] not in _TYPES or np.prod(known[0], initial=1) * self.processes > _MOST_NUMBERS:
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
    floats = any(operand.dtype.kind == "f" for operand in operands)
    if short == "convert":
        if floats:
            return None
        return operands[0] != 0 if dtype.kind == "b" else operands[0].astype(dtype)
    if short in ("reshape", "broadcast_in_dim", "slice", "select", "concatenate", "dynamic_slice", "transpose"):
        return _moved(short, attributes, operands, shape)
    if floats or dtype.kind == "f":
        return None
    if short == "compare":
        return _compared(attributes, *operands)
    if dtype.kind == "b" and short in ("add", "subtract", "multiply", "negate"):
        return None
    if short == "clamp":  # bounds may be scalars
        operands = [o.reshape(o.shape + (1,) * (operands[1].ndim - o.ndim)) for o in operands]
    with np.errstate(all="ignore"):
        if short in ("divide", "remainder"):
            return _divided(short, *operands)
        function = _ELEMENTWISE.get(short)
        return None if function is None else np.asarray(function(*operands)).astype(dtype)


_ELEMENTWISE: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "negate": np.negative, "maximum": np.maximum,
    "minimum": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high)}


def _compared(attributes: dict[str, str], left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    match = re.search(r"\b(EQ|NE|LT|LE|GT|GE)\b", attributes.get("comparison_direction", ""))
    functions = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
                 "GE": np.greater_equal}
    return functions[match[1]](left, right) if match else None


def _divided(short: str, left: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """Integer division rounds towards zero; nothing is said of division by zero, nor of the least number by -1."""
    if left.dtype.kind == "b" or (right == 0).any() or (left.dtype.kind == "i" and (right == -1).any()):
        return None
    quotient = left // right
    quotient = quotient + ((left - quotient * right != 0) & ((left < 0) != (right < 0)))
    return (quotient if short == "divide" else left - right * quotient).astype(left.dtype)


def _moved(short: str, attributes: dict[str, str], operands: list[np.ndarray], shape: tuple[int, ...]
           ) -> np.ndarray | None:
    value, processes = operands[0], operands[0].shape[0]
    if short == "reshape":
        return value.reshape((processes, *shape))
    if short == "transpose":
        return value.transpose([0, *(1 + d for d in numbers_in(attributes["permutation"]))])
    if short == "broadcast_in_dim":
        dimensions = [0, *(1 + d for d in numbers_in(attributes["broadcast_dimensions"]))]
        return broadcast_in_dim(value, dimensions, (processes, *shape))
    if short == "slice":
        bounds = [numbers_in(attributes[key]) for key in ("start_indices", "limit_indices", "strides")]
        return value[(slice(None), *(slice(*each) for each in zip(*bounds, strict=True)))]
    if short == "concatenate":
        return np.concatenate(operands, axis=1 + numbers_in(attributes["dimension"])[0])
    if short == "select":
        predicate = value.reshape(value.shape + (1,) * (operands[1].ndim - value.ndim))
        return np.where(predicate, operands[1], operands[2])
    full = value.shape[1:]
    rows = []
    for process in range(processes):
        starts = [int(np.clip(int(s[process]), 0, n - k)) for s, n, k in zip(operands[1:], full, shape, strict=True)]
        rows.append(value[process][tuple(slice(s, s + k) for s, k in zip(starts, shape, strict=True))])
    return np.stack(rows)
