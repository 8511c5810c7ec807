"""Activations on shards: what moves, what stays and why, and that each condition is needed."""

from __future__ import annotations

import re

import fusion_modules as m
import pytest
import shard_update_steps as shards
from generators.code_mutation import replace_source

from hlorewrite.errors import UsageError
from hlorewrite.ir.module import Module
from hlorewrite.passes.sequence_parallel.sequence_parallel import SequenceParallel
from hlorewrite.passmanager.base import PassContext

KIND, ROWS, WEIGHT = "tensor<8x6xf32>", "tensor<8xf32>", "tensor<6x6xf32>"
DIMS, REGION = "hlorewrite.ops.dims", "hlorewrite.passes.sequence_parallel.region"
DIVIDED = "hlorewrite.passes.common.dimension_region"
PASS, EMIT = "hlorewrite.passes.sequence_parallel.sequence_parallel", "hlorewrite.passes.sequence_parallel.emit"
TABLE = [[i * 6 + j + 0.5 for j in range(6)] for i in range(8)]
ALL_OF_IT = SequenceParallel(extra=1.0)


def unary(result: str, op: str, operand: str, kind: str = KIND) -> str:
    """An elementwise op with one operand."""
    return f"{result} = stablehlo.{op} {operand} : {kind}"


def matmul(result: str, operand: str, size: int = 8) -> str:
    """A matrix product with a weight that is sharded over the group."""
    kind = f"tensor<{size}x6xf32>"
    return (f"{result} = stablehlo.dot_general {operand}, %w, contracting_dims = [1] x [0] : ({kind}, tensor<6x6xf32>) "
            f"-> {kind}")


def program(*body: str, groups: str = m.ALL, op: str = "add", rows: int = 8, also: str = "") -> Module:
    """An all-reduce, a body that makes ``%y`` of its result ``%r``, and a matrix product of that.

    Args:
      body: its lines.
      groups: of the all-reduce.
      op: its reducer.
      rows: of ``%y``.
      also: another value of 8x6 numbers to return.
    """
    kind = f"tensor<{rows}x6xf32>"
    result, end = (f"({kind}, {KIND})", f"return %out, {also} : {kind}, {KIND}") if also else (
        kind, f"return %out : {kind}")
    return m.module(
        f"%a: {KIND}, %w: tensor<6x6xf32>", result, f"%u = stablehlo.constant dense<{TABLE}> : {KIND}",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>", "%two = stablehlo.constant dense<2.0> : tensor<f32>",
        "%i = stablehlo.constant dense<0> : tensor<i32>", "%one = stablehlo.constant dense<1> : tensor<i32>",
        m.reduce("%r", "%a", KIND, groups=groups, op=op), *body, matmul("%out", "%y", rows), end)


def summed(result: str, operand: str, dims: str, kind: str, *, op: str = "add", start: str = "%zero") -> str:
    """A reduce of an 8x6 tensor."""
    return (f"{result} = stablehlo.reduce({operand} init: {start}) applies stablehlo.{op} across dimensions = [{dims}] "
            f": ({KIND}, tensor<f32>) -> {kind}")


def spread(result: str, operand: str, kind: str, dims: str) -> str:
    """A broadcast to 8x6."""
    return f"{result} = stablehlo.broadcast_in_dim {operand}, dims = [{dims}] : ({kind}) -> {KIND}"


NORM = (unary("%sq", "multiply", "%r, %r"), summed("%s", "%sq", "1", ROWS), unary("%q", "tanh", "%s", ROWS),
        spread("%b", "%q", ROWS, "0"), unary("%y", "multiply", "%r, %b"))
THROUGH = {
    "norm": NORM,
    "transposes": (f"%t = stablehlo.transpose %r, dims = [1, 0] : ({KIND}) -> tensor<6x8xf32>",
                   unary("%n", "sine", "%t", "tensor<6x8xf32>"),
                   f"%y = stablehlo.transpose %n, dims = [1, 0] : (tensor<6x8xf32>) -> {KIND}"),
    "reshapes": (f"%t = stablehlo.reshape %r : ({KIND}) -> tensor<8x2x3xf32>",
                 unary("%n", "sine", "%t", "tensor<8x2x3xf32>"),
                 f"%y = stablehlo.reshape %n : (tensor<8x2x3xf32>) -> {KIND}"),
    "rows in groups": (f"%t = stablehlo.reshape %r : ({KIND}) -> tensor<4x2x6xf32>",
                       unary("%n", "sine", "%t", "tensor<4x2x6xf32>"),
                       f"%y = stablehlo.reshape %n : (tensor<4x2x6xf32>) -> {KIND}"),
    "a replicated value beside it": (unary("%n", "sine", "%r"), unary("%y", "add", "%n, %u")),
    "numbers by row": (f"%k = stablehlo.iota dim = 0 : {KIND}", unary("%y", "multiply", "%r, %k")),
    "numbers by column": (f"%k = stablehlo.iota dim = 1 : {KIND}", unary("%y", "multiply", "%r, %k")),
    "a table of constants": (unary("%y", "multiply", "%r, %u"),),
    "select": (unary("%n", "sine", "%r"), spread("%z", "%zero", "tensor<f32>", ""),
               f"%c = stablehlo.compare GT, %n, %z : ({KIND}, {KIND}) -> tensor<8x6xi1>",
               f"%y = stablehlo.select %c, %n, %z : tensor<8x6xi1>, {KIND}"),
    "a barrier": (unary("%n", "sine", "%r"),
                  f"%h:2 = stablehlo.optimization_barrier %n, %w : {KIND}, tensor<6x6xf32>",
                  unary("%y", "cosine", "%h#0")),
    "slices and pads of columns": (
        f"%k = stablehlo.slice %r [0:8, 1:4] : ({KIND}) -> tensor<8x3xf32>",
        unary("%n", "sine", "%k", "tensor<8x3xf32>"), "%f = stablehlo.reverse %n, dims = [1] : tensor<8x3xf32>",
        f"%y = stablehlo.pad %f, %two, low = [0, 1], high = [0, 2], interior = [0, 0] : (tensor<8x3xf32>, tensor<f32>) "
        f"-> {KIND}"),
    "a replicated weight": (
        f"%k = stablehlo.slice %u [0:6, 0:6] : ({KIND}) -> {WEIGHT}", unary("%n", "sine", "%r"),
        f"%y = stablehlo.dot_general %n, %k, contracting_dims = [1] x [0] : ({KIND}, {WEIGHT}) -> {KIND}"),
    "a product by row": (
        unary("%n", "sine", "%r"),
        f"%k = stablehlo.dot_general %n, %r, batching_dims = [0] x [0], contracting_dims = [1] x [1] : ({KIND}, "
        f"{KIND}) -> {ROWS}", spread("%b", "%k", ROWS, "0"), unary("%y", "add", "%n, %b")),
    "halves joined": (
        f"%k = stablehlo.dynamic_slice %r, %i, %one, sizes = [8, 3] : ({KIND}, tensor<i32>, tensor<i32>) -> "
        "tensor<8x3xf32>",
        unary("%n", "sine", "%k", "tensor<8x3xf32>"),
        f"%y = stablehlo.concatenate %n, %k, dim = 1 : (tensor<8x3xf32>, tensor<8x3xf32>) -> {KIND}"),
    "columns written": (
        unary("%n", "sine", "%r"), f"%k = stablehlo.slice %n [0:8, 0:2] : ({KIND}) -> tensor<8x2xf32>",
        f"%y = stablehlo.dynamic_update_slice %n, %k, %i, %one : ({KIND}, tensor<8x2xf32>, tensor<i32>, "
        f"tensor<i32>) -> {KIND}"),
}


@pytest.mark.parametrize("name", THROUGH)
def test_sharded_through(name: str) -> None:
    after, said = m.run(SequenceParallel(axis=""), program(*THROUGH[name]))
    assert (m.count(after, "reduce_scatter"), m.count(after, "all_reduce"), m.count(after, "all_gather")) == (1, 0, 1)
    assert said[-1].startswith("applied: it is reduce-scattered along dimension 0 over 4 devices")


def test_random_bits_are_drawn_whole() -> None:
    """Drawn in shards, each device would draw the same bits for other rows. The interpreter has no such op."""
    module = program(
        "%key = stablehlo.constant dense<[3, 4]> : tensor<2xui64>",
        "%g:2 = stablehlo.rng_bit_generator %key, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, "
        "tensor<8x6xui32>)", f"%k = stablehlo.convert %g#1 : (tensor<8x6xui32>) -> {KIND}",
        unary("%y", "multiply", "%r, %k"))
    assert SequenceParallel().run(module, PassContext())
    text = module.text()
    assert "(tensor<2xui64>, tensor<8x6xui32>)" in text and "(tensor<8x6xui32>, tensor<ui32>, tensor<ui32>)" in text


def test_what_it_says() -> None:
    """All-reduce: 2 * 3/4 * 192 bytes; the same is sent after. Values of 192, 32, 32, 192 and 192 bytes."""
    _, said = m.run(SequenceParallel(), program(*NORM))
    assert said == ["applied: it is reduce-scattered along dimension 0 over 4 devices, and gathered where it is read "
                    "whole; with 5 more values, this frees 480 bytes, 0 of them carried by loops, and sends 288 bytes "
                    "(288 before)"]


def test_sums_over_rows_are_summed_over_the_group() -> None:
    """The gradient of a norm's weight: its sum adds a little to what is sent."""
    before = program(*NORM, summed("%d", "%sq", "0", "tensor<6xf32>"), spread("%e", "%d", "tensor<6xf32>", "1"),
                     also="%e")
    after, _ = m.run(SequenceParallel(extra=0.2), before)
    assert (m.count(after, "reduce_scatter"), m.count(after, "all_reduce")) == (1, 1)
    assert m.count(m.run(SequenceParallel(extra=0.1), before)[0], "reduce_scatter") == 0


def test_products_over_rows_are_summed_over_the_group() -> None:
    """The gradient of a replicated weight."""
    before = program(
        *NORM, f"%g = stablehlo.dot_general %sq, %b, contracting_dims = [0] x [0] : ({KIND}, {KIND}) -> {WEIGHT}",
        f"%z = stablehlo.pad %g, %zero, low = [0, 0], high = [2, 0], interior = [0, 0] : ({WEIGHT}, tensor<f32>) -> "
        f"{KIND}", also="%z")
    after, _ = m.run(SequenceParallel(extra=1.0), before)
    assert (m.count(after, "reduce_scatter"), m.count(after, "all_reduce")) == (1, 1)


def test_values_read_elsewhere_are_gathered() -> None:
    before = program(*NORM, also="%sq")
    after, _ = m.run(ALL_OF_IT, before)
    assert (m.count(after, "reduce_scatter"), m.count(after, "all_gather")) == (1, 2)
    assert m.count(m.run(SequenceParallel(), before)[0], "reduce_scatter") == 0


def loop(body: str, *, carried: str = "%r", condition: str = "%p") -> tuple[str, ...]:
    """Three layers: an all-reduce of a product is added to what the loop carries, which also is stacked."""
    stack = "tensor<3x8x6xf32>"
    return (f"%st = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> {stack}",
            f"%L:3 = stablehlo.while(%k = %i, %x = {carried}, %h = %st) : tensor<i32>, {KIND}, {stack} cond {{",
            "%three = stablehlo.constant dense<3> : tensor<i32>",
            "%p = stablehlo.compare LT, %k, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>",
            "%first = stablehlo.slice %x [7:8, 0:1] : (tensor<8x6xf32>) -> tensor<1x1xf32>",
            "%number = stablehlo.reshape %first : (tensor<1x1xf32>) -> tensor<f32>",
            "%small = stablehlo.compare LT, %number, %number : (tensor<f32>, tensor<f32>) -> tensor<i1>",
            "%both = stablehlo.or %p, %small : tensor<i1>", f"stablehlo.return {condition} : tensor<i1> }} do {{", body,
            "%next = stablehlo.add %k, %one : tensor<i32>",
            f"%row = stablehlo.reshape %sum : ({KIND}) -> tensor<1x8x6xf32>",
            f"%held = stablehlo.dynamic_update_slice %h, %row, %k, %i, %i : ({stack}, tensor<1x8x6xf32>, tensor<i32>, "
            f"tensor<i32>, tensor<i32>) -> {stack}",
            f"stablehlo.return %next, %sum, %held : tensor<i32>, {KIND}, {stack} }}",
            f"%last = stablehlo.dynamic_slice %L#2, %one, %i, %i, sizes = [1, 8, 6] : ({stack}, tensor<i32>, "
            "tensor<i32>, tensor<i32>) -> tensor<1x8x6xf32>",
            f"%flat = stablehlo.reshape %last : (tensor<1x8x6xf32>) -> {KIND}",
            unary("%y", "multiply", "%flat, %L#1"))


LAYER = "  ".join((unary("%n", "sine", "%x"), matmul("%m", "%n"),
                   re.sub(r"%([lrs])\b", r"%in_\1", m.reduce("%v", "%m", KIND)), unary("%sum", "add", "%x, %v")))
CARRIED = tuple(line for line in loop(LAYER) if not line.startswith(("%first", "%number", "%small", "%both")))


def test_carried_and_stacked_values_are_shards() -> None:
    after, said = m.run(SequenceParallel(), program(*CARRIED))
    assert (m.count(after, "reduce_scatter"), m.count(after, "all_reduce"), m.count(after, "all_gather")) == (2, 0, 2)
    assert "tensor<3x2x6xf32>" in after.text() and "tensor<3x8x6xf32>" not in after.text()
    assert any("576 of them carried by loops" in line for line in said)  # of 192 carried and 576 stacked: 3/4


def test_gradients_of_data_parallelism_stay() -> None:
    """Their sums are read by the optimizer, by no matrix product."""
    before = m.module(f"%a: {KIND}", KIND, m.reduce("%r", "%a", KIND), unary("%y", "sine", "%r"), f"return %y : {KIND}")
    assert m.count(m.run(SequenceParallel(), before)[0], "all_reduce") == 1


# ---- what stays

MAXIMUM = program(*NORM, op="maximum")
UNEVEN = m.module("%a: tensor<7x6xf32>, %w: tensor<6x6xf32>", "tensor<7x6xf32>",
                  m.reduce("%r", "%a", "tensor<7x6xf32>"), unary("%y", "sine", "%r", "tensor<7x6xf32>"),
                  matmul("%out", "%y", 7), "return %out : tensor<7x6xf32>")
OWN = program(unary("%n", "sine", "%r"), unary("%y", "add", "%n, %a"))
SQUARE = "tensor<8x8xf32>"


def unequal(body: str) -> Module:
    """A branch that some devices of a group take."""
    return program(
        unary("%n", "sine", "%r"), "%pid = stablehlo.partition_id : tensor<ui32>",
        "%c = stablehlo.constant dense<2> : tensor<ui32>",
        "%p = stablehlo.compare LT, %pid, %c : (tensor<ui32>, tensor<ui32>) -> tensor<i1>",
        f'%y = "stablehlo.if"(%p) ({{ {body} stablehlo.return %in : {KIND} }}, {{ stablehlo.return %u : {KIND} }}) '
        f": (tensor<i1>) -> {KIND}")


def test_uneven_sizes_are_said() -> None:
    _, said = m.run(ALL_OF_IT, UNEVEN)
    assert said == ["blocked: the all-reduce stays: its result has a dimension 0 of size 7, which 4 devices do not "
                    "divide evenly; has a dimension 1 of size 6, which 4 devices do not divide evenly"]


@pytest.mark.parametrize("before, why", [
    (MAXIMUM, "missed: the all-reduce stays: its reducer is not a sum"),
    (program(*NORM, groups="[[0], [1], [2], [3]]"), ""),
    (OWN, "missed: the all-reduce stays: nothing between it and a matrix product can be sharded along dimension 0"),
], ids=["maximum", "groups of one", "its own value on each device"])
def test_it_stays(before: Module, why: str) -> None:
    after, said = m.run(SequenceParallel(), before)
    assert after.text() == before.text() and said == ([why] if why else [])


def test_replica_ids_stay() -> None:
    before = m.module(f"%a: {KIND}, %w: tensor<6x6xf32>", KIND, m.reduce("%r", "%a", KIND, ids="").replace(
        f"{m.CHANNEL}, ", ""), unary("%y", "sine", "%r"), matmul("%out", "%y"), f"return %out : {KIND}")
    before.operation.attributes["mhlo.num_replicas"], before.operation.attributes["mhlo.num_partitions"] = (
        before.operation.attributes["mhlo.num_partitions"], before.operation.attributes["mhlo.num_replicas"])
    _, said = m.run(ALL_OF_IT, before)
    assert said == ["missed: the all-reduce stays: its groups do not count partitions, and indices are known only "
                    "for partitions"]


def test_bad_options() -> None:
    before = program(*NORM)
    with pytest.raises(UsageError, match="a share of at least 0"):
        m.run(SequenceParallel(extra=-1), before)


def test_a_repeated_constant_may_be_the_first_op_of_a_block() -> None:
    """It is erased; shards of arguments are cut before the first op."""
    lines = (f"%one = stablehlo.add %sum, %p : {shards.P}", f"%two = stablehlo.multiply %one, %half : {shards.P}",
             f"%three = stablehlo.add %two, %m : {shards.P}", f"%next = stablehlo.sine %three : {shards.P}",
             "%w = stablehlo.constant dense<1.0> : tensor<4x4xf32>",
             f"%new = stablehlo.dot_general %next, %w, contracting_dims = [1] x [0] : ({shards.P}, tensor<4x4xf32>) -> "
             f"{shards.P}")
    before = shards.step(shards.reduced(), *lines, first=f"%half = stablehlo.constant dense<0.5> : {shards.P}")
    after, _ = m.run(ALL_OF_IT, before)
    assert m.count(after, "reduce_scatter") == 1 and m.count(after, "dynamic_slice") == 3  # and the place


# ---- mutations

CONDITIONS = {
    "a reshape keeps the rows": (
        DIMS, "if same and math.prod(target[:place]) == before:", "if same:",
        (f"%t = stablehlo.reshape %r : ({KIND}) -> tensor<6x8xf32>", "%k = stablehlo.iota dim = 0 : tensor<6x8xf32>",
         unary("%n", "multiply", "%t, %k", "tensor<6x8xf32>"),
         f"%y = stablehlo.reshape %n : (tensor<6x8xf32>) -> {KIND}")),
    "rows are not reversed": (
        DIMS, 'if dimension in ints(op, "dimensions"):', "if False:",
        (unary("%n", "sine", "%r"), f"%y = stablehlo.reverse %n, dims = [0] : {KIND}")),
    "rows are not padded": (
        DIMS, "if position or any(ints(op, name)[dimension] for name in PADDING):", "if position:",
        (unary("%n", "sine", "%r"), f"%y = stablehlo.pad %n, %two, low = [8, 0], high = [0, 0], interior = [0, 0] : "
         f"({KIND}, tensor<f32>) -> tensor<16x6xf32>")),
    "rows are not joined": (
        DIMS, 'if integer(op, "dimension") == dimension:', "if False:",
        (unary("%n", "sine", "%r"),
         f"%y = stablehlo.concatenate %n, %u, dim = 0 : ({KIND}, {KIND}) -> tensor<16x6xf32>")),
    "rows are not cut": (
        DIMS, "if position or shape_of(op.operands[0])[dimension] != shape_of(op.results[0])[dimension]:",
        "if position:",
        (unary("%n", "sine", "%r"), f"%y = stablehlo.slice %n [4:8, 0:6] : ({KIND}) -> tensor<4x6xf32>")),
    "rows are not written one by one": (
        DIMS, "if (position or 0) > 1 or shape_of(op.operands[0])[dimension] != shape_of(op.operands[1])[dimension]:",
        "if (position or 0) > 1:",
        (unary("%n", "sine", "%r"), f"%f = stablehlo.slice %u [0:4, 0:6] : ({KIND}) -> tensor<4x6xf32>",
         f"%y = stablehlo.dynamic_update_slice %n, %f, %one, %i : ({KIND}, tensor<4x6xf32>, tensor<i32>, "
         f"tensor<i32>) -> {KIND}")),
    "only sums are summed": (
        DIMS, 'if count != 1 or reduction_kind(op) != "sum":', "if count != 1:",
        (*NORM[:-1], summed("%d", "%r", "0", "tensor<6xf32>", op="maximum"), spread("%e", "%d", "tensor<6xf32>", "1"),
         unary("%f", "multiply", "%r, %b"), unary("%y", "add", "%f, %e"))),
    "sums start at zero": (
        DIMS, 'if not is_identity(op.operands[1], "sum"):', "if False:",
        (*NORM[:-1], summed("%d", "%r", "0", "tensor<6xf32>", start="%two"), spread("%e", "%d", "tensor<6xf32>", "1"),
         unary("%f", "multiply", "%r, %b"), unary("%y", "add", "%f, %e"))),
    "numbers by row are sliced": (
        DIMS, 'return integer(op, "iota_dimension") != dimension', "return True",
        THROUGH["numbers by row"]),
    "only splat constants are made smaller": (
        DIMS, "return attribute is not None and attribute.is_splat", "return True",
        THROUGH["a table of constants"]),
    "values are equal on a group": (
        REGION, 'return f"gives each device of a group a different value: {reason.sentence}"',
        'if member.op.name == "stablehlo.dot_general": return "is a product"',
        (unary("%n", "sine", "%r"), unary("%y", "add", "%n, %a"))),
    "other readers read it whole": (
        EMIT, "for op, position, reader in region.readers(value) if reader not in chosen]",
        "for op, position, reader in region.readers(value) if op.name == 'stablehlo.dot_general']",
        (*NORM, f"%rev = stablehlo.reverse %y, dims = [0] : {KIND}", unary("%w2", "sine", "%rev"))),
    "the condition of a loop reads it whole": (
        DIVIDED, "if loop.tests(position):", "if False:",
        loop(LAYER, condition="%both")),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, old, new, body = CONDITIONS[name]
    rows = re.search(r"-> tensor<(\d+)x6xf32>$", body[-1])
    before = program(*body, rows=int(rows[1]) if rows else 8, also="%w2" if "%w2" in body[-1] else "")
    assert not m.went_wrong(before, "sequence-parallel{extra=3.0}")
    replace_source(where, old, new, monkeypatch)
    assert m.went_wrong(before, "sequence-parallel{extra=3.0}")


def test_one_value_has_one_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix plus its transpose."""
    before = m.module(f"%a: {SQUARE}, %w: {SQUARE}", SQUARE, m.reduce("%r", "%a", SQUARE),
                      unary("%n", "sine", "%r", SQUARE),
                      f"%t = stablehlo.transpose %n, dims = [1, 0] : ({SQUARE}) -> {SQUARE}",
                      unary("%y", "add", "%n, %t", SQUARE),
                      f"%out = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> "
                      f"{SQUARE}",
                      f"return %out : {SQUARE}")
    assert not m.went_wrong(before, "sequence-parallel{extra=3.0}")
    replace_source(DIVIDED, "if self._region.dims.get(value, dimension) != dimension:", "if False:", monkeypatch)
    assert m.went_wrong(before, "sequence-parallel{extra=3.0}")


@pytest.mark.parametrize("before, where, old, new", [
    (MAXIMUM, PASS, 'return "" if reduction_kind(op) == "sum" else "its reducer is not a sum"', 'return ""'),
    (UNEVEN, DIVIDED, "if size == 0 or blocks[value] % self.parts:", "if size == 0:"),
    (program(*NORM, groups="[[3, 1, 0, 2]]"), "hlorewrite.passes.common.own_shard",
     "for k, device in enumerate(row)}", "for k, device in enumerate(sorted(row))}"),
], ids=["a sum", "rows divide evenly", "shards in the order of the group"])
def test_each_condition_of_the_reduction_is_needed(before: Module, where: str, old: str, new: str,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    if "own_shard" in where:
        before = program(*THROUGH["a replicated value beside it"], groups="[[3, 1, 0, 2]]")
    assert not m.went_wrong(before, "sequence-parallel{extra=3.0}")
    replace_source(where, old, new, monkeypatch)
    assert m.went_wrong(before, "sequence-parallel{extra=3.0}")


def test_whole_groups_run_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a branch that two of four devices take, a gather would wait for the others for ever."""
    before = unequal("  ".join((unary("%q", "cosine", "%n"), matmul("%in", "%q"))))
    assert m.count(m.run(ALL_OF_IT, before)[0], "all_gather") <= 1  # before the branch, if at all
    replace_source(REGION, 'return f"runs on only some devices of a group: {reason.sentence}"', "pass", monkeypatch)
    after = before.clone()
    ALL_OF_IT.run(after, PassContext())
    inside = after.text().split("stablehlo.if")[1]
    assert "all_gather" in inside
