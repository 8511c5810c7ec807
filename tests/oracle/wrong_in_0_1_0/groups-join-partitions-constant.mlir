// A sum of a constant over groups that join all partitions of two replicas: eight terms, not two.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 2 : i32} {
  func.func @main() -> tensor<f32> {
    %x = stablehlo.constant dense<1.0> : tensor<f32>
    %s = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0,1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
    return %s : tensor<f32>
  }
}
