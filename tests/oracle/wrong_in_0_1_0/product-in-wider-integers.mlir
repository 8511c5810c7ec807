// The sum over devices wraps around in 8 bits, the product is made in 32.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<64xi8>) -> tensor<i32> {
    %m = stablehlo.constant dense<3> : tensor<64xi8>
    %s = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<i8>, %b: tensor<i8>):
      %c = stablehlo.add %a, %b : tensor<i8>
      stablehlo.return %c : tensor<i8>
    }) : (tensor<64xi8>) -> tensor<64xi8>
    %d = stablehlo.dot_general %s, %m, contracting_dims = [0] x [0] : (tensor<64xi8>, tensor<64xi8>) -> tensor<i32>
    return %d : tensor<i32>
  }
}
