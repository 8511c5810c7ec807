// RUN: %hlorewrite opt %s --pass=merge-statistics --topology=h200:1x8 --remarks=all -o %t 2>&1 | %filecheck %s --allow-empty
// RUN: %hlorewrite opt %s --pass=merge-statistics --topology=h200:1x8 | %filecheck %s --check-prefix=MODULE

// Sums of squares in bf16 are too coarse to be taken apart.
//
// CHECK: remark: blocked: merge-statistics: the variance waits for its mean: other sums are too coarse in bf16
// MODULE-COUNT-2: stablehlo.all_reduce
// MODULE-NOT: stablehlo.all_gather
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<4x4xbf16>) -> tensor<4xbf16> {
    %zero = stablehlo.constant dense<0.0> : tensor<bf16>
    %s1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x4xbf16>, tensor<bf16>) -> tensor<4xbf16>
    %t1 = "stablehlo.all_reduce"(%s1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<bf16>, %r: tensor<bf16>):
      %a = stablehlo.add %l, %r : tensor<bf16>
      stablehlo.return %a : tensor<bf16>
    }) : (tensor<4xbf16>) -> tensor<4xbf16>
    %n = stablehlo.constant dense<32.0> : tensor<4xbf16>
    %mean = stablehlo.divide %t1, %n : tensor<4xbf16>
    %w = stablehlo.broadcast_in_dim %mean, dims = [1] : (tensor<4xbf16>) -> tensor<4x4xbf16>
    %d = stablehlo.subtract %x, %w : tensor<4x4xbf16>
    %q = stablehlo.multiply %d, %d : tensor<4x4xbf16>
    %s2 = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x4xbf16>, tensor<bf16>) -> tensor<4xbf16>
    %t2 = "stablehlo.all_reduce"(%s2) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<bf16>, %r: tensor<bf16>):
      %a = stablehlo.add %l, %r : tensor<bf16>
      stablehlo.return %a : tensor<bf16>
    }) : (tensor<4xbf16>) -> tensor<4xbf16>
    return %t2 : tensor<4xbf16>
  }
}
