"""What a reducer region computes."""

from __future__ import annotations

import pytest
from spmd_helpers import module

from hlorewrite.ops.reducers import OP_OF_KIND, reduction_kind

F = "tensor<f32>"


def kind_of(body: str, arguments: str = f"%x: {F}, %y: {F}") -> str | None:
    view = module(f"""func.func @main(%a: tensor<4xf32>, %out: {F}) -> tensor<4xf32> {{
      %r = "stablehlo.all_reduce"(%a) ({{^bb0({arguments}): {body}}})
        {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}} : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32> }}""")
    return reduction_kind(view.ops("stablehlo.all_reduce")[0])


@pytest.mark.parametrize(("kind", "op"), [("sum", "add"), ("product", "multiply"), ("max", "maximum"),
                                          ("min", "minimum")])
def test_the_known_reducers_in_either_order(kind: str, op: str) -> None:
    for operands in ("%x, %y", "%y, %x"):
        assert kind_of(f"%z = stablehlo.{op} {operands} : {F} stablehlo.return %z : {F}") == kind
    assert OP_OF_KIND[kind] == f"stablehlo.{op}"


@pytest.mark.parametrize("op", ["and", "or"])
def test_reducers_of_truth_values(op: str) -> None:
    view = module(f"""func.func @main(%a: tensor<4xi1>, %i: tensor<i1>) -> tensor<i1> {{
      %r = stablehlo.reduce(%a init: %i) applies stablehlo.{op} across dimensions = [0] :
        (tensor<4xi1>, tensor<i1>) -> tensor<i1>
      return %r : tensor<i1> }}""")
    assert reduction_kind(view.ops("stablehlo.reduce")[0]) == op


@pytest.mark.parametrize("body", [
    f"%z = stablehlo.add %x, %x : {F} stablehlo.return %z : {F}",
    f"%z = stablehlo.add %x, %out : {F} stablehlo.return %z : {F}",
    f"%z = stablehlo.subtract %x, %y : {F} stablehlo.return %z : {F}",
    f"%z = stablehlo.add %x, %y : {F} stablehlo.return %x : {F}",
    f"stablehlo.return %x : {F}",
    f"%w = stablehlo.add %x, %y : {F} %z = stablehlo.negate %w : {F} stablehlo.return %z : {F}",
    f"""%a1 = stablehlo.convert %x : ({F}) -> tensor<bf16> %b1 = stablehlo.convert %y : ({F}) -> tensor<bf16>
        %c1 = stablehlo.add %a1, %b1 : tensor<bf16> %z = stablehlo.convert %c1 : (tensor<bf16>) -> {F}
        stablehlo.return %z : {F}""",
])
def test_anything_else_has_no_kind(body: str) -> None:
    assert kind_of(body) is None


def test_ops_without_a_reducer_and_reducers_of_several_values_have_no_kind() -> None:
    view = module(f"""func.func @main(%a: tensor<4xf32>, %b: tensor<4xi32>, %i: {F}, %j: tensor<i32>) -> {F} {{
      %n = stablehlo.negate %a : tensor<4xf32>
      %r:2 = stablehlo.reduce(%a init: %i), (%b init: %j) across dimensions = [0] :
          (tensor<4xf32>, tensor<4xi32>, {F}, tensor<i32>) -> ({F}, tensor<i32>)
        reducer(%x: {F}, %y: {F}) (%k: tensor<i32>, %l: tensor<i32>) {{
          %z = stablehlo.add %x, %y : {F}
          %m = stablehlo.add %k, %l : tensor<i32>
          stablehlo.return %z, %m : {F}, tensor<i32>
        }}
      return %r#0 : {F} }}""")
    assert reduction_kind(view.ops("stablehlo.negate")[0]) is None
    assert reduction_kind(view.ops("stablehlo.reduce")[0]) is None


@pytest.mark.parametrize(("op", "text"), [
    ("all_reduce", """%r = "stablehlo.all_reduce"(%a) ({^bb0(%x: tensor<i32>, %y: tensor<i32>):
       %z = stablehlo.add %x, %y : tensor<i32> stablehlo.return %z : tensor<i32>})
       {replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (tensor<4xi8>) -> tensor<4xi32>"""),
    ("reduce_scatter", """%r = "stablehlo.reduce_scatter"(%a) ({^bb0(%x: tensor<i32>, %y: tensor<i32>):
       %z = stablehlo.add %x, %y : tensor<i32> stablehlo.return %z : tensor<i32>})
       {replica_groups = dense<[[0]]> : tensor<1x1xi64>, scatter_dimension = 0 : i64}
       : (tensor<4xi8>) -> tensor<4xi32>"""),
    ("reduce", """%r = "stablehlo.reduce"(%a, %i) ({^bb0(%x: tensor<i32>, %y: tensor<i32>):
       %z = stablehlo.add %x, %y : tensor<i32> stablehlo.return %z : tensor<i32>})
       {dimensions = array<i64>} : (tensor<4xi8>, tensor<i32>) -> tensor<4xi32>"""),
    ("reduce_window", """%r = "stablehlo.reduce_window"(%a, %i) ({^bb0(%x: tensor<i32>, %y: tensor<i32>):
       %z = stablehlo.add %x, %y : tensor<i32> stablehlo.return %z : tensor<i32>})
       {window_dimensions = array<i64: 1>} : (tensor<4xi8>, tensor<i32>) -> tensor<4xi32>"""),
    ("scatter", """%r = "stablehlo.scatter"(%w, %k, %a) ({^bb0(%x: tensor<i32>, %y: tensor<i32>):
       %z = stablehlo.add %x, %y : tensor<i32> stablehlo.return %z : tensor<i32>})
       {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
        index_vector_dim = 1>} : (tensor<4xi32>, tensor<4xi64>, tensor<4xi8>) -> tensor<4xi32>"""),
])
def test_a_reducer_that_promotes_its_operands_is_none_of_the_known(op: str, text: str) -> None:
    """Sums of 8 bits wrap around, those of 32 do not, so nothing known about one holds for the other."""
    def kind(of: str) -> str | None:
        view = module(f"""func.func @main(%a: tensor<4x{of}>, %i: tensor<i32>, %w: tensor<4xi32>, %k: tensor<4xi64>)
          -> tensor<4xi32> {{
          {text.replace("xi8>", f"x{of}>")}
          return %r : tensor<4xi32> }}""")
        return reduction_kind(view.ops(f"stablehlo.{op}")[0])
    assert kind("i32") == "sum"
    assert kind("i8") is None
