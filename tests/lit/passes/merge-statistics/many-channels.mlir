// RUN: %hlorewrite opt %s --pass=merge-statistics --topology=h200:1x8 --remarks=all -o %t 2>&1 | %filecheck %s --allow-empty
// RUN: %hlorewrite opt %s --pass=merge-statistics --topology=h200:1x8 | %filecheck %s --check-prefix=MODULE

// A gather of 262,144 channels takes longer than two all-reduces.
//
// CHECK: remark: unprofitable: merge-statistics: the variance waits for its mean: one gather takes 109 us, two all-reduces 92 us on h200:1x8
// MODULE-COUNT-2: stablehlo.all_reduce
// MODULE-NOT: stablehlo.all_gather
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<1x262144xf32>) -> tensor<262144xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1x262144xf32>, tensor<f32>) -> tensor<262144xf32>
    %t1 = "stablehlo.all_reduce"(%s1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %a = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %a : tensor<f32>
    }) : (tensor<262144xf32>) -> tensor<262144xf32>
    %n = stablehlo.constant dense<8.0> : tensor<262144xf32>
    %mean = stablehlo.divide %t1, %n : tensor<262144xf32>
    %w = stablehlo.broadcast_in_dim %mean, dims = [1] : (tensor<262144xf32>) -> tensor<1x262144xf32>
    %d = stablehlo.subtract %x, %w : tensor<1x262144xf32>
    %q = stablehlo.multiply %d, %d : tensor<1x262144xf32>
    %s2 = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1x262144xf32>, tensor<f32>) -> tensor<262144xf32>
    %t2 = "stablehlo.all_reduce"(%s2) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %a = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %a : tensor<f32>
    }) : (tensor<262144xf32>) -> tensor<262144xf32>
    return %t2 : tensor<262144xf32>
  }
}
