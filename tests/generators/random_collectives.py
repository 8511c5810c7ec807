"""Collectives of random programs; each stands only where all members of its groups get equally often."""

from __future__ import annotations

from generators.random_ops import COMBINERS
from generators.random_writer import WIDTH, Frame, Teams, Term, Writer, element_of, scalar, vector

_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"
_ATTRIBUTES = f"{_CHANNEL}, replica_groups = {{groups}}, use_global_device_ids"


def allowed_groups(w: Writer, scope: Frame) -> list[Teams]:
    """The groups whose members get here equally often."""
    return [groups for groups in w.groups if not groups.axes & scope.varies]


def collective(w: Writer, scope: Frame) -> None:
    """An all-reduce, or one of its neighbours; nothing where no groups are allowed."""
    allowed = allowed_groups(w, scope)
    if not allowed:
        return
    groups = w.pick(allowed)
    if w.scatters and w.chance(7):
        reduce_scatter(w, scope, groups)
    elif w.chance(7):
        all_reduce(w, scope, groups)
    else:
        w.pick([gather_and_slice, reduce_scatter, reduce_scatter, permute, exchange, broadcast])(w, scope, groups)


def _reducer(scope: Frame, name: str, element: str) -> list[str]:
    i, one = scope.indent, scalar(element)
    return [f"{i}^bb0(%left: {one}, %right: {one}):", f"{i}  %both = stablehlo.{name} %left, %right : {one}",
            f"{i}  stablehlo.return %both : {one}"]


def reduced(w: Writer, scope: Frame, operands: list[Term], name: str, groups: Teams) -> list[Term]:
    """An all-reduce of values of one type."""
    kind, count = operands[0].type, len(operands)
    element = element_of(kind)
    result, i = w.name(), scope.indent
    types = ", ".join([kind] * count)
    scope.lines += [f'{i}{result}{f":{count}" if count > 1 else ""} = "stablehlo.all_reduce"('
                    f"{', '.join(v.name for v in operands)}) <{{{_ATTRIBUTES.format(groups=groups.text)}}}> ({{",
                    *_reducer(scope, name, element),
                    f"{i}}}) : ({types}) -> {types if count == 1 else f'({types})'}"]
    made = [Term(f"{result}#{n}" if count > 1 else result, kind, v.varies - groups.axes)
            for n, v in enumerate(operands)]
    scope.values += made
    return made


def all_reduce(w: Writer, scope: Frame, groups: Teams) -> None:
    """An all-reduce of one to three values, often divided by a number afterwards."""
    element = w.element()
    kind = vector(element)
    operands = [w.read(scope, kind) for _ in range(1 + w.choices.randrange(3) if w.chance(3) else 1)]
    name = "add" if w.straight and element != "i1" and w.chance(8) else w.pick(COMBINERS[element])
    made = reduced(w, scope, operands, name, groups)
    if element == "f32" and w.chance(5):
        factor = w.constant(scope, kind, "0.5")
        w.emit(scope, f"stablehlo.multiply {made[0].name}, {factor.name} : {kind}", kind, made[0])


def reduced_integer(w: Writer, scope: Frame, value: Term) -> Term:
    """The sum of a scalar integer over all devices; every device can decide by it."""
    return reduced(w, scope, [value], "add", w.groups[0])[0]


def gather_and_slice(w: Writer, scope: Frame, groups: Teams) -> None:
    """An all-gather, of which every device keeps the same part."""
    element = w.element()
    a = w.read(scope, vector(element))
    whole = f"tensor<{WIDTH * len(groups.rows[0])}x{element}>"
    all_of_it = w.emit(scope, f'"stablehlo.all_gather"({a.name}) <{{all_gather_dim = 0 : i64, '
                       f"{_ATTRIBUTES.format(groups=groups.text)}}}> : ({a.type}) -> {whole}", whole,
                       varies=a.varies - groups.axes)
    w.emit(scope, f"stablehlo.slice {all_of_it.name} [2:{2 + WIDTH}] : ({whole}) -> {a.type}", a.type, all_of_it)


def reduce_scatter(w: Writer, scope: Frame, groups: Teams) -> None:
    """As many values as members, one behind the other; each member adds up its own part."""
    element = w.element()
    kind, members = vector(element), len(groups.rows[0])
    parts = [w.read(scope, kind) for _ in range(members)]
    whole = f"tensor<{WIDTH * members}x{element}>"
    joined = w.emit(scope, f"stablehlo.concatenate {', '.join(part.name for part in parts)}, dim = 0 : "
                    f"({', '.join([kind] * members)}) -> {whole}", whole, *parts)
    text = "\n".join([f'"stablehlo.reduce_scatter"({joined.name}) <{{scatter_dimension = 0 : i64, '
                      f"{_ATTRIBUTES.format(groups=groups.text)}}}> ({{",
                      *_reducer(scope, w.pick(COMBINERS[element]), element),
                      f"{scope.indent}}}) : ({whole}) -> {kind}"])
    w.emit(scope, text, kind, varies=joined.varies | groups.axes)


def permute(w: Writer, scope: Frame, groups: Teams) -> None:
    """A ring, or a chain whose first member receives zeros."""
    a, closed = w.read(scope, vector(w.element())), w.chance(7)
    pairs = [[row[n], row[(n + 1) % len(row)]] for row in groups.rows for n in range(len(row) - (0 if closed else 1))]
    w.emit(scope, f'"stablehlo.collective_permute"({a.name}) <{{{_CHANNEL}, '
           f"source_target_pairs = dense<{pairs}> : tensor<{len(pairs)}x2xi64>}}> : ({a.type}) -> {a.type}",
           a.type, varies=a.varies | groups.axes)




def exchange(w: Writer, scope: Frame, groups: Teams) -> None:
    """An all-to-all, where the members divide a value; else a broadcast."""
    a, members = w.read(scope, vector(w.element())), len(groups.rows[0])
    if WIDTH % members:
        broadcast(w, scope, groups)
        return
    w.emit(scope, f'"stablehlo.all_to_all"({a.name}) <{{split_dimension = 0 : i64, concat_dimension = 0 : i64, '
           f"split_count = {members} : i64, {_CHANNEL}, replica_groups = {groups.text}}}> : ({a.type}) -> {a.type}",
           a.type, varies=a.varies | groups.axes)


def broadcast(w: Writer, scope: Frame, groups: Teams) -> None:
    """What the first member of each group holds."""
    a = w.read(scope, vector(w.element()))
    w.emit(scope, f'"stablehlo.collective_broadcast"({a.name}) <{{{_CHANNEL}, replica_groups = {groups.text}}}> : '
           f"({a.type}) -> {a.type}", a.type, varies=a.varies - groups.axes)
