"""Experts of a device in two halves: tokens of one half are exchanged while the experts of the other compute."""

from __future__ import annotations

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.ir import ALL_TO_ALL, View, op_key
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.common.overlap_model import OverlapModel
from hlorewrite.passes.common.separate_copies import copied_from
from hlorewrite.passes.interleave_halves.chains import WaitWalk, chained
from hlorewrite.passes.interleave_halves.choose import HalvesChooser
from hlorewrite.passes.interleave_halves.interleave_halves import InterleaveHalves
from hlorewrite.passes.interleave_halves.region import HalfRegionFinder
from hlorewrite.passmanager.base import PassContext

ANYWAY = InterleaveHalves(min_gain=-1.0)
SENT, APART, TURNED, ROWS = (f"tensor<{dims}xf32>" for dims in ("4x6x5", "4x2x3x5", "2x4x3x5", "2x12x5"))
WEIGHT = "tensor<2x5x5xf32>"


def exchanged(result: str, operand: str) -> str:
    """Rows for each device become rows of each device."""
    return (f'{result} = "{ALL_TO_ALL.op}"({operand}) <{{split_dimension = 0 : i64, concat_dimension = 0 : i64, '
            f"split_count = 4 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
            f"{m.groups_text(m.ALL)}}}> : ({SENT}) -> {SENT}")


def experts(*before: str, weight: str = "%w") -> Module:
    """A device's two experts, on three rows for each from each of four devices."""
    return m.module(
        f"%x: {SENT}, %w: {WEIGHT}", SENT, *before, exchanged("%s", "%x"),
        f"%a = stablehlo.reshape %s : ({SENT}) -> {APART}",
        f"%t = stablehlo.transpose %a, dims = [1, 0, 2, 3] : ({APART}) -> {TURNED}",
        f"%r = stablehlo.reshape %t : ({TURNED}) -> {ROWS}",
        f"%p = stablehlo.dot_general %r, {weight}, batching_dims = [0] x [0], contracting_dims = [2] x [1] : "
        f"({ROWS}, {WEIGHT}) -> {ROWS}", f"%h = stablehlo.tanh %p : {ROWS}",
        f"%b = stablehlo.reshape %h : ({ROWS}) -> {TURNED}",
        f"%c = stablehlo.transpose %b, dims = [1, 0, 2, 3] : ({TURNED}) -> {APART}",
        f"%d = stablehlo.reshape %c : ({APART}) -> {SENT}", exchanged("%out", "%d"), f"return %out : {SENT}")


def halved(module: Module) -> Module:
    """The module after the pass, which changes it."""
    after = parse(module.text())
    assert ANYWAY.run(after, PassContext(topology="h200:1x4")) and not after.verify()
    return after


def test_each_half_has_its_own_experts() -> None:
    before = experts()
    after = halved(before)
    assert check(before, after).equal and isinstance(validate(before, after), Proved)
    assert m.count(after, "all_to_all") == 4 and m.count(after, "dot_general") == 2
    assert "(tensor<1x12x5xf32>, tensor<1x5x5xf32>) -> tensor<1x12x5xf32>" in after.text()


def gathered(*inner: int) -> Module:
    """Rows of four devices, which are several dimensions in between; the other dimensions are odd."""
    shard, rows = "tensor<3x6x5xf32>", "tensor<3x24x5xf32>"
    apart = f"tensor<3x{'x'.join(map(str, inner))}x5xf32>"
    gather = (f'"stablehlo.all_gather"(%x) <{{all_gather_dim = 1 : i64, {m.groups_text(m.ALL)}, use_global_device_ids, '
              "channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>}>")
    return m.module(
        f"%x: {shard}", rows, f"%g = {gather} : ({shard}) -> {rows}",
        f"%a = stablehlo.reshape %g : ({rows}) -> {apart}", f"%b = stablehlo.sine %a : {apart}",
        f"%c = stablehlo.reshape %b : ({apart}) -> {rows}", m.unique_reduce("%out", "%c", rows),
        f"return %out : {rows}")


@pytest.mark.parametrize("old, new", [
    ("* shape_of(value)[dimension] // max(1, size)", ""),
    ("self.parts * max(1, shape_of(value)[dimension] // max(1, known[value]))", "1"),
], ids=["the number of blocks stays", "each part is contiguous"])
def test_reshapes_keep_blocks(old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, modules = "interleave-halves{min-gain=-1}", (gathered(8, 3), gathered(2, 12), experts())
    assert not any(m.went_wrong(each, pipeline) for each in modules)
    replace_source("hlorewrite.passes.common.dimension_region", old, new, monkeypatch)
    assert any(m.went_wrong(each, pipeline) for each in modules)


# ---- what cuts and joins cost

VECTORS = "%v: tensor<6x5xf32>, %i: tensor<4x1xi32>, %u: tensor<4x5xf32>"
SCATTERED = (
    '%t = "stablehlo.scatter"(%v, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], '
    "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> "
    "({ ^bb0(%l: tensor<f32>, %o: tensor<f32>): stablehlo.return %o : tensor<f32> }) : "
    "(tensor<6x5xf32>, tensor<4x1xi32>, tensor<4x5xf32>) -> tensor<6x5xf32>")
SUM, SLICE = "%t = stablehlo.add %v, %v : tensor<6x5xf32>", (
    "%s = stablehlo.slice %t [0:4, 0:5] : (tensor<6x5xf32>) -> tensor<4x5xf32>")


@pytest.mark.parametrize("lines, separate", [
    ((SUM, SLICE), False), ((SCATTERED, SLICE), True),
    ((SUM, "%s = stablehlo.reshape %t : (tensor<6x5xf32>) -> tensor<3x2x5xf32>"), False),
    (("%s = stablehlo.reshape %v : (tensor<6x5xf32>) -> tensor<3x2x5xf32>",), True),
], ids=["a slice of a sum", "a slice of a scatter", "a reshaped sum", "a reshaped argument"])
def test_kernels_that_write_parts(lines: tuple[str, ...], separate: bool) -> None:
    kind = lines[-1].rsplit("-> ", 1)[1]
    module = m.module(VECTORS, kind, *lines, f"return %s : {kind}")
    last = View(module).functions["main"].regions[0].blocks[0].operations[len(lines) - 1].operation
    assert copied_from(last.results[0]) is separate


CONVERTED = "%k = stablehlo.convert %w : (tensor<2x5x5xf32>) -> tensor<2x5x5xf32>"


def seconds(module: Module) -> float:
    """What halves of large experts cost beside their collectives."""
    text = module.text().replace("x5x5x", "x4096x4096x")
    large = parse(text.replace("x5xf32", "x4096xf32"))
    view = View(large)
    first, last = view.ops(ALL_TO_ALL.op)
    chains = chained({op_key(first): first, op_key(last): last}, WaitWalk())
    model = OverlapModel(view, PassContext(topology="h200:1x4"), "interleave-halves")
    return sum(HalvesChooser(HalfRegionFinder().region(first, 1), model).best(chains).costs.values())


def test_weights_that_a_kernel_converts_are_cut_for_nothing() -> None:
    whole = 2 * 2 * 4096 * 4096 * 4 / 4.8e12
    assert seconds(experts()) - seconds(experts(CONVERTED, weight="%k")) > whole / 2
