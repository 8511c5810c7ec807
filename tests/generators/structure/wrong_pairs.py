"""Pairs of programs that compute different values, by mistakes that a validator could make."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids"
_V = "tensor<4xf32>"
_FLOATS = {"f8E4M3FN": 448.0, "f8E4M3FNUZ": 240.0, "f8E5M2FNUZ": 57344.0, "f8E4M3B11FNUZ": 30.0}


@dataclass(frozen=True)
class WrongPair:
    """A program, a wrong rewriting of it, and what is wrong.

    Attributes:
      before: the text of the program.
      after: the text of the other one.
      mistake: what makes them differ.
    """

    before: str
    after: str
    mistake: str


def wrong_pair(rng: random.Random) -> WrongPair:
    """A pair.

    Args:
      rng: decides.
    """
    return rng.choice((_unequal_trips, _order_of_dimensions, _table_of_dimensions, _lost_identity))(rng)


def _module(body: str, result: str, arguments: str, partitions: int = 4) -> str:
    return (f"module attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"  func.func public @main({arguments}) -> {result} {{\n{body}  }}\n}}\n")


def _reduced(name: str, operand: str, type_: str = _V, op: str = "add", rows: str = "[[0, 1, 2, 3]]") -> str:
    one = "tensor<" + type_.rpartition("x")[2]
    size = f"{rows.count('[') - 1}x{len(rows.split(']')[0].split(','))}"
    return (f'    {name} = "stablehlo.all_reduce"({operand}) <{{{_CHANNEL}, replica_groups = dense<{rows}> : '
            f"tensor<{size}xi64>}}> ({{ ^bb0(%a_: {one}, %b_: {one}): %c_ = stablehlo.{op} %a_, %b_ : {one} "
            f"stablehlo.return %c_ : {one} }}) : ({type_}) -> {type_}\n")


def _loop(bound: str, start: str, body: str, type_: str = _V) -> str:
    return (f"    %l:2 = stablehlo.while(%i = %i0, %acc = {start}) : tensor<i32>, {type_}\n    cond {{\n"
            f"      %go = stablehlo.compare LT, %i, {bound} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"      stablehlo.return %go : tensor<i1>\n    }} do {{\n{body}"
            f"      %next = stablehlo.add %i, %i1 : tensor<i32>\n"
            f"      stablehlo.return %next, %new : tensor<i32>, {type_}\n    }}\n")


def _unequal_trips(rng: random.Random) -> WrongPair:
    """``acc + AR(x)`` in a loop whose trips differ, XLA ending it; and the sum over devices taken after it."""
    own = "    %id = stablehlo.partition_id : tensor<ui32>\n    %me = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>\n"
    numbers = ("    %i0 = stablehlo.constant dense<0> : tensor<i32>\n    %i1 = stablehlo.constant dense<1> : tensor<i32>\n"
               f"    %few = stablehlo.constant dense<{rng.randint(2, 9)}> : tensor<i32>\n"
               f"    %zero = stablehlo.constant dense<0.0> : {_V}\n")
    bound = rng.choice(("%me", "%own", "%sum", "%product", "%clamped", "%own"))
    made = ("    %sum = stablehlo.add %me, %few : tensor<i32>\n    %product = stablehlo.multiply %me, %few : tensor<i32>\n"
            "    %clamped = stablehlo.clamp %i1, %own, %few : tensor<i32>\n")
    rows = rng.choice(("[[0, 1, 2, 3]]", "[[0, 1], [2, 3]]", "[[3, 0], [1, 2]]"))
    term = rng.choice(("%x", "%twice", "%wave"))
    before = (f"    %twice = stablehlo.add %x, %x : {_V}\n    %wave = stablehlo.sine %x : {_V}\n")
    factor = rng.choice((0.5, 2.0, 1.0))
    scale = f"    %k = stablehlo.constant dense<{factor}> : {_V}\n"
    reduced = _reduced("%g", term, rows=rows) + f"    %new = stablehlo.add %acc, %g : {_V}\n"
    local = f"    %new = stablehlo.add %acc, {term} : {_V}\n"
    ends = [f"    %out = stablehlo.multiply {each}, %k : {_V}\n    return %out : {_V}\n" for each in ("%l#1", "%r")]
    head = own + numbers + made + before + scale
    arguments = f"%x: {_V}, %own: tensor<i32>"
    return WrongPair(_module(head + _loop(bound, "%zero", reduced) + ends[0], _V, arguments),
                     _module(head + _loop(bound, "%zero", local) + _reduced("%r", "%l#1", rows=rows) + ends[1], _V,
                             arguments), f"trips {bound}, groups {rows}, of {term}")


def _orders(rng: random.Random, rank: int, results: int) -> tuple[list[int], list[int]]:
    """Two orders of dimensions in a result that hold the same dimensions in another order."""
    one = rng.sample(range(results), rank)
    other = list(one)
    while other == one:  # Ends: with probability one, within a few rounds.
        rng.shuffle(other)
    return one, other


def _order_of_dimensions(rng: random.Random) -> WrongPair:
    """A value that a broadcast spreads, and one whose equal dimensions another broadcast spreads in another order."""
    rank = rng.choice((2, 2, 3))
    results, size = rank + rng.choice((0, 1)), rng.choice((2, 3, 4))
    one, other = _orders(rng, rank, results)
    shape = [size if d in one else rng.choice((1, 2)) for d in range(results)]
    source, wide = (f"tensor<{'x'.join(map(str, dims))}xf32>" for dims in ([size] * rank, shape))
    extra = rng.choice(("", f"    %z = stablehlo.negate %y : {wide}\n"))
    texts = [_module(f"    %y = stablehlo.broadcast_in_dim %x, dims = {dims} : ({source}) -> {wide}\n{extra}"
                     f"    return {'%z' if extra else '%y'} : {wide}\n", wide, f"%x: {source}") for dims in (one, other)]
    return WrongPair(*texts, f"dimensions {one} and {other}")


def _table_of_dimensions(rng: random.Random) -> WrongPair:
    """A slice at an entry of a table that a broadcast transposes, and at the entry of one who does not."""
    rows, size = rng.choice((2, 3, 4)), 4
    numbers = np.array([[rng.randrange(size) for _ in range(size)] for _ in range(rows)])
    one, other = numbers.T, numbers.reshape(size, rows)
    column = next((k for k in range(rows) if (one[:, k] != other[:, k]).any()), None)
    if column is None:
        return _order_of_dimensions(rng)

    def text(entries: np.ndarray, dims: list[int]) -> str:
        held = f"tensor<{'x'.join(map(str, entries.shape))}xi32>"
        return _module(
            "    %id = stablehlo.partition_id : tensor<ui32>\n    %me = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>\n"
            f"    %t = stablehlo.constant dense<{entries.tolist()}> : {held}\n    %c = stablehlo.constant dense<{column}> : tensor<i32>\n"
            f"    %w = stablehlo.broadcast_in_dim %t, dims = {dims} : ({held}) -> tensor<{size}x{rows}xi32>\n"
            f"    %e = stablehlo.dynamic_slice %w, %me, %c, sizes = [1, 1] : (tensor<{size}x{rows}xi32>, tensor<i32>, tensor<i32>) -> tensor<1x1xi32>\n"
            "    %s = stablehlo.reshape %e : (tensor<1x1xi32>) -> tensor<i32>\n"
            "    %y = stablehlo.dynamic_slice %x, %s, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>\n"
            "    return %y : tensor<1xf32>\n", "tensor<1xf32>", f"%x: {_V}")
    return WrongPair(text(numbers, [1, 0]), text(other, [0, 1]), f"a table of {rows} rows")


def _lost_identity(rng: random.Random) -> WrongPair:
    """``max(acc + k, AR(x))`` in 8-bit floats, and the maximum over devices taken after the loop."""
    element = rng.choice(sorted(_FLOATS))
    op, sign = rng.choice((("maximum", -1), ("minimum", 1)))
    # Half a place of the largest number and more, or what is added to it is rounded away.
    type_, k = f"tensor<4x{element}>", sign * _FLOATS[element] / rng.choice((4, 7, 8))
    head = ("    %i0 = stablehlo.constant dense<0> : tensor<i32>\n    %i1 = stablehlo.constant dense<1> : tensor<i32>\n"
            f"    %n = stablehlo.constant dense<{rng.randint(2, 6)}> : tensor<i32>\n"
            f"    %k = stablehlo.constant dense<{k}> : {type_}\n    %least = stablehlo.constant dense<{sign * _FLOATS[element]}> : {type_}\n")
    moved = f"    %m = stablehlo.add %acc, %k : {type_}\n"
    reduced = _reduced("%g", "%x", type_, op) + moved + f"    %new = stablehlo.{op} %m, %g : {type_}\n"
    local = moved + f"    %new = stablehlo.{op} %m, %x : {type_}\n"
    arguments = f"%x: {type_}"
    return WrongPair(_module(head + _loop("%n", "%start", reduced, type_) + f"    return %l#1 : {type_}\n", type_,
                             arguments + f", %start: {type_}"),
                     _module(head + _loop("%n", "%least", local, type_) + _reduced("%r", "%l#1", type_, op)
                             + _loop("%n", "%start", moved + f"    %new = stablehlo.negate %m : {type_}\n", type_).replace("%l:2", "%u:2").replace(
                                 "stablehlo.negate %m", f"stablehlo.{op} %m, %least")
                             + f"    %out = stablehlo.{op} %r, %u#1 : {type_}\n    return %out : {type_}\n", type_,
                             arguments + f", %start: {type_}"), f"{op} in {element}, {k} a time")
