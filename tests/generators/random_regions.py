"""Loops, branches and calls of random programs."""

from __future__ import annotations

from generators.random_collectives import allowed_groups, collective, reduced, reduced_integer
from generators.random_ops import LIFTED_STEPS, STEPS, STRAIGHT_STEPS, predicate
from generators.random_shapes import narrow_sum, product_of_types, reshaped, scattered_twice, spread
from generators.random_types import COMBINERS, WIDER, zero
from generators.random_writer import NOWHERE, SCALAR_BOOL, SCALAR_INT, Frame, Term, Writer, element_of, shape_of, vector

_MOST_ITERATIONS = 4


def step(w: Writer, scope: Frame, depth: int) -> None:
    """Writes one random op or construct."""
    steps = LIFTED_STEPS if w.scatters else STRAIGHT_STEPS if w.straight else STEPS
    options = [*steps, *[collective] * 8]
    if len(w.shapes) > 1:
        options += [reshaped, reshaped, spread, scattered_twice, scattered_twice]
    if any(element in WIDER for element in w.elements):
        options += [narrow_sum, product_of_types, product_of_types]
    if depth > 0:
        options += [lambda w, scope: loop(w, scope, depth), lambda w, scope: loop(w, scope, depth),
                    lambda w, scope: loop(w, scope, depth), lambda w, scope: branch(w, scope, depth),
                    lambda w, scope: branch(w, scope, depth), lambda w, scope: call(w, scope, depth),
                    switches]
    w.pick(options)(w, scope)


# ---- loops


def loop(w: Writer, scope: Frame, depth: int) -> None:
    """A loop with a counter, up to three accumulators, and sometimes a condition that reads an accumulator."""
    bound = _bound(w, scope)
    start = w.constant(scope, SCALAR_INT, "0")
    kinds = [w.kind() for _ in range(1 + w.choices.randrange(3))]
    declared = [w.axes() if w.chance(5) else w.everywhere for _ in kinds]
    inits = [w.constant(scope, kind, zero(element_of(kind))) if w.chance(4) else w.read(scope, kind, within=axes)
             for kind, axes in zip(kinds, declared, strict=True)]
    feeds = w.chance(2)  # an integer that decides when to stop
    feed_axes = NOWHERE if not scope.varies and w.chance(7) else w.everywhere
    feed_init = w.read(scope, SCALAR_INT, within=feed_axes)
    decided = bound.varies | (feed_axes if feeds else NOWHERE)
    counter = Term(w.name(), SCALAR_INT, decided)
    feed = Term(w.name(), SCALAR_INT, decided | feed_axes)
    carried = [Term(w.name(), kind, axes | decided) for kind, axes in zip(kinds, declared, strict=True)]
    body = scope.inner([counter, *([feed] if feeds else []), *carried], decided)
    yields = _body(w, body, carried, depth - 1)
    next_feed = _next_feed(w, body, feed, feed_axes) if feeds else None
    one = w.constant(body, SCALAR_INT, "1")
    following = w.emit(body, f"stablehlo.add {counter.name}, {one.name} : {SCALAR_INT}", SCALAR_INT, counter)
    heads, firsts, nexts = [counter, *carried], [start, *inits], [following, *yields]
    if next_feed is not None:
        heads, firsts, nexts = [*heads, feed], [*firsts, feed_init], [*nexts, next_feed]
    _write_loop(w, scope, heads, firsts, nexts, body, _condition(w, scope, counter, bound, feed if feeds else None))


def _bound(w: Writer, scope: Frame) -> Term:
    """How often a loop runs: mostly a constant, sometimes none, sometimes different on devices."""
    if w.chance(6):
        return w.constant(scope, SCALAR_INT, str(w.choices.randrange(_MOST_ITERATIONS + 1)))
    return w.read(scope, SCALAR_INT, within=w.axes())


def _next_feed(w: Writer, body: Frame, feed: Term, axes: frozenset[str]) -> Term:
    addend = w.read(body, SCALAR_INT)
    if not axes:
        addend = reduced_integer(w, body, addend) if not body.varies else w.constant(body, SCALAR_INT)
    return w.emit(body, f"stablehlo.add {feed.name}, {addend.name} : {SCALAR_INT}", SCALAR_INT, feed, addend)


def _condition(w: Writer, scope: Frame, counter: Term, bound: Term, feed: Term | None) -> list[str]:
    """Lines of a loop's condition: counts up to the bound, and to four at most."""
    i = scope.indent + "  "
    a, b, c = (w.name() for _ in range(3))
    lines = [f"{i}{a} = stablehlo.constant dense<{_MOST_ITERATIONS}> : {SCALAR_INT}",
             f"{i}{b} = stablehlo.minimum {bound.name}, {a} : {SCALAR_INT}",
             f"{i}{c} = stablehlo.compare LT, {counter.name}, {b}, SIGNED : ({SCALAR_INT}, {SCALAR_INT}) -> "
             f"{SCALAR_BOOL}"]
    if feed is not None:
        d, e, f = (w.name() for _ in range(3))
        lines += [f"{i}{d} = stablehlo.constant dense<{3 + w.choices.randrange(9)}> : {SCALAR_INT}",
                  f"{i}{e} = stablehlo.compare LT, {feed.name}, {d}, SIGNED : ({SCALAR_INT}, {SCALAR_INT}) -> "
                  f"{SCALAR_BOOL}", f"{i}{f} = stablehlo.and {c}, {e} : {SCALAR_BOOL}"]
        c = f
    return [*lines, f"{i}stablehlo.return {c} : {SCALAR_BOOL}"]


def _body(w: Writer, scope: Frame, carried: list[Term], depth: int) -> list[Term]:
    """Some ops, then the next values, mostly sums into the carried ones."""
    for _ in range(1 + w.choices.randrange(4)):
        step(w, scope, depth)
    yields = []
    for value in carried:
        if w.chance(2):
            yields.append(w.read(scope, value.type, within=value.varies))
            continue
        element = element_of(value.type)
        if value.type == vector(element) and w.chance(3) and any(element in WIDER.get(e, ()) for e in w.elements):
            product_of_types(w, scope)
        elif len(shape_of(value.type)) == 2 and w.chance(4):
            scattered_twice(w, scope)
        elif w.chance(7):
            collective(w, scope)
        newest = scope.values[-1]
        if w.chance(5) and newest.type == value.type and newest.varies <= value.varies:
            new = bent(w, scope, newest) if w.chance(6) else newest
            if not new.varies <= value.varies:
                new = newest
        else:
            new = w.read(scope, value.type, within=value.varies)
        name = w.pick([*COMBINERS[element], "subtract"] if element != "i1" else COMBINERS[element])
        yields.append(w.emit(scope, f"stablehlo.{name} {value.name}, {new.name} : {value.type}", value.type, value,
                             new))
    return yields


def bent(w: Writer, scope: Frame, value: Term) -> Term:
    """One op on a value whose other operand decides whether it is linear: a factor, a predicate, a branch."""
    kind, element = value.type, element_of(value.type)
    choice = w.choices.randrange(3)
    if choice == 0 and element != "i1":
        factor = w.read(scope, kind)
        return w.emit(scope, f"stablehlo.multiply {value.name}, {factor.name} : {kind}", kind, value, factor)
    p, other = predicate(w, scope), w.read(scope, kind)
    if choice == 1:
        return w.emit(scope, f"stablehlo.select {p.name}, {value.name}, {other.name} : {p.type}, {kind}", kind, value,
                      other, p)
    i = scope.indent
    return w.emit(scope, f'"stablehlo.if"({p.name}) ({{\n{i}  stablehlo.return {value.name} : {kind}\n{i}}}, {{\n'
                  f"{i}  stablehlo.return {other.name} : {kind}\n{i}}}) : ({p.type}) -> {kind}", kind, value, other, p)


def _write_loop(w: Writer, scope: Frame, heads: list[Term], firsts: list[Term], nexts: list[Term], body: Frame,
                condition: list[str]) -> None:
    types = ", ".join(value.type for value in heads)
    result, i, count = w.name(), scope.indent, len(heads)
    assigned = ", ".join(f"{h.name} = {v.name}" for h, v in zip(heads, firsts, strict=True))
    scope.lines += [f"{i}{result}:{count} = stablehlo.while({assigned}) : {types}", f"{i}cond {{", *condition,
                    f"{i}}} do {{", *body.lines,
                    f"{i}  stablehlo.return {', '.join(v.name for v in nexts)} : {types}", f"{i}}}"]
    scope.values += [Term(f"{result}#{position}", head.type, head.varies) for position, head in enumerate(heads)]


# ---- branches and calls


def branch(w: Writer, scope: Frame, depth: int) -> None:
    """A conditional of two or three branches that yield one or two values."""
    within = w.axes() if w.chance(6) else None
    three = w.chance(3)
    p = w.read(scope, SCALAR_INT, within) if three else predicate(w, scope, within)
    kinds = [w.kind() for _ in range(1 + w.choices.randrange(2))]
    i, regions, varies = scope.indent, [], [p.varies for _ in kinds]
    for _ in range(3 if three else 2):
        inner = scope.inner(varies=p.varies)
        for _ in range(w.choices.randrange(4)):
            step(w, inner, depth - 1)
        yields = [w.read(inner, kind) for kind in kinds]
        varies = [old | value.varies for old, value in zip(varies, yields, strict=True)]
        names = ", ".join(y.name for y in yields)
        regions.append([*inner.lines, f"{i}  stablehlo.return {names} : {', '.join(kinds)}"])
    result, count = w.name(), len(kinds)
    scope.lines.append(f'{i}{result}{f":{count}" if count > 1 else ""} = '
                       f'"stablehlo.{"case" if three else "if"}"({p.name}) ({{')
    for position, region in enumerate(regions):
        scope.lines += ([f"{i}}}, {{"] if position else []) + region
    outs = f"({', '.join(kinds)})" if count > 1 else kinds[0]
    scope.lines.append(f"{i}}}) : ({p.type}) -> {outs}")
    scope.values += [Term(f"{result}#{n}" if count > 1 else result, kind, varies[n]) for n, kind in enumerate(kinds)]


def switches(w: Writer, scope: Frame) -> None:
    """Several switches in sequence; one branch of each reads the same reduction, the others do not."""
    allowed = allowed_groups(w, scope)
    if not allowed:
        return
    kind, branches = w.kind(), 2 + w.choices.randrange(4)
    name = w.pick(COMBINERS[element_of(kind)])
    total = reduced(w, scope, [w.read(scope, kind)], name, w.pick(allowed))[0]
    value, i = w.read(scope, kind), scope.indent
    for _ in range(2 + w.choices.randrange(3)):
        chosen = w.read(scope, SCALAR_INT, w.axes())
        reads, both = w.choices.randrange(branches), w.name()
        regions = [f"{i}  stablehlo.return {value.name} : {kind}"] * branches
        regions[reads] = (f"{i}  {both} = stablehlo.{name} {value.name}, {total.name} : {kind}\n"
                          f"{i}  stablehlo.return {both} : {kind}")
        value = w.emit(scope, f'"stablehlo.case"({chosen.name}) ({{\n' + f"\n{i}}}, {{\n".join(regions)
                       + f"\n{i}}}) : ({SCALAR_INT}) -> {kind}", kind, value, total, chosen)


def call(w: Writer, scope: Frame, depth: int) -> None:
    """One or two calls of a new private function, which may call others."""
    kinds = [w.kind() for _ in range(2)]
    inner = Frame([Term(f"%p{n}", kind, w.everywhere) for n, kind in enumerate(kinds)], scope.varies, indent="    ")
    for _ in range(1 + w.choices.randrange(4)):
        step(w, inner, depth - 1 if w.chance(4) else 0)
    outs = [w.read(inner, w.kind()) for _ in range(1 + w.choices.randrange(2))]
    label, types = f"f{len(w.functions)}", ", ".join(out.type for out in outs)
    results = f"({types})" if len(outs) > 1 else types
    w.functions.append("\n".join([
        f"  func.func private @{label}({', '.join(f'%p{n}: {kind}' for n, kind in enumerate(kinds))}) -> {results} {{",
        *inner.lines, f"    return {', '.join(out.name for out in outs)} : {types}", "  }"]))
    for _ in range(2 if w.chance(4) else 1):
        arguments, result = [w.read(scope, kind) for kind in kinds], w.name()
        scope.lines.append(f"{scope.indent}{result}{f':{len(outs)}' if len(outs) > 1 else ''} = func.call @{label}("
                           f"{', '.join(a.name for a in arguments)}) : ({', '.join(kinds)}) -> {results}")
        scope.values += [Term(f"{result}#{n}" if len(outs) > 1 else result, out.type, w.everywhere)
                         for n, out in enumerate(outs)]
