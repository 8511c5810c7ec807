"""Random gradient accumulation: micro-batches through loops over layers, forward and backward, with collectives in both;
gradients are stacked or summed, weights are gathered, and a micro-batch may need what the one before computed."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import random
from itertools import count

from generators.random_layers import GROUPS, I, V, all_reduce

LAYERS = 3
STACK, ROW = f"tensor<{LAYERS}x8xf32>", "tensor<1x8xf32>"
UNARY = ("tanh", "sine", "cosine", "negate")


class MicroBatchWriter:
    """Lines of a program.

    Args:
      rng: decides.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.names, self.lines = rng, count(), list[str]()

    def line(self, text: str, type_: str = V) -> str:
        """Writes ``%v = text : type`` and returns the name."""
        name = f"%v{next(self.names)}"
        self.lines.append(f"{name} = stablehlo.{text} : {type_}")
        return name

    def number(self, value: int) -> str:
        """An integer constant."""
        return self.line(f"constant dense<{value}>", I)

    def reduced(self, value: str, type_: str = V) -> str:
        """An all-reduce."""
        name, tag = f"%v{next(self.names)}", next(self.names)
        self.lines.append(f"{name} = {all_reduce(value, tag, self.rng.choice(GROUPS), 'add', type_)}")
        return name

    def row(self, stack: str, at: str, rows: int = LAYERS) -> str:
        """A row of a stack."""
        cut = self.line(f"dynamic_slice {stack}, {at}, {self.number(0)}, sizes = [1, 8]",
                        f"(tensor<{rows}x8xf32>, {I}, {I}) -> {ROW}")
        return self.line(f"reshape {cut}", f"({ROW}) -> {V}")

    def written(self, stack: str, value: str, at: str) -> str:
        """A stack with another row."""
        row = self.line(f"reshape {value}", f"({V}) -> {ROW}")
        return self.line(f"dynamic_update_slice {stack}, {row}, {at}, {self.number(0)}",
                         f"({STACK}, {ROW}, {I}, {I}) -> {STACK}")

    def weight(self, at: str) -> str:
        """A layer's weights, as they are or gathered from all devices."""
        if self.rng.random() < 0.6:
            return self.row("%w", at)
        cut = self.line(f"dynamic_slice %p, {at}, {self.number(0)}, sizes = [1, 2]",
                        f"(tensor<{LAYERS}x2xf32>, {I}, {I}) -> tensor<1x2xf32>")
        part, name, tag = self.line(f"reshape {cut}", "(tensor<1x2xf32>) -> tensor<2xf32>"), f"%v{next(self.names)}", next(self.names)
        self.lines.append(
            f'{name} = "stablehlo.all_gather"({part}) <{{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<'
            f"handle = {tag + 1}, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}}> : "
            f"(tensor<2xf32>) -> {V}")
        return name

    def mixed(self, *values: str) -> str:
        """Some function of values, the first of which it reads."""
        made = values[0]
        for other in values[1:]:
            made = self.line(f"{self.rng.choice(('add', 'multiply', 'subtract'))} {made}, {other}")
        made = self.line(f"{self.rng.choice(UNARY)} {made}")
        if self.rng.random() < 0.6:
            made = self.line(f"multiply {self.reduced(made)}, {self.line('constant dense<0.25>')}")
        return made

    def behind_barrier(self, *values: str) -> list[str]:
        """Values behind one barrier, as ``jax.checkpoint`` writes it, or as they are."""
        if self.rng.random() < 0.5:
            return list(values)
        name = f"%v{next(self.names)}"
        self.lines.append(f"{name}:{len(values)} = stablehlo.optimization_barrier {', '.join(values)} : "
                          f"{', '.join([V] * len(values))}")
        return [f"{name}#{place}" for place in range(len(values))]

    def loop(self, trips: int, carried: dict[str, tuple[str, str]], ends: list[str], lines: list[str], counter: str) -> str:
        """Writes a counted loop; ``carried`` maps names in it to starts and types."""
        zero, bound, name = self.number(0), self.number(trips), f"%l{next(self.names)}"
        types = ", ".join([I, *(type_ for _, type_ in carried.values())])
        starts = ", ".join([f"{counter} = {zero}", *(f"{slot} = {start}" for slot, (start, _) in carried.items())])
        self.lines += [f"{name}:{len(carried) + 1} = stablehlo.while({starts}) : {types} cond {{",
                       f"%c{counter[1:]} = stablehlo.compare LT, {counter}, {bound} : ({I}, {I}) -> tensor<i1>",
                       f"stablehlo.return %c{counter[1:]} : tensor<i1> }} do {{", *lines,
                       f"stablehlo.return {', '.join(ends)} : {types} }}"]
        return name

    def inside(self) -> list[str]:
        """Begins the lines of a body; returns the lines so far."""
        before, self.lines = self.lines, []
        return before


def random_micro_batches(rng: random.Random) -> str:
    """The text of a module over four partitions.

    Args:
      rng: decides.
    """
    at = MicroBatchWriter(rng)
    trips = rng.choice((1, 2, 2, 3, 4, 4, 6))
    zeros, flat = at.line("constant dense<0.0>", STACK), at.line("constant dense<0.5>")
    before = at.inside()
    x = at.mixed(at.row("%xs", "%i", 6))
    if rng.random() < 0.15:
        x = at.line(f"add {x}, %last")  # micro-batches that wait for one another
    saved, top = _forward(at, x, zeros)
    of_weights = rng.random() < 0.15  # the same in each micro-batch
    grads, bottom = _backward(at, "%y" if of_weights else top, "%w" if of_weights else saved, zeros)
    how = "add" if rng.random() < 0.9 else "maximum"
    total = at.line(f"{how} %sum, {grads}" if rng.random() < 0.7 else f"{how} {grads}, %sum", STACK)
    if rng.random() < 0.2:
        total = at.line(f"multiply {total}, {at.line('constant dense<0.5>', STACK)}", STACK)
    if rng.random() < 0.2:
        total = at.reduced(total, STACK)
    loss = at.line(f"add %loss, {rng.choice((bottom, top))}")
    if rng.random() < 0.1:
        loss = at.line(f"add {loss}, {at.row(rng.choice(('%sum', grads, total)), at.number(1))}")
    step = at.line(f"add %i, {at.number(1)}", I)
    lines, at.lines = at.lines, before
    name = at.loop(trips, {"%sum": (zeros, STACK), "%loss": ("%y", V), "%last": (flat, V)},
                   [step, total, loss, bottom if rng.random() < 0.7 else "%last"], lines, "%i")
    total = at.reduced(f"{name}#1", STACK) if rng.random() < 0.7 else f"{name}#1"
    return ("module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
            f"func.func public @main(%xs: tensor<6x8xf32>, %y: {V}, %w: {STACK}, %p: tensor<{LAYERS}x2xf32>) -> ({STACK}, {V}, {V}) {{\n"
            + "\n".join(at.lines) + f"\nreturn {total}, {name}#2, {name}#3 : {STACK}, {V}, {V}\n}}\n}}\n")


def _forward(at: MicroBatchWriter, x: str, zeros: str) -> tuple[str, str]:
    """Saved activations, and what the last layer makes."""
    before = at.inside()
    made = at.mixed("%h", at.weight("%f"))
    stack = at.written("%acts", "%h", "%f")
    step = at.line(f"add %f, {at.number(1)}", I)
    lines, at.lines = at.lines, before
    name = at.loop(LAYERS, {"%h": (x, V), "%acts": (zeros, STACK)}, [step, made, stack], lines, "%f")
    return f"{name}#2", f"{name}#1"


def _backward(at: MicroBatchWriter, top: str, saved: str, zeros: str) -> tuple[str, str]:
    """Stacked gradients, and that of the first layer's operand."""
    before = at.inside()
    place = at.line(f"subtract {at.number(LAYERS - 1)}, %b", I) if at.rng.random() < 0.8 else "%b"
    act, weight, given = at.behind_barrier(at.row(saved, place), at.weight(place), "%d")
    again = at.mixed(act, weight)
    grad = at.line(f"multiply {again}, {given}")
    if at.rng.random() < 0.3:
        grad = at.reduced(grad)
    stack = at.written("%grads", grad, place)
    made, step = at.mixed(given, weight, again), at.line(f"add %b, {at.number(1)}", I)
    lines, at.lines = at.lines, before
    name = at.loop(LAYERS, {"%d": (top, V), "%grads": (zeros, STACK)}, [step, made, stack], lines, "%b")
    return f"{name}#2", f"{name}#1"
