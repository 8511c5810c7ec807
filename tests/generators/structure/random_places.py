"""Random programs of devices that find their place: masks, slices and permutes by integers computed from the device's id, in
integer types that wrap around, through private functions, in branches and loops."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import random
from itertools import count

import numpy as np

_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
_GROUPS = {4: ("[[0, 1, 2, 3]]", "[[3, 1, 0, 2]]", "[[0, 1], [2, 3]]", "[[2, 0], [1, 3]]"),
           6: ("[[0, 1, 2, 3, 4, 5]]", "[[0, 2, 4], [1, 3, 5]]", "[[5, 0], [3, 4], [2, 1]]")}
_ELEMENTS = ("f32", "f32", "f32", "i32", "ui8", "bf16", "complex<f32>")
_INTEGERS = ("i32", "i32", "ui32", "i8", "ui8", "i64")
_ZERO = {"f32": "0.0", "bf16": "0.0", "i32": "0", "ui8": "0", "complex<f32>": "(0.0,0.0)"}
_ONE = {"f32": "1.0", "bf16": "1.0", "i32": "1", "ui8": "1", "complex<f32>": "(1.0,0.0)"}
_SIZE = 12


def groups_text(rows: str) -> str:
    """Replica groups as an attribute.

    Example:
      >>> groups_text("[[0, 1], [2, 3]]")
      'replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>'
    """
    return f"replica_groups = dense<{rows}> : tensor<{rows.count('[') - 1}x{len(rows.split(']')[0].split(','))}xi64>"


class _PlaceLines:
    """Lines of one block, and what can be read in it.

    Args:
      rng: decides.
      names: numbers for names that are used once.
      devices: how many there are.
      element: the element type of the values.
      pool: values of the blocks around.
      places: integers of the blocks around, with their element types.
    """

    def __init__(self, rng: random.Random, names: count[int], devices: int, element: str, pool: list[str],
                 places: list[tuple[str, str]]) -> None:
        self.rng, self.names, self.devices, self.element = rng, names, devices, element
        self.pool, self.places = list(pool), list(places)
        self.vector = f"tensor<{_SIZE}x{element}>"
        self.lines: list[str] = []

    def line(self, text: str, type_: str) -> str:
        """Writes ``%v = text : type`` and returns the name."""
        name = f"%v{next(self.names)}"
        self.lines.append(f"{name} = {text} : {type_}")
        return name

    def constant(self, number: object, type_: str) -> str:
        """A constant."""
        return self.line(f"stablehlo.constant dense<{number}>", type_)

    def inside(self) -> _PlaceLines:
        """Lines of a region."""
        return type(self)(self.rng, self.names, self.devices, self.element, self.pool, self.places)

    # ---- integers

    def place(self, scale: int = 1) -> tuple[str, str]:
        """An integer computed from the device's id, often its place in a row times a number."""
        rng = self.rng
        if self.places and rng.random() < 0.2:
            return rng.choice(self.places)
        kind = rng.choice(_INTEGERS)
        own = self.line("stablehlo.partition_id", "tensor<ui32>")
        name, type_ = (own if kind == "ui32" else self.line(f"stablehlo.convert {own}", f"(tensor<ui32>) -> tensor<{kind}>")), f"tensor<{kind}>"
        if rng.random() < 0.15:
            name = self.line(f"func.call @place_{kind}({name})", f"({type_}) -> {type_}")
        for _ in range(rng.choice((0, 0, 1, 2))):
            name = self._step(name, type_, kind)
        if rng.random() < 0.3:
            name = self._looked_up(name, kind)
        if scale > 1 and rng.random() < 0.8:
            name = self.line(f"stablehlo.multiply {name}, {self.constant(scale, type_)}", type_)
        self.places.append((name, kind))
        return name, kind

    def _step(self, name: str, type_: str, kind: str) -> str:
        rng = self.rng
        what = rng.choice(("add", "subtract", "multiply", "divide", "remainder", "and", "xor", "or", "minimum", "maximum", "select",
                           "clamp", "negate", "sign", "abs"))
        number = self.constant(rng.choice((1, 1, 2, 3, 4, 5, 7, 100)), type_)
        if what in ("negate", "sign", "abs"):
            return self.line(f"stablehlo.{what} {name}", type_) if what == "negate" or not kind.startswith("u") else name
        if what == "clamp":
            return self.line(f"stablehlo.clamp {self.constant(rng.choice((0, 1)), type_)}, {name}, {number}", type_)
        if what == "select":
            return self.line(f"stablehlo.select {self.mask(name, kind)}, {name}, {number}", f"tensor<i1>, {type_}")
        if what in ("subtract", "divide", "remainder") and rng.random() < 0.3 and what == "subtract":
            return self.line(f"stablehlo.subtract {number}, {name}", type_)
        return self.line(f"stablehlo.{what} {name}, {number}", type_)

    def _looked_up(self, name: str, kind: str) -> str:
        """The entry of a table, which may be a permutation of places."""
        rng, size = self.rng, self.devices
        table = rng.sample(range(size), size) if rng.random() < 0.7 else [rng.randrange(size) for _ in range(size)]
        held = self.constant(table, f"tensor<{size}x{kind}>")
        entry = self.line(f"stablehlo.dynamic_slice {held}, {name}, sizes = [1]", f"(tensor<{size}x{kind}>, tensor<{kind}>) -> tensor<1x{kind}>")
        return self.line(f"stablehlo.reshape {entry}", f"(tensor<1x{kind}>) -> tensor<{kind}>")

    def looked_up_in_rows(self, name: str, kind: str, table: list[int], misread: bool) -> str:
        """The entry of a table that is one row of another, whose dimensions a broadcast puts in some order.

        Args:
          name: which entry.
          kind: its type.
          table: the entries.
          misread: whether these are the entries to one who does not put the dimensions in order, and others are right.
        """
        rng, size = self.rng, self.devices
        rows = rng.choice((2, 3, size))
        row, order = rng.randrange(rows), rng.sample(range(3), 2)
        shape = [1, 1, 1]
        shape[order[0]], shape[order[1]] = rows, size
        numbers = np.array([[rng.randrange(size) for _ in range(size)] for _ in range(rows)])
        chosen = tuple(slice(None) if d == order[1] else row if d == order[0] else 0 for d in range(3))
        if misread:
            numbers.reshape(shape)[chosen] = table
        else:
            numbers[row] = table
        held, one = self.constant(numbers.tolist(), f"tensor<{rows}x{size}x{kind}>"), f"tensor<{kind}>"
        starts = [self.constant(0, one)] * 3
        starts[order[0]], starts[order[1]] = self.constant(row, one), name
        wide = f"tensor<{'x'.join(map(str, shape))}x{kind}>"
        spread = self.line(f"stablehlo.broadcast_in_dim {held}, dims = {order}", f"(tensor<{rows}x{size}x{kind}>) -> {wide}")
        entry = self.line(f"stablehlo.dynamic_slice {spread}, {', '.join(starts)}, sizes = [1, 1, 1]",
                          f"({wide}, {one}, {one}, {one}) -> tensor<1x1x1x{kind}>")
        return self.line(f"stablehlo.reshape {entry}", f"(tensor<1x1x1x{kind}>) -> {one}")

    def mask(self, name: str, kind: str) -> str:
        """A truth value of an integer."""
        number = self.constant(self.rng.choice((0, 0, 1, 2, self.devices - 1)), f"tensor<{kind}>")
        direction = self.rng.choice(("EQ", "EQ", "EQ", "EQ", "NE", "LT", "GE"))
        sign = "UNSIGNED" if kind.startswith("u") else "SIGNED"
        return self.line(f"stablehlo.compare {direction}, {name}, {number}, {sign}", f"(tensor<{kind}>, tensor<{kind}>) -> tensor<i1>")

    # ---- values

    def statement(self, depth: int = 1) -> None:
        """A value more."""
        options = [self.masked, self.masked, self.gathered, self.gathered, self.sliced_sum, self.sliced_sum, self.permutes, self.plain]
        options += [self.branch, self.loop] if depth else []
        made = self.rng.choice(options)()
        self.pool.append(made)

    def read(self) -> str:
        """Some value."""
        return self.rng.choice(self.pool[-4:])

    def groups(self) -> str:
        """Replica groups."""
        return self.rng.choice(_GROUPS[self.devices])

    def plain(self) -> str:
        """A value by arithmetic."""
        rng = self.rng
        if rng.random() < 0.3:
            return self.line(f"stablehlo.negate {self.read()}", self.vector)
        return self.line(f"stablehlo.{rng.choice(('add', 'subtract'))} {self.read()}, {self.read()}", self.vector)

    def reduced(self, value: str, op: str, type_: str, groups: str) -> str:
        """An all-reduce."""
        one, tag = f"tensor<{self.element}>", next(self.names)
        return self.line(f'"stablehlo.all_reduce"({value}) <{{{_CHANNEL}, {groups_text(groups)}, use_global_device_ids}}> ({{ '
                         f"^bb0(%l{tag}: {one}, %r{tag}: {one}): %s{tag} = stablehlo.{op} %l{tag}, %r{tag} : {one} stablehlo.return %s{tag} : "
                         f"{one} }})", f"({type_}) -> {type_}")

    def masked(self) -> str:
        """A reduction of what some devices hold."""
        rng = self.rng
        mask = self.mask(*self.place())
        op = rng.choice(("add", "add", "add", "multiply"))
        neutral = self.constant((_ZERO if (op == "add") != (rng.random() < 0.1) else _ONE)[self.element], self.vector)
        if rng.random() < 0.25:
            number = self.line(f"stablehlo.convert {mask}", f"(tensor<i1>) -> tensor<{self.element}>")
            wide = self.line(f"stablehlo.broadcast_in_dim {number}, dims = []", f"(tensor<{self.element}>) -> {self.vector}")
            kept = self.line(f"stablehlo.multiply {self.read()}, {wide}", self.vector)
        else:
            pair = [self.read(), neutral]
            if rng.random() < 0.5:
                pair.reverse()
            kept = self.line(f"stablehlo.select {mask}, {', '.join(pair)}", f"tensor<i1>, {self.vector}")
        return self.reduced(kept, op, self.vector, self.groups())

    def cut(self, value: str, full: int, size: int, scale: int) -> str:
        """A slice of a long vector, at a place or at a number; scaled up to a whole vector again."""
        rng, e = self.rng, self.element
        whole, part = f"tensor<{full}x{e}>", f"tensor<{size}x{e}>"
        if rng.random() < 0.3:
            first = rng.choice((0, size if 2 * size <= full else 0, full - size))
            made = self.line(f"stablehlo.slice {value} [{first}:{first + size}]", f"({whole}) -> {part}")
        else:
            name, kind = self.place(scale)
            made = self.line(f"stablehlo.dynamic_slice {value}, {name}, sizes = [{size}]", f"({whole}, tensor<{kind}>) -> {part}")
        return made if size == _SIZE else self.whole(made, size)

    def whole(self, value: str, size: int) -> str:
        """A vector that begins with a shorter one, and goes on with ones."""
        part = f"tensor<{size}x{self.element}>"
        rest = self.constant(_ONE[self.element], f"tensor<{_SIZE - size}x{self.element}>")
        return self.line(f"stablehlo.concatenate {value}, {rest}, dim = 0", f"({part}, tensor<{_SIZE - size}x{self.element}>) -> {self.vector}")

    def gathered(self) -> str:
        """A gather of which each device reads a part, or two."""
        groups = self.groups()
        members = len(groups.split("]")[0].split(","))
        full = members * _SIZE
        name = self.line(f'"stablehlo.all_gather"({self.read()}) <{{all_gather_dim = 0 : i64, {_CHANNEL}, {groups_text(groups)}, '
                         "use_global_device_ids}>", f"({self.vector}) -> tensor<{full}x{self.element}>")
        size = self.rng.choice((_SIZE, _SIZE, _SIZE, 4, 1))
        made = self.cut(name, full, size, self.rng.choice((_SIZE, _SIZE, size)))
        if self.rng.random() < 0.3:
            made = self.line(f"stablehlo.add {made}, {self.cut(name, full, size, _SIZE)}", self.vector)
        return made

    def sliced_sum(self) -> str:
        """A reduction of which each device keeps a slice, perhaps of what is computed from it."""
        rng, groups = self.rng, self.groups()
        members = len(groups.split("]")[0].split(","))
        size = _SIZE // rng.choice((members, members, 2, 3))
        total = self.reduced(self.read(), rng.choice(("add", "add", "multiply")), self.vector, groups)
        for _ in range(rng.choice((0, 0, 1, 2))):
            total = self.line(f"stablehlo.{rng.choice(('add', 'multiply'))} {total}, {self.constant(_ONE[self.element], self.vector)}", self.vector)
        return self.cut(total, _SIZE, size, size)

    def permutes(self) -> str:
        """One to three permutes of a value or of each other; some devices receive nothing."""
        rng, value, total = self.rng, self.read(), None
        for _ in range(rng.randint(1, 3)):
            targets = rng.sample(range(self.devices), rng.randint(0, self.devices))
            sources = rng.sample(range(self.devices), len(targets))
            if rng.random() < 0.5 and targets:
                targets, sources = targets[:1], [0]
            pairs = [[a, b] for a, b in zip(sources, targets, strict=True)]
            made = self.line(f'"stablehlo.collective_permute"({value}) <{{{_CHANNEL}, source_target_pairs = dense<{pairs if pairs else ""}> : '
                             f"tensor<{len(pairs)}x2xi64>}}>", f"({self.vector}) -> {self.vector}")
            total = made if total is None else self.line(f"stablehlo.add {total}, {made}", self.vector)
            value = made if rng.random() < 0.3 else value
        return total or value

    def branch(self) -> str:
        """An if that all devices decide alike, with collectives and slices in it."""
        ends = []
        for _ in range(2):
            inner = self.inside()
            for _ in range(self.rng.randrange(3)):
                inner.statement(0)
            ends.append("\n".join([*inner.lines, f"stablehlo.return {inner.pool[-1]} : {self.vector}"]))
        name = f"%v{next(self.names)}"
        self.lines.append(f'{name} = "stablehlo.if"(%p) ({{\n{ends[0]}\n}}, {{\n{ends[1]}\n}}) : (tensor<i1>) -> {self.vector}')
        return name

    def loop(self) -> str:
        """Three iterations; the counter is a place too."""
        rng, tag, kind = self.rng, next(self.names), self.rng.choice(("i32", "i8"))
        type_ = f"tensor<{kind}>"
        zero, one, three = (self.constant(number, type_) for number in (0, 1, 3))
        inner = self.inside()
        inner.pool.append(f"%a{tag}")
        inner.places.append((f"%i{tag}", kind))
        for _ in range(rng.randint(1, 3)):
            inner.statement(0)
        after = inner.line(f"stablehlo.add %i{tag}, {one}", type_)
        end = inner.pool[-1] if rng.random() < 0.5 else inner.line(f"stablehlo.add %a{tag}, {inner.pool[-1]}", self.vector)
        self.lines.append(f"%o{tag}:2 = stablehlo.while(%i{tag} = {zero}, %a{tag} = {self.read()}) : {type_}, {self.vector}\ncond {{\n"
                          f"%g{tag} = stablehlo.compare LT, %i{tag}, {three}, SIGNED : ({type_}, {type_}) -> tensor<i1>\nstablehlo.return %g{tag} : "
                          f"tensor<i1>\n}} do {{\n" + "\n".join(inner.lines) + f"\nstablehlo.return {after}, {end} : {type_}, {self.vector}\n}}")
        return f"%o{tag}#1"


class _TableLines(_PlaceLines):
    """Lines of devices that find their place in one table, which a broadcast has transposed or not."""

    def place(self, scale: int = 1) -> tuple[str, str]:
        """An entry of the table, often the device's place among all."""
        rng = self.rng
        kind = rng.choice(_INTEGERS)
        own, type_ = self.line("stablehlo.partition_id", "tensor<ui32>"), f"tensor<{kind}>"
        name = own if kind == "ui32" else self.line(f"stablehlo.convert {own}", f"(tensor<ui32>) -> {type_}")
        entry = self.looked_up_in_rows(name, kind, list(range(self.devices)), rng.random() < 0.6)
        if scale > 1:
            entry = self.line(f"stablehlo.multiply {entry}, {self.constant(scale, type_)}", type_)
        return entry, kind

    def groups(self) -> str:
        """All devices."""
        return _GROUPS[self.devices][0]


def random_tables(rng: random.Random) -> str:
    """The text of a module whose devices find their place in tables that are broadcast, as for ``random_places``."""
    return random_places(rng, _TableLines)


def random_places(rng: random.Random, lines: type[_PlaceLines] = _PlaceLines) -> str:
    """The text of a module of 4 or 6 partitions.

    Args:
      rng: decides.
      lines: writes the lines.

    Example:
      >>> random_places(random.Random(1)) == random_places(random.Random(1))
      True
    """
    names, devices, element = count(), rng.choice((4, 4, 6)), rng.choice(_ELEMENTS)
    body = lines(rng, names, devices, element, ["%x", "%y"], [])
    for _ in range(rng.randint(2, 6)):
        body.statement()
    functions = []
    for kind in dict.fromkeys(_INTEGERS):
        inner = _PlaceLines(rng, names, devices, element, [], [])
        made = inner._step("%id", f"tensor<{kind}>", kind)
        functions += [f"func.func private @place_{kind}(%id: tensor<{kind}>) -> tensor<{kind}> {{", *inner.lines, f"return {made} : tensor<{kind}>", "}"]
    results, vector = body.pool[-3:], body.vector
    return "\n".join([f"module @places attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{",
                      f"func.func public @main(%x: {vector}, %y: {vector}, %q: tensor<i1>) -> ({', '.join([vector] * 3)}) {{",
                      f'%p = "stablehlo.all_reduce"(%q) <{{{_CHANNEL}, {groups_text(_GROUPS[devices][0])}, use_global_device_ids}}> ({{ ^bb0(%pl: tensor<i1>, '
                      "%pr: tensor<i1>): %ps = stablehlo.or %pl, %pr : tensor<i1> stablehlo.return %ps : tensor<i1> }) : (tensor<i1>) -> tensor<i1>",
                      *body.lines, f"return {', '.join(results)} : {', '.join([vector] * 3)}", "}", *functions, "}"]) + "\n"
