"""Random programs between an all-reduce and matrix products, before and after, on the interpreter."""

from __future__ import annotations

import random

import fusion_modules as m
import pytest

from hlorewrite.ir.module import Module
from hlorewrite.passes.sequence_parallel.sequence_parallel import SequenceParallel
from hlorewrite.passmanager.base import PassContext

BIG, TURNED, ROWS, THIN, COLUMNS = (f"tensor<{shape}xf32>" for shape in ("8x4", "4x8", "8", "8x1", "4"))
PROGRAMS = 24


class TensorParallelWriter:
    """Writes ops that read what was written before.

    Args:
      seed: of the choices.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.values: dict[str, list[str]] = {kind: [] for kind in (BIG, TURNED, ROWS, THIN, COLUMNS)}
        self.number = 0

    def made(self, kind: str, text: str) -> str:
        """Writes an op; returns its result."""
        self.number += 1
        name = f"%v{self.number}"
        self.lines.append(f"{name} = {text}")
        self.values[kind].append(name)
        return name

    def any(self, kind: str = BIG) -> str:
        """Some value of a type, rather a late one."""
        return self.random.choice(self.values[kind][-4:])

    def op(self) -> None:
        """Writes one op."""
        self.random.choice([self.unary, self.unary, self.binary, self.binary, self.sums, self.spread, self.turned,
                            self.constant, self.cut, self.reduced])()

    def unary(self) -> None:
        kind = self.random.choice([kind for kind, values in self.values.items() if values])
        self.made(kind, f"stablehlo.{self.random.choice(('sine', 'tanh', 'negate'))} {self.any(kind)} : {kind}")

    def binary(self) -> None:
        kind = self.random.choice([kind for kind, values in self.values.items() if values])
        name = self.random.choice(("add", "multiply", "maximum"))
        self.made(kind, f"stablehlo.{name} {self.any(kind)}, {self.any(kind)} : {kind}")

    def sums(self) -> None:
        dimension, kind = self.random.choice([(0, COLUMNS), (1, ROWS), (1, ROWS)])
        start, name = self.random.choice([("%zero", "add"), ("%zero", "add"), ("%half", "add"), ("%zero", "maximum")])
        self.made(kind, f"stablehlo.reduce({self.any()} init: {start}) applies stablehlo.{name} across dimensions = "
                        f"[{dimension}] : ({BIG}, tensor<f32>) -> {kind}")

    def spread(self) -> None:
        kind, dims = self.random.choice([(ROWS, "0"), (COLUMNS, "1"), (THIN, "0, 1")])
        if self.values[kind]:
            self.made(BIG, f"stablehlo.broadcast_in_dim {self.any(kind)}, dims = [{dims}] : ({kind}) -> {BIG}")
        elif self.values[ROWS]:
            self.made(THIN, f"stablehlo.reshape {self.any(ROWS)} : ({ROWS}) -> {THIN}")

    def turned(self) -> None:
        first, second = self.random.choice([(BIG, TURNED), (TURNED, BIG)])
        if self.values[first]:
            how = self.random.choice([f"transpose {self.any(first)}, dims = [1, 0]", f"reshape {self.any(first)}"])
            self.made(second, f"stablehlo.{how} : ({first}) -> {second}")

    def constant(self) -> None:
        what = self.random.choice(("iota dim = 0", "iota dim = 1", "constant dense<0.5>"))
        self.made(BIG, f"stablehlo.{what} : {BIG}")

    def cut(self) -> None:
        name = self.made(BIG, f"stablehlo.reverse {self.any()}, dims = [{self.random.choice((0, 1))}] : {BIG}")
        self.made(BIG, f"stablehlo.dynamic_update_slice {self.any()}, {name}, %i, %i : ({BIG}, {BIG}, tensor<i32>, "
                       f"tensor<i32>) -> {BIG}")

    def reduced(self) -> None:
        """Another layer."""
        name = self.made(BIG, f"stablehlo.dot_general {self.any()}, %w, contracting_dims = [1] x [0] : ({BIG}, "
                              f"tensor<4x4xf32>) -> {BIG}")
        self.values[BIG].remove(name)
        self.number += 1
        self.lines.append(m.reduce(f"%v{self.number}", name, BIG))
        self.values[BIG].append(f"%v{self.number}")

    def program(self) -> Module:
        """A whole program; it returns a product and two other values."""
        self.lines.append(m.reduce("%v0", "%a", BIG))
        self.values[BIG].append("%v0")
        for _ in range(self.random.randrange(4, 16)):
            self.op()
        read = self.any()
        others = [self.any(kind) for kind in self.random.sample([k for k, values in self.values.items() if values], 1)]
        kinds = [next(kind for kind, values in self.values.items() if name in values) for name in others]
        return m.module(
            f"%a: {BIG}, %w: tensor<4x4xf32>", f"({', '.join((BIG, *kinds))})",
            "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
            "%half = stablehlo.constant dense<0.5> : tensor<f32>",
            "%i = stablehlo.constant dense<0> : tensor<i32>", *self.lines,
            f"%out = stablehlo.dot_general {read}, %w, contracting_dims = [1] x [0] : ({BIG}, tensor<4x4xf32>) -> "
            f"{BIG}",
            f"return {', '.join(('%out', *others))} : {', '.join((BIG, *kinds))}")


class SequenceParallelWriter(TensorParallelWriter):
    """Between some layers, each device has a part of the rows: they are scattered, gathered or exchanged."""

    def reduced(self) -> None:
        """Another layer."""
        how = self.random.choice(("reduce", "rows", "rows", "exchange"))
        if how == "reduce":
            super().reduced()
            return
        product = self.made(BIG, f"stablehlo.dot_general {self.any()}, %w, contracting_dims = [1] x [0] : ({BIG}, "
                                 f"tensor<4x4xf32>) -> {BIG}")
        self.values[BIG].remove(product)
        self.number += 1
        name = f"%v{self.number}"
        if how == "exchange":
            self.lines.append(
                f'{name} = "stablehlo.all_to_all"({product}) <{{split_dimension = 0 : i64, concat_dimension = '
                f"{self.random.choice((0, 0, 1))} : i64, split_count = 4 : i64, {m.groups_text(m.ALL)}, {m.CHANNEL}}}> "
                f": ({BIG}) -> {BIG}")
            if "concat_dimension = 1" in self.lines[-1]:
                self.lines[-1] = self.lines[-1].replace(f"-> {BIG}", "-> tensor<2x16xf32>").replace(name, f"{name}w")
                self.lines.append(f"{name} = stablehlo.reshape {name}w : (tensor<2x16xf32>) -> {BIG}")
        else:
            self._on_parts(product, name)
        self.values[BIG].append(name)

    def _on_parts(self, product: str, name: str) -> None:
        part = "tensor<2x4xf32>"
        scatter = m.reduce(f"{name}s", product, BIG).replace("all_reduce", "reduce_scatter").replace(
            "<{", "<{scatter_dimension = 0 : i64, ").replace(f"-> {BIG}", f"-> {part}")
        self.lines += [
            scatter, f"{name}t = stablehlo.{self.random.choice(('sine', 'tanh'))} {name}s : {part}",
            f'{name} = "stablehlo.all_gather"({name}t) <{{all_gather_dim = 0 : i64, {m.groups_text(m.ALL)}, '
            f"{m.CHANNEL}, use_global_device_ids}}> : ({part}) -> {BIG}"]


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_values_stay(seed: int) -> None:
    m.run(SequenceParallel(extra=2.0), TensorParallelWriter(seed).program())


def test_many_of_them_change() -> None:
    pass_ = SequenceParallel(extra=2.0)
    changed = [seed for seed in range(PROGRAMS) if pass_.run(TensorParallelWriter(seed).program(), PassContext())]
    assert len(changed) >= PROGRAMS // 3
