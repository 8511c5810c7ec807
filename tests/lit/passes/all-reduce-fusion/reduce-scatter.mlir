// RUN: %hlorewrite opt %s --pass=all-reduce-fusion --topology=h200:1x4 | %filecheck %s

// Reduce-scatters along different dimensions: rows hold what each member gets.
// 
// CHECK: stablehlo.transpose
// CHECK: stablehlo.concatenate %{{.+}}, %{{.+}}, dim = 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
// CHECK-NEXT: "stablehlo.reduce_scatter"
// CHECK: -> tensor<1x16xf32>
// CHECK-NOT: "stablehlo.reduce_scatter"
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> (tensor<1x8xf32>, tensor<4x2xf32>) {
  %x = "stablehlo.reduce_scatter"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %y = "stablehlo.reduce_scatter"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x2xf32>
  return %x, %y : tensor<1x8xf32>, tensor<4x2xf32>
}
}
