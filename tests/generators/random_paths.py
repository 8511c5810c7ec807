"""Random programs whose bytes depend on the path: unknown trip counts, branches in sequence, payloads that
grow and shrink.

Nearly all ops are linear, so that reductions can travel far, and the cheapest place depends on what is not known.
"""

from __future__ import annotations

from collections.abc import Callable

from generators.random_writer import Choices

NARROW, MIDDLE, WIDE = "tensor<1xf32>", "tensor<4xf32>", "tensor<4x6xf32>"
_INT, _BOOL = "tensor<i32>", "tensor<i1>"
_TRIPS = ("%n1", "%n2", "%n3", "%n1", "%n2", "1", "2", "3")
PRELUDE = f"""\
      %n1 = stablehlo.add %n, %i1 : {_INT}
      %n2 = stablehlo.add %n1, %n : {_INT}
      %three = stablehlo.constant dense<3> : {_INT}
      %n3 = stablehlo.subtract %three, %n : {_INT}
      %p0 = stablehlo.compare LT, %n, %i1 : ({_INT}, {_INT}) -> {_BOOL}
      %p1 = stablehlo.compare EQ, %n, %n1 : ({_INT}, {_INT}) -> {_BOOL}
      %p2 = stablehlo.compare GT, %n2, %n3 : ({_INT}, {_INT}) -> {_BOOL}
      %narrow = stablehlo.constant dense<0.0> : {NARROW}
      %wide = stablehlo.constant dense<0.0> : {WIDE}
"""
_CONVERT = {
    (NARROW, MIDDLE): "stablehlo.broadcast_in_dim {}, dims = [0] : (tensor<1xf32>) -> tensor<4xf32>",
    (MIDDLE, WIDE): "stablehlo.broadcast_in_dim {}, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>",
    (MIDDLE, NARROW): "stablehlo.slice {} [1:2] : (tensor<4xf32>) -> tensor<1xf32>",
}
_ZERO = {NARROW: "%narrow", MIDDLE: "%zero", WIDE: "%wide"}


class PathWriter:
    """Writes one program; ``lines`` is its body.

    Args:
      choices: where decisions come from.
    """

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.lines: list[str] = [PRELUDE]
        self.count = 0

    def line(self, text: str) -> str:
        """Writes an op; returns the name of its result."""
        self.count += 1
        self.lines.append(f"      %v{self.count} = {text}\n")
        return f"%v{self.count}"

    def pick(self, values: list[tuple[str, str]]) -> tuple[str, str]:
        """One of the last few values."""
        recent = values[-6:]
        return recent[self.choices.randrange(len(recent))]

    def to(self, value: tuple[str, str], kind: str) -> str:
        """A value in another type, by broadcasts and slices."""
        name, own = value
        path = {NARROW: 0, MIDDLE: 1, WIDE: 2}
        while own != kind:  # Ends: each step is one type nearer.
            if own == WIDE:
                name = self.line(f"stablehlo.slice {name} [0:4, 2:3] : ({WIDE}) -> tensor<4x1xf32>")
                name, own = self.line(f"stablehlo.reshape {name} : (tensor<4x1xf32>) -> {MIDDLE}"), MIDDLE
                continue
            following = MIDDLE if own == NARROW else (WIDE if path[kind] > 1 else NARROW)
            name, own = self.line(_CONVERT[own, following].format(name)), following
        return name

    def kind(self) -> str:
        """One of the three types."""
        return (NARROW, MIDDLE, WIDE)[self.choices.randrange(3)]

    def steps(self, values: list[tuple[str, str]], depth: int, most: int) -> None:
        """Some ops; what they make is added to ``values``."""
        kinds: list[Callable[[list[tuple[str, str]], int], None]] = [
            self.reduction, self.reduction, self.linear, self.sum, self.sum, self.bend, self.fork, self.fork, self.loop]
        for _ in range(1 + self.choices.randrange(most)):
            kinds[self.choices.randrange(len(kinds) if depth else 6)](values, depth)

    def reduction(self, values: list[tuple[str, str]], _: int) -> None:
        """An all-reduce of a value that is not reduced."""
        kind = self.kind()
        values.append((self.line(f"AR<add>({self.to(('%s', MIDDLE), kind)}) : {kind}"), kind))

    def linear(self, values: list[tuple[str, str]], _: int) -> None:
        """A value in another type."""
        kind = self.kind()
        values.append((self.to(self.pick(values), kind), kind))

    def sum(self, values: list[tuple[str, str]], _: int) -> None:
        """The sum of two values."""
        kind = self.kind()
        left, right = (self.to(self.pick(values), kind) for _ in range(2))
        values.append((self.line(f"stablehlo.add {left}, {right} : {kind}"), kind))

    def bend(self, values: list[tuple[str, str]], _: int) -> None:
        """An op that needs a reduced value."""
        name, kind = self.pick(values)
        values.append((self.line(f"stablehlo.tanh {name} : {kind}"), kind))

    def fork(self, values: list[tuple[str, str]], depth: int) -> None:
        """A branch on a value known only at run time."""
        kind, branches = self.kind(), []
        outside, self.lines = self.lines, []
        for _ in range(2):
            inner = list(values)
            if self.choices.randrange(2):
                self.bend(inner, depth)
            elif self.choices.randrange(2):
                self.steps(inner, depth - 1, 2)
            result = self.to(self.pick(inner), kind) if self.choices.randrange(3) else _ZERO[kind]
            branches.append("".join(self.lines) + f"      stablehlo.return {result} : {kind}\n")
            self.lines = []
        self.lines = outside
        first, second = branches
        values.append((self.line(f'"stablehlo.if"(%p{self.choices.randrange(3)}) ({{\n{first}      }}, {{\n{second}'
                                 f"      }}) : ({_BOOL}) -> {kind}"), kind))

    def loop(self, values: list[tuple[str, str]], depth: int) -> None:
        """A loop that adds up what its body makes."""
        kind, trips = self.kind(), _TRIPS[self.choices.randrange(len(_TRIPS))]
        bound = trips if trips.startswith("%") else self.line(f"stablehlo.constant dense<{trips}> : {_INT}")
        self.count += 1
        tag = self.count
        outside, self.lines = self.lines, []
        inner = [*values, (f"%acc{tag}", kind)]
        if self.choices.randrange(2):
            self.reduction(inner, depth)
        if self.choices.randrange(3):
            self.steps(inner, depth - 1, 3)
        added = self.to(self.pick(inner), kind)
        body = "".join(self.lines)
        self.lines = outside
        self.lines.append(
            f"      %loop{tag}:2 = stablehlo.while(%c{tag} = %i0, %acc{tag} = {_ZERO[kind]}) : {_INT}, {kind}\n"
            f"      cond {{\n      %lt{tag} = stablehlo.compare LT, %c{tag}, {bound} : ({_INT}, {_INT}) -> {_BOOL}\n"
            f"      stablehlo.return %lt{tag} : {_BOOL}\n      }} do {{\n{body}"
            f"      %new{tag} = stablehlo.add %acc{tag}, {added} : {kind}\n"
            f"      %next{tag} = stablehlo.add %c{tag}, %i1 : {_INT}\n"
            f"      stablehlo.return %next{tag}, %new{tag} : {_INT}, {kind}\n      }}\n")
        values.append((f"%loop{tag}#1", kind))


def random_paths(choices: Choices) -> tuple[str, str]:
    """The body of a manual region and the value it returns, a ``tensor<4xf32>``.

    Args:
      choices: where decisions come from.
    """
    writer = PathWriter(choices)
    values = [("%a", MIDDLE)]
    writer.reduction(values, 0)
    writer.steps(values, 3, 6)
    writer.loop(values, 2)
    total = writer.to(values[-1], MIDDLE)
    for value in values[-4:-1]:
        total = writer.line(f"stablehlo.add {total}, {writer.to(value, MIDDLE)} : {MIDDLE}")
    return "".join(writer.lines), total
