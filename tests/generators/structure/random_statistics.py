"""Random sums over devices that wait for one another, as in batch norms; many miss one condition of merging them."""

from __future__ import annotations

import random
from collections.abc import Sequence

Shape = tuple[int, ...]


class StatisticsWriter:
    """Writes one program: a mean, a variance, what is made of them, and gradients.

    Args:
      rng: makes all choices.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.devices = rng.choice((2, 4, 4, 8))
        self.element = rng.choice(("f32",) * 6 + ("f64", "bf16"))
        self.shape: Shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 4)))
        some = [dim for dim in range(len(self.shape)) if rng.random() < 0.6]
        self.dims = some or [rng.randrange(len(self.shape))]
        self.kept = [dim for dim in range(len(self.shape)) if dim not in self.dims]
        self.lines: list[str] = []
        self.number = 0

    def odd(self, share: float = 0.06) -> bool:
        """Whether this choice is an unusual one."""
        return self.rng.random() < share

    def type(self, shape: Sequence[int]) -> str:
        """The text of a tensor type."""
        return f"tensor<{''.join(f'{size}x' for size in shape)}{self.element}>"

    @property
    def whole(self) -> str:
        """The type of the terms."""
        return self.type(self.shape)

    @property
    def small(self) -> str:
        """The type of a sum."""
        return self.type([self.shape[dim] for dim in self.kept])

    def made(self, text: str) -> str:
        """Writes an op; returns its result."""
        self.number += 1
        self.lines.append(f"%v{self.number} = {text}")
        return f"%v{self.number}"

    def op(self, name: str, operands: Sequence[str], type_: str) -> str:
        """Writes an elementwise op."""
        return self.made(f"stablehlo.{name} {', '.join(operands)} : {type_}")

    def filled(self, number: float, type_: str) -> str:
        """Writes a constant."""
        return self.made(f"stablehlo.constant dense<{number:e}> : {type_}")

    def reduced(self, value: str) -> str:
        """Writes the sum that a device takes."""
        start = self.filled(0.5 if self.odd() else 0.0, self.type([]))
        name = "maximum" if self.odd() else "add"
        return self.made(f"stablehlo.reduce({value} init: {start}) applies stablehlo.{name} across dimensions = "
                         f"{self.dims} : ({self.whole}, {self.type([])}) -> {self.small}")

    def over_devices(self, value: str) -> str:
        """Writes an all-reduce."""
        members = list(range(self.devices))
        half = self.devices // 2
        groups = [members[:half], members[half:]] if self.halves != self.odd() else [members]
        name = "maximum" if self.odd() else "add"
        scalar = self.type([])
        return self.made(
            f'"stablehlo.all_reduce"({value}) <{{channel_handle = #stablehlo.channel_handle<handle = '
            f"{self.number + 1}, type = 1>, replica_groups = dense<{groups}> : "
            f"tensor<{len(groups)}x{len(groups[0])}xi64>, use_global_device_ids}}> ({{ "
            f"^bb0(%l: {scalar}, %r: {scalar}): %s = stablehlo.{name} %l, %r : {scalar} "
            f"stablehlo.return %s : {scalar} }}) : ({self.small}) -> {self.small}")

    def repeated(self, value: str) -> str:
        """Writes a value of a sum's shape along the dimensions summed over, or along others of the same sizes."""
        dims = list(self.kept)
        sizes = [self.shape[dim] for dim in dims]
        if len(dims) > 1 and len(set(sizes)) == 1 and self.odd(0.3):
            dims.reverse()
        return self.made(f"stablehlo.broadcast_in_dim {value}, dims = {dims} : ({self.small}) -> {self.whole}")

    def moved(self, value: str) -> str:
        """Writes something that leaves a uniform value uniform, or not."""
        if self.odd(0.12):
            place = self.made("stablehlo.convert %id : (tensor<ui32>) -> " + self.type([]))
            wide = self.made(f"stablehlo.broadcast_in_dim {place}, dims = [] : ({self.type([])}) -> {self.small}")
            return self.op("add", [value, wide], self.small)
        return self.op(self.rng.choice(("negate", "tanh")), [value], self.small) if self.odd(0.2) else value

    def text(self) -> str:
        """The program."""
        self.halves = self.devices > 2 and self.rng.random() < 0.4
        count = 1
        for dim in self.dims:
            count *= self.shape[dim]
        x = self.op("sine", ["%x"], self.whole)
        total = self.over_devices(self.reduced(x))
        mean = self.moved(self.op("divide", [total, self.filled(float(count * self.devices), self.small)], self.small))
        distance = self.op("subtract", [x if not self.odd() else "%x", self.repeated(mean)], self.whole)
        other = distance if not self.odd() else x
        squares = self.over_devices(self.reduced(self.op("multiply", [distance, other], self.whole)))
        normed = self.op("multiply", [distance, self.repeated(self.op("tanh", [squares], self.small))], self.whole)
        slope = self.over_devices(self.reduced(self.op("multiply", ["%g", normed], self.whole)))
        factor = self.repeated(self.moved(slope))
        rest = self.op(self.rng.choice(("exponential", "logistic")), [distance], self.whole)  # no sum cancels
        pair = [factor, rest] if self.rng.random() < 0.5 else [rest, factor]
        if self.odd(0.2):
            pair[0] = self.op("negate", [pair[0]], self.whole)
        product = self.op("multiply", pair, self.whole)
        product = self.op("negate", [product], self.whole) if self.rng.random() < 0.5 else product
        gradient = self.over_devices(self.reduced(product))
        outputs, types = [total, squares, normed, slope, gradient], [self.small] * 2 + [self.whole] + [self.small] * 2
        return (f"module attributes {{mhlo.num_partitions = {self.devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
                f"func.func public @main(%x: {self.whole}, %g: {self.whole}) -> ({', '.join(types)}) {{\n"
                "%id = stablehlo.partition_id : tensor<ui32>\n" + "\n".join(self.lines)
                + f"\nreturn {', '.join(outputs)} : {', '.join(types)}\n}}\n}}\n")


def random_statistics(rng: random.Random) -> str:
    """A random program."""
    return StatisticsWriter(rng).text()
