"""Evaluates the nodes of a value graph with numpy, from the inputs of a program.

This is the meaning of the graph, written apart from the validator: an equation that gives an op another value shows
here, whichever pair of programs it would prove.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from hlorewrite.checks.translation_validation.program.evaluate import evaluate
from hlorewrite.checks.translation_validation.program.state import ProgramState, Strategy, share_forms
from hlorewrite.checks.translation_validation.validate import VIEW_STRATEGIES
from hlorewrite.checks.value_graph.graph import Graph, shape_and_element
from hlorewrite.checks.value_graph.groups import ProcessSpace
from hlorewrite.checks.value_graph.index_maps import IndexMaps
from hlorewrite.checks.value_graph.per_process_constants import ProcessConstants, numbers_in
from hlorewrite.checks.value_graph.uniform import SameOnMembers
from hlorewrite.checks.value_graph.views.strided import Strided
from hlorewrite.ir import Module, View
from hlorewrite.rules.library import shipped_facts

Numbers = NDArray[Any]
DTYPES: dict[str, Any] = {"f64": np.float64, "f32": np.float32, "bf16": bfloat16, "i32": np.int32, "ui32": np.uint32,
                          "i64": np.int64, "i1": np.bool_}
_BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "power": np.power, "divide": np.divide,
    "shift_right_logical": np.right_shift, "remainder": np.fmod}
_UNARY: dict[str, Callable[..., Any]] = {
    "negate": np.negative, "abs": np.abs, "exponential": np.exp, "tanh": np.tanh, "sqrt": np.sqrt, "sine": np.sin,
    "cosine": np.cos, "log": np.log, "logistic": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x)}
_COMPARISONS: dict[str, Callable[..., Any]] = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal,
                                               "GT": np.greater, "GE": np.greater_equal}
_REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min, "product": np.prod}


def outputs_of(module: Module, strategy: Strategy = VIEW_STRATEGIES[0]) -> tuple[Graph, list[int]]:
    """The graph of a program of one device, and the nodes that it returns."""
    view, graph = View(module), Graph()
    space = ProcessSpace(view)
    tables = ProcessConstants(graph, space.size, scalars=False)
    state = ProgramState(graph, space, view, shipped_facts(), strategy=strategy, tables=tables,
                         same=SameOnMembers(graph, tables), picks=IndexMaps(graph, tables), original=True)
    share_forms(state, state)
    nodes = evaluate(state, view.functions["main"])
    assert all(isinstance(node, int) for node in nodes)
    return graph, nodes  # type: ignore[return-value]


class NodeValues:
    """The values of nodes.

    Args:
      graph: the graph.
      inputs: the arguments of the program.
    """

    def __init__(self, graph: Graph, inputs: Sequence[Numbers]) -> None:
        self.graph, self.inputs = graph, inputs
        self._known: dict[int, Numbers] = {}

    def of(self, node: int) -> Numbers:
        """The value of a node."""
        if node not in self._known:
            known = shape_and_element(self.graph.types[node])
            assert known is not None
            shape, element = known
            made = np.asarray(self._value(node, shape, DTYPES[element]))
            assert made.shape == shape, (self.graph.labels[node], made.shape, shape)
            self._known[node] = made.astype(DTYPES[element])
        return self._known[node]

    def _value(self, node: int, shape: tuple[int, ...], dtype: Any) -> Any:
        label = self.graph.labels[node]
        args = [self.of(arg) for arg in self.graph.args[node]]
        sort = str(label[0])
        if sort == "source":
            return self.inputs[label[1][1]]  # type: ignore[index]
        if sort in ("splat", "number"):
            number = label[1]
            return np.full(shape, (number == "True") if dtype is np.bool_ else float(str(number)) if sort == "splat"
                           else float(number))  # type: ignore[arg-type]
        if sort == "view":
            return args[0].reshape(-1)[_positions(label[1], shape)]  # type: ignore[arg-type]
        if sort in ("sum", "product"):
            total: Any = np.full(shape, float(label[1]) if dtype in (np.float64, np.float32) else int(label[1])).astype(  # type: ignore
                dtype)
            for arg in args:
                total = total + arg if sort == "sum" else total * arg
            return total
        if sort == "power":
            return 1 / args[0]
        if sort == "reduce over rows":
            return _REDUCTIONS[str(label[1])](args[0], axis=1)
        if sort == "gathered rows":
            return _gathered(label, args, shape[0])
        if sort == "scattered rows":
            return _scattered(label, args)
        attributes: dict[str, str] = dict(label[1])  # type: ignore[call-overload]
        return _of_op(sort.removeprefix("stablehlo."), attributes, shape, args)


def _of_op(name: str, attributes: dict[str, str], shape: tuple[int, ...], args: list[Numbers]) -> Any:
    if name in _BINARY:
        return _BINARY[name](*args)
    if name in _UNARY:
        return _UNARY[name](*args)
    if name == "not":
        return ~args[0]
    if name == "convert":
        return args[0]
    if name == "select":
        return np.where(args[0], args[1], args[2])
    if name == "clamp":
        return np.minimum(np.maximum(args[1], args[0]), args[2])
    if name == "compare":
        return _COMPARISONS[attributes["comparison_direction"].split()[-1].rstrip(">")](*args)
    if name == "concatenate":
        return np.concatenate(args, axis=numbers_in(attributes["dimension"])[0])
    if name == "iota":
        along = numbers_in(attributes["iota_dimension"].split(":")[0])[0]
        return np.broadcast_to(np.arange(shape[along]).reshape([-1 if d == along else 1 for d in range(len(shape))]),
                               shape)
    if name == "dynamic_slice":
        return args[0][_part(args[0], shape, args[1:])]
    if name == "dynamic_update_slice":
        made = args[0].copy()
        made[_part(made, args[1].shape, args[2:])] = args[1]
        return made
    raise AssertionError(f"no meaning for {name}")


def _part(of: Numbers, sizes: Sequence[int], starts: Sequence[Numbers]) -> tuple[slice, ...]:
    begins = [min(max(int(start), 0), whole - size) for start, whole, size in zip(starts, of.shape, sizes, strict=True)]
    return tuple(slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True))


def _positions(view: Strided, shape: tuple[int, ...]) -> Numbers:
    at = np.full((), view.offset)
    for digits in view.dims:
        row = np.zeros((1,), int)
        for size, stride in digits:
            row = (row[:, None] + np.arange(size) * stride).reshape(-1)
        at = at[..., None] + row
    return at.reshape(shape)


def _rows_at(label: Any, columns: Sequence[Numbers], row: int, of: Numbers, clamped: bool) -> tuple[slice, ...] | None:
    sizes, indexed = label[1], list(label[2])
    begins = [0] * len(sizes)
    for dim, column in zip(indexed, columns, strict=True):
        begins[dim] = int(column[row])
    if clamped:
        begins = [min(max(b, 0), n - s) for b, n, s in zip(begins, of.shape, sizes, strict=True)]
    inside = all(0 <= b <= n - s for b, n, s in zip(begins, of.shape, sizes, strict=True))
    return tuple(slice(b, b + s) for b, s in zip(begins, sizes, strict=True)) if inside else None


def _gathered(label: Any, args: list[Numbers], count: int) -> Numbers:
    operand, *columns = args
    return np.stack([operand[_rows_at(label, columns, row, operand, True)].reshape(-1) for row in range(count)])  # type: ignore


def _scattered(label: Any, args: list[Numbers]) -> Numbers:
    operand, updates, *columns = args
    made = operand.copy()
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum, "product": np.multiply}[label[3][1]]
    for row in range(len(updates)):
        part = _rows_at(label, columns, row, operand, False)
        if part is not None:
            made[part] = combine(made[part], updates[row].reshape(made[part].shape))
    return made
