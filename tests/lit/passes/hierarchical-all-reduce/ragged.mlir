// RUN: %hlorewrite opt %s --pass=hierarchical-all-reduce --topology=h200:2x2 --ignore-cost | %filecheck %s

// Two hosts of two GPUs, and a number of elements that two does not divide.
// 
// CHECK: stablehlo.concatenate {{.*}} -> tensor<8xf32>
// CHECK: "stablehlo.reduce_scatter"{{.*}}dense<{{\[\[}}0, 1], [2, 3]]>
// CHECK: "stablehlo.all_reduce"{{.*}}dense<{{\[\[}}0, 2], [1, 3]]>
// CHECK: "stablehlo.all_gather"{{.*}}dense<{{\[\[}}0, 1], [2, 3]]>
// CHECK: stablehlo.slice {{.*}} [0:7]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<7xf32>) -> tensor<7xf32> {
  %x = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<7xf32>) -> tensor<7xf32>
  return %x : tensor<7xf32>
}
}
