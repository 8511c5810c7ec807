"""Equations between expressions that move elements, or do nothing: each expression has a canonical form.

``slice(concat(a, b))`` is a slice of ``a``; ``reshape(reshape(x))`` is one reshape; the zero of a sum adds nothing.
These equations hold for every element type and on every process by itself.
"""

import math
from collections.abc import Callable

from hlorewrite.checks.value_graph.graph import Graph, Label, is_float, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.per_process_constants import Attributes, numbers_in
from hlorewrite.ops.table import MOVES_OF_ONE

_NEUTRAL = {"add": "sum", "multiply": "product", "maximum": "max", "minimum": "min", "and": "and", "or": "or"}
_ABSORBED = {"multiply": "sum", "minimum": "max", "maximum": "min", "and": "or", "or": "and"}
_INFINITIES = (("splat", "inf"), ("splat", "-inf"))
Fold = Callable[[Graph, dict[str, str], str, tuple[int, ...]], int | None]


def op_label(name: str, attributes: Attributes = ()) -> Label:
    """The label of an op without regions and with one result."""
    return (name, attributes, (), 0)


def array(numbers: list[int] | tuple[int, ...]) -> str:
    """An attribute of integers as MLIR prints it."""
    return f"array<i64{': ' if numbers else ''}{', '.join(map(str, numbers))}>"


def normalized(graph: Graph, name: str, attributes: Attributes, type_: str, args: tuple[int, ...]) -> int | None:
    """The existing node that an op on nodes equals; None if there is no other."""
    short = name[10:]
    if short in _NEUTRAL:
        return _neutral(graph, short, type_, args)
    if name in MOVES_OF_ONE and graph.labels[args[0]][0] == "splat":
        return graph.node(graph.labels[args[0]], type_)
    fold = _FOLDS.get(short)
    return None if fold is None else fold(graph, dict(attributes), type_, args)


def op_of(graph: Graph, node: int, name: str) -> dict[str, str] | None:
    """The attributes of a node if it is an op of a given name; None otherwise."""
    label = graph.labels[node]
    return dict(label[1]) if label[0] == name else None  # type: ignore[call-overload]


def _neutral(graph: Graph, short: str, type_: str, args: tuple[int, ...]) -> int | None:
    """``x + 0 = x``, ``min(-inf, x) = -inf``; ``0 * x = 0`` for integers and finite x: a float may be infinite."""
    kind, absorbed, known = _NEUTRAL[short], _ABSORBED.get(short), shape_and_element(type_)
    if short == "multiply" and (known is None or is_float(known[1])):
        absorbed = None
    for one, other in (args, args[::-1]):
        if graph.is_identity(other, kind):
            return one
        if absorbed is not None and graph.is_identity(other, absorbed):
            return other
        if short == "multiply" and graph.is_identity(other, "sum") and _positive(graph, one):
            return other
    return None


def _positive(graph: Graph, node: int) -> bool:
    """Whether a node is filled with a positive finite number."""
    label = graph.labels[node]
    try:
        return label[0] == "splat" and 0.0 < float(str(label[1])) < math.inf
    except ValueError:
        return False


def _picked(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    """A part of a tensor filled with one number."""
    return graph.node(graph.labels[args[0]], type_) if graph.labels[args[0]][0] == "splat" else None


def _subtract(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    return args[0] if graph.is_identity(args[1], "sum") else None


def _reshape(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    operand = args[0]
    if graph.types[operand] == type_:
        return operand
    if op_of(graph, operand, "stablehlo.reshape") is not None:
        inner = graph.args[operand][0]
        return inner if graph.types[inner] == type_ else graph.node(op_label("stablehlo.reshape"), type_, (inner,))
    return None


def _transpose(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    order = numbers_in(attributes["permutation"])
    if order == sorted(order):
        return args[0]
    inner = op_of(graph, args[0], "stablehlo.transpose")
    if inner is None:
        return None
    first = numbers_in(inner["permutation"])
    both = [first[d] for d in order]
    operand = graph.args[args[0]][0]
    if both == sorted(both):
        return operand
    return graph.node(op_label("stablehlo.transpose", (("permutation", array(both)),)), type_, (operand,))


def _broadcast(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    dims = numbers_in(attributes["broadcast_dimensions"])
    return args[0] if graph.types[args[0]] == type_ and dims == sorted(dims) else None


def slice_label(starts: list[int], limits: list[int], strides: list[int]) -> Label:
    """The label of a slice."""
    return op_label("stablehlo.slice", (("limit_indices", array(limits)), ("start_indices", array(starts)),
                                        ("strides", array(strides))))


def _slice(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    operand = args[0]
    if graph.types[operand] == type_:
        return operand
    starts, limits, strides = (numbers_in(attributes[key]) for key in ("start_indices", "limit_indices", "strides"))
    inner = op_of(graph, operand, "stablehlo.slice")
    if inner is not None and set(strides) <= {1} and set(numbers_in(inner["strides"])) <= {1}:
        shift = numbers_in(inner["start_indices"])
        return graph.node(slice_label([a + b for a, b in zip(starts, shift, strict=True)],
                                      [a + b for a, b in zip(limits, shift, strict=True)], strides), type_,
                          graph.args[operand])
    joined = op_of(graph, operand, "stablehlo.concatenate")
    if joined is None:
        return None
    along, before = numbers_in(joined["dimension"])[0], 0
    for part in graph.args[operand]:
        known = shape_and_element(graph.types[part])
        if known is None:
            return None
        size = known[0][along]
        if before <= starts[along] and limits[along] <= before + size:
            starts[along], limits[along] = starts[along] - before, limits[along] - before
            label = slice_label(starts, limits, strides)
            return part if graph.types[part] == type_ else normalized(
                graph, "stablehlo.slice", label[1], type_, (part,)) or graph.node(label, type_, (part,))  # type: ignore
        before += size
    return None


def _concatenate(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    if len(args) == 1:
        return args[0]
    labels = {graph.labels[arg] for arg in args}
    one = next(iter(labels))
    return graph.node(one, type_) if len(labels) == 1 and one[0] == "splat" else None


def _convert(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    if graph.types[args[0]] == type_:
        return args[0]
    if graph.is_identity(args[0], "sum"):
        return graph.identity("sum", type_)
    known = shape_and_element(type_)
    infinite = graph.labels[args[0]] in _INFINITIES and known is not None and known[1] in ("bf16", "f16", "f32", "f64")
    return graph.node(graph.labels[args[0]], type_) if infinite else None


def _bitcast(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    if graph.types[args[0]] == type_:
        return args[0]
    if op_of(graph, args[0], "stablehlo.bitcast_convert") is None:
        return None
    inner = graph.args[args[0]][0]
    return inner if graph.types[inner] == type_ else None


def _select(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    if args[1] == args[2]:
        return args[1]
    label = graph.labels[args[0]]
    return (args[1] if label[1] == "True" else args[2]) if label[0] == "splat" else None


def _divide(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    return args[0] if graph.is_identity(args[1], "product") else None


def _complex(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    return graph.identity("sum", type_) if all(graph.is_identity(arg, "sum") for arg in args) else None


def _update(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    if graph.types[args[1]] == type_:
        return args[1]
    return args[0] if graph.labels[args[0]][0] == "splat" and graph.labels[args[0]] == graph.labels[args[1]] else None


def _pad(graph: Graph, attributes: dict[str, str], type_: str, args: tuple[int, ...]) -> int | None:
    one = graph.labels[args[0]]
    return graph.node(one, type_) if one[0] == "splat" and one == graph.labels[args[1]] else None


def shifted_type(type_: str, along: int, size: int) -> str:
    """A tensor type with another size along one dimension."""
    known = shape_and_element(type_)
    assert known is not None
    shape = list(known[0])
    shape[along] = size
    return tensor_type(tuple(shape), known[1])


_FOLDS: dict[str, Fold] = {
    "subtract": _subtract, "divide": _divide, "reshape": _reshape, "transpose": _transpose,
    "broadcast_in_dim": _broadcast, "slice": _slice, "concatenate": _concatenate, "convert": _convert,
    "bitcast_convert": _bitcast, "select": _select, "dynamic_update_slice": _update, "complex": _complex,
    "real": _complex, "imag": _complex,
    "gather": _picked, "pad": _pad}
FOLDED = frozenset(f"stablehlo.{name}" for name in (*_NEUTRAL, *_FOLDS)) | MOVES_OF_ONE
"""Ops that may be equal to something simpler."""
