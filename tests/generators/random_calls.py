"""Random programs of functions that call each other: collectives, optimization barriers and calls at any level, and equal
calls with equal and other operands."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import random
from itertools import count

from generators.random_layers import GROUPS, I, V, all_reduce

TWO = f"({V}, {V})"
_STATEMENTS = ("tanh", "negate", "half", "add", "multiply", "maximum", "reduce", "reduce", "barrier", "barrier", "call", "call")


class _FunctionLines:
    """Lines of one function or loop, and the vectors that can be read in it.

    Args:
      rng: decides.
      names: numbers for names that are used once.
      pool: the vectors at the start.
      callees: numbers of the functions that may be called.
    """

    def __init__(self, rng: random.Random, names: count[int], pool: list[str], callees: range) -> None:
        self.rng, self.names, self.pool, self.callees = rng, names, list(pool), callees
        self.lines: list[str] = []

    def statement(self) -> None:
        """A vector more, of one that is new and another."""
        what = self.rng.choice(_STATEMENTS)
        one, other = self.rng.choice(self.pool[-6:]), self.rng.choice(self.pool)
        if what == "reduce":
            made = self.reduced(one)
        elif what == "barrier":
            made = self.line(f"stablehlo.optimization_barrier {one}, {other} : {V}, {V}", results=2)
        elif what == "call":
            if not self.callees:
                return
            callee = self.rng.choice(self.callees[:2])
            made = self.line(f"func.call @f{callee}({one}, {other}) : {TWO} -> {TWO}", results=2)
        elif what == "half":
            half = self.line(f"stablehlo.constant dense<0.5> : {V}")
            made = self.line(f"stablehlo.multiply {one}, {half} : {V}")
        elif what in ("tanh", "negate"):
            made = self.line(f"stablehlo.{what} {one} : {V}")
        else:
            made = self.line(f"stablehlo.{what} {one}, {other} : {V}")
        self.pool.append(made)

    def line(self, text: str, results: int = 1) -> str:
        """Writes an op and returns the name of one of its results."""
        name = f"%v{next(self.names)}"
        self.lines.append(f"{name}{f':{results}' if results > 1 else ''} = {text}")
        return name if results == 1 else f"{name}#{self.rng.randrange(results)}"

    def reduced(self, value: str) -> str:
        """A sum over all devices or pairs of them."""
        return self.line(all_reduce(value, next(self.names), self.rng.choice(GROUPS), "add"))

    def loop(self) -> None:
        """Three iterations that add what they make, from outer vectors, to a carried one."""
        rng, tag = self.rng, next(self.names)
        zero, one, three = (self.line(f"stablehlo.constant dense<{number}> : {I}") for number in (0, 1, 3))
        inside = _FunctionLines(rng, self.names, [*self.pool, f"%acc{tag}"], self.callees)
        for _ in range(rng.randint(2, 6)):
            inside.statement()
        total = inside.line(f"stablehlo.add %acc{tag}, {inside.pool[-1]} : {V}")
        after = inside.line(f"stablehlo.add %i{tag}, {one} : {I}")
        go = next(self.names)
        self.lines.append(f"%o{tag}:2 = stablehlo.while(%i{tag} = {zero}, %acc{tag} = {rng.choice(self.pool)}) : {I}, {V}\ncond {{\n"
                          f"%v{go} = stablehlo.compare LT, %i{tag}, {three}, SIGNED : ({I}, {I}) -> tensor<i1>\n"
                          f"stablehlo.return %v{go} : tensor<i1>\n}} do {{")
        self.lines += [*inside.lines, f"stablehlo.return {after}, {total} : {I}, {V}", "}"]
        self.pool.append(f"%o{tag}#1")


def random_calls(rng: random.Random) -> str:
    """A module for four partitions: ``main`` of two vectors, and up to seven functions, each calling later ones.

    Args:
      rng: decides.

    Returns:
      Text that parses and verifies.
    """
    names, total = count(), rng.randint(1, 7)
    functions = []
    for number in range(total):
        body = _FunctionLines(rng, names, ["%x", "%y"], range(number + 1, total))
        for _ in range(rng.randint(1, 4)):
            body.statement()
        if body.callees and rng.random() < 0.6:
            body.pool.append(body.line(f"func.call @f{number + 1}({rng.choice(body.pool)}, {rng.choice(body.pool)}) : {TWO} -> {TWO}", 2))
        functions += [f"func.func private @f{number}(%x: {V}, %y: {V}) -> {TWO} {{", *body.lines,
                      f"return {body.pool[-1]}, {rng.choice(body.pool)} : {V}, {V}", "}"]
    main = _FunctionLines(rng, names, ["%a", "%b"], range(total))
    for _ in range(rng.randint(3, 8)):
        main.statement()
    if rng.random() < 0.6:
        main.loop()
    results = [main.pool[-1], *rng.choices(main.pool, k=2)]
    return "\n".join(["module @calls attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {", *functions,
                      f"func.func public @main(%a: {V}, %b: {V}) -> ({V}, {V}, {V}) {{", *main.lines,
                      f"return {', '.join(results)} : {V}, {V}, {V}", "}", "}"]) + "\n"
