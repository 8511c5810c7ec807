"""all-reduce-fusion: what is fused, what is not, and why."""

from __future__ import annotations

import fusion_modules as m
import pytest

from hlorewrite.errors import UsageError
from hlorewrite.passes.all_reduce_fusion import AllReduceFusion
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.registry import make_pass

T = "tensor<8xf32>"
TWO = f"({T}, {T})"
FUSION = AllReduceFusion()


def two(first: str, second: str, between: tuple[str, ...] = (), arguments: str = f"%a: {T}, %b: {T}",
        results: str = TWO, ret: str = f"return %x, %y : {T}, {T}"):
    """A module with two collectives."""
    return m.module(arguments, results, first, *between, second, ret)


def test_independent_ones_share_a_call() -> None:
    after, said = m.run(FUSION, two(m.reduce("%x", "%a"), m.reduce("%y", "%b")))
    assert m.count(after, "all_reduce") == 1
    assert 'combiner_key = "hlorewrite.0"' in after.text()
    assert said[0].startswith("applied: fused 2 collectives of 64 bytes into 1")


def test_a_reader_between_moves_behind() -> None:
    """XLA's combiner stops at the first op that depends; here it moves."""
    before = m.module(f"%a: {T}, %b: {T}, %c: {T}", f"({T}, {T}, {T})", m.reduce("%x", "%a"),
                      f"%n = stablehlo.negate %x : {T}", m.reduce("%w", "%n"), m.reduce("%y", "%b"),
                      f"return %w, %y, %n : {T}, {T}, {T}")
    after, _ = m.run(FUSION, before)
    assert m.count(after, "all_reduce") == 2


@pytest.mark.parametrize("second, why", [
    (m.reduce("%y", "%b", groups=m.PAIRS), "other groups"),
    (m.reduce("%y", "%b", op="maximum"), "another reduction"),
    (m.reduce("%y", "%x"), "the second reads the first"),
    (m.reduce("%y", "%b", extra='{mhlo.frontend_attributes = {combiner_key = "mine"}}'), "a key of the user's"),
])
def test_not_fused(second: str, why: str) -> None:
    after, _ = m.run(FUSION, two(m.reduce("%x", "%a"), second))
    assert m.count(after, "all_reduce") == 2, why


def test_dependence_through_other_ops() -> None:
    before = two(m.reduce("%x", "%a"), m.reduce("%y", "%n"), (f"%n = stablehlo.tanh %x : {T}",))
    assert m.count(m.run(FUSION, before)[0], "all_reduce") == 2


def test_dependence_through_a_region() -> None:
    """The second reads the result of a loop that captures the first."""
    loop = (f"%c = stablehlo.constant dense<0> : tensor<i32>  %w:2 = stablehlo.while(%i = %c, %v = %b) : "
            f"tensor<i32>, {T} "
            "cond { %k = stablehlo.constant dense<2> : tensor<i32> "
            "%p = stablehlo.compare LT, %i, %k, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> "
            "stablehlo.return %p : tensor<i1> } do { %one = stablehlo.constant dense<1> : tensor<i32> "
            f"%j = stablehlo.add %i, %one : tensor<i32>  %u = stablehlo.add %v, %x : {T} "
            f"stablehlo.return %j, %u : tensor<i32>, {T} }}")
    assert m.count(m.run(FUSION, two(m.reduce("%x", "%a"), m.reduce("%y", "%w#1"), (loop,)))[0], "all_reduce") == 2


def test_two_classes_never_wait_for_each_other() -> None:
    """a1 -> b2 and b1 -> a2: fusing both pairs would be a cycle."""
    before = m.module(f"%a: {T}, %b: {T}", TWO, m.reduce("%a1", "%a"), m.reduce("%b1", "%b", groups=m.PAIRS),
                      m.reduce("%a2", "%b1"), m.reduce("%b2", "%a1", groups=m.PAIRS), f"return %a2, %b2 : {T}, {T}")
    assert m.count(m.run(FUSION, before)[0], "all_reduce") == 3


def test_side_effects_keep_their_order() -> None:
    """The second reduction reads what follows an effect that reads the first."""
    effects = (f"%e = stablehlo.custom_call @first(%x) {{has_side_effect = true}} : ({T}) -> {T}",
               f"%f = stablehlo.custom_call @second(%b) {{has_side_effect = true}} : ({T}) -> {T}")
    before = two(m.reduce("%x", "%a"), m.reduce("%y", "%f"), effects)
    text = before.text()
    assert not FUSION.run(before, PassContext(topology="h200:1x4"))
    assert before.text() == text


@pytest.mark.parametrize("extra", ["{hlorewrite.no_fuse}",
                                   '{mhlo.frontend_attributes = {hlorewrite.no_fuse = "true"}}',
                                   '{mhlo.frontend_attributes = {_scheduling_group_id = "3"}}'])
def test_marked_ops_are_respected_silently(extra: str) -> None:
    after, said = m.run(FUSION, two(m.reduce("%x", "%a", extra=extra), m.reduce("%y", "%b")))
    assert m.count(after, "all_reduce") == 2
    assert all(not line.startswith("blocked") for line in said)


def test_an_unknown_attribute_blocks() -> None:
    after, said = m.run(FUSION, two(m.reduce("%x", "%a", extra="{their.mark = 1 : i32}"), m.reduce("%y", "%b")))
    assert m.count(after, "all_reduce") == 2
    assert "blocked: it keeps its own call: it carries the attribute their.mark" in said[0]


def test_a_reducer_of_its_own_blocks() -> None:
    odd = m.reduce("%x", "%a").replace("stablehlo.add %l, %r", "stablehlo.subtract %l, %r")
    assert "its reducer is none of sum" in m.run(FUSION, two(odd, m.reduce("%y", "%b")))[1][0]


def test_floating_sums_of_two_types_stay_apart() -> None:
    narrow = "tensor<8xbf16>"
    before = m.module(f"%a: {T}, %b: {narrow}", f"({T}, {narrow})", m.reduce("%x", "%a"), m.reduce("%y", "%b", narrow),
                      f"return %x, %y : {T}, {narrow}")
    assert m.count(m.run(FUSION, before)[0], "all_reduce") == 2


@pytest.mark.parametrize("op, one, other", [("maximum", "bf16", "f32"), ("add", "i32", "ui32"), ("add", "i8", "i32")])
def test_types_that_travel_together(op: str, one: str, other: str) -> None:
    a, b = f"tensor<8x{one}>", f"tensor<8x{other}>"
    before = m.module(f"%a: {a}, %b: {b}", f"({a}, {b})", m.reduce("%x", "%a", a, op=op),
                      m.reduce("%y", "%b", b, op=op), f"return %x, %y : {a}, {b}")
    assert m.count(m.run(AllReduceFusion(widen=True), before)[0], "all_reduce") == 1
    assert m.count(m.run(FUSION, before)[0], "all_reduce") == (1 if one.lstrip("u") == other.lstrip("u") else 2)


def test_bucket_bytes_and_max_buckets() -> None:
    lines = [m.reduce(f"%r{i}", f"%a{i}") for i in range(6)]
    before = m.module(", ".join(f"%a{i}: {T}" for i in range(6)), f"({', '.join([T] * 6)})", *lines,
                      f"return {', '.join(f'%r{i}' for i in range(6))} : {', '.join([T] * 6)}")
    assert m.count(m.run(AllReduceFusion(bucket_bytes=64), before)[0], "all_reduce") == 3
    assert m.count(m.run(AllReduceFusion(bucket_bytes=64, max_buckets=2), before)[0], "all_reduce") == 3
    assert m.count(m.run(AllReduceFusion(max_buckets=2), before)[0], "all_reduce") <= 2


@pytest.mark.parametrize("options", ["bucket-bytes=0", "bucket-bytes=-4", "max-buckets=0", "max-buckets=-1",
                                     "kinds=sum"])
def test_bad_options(options: str) -> None:
    with pytest.raises(UsageError):
        make_pass("all-reduce-fusion", options)


def test_buckets_larger_than_memory_and_unknown_topology() -> None:
    before = two(m.reduce("%x", "%a"), m.reduce("%y", "%b"))
    with pytest.raises(UsageError, match="do not fit"):
        AllReduceFusion(bucket_bytes=1 << 40).run(before.clone(), PassContext(topology="h200:1x4"))
    with pytest.raises(UsageError, match="there is no topology"):
        FUSION.run(before.clone(), PassContext(topology="h2000"))
    with pytest.raises(UsageError, match="the module runs on 4 devices"):
        FUSION.run(before.clone(), PassContext(topology="h200:1x2"))


def test_an_empty_module_passes_through() -> None:
    empty = m.parse("module {}")
    assert not FUSION.run(empty, PassContext(topology="h200"))


def test_what_should_stay_alone_is_marked_once() -> None:
    """Large gradients that overlap with compute: XLA would merge them."""
    big, weight = "tensor<4096x512xf32>", "tensor<512x512xf32>"
    lines, outs = [], []
    for i in range(3):
        source = "%a" if i == 0 else f"%d{i - 1}"
        lines.append(f"%d{i} = stablehlo.dot_general {source}, %w, contracting_dims = [1] x [0] : "
                     f"({big}, {weight}) -> {big}")
        lines.append(m.reduce(f"%r{i}", f"%d{i}", big))
        outs.append(f"%r{i}")
    before = m.module(f"%a: {big}, %w: {weight}", f"({', '.join([big] * 3)})", *lines,
                      f"return {', '.join(outs)} : {', '.join([big] * 3)}")
    step = AllReduceFusion(bucket_bytes=1)
    assert step.run(before, PassContext(topology="h200:1x4"))
    assert before.text().count("combiner_key") == 3
    text = before.text()
    assert not step.run(before, PassContext(topology="h200:1x4"))
    assert before.text() == text
