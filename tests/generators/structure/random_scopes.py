"""Random programs of several manual regions: side by side and sharing values, one in another over other axes, in loops and in
functions that are called from several places, with equal collectives in each."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import random
from itertools import count

_AXES = {"x": 2, "y": 2}
_ROWS = {"x": "[[0, 2], [1, 3]]", "y": "[[0, 1], [2, 3]]", "xy": "[[0, 1, 2, 3]]"}
Sized = tuple[str, int, str]
"""A vector: its name, its length, and the axes in "xy" along which it differs between devices."""


def _type(size: int) -> str:
    return f"tensor<{size}xf32>"


class _ScopeLines:
    """Lines of one scope.

    Args:
      rng: decides.
      names: numbers for names that are used once.
      manual: the axes in "xy" that are manual here.
      values: what can be read.
      functions: names of private functions and the axes that are manual in them; each takes and returns a vector of four.
    """

    def __init__(self, rng: random.Random, names: count[int], manual: str, values: list[Sized], functions: list[tuple[str, str]]) -> None:
        self.rng, self.names, self.manual, self.values, self.functions = rng, names, manual, list(values), functions
        self.lines: list[str] = []

    def line(self, text: str, type_: str) -> str:
        """Writes ``%v = text : type`` and returns the name."""
        name = f"%v{next(self.names)}"
        self.lines.append(f"{name} = {text} : {type_}")
        return name

    def read(self, size: int = 0) -> Sized:
        """Some vector, of a length if one is named; a constant where there is none."""
        fitting = [value for value in self.values if size in (0, value[1])]
        if fitting and self.rng.random() < 0.85:
            return self.rng.choice(fitting[-4:])
        size = size or 4
        return self.line(f"stablehlo.constant dense<{self.rng.choice(('2.0', '0.5', '1.0'))}>", _type(size)), size, ""

    def add(self, name: str, size: int, varies: str) -> Sized:
        """One more vector."""
        self.values.append((name, size, varies))
        return self.values[-1]

    def statement(self, depth: int) -> None:
        """One more vector, if the op that is drawn fits here."""
        options = [self.pointwise, self.pointwise]
        options += [self.reduce, self.reduce, self.reduce, self.own, self.usual] if self.manual else []
        options += [self.call] if self.callable() else []
        options += [lambda: self.region(depth)] * 3 if depth and len(self.manual) < 2 else []
        options += [lambda: self.loop(depth)] if depth else []
        self.rng.choice(options)()

    def pointwise(self) -> None:
        """Arithmetic of one or two vectors, or a barrier."""
        name, size, varies = self.read()
        other, _, too = self.read(size)
        both = "".join(axis for axis in "xy" if axis in varies + too)
        what = self.rng.choice(("tanh", "add", "multiply", "barrier"))
        if what == "tanh":
            self.add(self.line(f"stablehlo.tanh {name}", _type(size)), size, varies)
        elif what == "barrier":
            made = f"%v{next(self.names)}"
            self.lines.append(f"{made}:2 = stablehlo.optimization_barrier {name}, {other} : {_type(size)}, {_type(size)}")
            self.add(f"{made}#0", size, varies)
        else:
            self.add(self.line(f"stablehlo.{what} {name}, {other}", _type(size)), size, both)

    def reduced(self, value: Sized, axes: str) -> Sized:
        """A sum over some axes, scaled."""
        name, size, varies = value
        tag, rows = next(self.names), _ROWS[axes]
        shape = f"{rows.count('[') - 1}x{len(rows.split(']')[0].split(','))}"
        made = self.line(f'"stablehlo.all_reduce"({name}) <{{channel_handle = #stablehlo.channel_handle<handle = {tag + 1}, type = 1>, '
                         f"replica_groups = dense<{rows}> : tensor<{shape}xi64>, use_global_device_ids}}> ({{ ^bb0(%l{tag}: tensor<f32>, "
                         f"%r{tag}: tensor<f32>): %s{tag} = stablehlo.add %l{tag}, %r{tag} : tensor<f32> stablehlo.return %s{tag} : tensor<f32> }})",
                         f"({_type(size)}) -> {_type(size)}")
        return self.add(made, size, "".join(axis for axis in varies if axis not in axes))

    def reduce(self) -> None:
        """A sum over manual axes."""
        self.reduced(self.read(), self.rng.choice(sorted({self.manual, *self.manual})))

    def usual(self) -> None:
        """The same sum of the same constant wherever it stands."""
        self.reduced((self.line("stablehlo.constant dense<2.0>", _type(4)), 4, ""), self.manual[0])

    def own(self) -> None:
        """The device's number as a vector."""
        own = self.line("stablehlo.partition_id", "tensor<ui32>")
        number = self.line(f"stablehlo.convert {own}", "(tensor<ui32>) -> tensor<f32>")
        self.add(self.line(f"stablehlo.broadcast_in_dim {number}, dims = []", f"(tensor<f32>) -> {_type(4)}"), 4, "xy")

    def callable(self) -> list[str]:
        """The functions whose manual axes are not manual here."""
        return [name for name, axes in self.functions if not set(axes) & set(self.manual)]

    def call(self) -> None:
        """A call of a function that may contain manual regions, or collectives over all axes that are manual."""
        name, size, varies = self.read(4)
        self.add(self.line(f"func.call @{self.rng.choice(self.callable())}({name})", f"({_type(4)}) -> {_type(4)}"), size,
                 varies)

    def region(self, depth: int) -> None:
        """A manual region over axes that are not manual yet."""
        rng = self.rng
        free = [axis for axis in "xy" if axis not in self.manual]
        axes = "".join(free) if rng.random() < 0.4 else rng.choice(free)
        taken, inner, shardings = [], [], []
        for number in range(rng.randint(1, 3)):
            name, size, varies = self.read()
            cut = "".join(axis for axis in axes if size > 4 and rng.random() < 0.7)
            if size // 2 ** len(cut) < 4:
                cut = ""
            taken.append((name, size))
            inner.append((f"%m{next(self.names)}_{number}", size // 2 ** len(cut), varies + cut))
            shardings.append(cut)
        # Values that are equal along its own axes; along those around, they differ as they did.
        inside = _ScopeLines(rng, self.names, self.manual + axes, inner, self.functions)
        inside.manual = "".join(axis for axis in "xy" if axis in self.manual + axes)
        for _ in range(rng.randint(1, 5)):
            inside.statement(depth - 1)
        results: list[tuple[Sized, str]] = []
        for _ in range(rng.randint(1, 2)):
            value = inside.read()
            differs = "".join(axis for axis in axes if axis in value[2])
            cut = "".join(axis for axis in axes if axis in differs or rng.random() < 0.5)
            if value[1] * 2 ** len(cut) > 16:
                if differs:
                    value = inside.reduced(value, axes)
                cut = ""
            results.append((value, cut))
        made = f"%v{next(self.names)}"
        types = [_type(value[1] * 2 ** len(cut)) for value, cut in results]

        def said(cuts: list[str]) -> str:
            return ", ".join("<@mesh, [{" + ", ".join(f'"{axis}"' for axis in cut) + "}]>" for cut in cuts)
        self.lines += [f"{made}{f':{len(results)}' if len(results) > 1 else ''} = sdy.manual_computation({', '.join(name for name, _ in taken)}) "
                       f"in_shardings=[{said(shardings)}] out_shardings=[{said([cut for _, cut in results])}] manual_axes={{"
                       + ", ".join(f'"{axis}"' for axis in axes) + "} (" + ", ".join(f"{name}: {_type(size)}" for name, size, _ in inner) + ") {",
                       *inside.lines, f"sdy.return {', '.join(value[0] for value, _ in results)} : {', '.join(_type(value[1]) for value, _ in results)}",
                       f"}} : ({', '.join(_type(size) for _, size in taken)}) -> {', '.join(types) if len(types) == 1 else f'({chr(44).join(types)})'}"]
        for number, (value, cut) in enumerate(results):
            around = "".join(axis for axis in value[2] if axis in self.manual)
            self.add(f"{made}#{number}" if len(results) > 1 else made, value[1] * 2 ** len(cut), around)

    def loop(self, depth: int) -> None:
        """Three iterations."""
        rng, tag = self.rng, next(self.names)
        start = self.read(4)
        numbers = [self.line(f"stablehlo.constant dense<{number}>", "tensor<i32>") for number in (0, 1, 3)]
        inside = _ScopeLines(rng, self.names, self.manual, [*self.values, (f"%a{tag}", 4, self.manual)], self.functions)
        for _ in range(rng.randint(1, 4)):
            inside.statement(depth - 1)
        value = inside.read(4)
        end = inside.line(f"stablehlo.add %a{tag}, {value[0]}", _type(4)) if rng.random() < 0.7 else value[0]
        after = inside.line(f"stablehlo.add %i{tag}, {numbers[1]}", "tensor<i32>")
        self.lines += [f"%o{tag}:2 = stablehlo.while(%i{tag} = {numbers[0]}, %a{tag} = {start[0]}) : tensor<i32>, {_type(4)}", "cond {",
                       f"%g{tag} = stablehlo.compare LT, %i{tag}, {numbers[2]}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
                       f"stablehlo.return %g{tag} : tensor<i1>", "} do {", *inside.lines, f"stablehlo.return {after}, {end} : tensor<i32>, {_type(4)}", "}"]
        self.add(f"%o{tag}#1", 4, self.manual)


def random_scopes(rng: random.Random) -> str:
    """The text of a module over a mesh of two times two devices.

    Args:
      rng: decides.

    Example:
      >>> random_scopes(random.Random(1)) == random_scopes(random.Random(1))
      True
    """
    names = count()
    functions: list[str] = []
    known: list[tuple[str, str]] = []
    for number in range(rng.choice((0, 1, 1, 2))):
        name, axes = f"f{number}", rng.choice(("x", "y", "y", "xy"))
        body = _ScopeLines(rng, names, "".join(axis for axis in "xy" if axis not in axes), [("%p", 4, "")], known)
        for _ in range(rng.randint(1, 3)):
            body.region(0) if rng.random() < 0.7 else body.pointwise()
        functions += [f"func.func private @{name}(%p: {_type(4)}) -> {_type(4)} {{", *body.lines,
                      f"return {[name for name, size, _ in body.values if size == 4][-1]} : {_type(4)}", "}"]
        known.append((name, axes))
    main = _ScopeLines(rng, names, "", [("%g", 16, ""), ("%h", 8, ""), ("%k", 4, "")], known)
    for _ in range(rng.randint(2, 5)):
        main.region(2) if rng.random() < 0.6 else main.statement(2)
    if main.callable():
        main.call()
    results = [main.values[-1], *rng.choices(main.values, k=2)]
    types = ", ".join(_type(value[1]) for value in results)
    return "\n".join(["module @scopes attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {",
                      'sdy.mesh @mesh = <["x"=2, "y"=2]>',
                      f"func.func public @main(%g: {_type(16)}, %h: {_type(8)}, %k: {_type(4)}) -> ({types}) {{", *main.lines,
                      f"return {', '.join(value[0] for value in results)} : {types}", "}", *functions, "}"]) + "\n"
