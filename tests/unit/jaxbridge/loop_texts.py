"""Text of loops for tests of what XLA does with them."""

from __future__ import annotations


def eight_times(carried: str, start: str, type_: str, body: str, following: str) -> str:
    """A loop ``%loop`` of eight iterations, counted by ``%i`` from ``%first``, a constant that stands before it.

    Args:
      carried: what it carries, by the name of it in the body.
      start: what that is first.
      type_: its type.
      body: ops of the body.
      following: what is carried to the next iteration.
    """
    return f'''%loop:2 = stablehlo.while(%i = %first, {carried} = {start}) : tensor<i32>, {type_}
    cond {{
      %n = stablehlo.constant dense<8> : tensor<i32>
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      {body}
      stablehlo.return %j, {following} : tensor<i32>, {type_}
    }}'''
