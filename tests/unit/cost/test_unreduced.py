"""Values that are unreduced: where XLA will sum them, a report says."""
# ruff: noqa: E501 (MLIR text)

from __future__ import annotations

from hlorewrite.cost.report.collectives import uncounted
from hlorewrite.ir.load import parse
from hlorewrite.ir.view import View

UNREDUCED = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>})
                -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}], unreduced={"x"}> : tensor<8x8xf32>
  %2 = stablehlo.add %1, %1 : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{}, {}], unreduced={"x"}> : tensor<8x8xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %5 = sdy.sharding_constraint %c <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %4, %5 : tensor<8x8xf32>, tensor<8x8xf32>
}"""
"""What JAX writes for ``einsum(..., out_sharding=P(None, None, unreduced={"x"}))``, and an argument of that kind."""


def test_sums_of_unreduced_values_are_named_where_they_are_made() -> None:
    assert uncounted(View(parse(UNREDUCED, name="m.mlir"))) == [
        "sums of unreduced values are not counted; XLA creates them when it partitions: "
        "256 B over x at m.mlir:10:8 (1), 256 B over x at m.mlir:11:8 (1)"]
    manual = """sdy.mesh @mesh = <["x"=4]>
    func.func @main(%a: tensor<8x16xf32>) -> tensor<8x4xf32> {
      %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {"x"}]>]
          out_shardings=[<@mesh, [{}, {}], unreduced={"x"}>] manual_axes={"x"} (%p: tensor<8x4xf32>) {
        sdy.return %p : tensor<8x4xf32>
      } : (tensor<8x16xf32>) -> tensor<8x4xf32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<8x4xf32>
      return %1 : tensor<8x4xf32>
    }"""
    assert "128 B over x at m.mlir:7:12 (1)" in uncounted(View(parse(manual, name="m.mlir")))[0]
    for calm in (UNREDUCED.replace(', unreduced={"x"}', ""), manual.replace(', unreduced={"x"}', "")):
        assert uncounted(View(parse(calm))) == []
