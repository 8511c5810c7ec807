// RUN: %hlorewrite opt %s --pass=permutes-to-broadcast | %filecheck %s

// One device sends to three others.
// 
// CHECK: %[[B:.+]] = "stablehlo.collective_broadcast"
// CHECK-COUNT-3: stablehlo.select %{{.+}}, %[[B]]
// CHECK-NOT: collective_permute
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %p1 = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  %p2 = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 2]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  %p3 = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 3]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  %s = stablehlo.add %p1, %p2 : tensor<8xf32>
  %y = stablehlo.add %s, %p3 : tensor<8xf32>
  return %y : tensor<8xf32>
}
}
