// RUN: %hlorewrite opt %s --pass=hierarchical-all-reduce --topology=h200:2x2 --ignore-cost --remarks=all 2>&1 | %filecheck %s

// Nothing can be scattered of nothing.
//
// CHECK: missed: hierarchical-all-reduce: it has no elements to scatter
// CHECK-NOT: stablehlo.reduce_scatter
// CHECK: return {{.*}} : tensor<4x0xf32>
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<4x0xf32>) -> tensor<4x0xf32> {
  %x = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x0xf32>) -> tensor<4x0xf32>
  return %x : tensor<4x0xf32>
}
}
