"""Halves of a batch between collectives: what is divided, what stays whole, and that each condition is needed."""

from __future__ import annotations

import re

import fusion_modules as m
import pytest
from generators.code_mutation import replace_source
from test_sequence_parallel import CARRIED, THROUGH, matmul, program, spread, summed, unary
from test_sequence_parallel_random import SequenceParallelWriter, TensorParallelWriter

from hlorewrite.errors import UsageError
from hlorewrite.ir import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.common import block_waits
from hlorewrite.passes.common.dimension_region import RegionFinder
from hlorewrite.passes.common.overlap_model import HALF
from hlorewrite.passes.interleave_halves import interleave_halves
from hlorewrite.passes.interleave_halves.interleave_halves import InterleaveHalves, Saving
from hlorewrite.passes.interleave_halves.region import HalfRegionFinder
from hlorewrite.passmanager.base import PassContext
from hlorewrite.rules.listener import Recorder
from hlorewrite.timeline.stream_tasks import StreamTask

KIND, ROWS, HALVED = "tensor<8x6xf32>", "tensor<8xf32>", "tensor<4x6xf32>"
DIMS, DIVIDED = "hlorewrite.ops.dims", "hlorewrite.passes.common.dimension_region"
REGION = "hlorewrite.passes.interleave_halves.region"
CHOOSE, EMIT = "hlorewrite.passes.interleave_halves.choose", "hlorewrite.passes.interleave_halves.emit"
ANYWAY = InterleaveHalves(min_gain=-1.0)
PIPELINE = "interleave-halves{min-gain=-1}"
GROUPS = f"channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, {m.groups_text(m.ALL)}"


def again(result: str, operand: str, kind: str = KIND) -> str:
    """An all-reduce of a batch."""
    return m.unique_reduce(result, operand, kind)


def between(*body: str, also: str = "", kind: str = KIND) -> Module:
    """A chain of two all-reduces with a body between them that makes ``%y`` of ``%r``."""
    result, end = (f"({KIND}, {kind})", f"return %out, {also} : {KIND}, {kind}") if also else (
        KIND, f"return %out : {KIND}")
    table = [[i * 6 + j + 0.5 for j in range(6)] for i in range(8)]
    return m.module(
        f"%a: {KIND}, %w: tensor<6x6xf32>", result, f"%u = stablehlo.constant dense<{table}> : {KIND}",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>", "%two = stablehlo.constant dense<2.0> : tensor<f32>",
        "%i = stablehlo.constant dense<0> : tensor<i32>", "%one = stablehlo.constant dense<1> : tensor<i32>",
        again("%r", "%a"), *body, matmul("%m", "%y"), again("%out", "%m"), end)


REVERSED = (f"%n = stablehlo.reverse %r, dims = [0] : {KIND}", unary("%y", "add", "%n, %r"))


@pytest.mark.parametrize("name", THROUGH)
def test_divided_through(name: str) -> None:
    after, said = m.run(ANYWAY, between(*THROUGH[name]))
    assert m.count(after, "all_reduce") == 4 and said[0].startswith(
        "applied: it runs in two halves along dimension 0, with 1 more, each concurrently with compute of the other")
    assert f"({HALVED}) -> {HALVED}" in after.text()


def test_what_waits_for_too_little_is_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves save at most the waits; a network that is written out has hundreds of such chains."""
    monkeypatch.setattr("hlorewrite.passes.interleave_halves.interleave_halves.HalvesChooser", None)
    after, said = m.run(InterleaveHalves(min_gain=0.999), between(*THROUGH["norm"]))
    assert m.count(after, "all_reduce") == 2
    assert re.fullmatch(r"unprofitable: it stays as it is: two halves along dimension 0 would save at most \d+ us per "
                        r"run, \d+\.\d% of what waits for it, according to the model of .*", said[0])


def test_a_bound_on_one_dimension_does_not_hide_the_saving_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound is the most that can be saved in longer blocks, so it may be the larger number."""
    real = interleave_halves._saving_of

    def bounded(region, sent, known, dimension, least):
        bound = Saving(None, 1e9, 0.0, 0, sent, dimension)
        return bound if dimension == 0 else real(region, sent, known, dimension, least)

    monkeypatch.setattr(interleave_halves, "_saving_of", bounded)
    chain = m.module(f"%a: {KIND}", KIND, again("%r", "%a"), unary("%y", "tanh", "%r"), again("%out", "%y"),
                     f"return %out : {KIND}")
    after, said = m.run(ANYWAY, chain)
    assert m.count(after, "all_reduce") == 4 and "in two halves along dimension 1" in said[0]


def test_layers_in_a_loop_carry_and_stack_halves() -> None:
    after, _ = m.run(ANYWAY, program(*CARRIED))
    text = after.text()
    assert m.count(after, "all_reduce") == 3, "the one before the loop stands in no chain"
    assert "tensor<3x4x6xf32>" in text
    assert "tensor<3x8x6xf32>" not in text.partition("stablehlo.while")[2].partition("concatenate")[0]


def test_what_mixes_rows_reads_both_halves() -> None:
    after, _ = m.run(ANYWAY, between(*REVERSED))
    text = after.text()
    assert "stablehlo.reverse" in text and text.index("concatenate") < text.index("stablehlo.reverse")


def test_sums_over_the_batch_are_sums_of_two() -> None:
    """Where adding the results costs less than joining what is summed."""
    after, _ = m.run(ANYWAY, between(unary("%y", "sine", "%r"), summed("%g", "%y", "0", "tensor<6xf32>"), also="%g",
                                     kind="tensor<6xf32>"))
    assert after.text().count(f"({HALVED}, tensor<f32>) -> tensor<6xf32>") == 2
    assert re.search(r"stablehlo.add %\w+, %\w+ : tensor<6xf32>", after.text())


def test_a_barrier_holds_each_half() -> None:
    after, _ = m.run(ANYWAY, between(
        f"%h:2 = stablehlo.optimization_barrier %r, %w : {KIND}, tensor<6x6xf32>", unary("%y", "cosine", "%h#0")))
    held = re.findall(rf"%\w+:2 = stablehlo.optimization_barrier .* : {HALVED}, tensor<6x6xf32>", after.text())
    assert len(held) == 2


def test_xla_does_not_join_what_was_divided() -> None:
    """Second halves read weights behind a barrier, and their collectives have a combiner key and a channel."""
    after, _ = m.run(ANYWAY, between(*THROUGH["norm"]))
    text = after.text()
    assert text.count('combiner_key = "hlorewrite.second-half"') == 2
    assert len(set(re.findall(r"handle = (\d+)", text))) == 3  # both firsts had one number
    held = re.search(r"(%\w+) = stablehlo.optimization_barrier (%\w+) : tensor<6x6xf32>", text)
    assert held and len(re.findall(rf"dot_general %\w+, {held[1]},", text)) == 1


def test_a_second_run_changes_nothing() -> None:
    after, _ = m.run(ANYWAY, between(*THROUGH["norm"]))
    assert after.text().count(HALF) == 4
    assert not ANYWAY.run(after, PassContext(topology="h200:1x4"))


def test_gradients_that_no_collective_waits_for_stay() -> None:
    before = m.module(f"%a: {KIND}", KIND, m.reduce("%r", "%a", KIND), unary("%y", "sine", "%r"), f"return %y : {KIND}")
    after, said = m.run(ANYWAY, before)
    assert after.text() == before.text()
    assert said == ["missed: it stays as it is: it is in no chain of collectives that wait for one another"]


def test_without_a_cluster_it_says_so() -> None:
    with pytest.raises(UsageError, match="decides by predicted time, and no cluster is named"):
        InterleaveHalves().run(between(*THROUGH["norm"]), PassContext())


def layers(rows: int, width: int, gradients: bool = False) -> Module:
    """Layers of tensor parallelism at a size of real models, in a loop."""
    kind, weight = f"tensor<{rows}x{width}xbf16>", f"tensor<{width}x{width}xbf16>"
    product = f"contracting_dims = [1] x [0] : ({kind}, {weight}) -> {kind}"
    return m.module(
        f"%a: {kind}, %w: {weight}", kind, "%i = stablehlo.constant dense<0> : tensor<i32>",
        "%one = stablehlo.constant dense<1> : tensor<i32>", "%n = stablehlo.constant dense<8> : tensor<i32>",
        f"%L:2 = stablehlo.while(%k = %i, %x = %a) : tensor<i32>, {kind} cond {{",
        "%p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "stablehlo.return %p : tensor<i1> } do {",
        f"%h = stablehlo.dot_general %x, %w, {product}", unary("%t", "tanh", "%h", kind),
        f"%g = stablehlo.dot_general %t, %w, {product}", again("%v", "%g", kind),
        f"%y = stablehlo.add %x, %v : {kind}", "%next = stablehlo.add %k, %one : tensor<i32>",
        f"stablehlo.return %next, %y : tensor<i32>, {kind} }}", f"return %L#1 : {kind}")


@pytest.mark.parametrize("rows, width, divides", [(8192, 8192, True), (64, 512, False)], ids=["large", "small"])
def test_it_pays_where_compute_waits_longer_than_two_calls_cost(rows: int, width: int, divides: bool) -> None:
    recorder = Recorder(wants_missed=True)
    changed = InterleaveHalves().run(layers(rows, width), PassContext(listeners=(recorder,), topology="h200:1x4"))
    assert changed is divides
    if not divides:
        assert not recorder.remarks or "would save -" in recorder.remarks[0].sentence


def test_xla_leaves_only_what_is_between_kernels() -> None:
    """A permute of what a loop carries begins with the iteration; a reduction of a gradient ends with it."""
    kernel, permute = StreamTask(1.0), StreamTask(1.0, transfer=True)
    between, gradient = StreamTask(1.0, (0,), transfer=True), StreamTask(1.0, (3,), transfer=True)
    passed_on, reader = StreamTask(0.0, (2,)), StreamTask(1.0, (1, 5))
    assert block_waits._between_kernels([kernel, permute, between, kernel, gradient, passed_on, reader]) == [2]


# ---- collectives that cut the dimension, or join values along it

A2A = (f'%y = "{ALL_TO_ALL.op}"(%n) <{{split_dimension = 0 : i64, concat_dimension = 0 : i64, '
       f"split_count = 4 : i64, {GROUPS}}}> : ({KIND}) -> {KIND}")
TURNED = A2A.replace("concat_dimension = 0", "concat_dimension = 1").replace(f"-> {KIND}", "-> tensor<2x24xf32>")
SCATTER = again("%y", "%n").replace(
    ALL_REDUCE.op, REDUCE_SCATTER.op).replace("<{", "<{scatter_dimension = 0 : i64, ").replace(
    f"-> {KIND}", "-> tensor<2x6xf32>")
GATHER = (f'%y = "{ALL_GATHER.op}"(%n) <{{all_gather_dim = 0 : i64, {GROUPS}, use_global_device_ids}}> : ({KIND}) -> '
          "tensor<32x6xf32>")
COLLECTIVES = {"all-to-all": (A2A, KIND), "all-to-all of two": (TURNED, "tensor<2x24xf32>"),
               "reduce-scatter": (SCATTER, "tensor<2x6xf32>"), "all-gather": (GATHER, "tensor<32x6xf32>")}


def beside(collective: str, result: str, columns: int = 6) -> Module:
    """An all-reduce, some other collective along dimension 0, and a third one."""
    made = m.module(f"%a: {KIND}", result, again("%r", "%a"), unary("%n", "sine", "%r"), collective,
                    unary("%q", "cosine", "%y", result), again("%out", "%q", result), f"return %out : {result}")
    return parse(made.text().replace("x24xf32", f"x{4 * columns}xf32").replace("x6xf32", f"x{columns}xf32"))


@pytest.mark.parametrize("name", COLLECTIVES)
def test_rows_of_devices_are_halved_device_by_device(name: str) -> None:
    """The other dimension is odd, so nothing else can be halved."""
    after, said = m.run(ANYWAY, beside(*COLLECTIVES[name], columns=5))
    assert m.count(after, COLLECTIVES[name][0].split('"')[1].removeprefix("stablehlo.")) == 2
    assert any(each.startswith("applied: it runs in two halves along dimension 0") for each in said)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_halves_of_blocks_are_not_halves_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = beside(*COLLECTIVES[name], columns=5)
    assert not m.went_wrong(before, PIPELINE)
    monkeypatch.setattr(HalfRegionFinder, "block", RegionFinder.block)
    assert not m.went_wrong(before, PIPELINE)
    replace_source(REGION, "if piece % max(1, self._region.blocks[known]):", "if False:", monkeypatch)
    assert m.went_wrong(before, PIPELINE)


def test_a_dimension_of_size_zero_has_no_halves() -> None:
    before = parse(layers(4, 8).text().replace("4x8x", "0x8x").replace("bf16", "f32"))
    assert not m.went_wrong(before, PIPELINE)


# ---- what waits for both halves

SCORES = "tensor<8x8xf32>"
ATTENTION = (unary("%n", "sine", "%r"),
             f"%s = stablehlo.dot_general %n, %n, contracting_dims = [1] x [1] : ({KIND}, {KIND}) -> {SCORES}",
             unary("%t", "tanh", "%s", SCORES),
             f"%y = stablehlo.dot_general %t, %n, contracting_dims = [1] x [0] : ({SCORES}, {KIND}) -> {KIND}")


def test_what_is_made_in_halves_may_be_read_whole() -> None:
    """Rows of attention by themselves read the keys and values of all rows."""
    after, _ = m.run(ANYWAY, between(*ATTENTION))
    assert m.count(after, "all_reduce") == 4
    assert f"stablehlo.optimization_barrier %{{}} : {KIND}".partition(" %")[0] in after.text()
    assert f"({HALVED}, {KIND}) -> tensor<4x8xf32>" in after.text()


def test_a_chain_ends_where_halves_are_summed() -> None:
    """The first two collectives wait for each other row by row, the third for a sum of all rows."""
    kind, row = "tensor<8192x8192xbf16>", "tensor<8192xbf16>"
    product = f"contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}"
    before = m.module(
        f"%a: {kind}, %w: {kind}", kind, "%zero = stablehlo.constant dense<0.0> : tensor<bf16>",
        f"%g = stablehlo.dot_general %a, %w, {product}", again("%r", "%g", kind), unary("%n", "tanh", "%r", kind),
        f"%h = stablehlo.dot_general %n, %w, {product}", again("%s", "%h", kind),
        f"%d = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : ({kind}, tensor<bf16>) "
        f"-> {row}", f"%e = stablehlo.broadcast_in_dim %d, dims = [1] : ({row}) -> {kind}",
        unary("%q", "tanh", "%e", kind), f"%k = stablehlo.dot_general %q, %w, {product}", again("%out", "%k", kind),
        f"return %out : {kind}")
    recorder = Recorder(wants_missed=True)
    assert InterleaveHalves().run(before, PassContext(listeners=(recorder,), topology="h200:1x4"))
    assert "along dimension 0, with 1 more" in recorder.remarks[0].sentence
    assert m.count(before, "all_reduce") == 5


# ---- conditions

CONDITIONS = {
    "what mixes rows stays whole": (
        DIMS, 'if dimension in ints(op, "dimensions"):\n        return "rev', 'if False:\n        return "rev',
        REVERSED),
    "sums of halves are added": (
        EMIT, "self.editor.replace(whole, made.results[0], keep=[made])", "pass",
        (unary("%n", "sine", "%r"), summed("%d", "%n", "0", "tensor<6xf32>"), spread("%e", "%d", "tensor<6xf32>", "1"),
         unary("%y", "add", "%n, %e"))),
    "other reads of a half are of the whole": (
        EMIT, "if not whole:\n            return", "if True:\n            return", REVERSED),
    "numbers by row are cut": (
        DIMS, 'return integer(op, "iota_dimension") != dimension', "return True", THROUGH["numbers by row"]),
    "only splat constants are made smaller": (
        DIMS, "return attribute is not None and attribute.is_splat", "return True", THROUGH["a table of constants"]),
    "only sums are parts of sums": (
        DIMS, 'if count != 1 or reduction_kind(op) != "sum":', "if count != 1:",
        (unary("%n", "sine", "%r"), summed("%d", "%n", "0", "tensor<6xf32>", op="maximum"),
         spread("%e", "%d", "tensor<6xf32>", "1"), unary("%y", "add", "%n, %e"))),
    "sums start at zero": (
        DIMS, 'if not is_identity(op.operands[1], "sum"):', "if False:",
        (unary("%n", "sine", "%r"), summed("%d", "%n", "0", "tensor<6xf32>", start="%two"),
         spread("%e", "%d", "tensor<6xf32>", "1"), unary("%y", "add", "%n, %e"))),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, old, new, body = CONDITIONS[name]
    before = between(*body)
    assert not m.went_wrong(before, PIPELINE)
    replace_source(where, old, new, monkeypatch)
    assert m.went_wrong(before, PIPELINE)


def test_halves_are_even(monkeypatch: pytest.MonkeyPatch) -> None:
    before = parse(layers(8, 8).text().replace("8x8x", "7x7x").replace("bf16", "f32"))
    assert not m.went_wrong(before, PIPELINE)
    replace_source(DIVIDED, "if size == 0 or blocks[value] % self.parts:", "if size == 0:", monkeypatch)
    assert m.went_wrong(before, PIPELINE)


# ---- random programs

PROGRAMS = 24


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_values_stay(seed: int) -> None:
    m.run(ANYWAY, TensorParallelWriter(seed).program())


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_values_stay_where_devices_share_rows(seed: int) -> None:
    m.run(ANYWAY, SequenceParallelWriter(seed).program())


@pytest.mark.parametrize("writer", [TensorParallelWriter, SequenceParallelWriter])
def test_many_of_them_change(writer: type[TensorParallelWriter]) -> None:
    changed = [seed for seed in range(PROGRAMS)
               if ANYWAY.run(writer(seed).program(), PassContext(topology="h200:1x4"))]
    assert len(changed) >= PROGRAMS // 4
