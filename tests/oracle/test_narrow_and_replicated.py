"""Two corners: floats without infinities, and replicas of a program, of which shardings do not speak."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

F = "tensor<4xf32>"


def keeps_values(text: str) -> bool:
    """Runs comm-shift, asserts that values stay, and returns whether the module changed."""
    before = parse(text)
    after = before.clone()
    changed = run_passes(after, parse_pipeline("comm-shift"), PassContext())
    for seed in range(3):
        report = check(before, after, seed=seed)
        assert report.equal, report.table()
    return changed


@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E4M3B11FNUZ"])
@pytest.mark.parametrize("kind, start", [("maximum", "-16.0"), ("minimum", "16.0")])
def test_extremum(make_region: Callable[..., str], element: str, kind: str, start: str) -> None:
    """The identity of a maximum is the smallest number where there is no infinity."""
    narrow = f"tensor<4x{element}>"
    assert keeps_values(make_region(
        f"      %x = stablehlo.convert %s : ({F}) -> {narrow}\n"
        f"      %low = stablehlo.constant dense<{start}> : {narrow}\n"
        f"      %l = LOOP 3 (%acc = %low : {narrow}) {{\n        %g = AR<{kind}>(%x) : {narrow}\n"
        f"        %new = stablehlo.{kind} %acc, %g : {narrow}\n      }} yield %new\n"
        f"      %o = stablehlo.convert %l#1 : ({narrow}) -> {F}\n", "%o"))


@pytest.mark.parametrize("element, moves", [("f8E4M3FN", False), ("f8E4M3FNUZ", False), ("f8E5M2", True)])
def test_convert_of_a_maximum(make_region: Callable[..., str], element: str, moves: bool) -> None:
    """What is too large for the narrow type becomes not-a-number, which no maximum gets rid of."""
    narrow = f"tensor<4x{element}>"
    assert keeps_values(make_region(
        f"      %far = stablehlo.constant dense<-1.0e9> : {F}\n"
        f"      %x = stablehlo.select %first, %far, %s : tensor<i1>, {F}\n"
        f"      %z = stablehlo.constant dense<0.0> : {narrow}\n"
        f"      %l = LOOP 3 (%acc = %z : {narrow}) {{\n        %g = AR<maximum>(%x) : {F}\n"
        f"        %f = stablehlo.convert %g : ({F}) -> {narrow}\n"
        f"        %new = stablehlo.maximum %acc, %f : {narrow}\n      }} yield %new\n"
        f"      %o = stablehlo.convert %l#1 : ({narrow}) -> {F}\n", "%o")) is moves


@pytest.mark.parametrize("replicas, partitions, attributes, moves", [
    (2, 1, "", False),
    (1, 2, "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids, ", True)])
def test_replicated_argument(make_region: Callable[..., str], replicas: int, partitions: int, attributes: str,
                             moves: bool) -> None:
    """A factor declared replicated is the same on all partitions, and may differ between replicas."""
    text = make_region.__globals__["expand"](
        f"""module attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = {replicas} : i32}} {{
func.func public @main(%s: {F}, %k: {F} {{mhlo.sharding = "{{replicated}}"}}) -> {F} {{
      %zero = stablehlo.constant dense<0.0> : {F}
      %l = LOOP 3 (%acc = %zero : {F}) {{
        %g = "stablehlo.all_reduce"(%s) <{{{attributes}replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %w = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %w : tensor<f32>
        }}) : ({F}) -> {F}
        %f = stablehlo.multiply %g, %k : {F}
        %new = stablehlo.add %acc, %f : {F}
      }} yield %new
      return %l#1 : {F}
}}
}}
""")
    if moves:  # the oracle gives each device arguments of its own, so only the decision is looked at
        assert run_passes(parse(text), parse_pipeline("comm-shift"), PassContext())
    else:
        assert not keeps_values(text)
