"""Ops of random programs: arithmetic, choices, moves of elements, sums, products of tensors."""

from __future__ import annotations

from collections.abc import Callable

from generators.random_types import BINARY, COMBINERS, DIVISORS, FLOATS, INTEGERS, STRAIGHT_BINARY, UNARY, convertible
from generators.random_writer import (
    INDEX_VECTOR,
    NOWHERE,
    SCALAR_BOOL,
    SCALAR_INT,
    WIDTH,
    Frame,
    Term,
    Writer,
    element_of,
    scalar,
    vector,
    with_element,
)

Step = Callable[[Writer, Frame], None]


def binary(w: Writer, scope: Frame) -> None:
    """A sum, difference, product, quotient by a constant, maximum or minimum."""
    kind = w.kind()
    element = element_of(kind)
    name = w.pick((STRAIGHT_BINARY if w.straight else BINARY)[element])
    a = w.read(scope, kind)
    if name == "divide":
        b = w.constant(scope, kind, w.pick(DIVISORS[element]))
    else:
        b = w.read(scope, kind, within=NOWHERE if name == "multiply" and w.chance(7) else None)
        if w.chance(5):
            a, b = b, a
    w.emit(scope, f"stablehlo.{name} {a.name}, {b.name} : {kind}", kind, a, b)


def unary(w: Writer, scope: Frame) -> None:
    """A function of one value, linear or not."""
    kind = w.kind()
    a = w.read(scope, kind)
    w.emit(scope, f"stablehlo.{w.pick(UNARY[element_of(kind)])} {a.name} : {kind}", kind, a)


def convert(w: Writer, scope: Frame) -> None:
    """A value in another element type; an integer that becomes a float is made small, so that sums stay exact."""
    source, target = w.element(), w.element()
    if not convertible(source, target):
        source, target = target, source
    if not convertible(source, target):
        return
    kind = w.kind(source)
    result = with_element(kind, target)
    a = w.read(scope, kind)
    if source in INTEGERS and target in FLOATS:
        mask = w.constant(scope, kind, "7")
        a = w.emit(scope, f"stablehlo.and {a.name}, {mask.name} : {kind}", kind, a)
    w.emit(scope, f"stablehlo.convert {a.name} : ({kind}) -> {result}", result, a)


def choose(w: Writer, scope: Frame) -> None:
    """A select, by a truth value or by one for each element."""
    kind = w.kind()
    a, b = w.read(scope, kind), w.read(scope, kind)
    within = NOWHERE if w.chance(6) else None
    if "i1" in w.elements and w.chance(4):
        p = w.read(scope, with_element(kind, "i1"), within)
    else:
        p = predicate(w, scope, within)
    w.emit(scope, f"stablehlo.select {p.name}, {a.name}, {b.name} : {p.type}, {kind}", kind, a, b, p)


def clamp(w: Writer, scope: Frame) -> None:
    """A value between two others."""
    kind = w.kind()
    if element_of(kind) not in (*FLOATS, *INTEGERS):
        return
    low, a, high = w.constant(scope, kind), w.read(scope, kind), w.read(scope, kind)
    w.emit(scope, f"stablehlo.clamp {low.name}, {a.name}, {high.name} : {kind}", kind, low, a, high)


def predicate(w: Writer, scope: Frame, within: frozenset[str] | None = None) -> Term:
    """A truth value from an integer."""
    a, b = w.read(scope, SCALAR_INT, within), w.constant(scope, SCALAR_INT, w.pick(["0", "1", "2"]))
    direction = w.pick(["LT", "EQ", "GE"])
    return w.emit(scope, f"stablehlo.compare {direction}, {a.name}, {b.name}, SIGNED : ({SCALAR_INT}, {SCALAR_INT}) -> "
                  f"{SCALAR_BOOL}", SCALAR_BOOL, a)


def integer(w: Writer, scope: Frame) -> None:
    """A new integer: computed, or the device's own id, or its place along one axis."""
    if not w.chance(4):
        a, b = w.read(scope, SCALAR_INT), w.constant(scope, SCALAR_INT)
        w.emit(scope, f"stablehlo.add {a.name}, {b.name} : {SCALAR_INT}", SCALAR_INT, a)
        return
    op, axes = w.pick(w.form.own_ids())
    raw = w.name()
    scope.lines.append(f"{scope.indent}{raw} = {op} : tensor<ui32>")
    own = w.emit(scope, f"stablehlo.convert {raw} : (tensor<ui32>) -> {SCALAR_INT}", SCALAR_INT, varies=axes)
    if axes == w.everywhere and len(w.mesh) == 2 and w.chance(6):
        columns = w.constant(scope, SCALAR_INT, str(w.mesh[1][1]))
        name, axis = w.pick([("divide", w.mesh[0][0]), ("remainder", w.mesh[1][0])])
        w.emit(scope, f"stablehlo.{name} {own.name}, {columns.name} : {SCALAR_INT}", SCALAR_INT,
               varies=frozenset({axis}))


# ---- moves of elements


def move(w: Writer, scope: Frame) -> None:
    """An op that moves elements."""
    w.pick([reverse, slice_and_pad, update_slice, take_slice, through_matrix, gather, barrier])(w, scope)


def reverse(w: Writer, scope: Frame) -> None:
    """Elements in reverse order."""
    a = w.read(scope, vector(w.element()))
    w.emit(scope, f"stablehlo.reverse {a.name}, dims = [0] : {a.type}", a.type, a)


def slice_and_pad(w: Writer, scope: Frame) -> None:
    """Two elements, then padded again with some value."""
    element = w.element()
    a, half = w.read(scope, vector(element)), f"tensor<2x{element}>"
    part = w.emit(scope, f"stablehlo.slice {a.name} [1:3] : ({a.type}) -> {half}", half, a)
    padding = w.constant(scope, scalar(element))
    w.emit(scope, f"stablehlo.pad {part.name}, {padding.name}, low = [1], high = [1], interior = [0] : "
           f"({half}, {padding.type}) -> {a.type}", a.type, part, padding)


def _index(w: Writer, scope: Frame) -> Term:
    return w.read(scope, SCALAR_INT, within=NOWHERE if w.chance(6) else None)


def update_slice(w: Writer, scope: Frame) -> None:
    """Two elements of one value written into another."""
    element = w.element()
    a, half, index = w.read(scope, vector(element)), f"tensor<2x{element}>", _index(w, scope)
    part = w.emit(scope, f"stablehlo.slice {a.name} [0:2] : ({a.type}) -> {half}", half, a)
    base = w.read(scope, a.type)
    w.emit(scope, f"stablehlo.dynamic_update_slice {base.name}, {part.name}, {index.name} : "
           f"({a.type}, {half}, {SCALAR_INT}) -> {a.type}", a.type, base, part, index)


def take_slice(w: Writer, scope: Frame) -> None:
    """Two elements from somewhere, twice in a row."""
    element = w.element()
    a, half, index = w.read(scope, vector(element)), f"tensor<2x{element}>", _index(w, scope)
    part = w.emit(scope, f"stablehlo.dynamic_slice {a.name}, {index.name}, sizes = [2] : ({a.type}, {SCALAR_INT}) -> "
                  f"{half}", half, a, index)
    other = w.emit(scope, f"stablehlo.slice {a.name} [0:2] : ({a.type}) -> {half}", half, a)
    w.emit(scope, f"stablehlo.concatenate {part.name}, {other.name}, dim = 0 : ({half}, {half}) -> {a.type}", a.type,
           part, other)


def through_matrix(w: Writer, scope: Frame) -> None:
    """Reshaped to a matrix, transposed, and back."""
    element = w.element()
    a, square = w.read(scope, vector(element)), f"tensor<2x2x{element}>"
    b = w.emit(scope, f"stablehlo.reshape {a.name} : ({a.type}) -> {square}", square, a)
    c = w.emit(scope, f"stablehlo.transpose {b.name}, dims = [1, 0] : ({square}) -> {square}", square, b)
    w.emit(scope, f"stablehlo.reshape {c.name} : ({square}) -> {a.type}", a.type, c)


def gather(w: Writer, scope: Frame) -> None:
    """Elements at indices."""
    a, indices = w.read(scope, vector(w.element())), index_vector(w, scope)
    w.emit(scope, f'"stablehlo.gather"({a.name}, {indices.name}) <{{dimension_numbers = #stablehlo.gather<'
           "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, "
           f"indices_are_sorted = false}}> : ({a.type}, {indices.type}) -> {a.type}", a.type, a, indices)


def barrier(w: Writer, scope: Frame) -> None:
    """An optimisation barrier around two values."""
    kind = vector(w.element())
    a, b, name = w.read(scope, kind), w.read(scope, kind), w.name()
    scope.lines.append(f"{scope.indent}{name}:2 = stablehlo.optimization_barrier {a.name}, {b.name} : {kind}, {kind}")
    scope.values += [Term(f"{name}#0", kind, a.varies), Term(f"{name}#1", kind, b.varies)]


def index_vector(w: Writer, scope: Frame) -> Term:
    """An integer for each element."""
    index = _index(w, scope)
    spread = w.emit(scope, f"stablehlo.broadcast_in_dim {index.name}, dims = [] : ({SCALAR_INT}) -> {INDEX_VECTOR}",
                    INDEX_VECTOR, index)
    steps = w.emit(scope, f"stablehlo.iota dim = 0 : {INDEX_VECTOR}", INDEX_VECTOR)
    return w.emit(scope, f"stablehlo.{w.pick(['multiply', 'minimum', 'add'])} {spread.name}, {steps.name} : "
                  f"{INDEX_VECTOR}", INDEX_VECTOR, spread, steps)


# ---- ops that add up


def reduce(w: Writer, scope: Frame) -> None:
    """All elements combined, on every element."""
    element = w.element()
    a, name = w.read(scope, vector(element)), w.pick(COMBINERS[element])
    first = w.constant(scope, scalar(element))
    total = w.emit(scope, f"stablehlo.reduce({a.name} init: {first.name}) applies stablehlo.{name} across dimensions = "
                   f"[0] : ({a.type}, {first.type}) -> {first.type}", first.type, a, first)
    w.emit(scope, f"stablehlo.broadcast_in_dim {total.name}, dims = [] : ({total.type}) -> {a.type}", a.type, total)


def scatter(w: Writer, scope: Frame) -> None:
    """Updates added to, or put in place of, elements at indices."""
    element = w.element()
    kind, one = vector(element), scalar(element)
    a, indices, updates = w.read(scope, kind), index_vector(w, scope), w.read(scope, kind)
    name = w.pick([*COMBINERS[element], "put"])
    i = scope.indent
    combine = [] if name == "put" else [f"{i}  %both = stablehlo.{name} %old, %new : {one}"]
    text = "\n".join([
        f'"stablehlo.scatter"({a.name}, {indices.name}, {updates.name}) <{{scatter_dimension_numbers = '
        "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, "
        "indices_are_sorted = false, unique_indices = false}> ({",
        f"{i}^bb0(%old: {one}, %new: {one}):", *combine,
        f"{i}  stablehlo.return {'%both' if combine else '%new'} : {one}",
        f"{i}}}) : ({kind}, {indices.type}, {kind}) -> {kind}"])
    w.emit(scope, text, kind, a, indices, updates)


def dot(w: Writer, scope: Frame) -> None:
    """A vector times a matrix that is the same on all devices, or not."""
    element = w.pick([element for element in w.elements if element != "i1"] or ["f32"])
    kind, square = vector(element), f"tensor<{WIDTH}x{WIDTH}x{element}>"
    a, rows = w.read(scope, kind), w.read(scope, kind, within=NOWHERE if w.chance(6) else None)
    matrix = w.emit(scope, f"stablehlo.broadcast_in_dim {rows.name}, dims = [{w.choices.randrange(2)}] : ({kind}) -> "
                    f"{square}", square, rows)
    text = (f"contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : ({kind}, {square}) -> {kind}",
            f"contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : ({square}, {kind}) -> {kind}")
    left = w.chance(5)
    names = f"{a.name}, {matrix.name}" if left else f"{matrix.name}, {a.name}"
    w.emit(scope, f"stablehlo.dot_general {names}, {text[0 if left else 1]}", kind, a, matrix)


STEPS: tuple[Step, ...] = (binary, binary, binary, unary, convert, choose, choose, clamp, integer, integer, move, move,
                           reduce, scatter, dot)
"""Ops without regions or communication, the frequent ones more than once."""
LIFTED_STEPS: tuple[Step, ...] = (binary, binary, unary, convert, choose, integer, update_slice)
"""Those that can mostly be done before a reduce-scatter instead of after it."""

STRAIGHT_STEPS: tuple[Step, ...] = (binary, binary, binary, convert, choose, choose, integer, move, scatter, dot)
"""Those that are linear, or are but for one operand."""

__all__ = ["LIFTED_STEPS", "STEPS", "STRAIGHT_STEPS", "predicate"]
