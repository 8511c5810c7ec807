"""Random SPMD programs, for checking that passes keep their meaning.

A program is a manual region over a small mesh: loops with accumulators, branches, private functions, device ids, mixed
groups, reductions used linearly and otherwise. It is always well-formed: collectives stand only where every device
passes equally often, so it never hangs. What differs between devices and what does not is tracked while it is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

WIDTH = 4
_FLOAT = f"tensor<{WIDTH}xf32>"
_SCALAR, _INT, _BOOL = "tensor<f32>", "tensor<i32>", "tensor<i1>"
MESHES = ((("x", 2),), (("x", 4),), (("x", 2), ("y", 2)), (("x", 2), ("y", 4)))


class Choices(Protocol):
    """Where decisions come from: ``random.Random`` or a hypothesis draw."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 to ``stop - 1``."""
        ...


@dataclass(frozen=True)
class _Value:
    """An SSA value: its name, its type, and whether it is the same on all devices of the mesh."""

    name: str
    type: str
    uniform: bool


@dataclass
class _Scope:
    """The values one can read, and the text written so far."""

    values: list[_Value]
    lines: list[str] = field(default_factory=list)
    indent: str = "      "


class _Writer:
    """Writes one program."""

    def __init__(self, choices: Choices, mesh: tuple[tuple[str, int], ...]) -> None:
        self.choices = choices
        self.mesh = mesh
        self.count = 0
        self.functions: list[str] = []
        self.groups = _all_groups(mesh)

    # ---- small helpers

    def pick(self, options: list) -> object:
        """One of some options."""
        return options[self.choices.randrange(len(options))]

    def chance(self, in_ten: int) -> bool:
        """True that many times in ten."""
        return self.choices.randrange(10) < in_ten

    def name(self) -> str:
        """A fresh SSA name."""
        self.count += 1
        return f"%v{self.count}"

    def emit(self, scope: _Scope, text: str, kind: str, uniform: bool) -> _Value:
        """Writes an op of one result."""
        value = _Value(self.name(), kind, uniform)
        scope.lines.append(f"{scope.indent}{value.name} = {text}")
        scope.values.append(value)
        return value

    def read(self, scope: _Scope, kind: str, uniform_only: bool = False) -> _Value:
        """Some value of a type; recent ones more often. A constant when there is none."""
        found = [v for v in scope.values if v.type == kind and (v.uniform or not uniform_only)]
        if not found:
            return self.constant(scope, kind)
        recent = found[-4:] if self.chance(7) else found
        value = self.pick(recent)
        assert isinstance(value, _Value)
        return value

    def constant(self, scope: _Scope, kind: str) -> _Value:
        """A constant of a type."""
        if kind == _BOOL:
            text = str(self.pick(["true", "false"]))
        elif kind == _INT:
            text = str(self.choices.randrange(4))
        else:
            text = str(self.pick(["0.0", "1.0", "0.5", "-2.0", "0.25"]))
        return self.emit(scope, f"stablehlo.constant dense<{text}> : {kind}", kind, True)

    # ---- ops

    def step(self, scope: _Scope, collective: bool, depth: int) -> None:
        """Writes one random op or construct."""
        simple = [self.binary, self.binary, self.unary, self.choose, self.move, self.integer]
        options = simple + ([self.all_reduce] * 4 if collective else [])
        if depth > 0:
            options += [self.loop, self.loop, self.branch, self.call]
        chosen = self.pick(options)
        if chosen in (self.all_reduce, *simple):
            chosen(scope)  # type: ignore[operator]
        else:
            chosen(scope, collective, depth)  # type: ignore[operator]

    def binary(self, scope: _Scope) -> None:
        """A sum, difference, product, maximum or quotient by a constant."""
        a = self.read(scope, _FLOAT)
        name = self.pick(["add", "add", "add", "subtract", "multiply", "maximum", "divide"])
        if name == "divide":
            b = self.emit(scope, f"stablehlo.constant dense<{self.pick(['2.0', '4.0', '-3.0'])}> : {_FLOAT}", _FLOAT,
                          True)
        else:
            b = self.read(scope, _FLOAT, uniform_only=name == "multiply" and self.chance(7))
        if self.chance(5) and name != "divide":
            a, b = b, a
        self.emit(scope, f"stablehlo.{name} {a.name}, {b.name} : {_FLOAT}", _FLOAT, a.uniform and b.uniform)

    def unary(self, scope: _Scope) -> None:
        """A linear or not linear function of one value."""
        a = self.read(scope, _FLOAT)
        name = self.pick(["negate", "negate", "tanh", "abs"])
        self.emit(scope, f"stablehlo.{name} {a.name} : {_FLOAT}", _FLOAT, a.uniform)

    def choose(self, scope: _Scope) -> None:
        """A select."""
        a, b = self.read(scope, _FLOAT), self.read(scope, _FLOAT)
        p = self.predicate(scope, uniform_only=self.chance(6))
        self.emit(scope, f"stablehlo.select {p.name}, {a.name}, {b.name} : {_BOOL}, {_FLOAT}", _FLOAT,
                  a.uniform and b.uniform and p.uniform)

    def predicate(self, scope: _Scope, uniform_only: bool) -> _Value:
        """A boolean scalar."""
        a = self.read(scope, _INT, uniform_only)
        b = self.constant(scope, _INT)
        direction = self.pick(["LT", "EQ", "GE"])
        return self.emit(scope, f"stablehlo.compare {direction}, {a.name}, {b.name}, SIGNED : ({_INT}, {_INT}) -> "
                         f"{_BOOL}", _BOOL, a.uniform)

    def move(self, scope: _Scope) -> None:
        """An op that moves elements: reverse, slice and pad, update of a slice, a sum spread out again."""
        a = self.read(scope, _FLOAT)
        kind = self.choices.randrange(4)
        if kind == 0:
            self.emit(scope, f"stablehlo.reverse {a.name}, dims = [0] : {_FLOAT}", _FLOAT, a.uniform)
        elif kind == 1:
            part = self.emit(scope, f"stablehlo.slice {a.name} [1:3] : ({_FLOAT}) -> tensor<2xf32>", "tensor<2xf32>",
                             a.uniform)
            zero = self.emit(scope, f"stablehlo.constant dense<{self.pick(['0.0', '0.0', '1.0'])}> : {_SCALAR}", _SCALAR,
                             True)
            self.emit(scope, f"stablehlo.pad {part.name}, {zero.name}, low = [1], high = [1], interior = [0] : "
                      f"(tensor<2xf32>, {_SCALAR}) -> {_FLOAT}", _FLOAT, a.uniform)
        elif kind == 2:
            part = self.emit(scope, f"stablehlo.slice {a.name} [0:2] : ({_FLOAT}) -> tensor<2xf32>", "tensor<2xf32>",
                             a.uniform)
            base, index = self.read(scope, _FLOAT), self.read(scope, _INT, uniform_only=self.chance(6))
            self.emit(scope, f"stablehlo.dynamic_update_slice {base.name}, {part.name}, {index.name} : "
                      f"({_FLOAT}, tensor<2xf32>, {_INT}) -> {_FLOAT}", _FLOAT,
                      a.uniform and base.uniform and index.uniform)
        else:
            self.sum_and_spread(scope, a)

    def sum_and_spread(self, scope: _Scope, a: _Value) -> None:
        """The sum of all elements, on every element."""
        zero = self.emit(scope, f"stablehlo.constant dense<0.0> : {_SCALAR}", _SCALAR, True)
        total = self.emit(scope, f"stablehlo.reduce({a.name} init: {zero.name}) applies stablehlo.add across dimensions"
                          f" = [0] : ({_FLOAT}, {_SCALAR}) -> {_SCALAR}", _SCALAR, a.uniform)
        self.emit(scope, f"stablehlo.broadcast_in_dim {total.name}, dims = [] : ({_SCALAR}) -> {_FLOAT}", _FLOAT,
                  a.uniform)

    def integer(self, scope: _Scope) -> None:
        """A new integer, sometimes one that differs between devices."""
        if self.chance(4):
            raw = self.name()
            scope.lines.append(f"{scope.indent}{raw} = stablehlo.partition_id : tensor<ui32>")
            self.emit(scope, f"stablehlo.convert {raw} : (tensor<ui32>) -> {_INT}", _INT, False)
            return
        a, b = self.read(scope, _INT), self.constant(scope, _INT)
        self.emit(scope, f"stablehlo.add {a.name}, {b.name} : {_INT}", _INT, a.uniform)

    def all_reduce(self, scope: _Scope) -> None:
        """A reduction over some groups."""
        a = self.read(scope, _FLOAT)
        groups, whole = self.pick(self.groups)  # type: ignore[misc]
        kind = self.pick(["add", "add", "add", "add", "maximum"])
        rows = [list(row) for row in groups]
        value = _Value(self.name(), _FLOAT, whole or a.uniform)
        i = scope.indent
        scope.lines += [
            f'{i}{value.name} = "stablehlo.all_reduce"({a.name}) <{{channel_handle = #stablehlo.channel_handle<handle = '
            f"1, type = 0>, replica_groups = dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>, "
            "use_global_device_ids}> ({",
            f"{i}^bb0(%left: {_SCALAR}, %right: {_SCALAR}):",
            f"{i}  %both = stablehlo.{kind} %left, %right : {_SCALAR}",
            f"{i}  stablehlo.return %both : {_SCALAR}",
            f"{i}}}) : ({_FLOAT}) -> {_FLOAT}"]
        scope.values.append(value)
        if self.chance(6):
            factor = self.emit(scope, f"stablehlo.constant dense<0.5> : {_FLOAT}", _FLOAT, True)
            self.emit(scope, f"stablehlo.multiply {value.name}, {factor.name} : {_FLOAT}", _FLOAT, value.uniform)

    # ---- regions

    def loop(self, scope: _Scope, collective: bool, depth: int) -> None:
        """A loop with a counter and up to three accumulators."""
        uniform_trips = collective or self.chance(5)
        inits = [self.read(scope, _FLOAT) for _ in range(1 + self.choices.randrange(3))]
        if self.chance(6):
            inits[0] = self.emit(scope, f"stablehlo.constant dense<0.0> : {_FLOAT}", _FLOAT, True)
        start = self.emit(scope, f"stablehlo.constant dense<0> : {_INT}", _INT, True)
        bound = self.emit(scope, f"stablehlo.constant dense<{1 + self.choices.randrange(4)}> : {_INT}", _INT, True)
        if self.chance(3):
            bound = self.read(scope, _INT, uniform_only=uniform_trips)
        result, counter = self.name(), _Value(self.name(), _INT, bound.uniform)
        carried = [_Value(self.name(), _FLOAT, False) for _ in inits]
        limit = _Value(self.name(), _INT, bound.uniform)
        types = ", ".join([_INT, _INT, *[_FLOAT] * len(inits)])
        heads = ", ".join([f"{counter.name} = {start.name}", f"{limit.name} = {bound.name}",
                           *(f"{c.name} = {v.name}" for c, v in zip(carried, inits, strict=True))])
        body = _Scope([*scope.values, counter, *carried], indent=scope.indent + "  ")
        yields = self.body(body, carried, collective and bound.uniform, depth - 1)
        one = self.emit(body, f"stablehlo.constant dense<1> : {_INT}", _INT, True)
        following = self.emit(body, f"stablehlo.add {counter.name}, {one.name} : {_INT}", _INT, counter.uniform)
        cond = self.condition(scope, counter, limit, carried)
        i = scope.indent
        scope.lines += [f"{i}{result}:{len(inits) + 2} = stablehlo.while({heads}) : {types}", f"{i}cond {{", *cond,
                        f"{i}}} do {{", *body.lines,
                        f"{i}  stablehlo.return {', '.join([following.name, limit.name, *(y.name for y in yields)])} : "
                        f"{types}", f"{i}}}"]
        scope.values += [_Value(f"{result}#{position + 2}", _FLOAT, False) for position in range(len(inits))]

    def condition(self, scope: _Scope, counter: _Value, limit: _Value, carried: list[_Value]) -> list[str]:
        """Lines of a loop's condition: counts up to the limit, and to four at most."""
        i = scope.indent + "  "
        a, b, c, d = (self.name() for _ in range(4))
        return [f"{i}{a} = stablehlo.constant dense<4> : {_INT}",
                f"{i}{b} = stablehlo.minimum {limit.name}, {a} : {_INT}",
                f"{i}{c} = stablehlo.compare LT, {counter.name}, {b}, SIGNED : ({_INT}, {_INT}) -> {_BOOL}",
                f"{i}{d} = stablehlo.and {c}, {c} : {_BOOL}", f"{i}stablehlo.return {d} : {_BOOL}"]

    def body(self, scope: _Scope, carried: list[_Value], collective: bool, depth: int) -> list[_Value]:
        """The body of a loop: some ops, then the next values, mostly sums into the carried ones."""
        for _ in range(1 + self.choices.randrange(4)):
            self.step(scope, collective, depth)
        yields = []
        for value in carried:
            if self.chance(2):
                yields.append(self.read(scope, _FLOAT))
                continue
            if collective and self.chance(8):
                self.all_reduce(scope)
            new = self.read(scope, _FLOAT)
            name = self.pick(["add", "add", "add", "subtract", "maximum"])
            yields.append(self.emit(scope, f"stablehlo.{name} {value.name}, {new.name} : {_FLOAT}", _FLOAT, False))
        return yields

    def branch(self, scope: _Scope, collective: bool, depth: int) -> None:
        """A conditional of two branches that yield one or two values."""
        p = self.predicate(scope, uniform_only=collective or self.chance(5))
        count = 1 + self.choices.randrange(2)
        result, i = self.name(), scope.indent
        regions = []
        for _ in range(2):
            inner = _Scope(list(scope.values), indent=i + "  ")
            for _ in range(self.choices.randrange(3)):
                self.step(inner, collective and p.uniform, depth - 1)
            yields = [self.read(inner, _FLOAT) for _ in range(count)]
            regions.append([*inner.lines, f"{i}  stablehlo.return {', '.join(y.name for y in yields)} : "
                            f"{', '.join([_FLOAT] * count)}"])
        outs = _FLOAT if count == 1 else f"({', '.join([_FLOAT] * count)})"
        target = result if count == 1 else f"{result}:{count}"
        scope.lines += [f'{i}{target} = "stablehlo.if"({p.name}) ({{', *regions[0], f"{i}}}, {{", *regions[1],
                        f"{i}}}) : ({_BOOL}) -> {outs}"]
        scope.values += [_Value(result if count == 1 else f"{result}#{n}", _FLOAT, False) for n in range(count)]

    def call(self, scope: _Scope, collective: bool, depth: int) -> None:
        """A call of a new private function."""
        arguments = [self.read(scope, _FLOAT), self.read(scope, _FLOAT)]
        inner = _Scope([_Value("%p0", _FLOAT, False), _Value("%p1", _FLOAT, False)], indent="    ")
        for _ in range(1 + self.choices.randrange(3)):
            self.step(inner, collective, 0)
        out = self.read(inner, _FLOAT)
        label = f"f{len(self.functions)}"
        self.functions.append("\n".join([f"  func.func private @{label}(%p0: {_FLOAT}, %p1: {_FLOAT}) -> {_FLOAT} {{",
                                         *inner.lines, f"    return {out.name} : {_FLOAT}", "  }"]))
        self.emit(scope, f"func.call @{label}({arguments[0].name}, {arguments[1].name}) : ({_FLOAT}, {_FLOAT}) -> "
                  f"{_FLOAT}", _FLOAT, False)


def _all_groups(mesh: tuple[tuple[str, int], ...]) -> list[tuple[tuple[tuple[int, ...], ...], bool]]:
    """(groups, whether they span the mesh) along each axis and along all of them."""
    sizes = [size for _, size in mesh]
    total = 1
    for size in sizes:
        total *= size
    found: list[tuple[tuple[tuple[int, ...], ...], bool]] = [((tuple(range(total)),), True)]
    if len(sizes) == 2:
        rows, columns = sizes
        found.append((tuple(tuple(r * columns + c for c in range(columns)) for r in range(rows)), False))
        found.append((tuple(tuple(r * columns + c for r in range(rows)) for c in range(columns)), False))
    return found


def random_program(choices: Choices) -> str:
    """MLIR text of one random program.

    Args:
      choices: where decisions come from; the same decisions give the same program.

    Returns:
      A module with one manual region over 2, 4 or 8 devices; results are sharded over the whole mesh, so that what
      each device holds is seen.

    Example:
      >>> import random
      >>> random_program(random.Random(0)) == random_program(random.Random(0))
      True
    """
    mesh = MESHES[choices.randrange(len(MESHES))]
    writer = _Writer(choices, mesh)
    axes = ", ".join(f'"{name}"' for name, _ in mesh)
    sizes = ", ".join(f'"{name}"={size}' for name, size in mesh)
    total = len(writer.groups[0][0][0])
    everywhere, one_axis = f"[{{{axes}}}]", f'[{{"{mesh[0][0]}"}}]'
    scope = _Scope([_Value("%a", _FLOAT, True), _Value("%b", _FLOAT, False), _Value("%c", _FLOAT, False),
                    _Value("%n", _INT, True)])
    for _ in range(2 + choices.randrange(4)):
        writer.step(scope, collective=True, depth=2)
    writer.loop(scope, collective=True, depth=2)
    outs = [writer.read(scope, _FLOAT) for _ in range(2)] + [v for v in scope.values[-3:] if v.type == _FLOAT]
    whole, half = f"tensor<{WIDTH * total}xf32>", f"tensor<{WIDTH * mesh[0][1]}xf32>"
    count = len(outs)
    wholes = ", ".join([whole] * count)
    results = f"%r:{count}" if count > 1 else "%r"
    named = [f"%r#{n}" for n in range(count)] if count > 1 else ["%r"]
    ins = ", ".join(f"<@mesh, {s}>" for s in ("[{}]", everywhere, one_axis, "[]"))
    return "\n".join([
        f"module @random attributes {{mhlo.num_partitions = {total} : i32, mhlo.num_replicas = 1 : i32}} {{",
        f"  sdy.mesh @mesh = <[{sizes}]>",
        f"  func.func public @main(%g0: {_FLOAT}, %g1: {whole}, %g2: {half}, %g3: {_INT}) -> ({wholes}) {{",
        f"    {results} = sdy.manual_computation(%g0, %g1, %g2, %g3) in_shardings=[{ins}] out_shardings=["
        + ", ".join([f"<@mesh, {everywhere}>"] * count) + f"] manual_axes={{{axes}}} "
        f"(%a: {_FLOAT}, %b: {_FLOAT}, %c: {_FLOAT}, %n: {_INT}) {{",
        *scope.lines,
        f"      sdy.return {', '.join(v.name for v in outs)} : {', '.join([_FLOAT] * count)}",
        f"    }} : ({_FLOAT}, {whole}, {half}, {_INT}) -> ({wholes})",
        f"    return {', '.join(named)} : {wholes}", "  }", *writer.functions, "}"]) + "\n"
