"""Indices outside of what they index: the oracle clamps and leaves out as XLA does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.reference.program import prepare
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.xla.execute import run_module
from hlorewrite.jaxbridge.xla.target import parse_target

TYPES: dict[str, Any] = {"i32": np.int32, "i8": np.int8, "ui8": np.uint8, "ui32": np.uint32}
REGIONS = {"add": "%s = stablehlo.add %p, %q : tensor<f32> stablehlo.return %s : tensor<f32>",
           "put": "stablehlo.return %q : tensor<f32>"}
SLICE = ("%r = stablehlo.dynamic_slice %x, %i, %j, sizes = [3, 2] : (tensor<8x6xf32>, tensor<{t}>, tensor<{t}>) -> "
         "tensor<3x2xf32>")
UPDATE = ("%r = stablehlo.dynamic_update_slice %x, %u, %i, %j : (tensor<8x6xf32>, tensor<3x2xf32>, tensor<{t}>, "
          "tensor<{t}>) -> tensor<8x6xf32>")
GATHER = ('%r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], '
          "start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 3, 2>}}> : "
          "(tensor<8x6xf32>, tensor<4x2x{t}>) -> tensor<4x3x2xf32>")
SCATTER = ('%r = "stablehlo.scatter"(%x, %i, %u) ({{^bb0(%p: tensor<f32>, %q: tensor<f32>): {region}}}) '
           "{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}} : "
           "(tensor<8x6xf32>, tensor<{index}x{t}>, tensor<{updates}xf32>) -> tensor<8x6xf32>")
WINDOWS = {"numbers": "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
           "index": "4x2", "updates": "4x3x2"}
PARTS = {"numbers": "update_window_dims = [1, 2], scatter_dims_to_operand_dims = [1], index_vector_dim = 1",
         "index": "4", "updates": "4x8x2"}
ROWS = {"numbers": "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                   "index_vector_dim = 1", "index": "4x1", "updates": "4x6"}
SHAPES = {"dynamic_slice": (SLICE, {}, "3x2", {"i": "", "j": ""}),
          "dynamic_update_slice": (UPDATE, {}, "8x6", {"u": "3x2", "i": "", "j": ""}),
          "gather": (GATHER, {}, "4x3x2", {"i": "4x2"}),
          **{f"scatter {name}, {by}": (SCATTER, {**form, "region": region}, "8x6",
                                       {"i": form["index"], "u": form["updates"]})
             for name, form in (("windows", WINDOWS), ("parts", PARTS), ("rows", ROWS))
             for by, region in REGIONS.items()}}


def program(op: str, index: str) -> tuple[str, dict[str, str]]:
    """The text of a function of one op, and the types of its arguments."""
    template, fields, result, others = SHAPES[op]
    kinds = {name: (f"{shape}x" if shape else "") + (index if name in "ij" else "f32")
             for name, shape in {"x": "8x6", **others}.items()}
    arguments = ", ".join(f"%{name}: tensor<{kind}>" for name, kind in kinds.items())
    return (f"func.func @main({arguments}) -> tensor<{result}xf32> {{ {template.format(t=index, **fields)} "
            f"return %r : tensor<{result}xf32> }}"), kinds


def inputs(kinds: dict[str, str], index: str, seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    made = []
    for name, kind in kinds.items():
        shape = tuple(int(n) for n in kind.split("x")[:-1])
        if name in "ij":
            low, high = (-3, 24) if seed else (0, 8)
            numbers = generator.integers(max(low, int(np.iinfo(TYPES[index]).min)), high, shape)
            made.append(np.asarray(numbers).astype(TYPES[index]))
        else:
            made.append(generator.standard_normal(shape).astype(np.float32))
    return made


@pytest.mark.parametrize("index", TYPES)
@pytest.mark.parametrize("op", SHAPES)
def test_as_xla(op: str, index: str) -> None:
    text, kinds = program(op, index)
    ready, module = prepare(parse(text)), parse(text)
    for seed in range(3):
        arrays = inputs(kinds, index, seed)
        expected = np.asarray(run_module(module, parse_target("cpu:1"), arrays).shards[0][0])
        np.testing.assert_allclose(np.asarray(ready.run([arrays]).outputs[0][0]), expected, rtol=1e-6)


def test_a_clamp_that_is_left_out_is_noticed() -> None:
    """A slice of a slice is not one slice at the sum of both starts: each of them is clamped."""
    take = "%{} = stablehlo.dynamic_slice %{}, %{}, sizes = [{}] : (tensor<{}xf32>, tensor<i32>) -> tensor<{}xf32> "
    head = "func.func @main(%x: tensor<16xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<8xf32> { "
    nested = head + take.format("a", "x", "i", 12, 16, 12) + take.format("r", "a", "j", 8, 12, 8)
    joined = head + "%k = stablehlo.add %i, %j : tensor<i32> " + take.format("r", "x", "k", 8, 16, 8)
    before, after = (parse(text + "return %r : tensor<8xf32> }") for text in (nested, joined))
    assert not all(check(before, after, seed=seed).equal for seed in range(3))
