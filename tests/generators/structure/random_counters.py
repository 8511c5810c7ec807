"""Random programs of loops that count in unusual ways: integers of few bits that wrap around, steps other than one, any
comparison, bounds and steps behind converts, second counters, indices and branches computed from them."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import random
from itertools import count

from generators.random_layers import GROUPS, V, all_reduce

RANGES = {"i8": (-128, 128), "ui8": (0, 256), "i16": (-32768, 32768), "i32": (-2**31, 2**31), "ui32": (0, 2**32)}
_MOST_TRIPS = 6
_DIRECTIONS = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "NE": int.__ne__}


def wrapped(number: int, element: str) -> int:
    """What an integer type makes of a number.

    Example:
      >>> wrapped(130, "i8"), wrapped(-1, "ui8")
      (-126, 255)
    """
    low, end = RANGES[element]
    return (number - low) % (end - low) + low


def trips_of(start: int, bound: int, step: int, direction: str, element: str) -> int | None:
    """How often a loop runs, in wrapping arithmetic; None if that is more than a few times.

    Example:
      >>> trips_of(250, 3, 3, "GT", "ui8"), trips_of(0, 3, 1, "LT", "i8")
      (2, 3)
    """
    number, trips = start, 0
    while _DIRECTIONS[direction](number, bound):  # Ends: after a few iterations.
        number, trips = wrapped(number + step, element), trips + 1
        if trips > _MOST_TRIPS:
            return None
    return trips


class _CounterBlock:
    """Lines of one block, and the values that can be read in it.

    Args:
      rng: decides.
      names: numbers for names that are used once.
      pool: vectors of the blocks around.
      counters: names and element types of the counters around.
    """

    def __init__(self, rng: random.Random, names: count[int], pool: list[str], counters: list[tuple[str, str]]) -> None:
        self.rng, self.names, self.pool, self.counters = rng, names, list(pool), list(counters)
        self.lines: list[str] = []

    def line(self, text: str, type_: str) -> str:
        """Writes ``%v = stablehlo.text : type`` and returns the name."""
        name = f"%v{next(self.names)}"
        self.lines.append(f"{name} = stablehlo.{text} : {type_}")
        return name

    def number(self, value: int, element: str) -> str:
        """A constant, now and then behind a convert from a type in which it may have been another number."""
        other = self.rng.choice((element, element, *RANGES))
        low, end = RANGES[other]
        size = RANGES[element][1] - RANGES[element][0]
        alike = [each for each in (value, value + size, value - size) if low <= each < end]
        if other == element or not alike:
            return self.line(f"constant dense<{value}>", f"tensor<{element}>")
        made = self.line(f"constant dense<{alike[self.rng.randrange(len(alike))]}>", f"tensor<{other}>")
        return self.line(f"convert {made}", f"(tensor<{other}>) -> tensor<{element}>")

    def reduced(self, value: str, type_: str = V) -> str:
        """An all-reduce, scaled so that values stay small."""
        tag, name = next(self.names), f"%v{next(self.names)}"
        self.lines.append(f"{name} = {all_reduce(value, tag, self.rng.choice(GROUPS), 'add', type_)}")
        return self.line(f"multiply {name}, {self.line('constant dense<0.25>', type_)}", type_)

    def statement(self) -> None:
        """A vector more."""
        rng = self.rng
        what = rng.choice(("tanh", "add", "subtract", "reduce", "reduce", "reduce", "counter", "row", "branch", "barrier"))
        one, other = rng.choice(self.pool[-5:]), rng.choice(self.pool)
        if what == "reduce":
            made = self.reduced(one)
        elif what == "tanh":
            made = self.line(f"tanh {one}", V)
        elif what == "barrier":
            name = f"%v{next(self.names)}"
            self.lines.append(f"{name}:2 = stablehlo.optimization_barrier {one}, {other} : {V}, {V}")
            made = f"{name}#{rng.randrange(2)}"
        elif what == "counter" and self.counters:
            made = self._counted()
        elif what == "row" and self.counters:
            made = self._row()
        elif what == "branch" and self.counters:
            made = self._branch(one, other)
        else:
            made = self.line(f"{what if what in ('add', 'subtract') else 'add'} {one}, {other}", V)
        self.pool.append(made)

    def index(self) -> tuple[str, str]:
        """An integer computed from a counter, and its element type."""
        name, element = self.rng.choice(self.counters)
        for _ in range(self.rng.randrange(3)):
            what = self.rng.choice(("add", "subtract", "multiply", "minimum", "maximum", "remainder", "divide", "and"))
            other = self.number(self.rng.choice((1, 2, 3, 5, 100)), element)
            pair = (other, name) if what == "subtract" and self.rng.random() < 0.5 else (name, other)
            name = self.line(f"{what} {pair[0]}, {pair[1]}", f"tensor<{element}>")
        if self.rng.random() < 0.2:
            to = self.rng.choice(list(RANGES))
            name, element = self.line(f"convert {name}", f"(tensor<{element}>) -> tensor<{to}>"), to
        return name, element

    def _counted(self) -> str:
        name, element = self.index()
        number = self.line(f"convert {name}", f"(tensor<{element}>) -> tensor<f32>")
        wide = self.line(f"broadcast_in_dim {number}, dims = []", f"(tensor<f32>) -> {V}")
        return self.line(f"tanh {wide}", V)

    def _row(self) -> str:
        name, element = self.index()
        zero = self.line("constant dense<0>", f"tensor<{element}>")
        row = self.line(f"dynamic_slice %w, {name}, {zero}, sizes = [1, 8]",
                        f"(tensor<4x8xf32>, tensor<{element}>, tensor<{element}>) -> tensor<1x8xf32>")
        return self.line(f"reshape {row}", f"(tensor<1x8xf32>) -> {V}")

    def _branch(self, one: str, other: str) -> str:
        """A case on a counter, which may be out of range; or an if on a comparison of it."""
        name, element = self.index()
        ends = []
        for value in (one, other, one):
            inner = _CounterBlock(self.rng, self.names, self.pool, self.counters)
            inner.pool.append(value)
            for _ in range(self.rng.randrange(3)):
                inner.statement()
            ends.append("\n".join([*inner.lines, f"stablehlo.return {inner.pool[-1]} : {V}"]))
        if self.rng.random() < 0.5:
            index = name if element == "i32" else self.line(f"convert {name}", f"(tensor<{element}>) -> tensor<i32>")
            return self._with_regions(f'"stablehlo.case"({index})', ends, "tensor<i32>")
        number = self.number(self.rng.choice((0, 1, 2, 3)), element)
        sign = "UNSIGNED" if element.startswith("u") else "SIGNED"
        holds = self.line(f"compare {self.rng.choice(list(_DIRECTIONS))}, {name}, {number}, {sign}",
                          f"(tensor<{element}>, tensor<{element}>) -> tensor<i1>")
        return self._with_regions(f'"stablehlo.if"({holds})', ends[:2], "tensor<i1>")

    def _with_regions(self, head: str, ends: list[str], type_: str) -> str:
        name = f"%v{next(self.names)}"
        regions = ", ".join(f"{{\n{end}\n}}" for end in ends)
        self.lines.append(f"{name} = {head} ({regions}) : ({type_}) -> {V}")
        return name


def _counting(rng: random.Random) -> tuple[str, int, int, int, str]:
    """Element type, start, bound, step and comparison of a counter that ends after a few iterations."""
    while True:  # Ends: with probability 1; about every fourth draw ends after a few iterations.
        element = rng.choice(("i8", "ui8", "ui8", "i32", "i32", "ui32", "i16"))
        low, end = RANGES[element]
        start = wrapped(rng.choice((0, 0, 0, 1, -1, -1, end - 2, low, 44)), element)
        step, direction = rng.choice((1, 1, 1, 2, 3, -1, -1, -2)), rng.choice(("LT", "LT", *_DIRECTIONS))
        bound = wrapped(start + step * rng.choice((0, 1, 2, 3, 4, 4, 5)) + rng.choice((0, 0, 1)), element)
        if trips_of(start, bound, step, direction, element) is not None:
            return element, start, bound, step, direction


def _loop(body: _CounterBlock, depth: int) -> None:
    """A loop of carried vectors, which may change places, and a stacked tensor."""
    rng, tag = body.rng, next(body.names)
    element, start, bound, step, direction = _counting(rng)
    first, by = body.number(start, element), body.number(step, element) if step > 0 else body.number(-step, element)
    limit = body.number(bound, element)
    second = rng.choice(("i8", "i32", "ui8"))
    other_start = body.number(wrapped(rng.choice((0, 0, 1, 126, 254)), second), second)
    other_step = body.number(rng.choice((1, 1, 2, 3)), second)
    trips = trips_of(start, bound, step, direction, element) or 1
    vectors, rows = rng.randint(1, 3), trips if rng.random() < 0.7 else rng.randint(1, 4)
    stacked = f"tensor<{rows}x8xf32>"
    zero = body.line("constant dense<0.0>", V)
    start_rows = body.line(f"broadcast_in_dim {rng.choice([zero, zero, *body.pool])}, dims = [1]", f"({V}) -> {stacked}")
    slots = [f"%c{tag}_{number}" for number in range(vectors)]
    carried = [f"%i{tag} = {first}", f"%j{tag} = {other_start}", f"%k{tag} = {limit}",
               *(f"{slot} = {rng.choice([zero, *body.pool])}" for slot in slots), f"%s{tag} = {start_rows}"]
    types = [f"tensor<{element}>", f"tensor<{second}>", f"tensor<{element}>", *([V] * vectors), stacked]
    inside = _CounterBlock(rng, body.names, [*body.pool, *slots], [*body.counters, (f"%i{tag}", element), (f"%j{tag}", second)])
    for _ in range(rng.randint(1, 5)):
        inside.statement()
    if depth and rng.random() < 0.6:
        _loop(inside, depth - 1)
    ends = [rng.choice([*inside.pool[-4:], *slots]) for _ in slots]
    ends = [inside.line(f"add {slot}, {end}", V) if rng.random() < 0.6 else end for slot, end in zip(slots, ends, strict=True)]
    row = inside.line(f"reshape {rng.choice(inside.pool[-3:])}", f"({V}) -> tensor<1x8xf32>")
    at, kind = (_iteration(inside, f"%i{tag}", element, start, step, trips), element) if rng.random() < 0.7 else inside.index()
    none = inside.line("constant dense<0>", f"tensor<{kind}>")
    ends.append(inside.line(f"dynamic_update_slice %s{tag}, {row}, {at}, {none}",
                            f"({stacked}, tensor<1x8xf32>, tensor<{kind}>, tensor<{kind}>) -> {stacked}"))
    after = inside.line(f"{'add' if step > 0 else 'subtract'} %i{tag}, {by}", f"tensor<{element}>")
    other = inside.line(f"add %j{tag}, {other_step}", f"tensor<{second}>")
    held = rng.choice((f"%k{tag}", limit))
    left, right = (f"%i{tag}", held)
    if rng.random() < 0.3:
        left, right, direction = right, left, {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}[direction]
    sign = "UNSIGNED" if element.startswith("u") else "SIGNED"
    body.lines.append(f"%o{tag}:{len(types)} = stablehlo.while({', '.join(carried)}) : {', '.join(types)}\ncond {{\n"
                      f"%go{tag} = stablehlo.compare {direction}, {left}, {right}, {sign} : (tensor<{element}>, tensor<{element}>) -> tensor<i1>\n"
                      f"stablehlo.return %go{tag} : tensor<i1>\n}} do {{\n" + "\n".join(inside.lines) +
                      f"\nstablehlo.return {', '.join([after, other, f'%k{tag}', *ends])} : {', '.join(types)}\n}}")
    body.counters += [(f"%o{tag}#0", element), (f"%o{tag}#1", second)]
    body.pool += [f"%o{tag}#{number + 3}" for number in range(vectors)]
    _behind(body, f"%o{tag}#{vectors + 3}", stacked, rows)


def _iteration(inside: _CounterBlock, counter: str, element: str, start: int, step: int, trips: int) -> str:
    """Which iteration it is, counted from the first or from the last: exact where numbers do not wrap."""
    type_ = f"tensor<{element}>"
    first = inside.number(start, element)
    done = inside.line(f"subtract {counter}, {first}" if step > 0 else f"subtract {first}, {counter}", type_)
    if abs(step) > 1:
        done = inside.line(f"divide {done}, {inside.number(abs(step), element)}", type_)
    if inside.rng.random() < 0.3:
        done = inside.line(f"subtract {inside.number(trips - 1, element)}, {done}", type_)
    return done


def _behind(body: _CounterBlock, rows: str, stacked: str, count_: int) -> None:
    """The stacked rows, often reduced, added to others, and summed up to a vector."""
    rng = body.rng
    if rng.random() < 0.5:
        wide = body.line(f"broadcast_in_dim {rng.choice(body.pool)}, dims = [1]", f"({V}) -> {stacked}")
        rows = body.line(f"add {wide}, {rows}", stacked)
    if rng.random() < 0.6:
        rows = body.reduced(rows, stacked)
    start = rng.randrange(count_)
    one = body.line(f"slice {rows} [{start}:{start + 1}, 0:8]", f"({stacked}) -> tensor<1x8xf32>")
    body.pool.append(body.line(f"reshape {one}", f"(tensor<1x8xf32>) -> {V}"))


def random_counters(rng: random.Random) -> str:
    """The text of a module over four partitions: vectors, rows that loops read, and two results of the last values.

    Args:
      rng: decides.

    Example:
      >>> random_counters(random.Random(1)) == random_counters(random.Random(1))
      True
    """
    body = _CounterBlock(rng, count(), ["%x", "%y"], [])
    for _ in range(rng.randint(1, 2)):
        _loop(body, rng.randint(0, 2))
    results = [body.pool[-1], rng.choice(body.pool), rng.choice(body.pool)]
    return ("module @counters attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
            f"func.func public @main(%x: {V}, %y: {V}, %w: tensor<4x8xf32>) -> ({V}, {V}, {V}) {{\n" + "\n".join(body.lines) +
            f"\nreturn {', '.join(results)} : {V}, {V}, {V}\n}}\n}}\n")
