// RUN: %hlorewrite opt %s --pass=legalize-for-cpu | %filecheck %s

// The source adds its bits to zeros.
// 
// CHECK: stablehlo.bitcast_convert {{.*}} -> tensor<8xui32>
// CHECK: stablehlo.select
// CHECK: "stablehlo.all_reduce"
// CHECK: stablehlo.bitcast_convert {{.*}} -> tensor<8xf32>
// CHECK-NOT: collective_broadcast
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %y = "stablehlo.collective_broadcast"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[2, 0, 1, 3]]> : tensor<1x4xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
}
