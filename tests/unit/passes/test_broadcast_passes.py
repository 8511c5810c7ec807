"""Gathers, masked sums, fan-outs and sums with a slice: what becomes cheaper, and each condition that stops it."""

from __future__ import annotations

from typing import Literal

import fusion_modules as m
import pytest

from hlorewrite.passes.gather_to_broadcast import GatherToBroadcast
from hlorewrite.passes.legalize_for_cpu import LegalizeForCpu
from hlorewrite.passes.masked_sum_to_broadcast import MaskedSumToBroadcast
from hlorewrite.passes.permutes_to_broadcast import PermutesToBroadcast
from hlorewrite.passes.reduce_scatter_creation import ReduceScatterCreation

T, WHOLE = "tensor<8x4xf32>", "tensor<32x4xf32>"
ID = ("%id = stablehlo.partition_id : tensor<ui32>", "%k = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>",
      "%z0 = stablehlo.constant dense<0> : tensor<i32>")


def gather(groups: str = m.ALL, whole: str = WHOLE, ids: str = ", use_global_device_ids") -> str:
    """An all-gather of %a as %g."""
    return (f'%g = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {m.CHANNEL}, {m.groups_text(groups)}{ids}}}>'
            f" : ({T}) -> {whole}")


def sliced(start: int, limit: int, lines: tuple[str, ...] = ()):
    """A module that reads rows of a gather."""
    kind = f"tensor<{limit - start}x4xf32>"
    return m.module(f"%a: {T}", kind, gather(), *lines,
                    f"%y = stablehlo.slice %g [{start}:{limit}, 0:4] : ({WHOLE}) -> {kind}", f"return %y : {kind}")


def indexed(*lines: str, size: int = 8):
    """A module that reads a gather at index %i."""
    kind = f"tensor<{size}x4xf32>"
    return m.module(f"%a: {T}, %n: tensor<i32>", kind, gather(), *ID, *lines,
                    f"%y = stablehlo.dynamic_slice %g, %i, %z0, sizes = [{size}, 4] : ({WHOLE}, tensor<i32>, "
                    f"tensor<i32>) -> {kind}", f"return %y : {kind}")


def scaled(step: int, add: int = 0, wrap: int = 0) -> tuple[str, ...]:
    """%i = ((id + add) mod wrap) * step."""
    lines = [f"%c = stablehlo.constant dense<{step}> : tensor<i32>",
             f"%d = stablehlo.constant dense<{add}> : tensor<i32>",
             "%s = stablehlo.add %k, %d : tensor<i32>"]
    if wrap:
        lines += [f"%w = stablehlo.constant dense<{wrap}> : tensor<i32>",
                  "%r = stablehlo.remainder %s, %w : tensor<i32>"]
    return (*lines, f"%i = stablehlo.multiply %{'r' if wrap else 's'}, %c : tensor<i32>")


GATHER = GatherToBroadcast()


@pytest.mark.parametrize("before, made", [
    (sliced(16, 24), "collective_broadcast"), (sliced(17, 20), "collective_broadcast"),
    (indexed(*scaled(8, 1, 4)), "collective_permute"), (indexed(*scaled(8)), None),
    (indexed(*scaled(1, 9), size=3), "collective_broadcast"), (indexed(*scaled(8, 0, 2)), None)])
def test_gather(before, made: str | None) -> None:
    after, _ = m.run(GATHER, before, ignore_cost=True)
    assert made is None or (m.count(after, made) == 1 and m.count(after, "all_gather") == 0)


def test_a_gather_in_front_of_a_branch_sends_in_front_of_it() -> None:
    """The slice stands in a branch that not every device takes; the broadcast must not."""
    before = m.module(f"%a: {T}", T, gather(), *ID,
                      "%p = stablehlo.compare EQ, %k, %z0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
                      f'%y = "stablehlo.if"(%p) ({{ %u = stablehlo.slice %g [8:16, 0:4] : ({WHOLE}) -> {T} '
                      f"stablehlo.return %u : {T} }}, {{ stablehlo.return %a : {T} }}) : (tensor<i1>) -> {T}",
                      f"return %y : {T}")
    after, _ = m.run(GATHER, before, ignore_cost=True)
    assert after.text().index("collective_broadcast") < after.text().index("stablehlo.if")


@pytest.mark.parametrize("before, why", [
    (sliced(4, 12), "spans several shards"),
    (indexed("%i = stablehlo.add %n, %z0 : tensor<i32>"), "depends on more than constants"),
    (indexed("%t = stablehlo.constant dense<[8, 8, 8, 16]> : tensor<4xi32>",
             "%e = stablehlo.dynamic_slice %t, %k, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>",
             "%i = stablehlo.reshape %e : (tensor<1xi32>) -> tensor<i32>"), "in a pattern"),
])
def test_gather_stays(before, why: str) -> None:
    after, said = m.run(GATHER, before, ignore_cost=True)
    assert m.count(after, "all_gather") == 1
    assert any(line.startswith("blocked") and why in line for line in said), said


def test_gather_of_replicas_stays() -> None:
    before = sliced(16, 24).text().replace(", use_global_device_ids", "").replace(m.CHANNEL + ", ", "").replace(
        "num_partitions = 4", "num_partitions = 1").replace("num_replicas = 1", "num_replicas = 4")
    after, said = m.run(GATHER, m.parse(before), ignore_cost=True)
    assert m.count(after, "all_gather") == 1
    assert "do not count partitions" in said[0]


def test_gather_of_which_all_is_read_stays() -> None:
    before = m.module(f"%a: {T}", WHOLE, gather(), f"return %g : {WHOLE}")
    assert m.count(m.run(GATHER, before)[0], "all_gather") == 1


def test_small_gather_stays_for_cost() -> None:
    assert any(line.startswith("unprofitable") for line in m.run(GATHER, sliced(16, 24))[1])


def masked(mask: str = "%k, %two", other: str = "0.0", op: str = "add", groups: str = m.ALL):
    """A masked reduction of %a."""
    return m.module(f"%a: {T}", T, *ID, "%two = stablehlo.constant dense<2> : tensor<i32>",
                    f"%o = stablehlo.constant dense<{other}> : {T}",
                    f"%p = stablehlo.compare EQ, {mask}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
                    f"%m = stablehlo.select %p, %a, %o : tensor<i1>, {T}",
                    m.reduce("%y", "%m", T, op=op, groups=groups), f"return %y : {T}")


def test_masked_sum() -> None:
    after, _ = m.run(MaskedSumToBroadcast(), masked())
    assert m.count(after, "collective_broadcast") == 1
    assert m.count(after, "all_reduce") == m.count(after, "select") == 0


def test_masked_product() -> None:
    assert m.count(m.run(MaskedSumToBroadcast(), masked(other="1.0", op="multiply"))[0], "collective_broadcast") == 1


@pytest.mark.parametrize("before, why", [
    (masked(other="1.0"), "on exactly one side"), (masked(op="maximum"), "masks under a"),
    (masked(mask="%k, %k"), "4 devices of a group contribute"),
    (masked(groups=m.PAIRS), "0 devices of a group contribute"),
])
def test_masked_sum_stays(before, why: str) -> None:
    after, said = m.run(MaskedSumToBroadcast(), before, ignore_cost=True)
    assert m.count(after, "all_reduce") == 1
    assert any(why in line for line in said), said


def test_mask_of_a_value_stays() -> None:
    """A mask that data decides."""
    before = m.module(f"%a: {T}, %p: tensor<i1>", T, f"%o = stablehlo.constant dense<0.0> : {T}",
                      f"%m = stablehlo.select %p, %a, %o : tensor<i1>, {T}", m.reduce("%y", "%m", T),
                      f"return %y : {T}")
    assert "depends on more than constants" in m.run(MaskedSumToBroadcast(), before)[1][0]


def one_hot(kind: str, *, mask: str = "i32", lines: tuple[str, ...] = (), kept: str = "%a", groups: str = m.ALL,
            two: int = 2, source: str = ""):
    """A sum of %a times one on device 2 and zero elsewhere; %a may be converted by ``lines`` first."""
    element = kind.split("x")[-1].rstrip(">")
    return m.module(f"%a: {source or kind}", kind, *ID, f"%two = stablehlo.constant dense<{two}> : tensor<i32>", *lines,
                    "%p = stablehlo.compare EQ, %k, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
                    f"%q = stablehlo.convert %p : (tensor<i1>) -> tensor<{mask}>",
                    f"%f = stablehlo.convert %q : (tensor<{mask}>) -> tensor<{element}>",
                    f"%o = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<{element}>) -> {kind}",
                    f"%m = stablehlo.multiply {kept}, %o : {kind}", m.reduce("%y", "%m", kind, groups=groups),
                    f"return %y : {kind}")


@pytest.mark.parametrize("element", ["i32", "ui8", "i64"])
def test_an_integer_times_a_mask_is_a_masked_sum(element: str) -> None:
    """Zero times an integer is zero."""
    after, _ = m.run(MaskedSumToBroadcast(), one_hot(f"tensor<8x4x{element}>"))
    assert m.count(after, "collective_broadcast") == 1
    assert m.count(after, "all_reduce") == m.count(after, "multiply") == 0


@pytest.mark.parametrize("mask", ["i32", "f32", "f64", "bf16"])
def test_a_float_times_a_mask_stays_and_says_what_to_write(mask: str) -> None:
    """Zero times infinity is not-a-number."""
    before = one_hot(T, mask=mask)
    after, said = m.run(MaskedSumToBroadcast(), before, ignore_cost=True)
    assert after.text() == before.text()
    assert said == ["blocked: the reduction stays: its mask is a factor, and 0 * x is not 0 if x is infinite or "
                    "not-a-number; if those need not reach the other devices, write jnp.where(mask, x, 0) instead of "
                    "x * mask"]


def converted(source: str) -> tuple[str, ...]:
    """%g: a float made of integers, turned round."""
    return (f"%n = stablehlo.convert %a : (tensor<4x8x{source}>) -> tensor<4x8xf32>",
            f"%g = stablehlo.transpose %n, dims = [1, 0] : (tensor<4x8xf32>) -> {T}")


@pytest.mark.parametrize("source, times", [("i32", 1), ("i1", 1), ("f64", 0)])
def test_a_float_made_of_integers_is_finite(source: str, times: int) -> None:
    before = one_hot(T, lines=converted(source), kept="%g", source=f"tensor<4x8x{source}>")
    after, _ = m.run(MaskedSumToBroadcast(), before)
    assert m.count(after, "collective_broadcast") == times


def test_a_masked_product_without_one_contributor_stays() -> None:
    after, said = m.run(MaskedSumToBroadcast(), one_hot("tensor<8x4xi32>", groups=m.PAIRS), ignore_cost=True)
    assert m.count(after, "all_reduce") == 1
    assert any("0 devices of a group contribute" in line for line in said), said


def test_a_factor_that_is_no_mask_is_not_spoken_of() -> None:
    """Zero everywhere, since no device is number 9."""
    assert m.run(MaskedSumToBroadcast(), one_hot(T, two=9), ignore_cost=True)[1] == []


def test_a_mask_of_jax_nn_one_hot_is_seen() -> None:
    """The entry of this device in a float table that a function makes."""
    before = m.module("%a: tensor<8x4xi32>", "tensor<8x4xi32>", *ID,
                      "%h = call @one_hot(%k) : (tensor<i32>) -> tensor<4xf32>",
                      "%w = stablehlo.slice %h [2:3] : (tensor<4xf32>) -> tensor<1xf32>",
                      "%u = stablehlo.reshape %w : (tensor<1xf32>) -> tensor<f32>",
                      "%f = stablehlo.convert %u : (tensor<f32>) -> tensor<i32>",
                      "%o = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<i32>) -> tensor<8x4xi32>",
                      "%m = stablehlo.multiply %o, %a : tensor<8x4xi32>", m.reduce("%y", "%m", "tensor<8x4xi32>"),
                      "return %y : tensor<8x4xi32>",
                      functions="func.func private @one_hot(%k: tensor<i32>) -> tensor<4xf32> { "
                      "%i = stablehlo.iota dim = 0 : tensor<4xi32> "
                      "%b = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<i32>) -> tensor<4xi32> "
                      "%e = stablehlo.compare EQ, %b, %i, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1> "
                      "%f = stablehlo.convert %e : (tensor<4xi1>) -> tensor<4xf32> return %f : tensor<4xf32> }\n")
    after, _ = m.run(MaskedSumToBroadcast(), before)
    assert "dense<[[2, 0, 1, 3]]>" in after.text()


def permutes(*pairs: str):
    """Permutes of one value, summed."""
    lines = [f'%p{i} = "stablehlo.collective_permute"(%a) <{{{m.CHANNEL}, source_target_pairs = dense<{p}> : '
             f"tensor<{len(eval(p))}x2xi64>}}> : ({T}) -> {T}" for i, p in enumerate(pairs)]
    kinds = ", ".join([T] * len(pairs))
    values = ", ".join(f"%p{i}" for i in range(len(pairs)))
    return m.module(f"%a: {T}", f"({kinds})", *lines, f"return {values} : {kinds}")


@pytest.mark.parametrize("pairs", [("[[0, 1]]", "[[0, 2]]", "[[0, 3]]"), ("[[2, 1]]", "[[2, 0]]"),
                                   ("[[1, 0]]", "[[1, 1]]")])
def test_fan_out(pairs: tuple[str, ...]) -> None:
    after, _ = m.run(PermutesToBroadcast(), permutes(*pairs))
    assert (m.count(after, "collective_broadcast"), m.count(after, "collective_permute")) == (1, 0)


@pytest.mark.parametrize("pairs, why", [
    (("[[0, 1]]", "[[2, 1]]"), "receives from several"), (("[[0, 1]]", "[[1, 2]]"), "both sends and receives"),
    (("[[0, 1]]", "[[2, 3]]"), "no device sends to several"),
    (("[[0, 1], [2, 3]]", "[[0, 3]]"), "receives from several"),
])
def test_permutes_stay(pairs: tuple[str, ...], why: str) -> None:
    after, said = m.run(PermutesToBroadcast(), permutes(*pairs))
    assert m.count(after, "collective_permute") == 2
    assert any(why in line for line in said), said


def own_slice(*lines: str, size: int = 2, groups: str = m.ALL, result: str = "%x", op: str = "add"):
    """A reduction of %a, of which rows from %i are kept."""
    kind = f"tensor<{size}x4xf32>"
    return m.module(f"%a: {T}, %n: tensor<i32>", kind, m.reduce("%x", "%a", T, groups=groups, op=op), *ID, *lines,
                    f"%y = stablehlo.dynamic_slice {result}, %i, %z0, sizes = [{size}, 4] : ({T}, tensor<i32>, "
                    f"tensor<i32>) -> {kind}", f"return %y : {kind}")


MEAN = (f"%f = stablehlo.constant dense<4.0> : {T}", f"%q = stablehlo.divide %x, %f : {T}")


@pytest.mark.parametrize("before", [
    own_slice(*scaled(2)), own_slice(*scaled(2, 1, 4)), own_slice(*scaled(2), *MEAN, result="%q"),
    own_slice(*scaled(2), op="maximum"), own_slice(*scaled(4, 0, 2), size=4, groups=m.PAIRS)])
def test_reduce_scatter(before) -> None:
    after, _ = m.run(ReduceScatterCreation(), before)
    assert (m.count(after, "reduce_scatter"), m.count(after, "all_reduce")) == (1, 0)


PICKED = ("%e = stablehlo.dynamic_slice %t, %k, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>",
          "%i = stablehlo.reshape %e : (tensor<1xi32>) -> tensor<i32>")


@pytest.mark.parametrize(("lines", "scatter", "reduce"), [
    (scaled(4, 0, 2), "[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]"),
    (("%t = stablehlo.constant dense<[4, 4, 0, 0]> : tensor<4xi32>", *PICKED), "[[2, 0], [3, 1]]", "[[2, 3], [0, 1]]")])
def test_a_shard_that_several_keep_is_reduced_among_these(lines: tuple[str, ...], scatter: str, reduce: str) -> None:
    """Sharded over one mesh axis and replicated over the other, in either order of the axes."""
    after, _ = m.run(ReduceScatterCreation(), own_slice(*lines, size=4))
    assert (m.count(after, "reduce_scatter"), m.count(after, "all_reduce")) == (1, 1)
    assert f"dense<{scatter}>" in after.text() and f"dense<{reduce}>" in after.text()


def test_what_xla_scatters_itself_may_be_left_to_it() -> None:
    left, split = own_slice(*scaled(2)), own_slice(*scaled(4, 0, 2), size=4)
    made = [m.count(m.run(ReduceScatterCreation(only_split=True), each)[0], "reduce_scatter") for each in (left, split)]
    assert made == [0, 1]


@pytest.mark.parametrize("before, why", [
    (own_slice(*scaled(2, 0, 2)), "do not read all of its shards"), (own_slice(*scaled(2), size=3), "3 of 8 elements"),
    (own_slice(*scaled(1), size=1), "1 of 8 elements"),
    (own_slice("%t = stablehlo.constant dense<[0, 4, 4, 4]> : tensor<4xi32>", *PICKED, size=4), "equally often"),
    (own_slice("%i = stablehlo.add %n, %z0 : tensor<i32>"), "depends on more than constants")])
def test_reduce_scatter_stays(before, why: str) -> None:
    after, said = m.run(ReduceScatterCreation(), before)
    assert m.count(after, "all_reduce") == 1
    assert any(why in line for line in said), said


def test_sum_read_elsewhere_stays() -> None:
    before = m.module(f"%a: {T}", f"(tensor<2x4xf32>, {T})", m.reduce("%x", "%a", T), *ID, *scaled(2),
                      f"%y = stablehlo.dynamic_slice %x, %i, %z0, sizes = [2, 4] : ({T}, tensor<i32>, tensor<i32>) -> "
                      f"tensor<2x4xf32>", f"return %y, %x : tensor<2x4xf32>, {T}")
    assert m.count(m.run(ReduceScatterCreation(), before)[0], "all_reduce") == 1


@pytest.mark.parametrize("form", ["all-reduce", "chain", "auto"])
@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "i1"])
@pytest.mark.parametrize("groups", ["[[2, 0, 1, 3]]", "[[1, 0], [2, 3]]"])
def test_legal_for_cpu(form: Literal["auto", "all-reduce", "chain"], element: str, groups: str) -> None:
    kind = f"tensor<3x5x{element}>"
    before = m.module(f"%a: {kind}", kind, f'%y = "stablehlo.collective_broadcast"(%a) <{{{m.CHANNEL}, '
                      f"{m.groups_text(groups)}}}> : ({kind}) -> {kind}", f"return %y : {kind}")
    after, _ = m.run(LegalizeForCpu(form=form, chain_bytes=16, chunks=4), before)
    assert m.count(after, "collective_broadcast") == 0


def test_complex_legal_for_cpu() -> None:
    """The chain is left to the CPU mesh: the interpreter's constants are not complex."""
    kind = "tensor<3xcomplex<f32>>"
    before = m.module(f"%a: {kind}", kind, f'%y = "stablehlo.collective_broadcast"(%a) <{{{m.CHANNEL}, '
                      f"{m.groups_text('[[2, 0, 1, 3]]')}}}> : ({kind}) -> {kind}", f"return %y : {kind}")
    assert m.count(m.run(LegalizeForCpu(form="all-reduce"), before)[0], "all_reduce") == 1
