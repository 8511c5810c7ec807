// RUN: %hlorewrite opt %s --pass=gather-to-broadcast --ignore-cost | %filecheck %s

// Each device reads the shard of the next one: the index is evaluated for every device.
// 
// CHECK: "stablehlo.collective_permute"{{.*}}dense<{{\[\[}}1, 0], [2, 1], [3, 2], [0, 3]]>
// CHECK-NOT: all_gather
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %g = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<8x4xf32>) -> tensor<32x4xf32>
  %id = stablehlo.partition_id : tensor<ui32>
  %k = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c4 = stablehlo.constant dense<4> : tensor<i32>
  %c8 = stablehlo.constant dense<8> : tensor<i32>
  %n = stablehlo.add %k, %c1 : tensor<i32>
  %m = stablehlo.remainder %n, %c4 : tensor<i32>
  %i = stablehlo.multiply %m, %c8 : tensor<i32>
  %y = stablehlo.dynamic_slice %g, %i, %c0, sizes = [8, 4] : (tensor<32x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
}
