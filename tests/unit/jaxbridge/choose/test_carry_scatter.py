"""How much of what a module sends a carry inside a scatter may be the reason of."""

from __future__ import annotations

import pytest

from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.choose.candidates import scatters_into_a_choice, share_of_choices


@pytest.mark.parametrize(("read", "share"), [("", 1 / 3), ("%g = stablehlo.negate %s : tensor<8x4xf32>", 1.0)])
def test_the_share_of_what_the_rule_may_save(read: str, share: float):
    """Two all-reduces, one of twice the bytes; a scatter whose sum is read first leaves the share unknown."""
    summed = "%g" if read else "%s"
    module = parse(f"""
      func.func @main(%m: tensor<8x4xi1>, %c: tensor<8x4xf32>, %i: tensor<2x1xi32>, %u: tensor<2x4xf32>,
                      %x: tensor<16x4xf32>) -> (tensor<8x4xf32>, tensor<16x4xf32>) {{
        %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
        %k = stablehlo.select %m, %c, %zero : tensor<8x4xi1>, tensor<8x4xf32>
        %s = "stablehlo.scatter"(%k, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
          inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %t = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %t : tensor<f32>
        }}) : (tensor<8x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<8x4xf32>
        {read}
        %r = "stablehlo.all_reduce"({summed}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %t = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %t : tensor<f32>
        }}) : (tensor<8x4xf32>) -> tensor<8x4xf32>
        %q = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %t = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %t : tensor<f32>
        }}) : (tensor<16x4xf32>) -> tensor<16x4xf32>
        return %r, %q : tensor<8x4xf32>, tensor<16x4xf32>
      }}""")
    assert scatters_into_a_choice(module)
    assert float(share_of_choices(module)) == share
