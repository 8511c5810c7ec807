"""Programs that 0.1.0 crashed on, never came back from, or gave other values: scattered dimensions, complex, empty,
n·x.

Each comes out right or is left alone, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import pytest
from generators.check import time_limit

from hlorewrite.checks.reference.check import check
from hlorewrite.cli.main import guarded
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import named_pipeline
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Recorder

F, K = "tensor<4xf32>", "tensor<4x4xf32>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids"
SECONDS = 120


def reduced(name: str, operand: str, kind: str, element: str, rows: str = "[[0, 1]]", op: str = "all_reduce",
            result: str = "", more: str = "") -> str:
    """An all-reduce or reduce-scatter that adds up."""
    size = f"{rows.count('[') - 1}x{rows.split(']')[0].count(',') + 1}"
    return (f'      %{name} = "stablehlo.{op}"({operand}) <{{{more}{CHANNEL}, replica_groups = dense<{rows}> : '
            f"tensor<{size}xi64>}}> ({{\n      ^bb0(%l_: tensor<{element}>, %r_: tensor<{element}>):\n"
            f"        %b_ = stablehlo.add %l_, %r_ : tensor<{element}>\n        stablehlo.return %b_ : "
            f"tensor<{element}>\n      }}) : ({kind}) -> {result or kind}\n")


def scattered(name: str, dimension: int, number: float = 1.0) -> str:
    """A reduce-scatter of a sharded value times a number, along the first or the second dimension."""
    whole = "tensor<8x4xf32>" if dimension == 0 else "tensor<4x8xf32>"
    return (f"      %f_{name} = stablehlo.constant dense<{number}> : {whole}\n"
            f"      %w_{name} = stablehlo.broadcast_in_dim %s, dims = [{1 - dimension}] : ({F}) -> {whole}\n"
            f"      %m_{name} = stablehlo.multiply %w_{name}, %f_{name} : {whole}\n"
            + reduced(name, f"%m_{name}", whole, "f32", op="reduce_scatter", result=K,
                      more=f"scatter_dimension = {dimension} : i64, "))


def outer(body: str, following: str) -> str:
    """A loop around a body; reduce-scatters count where they stand in one."""
    return (f"      %z = stablehlo.constant dense<0.0> : {K}\n      %o = LOOP 5 (%acc = %z : {K}) {{\n"
            + indent(body, "  ") + f"      }} yield {following}\n")


BRANCH = (f'      %k = "stablehlo.case"(%n) ({{\n        stablehlo.return %x : {K}\n      }}, {{\n'
          f"        stablehlo.return %y : {K}\n      }}) : (tensor<i32>) -> {K}\n")
STACKED = "tensor<2x4x4xf32>"
MEETINGS = {
    # A slot of the inner loop starts scattered along one dimension and goes on along the other.
    "slot and op": outer(
        scattered("x", 0) + f"      %p = LOOP 6 (%sa = %x : {K}, %sb = %acc : {K}) {{\n" + scattered("rr", 1)
        + scattered("q", 1, 2.0) + f"      %t = stablehlo.add %rr, %q : {K}\n      %u = stablehlo.add %sb, %t : {K}\n"
        f"      }} yield %rr, %u\n      %v = stablehlo.add %p#1, %p#2 : {K}\n", "%v"),
    "slot alone": outer(
        scattered("x", 0) + f"      %p = LOOP 6 (%sa = %x : {K}) {{\n" + scattered("rr", 1)
        + f"      }} yield %rr\n      %v = stablehlo.add %acc, %p#1 : {K}\n", "%v"),
    "slots change places": outer(
        scattered("x", 0) + scattered("y", 1) + f"      %p = LOOP 3 (%sa = %x : {K}, %sb = %y : {K}) {{\n"
        f"      }} yield %sb, %sa\n      %v = stablehlo.add %acc, %p#1 : {K}\n", "%v"),
    "barrier": outer(
        scattered("x", 0) + f"      %p = LOOP 6 (%sa = %x : {K}) {{\n" + scattered("rr", 1)
        + f"      %i, %j = stablehlo.optimization_barrier %sa, %rr : {K}, {K}\n"
        f"      }} yield %j\n      %v = stablehlo.add %acc, %p#1 : {K}\n", "%v"),
    "branch": outer(scattered("x", 0) + scattered("y", 1) + BRANCH
                    + f"      %v = stablehlo.add %acc, %k : {K}\n", "%v"),
    "branch in a slot": outer(
        scattered("x", 0) + f"      %p = LOOP 6 (%sa = %x : {K}) {{\n" + scattered("y", 1) + BRANCH
        + f"      }} yield %k\n      %v = stablehlo.add %acc, %p#1 : {K}\n", "%v"),
    "call": outer(
        scattered("x", 0) + f"      %p = LOOP 6 (%sa = %x : {K}) {{\n" + scattered("rr", 1)
        + f"      %c1 = func.call @same(%rr) : ({K}) -> {K}\n"
        f"      }} yield %c1\n      %v = stablehlo.add %acc, %p#1 : {K}\n", "%v"),
    "scan outputs": outer(
        scattered("x", 0) + f"      %e = stablehlo.reshape %x : ({K}) -> tensor<1x4x4xf32>\n"
        f"      %g = stablehlo.concatenate %e, %e, dim = 0 : (tensor<1x4x4xf32>, tensor<1x4x4xf32>) -> {STACKED}\n"
        f"      %h = stablehlo.broadcast_in_dim %x, dims = [1, 2] : ({K}) -> {STACKED}\n"
        f"      %p = LOOP 2 (%sa = %h : {STACKED}) {{\n" + scattered("rr", 1)
        + f"      %y = stablehlo.reshape %rr : ({K}) -> tensor<1x4x4xf32>\n"
        "      %i = stablehlo.dynamic_update_slice %sa, %y, %i_p, %i0, %i0 : "
        f"({STACKED}, tensor<1x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> {STACKED}\n      }} yield %i\n"
        f"      %zs = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"      %d = stablehlo.reduce(%p#1 init: %zs) applies stablehlo.add across dimensions = [0] : "
        f"({STACKED}, tensor<f32>) -> {K}\n      %v = stablehlo.add %acc, %d : {K}\n", "%v"),
}
SAME = (f"func.func private @same(%x: {K}) -> {K} {{\n  %z = stablehlo.add %x, %x : {K}\n  return %z : {K}\n}}\n")


@pytest.mark.usefixtures("oracle_in_process")
@pytest.mark.parametrize("name", MEETINGS)
def test_values_scattered_along_two_dimensions_meet(name: str, make_region: Callable[..., str], tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    """0.1.0 never ended on some, and left others that do not verify."""
    source = tmp_path / "meeting.mlir"
    source.write_text(make_region(MEETINGS[name], "%o#1", K, functions=SAME if "@same" in MEETINGS[name] else ""))
    with time_limit(SECONDS):
        code = guarded(["opt", str(source), "--pass=comm-shift{memory-budget=1GiB}", "--check=interp", "-o",
                        str(tmp_path / "out.mlir")])
    assert code == 0, capsys.readouterr().err


# ---- complex numbers


def kept(text: str, pipeline: str, **options: object) -> tuple[Module, Recorder, bool]:
    """A module after a pipeline, whose values must be as before; with its remarks, and whether it changed."""
    before = parse(text)
    after, recorder = before.clone(), Recorder(wants_missed=True)
    changed = run_passes(after, parse_pipeline(pipeline), PassContext((recorder,), **options))  # pyright: ignore
    assert not after.verify()
    if changed:
        report = check(before, after)
        assert report.equal, report.table()
    return after, recorder, changed


def per_device(body: str, result: str, kind: str, operand: str, devices: int = 2) -> str:
    """A module each device runs, with one argument ``%a``."""
    return (f"module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
            f"  func.func public @main(%a: {operand}) -> {kind} {{\n{body}      return {result} : {kind}\n  }}\n}}\n")


def complex_slice(element: str, factor: str) -> str:
    """Each device's slice of a scaled complex sum of a scaled value."""
    c, half = f"tensor<4xcomplex<{element}>>", f"tensor<2xcomplex<{element}>>"
    return per_device(
        f"      %i = stablehlo.constant dense<(0.0,1.0)> : {c}\n      %x = stablehlo.multiply %a, %i : {c}\n"
        + reduced("r", "%x", c, f"complex<{element}>") + f"      %k = stablehlo.constant dense<{factor}> : {c}\n"
        f"      %y = stablehlo.multiply %r, %k : {c}\n      %id = stablehlo.partition_id : tensor<ui32>\n"
        "      %two = stablehlo.constant dense<2> : tensor<ui32>\n"
        "      %at = stablehlo.multiply %id, %two : tensor<ui32>\n"
        f"      %o = stablehlo.dynamic_slice %y, %at, sizes = [2] : ({c}, tensor<ui32>) -> {half}\n", "%o", half, c)


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize(("factor", "scatters"), [
    ("(2.0,-1.0)", True), ("[(2.0,-1.0), (1.0,0.0), (0.0,1.0), (3.0,0.5)]", False)])
def test_complex_constants(element: str, factor: str, scatters: bool) -> None:
    """One complex number everywhere may stand between a sum and its slice; others may not."""
    text = complex_slice(element, factor)
    after, _, _ = kept(text, "reduce-scatter-creation")
    assert ("reduce_scatter" in after.text()) is scatters
    kept(text, named_pipeline("comm"))


@pytest.mark.parametrize(("other", "sums"), [("(0.0,1.0)", 1), ("(0.0,-1.0)", 2), ("(-0.0,1.0)", 2)])
def test_equal_complex_constants_are_equal(other: str, sums: int) -> None:
    """collective-cse distinguishes complex constants by their text."""
    c = "tensor<4xcomplex<f32>>"
    text = per_device(
        f"      %i = stablehlo.constant dense<(0.0,1.0)> : {c}\n      %j = stablehlo.constant dense<{other}> : {c}\n"
        f"      %x = stablehlo.multiply %a, %i : {c}\n      %y = stablehlo.multiply %a, %j : {c}\n"
        + reduced("r", "%x", c, "complex<f32>") + reduced("q", "%y", c, "complex<f32>")
        + f"      %t = stablehlo.multiply %r, %q : {c}\n      %u = stablehlo.subtract %t, %r : {c}\n"
        # Two sums of one value, so that numbering has something to look at.
        + reduced("v", "%a", c, "complex<f32>") + reduced("w", "%a", c, "complex<f32>")
        + f"      %d = stablehlo.subtract %v, %w : {c}\n      %o = stablehlo.add %u, %d : {c}\n", "%o", c, c)
    after, _, _ = kept(text, "collective-cse")
    assert after.text().count("stablehlo.all_reduce") == sums + 1


def test_a_loop_counted_in_four_bits(make_region: Callable[..., str]) -> None:
    """numpy has no integers of 4 bits; constants of such are read without it."""
    n, b = "tensor<i4>", "tensor<i1>"
    kept(make_region(
        f"      %c0 = stablehlo.constant dense<0> : {n}\n      %c1 = stablehlo.constant dense<1> : {n}\n"
        f"      %c5 = stablehlo.constant dense<5> : {n}\n"
        f"      %o:2 = stablehlo.while(%i = %c0, %acc = %zero) : {n}, {F}\n"
        f"      cond {{\n        %lt = stablehlo.compare LT, %i, %c5 : ({n}, {n}) -> {b}\n"
        f"        stablehlo.return %lt : {b}\n      }} do {{\n        %g = AR<add>(%s) : {F}\n"
        f"        %new = stablehlo.add %acc, %g : {F}\n        %next = stablehlo.add %i, %c1 : {n}\n"
        f"        stablehlo.return %next, %new : {n}, {F}\n      }}\n", "%o#1"), "comm-shift")


# ---- nothing to send


@pytest.mark.parametrize("op", ["all_reduce", "all_gather"])
def test_a_slice_of_size_zero(op: str) -> None:
    """It belongs to no device."""
    whole = "tensor<8xf32>"
    made = reduced("r", "%a", F, "f32") if op == "all_reduce" else (
        f'      %r = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {CHANNEL}, replica_groups = '
        f"dense<[[0, 1]]> : tensor<1x2xi64>}}> : ({F}) -> {whole}\n")
    kind = F if op == "all_reduce" else whole
    text = per_device(
        made + "      %id = stablehlo.partition_id : tensor<ui32>\n"
        f"      %o = stablehlo.dynamic_slice %r, %id, sizes = [0] : ({kind}, tensor<ui32>) -> tensor<0xf32>\n"
        f"      %k = stablehlo.concatenate %a, %o, dim = 0 : ({F}, tensor<0xf32>) -> {F}\n", "%k", F, F)
    after, recorder, _ = kept(text, "rules")
    assert "reduce_scatter" not in after.text() and "collective_permute" not in after.text()
    if op == "all_reduce":
        assert "the slice is empty" in [remark.sentence for remark in recorder.remarks]
    kept(text, named_pipeline("comm"))


@pytest.mark.parametrize("kind", ["tensor<0xf32>", "tensor<4x0xf32>", "tensor<0x4xf32>"])
def test_an_all_reduce_of_nothing_stays_whole(kind: str) -> None:
    """There is no reduce-scatter of nothing."""
    text = per_device(reduced("r", "%a", kind, "f32", "[[0, 1, 2, 3]]"), "%r", kind, kind, 4)
    for pipeline in ("hierarchical-all-reduce", named_pipeline("comm")):
        before = parse(text)
        recorder = Recorder(wants_missed=True)
        run_passes(before, parse_pipeline(pipeline),
                   PassContext((recorder,), ignore_cost=True, topology="h200:2x2"))
        assert not before.verify() and "reduce_scatter" not in before.text()
        assert "it has no elements to scatter" in [remark.sentence for remark in recorder.remarks]


# ---- n times the same


@pytest.mark.parametrize(("element", "devices", "number", "changes"), [
    ("f8E3M4", 16, "0.5", False), ("f8E3M4", 8, "0.5", True), ("f8E4M3B11FNUZ", 32, "0.25", False),
    ("f8E4M3FN", 17, "1.0", False), ("f8E4M3FN", 16, "1.0", True), ("i4", 8, "3", True), ("i4", 12, "3", True),
    ("ui4", 16, "3", True), ("i8", 200, "3", True), ("i8", 256, "3", True)])
def test_a_sum_of_equal_terms(element: str, devices: int, number: str, changes: bool) -> None:
    """n·x is refused where n is not a number of the type; integers wrap around as the sum of n terms does."""
    kind = f"tensor<2x{element}>"
    text = per_device(f"      %x = stablehlo.constant dense<{number}> : {kind}\n"
                      + reduced("r", "%x", kind, element, str([list(range(devices))])), "%r", kind, F, devices)
    _, recorder, changed = kept(text, "rules{only=all-reduce-of-uniform-sum narrow-range=true}")
    assert changed is changes
    if not changes:
        assert [r.sentence for r in recorder.remarks] == [f"{element} cannot represent the number {devices}"]
