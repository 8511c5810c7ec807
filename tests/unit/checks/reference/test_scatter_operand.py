"""The reference interpreter updates a scatter's operand in place; what else reads that value must not notice."""

from __future__ import annotations

import numpy as np

from hlorewrite.checks.reference.program import prepare
from hlorewrite.ir.load import parse

SCATTER = """"stablehlo.scatter"(%x, %i, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%old: tensor<i32>, %new: tensor<i32>):
    %sum = stablehlo.add %old, %new : tensor<i32>
    stablehlo.return %sum : tensor<i32>
  }) : (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>"""


def test_operand_keeps_its_value() -> None:
    """The operand is returned as it was, and a second scatter of it starts anew."""
    module = parse(f"""func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32>)
        -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {{
      %i = stablehlo.iota dim = 0 : tensor<4xi32>
      %s = {SCATTER}
      %t = {SCATTER}
      return %x, %s, %t : tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
    }}""")
    x, y = np.arange(4, dtype=np.int32), np.full(4, 10, np.int32)
    kept, first, second = prepare(module).run([[x, y]]).outputs[0]
    assert kept.tolist() == x.tolist()
    assert first.tolist() == second.tolist() == (x + y).tolist()
