// RUN: not %hlorewrite opt %s --pass=comm-shift 2>&1 | %filecheck %s

// CHECK: not-spmd.mlir:5:3: a value is placed on one device ({maximal device=...}), so it is not SPMD
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{maximal device=1}"}) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
}
