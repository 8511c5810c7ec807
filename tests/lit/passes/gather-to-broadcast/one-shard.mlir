// RUN: %hlorewrite opt %s --pass=gather-to-broadcast --ignore-cost | %filecheck %s

// All devices read part of the third shard.
// 
// CHECK: %[[P:.+]] = stablehlo.slice %{{.+}} [1:4, 0:4] : (tensor<8x4xf32>)
// CHECK-NEXT: "stablehlo.collective_broadcast"(%[[P]]) {{.*}}dense<{{\[\[}}2, 0, 1, 3]]>
// CHECK-NOT: all_gather
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %g = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<8x4xf32>) -> tensor<32x4xf32>
  %y = stablehlo.slice %g [17:20, 0:4] : (tensor<32x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
}
