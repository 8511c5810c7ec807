"""Ops of random programs between shapes and between widths: spreads, parts, sums and products in wider types."""

from __future__ import annotations

from generators.random_collectives import allowed_groups, reduced, scattered
from generators.random_types import COMBINERS, WIDER
from generators.random_writer import (
    NOWHERE,
    WIDTH,
    Frame,
    Writer,
    element_of,
    scalar,
    shape_of,
    vector,
    with_element,
    with_shape,
)


def reshaped(w: Writer, scope: Frame) -> None:
    """A value in another shape of the program: a part of it, or it repeated, padded or summed."""
    source, target = w.kind(), w.pick(w.shapes)
    a, element = w.read(scope, source), element_of(source)
    have, want = shape_of(source), tuple(int(size) for size in target.split("x"))
    kind = with_shape(source, *want)
    if len(have) == len(want) and all(h >= n for h, n in zip(have, want, strict=True)):
        parts = ", ".join(f"0:{n}" for n in want)
        w.emit(scope, f"stablehlo.slice {a.name} [{parts}] : ({source}) -> {kind}", kind, a)
    elif len(have) == len(want):
        padding = w.constant(scope, scalar(element), "0" if element.strip("u").startswith("i") and element != "i1"
                             else None)
        more = ", ".join(str(n - h) for h, n in zip(have, want, strict=True))
        zeros = ", ".join(["0"] * len(want))
        w.emit(scope, f"stablehlo.pad {a.name}, {padding.name}, low = [{zeros}], high = [{more}], interior = [{zeros}]"
               f" : ({source}, {padding.type}) -> {kind}", kind, a, padding)
    elif len(have) < len(want):
        dim = w.choices.randrange(2)
        if have[0] in (1, want[dim]):
            w.emit(scope, f"stablehlo.broadcast_in_dim {a.name}, dims = [{dim}] : ({source}) -> {kind}", kind, a)
    elif have[0] == want[0]:
        first = w.constant(scope, scalar(element))
        w.emit(scope, f"stablehlo.reduce({a.name} init: {first.name}) applies stablehlo.{w.pick(COMBINERS[element])} "
               f"across dimensions = [{w.choices.randrange(2)}] : ({source}, {first.type}) -> {kind}", kind, a, first)


def scattered_twice(w: Writer, scope: Frame) -> None:
    """The sum of two reduce-scatters along different dimensions of matrices."""
    matrices, allowed = [shape for shape in w.shapes if "x" in shape], allowed_groups(w, scope)
    if not matrices or not allowed:
        return
    kind, groups = f"tensor<{w.pick(matrices)}x{w.element()}>", w.pick(allowed)
    name = w.pick(COMBINERS[element_of(kind)])
    a, b = (scattered(w, scope, kind, dim, name, groups) for dim in (0, 1))
    w.emit(scope, f"stablehlo.{name} {a.name}, {b.name} : {kind}", kind, a, b)


def spread(w: Writer, scope: Frame) -> None:
    """One element, repeated to a whole value: what a reduction costs least before."""
    kind = w.kind()
    one = with_shape(kind, 1)
    a = w.read(scope, one)
    rank = len(shape_of(kind))
    if rank:
        w.emit(scope, f"stablehlo.broadcast_in_dim {a.name}, dims = [{rank - 1}] : ({one}) -> {kind}", kind, a)


def _widened(w: Writer) -> tuple[str, str]:
    """An element type of the program and a wider one."""
    narrow = w.pick([element for element in w.elements if element in WIDER])
    wider = [element for element in WIDER[narrow] if element in w.elements]
    return narrow, w.pick(wider or WIDER[narrow])


def narrow_sum(w: Writer, scope: Frame) -> None:
    """All elements of a value combined in a wider type, and back on every element."""
    narrow, wide = _widened(w)
    a, one = w.read(scope, vector(narrow)), scalar(wide)
    first, i = w.constant(scope, one), scope.indent
    text = "\n".join([f'"stablehlo.reduce"({a.name}, {first.name}) <{{dimensions = array<i64: 0>}}> ({{',
                      f"{i}^bb0(%left: {one}, %right: {one}):",
                      f"{i}  %both = stablehlo.{w.pick(COMBINERS[wide])} %left, %right : {one}",
                      f"{i}  stablehlo.return %both : {one}", f"{i}}}) : ({a.type}, {one}) -> {one}"])
    total = w.emit(scope, text, one, a, first)
    kind = with_element(a.type, wide)
    w.emit(scope, f"stablehlo.broadcast_in_dim {total.name}, dims = [] : ({one}) -> {kind}", kind, total)


def product_of_types(w: Writer, scope: Frame) -> None:
    """A vector, often a sum over devices, times a matrix, accumulated in a wider type; the vector is left or right."""
    narrow, wide = _widened(w)
    kind, square = vector(narrow), f"tensor<{WIDTH}x{WIDTH}x{narrow}>"
    a, allowed = w.read(scope, kind), allowed_groups(w, scope)
    if allowed and w.chance(5):
        a = reduced(w, scope, [a], "add", w.pick(allowed))[0]
    rows = w.read(scope, kind, within=NOWHERE if w.chance(7) else None)
    matrix = w.emit(scope, f"stablehlo.broadcast_in_dim {rows.name}, dims = [{w.choices.randrange(2)}] : ({kind}) -> "
                    f"{square}", square, rows)
    operands = (a, matrix) if w.chance(5) else (matrix, a)
    w.emit(scope, f"stablehlo.dot_general {operands[0].name}, {operands[1].name}, contracting_dims = [0] x [0], "
           f"precision = [DEFAULT, DEFAULT] : ({operands[0].type}, {operands[1].type}) -> {vector(wide)}",
           vector(wide), a, matrix)
