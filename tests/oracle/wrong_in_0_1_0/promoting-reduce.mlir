// The sum over devices wraps around in 8 bits, the sum over elements is taken in 32.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<64xi8>) -> tensor<i32> {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %s = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0,1,2,3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<i8>, %b: tensor<i8>):
      %c = stablehlo.add %a, %b : tensor<i8>
      stablehlo.return %c : tensor<i8>
    }) : (tensor<64xi8>) -> tensor<64xi8>
    %d = "stablehlo.reduce"(%s, %z) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %c : tensor<i32>
    }) : (tensor<64xi8>, tensor<i32>) -> tensor<i32>
    return %d : tensor<i32>
  }
}
