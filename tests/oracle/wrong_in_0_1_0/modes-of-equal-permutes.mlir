// With a channel the pairs name partitions, without one replicas: two different permutes.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0,1],[1,0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %t = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0,1],[1,0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %s, %t : tensor<4xf32>, tensor<4xf32>
  }
}
