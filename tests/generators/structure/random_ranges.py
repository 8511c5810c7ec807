"""Random accumulations in float types of few bits, and inputs near the ends of the range that the program keeps to:
values that cancel over the devices, values as small as the smallest normal number."""

from __future__ import annotations

import random
from dataclasses import dataclass

import ml_dtypes
import numpy as np

DEVICES = 8
_SIZE = 4
_DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8E5M2": ml_dtypes.float8_e5m2,
           "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
           "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz}
_CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids"


@dataclass(frozen=True)
class RangeCase:
    """A program and inputs.

    Attributes:
      text: the module, which each of eight devices runs.
      inputs: for each device its arguments.
      kind: what the inputs are like.
    """

    text: str
    inputs: list[list[np.ndarray]]
    kind: str


def random_ranges(rng: random.Random) -> RangeCase:
    """A program and its inputs.

    Args:
      rng: decides.
    """
    element = rng.choice(("f16", "f16", *_DTYPES))
    kind = rng.choice(("cancels", "tiny", "extremes"))
    trips, vector = rng.choice((3, 7, 30)), f"tensor<{_SIZE}x{element}>"
    body = _extremum(rng, vector, element) if kind == "extremes" else _sum(rng, vector, element, kind)
    text = f"""module attributes {{mhlo.num_partitions = {DEVICES} : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%x: {vector}, %y: {vector}, %start: {vector}) -> {vector} {{
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<{trips}> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %start) : tensor<i32>, {vector}
    cond {{
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
{body}      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, {vector}
    }}
    return %l#1 : {vector}
  }}
}}
"""
    return RangeCase(text, _inputs(rng, element, kind), f"{kind}, {element}, {trips} iterations")


def _reduced(name: str, operand: str, vector: str, element: str, op: str = "add") -> str:
    rows = [list(range(DEVICES))]
    one = f"tensor<{element}>"
    return (f'      {name} = "stablehlo.all_reduce"({operand}) <{{{_CHANNEL}, replica_groups = dense<{rows}> : '
            f"tensor<1x{DEVICES}xi64>}}> ({{ ^bb0(%a_: {one}, %b_: {one}): %c_ = stablehlo.{op} %a_, %b_ : {one} "
            f"stablehlo.return %c_ : {one} }}) : ({vector}) -> {vector}\n")


def _number(name: str, value: float, vector: str) -> str:
    return f"      {name} = stablehlo.constant dense<{value!r}> : {vector}\n"


def _sum(rng: random.Random, vector: str, element: str, kind: str) -> str:
    """``acc + k * AR(x)`` and the like; a factor below one only beside tiny values, which it would make vanish."""
    lines = _reduced("%g", "%x", vector, element)
    value = "%g"
    if rng.random() < 0.4:
        lines += _reduced("%h", "%y", vector, element) + f"      %both = stablehlo.add %g, %h : {vector}\n"
        value = "%both"
    most = 1 / (2 * DEVICES if value == "%both" else DEVICES)  # what the sum makes larger, it makes smaller again
    factor = rng.choice((0.5, most)) if kind == "tiny" else rng.choice((1.0, 1.0, 2.0, -1.0))
    if factor != 1.0:
        op = rng.choice(("multiply", "divide"))
        lines += _number("%k", factor if op == "multiply" else 1 / factor, vector)
        lines += f"      %scaled = stablehlo.{op} {value}, %k : {vector}\n"
        value = "%scaled"
    form = rng.choice(("add", "add", "subtract", "last")) if kind == "tiny" else rng.choice(("add", "add", "subtract"))
    if form == "last":
        return lines + f"      %new = stablehlo.maximum {value}, {value} : {vector}\n"
    return lines + f"      %new = stablehlo.{form} %acc, {value} : {vector}\n"


def _extremum(rng: random.Random, vector: str, element: str) -> str:
    """``max(acc + k, AR(x))`` with a maximum or minimum over devices."""
    op = rng.choice(("maximum", "minimum"))
    lines = _reduced("%g", "%x", vector, element, op)
    lines += _number("%k", rng.choice((-0.25, 0.25, -0.5, 0.5)), vector)
    lines += f"      %moved = stablehlo.add %acc, %k : {vector}\n" if rng.random() < 0.7 else (
        f"      %moved = stablehlo.negate %acc : {vector}\n")
    return lines + f"      %new = stablehlo.{op} %moved, %g : {vector}\n"


def _inputs(rng: random.Random, element: str, kind: str) -> list[list[np.ndarray]]:
    dtype = _DTYPES[element]
    info = ml_dtypes.finfo(dtype)
    # bf16 has the range of f32: only its precision is few bits (docs/rounding.md).
    largest, smallest = (8.0, 0.125) if element == "bf16" else (float(info.max), float(info.smallest_normal))
    rows = []
    for device in range(DEVICES):
        sign = 1 if device % 2 else -1
        if kind == "cancels":
            held = [sign * largest * share for share in (0.5, 0.375, 0.25, 0.5)]
        elif kind == "tiny":
            held = [smallest] * _SIZE
        else:
            held = [rng.choice((-1.0, -0.5, 0.25, 0.5, 1.0)) for _ in range(_SIZE)]
        start = [0.0] * _SIZE if kind != "extremes" else [rng.choice((0.0, 0.5, -0.5))] * _SIZE
        rows.append([np.array(values, dtype) for values in (held, held, start)])
    if kind == "extremes":
        rows = [[*row[:2], rows[0][2]] for row in rows]
    return rows
