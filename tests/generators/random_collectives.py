"""Collectives of random programs; each stands only where all members of its groups get equally often."""

from __future__ import annotations

from generators.random_types import COMBINERS, WIDER
from generators.random_writer import Frame, Teams, Term, Writer, element_of, scalar, shape_of, with_element, with_shape


def allowed_groups(w: Writer, scope: Frame) -> list[Teams]:
    """The groups whose members get here equally often."""
    return [groups for groups in w.groups if not groups.axes & scope.varies]


def collective(w: Writer, scope: Frame) -> None:
    """An all-reduce, or one of its neighbours; nothing if no groups are allowed."""
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


def _attributes(w: Writer, groups: Teams, global_ids: bool = True) -> str | None:
    """One way to write groups; None if the form of the program has none."""
    ways = w.form.attributes(groups, global_ids)
    return w.pick(ways) if ways else None


def reduced(w: Writer, scope: Frame, operands: list[Term], name: str, groups: Teams,
            result_element: str | None = None) -> list[Term]:
    """An all-reduce of values of one type; it may add up in a wider type (a promoting reducer)."""
    kind, count = operands[0].type, len(operands)
    element = result_element or element_of(kind)
    made_kind = with_element(kind, element)
    result, i = w.name(), scope.indent
    types, made_types = ", ".join([kind] * count), ", ".join([made_kind] * count)
    scope.lines += [f'{i}{result}{f":{count}" if count > 1 else ""} = "stablehlo.all_reduce"('
                    f"{', '.join(v.name for v in operands)}) <{{{_attributes(w, groups)}}}> ({{",
                    *_reducer(scope, name, element),
                    f"{i}}}) : ({types}) -> {made_kind if count == 1 else f'({made_types})'}"]
    made = [Term(f"{result}#{n}" if count > 1 else result, made_kind, v.varies - groups.axes)
            for n, v in enumerate(operands)]
    scope.values += made
    return made


def all_reduce(w: Writer, scope: Frame, groups: Teams) -> None:
    """An all-reduce of one to three values, often divided by a number afterwards; sometimes one that promotes."""
    kind = w.kind()
    element = element_of(kind)
    operands = [w.read(scope, kind) for _ in range(1 + w.choices.randrange(3) if w.chance(3) else 1)]
    name = "add" if w.straight and element != "i1" and w.chance(8) else w.pick(COMBINERS[element])
    wider = [other for other in WIDER.get(element, ()) if other in w.elements]
    if wider and name == "add" and w.chance(3):
        reduced(w, scope, operands, name, groups, wider[0])
        return
    made = reduced(w, scope, operands, name, groups)
    if element == "f32" and w.chance(5):
        factor = w.constant(scope, kind, "0.5")
        w.emit(scope, f"stablehlo.multiply {made[0].name}, {factor.name} : {kind}", kind, made[0])


def reduced_integer(w: Writer, scope: Frame, value: Term) -> Term:
    """The sum of a scalar integer over all devices; every device can decide by it."""
    return reduced(w, scope, [value], "add", w.groups[0])[0]


def _dimension(w: Writer, kind: str) -> int | None:
    """A dimension of a type that can be divided; None for scalars."""
    rank = len(shape_of(kind))
    return w.choices.randrange(rank) if rank else None


def gather_and_slice(w: Writer, scope: Frame, groups: Teams) -> None:
    """An all-gather, of which every device keeps the same part."""
    a = w.read(scope, w.kind())
    dim, attributes, shape = _dimension(w, a.type), _attributes(w, groups), list(shape_of(a.type))
    if dim is None or attributes is None or not shape[dim]:
        return
    members, size = len(groups.rows[0]), shape[dim]
    shape[dim] *= members
    whole = with_shape(a.type, *shape)
    all_of_it = w.emit(scope, f'"stablehlo.all_gather"({a.name}) <{{all_gather_dim = {dim} : i64, {attributes}}}> : '
                       f"({a.type}) -> {whole}", whole, varies=a.varies - groups.axes)
    first = w.choices.randrange(size * (members - 1) + 1)
    parts = ", ".join(f"{first}:{first + size}" if n == dim else f"0:{length}" for n, length in enumerate(shape))
    w.emit(scope, f"stablehlo.slice {all_of_it.name} [{parts}] : ({whole}) -> {a.type}", a.type, all_of_it)


def reduce_scatter(w: Writer, scope: Frame, groups: Teams) -> None:
    """A reduce-scatter along some dimension of some type."""
    kind = w.kind()
    dim = _dimension(w, kind)
    if dim is not None and shape_of(kind)[dim]:
        scattered(w, scope, kind, dim, w.pick(COMBINERS[element_of(kind)]), groups)


def scattered(w: Writer, scope: Frame, kind: str, dim: int, name: str, groups: Teams) -> Term:
    """As many values as members, one after the other along a dimension; each member adds up its own part."""
    members, shape, element = len(groups.rows[0]), list(shape_of(kind)), element_of(kind)
    shape[dim] *= members
    parts, whole = [w.read(scope, kind) for _ in range(members)], with_shape(kind, *shape)
    joined = w.emit(scope, f"stablehlo.concatenate {', '.join(part.name for part in parts)}, dim = {dim} : "
                    f"({', '.join([kind] * members)}) -> {whole}", whole, *parts)
    text = "\n".join([f'"stablehlo.reduce_scatter"({joined.name}) <{{scatter_dimension = {dim} : i64, '
                      f"{_attributes(w, groups)}}}> ({{", *_reducer(scope, name, element),
                      f"{scope.indent}}}) : ({whole}) -> {kind}"])
    return w.emit(scope, text, kind, varies=joined.varies | groups.axes)


def permute(w: Writer, scope: Frame, groups: Teams) -> None:
    """A ring, or a chain whose first member receives zeros."""
    a, attributes = w.read(scope, w.kind()), w.form.pairs(groups, w.chance(7))
    if attributes is not None:
        w.emit(scope, f'"stablehlo.collective_permute"({a.name}) <{{{attributes}}}> : ({a.type}) -> {a.type}', a.type,
               varies=a.varies | groups.axes)


def exchange(w: Writer, scope: Frame, groups: Teams) -> None:
    """An all-to-all, where the members divide a value; else a broadcast."""
    a, members, attributes = w.read(scope, w.kind()), len(groups.rows[0]), _attributes(w, groups, False)
    dim = _dimension(w, a.type)
    if dim is None or attributes is None or shape_of(a.type)[dim] % members or not shape_of(a.type)[dim]:
        broadcast(w, scope, groups)
        return
    w.emit(scope, f'"stablehlo.all_to_all"({a.name}) <{{split_dimension = {dim} : i64, concat_dimension = {dim} : i64, '
           f"split_count = {members} : i64, {attributes}}}> : ({a.type}) -> {a.type}", a.type,
           varies=a.varies | groups.axes)


def broadcast(w: Writer, scope: Frame, groups: Teams) -> None:
    """What the first member of each group holds."""
    a, attributes = w.read(scope, w.kind()), _attributes(w, groups, False)
    if attributes is not None:
        w.emit(scope, f'"stablehlo.collective_broadcast"({a.name}) <{{{attributes}}}> : ({a.type}) -> {a.type}', a.type,
               varies=a.varies - groups.axes)
