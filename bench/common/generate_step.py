"""Generated train steps of any size, for measuring hlorewrite itself.

A step accumulates the gradients of some layers over eight micro-batches on eight devices: a forward chain, a backward
chain that reads every forward value, one all-reduce and one division for each gradient, the sum into its accumulator.
"""

from __future__ import annotations

import sys

_HEADER = """module @step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=8]>
"""
_REDUCE = """      %r{i} = "stablehlo.all_reduce"(%g{i}) <{{\
channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, \
replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}}> ({{
      ^bb0(%left: tensor<f32>, %right: tensor<f32>):
        %s = stablehlo.add %left, %right : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<64x64xf32>) -> tensor<64x64xf32>
      %m{i} = stablehlo.divide %r{i}, %eight : tensor<64x64xf32>
      %n{i} = stablehlo.add %a{i}, %m{i} : tensor<64x64xf32>"""
_CHAIN = ("stablehlo.tanh {0} : {t}", "stablehlo.multiply {0}, {0} : {t}", "stablehlo.add {0}, {1} : {t}",
          "stablehlo.logistic {0} : {t}", "stablehlo.subtract {0}, {1} : {t}")


def step_text(ops: int, collectives: int) -> str:
    """MLIR text of a step.

    Args:
      ops: about how many ops it has.
      collectives: how many gradients are averaged in its loop.

    Returns:
      A module that parses and verifies.
    """
    tensor, weight = "tensor<8x64xf32>", "tensor<64x64xf32>"
    each = max(1, (ops - 7 * collectives) // (2 * collectives))
    accumulators = ", ".join(f"%a{i} = %zero" for i in range(collectives))
    types = ", ".join([f"tensor<8x{tensor[7:]}", "tensor<i32>", *[weight] * collectives])
    lines = [_HEADER, f"  func.func public @main(%w: {weight}, %xs: tensor<8x64x64xf32>) -> {weight} {{",
             f"    %out = sdy.manual_computation(%w, %xs) in_shardings=[<@mesh, [{{}}, {{}}]>, "
             f"<@mesh, [{{}}, {{\"data\"}}, {{}}]>] out_shardings=[<@mesh, [{{}}, {{}}]>] manual_axes={{\"data\"}} "
             f"(%p: {weight}, %x: tensor<8x8x64xf32>) {{",
             f"      %zero = stablehlo.constant dense<0.0> : {weight}",
             f"      %eight = stablehlo.constant dense<8.0> : {weight}",
             "      %c0 = stablehlo.constant dense<0> : tensor<i32>",
             "      %c1 = stablehlo.constant dense<1> : tensor<i32>",
             "      %c8 = stablehlo.constant dense<8> : tensor<i32>",
             f"      %res:{collectives + 2} = stablehlo.while(%b = %x, %i = %c0, {accumulators}) : {types}",
             "      cond {",
             "      %go = stablehlo.compare LT, %i, %c8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
             "      stablehlo.return %go : tensor<i1>", "      } do {",
             "      %sl = stablehlo.dynamic_slice %b, %i, %c0, %c0, sizes = [1, 8, 64] : (tensor<8x8x64xf32>, "
             "tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x64xf32>",
             f"      %f0 = stablehlo.reshape %sl : (tensor<1x8x64xf32>) -> {tensor}"]
    lines += _layers(collectives, each, tensor)
    news = ", ".join(f"%n{i}" for i in range(collectives))
    lines += ["      %j = stablehlo.add %i, %c1 : tensor<i32>", f"      stablehlo.return %b, %j, {news} : {types}",
              "      }"]
    total = "%res#2"
    for i in range(1, collectives):
        lines.append(f"      %t{i} = stablehlo.maximum {total}, %res#{i + 2} : {weight}")
        total = f"%t{i}"
    lines += [f"      %new = stablehlo.subtract %p, {total} : {weight}", f"      sdy.return %new : {weight}",
              f"    }} : ({weight}, tensor<8x64x64xf32>) -> {weight}", f"    return %out : {weight}", "  }", "}"]
    return "\n".join(lines) + "\n"


def _layers(collectives: int, each: int, tensor: str) -> list[str]:
    """Forward chain of every layer, then backward chains and gradients, last layer first."""
    lines, current, count = [], "%f0", 0
    saved = []
    for layer in range(collectives):
        lines.append(f"      %h{layer} = stablehlo.dot_general {current}, %p, contracting_dims = [1] x [0] : "
                     f"({tensor}, tensor<64x64xf32>) -> {tensor}")
        before, current = current, f"%h{layer}"
        for _ in range(each - 1):
            count += 1
            lines.append(f"      %f{count} = " + _CHAIN[count % 5].format(current, before, t=tensor))
            before, current = current, f"%f{count}"
        saved.append(current)
    for layer in reversed(range(collectives)):
        for _ in range(each - 1):
            count += 1
            lines.append(f"      %f{count} = " + _CHAIN[count % 5].format(current, saved[layer], t=tensor))
            current = f"%f{count}"
        lines.append(f"      %g{layer} = stablehlo.dot_general {saved[layer]}, {current}, contracting_dims = [0] x [0]"
                     f" : ({tensor}, {tensor}) -> tensor<64x64xf32>")
        lines.append(_REDUCE.format(i=layer))
    return lines


if __name__ == "__main__" and len(sys.argv) == 3:  # without sizes it is a module of other benchmarks
    sys.stdout.write(step_text(int(sys.argv[1]), int(sys.argv[2])))
