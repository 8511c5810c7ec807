"""Where dimensions go: against the interpreter, on parts of index arrays, and against Shardy's own rules."""
# ruff: noqa: E501 (MLIR text and snippets of source)

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from generators.code_mutation import replace_source
from generators.op_samples import BOTH, LESS, MAXIMUM, SUM, arrays, gather, sample, scatter
from jaxlib.mlir import passmanager

from hlorewrite.checks.reference.rounding.eval_op import eval_op
from hlorewrite.ir.binding import ir, sdy
from hlorewrite.ir.types import with_dimension
from hlorewrite.ops.attributes import shape_of
from hlorewrite.ops.dims import DimFactor, attributes_for, dim_factor, repeats_whole, reshaped

A = "tensor<4x2x6xf32>"
INDEX, F = "tensor<i32>", "tensor<f32>"
SAMPLES: dict[str, tuple[str, str]] = {line.partition(" :")[0][:100] + str(number): (line, zero) for number, (line, zero) in enumerate([
    (f"add %a, %b : {A}", ""), ("compare LT, %a, %b : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xi1>", ""),
    (f"select %a, %b, %c : (tensor<i1>, {A}, {A}) -> {A}", ""),
    (f"select %a, %b, %c : (tensor<4x2x6xi1>, {A}, {A}) -> {A}", ""),
    (f"clamp %a, %b, %c : ({F}, {A}, {A}) -> {A}", ""), ("negate %a : tensor<0x4xf32>", ""),
    (f"convert %a : ({A}) -> tensor<4x2x6xi32>", ""),
    *((f"transpose %a, dims = {order} : ({A}) -> tensor<{shape}xf32>", "") for order, shape in (
        ([0, 1, 2], "4x2x6"), ([0, 2, 1], "4x6x2"), ([1, 0, 2], "2x4x6"), ([1, 2, 0], "2x6x4"), ([2, 0, 1], "6x4x2"),
        ([2, 1, 0], "6x2x4"))),
    ("broadcast_in_dim %a, dims = [0, 2] : (tensor<4x6xf32>) -> tensor<4x2x6xf32>", ""),
    ("broadcast_in_dim %a, dims = [2, 0] : (tensor<6x4xf32>) -> tensor<4x2x6xf32>", ""),
    ("broadcast_in_dim %a, dims = [1, 2] : (tensor<1x6xf32>) -> tensor<4x2x6xf32>", ""),
    ("broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<4x2xf32>", ""),
    ("bitcast_convert %a : (tensor<4x2xf32>) -> tensor<4x2xi32>", ""),
    ("bitcast_convert %a : (tensor<4x2xi32>) -> tensor<4x2x2xi16>", ""),
    (f"slice %a [0:4, 1:2, 0:6:2] : ({A}) -> tensor<4x1x3xf32>", ""), (f"slice %a [2:4, 0:2, 0:6] : ({A}) -> tensor<2x2x6xf32>", ""),
    (f"dynamic_slice %a, %b, %c, %d, sizes = [4, 2, 2] : ({A}, {INDEX}, {INDEX}, {INDEX}) -> tensor<4x2x2xf32>", ""),
    (f"dynamic_update_slice %a, %b, %c, %d, %e : ({A}, tensor<4x2x4xf32>, {INDEX}, {INDEX}, {INDEX}) -> {A}", ""),
    (f"concatenate %a, %b, dim = 1 : ({A}, tensor<4x4x6xf32>) -> tensor<4x6x6xf32>", ""),
    (f"reverse %a, dims = [0, 2] : {A}", ""),
    (f"pad %a, %b, low = [0, 1, -1], high = [0, 1, 1], interior = [0, 0, 0] : ({A}, {F}) -> tensor<4x4x6xf32>", ""),
    (f"pad %a, %b, low = [0, 0, 0], high = [0, 0, -5], interior = [0, 2, 1] : ({A}, {F}) -> tensor<4x4x6xf32>", ""),
    (f'"stablehlo.reduce"(%a, %zero) <{{dimensions = array<i64: 0, 2>}}> {SUM} : ({A}, {F}) -> tensor<2xf32>', F),
    (f'"stablehlo.reduce"(%a, %b) <{{dimensions = array<i64: 1>}}> {SUM} : ({A}, {F}) -> tensor<4x6xf32>', ""),
    (f'"stablehlo.reduce"(%a, %zero) <{{dimensions = array<i64: 2>}}> {MAXIMUM} : ({A}, {F}) -> tensor<4x2xf32>', F),
    ('"stablehlo.reduce"(%a, %b, %c, %d) <{dimensions = array<i64: 1>}> ' + BOTH
     + f" : (tensor<4x2xf32>, tensor<4x2xi32>, {F}, {INDEX}) -> (tensor<4xf32>, tensor<4xi32>)", ""),
    ("dot_general %a, %b, batching_dims = [1] x [0], contracting_dims = [2] x [1] : (tensor<4x2x6xf32>, tensor<2x6x8xf32>) "
     "-> tensor<2x4x8xf32>", ""),
    ("dot_general %a, %b, contracting_dims = [0, 1] x [1, 0] : (tensor<4x2xf32>, tensor<2x4x6xf32>) -> tensor<6xf32>", ""),
    (f'"stablehlo.sort"(%a, %b) <{{dimension = 1 : i64}}> {LESS} : (tensor<4x6xf32>, tensor<4x6xi32>) -> '
     "(tensor<4x6xf32>, tensor<4x6xi32>)", ""),
    (gather("1, 2", "0", "1, 2, 6", f"({A}, tensor<8x1xi32>) -> tensor<8x2x6xf32>"), ""),
    (gather("0, 2", "", "2, 6", "(tensor<4x6xf32>, tensor<8x2xi32>) -> tensor<2x8x6xf32>", mapped="1, 0"), ""),
    (gather("2", "0", "1, 4, 1", "(tensor<6x4x2xf32>, tensor<2x8x1xi32>) -> tensor<2x8x4xf32>", vector=2, batch="2", indices="0"), ""),
    (gather("", "0, 1", "1, 1", "(tensor<4x6xf32>, tensor<2x2x4xi32>) -> tensor<2x4xf32>", mapped="0, 1"), ""),
    (gather("1", "", "4", "(tensor<4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>"), ""),
    (scatter("1, 2", "0", f"({A}, tensor<8x1xi32>, tensor<8x2x6xf32>) -> {A}"), ""),
    (scatter("1, 2", "0", f"({A}, tensor<8x1xi32>, tensor<8x2x4xf32>) -> {A}", by=MAXIMUM), ""),
    (scatter("1", "0", "(tensor<4x6xf32>, tensor<8x1xi32>, tensor<8x6xf32>) -> tensor<4x6xf32>", into="%zero"), "tensor<4x6xf32>"),
    (scatter("1", "0", "(tensor<4x6xf32>, tensor<8x1xi32>, tensor<8x6xf32>) -> tensor<4x6xf32>", into="%zero", by=MAXIMUM),
     "tensor<4x6xf32>"),
    (scatter("2", "0", "(tensor<6x4x2xf32>, tensor<2x8x1xi32>, tensor<2x8x4xf32>) -> tensor<6x4x2xf32>", vector=2, batch="2",
             indices="0"), ""),
    (scatter("0, 1", "", "(tensor<4x6xf32>, tensor<2x2xi32>, tensor<4x6x2xf32>) -> tensor<4x6xf32>", mapped="0, 1", vector=0), ""),
    ("count_leading_zeros %a : tensor<4x2xi32>", ""),
])}
SHAPES = ([8, 6], [2, 4, 6], [4, 2, 6], [8, 2, 3], [1, 8, 6], [8, 1, 6, 1], [6, 8], [48], [4, 12], [2, 24], [2, 2, 2, 6])
for first in SHAPES:
    for second in SHAPES:
        SAMPLES[f"reshape {first} to {second}"] = (
            f"reshape %a : (tensor<{'x'.join(map(str, first))}xf32>) -> tensor<{'x'.join(map(str, second))}xf32>", "")


def factors(op: ir.Operation, shards: int) -> Iterator[tuple[int | None, int, DimFactor]]:
    """(operand, dimension, factor) of everything that the table says about an op; None for the result."""
    for position, value in [*enumerate(op.operands), (None, op.results[0])]:
        for dimension in range(len(shape_of(value))):
            factor = dim_factor(op, dimension, position, shards)
            if isinstance(factor, DimFactor):
                yield position, dimension, factor


def on_parts(op: ir.Operation, factor: DimFactor, inputs: list[np.ndarray], shards: int) -> list[np.ndarray]:
    """The results of an op done on parts of its operands: put together, or added up."""
    split = [[each] * shards if d is None else np.split(each, shards, axis=d)
             for each, d in zip(inputs, factor.operands, strict=True)]
    types = [value.type if d is None else with_dimension(value.type, d, shape_of(value)[d] // shards)
             for value, d in zip(op.operands, factor.operands, strict=True)]
    made: list[list[np.ndarray]] = []
    clone = op.clone(ir.InsertionPoint(op)).operation
    if factor.result is not None:
        size = shape_of(op.results[0])[factor.result] // shards
        for name, attribute in attributes_for(op, factor.result, size).items():
            clone.attributes[name] = attribute
        for result in clone.results:
            result.set_type(with_dimension(result.type, factor.result, size))
    for k, type_ in enumerate(types):
        clone.operands[k] = op.block.add_argument(type_, op.location)
    clone.verify()
    for part in range(shards):
        made.append(eval_op(clone, [(each[part], type_) for each, type_ in zip(split, types, strict=True)]))
    clone.erase()
    if factor.result is None:
        return [np.sum(each, axis=0) for each in zip(*made, strict=True)]
    return [np.concatenate(each, axis=factor.result) for each in zip(*made, strict=True)]


def wrong(name: str) -> list[str]:
    """What an op on parts computes otherwise than the op; nothing if the table is right."""
    (_module, op), found = sample(*SAMPLES[name]), []
    inputs = arrays(op)
    expected = eval_op(op, [(each, value.type) for each, value in zip(inputs, op.operands, strict=True)])
    for shards in (0, 2):
        for position, dimension, factor in factors(op, shards):
            assert (factor.result if position is None else factor.operands[position]) == dimension
            sizes = [shape_of(value)[d] for value, d in zip(op.operands, factor.operands, strict=True) if d is not None]
            if all(size % 2 == 0 for size in sizes):
                made = on_parts(op, factor, inputs, 2)
                if not all(np.array_equal(a, b) for a, b in zip(made, expected, strict=True)):
                    found.append(f"{factor}")
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_an_op_on_parts_computes_parts(name: str) -> None:
    """Operands are divided along a factor, and each part of the result is computed from parts: the op itself."""
    assert not wrong(name)


def leading(mappings: list[sdy.TensorMappingAttr], position: int) -> list[list[int]]:
    return [list(sdy.DimMappingAttr(each).factor_indices) for each in sdy.TensorMappingAttr(mappings[position]).dim_mappings]


NARROWER = {
    "stablehlo.gather": "an index may take an element from any part: a sum of masked parts, which is another program",
    "stablehlo.reduce": "a maximum, or a sum that starts elsewhere, is no sum of parts",
    "stablehlo.scatter": "a sum into anything but zeros would add these once for each part",
    "stablehlo.pad": "where sizes agree Shardy keeps the sharding, and elements move between devices",
    "stablehlo.dynamic_update_slice": "the same: an update of a part may be written over several devices",
}
"""Ops of which Shardy says more than the table, and why it does not."""


@pytest.mark.parametrize("name", SAMPLES)
def test_shardy_says_the_same(name: str) -> None:
    """Each factor is one of Shardy's rule; what more that has is listed."""
    module, op = sample(*SAMPLES[name])
    passes = passmanager.PassManager.parse("builtin.module(func.func(sdy-populate-op-sharding-rules))", op.context)
    passes.run(module.mlir.operation)
    rule = sdy.OpShardingRuleAttr(op.attributes["sdy.sharding_rule"])
    operands = [leading(rule.operand_mappings, k) for k in range(len(op.operands))]
    results = [leading(rule.result_mappings, k) for k in range(len(op.results))]
    del op.attributes["sdy.sharding_rule"]
    seen = set()
    for position, dimension, factor in factors(op, 2):
        if shape_of(op.results[0] if position is None else op.operands[position])[dimension] % 2:
            continue  # nothing to divide, in Shardy often a factor of its own
        held = (results[0] if position is None else operands[position])[dimension][0]
        seen.add(held)
        for mapping, d in zip(operands, factor.operands, strict=True):
            assert held not in [each[0] for each in mapping if each] if d is None else mapping[d][0] == held
        if factor.result is None:
            assert held in list(rule.reduction_factors)
        else:
            assert all(mapping[factor.result][0] == held for mapping in results)
            assert held not in [*rule.reduction_factors, *rule.need_replication_factors, *rule.permutation_factors]
    read, made = ([each for mapping in side for each in mapping if each] for side in (operands, results))
    there = {each[0] for each in read} & {*rule.reduction_factors, *(each[0] for each in made)}
    there = {each for each in there if rule.factor_sizes[each] % 2 == 0}
    there -= {*rule.need_replication_factors, *rule.permutation_factors, *(f for each in read + made for f in each[1:])}
    assert there <= seen or op.name in NARROWER


MUTATIONS = [
    ("return DimFactor((dimension,), order.index(dimension))", "return DimFactor((dimension,), dimension)"),
    ("return DimFactor((order[dimension],), dimension)", "return DimFactor((dimension,), dimension)"),
    ("if same and math.prod(target[:place]) == before:", "if same:"),
    ("same = other == size or (shards > 0 and other > 0 and other % shards == 0 and size % shards == 0)", "same = True"),
    ("if repeats_whole(op, result):", "if False:"),
    ("if dimension >= min(len(shape_of(op.operands[0])), len(shape_of(op.results[0]))):", "if False:"),
    ("if position or shape_of(op.operands[0])[dimension] != shape_of(op.results[0])[dimension]:", "if position:"),
    ("if (position or 0) > 1 or shape_of(op.operands[0])[dimension] != shape_of(op.operands[1])[dimension]:",
     "if (position or 0) > 1:"),
    ('if integer(op, "dimension") == dimension:', "if False:"),
    ('if dimension in ints(op, "dimensions"):', "if False:"),
    ("if position or any(ints(op, name)[dimension] for name in PADDING):", "if position:"),
    ('return "sorts along the dimension" if along == dimension else', "return"),
    ('if count != 1 or reduction_kind(op) != "sum":', "if count != 1:"),
    ('if not is_identity(op.operands[1], "sum"):', "if False:"),
    ("for result, place in _gather_window(op) if sizes[place] == shape[place]]", "for result, place in _gather_window(op)]"),
    ("if shape[place] == updates[update] and place not in", "if place not in"),
    (" and place not in numbers.scattered_dims_to_operand_dims]", "]"),
    (' and is_identity(op.operands[0], "sum")', ""),
    ('sums = count == 1 and reduction_kind(op) == "sum" and', "sums = count == 1 and"),
    ("if place in batch or sums:", "if True:"),
    ("factors += [DimFactor(pair, None) for pair in dims.summed]", "factors += [DimFactor((pair[0], None), None) for pair in dims.summed]"),
]


@pytest.mark.parametrize(("old", "new"), MUTATIONS)
def test_a_wrong_row_is_seen(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes and validator share the table, so each condition of it is seen to count here."""
    replace_source("hlorewrite.ops.dims", old, new, monkeypatch)
    for name in SAMPLES:
        try:
            if wrong(name):
                return
        except (ValueError, IndexError, AssertionError, ir.MLIRError):  # parts that do not fit, or no such op
            return
    pytest.fail("no sample needs it")


def test_what_is_spread_out_is_read_whole() -> None:
    _module, spread = sample("broadcast_in_dim %a, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>")
    assert repeats_whole(spread, 0) and not repeats_whole(spread, 1)
    _module, stretched = sample("broadcast_in_dim %a, dims = [0, 1] : (tensor<1x6xf32>) -> tensor<4x6xf32>")
    assert repeats_whole(stretched, 0) and not repeats_whole(stretched, 1)
    _module, numbers = sample("iota dim = 1 : () -> tensor<4x6xi32>".replace("() -> ", ""))
    assert repeats_whole(numbers, 0) and not repeats_whole(numbers, 1)


@pytest.mark.parametrize(("before", "after", "dimension", "shards", "expected"), [
    ([8, 16, 4], [8, 64], 0, 0, 0), ([8, 16, 4], [8, 64], 1, 0, None), ([8, 16, 4], [8, 64], 2, 0, None),
    ([8, 16, 4], [128, 4], 2, 0, 1), ([4, 8], [32], 0, 2, 0), ([4, 8], [32], 0, 3, None), ([1, 4], [4, 1], 0, 0, None),
    ([4, 1], [1, 4], 0, 0, 1), ([0, 3], [0, 5], 0, 0, 0), ([2, 3], [3, 2], 0, 0, None)])
def test_reshaped(before: list[int], after: list[int], dimension: int, shards: int, expected: int | None) -> None:
    assert reshaped(before, after, dimension, shards) == expected
